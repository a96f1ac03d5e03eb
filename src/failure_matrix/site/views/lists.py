"""The pages that list: scenarios, coverage and limits, owners, and what the verdicts mean."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from failure_matrix.evidence.records import Verdict
from failure_matrix.site.book import Book, to_owner, to_scenario, to_state
from failure_matrix.site.standing import CONSEQUENCES, MEANINGS, Standing, of_item, of_move, of_state
from failure_matrix.site.tables import Section, Table, TableRow
from failure_matrix.site.views.moves import cells, deed
from failure_matrix.site.views.probed import cell_doubts, guard_doubts, observation_doubts, population, untried
from failure_matrix.site.views.scenario import scenario_standing
from failure_matrix.site.words import Badge, Part, Phrase, Quiet, count, join, prose, say


def scenario_lists(book: Book) -> tuple[Section, ...]:
    """The mechanisms, where there are some, then every scenario in the author's order."""
    known = mechanisms(book)
    return (known, _scenarios(book, "All scenarios")) if known else (_scenarios(book, "Scenarios"),)


def _scenarios(book: Book, title: str) -> Section:
    rows = tuple(
        TableRow(
            cells=cells(
                to_scenario(book, id, prose(noun.title)),
                scenario_standing(book, id).badge,
                say(*((f"{count(len(noun.steps), 'step')}",))),
                _orders(book, id),
            ),
            verdict=book.scenario_verdict(id),
        )
        for id, noun in book.catalogue.scenarios.items()
    )
    proven = sum(row.verdict is Verdict.VERIFIED for row in rows)
    table = Table(caption="Scenarios", columns=("Scenario", "Verdict", "Steps", "Orders"), rows=rows)
    return Section(
        title=title,
        anchor="scenarios",
        text=say(
            f"{count(len(rows), 'scenario')}, {proven:,} of them verified. Each ran on a live PostgreSQL, step by step."
        ),
        table=table if rows else None,
    )


def mechanisms(book: Book) -> Section | None:
    """What the whole relies on, by number and name, with the scenarios that show it."""
    rows = []
    for number, (id, noun) in enumerate(book.catalogue.mechanisms.items(), 1):
        shown = join((to_scenario(book, each) for each in noun.scenarios), ", ")
        standing = of_item(book, f"mechanism {id}", *book.mechanism(id))
        rows.append(
            TableRow(
                cells=cells(f"{number}. {prose(noun.title)}", standing.badge, shown),
                anchor=f"mechanism.{id}",
                verdict=standing.verdict,
            )
        )
    if not rows:
        return None
    table = Table(caption="Mechanisms", columns=("Mechanism", "Verdict", "Shown by"), rows=tuple(rows))
    proven = sum(row.verdict is Verdict.VERIFIED for row in rows)
    text = say(f"{count(len(rows), 'mechanism')}, {proven:,} verified: each is as good as the worst of its scenarios.")
    return Section(title="Mechanisms", anchor="mechanisms", text=text, table=table)


def _orders(book: Book, id: str) -> str:
    record = book.scenario(id)
    if record is None:
        return "none"
    return f"{record.orders.ran:,} of {record.orders.exist:,}" if record.orders.exist > 1 else "as listed"


def coverage(book: Book) -> tuple[Section, ...]:
    """What is shown and what is not; only sections that have something to say."""
    found = (
        _counts(book),
        _doubts("States not proven", "states", _state_doubts(book)),
        _doubts("Moves not proven", "moves", _move_doubts(book)),
        _doubts("Scenarios not proven", "scenarios", _scenario_doubts(book)),
        _doubts("Mechanisms not proven", "mechanisms", _mechanism_doubts(book)),
        _doubts("Cells not proven", "cells", cell_doubts(book)),
        _doubts("Guards not proven", "guards", guard_doubts(book)),
        _doubts("Observations not proven", "observations", observation_doubts(book)),
        population(book),
        untried(book),
        _invariants(book),
        _waivers(book),
        _exercises(book),
        _limits(book),
    )
    return tuple(section for section in found if section is not None)


