"""The matrix: a row a state, in the author's order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from failure_matrix.catalogue.model import State
from failure_matrix.evidence.records import Verdict, worst
from failure_matrix.site.book import COVERAGE, SCENARIOS, Book, state_page, to_owner, to_state
from failure_matrix.site.probes import Probe, explain_line, subject_probe
from failure_matrix.site.standing import Standing, of_state
from failure_matrix.site.views.facts import Fact, facts
from failure_matrix.site.views.permits import WIDTH, May, may
from failure_matrix.site.words import (
    Cell,
    Link,
    Part,
    Phrase,
    Target,
    clip,
    count,
    enumerated,
    join,
    line,
    listed,
    prose,
    say,
    shortened,
)

NARROW = 40  # characters of a cell in Markdown
MOST_NAMED = 3  # rows that the headline names


@dataclass(frozen=True, kw_only=True)
class MatrixRow:
    id: str
    title: str
    page: Target
    standing: Standing
    facts: tuple[Fact, ...]
    see: str
    note: str  # of rows that not everybody sees, or that nobody may
    may: May
    do_not: Cell
    not_proved: Cell
    ends: Cell
    owner: Cell
    words: str  # what the filter searches

    @property
    def see_short(self) -> str:
        return clip(self.see, NARROW)

    @property
    def may_short(self) -> str:
        return self.may.short(NARROW)

    @property
    def do_not_short(self) -> Phrase:
        return shortened(self.do_not[0], NARROW) if self.do_not else say()


@dataclass(frozen=True, kw_only=True)
class Group:
    """The rows of one subject, and the commands that find the one that applies."""

    subject: str
    about: str
    rows: tuple[MatrixRow, ...]
    probe: Probe
    explain: str  # "" where there is no such command


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The verdict over everything, in one sentence that links what is not proven."""

    verdict: Verdict
    lead: str
    rest: Phrase
    counts: tuple[tuple[Verdict, int], ...]  # of the rows below, worst first


@dataclass(frozen=True, kw_only=True)
class MatrixView:
    title: str
    about: str
    size: str
    headline: Headline
    groups: tuple[Group, ...]
    strays: tuple[tuple[str, Phrase], ...]  # what to do when no row or several match


def matrix(book: Book) -> MatrixView:
    groups = tuple(_group(book, id, states) for id, states in book.states_of.items() if states)
    rows = tuple(row for group in groups for row in group.rows)
    size = f"{count(len(rows), 'state')} of {count(len(groups), 'subject')}"
    settings = book.catalogue.settings
    return MatrixView(
        title=prose(settings.title),
        about=prose(settings.about or ""),
        size=size,
        headline=_headline(book, rows),
        groups=groups,
        strays=tuple(_strays(book, any(group.probe.looks for group in groups))),
    )


def _group(book: Book, id: str, states: Mapping[str, State]) -> Group:
    subject = book.catalogue.subjects[id]
    key = f"told apart by {enumerated(subject.key.values())}"
    return Group(
        subject=id,
        about=f"{prose(subject.title)}; {key}" if subject.title else key,
        rows=tuple(_row(book, state) for state in states),
        probe=subject_probe(book, id),
        explain=explain_line(id, subject) if book.explain else "",
    )


def _row(book: Book, id: str) -> MatrixRow:
    state = book.catalogue.states[id]
    standing = of_state(book, id)
    seen = facts(book, id)
    see = clip(prose(state.observe[0].see), WIDTH) if state.observe else "; ".join(fact.text for fact in seen)
    allowed = may(book, id, standing)
    title = prose(state.title)
    found = (title, id, *map(prose, state.also_called), see, *(fact.text for fact in seen), state.subject)
    return MatrixRow(
        id=id,
        title=clip(title, 120),
        page=Target(state_page(id)),
        standing=standing,
        facts=seen,
        see=see or "see its predicate",
        note=_note(state),
        may=allowed,
        do_not=_first_of(state.do_not),
        not_proved=_first_of(tuple(each.does_not_prove for each in state.observe if each.does_not_prove)),
        ends=ends(book, id, most=1),
        owner=line(to_owner(book, state.owner) or "nobody is named"),
        words=clip(
            " ".join((*found, *(permit.title for permit in allowed.permits), str(standing.verdict))).lower(), 2000
        ),
    )


def _note(state: State) -> str:
    if state.illegal:
        return "must stay empty"
    return "only its own session sees it" if state.uncommitted else ""


def _first_of(texts: tuple[str, ...]) -> Cell:
    """The first text, and how many more the state's page has."""
    if not texts:
        return ()
    if len(texts) == 1:
        return line(clip(prose(texts[0]), WIDTH))
    more = f", and {len(texts) - 1} more"
    return line(clip(prose(texts[0]).rstrip("."), WIDTH - len(more)) + more)


def ends(book: Book, id: str, *, most: int) -> Cell:
    """What takes a row out of this state, and where to."""
    state = book.catalogue.states[id]
    found = [_end(book, id, by, text) for by, text in state.reverse.items()]
    if not found:
        return line("never: it is final" if state.final else "nothing is declared")
    more = (say(f"and {count(len(found) - most, 'more way', 'more ways')}"),) if len(found) > most else ()
    return (*found[:most], *more)


