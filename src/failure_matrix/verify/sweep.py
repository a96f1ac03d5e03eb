"""The sweep: wherever a scenario rests, each action tried by each caller on each row, and rolled back.

A situation is swept when no session holds a transaction open, so that nothing can wait. Every try is a
transaction of its own; what a rollback keeps, sequences and advisory locks, is put back. Store effects change
the inventory that the probe is given, never a file.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from failure_matrix.catalogue.model import ABSENT, Action, Catalogue, Scalar, Sql, Subject
from failure_matrix.catalogue.sql import parameters
from failure_matrix.database.classify import Inventory, KeyText, Situation, store_values
from failure_matrix.database.connection import Connection, ServerError, Value
from failure_matrix.evidence.records import Outcome, Witness
from failure_matrix.verify.assess import Assessment, Assessor, Try
from failure_matrix.verify.ground import Ground
from failure_matrix.verify.judge import Standing
from failure_matrix.verify.rows import bound, rows_of, with_stores
from failure_matrix.verify.stores import simulate
from failure_matrix.verify.values import references
from failure_matrix.verify.world import World

Cell = tuple[str, str, str | None]  # state, action, caller

_TABLES = """
SELECT oid::regclass::text FROM pg_class
 WHERE oid >= 16384 AND relkind = 'r' AND relpersistence <> 't' ORDER BY 1
"""


@dataclass(kw_only=True)
class Tally:
    """What the tries of one cell gave: the first witness of each outcome, and of what is wrong."""

    tries: int = 0
    first: dict[Outcome, tuple[Assessment, Witness]] = field(default_factory=dict)
    bad: tuple[Assessment, Witness] | None = None

    def add(self, assessment: Assessment, witness: Witness) -> None:
        self.tries += assessment.outcome not in (Outcome.NO_SUCH_CALLER, Outcome.CANNOT_CALL)
        self.first.setdefault(assessment.outcome, (assessment, witness))
        if assessment.wrong is not None and self.bad is None:
            self.bad = (assessment, witness)


class Sweep:
    """Visits situations and keeps a tally of each cell. ``actions`` restricts it, for a guard's sake."""

    def __init__(self, catalogue: Catalogue, *, actions: Sequence[str] | None = None) -> None:
        self._catalogue = catalogue
        swept = (id for id, action in catalogue.actions.items() if action.instead_of is None)
        self._actions = tuple(id for id in swept if actions is None or id in actions)
        self._callers: tuple[str | None, ...] = tuple(catalogue.callers) or (None,)
        self._seen: set[str] = set()
        self.tallies: dict[Cell, Tally] = {}
        self.situations: dict[str, list[int]] = {}  # scenario -> steps after which a situation was new

    @property
    def broken(self) -> Iterator[tuple[Cell, Assessment]]:
        """The cells that a try has shown to be wrong."""
        for cell, tally in self.tallies.items():
            if tally.bad is not None:
                yield cell, tally.bad[0]

    def visit(self, ground: Ground, world: World, situation: Situation, standing: Standing, witness: Witness) -> None:
        """Sweep one situation, unless one like it was swept before."""
        inventory = world.stores.inventory()
        signature = _signature(ground.admin, world.now, inventory)
        if signature in self._seen:
            return
        self._seen.add(signature)
        self.situations.setdefault(witness.scenario, []).append(witness.step)
        connection = ground.watcher("sweep")
        sequences = ground.sequences()
        try:
            visit = _Visit(self._catalogue, ground, connection, world.now, inventory, situation, standing)
            for cell, assessment in visit.tries(self._actions, self._callers):
                self.tallies.setdefault(cell, Tally()).add(assessment, witness)
        finally:
            ground.restore(sequences)