def _counts(book: Book) -> Section:
    kinds: tuple[tuple[str, Sequence[Verdict | None]], ...] = (
        ("States", [book.state(id).verdict for id in book.catalogue.states]),
        ("Moves", [move.verdict for move in book.moves]),
        ("Scenarios", [book.scenario_verdict(id) for id in book.catalogue.scenarios]),
        ("Mechanisms", [book.mechanism(id)[0] for id in book.catalogue.mechanisms]),
        ("Cells", [cell.verdict for cell in book.evidence.cells]),
        ("Guards", [each.verdict for each in book.evidence.guards if each.verdict and each.part != "assignment"]),
        ("Population probes", [each.verdict for each in book.evidence.population]),
        ("Observations", [each.verdict for each in book.evidence.observations]),
        ("Invariants", [verdict for _, _, verdict, _ in _invariant_rows(book)]),
    )
    rows = tuple(_count_row(name, verdicts) for name, verdicts in kinds if verdicts)
    return Section(
        title="What is proven",
        anchor="proven",
        text=say("Counted over everything that the catalogue declares; what nobody could try is not among it."),
        table=Table(caption="What is proven", columns=("", "Verified", "Of", "The rest", "Not tried"), rows=rows),
    )


def _count_row(name: str, every: Sequence[Verdict | None]) -> TableRow:
    verdicts = [verdict for verdict in every if verdict is not None]
    rest = [
        verdict for verdict in sorted(set(verdicts), key=lambda each: -each.badness) if verdict is not Verdict.VERIFIED
    ]
    parts: list[Part | Phrase] = [Badge(verdict, f"× {verdicts.count(verdict)}") for verdict in rest]
    return TableRow(
        cells=cells(
            name,
            f"{verdicts.count(Verdict.VERIFIED):,}",
            f"{len(verdicts):,}",
            join(parts, " ") if parts else say("none"),
            f"{len(every) - len(verdicts):,}" if len(every) > len(verdicts) else "",
        )
    )


def _doubts(title: str, anchor: str, rows: Iterable[TableRow]) -> Section | None:
    found = tuple(sorted(rows, key=lambda row: -row.verdict.badness if row.verdict else 0))
    if not found:
        return None
    table = Table(caption=title, columns=("What", "Verdict", "Why"), rows=found)
    return Section(title=title, anchor=anchor, text=say(), table=table)


def _state_doubts(book: Book) -> Iterable[TableRow]:
    for id in book.catalogue.states:
        standing = of_state(book, id)
        if not standing.verified:
            yield TableRow(
                cells=cells(to_state(book, id), say(Badge(standing.verdict, "")), standing.why),
                verdict=standing.verdict,
            )


def _move_doubts(book: Book) -> Iterable[TableRow]:
    for move in book.moves:
        if move.verdict is not Verdict.VERIFIED:
            what = say(
                to_state(book, move.from_), " → ", to_state(book, move.to), " by ", deed(book, move.from_, move.by)
            )
            yield _doubt(what, of_move(book, move))


def _scenario_doubts(book: Book) -> Iterable[TableRow]:
    for id, noun in book.catalogue.scenarios.items():
        standing = scenario_standing(book, id)
        if not standing.verified:
            yield _doubt(say(to_scenario(book, id, prose(noun.title))), standing)


def _mechanism_doubts(book: Book) -> Iterable[TableRow]:
    for id, noun in book.catalogue.mechanisms.items():
        standing = of_item(book, f"mechanism {id}", *book.mechanism(id))
        if not standing.verified:
            yield _doubt(say(prose(noun.title)), standing)


def _doubt(what: Phrase, standing: Standing) -> TableRow:
    return TableRow(cells=cells(what, say(Badge(standing.verdict, "")), standing.why), verdict=standing.verdict)


