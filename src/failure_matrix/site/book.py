"""The catalogue joined with what one verification saw of it: the one place where a page looks things up."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property

from failure_matrix.catalogue.model import ABSENT, Action, Catalogue, Event, State, Waiver
from failure_matrix.evidence.records import Evidence, ScenarioRecord, StateRecord, Verdict, Witness
from failure_matrix.site.words import Code, Link, Part, Target, prose

LONGEST_NAME = 100  # characters of a file name before its ending

NOT_THERE = "not in this evidence"


@dataclass(frozen=True, kw_only=True)
class Move:
    """One declared move and what was seen of it."""

    from_: str
    by: str
    to: str
    verdict: Verdict
    because: str | None
    witnesses: tuple[Witness, ...]


@dataclass(frozen=True, kw_only=True)
class Book:
    """Catalogue and evidence, by id. What the evidence doesn't know counts as unreached.

    explain: whether pages may name the command ``matrix explain``.
    """

    catalogue: Catalogue
    evidence: Evidence
    explain: bool

    def state(self, id: str) -> StateRecord:
        """The record of a state, made up as unreached where the evidence has none."""
        found = self._states.get(id)
        if found:
            return found
        return StateRecord(
            id=id,
            subject=self.catalogue.states[id].subject,
            verdict=Verdict.UNREACHED,
            because=NOT_THERE,
            fingerprint="",
        )

    def scenario(self, id: str) -> ScenarioRecord | None:
        return self._scenarios.get(id)

    def scenario_verdict(self, id: str) -> Verdict:
        found = self.scenario(id)
        return found.verdict if found else Verdict.UNREACHED

    def mechanism(self, id: str) -> tuple[Verdict, str | None]:
        """The verdict on a mechanism, and why it is not verified."""
        for record in self.evidence.mechanisms:
            if record.id == id:
                return record.verdict, record.because
        return Verdict.UNREACHED, NOT_THERE

    @cached_property
    def shows(self) -> Mapping[str, tuple[tuple[int, str], ...]]:
        """For each scenario the mechanisms that it shows: number, title."""
        found: defaultdict[str, list[tuple[int, str]]] = defaultdict(list)
        for number, mechanism in enumerate(self.catalogue.mechanisms.values(), 1):
            for id in mechanism.scenarios:
                found[id].append((number, prose(mechanism.title)))
        return {id: tuple(each) for id, each in found.items()}

    @cached_property
    def _states(self) -> Mapping[str, StateRecord]:
        return {record.id: record for record in self.evidence.states}

    @cached_property
    def _scenarios(self) -> Mapping[str, ScenarioRecord]:
        return {record.id: record for record in self.evidence.scenarios}

    @cached_property
    def moves(self) -> tuple[Move, ...]:
        """Every declared move in the author's order, then what was seen and isn't declared."""
        seen = {(record.from_, record.by, record.to): record for record in self.evidence.moves}
        bound = {(record.from_, record.by) for record in self.evidence.moves}
        found: dict[tuple[str, str, str], Move] = {}
        for key in self._declared():
            record = seen.get(key)
            if record is None and key[2].startswith("$") and (key[0], key[1]) in bound:
                continue  # the evidence names what the parameter was bound to
            found[key] = Move(
                from_=key[0],
                by=key[1],
                to=key[2],
                verdict=record.verdict if record else Verdict.UNREACHED,
                because=record.because if record else NOT_THERE,
                witnesses=record.witnesses if record else (),
            )
        for key, record in seen.items():
            if key not in found:
                found[key] = Move(
                    from_=key[0],
                    by=key[1],
                    to=key[2],
                    verdict=record.verdict,
                    because=record.because,
                    witnesses=record.witnesses,
                )
        return tuple(found.values())

    def _declared(self) -> Iterator[tuple[str, str, str]]:
        deeds: list[tuple[str, Action | Event]] = [*self.catalogue.actions.items(), *self.catalogue.events.items()]
        for by, deed in deeds:
            also = deed.also if isinstance(deed, Action) else {}
            for moves in (deed.moves, also):
                for from_, targets in moves.items():
                    for to in targets:
                        yield from_, by, to

    @cached_property
    def moves_from(self) -> Mapping[str, tuple[Move, ...]]:
        return self._by("from_")

    @cached_property
    def moves_to(self) -> Mapping[str, tuple[Move, ...]]:
        return self._by("to")

    def _by(self, end: str) -> Mapping[str, tuple[Move, ...]]:
        found: defaultdict[str, list[Move]] = defaultdict(list)
        for move in self.moves:
            found[getattr(move, end)].append(move)
        return {id: tuple(moves) for id, moves in found.items()}

    @cached_property
    def states_of(self) -> Mapping[str, Mapping[str, State]]:
        """The states of each subject, in the author's order."""
        found: dict[str, dict[str, State]] = {id: {} for id in self.catalogue.subjects}
        for id, state in self.catalogue.states.items():
            found.setdefault(state.subject, {})[id] = state
        return found

    @cached_property
    def actions_from(self) -> Mapping[str, tuple[str, ...]]:
        """The actions that may be taken in each state; wrong ways, kept as pitfalls, are not among them."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for id, action in self.catalogue.actions.items():
            if action.instead_of is None:
                for from_ in action.moves:
                    found[from_].append(id)
        return {id: self._own_first(id, actions) for id, actions in found.items()}

    def _own_first(self, state: str, actions: list[str]) -> tuple[str, ...]:
        """What is done to the row itself before what is done to another and moves it along."""
        noun = self.catalogue.states.get(state)
        subject = noun.subject if noun else ""
        return tuple(sorted(actions, key=lambda id: self.catalogue.actions[id].subject != subject))

    @cached_property
    def pitfalls_in(self) -> Mapping[str, tuple[str, ...]]:
        """The wrong ways, by the states in which they would be tried."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for id, action in self.catalogue.actions.items():
            if action.instead_of is not None:
                for from_ in action.moves:
                    found[from_].append(id)
        return {id: tuple(actions) for id, actions in found.items()}

    @cached_property
    def places(self) -> Mapping[str, int]:
        """Where each state stands in the author's order."""
        return {id: place for place, id in enumerate(self.catalogue.states)}

    @cached_property
    def mistaken_by(self) -> Mapping[str, tuple[str, ...]]:
        """For each state those that say they are mistaken for it."""
        found: defaultdict[str, list[str]] = defaultdict(list)
        for id, state in self.catalogue.states.items():
            for other in state.mistaken_for:
                found[other].append(id)
        return {id: tuple(others) for id, others in found.items()}

    @cached_property
    def refusals_in(self) -> Mapping[str, tuple[tuple[str, str], ...]]:
        """For each state the actions that say what a refusal means where this state is found: action, text."""
        found: defaultdict[str, list[tuple[str, str]]] = defaultdict(list)
        for id, action in self.catalogue.actions.items():
            if action.instead_of is None:
                own = self.states_of.get(action.subject, {})
                moved = [state for state in action.moves if state in own]
                means = dict.fromkeys(moved, action.refusal.means.get("otherwise", "")) | action.refusal.means
                for state, text in means.items():
                    if text and state != "otherwise":
                        found[state].append((id, text))
        return {id: tuple(texts) for id, texts in found.items()}

    @cached_property
    def example_keys(self) -> Mapping[str, tuple[str, ...]]:
        """For each subject the first key that a scenario showed."""
        found: dict[str, tuple[str, ...]] = {}
        for scenario in self.evidence.scenarios:
            for seen in (*scenario.given, *(seen for step in scenario.steps for seen in step.then)):
                found.setdefault(seen.subject, seen.key)
        return found

    @cached_property
    def waivers(self) -> Mapping[str, Waiver]:
        """Waivers by what they are of, in the words of the catalogue."""
        return {waiver.of: waiver for waiver in self.catalogue.waivers.values()}