class _Visit:
    """One situation: every row of it by every action and caller."""

    def __init__(
        self,
        catalogue: Catalogue,
        ground: Ground,
        connection: Connection,
        now: Value,
        inventory: Inventory,
        situation: Situation,
        standing: Standing,
    ) -> None:
        self._catalogue = catalogue
        self._ground = ground
        self._connection = connection
        self._now = now
        self._inventory = inventory
        self._standing = standing
        self._situation = situation
        self._assessor = Assessor(catalogue, situation, standing)
        self._sources = {"now": now, **store_values(inventory)}
        self._rows = {id: list(self._rows_of(id, subject)) for id, subject in catalogue.subjects.items()}
        self._called: dict[tuple[str, KeyText], Mapping[str, Scalar] | Outcome] = {}
        self._tried: dict[tuple[object, ...], Try] = {}

    def _rows_of(self, id: str, subject: Subject) -> Iterator[tuple[KeyText, dict[str, Scalar]]]:
        """Each key with the parameters that its row gives; the spare key last."""
        yield from rows_of(self._catalogue, id, self._connection, self._sources)
        if subject.spare:
            yield tuple(str(subject.spare[name]) for name in subject.key), dict(subject.spare)

    def tries(self, actions: Sequence[str], callers: Sequence[str | None]) -> Iterator[tuple[Cell, Assessment]]:
        for id in actions:
            action = self._catalogue.actions[id]
            for caller in callers:
                for key, given in self._rows[action.subject]:
                    state = self._standing.get((action.subject, key), ABSENT)
                    if isinstance(state, str):
                        yield (state, id, caller), self._cell(id, action, caller, state, key, given)

    def _cell(
        self, id: str, action: Action, caller: str | None, state: str, key: KeyText, given: Mapping[str, Scalar]
    ) -> Assessment:
        columns = {} if caller is None else self._call(caller, action.subject, key, given)
        if isinstance(columns, Outcome):
            return Assessment(outcome=columns)
        sources: dict[str, Scalar] = {**action.with_, **columns, **given}
        missing = sorted(needed(action) - sources.keys())
        if missing:
            return Assessment(outcome=Outcome.CANNOT_CALL, note=f"binds no {', '.join(missing)}")
        return self._assessor.assess(id, caller, state, key, sources, self._try(id, action, sources))

    def _call(
        self, caller: str, subject: str, key: KeyText, given: Mapping[str, Scalar]
    ) -> Mapping[str, Scalar] | Outcome:
        if (caller, (subject, *key)) not in self._called:
            self._called[caller, (subject, *key)] = self._ask_caller(caller, given)
        return self._called[caller, (subject, *key)]

    def _ask_caller(self, caller: str, given: Mapping[str, Scalar]) -> Mapping[str, Scalar] | Outcome:
        sql = self._catalogue.callers[caller]
        if not isinstance(sql, Sql):
            return sql
        sources = {**self._sources, **given}
        if not set(parameters(sql)) <= sources.keys():
            return Outcome.CANNOT_CALL
        asked = with_stores(self._catalogue, f"SELECT * FROM (\n{sql.text}\n) AS caller")
        result = self._connection.query(*bound(asked, sources))
        return dict(zip(result.columns, result.rows[0], strict=True)) if result.rows else Outcome.NO_SUCH_CALLER

    def _try(self, id: str, action: Action, sources: Mapping[str, Scalar]) -> Try:
        values = tuple(sources[name] for name in sorted(needed(action)))
        if (id, values) not in self._tried:
            self._tried[id, values] = self._run(action, {"now": self._now, **sources})
        return self._tried[id, values]

    def _run(self, action: Action, sources: Mapping[str, Value]) -> Try:
        self._connection.query("BEGIN")
        try:
            duty = self._duty(action.requires, sources)
            try:
                answer = self._connection.query(*bound(action.sql, sources)) if action.sql is not None else None
            except ServerError as error:
                return Try(duty=duty, answer=None, error=error, after=None)
            inventory: Inventory = self._inventory
            if action.store is not None and (answer is None or answer.affected):
                inventory, answer = simulate(inventory, action.store, sources)
            after = self._ground.probe.look(
                self._connection, now=self._now, inventory=inventory, previous=self._situation
            )
            return Try(duty=duty, answer=answer, error=None, after=after)
        finally:
            self._connection.query("ROLLBACK; SELECT pg_advisory_unlock_all()")

    def _duty(self, requires: Sql | None, sources: Mapping[str, Value]) -> bool:
        """Whether the caller's duty is done; an error in asking is an error of the catalogue."""
        if requires is None:
            return True
        asked = with_stores(self._catalogue, f"SELECT (\n{requires.text}\n) IS TRUE")
        return self._connection.query(*bound(asked, {**self._sources, **sources})).rows[0][0] == "t"


def needed(action: Action) -> frozenset[str]:
    """Every parameter that a caller must bring."""
    names: set[str] = set(parameters(action.sql)) if action.sql is not None else set()
    names |= set(parameters(action.requires)) if action.requires is not None else set()
    if action.store is not None:
        names |= references(action.store.target) | references(action.store.content)
    return frozenset(names - {"now"})


def _signature(connection: Connection, now: Value, inventory: Inventory) -> str:
    """Everything that a try can depend on: rows, clock and files; not when a file was written."""
    tables = [row[0] for row in connection.query(_TABLES).rows]
    parts = " UNION ALL ".join(f"SELECT '{table}' || each::text AS one FROM {table} AS each" for table in tables)
    rows = (
        connection.query(f"SELECT string_agg(one, ';' ORDER BY one) FROM ({parts}) AS all_rows").rows if parts else ()
    )
    files = [(store, file["name"], file["sha256"]) for store, found in inventory.items() for file in found]
    return hashlib.sha256(repr((rows, now, files)).encode()).hexdigest()
