"""Coverage beyond the listed steps: guards not proven, the population probe, and what could not be tried."""

from __future__ import annotations

from collections.abc import Iterator

from failure_matrix.catalogue.model import ABSENT
from failure_matrix.evidence.records import Verdict
from failure_matrix.site.book import Book, to_state
from failure_matrix.site.standing import of_item
from failure_matrix.site.tables import Section, Table, TableRow
from failure_matrix.site.views.moves import cells
from failure_matrix.site.words import Badge, Code, Phrase, count, join, prose, say, value, visible


def guard_doubts(book: Book) -> Iterator[TableRow]:
    """Guards that nobody missed, or whose absence was not tried."""
    for guard in book.evidence.guards:
        if guard.part == "assignment" or guard.verdict is Verdict.VERIFIED:
            continue
        action = book.catalogue.actions.get(guard.action)
        what = say(Code(visible(guard.guard)), " in ", prose(action.title if action else guard.action))
        badge = say(Badge(guard.verdict)) if guard.verdict else say(guard.outcome)
        why = of_item(book, f"guard {guard.action} {guard.guard}", guard.verdict or Verdict.VERIFIED, guard.because)
        yield TableRow(cells=cells(what, badge, why.why or prose(guard.because or "")), verdict=guard.verdict)


def population(book: Book) -> Section | None:
    """Every combination of values, and where each was found."""
    rows = []
    for probe in book.evidence.population:
        hits = join((say(to_state(book, id), f" {number:,}") for id, number in probe.hits.items() if number), ", ")
        standing = of_item(book, f"population {probe.subject}", probe.verdict, probe.because)
        tried = f"{probe.combinations:,} combinations, {probe.admitted:,} admitted by the schema"
        rows.append(
            TableRow(
                cells=cells(
                    probe.subject,
                    say(Badge(probe.verdict, standing.note)),
                    tried,
                    say(hits, *_offending(probe.offending)),
                ),
                verdict=probe.verdict if probe.verdict is not Verdict.VERIFIED else None,
            )
        )
    if not rows:
        return None
    table = Table(caption="Population probe", columns=("Subject", "Verdict", "Tried", "Found in"), rows=tuple(rows))
    text = say(
        "Rows with every combination of values were inserted and rolled back; each must be in exactly one state."
    )
    return Section(title="Population probe", anchor="population", text=text, table=table)


def _offending(found: dict[str, str | None] | None) -> list[str]:
    if not found:
        return []
    return ["; the smallest that is not: " + ", ".join(f"{column} {value(each)}" for column, each in found.items())]


def untried(book: Book) -> Section | None:
    """Cells that could not be tried, by the reason."""
    groups: dict[tuple[str, str], int] = {}
    for cell in book.evidence.cells:
        if cell.verdict is None:
            key = (cell.state, cell.because or "")
            groups[key] = groups.get(key, 0) + 1
    rows = tuple(
        TableRow(cells=cells(_state(book, state), count(number, "cell"), prose(because)))
        for (state, because), number in groups.items()
    )
    if not rows:
        return None
    table = Table(caption="Not tried", columns=("State", "How many", "Why"), rows=rows)
    return Section(title="Not tried", anchor="not-tried", text=say("Cells that the sweep cannot try."), table=table)


def _state(book: Book, id: str) -> Phrase:
    return say(to_state(book, id)) if id != ABSENT else say("no row")
