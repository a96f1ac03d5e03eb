"""Older evidence with the records that today's catalogue asks for: what is gone left out, what is new unreached."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from failure_matrix.catalogue.guards import guards as guards_of
from failure_matrix.catalogue.model import ABSENT, Catalogue
from failure_matrix.evidence import declared
from failure_matrix.evidence.declared import COST
from failure_matrix.evidence.fingerprints import Fingerprints
from failure_matrix.evidence.records import (
    CellRecord,
    Evidence,
    GuardRecord,
    InvariantRecord,
    MoveRecord,
    ObservationRecord,
    Outcome,
    PopulationRecord,
    ScenarioRecord,
    StateRecord,
    Verdict,
)

NEW = "it is newer than this evidence"


def renewed(evidence: Evidence, catalogue: Catalogue, prints: Fingerprints) -> Evidence:
    """The evidence with a record for each thing that is declared today."""
    made = _Renewal(evidence, catalogue, prints)
    return evidence.model_copy(
        update={
            "scenarios": tuple(made.scenarios()),
            "states": tuple(made.states()),
            "moves": tuple(made.moves()),
            "cells": tuple(made.cells()),
            "guards": tuple(made.guards()),
            "population": tuple(made.population()),
            "observations": tuple(made.observations()),
            "invariants": tuple(made.invariants()),
        }
    )


class _Renewal:
    def __init__(self, evidence: Evidence, catalogue: Catalogue, prints: Fingerprints) -> None:
        self._then = evidence
        self._catalogue = catalogue
        self._prints = prints
        # A part of the scenarios, or a quick run, has no cells and guards, and says nothing of what is new among them.
        self._swept = bool(evidence.cells) or not any(name.startswith("action/") for name in evidence.digests)

    def scenarios(self) -> Iterator[ScenarioRecord]:
        then, now = self._then.scenarios, self._catalogue.scenarios
        yield from (record for record in then if record.id in now)
        for id in self._missing("scenario", now, (record.id for record in then)):
            yield ScenarioRecord(
                id=id,
                title=now[id].title,
                verdict=Verdict.UNREACHED,
                because=NEW,
                not_run=tuple(range(1, len(now[id].steps) + 1)),
                fingerprint=self._prints.fingerprint(self._prints.scenario_rests_on(id)),
            )

    def states(self) -> Iterator[StateRecord]:
        then, now = self._then.states, self._catalogue.states
        for record in then:
            if record.id in now:
                yield record.model_copy(update={"subject": now[record.id].subject})
        for id in self._missing("state", now, (record.id for record in then)):
            rests_on = self._prints.state_rests_on(id, ())
            yield StateRecord(
                id=id,
                subject=now[id].subject,
                verdict=Verdict.UNREACHED,
                because=NEW,
                fingerprint=self._prints.fingerprint(rests_on),
                rests_on=tuple(sorted(rests_on)),
            )

    def moves(self) -> Iterator[MoveRecord]:
        known = {(record.from_, record.by, record.to): record for record in self._then.moves}
        for key in declared.moves(self._catalogue):
            source, by, target = key
            new = MoveRecord(from_=source, by=by, to=target, verdict=Verdict.UNREACHED, because=NEW)
            yield known.get(key, new)

    def cells(self) -> Iterator[CellRecord]:
        if not self._swept:
            return
        known = {(record.state, record.action, record.caller): record for record in self._then.cells}
        for cell in declared.cells(self._catalogue):
            state, action, caller = cell
            uncommitted = state != ABSENT and self._catalogue.states[state].uncommitted  # nobody could try it
            new = CellRecord(
                state=state,
                action=action,
                caller=caller,
                expected=declared.expected(self._catalogue.actions[action], caller, state),
                observed=Outcome.NOT_TRIED,
                verdict=None if uncommitted else Verdict.UNREACHED,
                because=NEW,
            )
            yield known.get(cell, new)

    def guards(self) -> Iterator[GuardRecord]:
        """Those of functions, and what a catalogue drops itself, are known by the server alone: they stay."""
        for id, action in self._catalogue.actions.items():
            then = [record for record in self._then.guards if record.action == id]
            found = guards_of(action.sql) if action.sql is not None and action.instead_of is None else ()
            texts = {guard.text for guard in found}
            kept = [
                record
                for record in then
                if (record.function in action.guards.in_ or record.guard in action.guards.drop)
                or (record.function is None and record.part != "drop" and record.guard in texts)
            ]
            yield from kept
            for guard in found if self._swept else ():
                if not any(record.guard == guard.text and record.part == guard.part.value for record in kept):
                    yield GuardRecord(
                        action=id,
                        guard=guard.text,
                        part=guard.part.value,
                        start=guard.start,
                        end=guard.end,
                        outcome="not tried",
                        verdict=None if guard.part.value == "assignment" else Verdict.UNREACHED,
                        because=NEW,
                    )

    def population(self) -> Iterator[PopulationRecord]:
        then, now = self._then.population, self._catalogue.subjects
        probed = {id: subject for id, subject in now.items() if subject.values}
        yield from (record for record in then if record.subject in probed)
        for id in self._missing("subject", probed, (record.subject for record in then)):
            yield PopulationRecord(
                subject=id, combinations=0, admitted=0, hits={}, verdict=Verdict.UNREACHED, because=NEW
            )

    def observations(self) -> Iterator[ObservationRecord]:
        known = {(record.state, record.observation): record for record in self._then.observations}
        for state in self._catalogue.states:
            for at, _ in declared.observations(self._catalogue, state):
                number = None if at == COST else at
                new = ObservationRecord(state=state, observation=number, verdict=Verdict.UNREACHED, because=NEW)
                yield known.get((state, number), new)

    def invariants(self) -> Iterator[InvariantRecord]:
        known = {record.id: record for record in self._then.invariants}
        for id in self._catalogue.invariants:
            yield known.get(id, InvariantRecord(id=id, verdict=Verdict.UNREACHED, because=NEW))

    def _missing(self, kind: str, now: Iterable[str], then: Iterable[str]) -> Iterator[str]:
        """What has no record and is not as it was: what is as it was had been left out of the run."""
        there = set(then)
        for id in now:
            name = f"{kind}/{id}"
            if id not in there and self._prints.digests((name,))[name] != self._then.digests.get(name):
                yield id
