"""What a small catalogue's verification says, looked at by name."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Protocol

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database.classify import Probe
from failure_matrix.database.cluster import Server
from failure_matrix.evidence.fingerprints import Fingerprints
from failure_matrix.evidence.records import (
    CellRecord,
    Evidence,
    GuardRecord,
    InvariantRecord,
    ObservationRecord,
    PopulationRecord,
    Run,
    StateRecord,
    Verdict,
    WaiverRecord,
)
from failure_matrix.verify import prepare, verify
from failure_matrix.verify.conclude import Seen, conclude
from failure_matrix.verify.ground import laid
from failure_matrix.verify.lane import lanes
from failure_matrix.verify.population import Population
from failure_matrix.verify.probing import ready_probe
from failure_matrix.verify.sweep import Sweep
from failure_matrix.verify.verification import Verification

FAULTS = Path(__file__).parents[1] / "catalogues" / "faults"
LEASE = (Path(__file__).with_name("catalogues") / "lease.yaml").read_text(encoding="utf-8")

Edit = tuple[str, str]


class Stage(Protocol):
    """Where a catalogue that is written in a test is proved; see conftest.py."""

    server: Server

    def catalogue(self, *texts: str) -> Catalogue: ...


class Judged(Protocol):
    """A record with a verdict."""

    @property
    def verdict(self) -> Verdict | None: ...

    @property
    def because(self) -> str | None: ...


@dataclass(frozen=True)
class Proof:
    """The evidence of one verification, each record by its name."""

    evidence: Evidence

    def cell(self, state: str, action: str, caller: str | None = None) -> CellRecord:
        name = (state, action, caller)
        return next(cell for cell in self.evidence.cells if (cell.state, cell.action, cell.caller) == name)

    def guard(self, guard: str, action: str | None = None) -> GuardRecord:
        return next(each for each in self.evidence.guards if each.guard == guard and action in (None, each.action))

    def population(self, subject: str = "job") -> PopulationRecord:
        return next(each for each in self.evidence.population if each.subject == subject)

    def observation(self, state: str, number: int | None = 0) -> ObservationRecord:
        return next(each for each in self.evidence.observations if (each.state, each.observation) == (state, number))

    def state(self, id: str) -> StateRecord:
        return next(each for each in self.evidence.states if each.id == id)

    def invariant(self, id: str) -> InvariantRecord:
        return next(each for each in self.evidence.invariants if each.id == id)

    def waiver(self, id: str) -> WaiverRecord:
        return next(each for each in self.evidence.waivers if each.id == id)

    def not_verified(self) -> list[str]:
        """All but states that is not verified, one line each: ``broken cell held take stranger: it …``."""
        kinds: tuple[tuple[str, Judged], ...] = (
            *((f"scenario {each.id}", each) for each in self.evidence.scenarios),
            *((f"move {each.from_} {each.by} {each.to}", each) for each in self.evidence.moves),
            *((f"cell {each.state} {each.action} {each.caller or ''}".strip(), each) for each in self.evidence.cells),
            *((f"guard {each.action} {each.guard}", each) for each in self.evidence.guards),
            *((f"population {each.subject}", each) for each in self.evidence.population),
            *((f"observation {each.state} {each.observation}", each) for each in self.evidence.observations),
            *((f"invariant {each.id}", each) for each in self.evidence.invariants),
            *((f"waiver {each.id}", each) for each in self.evidence.waivers),
        )
        return [
            f"{record.verdict} {name}: {record.because}"
            for name, record in kinds
            if record.verdict not in ("verified", None)
        ]


def edited(text: str, *edits: Edit) -> str:
    """The text with each piece replaced; each must stand there exactly once."""
    for old, new in edits:
        assert text.count(old) == 1, f"{text.count(old)} times: {old}"
        text = text.replace(old, new)
    return text


def fault(kind: str) -> str:
    """A catalogue that is wrong in many ways of one kind."""
    return (FAULTS / kind / "matrix.yaml").read_text(encoding="utf-8")


def expected(kind: str) -> list[str]:
    """What is said of that catalogue, as a person read it and found it good; a change of words is a change there."""
    return (FAULTS / kind / "expected.txt").read_text(encoding="utf-8").splitlines()


def prove(stage: Stage, *yaml: str, only: tuple[str, ...] = (), quick: bool = False) -> Proof:
    """Verify a catalogue with everything on. Raises CatalogueInvalid, CouldNot."""
    return Proof(verify(stage.catalogue(*yaml), stage.server, only=only, quick=quick))


def sweep(stage: Stage, *yaml: str) -> Proof:
    """Play and sweep, without guards and population, which take longer."""
    return swept(stage.catalogue(*yaml), stage.server)


def swept(catalogue: Catalogue, server: Server, *, actions: tuple[str, ...] | None = None) -> Proof:
    """Play every scenario, and sweep these actions."""
    fingerprints = Fingerprints(catalogue, server.major)
    found = Sweep(catalogue, actions=actions)
    now, chosen = datetime.now(UTC), tuple(catalogue.scenarios)
    with (
        template(catalogue, server) as (name, probe),
        lanes(catalogue, server, name, probe, fingerprints, now, count=1) as laid_out,
    ):
        records = Verification(catalogue, laid_out, lambda _: None).listed(chosen, found)
    run = Run(started="", seconds=0, postgresql="", server="", host="", commit=None, version="")
    seen = Seen(scenarios=records, sweep=found)
    return Proof(conclude(catalogue, server.major, seen, fingerprints, run, today=now.date()))


def populated(catalogue: Catalogue, server: Server, subject: str) -> PopulationRecord:
    """Probe the population of one subject alone, as if scenarios reached every state."""
    others = {
        id: noun if id == subject else noun.model_copy(update={"values": {}}) for id, noun in catalogue.subjects.items()
    }
    catalogue = catalogue.model_copy(update={"subjects": others})
    with template(catalogue, server) as (name, probe), laid(server, name, probe) as ground:
        population = Population(catalogue, probe)
        population.tally(ground.watcher("population"))
        (record,) = population.records(frozenset(catalogue.states))
    return record


@contextmanager
def template(catalogue: Catalogue, server: Server) -> Iterator[tuple[str, Probe]]:
    """A database with the catalogue's schema, and the probe that fits it."""
    name = prepare.make_template(catalogue, server)
    yield name, ready_probe(catalogue, server.conninfo(name))
    server.drop_database(name)
