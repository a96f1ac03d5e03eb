"""What evidence has a verdict on, one item a row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Protocol

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.evidence.records import (
    CellRecord,
    Evidence,
    Failure,
    ObservationRecord,
    ScenarioRecord,
    StepRecord,
    Verdict,
    worst,
)

GOOD = frozenset({Verdict.VERIFIED, Verdict.WAIVED})  # all others give exit 1


@dataclass(frozen=True, kw_only=True)
class Fault:
    """One failure, with where in its scenario it happened."""

    where: str  # "step 6", or "" for the scenario as a whole
    failure: Failure


@dataclass(frozen=True, kw_only=True)
class Item:
    """One row of every report: a thing, its verdict, and why it is not verified."""

    kind: str  # scenario, mechanism, state, move, cell, guard, population, observation, cost, waiver, invariant
    name: str
    verdict: Verdict
    because: str | None
    place: str = ""  # file:line, where the thing itself has one
    faults: tuple[Fault, ...] = ()


def items(evidence: Evidence, catalogue: Catalogue | None = None) -> tuple[Item, ...]:
    """Give every item that has a verdict, in the catalogue's order; ``catalogue`` says where each stands."""
    where = _Places(catalogue)
    return (
        *(_scenario(record) for record in evidence.scenarios),
        *(_item("mechanism", r.id, r, where("mechanisms", r.id)) for r in evidence.mechanisms),
        *(_item("state", r.id, r, where("states", r.id)) for r in evidence.states),
        *(
            _item("move", f"{r.from_} -> {r.to} by {r.by}", r, where(where.mover(r.by), r.by, "moves", r.from_))
            for r in evidence.moves
        ),
        *(_item("cell", _cell(r), r, where("actions", r.action)) for r in evidence.cells if r.verdict),
        *(
            _item("guard", f"{r.guard} in {r.function or r.action}", r, where("actions", r.action, "sql"))
            for r in evidence.guards
            if r.verdict and r.part != "assignment"  # a reported list, which proves nothing
        ),
        *(_item("population", r.subject, r, where("subjects", r.subject, "values")) for r in evidence.population),
        *(_observation(r, where) for r in evidence.observations),
        *(_item("waiver", r.id, r, where("waivers", r.id)) for r in evidence.waivers if r.verdict is Verdict.BROKEN),
        *(_item("invariant", r.id, r, where("invariants", r.id)) for r in evidence.invariants),
    )


class _Places:
    """Where things stand, as ``file:line``; nowhere without a catalogue."""

    def __init__(self, catalogue: Catalogue | None) -> None:
        self._catalogue = catalogue

    def __call__(self, *path: str | int) -> str:
        if self._catalogue is None:
            return ""
        found = self._catalogue.place(*path)
        return f"{found.path}:{found.line}"

    def mover(self, by: str) -> str:
        return "actions" if self._catalogue and by in self._catalogue.actions else "events"


class _Judged(Protocol):
    @property
    def verdict(self) -> Verdict | None: ...

    @property
    def because(self) -> str | None: ...


def _item(kind: str, name: str, record: _Judged, place: str) -> Item:
    return Item(kind=kind, name=name, verdict=record.verdict or Verdict.VERIFIED, because=record.because, place=place)


def _cell(record: CellRecord) -> str:
    return ", ".join((record.state, record.action, *([record.caller] if record.caller else [])))


def shown(evidence: Evidence, catalogue: Catalogue | None = None) -> tuple[Item, ...]:
    """Give the items that a report speaks of: where only some scenarios ran, none of those that they do not reach."""
    every = items(evidence, catalogue)
    if not partial(evidence, catalogue):
        return every
    return tuple(
        item for item in every if item.kind == "scenario" or item.verdict in (Verdict.VERIFIED, Verdict.BROKEN)
    )


def partial(evidence: Evidence, catalogue: Catalogue | None) -> bool:
    """Tell whether scenarios of the catalogue were left out."""
    return catalogue is not None and len(evidence.scenarios) < len(catalogue.scenarios)


def verdict(evidence: Evidence, catalogue: Catalogue | None = None) -> Verdict:
    """Give the verdict to act on: the evidence's own, or that of what ran where scenarios were left out."""
    if not partial(evidence, catalogue):
        return evidence.verdict
    return worst(item.verdict for item in shown(evidence, catalogue))


def not_verified(all_items: tuple[Item, ...]) -> list[Item]:
    """Give the items that a reader must know of, worst first, else in the catalogue's order."""
    return sorted(
        (item for item in all_items if item.verdict is not Verdict.VERIFIED), key=lambda item: -item.verdict.badness
    )


def counts(all_items: tuple[Item, ...]) -> str:
    """Say how many items have each verdict, worst first: ``1 broken, 52 verified``."""
    of = Counter(item.verdict for item in all_items)
    return ", ".join(f"{of[verdict]} {verdict}" for verdict in reversed(Verdict) if of[verdict]) or "nothing to verify"


def _observation(record: ObservationRecord, where: _Places) -> Item:
    if record.observation is None:
        return _item("cost", f"of {record.state}", record, where("states", record.state, "retention", "cost"))
    place = where("states", record.state, "observe", record.observation)
    return _item("observation", f"{record.observation + 1} of {record.state}", record, place)


def _scenario(record: ScenarioRecord) -> Item:
    faults = [Fault(where="", failure=failure) for failure in record.failures]
    faults += _faults(record.steps)
    failing = record.orders.failing
    if failing is not None:
        order = f"order {' '.join(map(str, failing.order))}"
        faults += [Fault(where=order, failure=failure) for failure in failing.failures]
        faults += [replace(fault, where=f"{order}, {fault.where}") for fault in _faults(failing.steps)]
    return Item(
        kind="scenario",
        name=record.id,
        verdict=record.verdict,
        because=record.because,
        place=record.place,
        faults=tuple(faults),
    )


def _faults(steps: Iterable[StepRecord]) -> list[Fault]:
    return [Fault(where=f"step {step.number}", failure=failure) for step in steps for failure in step.failures]
