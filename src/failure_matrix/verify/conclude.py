"""From what was seen to what may be said of each scenario, move, cell, guard and state. A roll-up takes the worst."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from typing import TypeVar

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.evidence.coverage import counted
from failure_matrix.evidence.declared import MoveKey
from failure_matrix.evidence.fingerprints import Fingerprints
from failure_matrix.evidence.records import (
    CatalogueRecord,
    CellRecord,
    Evidence,
    Failure,
    GuardRecord,
    InvariantRecord,
    MechanismRecord,
    MoveRecord,
    ObservationRecord,
    PopulationRecord,
    PostgreSQL,
    Run,
    ScenarioRecord,
    StateRecord,
    Verdict,
    Witness,
)
from failure_matrix.evidence.rollup import Judged, by_state, mechanisms, who, worst_of
from failure_matrix.evidence.waiving import Waiving, name_of
from failure_matrix.verify import witnesses
from failure_matrix.verify.cells import cells
from failure_matrix.verify.sweep import Sweep

Judgeable = TypeVar(
    "Judgeable",
    ScenarioRecord, CellRecord, GuardRecord, PopulationRecord, ObservationRecord, InvariantRecord,
    MechanismRecord,
)  # fmt: skip

QUICK = "sweep and guards were left out"


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What the stages of a verification saw."""

    scenarios: tuple[ScenarioRecord, ...]
    sweep: Sweep | None = None
    population: tuple[PopulationRecord, ...] = ()
    guards: tuple[GuardRecord, ...] = ()
    observations: tuple[ObservationRecord, ...] = ()
    quick: bool = False


def conclude(
    catalogue: Catalogue, major: int, seen: Seen, fingerprints: Fingerprints, run: Run, *, today: date
) -> Evidence:
    """The evidence of one verification."""
    whole = seen.sweep is not None and len(seen.scenarios) == len(catalogue.scenarios)
    conclusion = Conclusion(catalogue, seen, fingerprints, Waiving(catalogue, today, whole=whole))
    evidence = Evidence(
        catalogue=CatalogueRecord(title=catalogue.settings.title, fingerprint=fingerprints.catalogue()),
        postgresql=PostgreSQL(major=major),
        verdict=Verdict.VERIFIED,
        scenarios=conclusion.scenarios,
        mechanisms=conclusion.mechanisms,
        states=conclusion.states,
        moves=conclusion.moves,
        cells=conclusion.cells,
        guards=conclusion.guards,
        population=conclusion.population,
        observations=conclusion.observations,
        waivers=conclusion.waivers,
        invariants=conclusion.invariants,
        hidden=tuple(sorted(catalogue.hidden)),
        digests=fingerprints.everything(),
        run=run,
    )
    return counted(evidence)