def _end(book: Book, id: str, by: str, text: str) -> Phrase:
    targets = list(dict.fromkeys(move.to for move in book.moves_from.get(id, ()) if move.by == by and move.to != id))
    to = join((to_state(book, target) for target in targets[:2]), " or ")
    return say(clip(prose(text), max(WIDTH - len(to.text) - 3, 24)), *((" → ", to) if to else ()))


def _headline(book: Book, rows: tuple[MatrixRow, ...]) -> Headline:
    by_verdict: dict[Verdict, list[MatrixRow]] = {}
    for row in rows:
        by_verdict.setdefault(row.standing.verdict, []).append(row)
    ordered = sorted(by_verdict, key=lambda verdict: -verdict.badness)
    counts = tuple((verdict, len(by_verdict[verdict])) for verdict in ordered)
    others = _other_doubts(book)
    overall = worst((book.evidence.verdict, *by_verdict, *(verdict for verdict, _, _ in others)))
    doubts = [_named(verdict, by_verdict[verdict]) for verdict in ordered if verdict is not Verdict.VERIFIED]
    if overall is Verdict.VERIFIED:
        return Headline(verdict=overall, lead="Every row here is proven.", rest=_proof(book), counts=counts)
    rest = say(join(doubts, "; "), ". " if doubts else "", _beside(others))
    lead = "Not everything here is proven." if rows else "Nothing here is proven."
    return Headline(verdict=overall, lead=lead, rest=rest, counts=counts)


def _proof(book: Book) -> Phrase:
    scenarios = Link(count(len(book.catalogue.scenarios), "scenario"), Target(SCENARIOS))
    mechanisms = len(book.catalogue.mechanisms)
    named: list[Part] = (
        [Link(count(mechanisms, "mechanism"), Target(SCENARIOS, "mechanisms")), " by "] if mechanisms else []
    )
    return say("Shown: ", *named, scenarios, f" on PostgreSQL {book.evidence.postgresql.major}.")


def _named(verdict: Verdict, rows: list[MatrixRow]) -> Phrase:
    names = join((Link(clip(row.title, WIDTH), Target(row.page.page)) for row in rows[:MOST_NAMED]), ", ")
    more = f" and {len(rows) - MOST_NAMED} more" if len(rows) > MOST_NAMED else ""
    return say(f"{len(rows)} {verdict}: ", names, more)


def _other_doubts(book: Book) -> list[tuple[Verdict, str, str]]:
    """What is not verified beside the rows: verdict, noun, its place on the coverage page."""
    evidence = book.evidence
    guards = (each.verdict for each in evidence.guards if each.part != "assignment")
    kinds: tuple[tuple[str, str, Iterable[Verdict | None]], ...] = (
        ("move", "moves", (move.verdict for move in book.moves)),
        ("scenario", "scenarios", (book.scenario_verdict(id) for id in book.catalogue.scenarios)),
        ("mechanism", "mechanisms", (book.mechanism(id)[0] for id in book.catalogue.mechanisms)),
        ("cell", "cells", (each.verdict for each in evidence.cells)),
        ("guard", "guards", guards),
        ("population probe", "population", (each.verdict for each in evidence.population)),
        ("observation", "observations", (each.verdict for each in evidence.observations)),
        ("invariant", "invariants", (each.verdict for each in evidence.invariants)),
    )
    return [
        (verdict, noun, anchor)
        for noun, anchor, verdicts in kinds
        for verdict in verdicts
        if verdict not in (None, Verdict.VERIFIED)
    ]


def _beside(others: list[tuple[Verdict, str, str]]) -> Phrase:
    if not others:
        return say()
    links = [
        Link(f"{count(number, noun)} {verdict}", Target(COVERAGE, anchor))
        for (verdict, noun, anchor), number in Counter(others).items()
    ]
    return say("Beside the rows: ", listed(links), ".")


def _strays(book: Book, looks: bool) -> Iterator[tuple[str, Phrase]]:
    """What to do when the query names no single state; ``looks``: it may say that one has to look first."""
    owners = list(dict.fromkeys(state.owner for state in book.catalogue.states.values() if state.owner))
    call = join((part for id in owners[:1] if (part := to_owner(book, id))), ", ")
    who = (
        say("send what the query gave to ", call)
        if call
        else say("send what the query gave to whoever keeps this catalogue")
    )
    unseen = [to_state(book, id) for id, state in book.catalogue.states.items() if state.uncommitted]
    held = (
        say(" An open transaction may hold it (see ", join(unseen, ", "), ").")
        if unseen
        else say(" An open transaction may hold it.")
    )
    yield (
        "The query gives no line",
        say("No row with this key is visible to you. That is not proof that it never existed.", held),
    )
    if looks:
        told = "Nothing is known yet. Look at what it names, put in what you saw, say yes to looked, and ask again."
        yield "It says unknown", say(told)
    wrong = "the data or this page is wrong. Do nothing; "
    yield "The state is empty", say(f"The row is in no state declared here (unclassified): {wrong}", who, ".")
    yield "Two states at once", say(f"The row is ambiguous: {wrong}", who, ".")