def file_name(id: str) -> str:
    """The name of a page for an id: the id, or its beginning and a digest where it is too long for a file."""
    if len(id) <= LONGEST_NAME:
        return id
    return f"{id[: LONGEST_NAME - 17]}-{hashlib.sha256(id.encode()).hexdigest()[:16]}"


MATRIX, TRIALS, MOVES, SCENARIOS, COVERAGE, OWNERS, VERDICTS = (
    "index", "actions", "moves", "scenarios", "coverage", "owners", "verdicts",
)  # fmt: skip


def state_page(id: str) -> str:
    return f"states/{file_name(id)}"


def scenario_page(id: str) -> str:
    return f"scenarios/{file_name(id)}"


def to_state(book: Book, id: str) -> Part:
    """A state by its title, linked to its page; ``absent`` and bound names in words."""
    state = book.catalogue.states.get(id)
    if state:
        return Link(prose(state.title), Target(state_page(id)))
    return "no row" if id == ABSENT else Code(prose(id))


def to_scenario(book: Book, id: str, text: str = "") -> Part:
    """A scenario by its id, linked where it has a page."""
    return Link(text or id, Target(scenario_page(id))) if id in book.catalogue.scenarios else text or id


def to_step(book: Book, witness: Witness) -> Part:
    """A witness: scenario and step, linked to the row of its transcript."""
    words = f"{witness.scenario}, " + (f"step {witness.step}" if witness.step else "as given")
    if witness.scenario not in book.catalogue.scenarios:
        return words
    return Link(words, Target(scenario_page(witness.scenario), f"step-{witness.step}"))


def to_owner(book: Book, id: str | None) -> Part | None:
    """An owner by title, linked to how to reach them."""
    if id is None:
        return None
    owner = book.catalogue.owners.get(id)
    return Link(prose(owner.title), Target(OWNERS, id)) if owner else id