class Conclusion:
    """What follows, kind by kind, from the small to the large."""

    def __init__(self, catalogue: Catalogue, seen: Seen, fingerprints: Fingerprints, waiving: Waiving) -> None:
        self._catalogue = catalogue
        self._seen = seen
        self._fingerprints = fingerprints
        self._waiving = waiving
        self._moved = witnesses.moved(catalogue, seen.scenarios)
        self._reached = witnesses.reached(catalogue, seen.scenarios)
        self.scenarios = tuple(map(self._judged, seen.scenarios))
        self.mechanisms = tuple(map(self._judged, mechanisms(catalogue, self.scenarios)))
        self._failures = list(self._all_failures())
        self._ruined = self._all_ruins()
        self.moves = tuple(self._move(key, found) for key, found in self._moved.items())
        self.cells = tuple(self._judged_cells())
        self.guards = tuple(map(self._judged, seen.guards))
        self.population = tuple(map(self._judged, seen.population))
        self.observations = tuple(map(self._judged, seen.observations))
        self.invariants = tuple(self._invariants())
        self._by_state = by_state(
            catalogue, moves=self.moves, cells=self.cells, guards=self.guards, observations=self.observations
        )
        self.states = tuple(self._state(id, found) for id, found in self._reached.items())
        self.waivers = tuple(waiving.records())

    def _judged(self, record: Judgeable) -> Judgeable:
        if record.verdict is None:
            self._waiving.untried(name_of(record))
            return record
        verdict, because = self._waiving.judge(name_of(record), record.verdict, record.because)
        return record.model_copy(update={"verdict": verdict, "because": because})

    def _judged_cells(self) -> Iterator[CellRecord]:
        if self._seen.sweep is None:
            return
        yield from map(self._judged, cells(self._catalogue, self._seen.sweep.tallies, self._moved, self._reached))

    def _all_failures(self) -> Iterator[tuple[Verdict, str, Failure]]:
        """Every failure of a step or scenario, as bad as its scenario's verdict."""
        for scenario in self.scenarios:
            for failure in (*scenario.failures, *(failure for step in scenario.steps for failure in step.failures)):
                yield scenario.verdict, scenario.id, failure

    def _all_ruins(self) -> dict[str, str]:
        """What tries of the sweep ruin, ``state id`` or ``invariant id``, and how the first of them does."""
        found: dict[str, str] = {}
        for cell, tally in self._seen.sweep.tallies.items() if self._seen.sweep is not None else ():
            if tally.bad is not None and tally.bad[0].ruins is not None:
                found.setdefault(tally.bad[0].ruins, f"cell {_called(*cell)}: {tally.bad[0].wrong}")
        return found

    def _move(self, key: MoveKey, found: list[Witness]) -> MoveRecord:
        source, by, target = key
        verdict, because = self._unseen("no scenario makes this move") if not found else (Verdict.VERIFIED, None)
        for scenario_verdict, id, failure in self._failures:
            if by in failure.actions and source in failure.states:
                verdict, because = scenario_verdict, f"{id}: {failure.message}"
                break
        verdict, because = self._waiving.judge(f"move {source} {by} {target}", verdict, because)
        return MoveRecord(from_=source, by=by, to=target, verdict=verdict, because=because, witnesses=tuple(found))

    def _state(self, id: str, found: list[Witness]) -> StateRecord:
        subject = self._catalogue.states[id].subject
        reasons = [self._own(id, bool(found)), *self._by_state.get(id, ()), *self._of_others(id, subject)]
        verdict, because = worst_of(reasons)
        verdict, because = self._waiving.judge(f"state {id}", verdict, because)
        return StateRecord(
            id=id,
            subject=subject,
            verdict=verdict,
            because=because,
            fingerprint=self._fingerprints.fingerprint(self._fingerprints.state_rests_on(id, _first(found))),
            witnesses=tuple(found),
            rests_on=tuple(sorted(self._fingerprints.state_rests_on(id, ()))),
        )

    def _own(self, id: str, reached: bool) -> Judged:
        """The state by itself: reached, and no failure about it."""
        state = self._catalogue.states[id]
        for verdict, scenario, failure in self._failures:
            if id in failure.states or state.subject in failure.subjects:
                return verdict, f"{scenario}: {failure.message}"
        if f"state {id}" in self._ruined:
            return Verdict.BROKEN, self._ruined[f"state {id}"]
        if state.illegal or reached:  # never reached is the good verdict of a state that must be empty
            return Verdict.VERIFIED, None
        return self._unseen("no scenario gets there")

    def _unseen(self, because: str) -> Judged:
        """Nothing showed it; where not every scenario ran, that says little."""
        ran, exist = len(self._seen.scenarios), len(self._catalogue.scenarios)
        if ran == exist:
            return Verdict.UNREACHED, because
        return Verdict.INCOMPLETE, f"only {ran} of {exist} scenarios ran"

    def _of_others(self, id: str, subject: str) -> Iterator[Judged]:
        """The population probe, and what was left out."""
        for probe in self.population:
            if id in probe.states or (probe.subject == subject and probe.offending and not probe.states):
                yield probe.verdict, f"population: {probe.because}"
        ran, exist = len(self._seen.scenarios), len(self._catalogue.scenarios)
        if ran < exist:  # neither swept nor probed
            yield Verdict.INCOMPLETE, f"only {ran} of {exist} scenarios ran"
        if self._seen.quick and any(action.subject == subject for action in self._catalogue.actions.values()):
            yield Verdict.INCOMPLETE, QUICK

    def _invariants(self) -> Iterator[InvariantRecord]:
        checked = sum(len(scenario.steps) for scenario in self.scenarios)
        for id in self._catalogue.invariants:
            failure = next((failure for _, _, failure in self._failures if id in failure.invariants), None)
            wrong = failure.message if failure else self._ruined.get(f"invariant {id}")
            verdict = Verdict.BROKEN if wrong else Verdict.VERIFIED if checked else Verdict.UNREACHED
            because = wrong or (None if checked else "no step ran")
            record = InvariantRecord(id=id, verdict=verdict, because=because, checked=checked)
            yield self._judged(record)


def _called(state: str, action: str, caller: str | None) -> str:
    return f"{state}, {who(action, caller)}"


def _first(found: Sequence[Witness]) -> tuple[str, ...]:
    """The scenario that showed it first: one is enough."""
    return tuple(witness.scenario for witness in found[:1])
