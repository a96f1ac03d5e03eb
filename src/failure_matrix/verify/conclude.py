"""From what scenarios saw to what may be said of each state, move and invariant. A roll-up takes the worst."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypeVar

from failure_matrix.catalogue.model import ABSENT, Action, Catalogue, Event
from failure_matrix.evidence.fingerprints import Fingerprints
from failure_matrix.evidence.records import (
    Count,
    Failure,
    InvariantRecord,
    MoveRecord,
    ScenarioRecord,
    StateRecord,
    StepRecord,
    Verdict,
    Witness,
    worst,
)

MoveKey = tuple[str, str, str]  # from, by, to
Item = ScenarioRecord | StateRecord | MoveRecord | InvariantRecord
Key = TypeVar("Key")


class Conclusion:
    """What follows from the scenarios that ran."""

    def __init__(self, catalogue: Catalogue, scenarios: Sequence[ScenarioRecord], fingerprints: Fingerprints) -> None:
        self._catalogue = catalogue
        self._scenarios = scenarios
        self._fingerprints = fingerprints
        self._failures = [
            (scenario, failure)
            for scenario in scenarios
            for failure in (*scenario.failures, *(failure for step in scenario.steps for failure in step.failures))
        ]
        self.moves = tuple(self._move(key, witnesses) for key, witnesses in self._moved().items())
        self.states = tuple(self._state(id, witnesses) for id, witnesses in self._reached().items())
        self.invariants = tuple(self._invariants())

    def _good_steps(self) -> Iterator[tuple[ScenarioRecord, StepRecord]]:
        """The steps that showed what they should. A later failure does not undo them."""
        for scenario in self._scenarios:
            for step in scenario.steps:
                if step.verdict == Verdict.VERIFIED:
                    yield scenario, step

    def _reached(self) -> dict[str, list[Witness]]:
        """Where each state was entered: by a change, by what was given, or in a session's own view."""
        reached: dict[str, list[Witness]] = {id: [] for id in self._catalogue.states}
        for scenario in self._scenarios:
            if not scenario.failures:
                _add(reached, {seen.state for seen in scenario.given}, Witness(scenario=scenario.id, step=0))
        for scenario, step in self._good_steps():
            entered = {change.to for change in step.moves if change.from_ != change.to}
            seen = {seen.state for view in step.seen_by.values() for seen in view}
            own = {id for id in seen if id in reached and self._catalogue.states[id].uncommitted}
            broken = {seen.state for seen in step.then} if step.breaks else set()
            _add(reached, entered | own | broken, Witness(scenario=scenario.id, step=step.number))
        return reached

    def _moved(self) -> dict[MoveKey, list[Witness]]:
        """Where each declared move was made; of a longer path, only the hops that show."""
        moved: dict[MoveKey, list[Witness]] = {key: [] for key in declared_moves(self._catalogue)}
        for scenario, step in self._good_steps():
            made = {
                (hop.from_, hop.by, hop.to)
                for change in step.moves
                if not change.late
                for hop in change.path
                if hop.by is not None
            }
            _add(moved, made, Witness(scenario=scenario.id, step=step.number))
        return moved

    def _move(self, key: MoveKey, witnesses: list[Witness]) -> MoveRecord:
        source, by, target = key
        failure = next((failure for _, failure in self._failures if by in failure.actions and source in failure.states), None)
        verdict, because = Verdict.VERIFIED, None
        if failure is not None:
            verdict, because = Verdict.BROKEN, failure.message
        elif not witnesses:
            verdict, because = self._unseen("no scenario makes this move")
        return MoveRecord(
            from_=source, by=by, to=target, verdict=verdict, because=because, witnesses=tuple(witnesses)
        )

    def _state(self, id: str, witnesses: list[Witness]) -> StateRecord:
        state = self._catalogue.states[id]
        own = self._own_verdict(id, bool(witnesses))
        out = [move for move in self.moves if move.from_ == id and move.by not in self._pitfalls]
        bad = max(out, key=lambda move: move.verdict.badness, default=None)
        verdict, because = own
        if bad is not None and bad.verdict.badness > verdict.badness:
            verdict, because = bad.verdict, f"{bad.by} -> {bad.to}: {bad.because}"
        rests_on = self._fingerprints.state_rests_on(id, sorted({witness.scenario for witness in witnesses}))
        return StateRecord(
            id=id,
            subject=state.subject,
            verdict=verdict,
            because=because,
            fingerprint=self._fingerprints.fingerprint(rests_on),
            witnesses=tuple(witnesses),
            rests_on=tuple(sorted(rests_on)),
        )

    @property
    def _pitfalls(self) -> frozenset[str]:
        return frozenset(id for id, action in self._catalogue.actions.items() if action.instead_of is not None)

    def _own_verdict(self, id: str, reached: bool) -> tuple[Verdict, str | None]:
        state = self._catalogue.states[id]
        failure = next((each for each in self._failures if _is_about(each[1], id, state.subject)), None)
        if failure is not None:
            return Verdict.BROKEN, f"{failure[0].id}: {failure[1].message}"
        if state.illegal or reached:  # never reached is the good verdict of a state that must be empty
            return Verdict.VERIFIED, None
        return self._unseen("no scenario gets there")

    def _unseen(self, because: str) -> tuple[Verdict, str]:
        """Nothing showed it; where not every scenario ran, that says little."""
        ran, exist = len(self._scenarios), len(self._catalogue.scenarios)
        return (Verdict.UNREACHED, because) if ran == exist else (Verdict.INCOMPLETE, f"only {ran} of {exist} scenarios ran")

    def _invariants(self) -> Iterable[InvariantRecord]:
        checked = sum(1 for scenario in self._scenarios for step in scenario.steps if step.then or not step.failures)
        for id in self._catalogue.invariants:
            failure = next((failure for _, failure in self._failures if id in failure.invariants), None)
            verdict = Verdict.BROKEN if failure else Verdict.VERIFIED if checked else Verdict.UNREACHED
            because = failure.message if failure else None if checked else "no step ran"
            yield InvariantRecord(id=id, verdict=verdict, because=because, checked=checked)

    def verdict(self) -> Verdict:
        """The worst of everything."""
        items: tuple[Item, ...] = (*self._scenarios, *self.states, *self.moves, *self.invariants)
        return worst((item.verdict for item in items), default=Verdict.UNREACHED)

    def coverage(self) -> dict[str, Count]:
        """How many of each kind are verified."""
        kinds: Mapping[str, Sequence[Item]] = {
            "scenarios": self._scenarios,
            "states": self.states,
            "moves": self.moves,
            "invariants": self.invariants,
        }
        return {
            kind: Count(of=len(items), verified=sum(item.verdict == Verdict.VERIFIED for item in items))
            for kind, items in kinds.items()
        }


def _add(into: dict[Key, list[Witness]], keys: Iterable[Key], witness: Witness) -> None:
    for key in keys:
        if key in into:
            into[key].append(witness)


def _is_about(failure: Failure, state: str, subject: str) -> bool:
    return state in failure.states or subject in failure.subjects


def declared_moves(catalogue: Catalogue) -> Iterator[MoveKey]:
    """Every declared move, a ``$parameter`` as target left out, once."""
    found: dict[MoveKey, None] = {}
    nouns: dict[str, Action | Event] = {**catalogue.actions, **catalogue.events}
    for by, noun in nouns.items():
        for source, targets in noun.moves.items():
            found.update(((source, by, target), None) for target in targets if not target.startswith("$"))
    yield from (key for key in found if key[0] == ABSENT or key[0] in catalogue.states)
