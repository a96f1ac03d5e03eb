"""What the sweep tried, action by action and state by state; and what noticed each guard's absence."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from failure_matrix.catalogue.model import ABSENT, Action
from failure_matrix.evidence.records import CellRecord, GuardRecord, Outcome, Verdict, worst
from failure_matrix.evidence.waiving import name_of
from failure_matrix.site.book import Book, to_state, to_step
from failure_matrix.site.standing import of_item
from failure_matrix.site.tables import Table, TableRow
from failure_matrix.site.views.moves import cells
from failure_matrix.site.words import (
    Badge,
    Cell,
    Code,
    Part,
    Phrase,
    Quiet,
    Strong,
    count,
    enumerated,
    join,
    prose,
    say,
    visible,
)

MANY = 400  # cells, past which what is not as declared is listed first

_WORDS: Mapping[Outcome, str] = {  # an outcome that is told with those it happened to
    Outcome.REFUSED: "refused",
    Outcome.TOOK_ANOTHER: "took another row",
    Outcome.NO_SUCH_CALLER: "no such caller here",
    Outcome.CANNOT_CALL: "cannot call",
    Outcome.NOT_TRIED: "not tried",
}


@dataclass(frozen=True, kw_only=True)
class ActionTrials:
    """One action in every state of its subject."""

    id: str
    title: str
    summary: Phrase
    table: Table
    guards: Table | None
    assignments: Table | None


@dataclass(frozen=True, kw_only=True)
class TrialsView:
    """The page: the count in one sentence, exceptions where there are many cells, callers, actions."""

    summary: Phrase
    exceptions: Table | None
    callers: Table | None
    actions: tuple[ActionTrials, ...]


def trials(book: Book) -> TrialsView | None:
    """The sweep, None where the evidence holds none of it."""
    records = book.evidence.cells
    if not records:
        return None
    found = _by_action(book)
    tried = [cell for cell in records if cell.verdict is not None]
    good = sum(cell.verdict is Verdict.VERIFIED for cell in tried)
    return TrialsView(
        summary=say(
            "Every action was offered to every caller in every state that may be, and what it did was rolled back. "
            f"{count(len(tried), 'cell')} tried, {good:,} as declared{_untried(records)}. "
            "Refused is only what was tried and refused."
        ),
        exceptions=_exceptions(book, records),
        callers=_callers(book),
        actions=tuple(_action(book, id, each) for id, each in found.items()),
    )


def _untried(records: Iterable[CellRecord]) -> str:
    """How many cells nobody could try, by the word for why."""
    found = Counter(_WORDS.get(cell.observed, str(cell.observed)) for cell in records if cell.verdict is None)
    why = ", ".join(f"{number:,} × {word}" for word, number in found.most_common())
    return f"; nobody could try {sum(found.values()):,} more ({why})" if found else ""


def _by_action(book: Book) -> dict[str, list[CellRecord]]:
    found: dict[str, list[CellRecord]] = {}
    for cell in book.evidence.cells:
        found.setdefault(cell.action, []).append(cell)
    return found


def _anchor(book: Book, state: str, action: str) -> str:
    """The row's id; none for what the catalogue does not know, whose name may be anything."""
    known = action in book.catalogue.actions and (state in book.catalogue.states or state == ABSENT)
    return f"{state}--{action}" if known else ""


def _action(book: Book, id: str, records: Sequence[CellRecord]) -> ActionTrials:
    action = book.catalogue.actions.get(id)
    title = prose(action.title if action else id)
    states = dict.fromkeys(cell.state for cell in records)
    rows = tuple(_row(book, id, state, [cell for cell in records if cell.state == state]) for state in states)
    table = Table(caption=f"{title} in every state", columns=("State", "What happens", "Seen at"), rows=rows)
    own = [guard for guard in book.evidence.guards if guard.action == id]
    return ActionTrials(
        id=id if action else "",
        title=title,
        summary=_about(action),
        table=table,
        guards=guards_table(book, [guard for guard in own if guard.part != "assignment"], title),
        assignments=guards_table(book, [guard for guard in own if guard.part == "assignment"], title, "Assignment"),
    )


