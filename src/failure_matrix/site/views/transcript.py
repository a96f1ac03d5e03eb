"""The steps of a scenario as a grid: a column a session, a wait as one cell from the step that waits to its release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from failure_matrix.catalogue.model import Scenario
from failure_matrix.evidence.records import OrderRecord, ScenarioRecord, StepRecord, Verdict
from failure_matrix.site.book import Book
from failure_matrix.site.views import steps
from failure_matrix.site.words import Cell, Phrase, Strong, enumerated, join, prose, say, value


@dataclass(frozen=True, kw_only=True)
class GridCell:
    """One cell of the session columns. A wait spans ``rows``, a band spans ``columns``."""

    kind: Literal["step", "wait", "band", "empty"]
    session: int  # its column, from 0
    name: str = ""  # of the session
    lines: Cell = ()
    last: Cell = ()  # of a wait: how it ended
    rows: int = 1
    columns: int = 1


@dataclass(frozen=True, kw_only=True)
class GridRow:
    number: int  # as the catalogue lists the step, 0 for what was given
    anchor: str
    clock: str
    cells: tuple[GridCell, ...]
    committed: Cell
    verdict: Verdict
    # the same, on one line each, for Markdown
    session: str
    does: Phrase
    shows: Phrase


@dataclass(frozen=True, kw_only=True)
class Transcript:
    caption: str
    sessions: tuple[tuple[str, str], ...]  # name, title
    rows: tuple[GridRow, ...]
    not_run: str


def transcript(book: Book, noun: Scenario, record: ScenarioRecord) -> Transcript:
    """The steps as they are listed."""
    grid = _Grid(book, noun, record.steps, "step")
    return Transcript(
        caption=f"Steps of {record.id}",
        sessions=grid.sessions,
        rows=(grid.given(steps.states(book, record.given)), *grid.rows()),
        not_run=steps.not_run(record.not_run),
    )


def order_transcript(book: Book, noun: Scenario, record: OrderRecord, name: str) -> Transcript:
    """The same steps in another order; ``name`` begins the ids of its rows."""
    grid = _Grid(book, noun, record.steps, name)
    return Transcript(caption=f"Steps in the order {name}", sessions=grid.sessions, rows=tuple(grid.rows()), not_run="")


class _Grid:
    """Lays steps out in columns; what waits holds its column until its release."""

    def __init__(self, book: Book, noun: Scenario, taken: Sequence[StepRecord], anchor: str) -> None:
        titles = {**book.catalogue.sessions, **noun.sessions}
        self._files = {number: step.sql.origin or "" for number, step in enumerate(noun.steps, 1) if step.sql}
        acting = {step.in_ for step in taken if step.in_ is not None}
        self._book = book
        self._steps = taken
        self._anchor = anchor
        self._place = {step.number: place for place, step in enumerate(taken)}
        self._names = (*(name for name in titles if name in acting), *sorted(acting - titles.keys()))
        self.sessions = tuple((name, prose(titles[name].title or "") if name in titles else "") for name in self._names)

    def _does(self, step: StepRecord, clock: str) -> Phrase:
        return steps.does(step, clock, self._files.get(step.number, ""))

    def given(self, committed: Cell) -> GridRow:
        cells = (GridCell(kind="band", session=0, lines=(say(Strong("given")),), columns=len(self._names)),)
        return GridRow(
            number=0,
            anchor=f"{self._anchor}-0",
            clock="",
            cells=cells if self._names else (),
            committed=committed,
            verdict=Verdict.VERIFIED,
            session="",
            does=say("given"),
            shows=say(),
        )

    def rows(self) -> list[GridRow]:
        waiting: dict[int, int] = {}  # column -> the last place of its wait
        clock = self._steps[0].at or "" if self._steps else ""
        found = []
        for place, step in enumerate(self._steps):
            covered = {column for column, last in waiting.items() if place <= last}
            found.append(self._row(step, covered, clock))
            if step.in_ is not None and (last := self._released(step)) is not None:
                waiting[self._names.index(step.in_)] = last
            clock = step.at or clock
        return found

    def _row(self, step: StepRecord, covered: set[int], clock: str) -> GridRow:
        committed = steps.committed(self._book, step)
        if step.in_ is None:
            cells = self._band(step, covered, clock)
            committed = committed if cells else (self._does(step, clock), *committed)
        else:
            column = self._names.index(step.in_)
            cells = tuple(
                self._cell(step, column, clock) if other == column else GridCell(kind="empty", session=other)
                for other in range(len(self._names))
                if other == column or other not in covered
            )
        return GridRow(
            number=step.number,
            anchor=f"{self._anchor}-{step.number}",
            clock=value(step.at, 30) if step.at is not None else "",
            cells=cells,
            committed=committed,
            verdict=step.verdict,
            session=step.in_ or "",
            does=self._does(step, clock),
            shows=join(
                (*steps.shows(step), *steps.alone(self._book, step), *map(steps.failure_words, step.failures)), "; "
            ),
        )

    def _released(self, step: StepRecord) -> int | None:
        """The place of the step that set this one free; None where it did not wait, or until the end."""
        place = self._place.get(step.released_by or 0)
        return place if step.waits and place is not None and place > self._place[step.number] else None

    def _cell(self, step: StepRecord, column: int, clock: str) -> GridCell:
        does, values = self._does(step, clock), steps.given_values(step)
        after = (*steps.alone(self._book, step), *map(steps.failure_words, step.failures))
        last = self._released(step)
        if last is None:
            lines = (*steps.joined(does, steps.shows(step)), *values, *after)
            return GridCell(kind="step", session=column, name=step.in_ or "", lines=lines)
        answer = join(steps.answer(step), ", ")
        return GridCell(
            kind="wait",
            session=column,
            name=step.in_ or "",
            lines=(say(does, " → ", Strong(f"waits for {enumerated(step.waits)}")), *values),
            last=(say(f"step {step.released_by} releases it → ", answer), *after),
            rows=last - self._place[step.number] + 1,
        )

    def _band(self, step: StepRecord, covered: set[int], clock: str) -> tuple[GridCell, ...]:
        """A step of the world, across every column that does not wait; none where all do."""
        free = [column for column in range(len(self._names)) if column not in covered]
        lines: Cell = (
            *steps.joined(self._does(step, clock), steps.shows(step)),
            *map(steps.failure_words, step.failures),
        )
        cells: list[GridCell] = []
        while free:
            first = free[0]
            run = next((n for n, column in enumerate(free) if column != first + n), len(free))
            cells.append(GridCell(kind="band", session=first, lines=lines, columns=run))
            lines, free = (), free[run:]
        return tuple(cells)
