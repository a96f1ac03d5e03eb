"""From a directory of YAML to a catalogue, or to every finding at once."""

from __future__ import annotations

import dataclasses
import gc
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from failure_matrix.catalogue.files import YamlFile, read_files
from failure_matrix.catalogue.findings import CatalogueInvalid, Finding, Severity
from failure_matrix.catalogue.model import Catalogue, Place
from failure_matrix.catalogue.nodes import Node, Pairs, Word
from failure_matrix.catalogue.plan import fields
from failure_matrix.catalogue.reading import INVALID, KEY, Reading, say
from failure_matrix.catalogue.rulebook import finding, nearest
from failure_matrix.catalogue.rules import check_references, sharpened
from failure_matrix.catalogue.scalars import NameShape
from failure_matrix.catalogue.shapes import remember, twice, without_cuts
from failure_matrix.catalogue.sources import Sources


def load(directory: Path) -> Catalogue:
    """Read the catalogue in ``directory``. Raises CatalogueInvalid with all findings; warnings are ``check``'s to tell.

    Paths in findings are relative to the working directory when they lie below it.
    """
    with _uncollected():
        return _load(directory)


@contextmanager
def _uncollected() -> Iterator[None]:
    """Hold back the garbage collector: a tree of objects that all live costs it a third of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _load(directory: Path) -> Catalogue:
    shown = shown_path(directory)
    files, found = read_files(directory, shown)
    if not files:
        raise CatalogueInvalid(tuple(sorted(found, key=place_first)))
    reading = Reading(sources=Sources(directory), texts={file.path: file.text for file in files})
    values, ids = _read(reading, files, Place(path=shown, line=1, column=1), whole=not _errors(found))
    errors = _errors(found) + _errors(reading.findings)
    if errors:
        values.setdefault("catalogue", {"title": shown})  # so that the rest can still be looked at
    catalogue = _build(values, reading, directory, found + reading.findings)
    if isinstance(catalogue, Catalogue) and not errors:
        return catalogue
    every = found + reading.findings
    if isinstance(catalogue, list):
        every += catalogue if not errors else []
    elif not _errors(found):  # an unread file may define what others name
        every += check_references(catalogue, ids)
    strict = isinstance(catalogue, Catalogue) and catalogue.settings.strict
    raise CatalogueInvalid(sharpened(every, strict=strict))


def shown_path(path: Path) -> str:
    """Write a path as findings show it: relative when it lies below the working directory."""
    whole = Path(os.path.normpath(Path.cwd() / path))
    return (whole.relative_to(Path.cwd()) if whole.is_relative_to(Path.cwd()) else Path(path)).as_posix()


def place_first(found: Finding) -> tuple[Place, str, str]:
    """Order findings by where they stand."""
    return found.place, found.rule, found.message


def _errors(findings: list[Finding]) -> list[Finding]:
    return [found for found in findings if found.severity is Severity.ERROR]


def _read(
    reading: Reading, files: list[YamlFile], nowhere: Place, *, whole: bool
) -> tuple[dict[str, Any], Mapping[str, frozenset[str]]]:
    """Read the merged top-level keys; give what could be read, and every id, also of what could not.

    ``whole`` says that every file was read: only then can a key be missing.
    """
    known = fields(Catalogue)
    merged = _merged(reading, files)
    ids = {section: frozenset(_ids(node)) for section, (_, node) in merged.items() if section != "catalogue"}
    reading.stores = ids.get("stores", frozenset())
    values = {}
    for section, (key, node) in merged.items():
        remember(reading, (section,), key, node)
        values[section] = known[section].shape.read(reading, node, (section,))
    for section, field in known.items():
        if field.required and section not in merged and whole:
            hint = "add it to one of the files: catalogue: {title: …}"
            reading.note("missing-key", nowhere, f"no file has the key '{section}'", hint)
    return {section: value for section, value in values.items() if value is not INVALID}, ids


def _ids(node: Node) -> Iterator[str]:
    if isinstance(node, Pairs):
        yield from (key.text for key, _ in node.pairs if isinstance(key, Word))


def _merged(reading: Reading, files: list[YamlFile]) -> dict[str, tuple[Node, Node]]:
    """Bring the same top-level keys of all files together, in the order of the files."""
    merged: dict[str, tuple[Node, Node]] = {}
    seen: dict[tuple[str, str], Node] = {}
    for file in files:
        for section, key, node in _sections(reading, file):
            if section not in merged:
                first = dataclasses.replace(node, flow=False, pairs=[]) if isinstance(node, Pairs) else node
                merged[section] = (key, first)
            whole = merged[section][1]
            if section == "catalogue" or not (isinstance(node, Pairs) and isinstance(whole, Pairs)):
                _once(reading, seen, (section, ""), key, f"'{section}'")
                merged[section] = (merged[section][0], node)
                continue
            for pair in without_cuts(reading, node):
                name = pair[0].text if isinstance(pair[0], Word) else None
                if name is None or _once(reading, seen, (section, name), pair[0], say((section, name))):
                    whole.pairs.append(pair)
    return merged


def _sections(reading: Reading, file: YamlFile) -> Iterator[tuple[str, Node, Node]]:
    """Give the known top-level keys of one file, each once."""
    if not isinstance(file.root, Pairs):
        hint = f"begin with one of: {', '.join(fields(Catalogue))}"
        reading.wrong(file.root, (), "a mapping", hint)
        return
    local = Reading(sources=reading.sources, texts=reading.texts, findings=reading.findings)
    names: dict[str, Any] = {}
    for key, node in without_cuts(reading, file.root):
        name = NameShape().read(reading, key, ())
        if name is INVALID or twice(local, name, key, (), names):
            continue
        names[name] = node
        local.places.nodes[name, KEY] = key
        if name in fields(Catalogue):
            yield name, key, node
        else:
            hint = nearest(name, fields(Catalogue))
            reading.note("unknown-key", key.place, f"'{name}' is no top-level key", hint)


def _once(reading: Reading, seen: dict[tuple[str, str], Node], what: tuple[str, str], key: Node, said: str) -> bool:
    """Note a second definition; tell whether this is the first."""
    first = seen.setdefault(what, key)
    if first is key:
        return True
    rule = "duplicate-key" if first.path == key.path else "second-definition"
    hint = f"the first is at {first.place}: keep one, or rename one"
    reading.note(rule, key.place, f"{said} is defined twice", hint)
    return False


def _build(
    values: dict[str, Any], reading: Reading, directory: Path, found: list[Finding]
) -> Catalogue | list[Finding]:
    """Make the catalogue of what could be read, or say what the model refuses."""
    try:
        catalogue = Catalogue.model_validate(
            {**values, "directory": directory, "places": reading.places, "notes": tuple(found)}
        )
    except ValidationError as error:
        return [_refused(reading, directory, dict(problem)) for problem in error.errors(include_url=False)]
    return catalogue


def _refused(reading: Reading, directory: Path, problem: dict[str, Any]) -> Finding:
    """Put what only the model itself checks into words: a validator of a noun says them."""
    path = tuple(problem["loc"])
    while path and path not in reading.places:
        path = path[:-1]
    place = reading.places.get(path, Place(path=shown_path(directory), line=1, column=1))
    told = problem.get("ctx", {}).get("error")
    message = f"{say(path)} cannot be this" if told is None else f"{say(path)}: {told}"
    return finding("wrong-value", place, message, "look at what this key may hold")
