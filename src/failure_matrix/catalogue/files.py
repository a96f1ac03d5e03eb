"""The YAML files of a catalogue: which there are, their text, their trees."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from failure_matrix.catalogue.findings import Finding
from failure_matrix.catalogue.model import Place
from failure_matrix.catalogue.nodes import Node, NotYamlError, Word, compose
from failure_matrix.catalogue.rulebook import finding


@dataclass(frozen=True, kw_only=True)
class YamlFile:
    """One file that was read; ``path`` as findings show it."""

    path: str
    text: str
    root: Node


def read_files(directory: Path, shown: str) -> tuple[list[YamlFile], list[Finding]]:
    """Read every ``*.yaml`` below ``directory``, sorted by path; hidden ones and linked directories are passed over."""
    nowhere = Place(path=shown, line=1, column=1)
    hint = "write a catalogue there, or name its directory with --catalogue"
    if not directory.is_dir():
        why = "is no directory" if directory.exists() else "does not exist"
        return [], [finding("no-catalogue", nowhere, f"'{shown}' {why}", hint)]
    names, found = _names(directory, nowhere)
    wanted = [name for name in names if name.endswith(".yaml")]
    if not wanted:
        found.append(finding("no-catalogue", nowhere, f"'{shown}' holds no *.yaml", hint))
    for name in names:
        if name.endswith(".yml"):
            place = Place(path=_join(shown, name), line=1, column=1)
            found.append(finding("not-read", place, "a *.yml file is not read", "rename it to *.yaml"))
    files = []
    for name in wanted:
        one = _read(directory / name, _join(shown, name))
        if isinstance(one, YamlFile):
            files.append(one)
        else:
            found.append(one)
    return files, found


def _join(shown: str, name: str) -> str:
    return name if shown == "." else f"{shown.rstrip('/')}/{name}"


def _names(directory: Path, nowhere: Place) -> tuple[list[str], list[Finding]]:
    """List the files below a directory, relative to it, with ``/``."""
    refused: list[OSError] = []
    names = []
    for root, directories, files in os.walk(directory, onerror=refused.append):
        directories[:] = sorted(name for name in directories if not name.startswith("."))
        below = Path(root).relative_to(directory)
        names += [(below / name).as_posix() for name in files if not name.startswith(".")]
    found = [
        finding(
            "unreadable-file", nowhere, f"'{error.filename}' cannot be listed: {error.strerror}", "make it readable"
        )
        for error in refused
    ]
    return sorted(names), found


def _read(path: Path, shown: str) -> YamlFile | Finding:
    start = Place(path=shown, line=1, column=1)
    try:
        if not path.is_file():
            return finding(
                "unreadable-file", start, "this is no file, or a link to nowhere", "remove it, or mend the link"
            )
        data = path.read_bytes()
    except OSError as error:
        return finding("unreadable-file", start, f"this cannot be read: {error.strerror}", "make it readable")
    try:
        text = data.removeprefix(b"\xef\xbb\xbf").decode("utf-8")
    except UnicodeDecodeError as error:
        return _not_utf8(data, error, shown)
    try:
        root = compose(text, shown)
    except NotYamlError as error:
        return error.finding
    if root is None or (isinstance(root, Word) and root.empty):
        return finding("empty-file", start, "nothing stands in this file", "remove it, or write something")
    return YamlFile(path=shown, text=text, root=root)


def _not_utf8(data: bytes, error: UnicodeDecodeError, shown: str) -> Finding:
    before = error.object[: error.start].decode("utf-8")
    place = Place(path=shown, line=before.count("\n") + 1, column=len(before) - before.rfind("\n"))
    message = f"this is not UTF-8: byte 0x{error.object[error.start]:02x}"
    hint = "save the file as UTF-8" + (" (it looks like UTF-16)" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "")
    return finding("unreadable-file", place, message, hint)
