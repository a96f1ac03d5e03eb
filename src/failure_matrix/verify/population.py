"""The population probe: every combination of values that the schema admits must be in exactly one state.

Scenarios alone do not notice a hole between two predicates. For each combination the rows are inserted in a
transaction that is rolled back; a relation with the value ``absent`` among its columns has no row. Files of a
store exist only in the inventory that the probe is given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product

from failure_matrix.catalogue.model import ABSENT, Catalogue, Scalar, Subject
from failure_matrix.database.classify import Inventory, Misfit, Probe, state_of
from failure_matrix.database.connection import Connection, ServerError, Value
from failure_matrix.evidence.records import PopulationRecord, Verdict
from failure_matrix.verify.prepare import insert
from failure_matrix.verify.values import as_text

CLOCK = "$now"
Combination = Mapping[str, Scalar]  # relation.column, or $now -> value


@dataclass(kw_only=True)
class _Tally:
    """What has been found so far of one subject."""

    combinations: int = 0
    admitted: int = 0
    hits: dict[str, int] = field(default_factory=dict)
    offending: tuple[Combination, Misfit] | None = None


class Population:
    """Probes one subject after another on a connection of its own."""

    def __init__(self, catalogue: Catalogue, probe: Probe, connection: Connection) -> None:
        self._catalogue = catalogue
        self._probe = probe
        self._connection = connection
        self._committed = frozenset(id for id, state in catalogue.states.items() if not state.uncommitted)

    def run(self, reachable: frozenset[str]) -> Iterator[PopulationRecord]:
        """One record for each subject that has ``values``; ``reachable`` are the states that scenarios reach."""
        for id, subject in self._catalogue.subjects.items():
            if subject.values:
                tally = self._tally(id, subject)
                yield self._record(id, tally, reachable)

    def _tally(self, id: str, subject: Subject) -> _Tally:
        tally = _Tally(hits={state: 0 for state, body in self._catalogue.states_of(id).items() if not body.uncommitted})
        tables, stores = self._parted(subject)
        self._connection.query("BEGIN")
        try:
            for rows in product(*(_rows(relation, columns) for relation, columns in tables.items())):
                self._with_rows(id, subject, rows, tuple(stores.items()), tally)
        finally:
            self._connection.query("ROLLBACK")
        return tally

    def _parted(self, subject: Subject) -> tuple[dict[str, dict[str, tuple[Scalar, ...]]], ...]:
        """The values by relation: those of tables, and those of stores."""
        tables: dict[str, dict[str, tuple[Scalar, ...]]] = {}
        stores: dict[str, dict[str, tuple[Scalar, ...]]] = {}
        for column, values in subject.values.items():
            if column == CLOCK:
                continue
            relation, _, name = column.rpartition(".")
            into = stores if relation in self._catalogue.stores else tables
            into.setdefault(relation, {})[name] = values
        return tables, stores

    def _with_rows(
        self,
        id: str,
        subject: Subject,
        rows: Sequence[Combination],
        stores: Sequence[tuple[str, Mapping[str, tuple[Scalar, ...]]]],
        tally: _Tally,
    ) -> None:
        """One combination of the tables, with each of the stores and of the clock."""
        files = list(product(*(_rows(store, columns) for store, columns in stores)))
        clocks = subject.values.get(CLOCK, (0,))
        tally.combinations += len(files) * len(clocks)
        self._connection.query("SAVEPOINT combination")
        try:
            for row in rows:
                self._insert(subject, row)
        except ServerError as error:
            if not error.sqlstate.startswith(("22", "23", "P0")):  # data exceptions, constraints, RAISE
                raise
        else:
            tally.admitted += len(files) * len(clocks)
            for more, clock in product(files, clocks):
                whole = {key: value for part in (*rows, *more) for key, value in part.items()}
                self._classify(id, {**whole, **({CLOCK: clock} if CLOCK in subject.values else {})}, more, clock, tally)
        self._connection.query("ROLLBACK TO combination; RELEASE combination")

    def _insert(self, subject: Subject, row: Combination) -> None:
        if not row or any(value == ABSENT for value in row.values()):
            return
        relation = next(iter(row)).rpartition(".")[0]
        values = {column.rpartition(".")[2]: value for column, value in row.items()}
        for parameter, column in subject.key.items():
            table, _, name = column.rpartition(".")
            if table == relation and name not in values:
                values[name] = self._sample_key(relation, name, parameter)
        insert(self._connection, relation, values)

    def _sample_key(self, relation: str, column: str, parameter: str) -> Scalar:
        """A key of the kind that the scenarios use."""
        for scenario in self._catalogue.scenarios.values():
            for row in scenario.given.tables.get(relation, ()):
                if column in row:
                    return row[column]
            for step in scenario.steps:
                if isinstance(step.with_.get(parameter), int):
                    return step.with_[parameter]
        return 1

    def _classify(
        self, id: str, combination: Combination, files: Sequence[Combination], clock: Scalar, tally: _Tally
    ) -> None:
        situation = self._probe.look_from_session(self._connection, now=clock, inventory=self._inventory(files))
        for rows in situation.of(id).values():
            state = state_of(rows, self._committed)
            if isinstance(state, str):
                tally.hits[state] += 1
            elif tally.offending is None or _size(self._subject_values(id), combination) < _size(
                self._subject_values(id), tally.offending[0]
            ):
                tally.offending = (combination, state)

    def _subject_values(self, id: str) -> Mapping[str, tuple[Scalar, ...]]:
        return self._catalogue.subjects[id].values

    def _inventory(self, files: Sequence[Combination]) -> Inventory:
        found: dict[str, tuple[Mapping[str, Scalar], ...]] = dict.fromkeys(self._catalogue.stores, ())
        for file in files:
            if file and not any(value == ABSENT for value in file.values()):
                store = next(iter(file)).rpartition(".")[0]
                found[store] = (_file({column.rpartition(".")[2]: value for column, value in file.items()}),)
        return found

    def _record(self, id: str, tally: _Tally, reachable: frozenset[str]) -> PopulationRecord:
        verdict, because, offending = Verdict.VERIFIED, None, None
        states = tally.offending[1].states if tally.offending is not None else ()
        missed = [state for state, hits in tally.hits.items() if not hits and self._asked(state, reachable)]
        if tally.offending is not None:
            combination, misfit = tally.offending
            offending = {column: _shown(value) for column, value in combination.items()}
            values = ", ".join(f"{column} {'null' if value is None else value}" for column, value in offending.items())
            verdict, because = (
                Verdict.BROKEN,
                f"{misfit.kind}: {values}{' is in ' + ' and '.join(states) if states else ''}",
            )
        elif missed:
            verdict, because = Verdict.INCOMPLETE, f"no combination is in {', '.join(missed)}: nothing was proved there"
        return PopulationRecord(
            subject=id,
            combinations=tally.combinations,
            admitted=tally.admitted,
            hits=tally.hits,
            verdict=verdict,
            because=because,
            offending=offending,
            states=states,
        )

    def _asked(self, state: str, reachable: frozenset[str]) -> bool:
        return state in reachable and not self._catalogue.states[state].illegal


def _rows(relation: str, columns: Mapping[str, tuple[Scalar, ...]]) -> list[Combination]:
    """Every row of one relation; all that have no row are one."""
    found: list[Combination] = []
    gone = False
    for values in product(*columns.values()):
        row = {f"{relation}.{name}": value for name, value in zip(columns, values, strict=True)}
        if any(value == ABSENT for value in values):
            if gone:
                continue
            gone, row = True, {f"{relation}.{next(iter(columns))}": ABSENT}
        found.append(row)
    return found


def _file(given: Mapping[str, Scalar]) -> Mapping[str, Scalar]:
    """A file of the inventory: what is given, and something for the rest."""
    digest = hashlib.sha256(str(given.get("name")).encode()).hexdigest()
    return {"name": None, "bytes": 1, "sha256": digest, "modified": "2000-01-01T00:00:00Z", **given}


def _size(values: Mapping[str, tuple[Scalar, ...]], combination: Combination) -> int:
    """How far a combination is from everybody's first value: the smaller, the easier to read."""
    return sum(values[column].index(value) if value in values[column] else 0 for column, value in combination.items())


def _shown(value: Value) -> str | None:
    return as_text(value)