def _about(action: Action | None) -> Phrase:
    if action is None:
        return say()
    who = "everyone" if action.permits is None else enumerated(map(prose, action.permits), "and") or "nobody"
    hazards = [f" Permitted but unsafe: {prose(hazard.because)}." for hazard in action.hazards]
    return say(f"Permits {who}.", *(text.replace("..", ".") for text in dict.fromkeys(hazards)))


def _row(book: Book, action: str, state: str, records: Sequence[CellRecord]) -> TableRow:
    """One state: who gets where, then what is unsafe or held back, then the rest in one quiet line each."""
    telling = [cell for cell in records if cell.observed not in _WORDS or cell.verdict is Verdict.BROKEN]
    quiet = [cell for cell in records if cell not in telling]
    lines = [*_telling(book, telling), *_quiet(book, quiet, whole=len(quiet) == len(records))]
    verdict = worst((cell.verdict for cell in records if cell.verdict is not None), default=Verdict.VERIFIED)
    shown = dict.fromkeys(witness for cell in telling or quiet for witness in cell.witnesses[:1])
    return TableRow(
        cells=(
            (say(to_state(book, state) if state != ABSENT else "no row"),),
            tuple(lines),
            tuple(say(to_step(book, each)) for each in list(shown)[:1]),
        ),
        anchor=_anchor(book, state, action),
        verdict=verdict if verdict is not Verdict.VERIFIED else None,
    )


def _telling(book: Book, records: Sequence[CellRecord]) -> Iterator[Phrase]:
    """Who moved it, grouped where it is the same for several callers."""
    groups: dict[tuple[object, ...], list[CellRecord]] = {}
    for cell in records:
        groups.setdefault((cell.observed, cell.to, cell.verdict, cell.because if _is_wrong(cell) else None), []).append(
            cell
        )
    for group in groups.values():
        cell, who = group[0], _who(group, len(records))
        where = join((to_state(book, to) for to in cell.to), " or ") if cell.to else say(str(cell.observed))
        yield say(*([Quiet(f"{who} ")] if who else []), *_outcome(cell), where, *_wrong(book, cell))


def _outcome(cell: CellRecord) -> list[Part]:
    match cell.observed:
        case Outcome.UNSAFE | Outcome.HELD_BACK:
            return [Strong(f"{cell.observed}"), " → "]
        case _ if cell.to:
            return ["→ "]
        case _:
            return []


def _is_wrong(cell: CellRecord) -> bool:
    return cell.verdict not in (Verdict.VERIFIED, None)


def _wrong(book: Book, cell: CellRecord) -> list[Part]:
    if not _is_wrong(cell) or cell.verdict is None:
        return []
    return [" ", Badge(cell.verdict, of_item(book, name_of(cell), cell.verdict, cell.because).note)]


def _quiet(book: Book, records: Sequence[CellRecord], *, whole: bool) -> Iterator[Phrase]:
    """What is the same and as it should be, in one line an outcome."""
    groups: dict[tuple[Outcome, str | None, Verdict | None, tuple[str, ...]], list[CellRecord]] = {}
    for cell in records:
        reason = cell.because if cell.observed is Outcome.NOT_TRIED or _is_wrong(cell) else None
        answers = cell.answers if cell.observed is Outcome.REFUSED else ()
        groups.setdefault((cell.observed, reason, cell.verdict, answers), []).append(cell)
    for (outcome, reason, _, answers), group in groups.items():
        who = "" if whole and len(groups) == 1 else f"{_who(group, 0)}: "
        words = f"{who}{_WORDS[outcome]}" + (f": {prose(reason)}" if reason and not _is_wrong(group[0]) else "")
        words += f"; the record answers: {' / '.join(map(prose, answers))}" if answers else ""
        yield say(Quiet(words), *_wrong(book, group[0]))


