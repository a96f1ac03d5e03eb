"""Older evidence read against the catalogue of today: what it rests on has changed, so it proves nothing now.

Only the catalogue is compared, with the major version that the evidence was made on; no server is needed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import TypeVar

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.catalogue.model import ABSENT, Catalogue
from failure_matrix.evidence import renewal
from failure_matrix.evidence.coverage import counted
from failure_matrix.evidence.declared import COST
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
from failure_matrix.evidence.rollup import Judged, by_state, mechanisms, worst_of
from failure_matrix.evidence.waiving import Waiving, name_of

Dated = TypeVar(
    "Dated",
    ScenarioRecord, StateRecord, MoveRecord, CellRecord, GuardRecord, PopulationRecord, ObservationRecord,
    InvariantRecord, MechanismRecord,
)  # fmt: skip
Shown = TypeVar("Shown", StateRecord, MoveRecord)
Part = TypeVar("Part", MoveRecord, CellRecord, GuardRecord, ObservationRecord)


def against(evidence: Evidence, catalogue: Catalogue, today: date) -> Evidence:
    """The evidence as it stands today: what rests on something changed is stale, what is new was never shown.

    What is no longer declared is left out, waivers are those that stand today, and a state is as bad as the worst that
    has happened to its parts. Raises CouldNot where the evidence holds columns that are hidden by now.
    """
    if shown := sorted(catalogue.hidden - set(evidence.hidden)):
        why = f"it was made before it was hidden what stands in {', '.join(shown)}"
        raise CouldNot(f"render this evidence: {why}", "Run matrix verify to make it anew, and delete the old file.")
    return counted(_Comparison(evidence, catalogue, today).evidence())


class _Comparison:
    def __init__(self, evidence: Evidence, catalogue: Catalogue, today: date) -> None:
        before = {name.removeprefix("schema/") for name in evidence.digests if name.startswith("schema/")}
        self._catalogue = catalogue
        self._prints = Fingerprints(catalogue, evidence.postgresql.major, before=frozenset(before))
        self._now = self._prints.everything()
        self._digests = evidence.digests
        self._then = renewal.renewed(evidence, catalogue, self._prints)
        ran = {f"scenario/{record.id}" for record in evidence.scenarios}
        whole = bool(evidence.cells) and ran >= {name for name in self._digests if name.startswith("scenario/")}
        self._waiving = Waiving(catalogue, today, whole=whole)

    def evidence(self) -> Evidence:
        then, prints = self._then, self._prints
        scenarios = tuple(self._today(r, prints.scenario_rests_on(r.id)) for r in then.scenarios)
        moves = tuple(self._judged(self._move(each)) for each in then.moves)
        cells = tuple(
            self._dated(r, prints.cell_rests_on(r.state, r.action, r.caller, asked=bool(r.answers))) for r in then.cells
        )
        guards = tuple(self._today(r, prints.guard_rests_on(r.action, r.shown_by)) for r in then.guards)
        observations = tuple(self._observation(r) for r in then.observations)
        parts = by_state(
            self._catalogue,
            # What is stale by where it leads to does not make what it leaves stale: the rest of it is there.
            moves=[each for each in _telling(then.moves, moves) if not _has_changed(each)],
            cells=_telling(then.cells, tuple(map(self._judged, cells))),
            guards=_telling(then.guards, guards),
            observations=_telling(then.observations, observations),
        )
        return then.model_copy(
            update={
                "scenarios": scenarios,
                "mechanisms": tuple(self._mechanism(each) for each in mechanisms(self._catalogue, scenarios)),
                "moves": moves,
                "cells": tuple(self._today(r, {f"state/{id}" for id in r.to if id != ABSENT}) for r in cells),
                "guards": guards,
                "population": tuple(self._today(r, prints.population_rests_on(r.subject)) for r in then.population),
                "observations": observations,
                "invariants": tuple(self._today(r, prints.invariant_rests_on(r.id)) for r in then.invariants),
                "states": tuple(self._state(r, parts.get(r.id, ())) for r in then.states),
                "waivers": tuple(self._waiving.records()),
            }
        )

    def _mechanism(self, record: MechanismRecord) -> MechanismRecord:
        verdict, because = self._waiving.judge(name_of(record), record.verdict, record.because)
        return record.model_copy(update={"verdict": verdict, "because": because})

    def _observation(self, record: ObservationRecord) -> ObservationRecord:
        number = COST if record.observation is None else record.observation
        return self._today(record, self._prints.observation_rests_on(record.state, number))

    def _move(self, record: MoveRecord) -> MoveRecord:
        rests_on = self._prints.move_rests_on(record.from_, record.by, record.to, ())
        return self._shown(self._dated(record, rests_on))

    def _state(self, record: StateRecord, parts: Sequence[Judged]) -> StateRecord:
        rests_on = self._prints.state_rests_on(record.id, ()) | set(record.rests_on)
        own = self._shown(self._dated(record, rests_on))
        verdict, because = worst_of([self._own(own, parts), *parts])
        verdict, because = self._waiving.judge(name_of(own), verdict, because)
        return own.model_copy(update={"verdict": verdict, "because": because})

    def _own(self, record: StateRecord, parts: Sequence[Judged]) -> Judged:
        """The state by itself. One that was waived was so by its own waiver, or by one of a part."""
        if record.verdict is not Verdict.WAIVED:
            return record.verdict, record.because
        if self._waiving.stands(name_of(record)):
            return Verdict.UNREACHED, record.because  # whatever it was: that is what is waived
        if any(verdict is Verdict.WAIVED for verdict, _ in parts):
            return Verdict.VERIFIED, None
        return Verdict.STALE, self._waiving.why_gone(name_of(record))

    def _shown(self, record: Shown) -> Shown:
        """Stale where no scenario that showed it is as it was; one that is, is enough."""
        scenarios = dict.fromkeys(witness.scenario for witness in record.witnesses)
        changes = [
            list(self._changes(self._prints.shown_by(id) if id in self._catalogue.scenarios else {f"scenario/{id}"}))
            for id in scenarios
        ]
        return self._stale(record, changes[0]) if changes and all(changes) else record

    def _today(self, record: Dated, names: Iterable[str]) -> Dated:
        """The record stale where one of these names has changed, and waived where a waiver stands."""
        return self._judged(self._dated(record, names))

    def _judged(self, record: Dated) -> Dated:
        """The record waived where a waiver stands today; what was waived once and is no more proves nothing."""
        verdict: Verdict | None = record.verdict
        because, name = record.because, name_of(record)
        if verdict is None:
            self._waiving.untried(name)
            return record
        if verdict is Verdict.WAIVED:
            verdict, because = Verdict.STALE, self._waiving.why_gone(name)
        verdict, because = self._waiving.judge(name, verdict, because)
        return record.model_copy(update={"verdict": verdict, "because": because})

    def _dated(self, record: Dated, names: Iterable[str]) -> Dated:
        return self._stale(record, list(self._changes(names)))

    @staticmethod
    def _stale(record: Dated, changed: Sequence[str]) -> Dated:
        """The record, stale where something has changed; what was never good stays what it is."""
        if not changed or record.verdict not in (Verdict.VERIFIED, Verdict.WAIVED):
            return record
        return record.model_copy(update={"verdict": Verdict.STALE, "because": f"{CHANGED}: {', '.join(changed)}"})

    def _changes(self, names: Iterable[str]) -> Iterator[str]:
        for name in sorted(set(names)):
            then, now = self._digests.get(name), self._now.get(name)
            if then != now:
                word = "" if then and now else " (new)" if now else " (gone)"
                yield name.replace("/", " ", 1) + word


CHANGED = "changed since"


def _telling(then: Sequence[Part], now: Sequence[Part]) -> list[Part]:
    """What is not as it was, what is new, and what is waived."""
    return [
        new
        for old, new in zip(then, now, strict=True)
        if new.verdict is not old.verdict or new.because == renewal.NEW or new.verdict is Verdict.WAIVED
    ]


def _has_changed(record: MoveRecord) -> bool:
    return record.verdict is Verdict.STALE and (record.because or "").startswith(CHANGED)
