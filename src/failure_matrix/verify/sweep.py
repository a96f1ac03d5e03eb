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
from failure_matrix.database.connection import Connection, Request, Result, ServerError, Value
from failure_matrix.evidence.records import Outcome, Witness
from failure_matrix.evidence.schema import split_statements
from failure_matrix.verify.assess import Assessment, Assessor, Try
from failure_matrix.verify.ground import Ground
from failure_matrix.verify.judge import Standing
from failure_matrix.verify.rows import bound, rows_of, with_stores
from failure_matrix.verify.stores import simulate
from failure_matrix.verify.values import references
from failure_matrix.verify.world import World

Cell = tuple[str, str, str | None]  # state, action, caller

_BEGIN = Request(text="BEGIN")
_NO_DUTY = Request(text="SELECT true")
_ROLLBACK = Request(text="ROLLBACK")
_UNLOCK = Request(text="SELECT pg_advisory_unlock_all()")

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
        self._read: dict[object, Situation] = {}
        self._afterwards = [_ROLLBACK, *([_UNLOCK] if takes_advisory_locks(catalogue) else [])]

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
        """One try in a transaction that is rolled back: all in one round trip where nothing hangs on an answer."""
        requests = [_BEGIN, self._duty(action.requires, sources)]
        if action.sql is not None and (action.store is not None or len(split_statements(action.sql.text)) > 1):
            return self._run_stepwise(action, action.sql, sources, requests)
        inventory, answer = self._inventory, None
        if action.sql is not None:
            requests.append(_request(action.sql, sources))
        elif action.store is not None:
            inventory, answer = simulate(inventory, action.store, sources)
        requests.append(self._probe(inventory))
        answers = self._connection.together(requests, self._afterwards)
        duty, first, found = _held(answers[1]), answers[2], answers[len(requests) - 1]
        if action.sql is not None and isinstance(first, ServerError):
            return Try(duty=duty, answer=None, error=first, after=None)
        if action.sql is not None and isinstance(first, Result):
            answer = first
        return Try(duty=duty, answer=answer, error=None, after=self._situation_of(found))

    def _run_stepwise(self, action: Action, sql: Sql, sources: Mapping[str, Value], requests: Sequence[Request]) -> Try:
        """SQL that may be several statements, or whose answer decides about a store effect."""
        _, duty = self._connection.together(requests)
        try:
            answer = self._connection.query(*bound(sql, sources))
            inventory = self._inventory
            if action.store is not None and answer.affected:
                inventory, answer = simulate(inventory, action.store, sources)
            (found,) = self._connection.together([self._probe(inventory)])
            return Try(duty=_held(duty), answer=answer, error=None, after=self._situation_of(found))
        except ServerError as error:
            return Try(duty=_held(duty), answer=None, error=error, after=None)
        finally:
            self._connection.together(self._afterwards)

    def _probe(self, inventory: Inventory) -> Request:
        return self._ground.probe.request(now=self._now, inventory=inventory, previous=self._situation)

    def _situation_of(self, found: Result | ServerError | None) -> Situation:
        """What the probe found; most tries change nothing, and are read once."""
        if not isinstance(found, Result):
            raise found or AssertionError("the probe did not run")
        if found.rows not in self._read:
            self._read[found.rows] = self._ground.probe.read(found)
        return self._read[found.rows]

    def _duty(self, requires: Sql | None, sources: Mapping[str, Value]) -> Request:
        """Ask whether the caller's duty is done; without one it is."""
        if requires is None:
            return _NO_DUTY
        asked = with_stores(self._catalogue, f"SELECT (\n{requires.text}\n) IS TRUE")
        return _request(asked, {**self._sources, **sources})


def _request(sql: Sql, sources: Mapping[str, Value]) -> Request:
    text, values = bound(sql, sources)
    return Request(text=text, values=values)


def _held(duty: Result | ServerError | None) -> bool:
    """The answer about the duty; an error in asking is an error of the catalogue. Raises ServerError."""
    if not isinstance(duty, Result):
        raise duty or AssertionError("the duty was not asked")
    return duty.rows[0][0] == "t"


def takes_advisory_locks(catalogue: Catalogue) -> bool:
    """Whether any SQL of the catalogue may take an advisory lock, which outlives a rollback."""
    texts = [sql.text for sql in catalogue.settings.schema_]
    texts += [action.sql.text for action in catalogue.actions.values() if action.sql is not None]
    return any("advisory" in text.lower() for text in texts)


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
