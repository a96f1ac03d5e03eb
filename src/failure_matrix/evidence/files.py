"""Evidence as a file: written whole or not at all, read only when it is what it says."""

from __future__ import annotations

import json
import os
import secrets
from collections.abc import Callable
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.evidence.records import FORMAT, Evidence


def text(evidence: Evidence) -> str:
    """Give the file's text: JSON with sorted keys, two spaces, one newline at the end."""
    return (
        json.dumps(evidence.model_dump(mode="json", by_alias=True), indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    )


def schema() -> str:
    """Give the JSON Schema of the file, as text, made from the records."""
    made = Evidence.model_json_schema(by_alias=True, mode="serialization")
    made = {"$schema": "https://json-schema.org/draft/2020-12/schema", **made, "title": FORMAT}
    return json.dumps(made, indent=2, ensure_ascii=False) + "\n"


def refuse_place(path: Path) -> None:
    """Raise CouldNot where no file can be put or replaced at ``path``; asked before the work, not after it."""
    above = next((parent for parent in (path.parent, *path.parent.parents) if parent.exists()), Path())
    if path.is_dir():
        why = "it is a directory"
    elif not above.is_dir():
        why = f"'{above}' is no directory"
    elif not os.access(above, os.W_OK | os.X_OK):
        why = f"nothing can be written in '{above}'"
    else:
        return
    raise CouldNot(f"write evidence to '{path}': {why}", "Name another file.")


def refuse(path: Path) -> None:
    """Raise CouldNot where no fresh file can be made at ``path``; asked before the work, not after it."""
    if os.path.lexists(path):
        raise _taken(path)
    if not path.parent.is_dir():
        raise CouldNot(
            f"write evidence to '{path}': there is no directory '{path.parent}'", "Make it, or name another file."
        )


def write(evidence: Evidence, path: Path, *, fresh: bool, forget: Callable[[Path], None] = lambda _: None) -> None:
    """Put evidence at ``path`` in one instant: all of it, or nothing.

    fresh: the path must not exist, and what exists is never touched. Otherwise it is replaced, its directory made.
    forget: told the temporary file's name before it exists, so that it goes even if this process is killed.
    """
    data = text(evidence).encode()
    candidate = path.with_name(f".{path.name}.{secrets.token_hex(8)}.tmp")
    try:
        forget(candidate)  # where we stand may be gone
        if not fresh:
            path.parent.mkdir(parents=True, exist_ok=True)
        try:
            _store(candidate, data)
            if fresh:
                _link(candidate, path)
            else:
                candidate.replace(path)
        finally:
            candidate.unlink(missing_ok=True)
    except OSError as exc:
        raise CouldNot(f"write evidence to '{path}': {exc.strerror}", "Name another file.") from exc


def _store(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _link(candidate: Path, path: Path) -> None:
    """Give ``path`` the bytes of ``candidate``; unlike a rename, this never replaces."""
    try:
        os.link(candidate, path)
    except FileExistsError as exc:
        raise _taken(path) from exc


def _taken(path: Path) -> CouldNot:
    return CouldNot(f"write evidence to '{path}': it exists already", "Nothing is overwritten: name a fresh file.")


def read(path: Path) -> Evidence:
    """Read evidence; CouldNot where the file is missing, cut off, not evidence, or of another format."""
    try:
        found: Any = json.loads(path.read_bytes())
    except OSError as exc:
        raise CouldNot(f"read evidence from '{path}': {exc.strerror}", "Run matrix verify first.") from exc
    except ValueError as exc:  # not JSON, or not UTF-8
        raise _unreadable(path, f"it is not JSON, or cut off ({exc})") from exc
    except RecursionError as exc:
        raise _unreadable(path, "it is nested too deeply to be evidence") from exc
    said = found.get("format") if isinstance(found, dict) else None
    if said != FORMAT:
        raise _unreadable(path, f"its format is {said!r}, expected '{FORMAT}'" if said else "it is no evidence file")
    try:
        return Evidence.model_validate_json(json.dumps(found))
    except ValidationError as exc:
        first = exc.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise _unreadable(path, f"{where}: {first['msg']} ({exc.error_count()} such faults)") from exc


def _unreadable(path: Path, why: str) -> CouldNot:
    return CouldNot(f"read evidence from '{path}': {why}", "Run matrix verify to make it anew.")
