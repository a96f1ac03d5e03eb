"""A state's page: what you may, what not, whom to call, how to be sure, and where it comes from."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from failure_matrix.catalogue.model import Observation, State
from failure_matrix.site.book import MATRIX, Book, to_owner, to_state
from failure_matrix.site.diagrams import Graph, neighbourhood
from failure_matrix.site.probes import Probe, observation_probe, state_probe
from failure_matrix.site.standing import Standing, of_state
from failure_matrix.site.tables import Table, TableRow
from failure_matrix.site.views.actions import ActionView, actions, pitfalls
from failure_matrix.site.views.facts import look_alikes
from failure_matrix.site.views.matrix import ends
from failure_matrix.site.views.moves import cells, moves_table, witnesses
from failure_matrix.site.views.permits import May, may
from failure_matrix.site.words import Cell, Code, Link, Phrase, Target, enumerated, prose, say, visible


@dataclass(frozen=True, kw_only=True)
class StateHead:
    id: str
    title: str
    standing: Standing
    about: str
    notes: tuple[str, ...]
    also_called: str
    crumb: Link


@dataclass(frozen=True, kw_only=True)
class StateActs:
    """The three cards: permission with its reason, prohibition without, and whom to call."""

    may: May
    do_not: tuple[Phrase, ...]
    owner: Phrase
    reach: str
    ends: Cell
    standing: Standing


@dataclass(frozen=True, kw_only=True)
class StateSigns:
    """How to be sure that it is this one."""

    probe: Probe | None  # None where a query from outside can't see it
    unseen: str
    observations: Table | None
    queries: tuple[Probe, ...]
    look_alikes: Table | None
    refusals: Table | None
    asks: tuple[Probe, ...]  # of the record, after a refusal


@dataclass(frozen=True, kw_only=True)
class StateMoves:
    table: Table
    graph: Graph | None


@dataclass(frozen=True, kw_only=True)
class StateSource:
    """Where all this comes from: named facts, and the predicate itself."""

    facts: tuple[tuple[str, Phrase], ...]
    predicate: str
    cost: str  # SQL, "" where none is declared


@dataclass(frozen=True, kw_only=True)
class StateView:
    head: StateHead
    acts: StateActs
    signs: StateSigns
    moves: StateMoves | None
    actions: tuple[ActionView, ...]
    source: StateSource


def state(book: Book, id: str) -> StateView:
    noun = book.catalogue.states[id]
    standing = of_state(book, id)
    return StateView(
        head=_head(id, noun, standing),
        acts=_acts(book, id, noun, standing),
        signs=_signs(book, id, noun),
        moves=_moves(book, id),
        actions=actions(book, id, standing),
        source=_source(book, id, noun),
    )


def _head(id: str, noun: State, standing: Standing) -> StateHead:
    notes = []
    if noun.illegal:
        notes.append("Illegal: no row may ever be like this. It is verified as long as it stays empty.")
    if noun.final:
        notes.append("Final: nothing has to happen after it.")
    if noun.uncommitted:
        notes.append("Uncommitted: only the session that wrote the row sees it.")
    return StateHead(
        id=id,
        title=prose(noun.title),
        standing=standing,
        about=prose(noun.about or ""),
        notes=tuple(notes),
        also_called=", ".join(map(prose, noun.also_called)),
        crumb=Link(noun.subject, Target(MATRIX, f"subject.{noun.subject}")),
    )


def _acts(book: Book, id: str, noun: State, standing: Standing) -> StateActs:
    owner = to_owner(book, noun.owner)
    named = book.catalogue.owners.get(noun.owner) if noun.owner else None
    return StateActs(
        may=may(book, id, standing),
        do_not=(*(say(prose(text)) for text in noun.do_not), *pitfalls(book, id)),
        owner=say(owner) if owner else say("Nobody is named. Ask whoever keeps this catalogue."),
        reach=prose(named.reach) if named and named.reach else "",
        ends=ends(book, id, most=20),
        standing=standing,
    )


def _signs(book: Book, id: str, noun: State) -> StateSigns:
    queries = [observation_probe(book, each.sql, noun.subject, _look(book, each)) for each in noun.observe if each.sql]
    unseen = (
        "Nobody outside sees this row: it is not committed. Ask what is open, or look from the session that wrote it."
    )
    return StateSigns(
        probe=None if noun.uncommitted else state_probe(book, id),
        unseen=unseen if noun.uncommitted else "",
        observations=_observations(noun),
        queries=tuple(queries),
        look_alikes=_look_alikes(book, id, noun),
        refusals=_refusals(book, id),
        asks=tuple(_asks(book, id)),
    )


def _look(book: Book, observation: Observation) -> str:
    also = [prose(book.catalogue.states[id].title) for id in observation.also_in if id in book.catalogue.states]
    return f"Look: {prose(observation.see)}{f' (a line here also when: {enumerated(also)})' if also else ''}"


def _observations(noun: State) -> Table | None:
    rows = tuple(
        TableRow(cells=cells(prose(each.see), prose(each.proves or ""), prose(each.does_not_prove or "")))
        for each in noun.observe
    )
    return (
        Table(caption="What to look at", columns=("You see", "It proves", "It does not prove"), rows=rows)
        if rows
        else None
    )


def _look_alikes(book: Book, id: str, noun: State) -> Table | None:
    rows = []
    for other in look_alikes(book, id):
        told = noun.mistaken_for.get(other)
        back = book.catalogue.states[other].mistaken_for.get(id)
        text = prose(told) if told else f"here {prose(back)}" if back else ""
        rows.append(TableRow(cells=cells(to_state(book, other), text)))
    return Table(caption="States it is mistaken for", columns=("State", "There"), rows=tuple(rows)) if rows else None


def _refusals(book: Book, id: str) -> Table | None:
    """What a refused action means to somebody who then finds the row here: the reconciliation."""
    rows = tuple(
        TableRow(cells=cells(prose(book.catalogue.actions[action].title), prose(text)))
        for action, text in book.refusals_in.get(id, ())
    )
    columns = ("It was refused", "and you find this state: it means")
    return Table(caption="What a refusal means here", columns=columns, rows=rows) if rows else None


def _asks(book: Book, id: str) -> Iterator[Probe]:
    """What to ask the record when one of the actions was refused, or did not answer."""
    for name, _ in book.refusals_in.get(id, ()):
        action = book.catalogue.actions[name]
        if action.refusal.ask is not None:
            label = f"{prose(action.title)} was refused, or did not answer: ask the record"
            yield observation_probe(book, action.refusal.ask, action.subject, label)


def _moves(book: Book, id: str) -> StateMoves | None:
    found = tuple(dict.fromkeys((*book.moves_to.get(id, ()), *book.moves_from.get(id, ()))))
    if not found:
        return None
    return StateMoves(table=moves_table(book, found, "One move away"), graph=neighbourhood(book, id))


def _source(book: Book, id: str, noun: State) -> StateSource:
    record = book.state(id)
    facts: list[tuple[str, Phrase]] = [("Witnesses", witnesses(book, record.witnesses, 6))]
    if record.fingerprint:
        facts.append(
            ("Proven for", say("state ", Code(record.fingerprint), f", PostgreSQL {book.evidence.postgresql.major}"))
        )
    place = book.catalogue.place("states", id)
    facts.append(("Declared at", say(f"{place.path}:{place.line}")))
    if noun.retention:
        facts.append(("Retention", say(prose(noun.retention.keep))))
    if noun.complete_when:
        facts.append(("Complete when", say(prose(noun.complete_when))))
    cost = noun.retention.cost if noun.retention else None
    costing = observation_probe(book, cost, noun.subject, "What keeping it costs").sql if cost else ""
    return StateSource(
        facts=tuple(facts),
        predicate=visible(noun.when.text.strip()),
        cost=costing,
    )
