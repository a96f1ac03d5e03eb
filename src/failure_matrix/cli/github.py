"""Annotations for a pull request, as workflow commands: worst first, on the catalogue's lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from failure_matrix.catalogue.findings import Finding, Severity
from failure_matrix.cli.items import Item, not_verified
from failure_matrix.cli.terminal import harmless
from failure_matrix.evidence.records import Verdict

MOST = 10  # of a level; a code host shows no more of one step

Level = Literal["error", "warning", "notice"]
LEVELS: tuple[Level, ...] = ("error", "warning", "notice")  # worst first


@dataclass(frozen=True, kw_only=True)
class Annotation:
    level: Level
    path: str
    line: int
    column: int | None
    title: str
    text: str


def findings(found: Sequence[Finding]) -> Iterator[str]:
    """Give one annotation a finding."""
    return _commands(
        Annotation(
            level="error" if finding.severity is Severity.ERROR else "warning",
            path=finding.place.path,
            line=finding.place.line,
            column=finding.place.column,
            title=finding.rule,
            text=f"{finding.message}\n{finding.hint}",
        )
        for finding in found
    )


def evidence(items: tuple[Item, ...]) -> Iterator[str]:
    """Give one annotation for each failure, and for each item that is not verified without one."""
    return _commands(note for item in not_verified(items) for note in _of(item))


def _of(item: Item) -> Iterator[Annotation]:
    title = f"{item.verdict}: {item.kind} {item.name}"
    if not item.faults:
        yield _annotation(item.verdict, item.place, title, item.because or str(item.verdict))
    for fault in item.faults:
        failure = fault.failure
        text = f"{failure.message}\nexpected {failure.expected}\nobserved {failure.observed}"
        where = f", {fault.where}" if fault.where else ""
        yield _annotation(item.verdict, failure.place or item.place, f"{title}{where}", text)


def _annotation(verdict: Verdict, place: str, title: str, text: str) -> Annotation:
    level: Level = {Verdict.BROKEN: "error", Verdict.WAIVED: "notice"}.get(verdict, "warning")  # type: ignore[assignment]
    path, _, line = place.partition(":")
    number = line.partition(":")[0]
    return Annotation(
        level=level, path=path, line=int(number) if number.isdecimal() else 1, column=None, title=title, text=text
    )


def _commands(annotations: Iterable[Annotation]) -> Iterator[str]:
    ordered = sorted(annotations, key=lambda note: LEVELS.index(note.level))
    for _, group in groupby(ordered, key=lambda note: note.level):
        notes = list(group)
        for note in notes[: MOST - 1]:
            yield _command(note)
        for note in notes[MOST - 1 : MOST]:
            more = len(notes) - MOST
            yield _command(note, f"\nand {more} more" if more else "")


def _command(note: Annotation, more: str = "") -> str:
    column = {} if note.column is None else {"col": note.column}
    where = {"file": note.path, "line": note.line, **column} if note.path else {}
    told = ",".join(f"{name}={_property(str(value))}" for name, value in {**where, "title": note.title}.items())
    return f"::{note.level} {told}::{_data(note.text + more)}"


def _data(value: str) -> str:
    return harmless(value, keep="\n").replace("%", "%25").replace("\n", "%0A")


def _property(value: str) -> str:
    return _data(value).replace(":", "%3A").replace(",", "%2C")
