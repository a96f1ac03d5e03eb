"""Coverage beyond the listed steps: guards not proven, the population probe, and what could not be tried."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from failure_matrix.catalogue.model import ABSENT
from failure_matrix.evidence.records import CellRecord, Verdict
from failure_matrix.evidence.rollup import numbered
from failure_matrix.evidence.waiving import name_of
from failure_matrix.site.book import Book, to_state
from failure_matrix.site.standing import of_item
from failure_matrix.site.tables import Section, Table, TableRow
from failure_matrix.site.views.moves import cells
from failure_matrix.site.words import Badge, Code, Phrase, count, enumerated, join, prose, say, value, visible

MOST_STATES = 4  # that a row names


def guard_doubts(book: Book) -> Iterator[TableRow]:
    """Guards that nobody missed, or whose absence was not tried."""
    for guard in book.evidence.guards:
        if guard.part == "assignment" or guard.verdict is Verdict.VERIFIED:
            continue
        action = book.catalogue.actions.get(guard.action)
        what = say(Code(visible(guard.guard)), " in ", prose(action.title if action else guard.action))
        badge = say(Badge(guard.verdict)) if guard.verdict else say(guard.outcome)
        why = of_item(book, name_of(guard), guard.verdict or Verdict.VERIFIED, guard.because)
        yield TableRow(cells=cells(what, badge, why.why or prose(guard.because or "")), verdict=guard.verdict)


def population(book: Book) -> Section | None:
    """Every combination of values, and where each was found."""
    rows = []
    for probe in book.evidence.population:
        found = [(id, probe.hits[id]) for id in book.catalogue.states if probe.hits.get(id)]
        hits = join((say(to_state(book, id), f" {number:,}") for id, number in found), ", ")
        standing = of_item(book, name_of(probe), probe.verdict, probe.because)
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
    return [
        "; the smallest that is not: " + ", ".join(f"{column} {value(each)}" for column, each in sorted(found.items()))
    ]


def untried(book: Book) -> Section | None:
    """Cells that nobody could try, by the reason."""
    groups: dict[str, list[CellRecord]] = {}
    for cell in book.evidence.cells:
        if cell.verdict is None:
            groups.setdefault(cell.because or "", []).append(cell)
    rows = tuple(
        TableRow(cells=cells(prose(because), f"{len(found):,}", _where(book, found)))
        for because, found in sorted(groups.items(), key=lambda group: -len(group[1]))
    )
    if not rows:
        return None
    table = Table(caption="Not tried", columns=("Why", "Cells", "In"), rows=rows)
    text = say("A cell is an action by a caller in a state. These have nothing to try, and prove nothing.")
    return Section(title="Not tried", anchor="not-tried", text=text, table=table)


def _where(book: Book, found: Sequence[CellRecord]) -> Phrase:
    """The states, the first few linked."""
    states = list(dict.fromkeys(cell.state for cell in found))
    more = f" and {len(states) - MOST_STATES} more" if len(states) > MOST_STATES else ""
    return say(join((_state(book, state) for state in states[:MOST_STATES]), ", "), more)


def cell_doubts(book: Book) -> Iterator[TableRow]:
    """Cells that are not as declared, or not proven, those of one action for one reason together."""
    groups: dict[tuple[str, Verdict, str | None], list[CellRecord]] = {}
    for cell in book.evidence.cells:
        if cell.verdict not in (None, Verdict.VERIFIED):
            groups.setdefault((cell.action, cell.verdict, cell.because), []).append(cell)
    for (id, verdict, because), found in groups.items():
        action = book.catalogue.actions.get(id)
        callers = dict.fromkeys(prose(cell.caller) for cell in found if cell.caller)
        by = f" by {enumerated(callers)}" if callers else ""
        what = say(
            prose(action.title if action else id), f"{by}: {count(len(found), 'cell')}, in ", _where(book, found)
        )
        standing = of_item(book, name_of(found[0]), verdict, because)
        yield TableRow(cells=cells(what, say(Badge(verdict, "")), standing.why), verdict=verdict)


def observation_doubts(book: Book) -> Iterator[TableRow]:
    """Observations and costs that do not hold, or were not asked."""
    for each in book.evidence.observations:
        if each.verdict is not Verdict.VERIFIED:
            what = say(numbered(each).capitalize(), " of ", _state(book, each.state))
            standing = of_item(book, name_of(each), each.verdict, each.because)
            yield TableRow(cells=cells(what, say(Badge(each.verdict, "")), standing.why), verdict=each.verdict)


def _state(book: Book, id: str) -> Phrase:
    return say(to_state(book, id)) if id != ABSENT else say("no row")
