"""Observations with SQL, run wherever a scenario enters their state: each must give a row there.

Retention costs are run at the same places: each must give one row, a number and its unit.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from failure_matrix.catalogue.model import Catalogue, Sql
from failure_matrix.database.classify import KeyText, store_values
from failure_matrix.database.connection import ServerError, Value
from failure_matrix.evidence.records import ObservationRecord, Verdict, Witness
from failure_matrix.verify.entry import Entry
from failure_matrix.verify.rows import bound, rows_of, with_stores
from failure_matrix.verify.world import World

COST = -1  # instead of an observation's number


@dataclass(kw_only=True)
class _Tally:
    runs: int = 0
    wrong: str | None = None


class Observing:
    """Runs the observations of the states that a scenario's steps enter."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._tallies: dict[tuple[str, int], _Tally] = {}

    def visit(self, world: World, entry: Entry, witness: Witness) -> None:
        """Run the observations of every state that this step entered."""
        entered = {
            (change.subject, change.key, change.to)
            for change in entry.changes
            if change.from_ != change.to and change.to in self._catalogue.states
        }
        if entry.breaks and entry.standing is not None:
            illegal = ((where, state) for where, state in entry.standing.items() if isinstance(state, str))
            entered |= {(*where, state) for where, state in illegal if self._catalogue.states[state].illegal}
        for subject, key, state in sorted(entered):
            for number, sql in self._asked(state):
                self._run(world, subject, key, state, number, sql, witness)

    def _asked(self, state: str) -> Iterator[tuple[int, Sql]]:
        body = self._catalogue.states[state]
        for number, observation in enumerate(body.observe):
            if observation.sql is not None:
                yield number, observation.sql
        if body.retention is not None and body.retention.cost is not None:
            yield COST, body.retention.cost

    def _run(
        self, world: World, subject: str, key: KeyText, state: str, number: int, sql: Sql, witness: Witness
    ) -> None:
        tally = self._tallies.setdefault((state, number), _Tally())
        tally.runs += 1
        where = f"at {witness.scenario}, step {witness.step}"
        try:
            found = world.admin.query(
                *bound(with_stores(self._catalogue, sql.text), self._sources(world, subject, key))
            )
        except ServerError as error:
            tally.wrong = tally.wrong or f"{error}, {where}"
            return
        if not found.rows:
            tally.wrong = tally.wrong or f"no row {where}"
        elif number == COST and (len(found.rows) != 1 or len(found.columns) != 2 or found.rows[0][0] is None):
            tally.wrong = tally.wrong or f"not one row of a number and its unit {where}"

    def _sources(self, world: World, subject: str, key: KeyText) -> Mapping[str, Value]:
        """The clock, the stores, and what the row gives; of a row that only its session sees, its key."""
        sources: dict[str, Value] = {"now": world.now, **store_values(world.stores.inventory())}
        given = dict(rows_of(self._catalogue, subject, world.admin, sources)).get(key, {})
        return {**sources, **dict(zip(self._catalogue.subjects[subject].key, key, strict=True)), **given}

    def records(self) -> Iterator[ObservationRecord]:
        """One record for each observation and cost that has SQL."""
        for state in self._catalogue.states:
            for number, _ in self._asked(state):
                tally = self._tallies.get((state, number), _Tally())
                verdict = Verdict.BROKEN if tally.wrong else Verdict.VERIFIED if tally.runs else Verdict.UNREACHED
                yield ObservationRecord(
                    state=state,
                    observation=None if number == COST else number,
                    verdict=verdict,
                    because=tally.wrong or (None if tally.runs else "no step entered its state"),
                    runs=tally.runs,
                )