def _who(group: Sequence[CellRecord], of: int) -> str:
    return enumerated([prose(cell.caller) for cell in group if cell.caller]) if of != 1 or group[0].caller else ""


def _exceptions(book: Book, records: Sequence[CellRecord]) -> Table | None:
    """What a reviewer looks at first: every cell that is not verified, unsafe, or held back by duty alone."""
    odd = [cell for cell in records if _is_wrong(cell)]
    if len(records) > MANY:
        odd += [
            cell for cell in records if not _is_wrong(cell) and cell.observed in (Outcome.UNSAFE, Outcome.HELD_BACK)
        ]
    groups: dict[tuple[str, str, Outcome, Verdict | None, str | None], list[CellRecord]] = {}
    for cell in sorted(odd, key=lambda cell: -(cell.verdict.badness if cell.verdict else 0)):
        groups.setdefault(
            (cell.action, cell.state, cell.observed, cell.verdict, cell.because if _is_wrong(cell) else None), []
        ).append(cell)
    rows = tuple(_exception(book, group) for group in groups.values())
    columns = ("State", "Action", "Caller", "What was seen")
    return Table(caption="Cells to look at", columns=columns, rows=rows) if rows else None


def _exception(book: Book, group: Sequence[CellRecord]) -> TableRow:
    cell = group[0]
    action = book.catalogue.actions.get(cell.action)
    state = to_state(book, cell.state) if cell.state != ABSENT else "no row"
    where = say(" → ", join((to_state(book, to) for to in cell.to), " or ")) if cell.to else say()
    seen = say(str(cell.observed), where, *_wrong(book, cell))
    return TableRow(
        cells=cells(say(state), prose(action.title if action else cell.action), _who(group, 0) or "anyone", seen),
        verdict=cell.verdict if _is_wrong(cell) else None,
    )


def _callers(book: Book) -> Table | None:
    """Who the callers are, in the catalogue's own words."""
    rows = []
    for id, caller in book.catalogue.callers.items():
        constants = ", ".join(
            f"{name} {'(hidden)' if name in book.catalogue.hidden else value}" for name, value in caller.gives.items()
        )
        bound = " ".join(caller.sql.text.split()) if caller.sql is not None else constants
        may = [prose(a.title) for a in book.catalogue.actions.values() if a.permits and id in a.permits]
        rows.append(
            TableRow(
                cells=cells(
                    id,
                    prose(caller.title or ""),
                    ", ".join(may) or "what everyone may",
                    say(Code(visible(bound))) if bound else say(Quiet("nothing")),
                ),
                anchor=f"caller.{id}",
            )
        )
    columns = ("Caller", "Who it is", "Permitted to", "Brings")
    return Table(caption="Callers", columns=columns, rows=tuple(rows)) if rows else None


def guards_table(book: Book, records: Iterable[GuardRecord], title: str, noun: str = "Guard") -> Table | None:
    """Each guard with what noticed its absence."""
    rows = tuple(_guard(book, record) for record in records)
    columns = (noun, "Removed alone", "By")
    return Table(caption=f"{noun}s of {title}", columns=columns, rows=rows) if rows else None


def _guard(book: Book, record: GuardRecord) -> TableRow:
    where = f" in {prose(record.function)}" if record.function else ""
    why = record.noticed_by[0] if record.noticed_by else record.because or ""
    wrong = record.verdict not in (Verdict.VERIFIED, None)
    badge: list[Part] = (
        [" ", Badge(record.verdict, of_item(book, name_of(record), record.verdict, record.because).note)]
        if wrong and record.verdict
        else []
    )
    cell: Cell = (say(Code(visible(record.guard)), where),)
    return TableRow(
        cells=(cell, (say(record.outcome, *badge),), (say(prose(why)),)), verdict=record.verdict if wrong else None
    )