def _invariant_rows(book: Book) -> list[tuple[str, str, Verdict, str]]:
    """Title, after how many steps it was asked, verdict, why."""
    records = {record.id: record for record in book.evidence.invariants}
    rows = []
    for id, noun in book.catalogue.invariants.items():
        record = records.get(id)
        verdict = record.verdict if record else Verdict.UNREACHED
        standing = of_item(book, f"invariant {id}", verdict, record.because if record else None)
        rows.append((prose(noun.title), f"{record.checked if record else 0:,}", verdict, standing.note))
    return rows


def _invariants(book: Book) -> Section | None:
    rows = tuple(
        TableRow(cells=cells(title, say(Badge(verdict, note)), checked), verdict=verdict)
        for title, checked, verdict, note in _invariant_rows(book)
    )
    if not rows:
        return None
    table = Table(
        caption="Invariants", columns=("It holds that", "Verdict", "Steps after which it was asked"), rows=rows
    )
    return Section(
        title="Invariants", anchor="invariants", text=say("Asked after every step of every order."), table=table
    )


def _waivers(book: Book) -> Section | None:
    rows = tuple(
        TableRow(
            cells=cells(
                prose(waiver.of), say(to_owner(book, waiver.owner) or waiver.owner), waiver.until, prose(waiver.because)
            )
        )
        for waiver in book.catalogue.waivers.values()
    )
    if not rows:
        return None
    table = Table(caption="Waivers", columns=("Of", "Signed by", "Until", "Because"), rows=rows)
    return Section(
        title="Waivers", anchor="waivers", text=say("What somebody accepted without proof, until a date."), table=table
    )


def _exercises(book: Book) -> Section | None:
    rows = []
    for id, noun in book.catalogue.exercises.items():
        answer = to_scenario(book, noun.scenario) if noun.scenario else "planned"
        rows.append(
            TableRow(
                cells=cells(prose(noun.title), prose(noun.question), prose(noun.target), answer),
                anchor=f"exercise.{id}",
            )
        )
    if not rows:
        return None
    table = Table(caption="Exercises", columns=("Exercise", "Question", "Target", "Answered by"), rows=tuple(rows))
    return Section(
        title="Exercises", anchor="exercises", text=say("Questions that need a target of their own."), table=table
    )


def _limits(book: Book) -> Section | None:
    rows = tuple(
        TableRow(cells=cells(to_scenario(book, id, prose(noun.title)), "; ".join(map(prose, noun.does_not_show))))
        for id, noun in book.catalogue.scenarios.items()
        if noun.does_not_show
    )
    if not rows:
        return None
    table = Table(caption="What the scenarios do not show", columns=("Scenario", "It does not show"), rows=rows)
    return Section(title="What the scenarios do not show", anchor="limits", text=say(), table=table)


def owners(book: Book) -> Section | None:
    """Who answers for what, and how to reach them."""
    rows = []
    for id, owner in book.catalogue.owners.items():
        states = [to_state(book, state) for state, noun in book.catalogue.states.items() if noun.owner == id]
        own = (noun for noun in book.catalogue.actions.values() if noun.owner == id and noun.instead_of is None)
        acts = ", ".join(prose(noun.title) for noun in own)
        reach = prose(owner.reach) if owner.reach else say(Quiet("not said"))
        rows.append(TableRow(cells=cells(prose(owner.title), reach, join(states, ", "), acts), anchor=id))
    if not rows:
        return None
    table = Table(caption="Owners", columns=("Owner", "Reach them", "States", "Actions"), rows=tuple(rows))
    return Section(title="Owners", anchor="", text=say("Who answers for a state, and how to reach them."), table=table)


def verdict_words() -> Section:
    """What each verdict means, from best to worst."""
    rows = tuple(
        TableRow(
            cells=cells(say(Badge(verdict, "")), MEANINGS[verdict], CONSEQUENCES[verdict]), anchor=f"verdict.{verdict}"
        )
        for verdict in Verdict
    )
    return Section(
        title="What the verdicts mean",
        anchor="",
        text=say(
            "From best to worst. A whole takes the worst of its parts. What a row forbids holds whatever its verdict."
        ),
        table=Table(caption="Verdicts", columns=("Verdict", "It means", "What to do"), rows=rows),
    )
