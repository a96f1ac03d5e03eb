"""What differs between a site that would be built and one that is there."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.evidence import files as evidence_files
from failure_matrix.evidence.records import Run
from failure_matrix.site import manifest
from failure_matrix.site.words import clip, visible


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One file that is not as it would be built; ``line`` counts from 1, 0 where there is none to show."""

    path: str
    kind: Literal["missing", "extra", "differs"]
    line: int = 0
    there: str = ""
    built: str = ""

    def __str__(self) -> str:
        match self.kind:
            case "missing":
                return f"{self.path}: missing"
            case "extra":
                return f"{self.path}: extra, no build makes it"
            case "differs":
                return f"{self.path}:{self.line}: differs\n  there  {self.there}\n  built  {self.built}"


def published_run(site: Path) -> Run | None:
    """The run that a site was rendered from; None where it says none that can be read."""
    try:
        return evidence_files.read(site / "evidence.json").run
    except CouldNot:
        return None


def compare(files: Mapping[str, bytes], site: Path) -> tuple[Difference, ...]:
    """Compare rendered files with a directory, file by file, in order of their paths."""
    wanted = {**files, manifest.NAME: manifest.made(files)}
    there = set(manifest.held(site)) if site.is_dir() else set()
    found: list[Difference] = []
    for path in sorted({*wanted, *there}):
        if path not in there:
            found.append(Difference(path=path, kind="missing"))
        elif path not in wanted:
            found.append(Difference(path=path, kind="extra"))
        elif (content := _read(site / path)) != wanted[path]:
            found.append(_differs(path, content, wanted[path]))
    # The manifest only repeats what its files say: it is news where it alone differs.
    if len(found) > 1:
        found = [each for each in found if each.path != manifest.NAME]
    return tuple(found)


def _read(path: Path) -> bytes:
    """A file's bytes; a link or a directory in its place gives what no file has."""
    if path.is_symlink():
        return b"a symbolic link to " + os.fsencode(path.readlink())
    try:
        return path.read_bytes()
    except OSError as exc:
        raise CouldNot(f"compare '{path}': {exc.strerror}") from exc


def _differs(path: str, there: bytes, built: bytes) -> Difference:
    ours, theirs = _lines(built), _lines(there)
    number = next(
        (n for n, (one, two) in enumerate(zip(ours, theirs, strict=False)) if one != two), min(len(ours), len(theirs))
    )
    return Difference(
        path=path, kind="differs", line=number + 1, there=_line(theirs, number), built=_line(ours, number)
    )


def _lines(content: bytes) -> list[str]:
    return content.decode("utf-8", "replace").split("\n")


def _line(lines: list[str], number: int) -> str:
    return clip(visible(lines[number]), 160) if number < len(lines) else "(no such line)"
