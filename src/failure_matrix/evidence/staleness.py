"""Older evidence read against the catalogue of today: what it rests on has changed, so it proves nothing now."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeVar

from failure_matrix.catalogue.model import ABSENT, Catalogue
from failure_matrix.evidence.coverage import counted
from failure_matrix.evidence.fingerprints import Fingerprints
from failure_matrix.evidence.records import (
    CellRecord,
    Evidence,
    GuardRecord,
    InvariantRecord,
    MoveRecord,
    ObservationRecord,
    PopulationRecord,
    ScenarioRecord,
    StateRecord,
    Verdict,
)

Dated = TypeVar(
    "Dated",
    ScenarioRecord, StateRecord, MoveRecord, CellRecord, GuardRecord, PopulationRecord, ObservationRecord,
    InvariantRecord,
)  # fmt: skip

NEW = "it is newer than this evidence"


def against(evidence: Evidence, catalogue: Catalogue) -> Evidence:
    """The evidence as it stands today: what rests on something changed is stale, what is new was never shown.

    Only the catalogue is compared, with the major version that the evidence was made on; no server is needed.
    """
    return counted(_Comparison(evidence, catalogue).evidence())


class _Comparison:
    def __init__(self, evidence: Evidence, catalogue: Catalogue) -> None:
        self._then = evidence
        self._catalogue = catalogue
        self._prints = Fingerprints(catalogue, evidence.postgresql.major)
        self._now = self._prints.everything()

    def evidence(self) -> Evidence:
        then, now = self._then, self._catalogue
        prints = self._prints
        by = {**now.actions, **now.events}
        known = {ABSENT, *now.states}
        return then.model_copy(
            update={
                "scenarios": (
                    *(self._dated(r, prints.scenario_rests_on(r.id)) for r in then.scenarios if r.id in now.scenarios),
                    *self._new_scenarios(),
                ),
                "states": (*(self._state(r) for r in then.states if r.id in now.states), *self._new_states()),
                "moves": tuple(
                    self._dated(r, prints.move_rests_on(r.from_, r.by, r.to, _scenarios(r, now)))
                    for r in then.moves
                    if r.by in by and {r.from_, r.to} <= known
                ),
                "cells": tuple(
                    self._dated(r, prints.cell_rests_on(r.state, r.action, r.caller))
                    for r in then.cells
                    if r.action in now.actions and r.state in known and (r.caller is None or r.caller in now.callers)
                ),
                "guards": tuple(
                    self._dated(r, prints.guard_rests_on(r.action)) for r in then.guards if r.action in now.actions
                ),
                "population": tuple(
                    self._dated(r, prints.population_rests_on(r.subject))
                    for r in then.population
                    if r.subject in now.subjects
                ),
                "observations": tuple(
                    self._dated(r, prints.observation_rests_on(r.state))
                    for r in then.observations
                    if r.state in now.states
                ),
                "invariants": tuple(
                    self._dated(r, prints.invariant_rests_on(r.id)) for r in then.invariants if r.id in now.invariants
                ),
            }
        )

    def _state(self, record: StateRecord) -> StateRecord:
        rests_on = self._prints.state_rests_on(record.id, _scenarios(record, self._catalogue))
        return self._dated(record, rests_on | set(record.rests_on))

    def _dated(self, record: Dated, names: Iterable[str]) -> Dated:
        """The record, stale where one of these names has changed; what is worse than stale stays."""
        verdict: Verdict | None = record.verdict
        changed = list(self._changed(names))
        if not changed or verdict is None or verdict.badness > Verdict.STALE.badness:
            return record
        return record.model_copy(update={"verdict": Verdict.STALE, "because": f"changed since: {', '.join(changed)}"})

    def _changed(self, names: Iterable[str]) -> Iterator[str]:
        for name in sorted(set(names)):
            then, now = self._then.digests.get(name), self._now.get(name)
            if then != now:
                word = "" if then and now else " (new)" if now else " (gone)"
                yield name.replace("/", " ", 1) + word

    def _new_states(self) -> Iterator[StateRecord]:
        old = {record.id for record in self._then.states}
        for id, state in self._catalogue.states.items():
            if id not in old:
                rests_on = self._prints.state_rests_on(id, ())
                yield StateRecord(
                    id=id,
                    subject=state.subject,
                    verdict=Verdict.UNREACHED,
                    because=NEW,
                    fingerprint=self._prints.fingerprint(rests_on),
                    rests_on=tuple(sorted(rests_on)),
                )

    def _new_scenarios(self) -> Iterator[ScenarioRecord]:
        old = {record.id for record in self._then.scenarios}
        for id, scenario in self._catalogue.scenarios.items():
            if id not in old:
                yield ScenarioRecord(
                    id=id,
                    title=scenario.title,
                    verdict=Verdict.UNREACHED,
                    because=NEW,
                    not_run=tuple(range(1, len(scenario.steps) + 1)),
                    fingerprint=self._prints.fingerprint(self._prints.scenario_rests_on(id)),
                )


def _scenarios(record: StateRecord | MoveRecord, catalogue: Catalogue) -> list[str]:
    """The scenarios that witnessed it and are still there."""
    return sorted({witness.scenario for witness in record.witnesses} & catalogue.scenarios.keys())
