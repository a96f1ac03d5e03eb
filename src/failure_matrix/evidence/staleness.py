"""Older evidence read against the catalogue of today: what it rests on has changed, so it proves nothing now.

Only the catalogue is compared, with the major version that the evidence was made on; no server is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.evidence import renewal
from failure_matrix.evidence.coverage import counted
from failure_matrix.evidence.fingerprints import Fingerprints
from failure_matrix.evidence.records import (
    CellRecord,
    Evidence,
    GuardRecord,
    InvariantRecord,
    MechanismRecord,
    MoveRecord,
    ObservationRecord,
    PopulationRecord,
    ScenarioRecord,
    StateRecord,
    Verdict,
)
from failure_matrix.evidence.rollup import by_state, mechanisms, worst_of

Dated = TypeVar(
    "Dated",
    ScenarioRecord, StateRecord, MoveRecord, CellRecord, GuardRecord, PopulationRecord, ObservationRecord,
    InvariantRecord,
)  # fmt: skip
Part = TypeVar("Part", MoveRecord, CellRecord, GuardRecord, ObservationRecord)


def against(evidence: Evidence, catalogue: Catalogue) -> Evidence:
    """The evidence as it stands today: what rests on something changed is stale, what is new was never shown.

    What is no longer declared is left out; a state is as bad as the worst that has happened to its parts.
    """
    return counted(_Comparison(evidence, catalogue).evidence())


class _Comparison:
    def __init__(self, evidence: Evidence, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._prints = Fingerprints(catalogue, evidence.postgresql.major)
        self._now = self._prints.everything()
        self._digests = evidence.digests
        self._then = renewal.renewed(evidence, catalogue, self._prints)

    def evidence(self) -> Evidence:
        then, prints = self._then, self._prints
        moves = tuple(self._move(each) for each in then.moves)
        cells = tuple(self._dated(r, prints.cell_rests_on(r.state, r.action, r.caller)) for r in then.cells)
        guards = tuple(self._dated(r, prints.guard_rests_on(r.action, r.shown_by)) for r in then.guards)
        observations = tuple(self._dated(r, prints.observation_rests_on(r.state)) for r in then.observations)
        parts = by_state(
            self._catalogue,
            # A move that is stale by what it leads to does not make what it leaves stale: the rest of it is there.
            moves=[each for each in moves if each.because == renewal.NEW],
            cells=_changed(then.cells, cells),
            guards=_changed(then.guards, guards),
            observations=_changed(then.observations, observations),
        )
        scenarios = tuple(self._dated(r, prints.scenario_rests_on(r.id)) for r in then.scenarios)
        return then.model_copy(
            update={
                "scenarios": scenarios,
                "mechanisms": tuple(self._mechanisms(scenarios)),
                "states": tuple(self._state(r, parts.get(r.id, ())) for r in then.states),
                "moves": moves,
                "cells": cells,
                "guards": guards,
                "population": tuple(self._dated(r, prints.population_rests_on(r.subject)) for r in then.population),
                "observations": observations,
                "invariants": tuple(self._dated(r, prints.invariant_rests_on(r.id)) for r in then.invariants),
            }
        )

    def _mechanisms(self, scenarios: Sequence[ScenarioRecord]) -> Iterator[MechanismRecord]:
        """Each as it was where all of its scenarios are, else with the worst of them."""
        then = {record.id: record for record in self._then.mechanisms}
        verdicts = {record.id: record.verdict for record in self._then.scenarios}
        same = {record.id for record in scenarios if record.verdict is verdicts[record.id]}
        for record in mechanisms(self._catalogue, scenarios):
            old = then.get(record.id)
            kept = old is not None and old.scenarios == record.scenarios and same >= set(record.scenarios)
            yield old if old is not None and kept else record

    def _state(self, record: StateRecord, parts: Sequence[tuple[Verdict, str | None]]) -> StateRecord:
        rests_on = self._prints.state_rests_on(record.id, ()) | set(record.rests_on)
        own = self._shown(self._dated(record, rests_on))
        verdict, because = worst_of([(own.verdict, own.because), *parts])
        return own.model_copy(update={"verdict": verdict, "because": because})

    def _move(self, record: MoveRecord) -> MoveRecord:
        rests_on = self._prints.move_rests_on(record.from_, record.by, record.to, ())
        return self._shown(self._dated(record, rests_on))

    def _shown(self, record: Dated) -> Dated:
        """Stale where no scenario that showed it is as it was; one that is, is enough."""
        scenarios = dict.fromkeys(witness.scenario for witness in getattr(record, "witnesses", ()))
        changes = [
            list(self._changes(self._prints.shown_by(id) if id in self._catalogue.scenarios else {f"scenario/{id}"}))
            for id in scenarios
        ]
        return self._stale(record, changes[0]) if changes and all(changes) else record

    def _dated(self, record: Dated, names: Iterable[str]) -> Dated:
        return self._stale(record, list(self._changes(names)))

    def _stale(self, record: Dated, changed: Sequence[str]) -> Dated:
        """The record, stale where something has changed; what is worse than stale, or new, stays."""
        verdict: Verdict | None = record.verdict
        if not changed or verdict is None or verdict.badness >= Verdict.STALE.badness or record.because == renewal.NEW:
            return record
        return record.model_copy(update={"verdict": Verdict.STALE, "because": f"changed since: {', '.join(changed)}"})

    def _changes(self, names: Iterable[str]) -> Iterator[str]:
        for name in sorted(set(names)):
            then, now = self._digests.get(name), self._now.get(name)
            if then != now:
                word = "" if then and now else " (new)" if now else " (gone)"
                yield name.replace("/", " ", 1) + word


def _changed(then: Sequence[Part], now: Sequence[Part]) -> list[Part]:
    """What is new, and what has become stale."""
    return [
        new for old, new in zip(then, now, strict=True) if new.verdict is not old.verdict or new.because == renewal.NEW
    ]
