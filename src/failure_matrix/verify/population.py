"""The population probe: every combination of values that the schema admits must be in exactly one state.

Scenarios alone do not notice a hole between two predicates. For each combination the rows are inserted in a
transaction that is rolled back; a relation with the value ``absent`` among its columns has no row. Files of a
store exist only in the inventory that the probe is given.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice, product

from failure_matrix.catalogue.findings import CatalogueInvalid, Finding, Severity
from failure_matrix.catalogue.model import ABSENT, Catalogue, Scalar, Subject
from failure_matrix.database.answers import Request, Result, ServerError, Value
from failure_matrix.database.classify import KeyText, Misfit, Probe, Situation, state_of
from failure_matrix.database.connection import Connection
from failure_matrix.database.relations import Inventory
from failure_matrix.evidence.records import PopulationRecord, Verdict
from failure_matrix.verify import clock
from failure_matrix.verify.assess import misfit
from failure_matrix.verify.hiding import HIDDEN
from failure_matrix.verify.prepare import insertion
from failure_matrix.verify.tables import has_deferrable, keys_to_give, parents_first
from failure_matrix.verify.values import as_text

CLOCK = "$now"
Combination = Mapping[str, Scalar]  # relation.column, or $now -> value
Rows = Sequence[Combination]  # one of each table
Found = Result | ServerError | None
Columns = dict[str, dict[str, tuple[Scalar, ...]]]  # relation -> column -> values

_AT_ONCE = 32  # combinations of the tables that are sent in one round trip
_IMMEDIATE = Request(text="SET CONSTRAINTS ALL IMMEDIATE")  # what a commit would refuse is not admitted
_UNDO = Request(text="ROLLBACK TO combination")

# What says that the question is wrong, not the row: SQL, resources, a server that goes down. All else is the schema's.
_NOT_THE_ROW = ("08", "42", "53", "54", "57", "58", "F0", "XX")


@dataclass(frozen=True, kw_only=True)
class _Offence:
    """A combination that is not in exactly one state, or that a predicate cannot be asked of."""

    combination: Combination
    what: str
    states: tuple[str, ...] = ()


@dataclass(kw_only=True)
class _Tally:
    """What has been found so far of one subject."""

    combinations: int = 0
    admitted: int = 0
    refusal: ServerError | None = None  # the schema's first
    hits: dict[str, int] = field(default_factory=dict)
    offence: _Offence | None = None


class Population:
    """Probes one subject after another."""

    def __init__(self, catalogue: Catalogue, probe: Probe) -> None:
        self._catalogue = catalogue
        self._probe = probe
        self._tallies: dict[str, _Tally] = {}

    def tally(self, connection: Connection, stopped: Callable[[], bool] = lambda: False) -> None:
        """Insert and classify every combination of every subject that has ``values``, unless it is stopped.

        Sequences are left where the rows took them. Raises CatalogueInvalid where ``values`` do not fit the schema.
        """
        for id, subject in self._catalogue.subjects.items():
            if subject.values and not stopped():
                probing = _Probing(self._catalogue, self._probe, connection, id)
                self._tallies[id] = probing.tally(stopped)

    def records(self, reachable: frozenset[str]) -> Iterator[PopulationRecord]:
        """One record for each subject that was tallied; ``reachable`` are the states that scenarios reach."""
        for id, tally in self._tallies.items():
            yield self._record(id, tally, reachable)

    def _record(self, id: str, tally: _Tally, reachable: frozenset[str]) -> PopulationRecord:
        verdict, because = Verdict.VERIFIED, None
        states: tuple[str, ...] = ()
        missed = tuple(state for state, hits in tally.hits.items() if not hits and self._asked(state, reachable))
        shown = None
        if tally.offence is not None:
            verdict, states = Verdict.BROKEN, tally.offence.states
            shown = {column: self._shown(column, value) for column, value in tally.offence.combination.items()}
            row = ", ".join(f"{column} {'null' if value is None else value}" for column, value in shown.items())
            because = f"{id} with {row} {tally.offence.what}"
        elif missed:
            verdict, states = Verdict.INCOMPLETE, missed
            because = f"no combination is in {', '.join(missed)}, so nothing was proved there{_why(tally)}"
        return PopulationRecord(
            subject=id,
            combinations=tally.combinations,
            admitted=tally.admitted,
            hits=tally.hits,
            verdict=verdict,
            because=because,
            offending=shown,
            states=states,
        )

    def _asked(self, state: str, reachable: frozenset[str]) -> bool:
        return state in reachable and not self._catalogue.states[state].illegal

    def _shown(self, column: str, value: Value) -> str | None:
        hidden = column.rpartition(".")[2] in self._catalogue.hidden
        return HIDDEN if hidden and value is not None else as_text(value)


def _why(tally: _Tally) -> str:
    if tally.admitted or tally.refusal is None:
        return ": add values that make one"
    return f": the schema admits none of {tally.combinations}, the first because of {tally.refusal}"


class _Probing:
    """The probe of one subject."""

    def __init__(self, catalogue: Catalogue, probe: Probe, connection: Connection, id: str) -> None:
        self._catalogue = catalogue
        self._probe = probe
        self._connection = connection
        self._id = id
        self._subject: Subject = catalogue.subjects[id]
        self._committed = frozenset(state for state, body in catalogue.states.items() if not body.uncommitted)
        self._tables, self._stores = self._parted()
        self._keys: dict[str, dict[str, Scalar]] = {}
        self._before: frozenset[KeyText] = frozenset()  # rows that the schema itself inserted
        start = clock.wall(connection) if catalogue.settings.clock == "wall" else clock.start(catalogue)
        self._clocks = self._subject.values.get(CLOCK, (start,))
        files = product(*(_rows(store, columns) for store, columns in self._stores.items()))
        self._whole = list(product(files, self._clocks))  # what each combination of the tables is looked at with
        self._looks = [
            probe.request_without_invariants(now=now, inventory=self._inventory(more)) for more, now in self._whole
        ]

    def _parted(self) -> tuple[Columns, Columns]:
        """The values by relation: those of tables, and those of stores."""
        tables: Columns = {}
        stores: Columns = {}
        for column, values in self._subject.values.items():
            if column != CLOCK:
                relation, _, name = column.rpartition(".")
                into = stores if relation in self._catalogue.stores else tables
                into.setdefault(relation, {})[name] = values
        return tables, stores

    def tally(self, stopped: Callable[[], bool]) -> _Tally:
        """Insert and classify every combination, until stopped. Raises CatalogueInvalid."""
        tally = _Tally(hits={id: 0 for id, body in self._catalogue.states_of(self._id).items() if not body.uncommitted})
        self._connection.query("BEGIN")
        try:
            self._before = frozenset(self._look(self._inventory(()), self._clocks[0]).of(self._id))
            order = parents_first(self._connection, self._tables)
            self._keys = {table: keys_to_give(self._catalogue, self._connection, table) for table in order}
            at_once = [_IMMEDIATE] if has_deferrable(self._connection) else []
            self._connection.query("SAVEPOINT combination")
            combinations = product(*(_rows(table, self._tables[table]) for table in order))
            while not stopped() and (some := list(islice(combinations, _AT_ONCE))):
                self._with_rows(some, at_once, tally)
        except ServerError as error:
            raise self._unfit(error) from error
        finally:
            self._connection.query("ROLLBACK")
        return tally

    def _with_rows(self, some: Sequence[Rows], at_once: Sequence[Request], tally: _Tally) -> None:
        """Some combinations of the tables, each with all of the stores and of the clock: in one round trip."""
        segments: list[Sequence[Request]] = []
        for rows in some:
            insertions = [insertion(*row) for row in map(self._row, rows) if row is not None]
            segments += [[*insertions, *at_once, *self._looks], [_UNDO]]
        answers = iter(self._connection.together(*segments))
        for rows, segment in zip(some, segments[::2], strict=True):
            found = list(islice(answers, len(segment) + 1))
            looks = len(segment) - len(self._looks)
            self._take(rows, found[:looks], found[looks : len(segment)], tally)

    def _take(self, rows: Rows, before: Sequence[Found], looks: Sequence[Found], tally: _Tally) -> None:
        tally.combinations += len(self._whole)
        error = next((answer for answer in before if isinstance(answer, ServerError)), None)
        if error is not None:
            if error.sqlstate.startswith(_NOT_THE_ROW):
                raise error
            tally.refusal = tally.refusal or error
            return
        tally.admitted += len(self._whole)
        for (more, now), found in zip(self._whole, looks, strict=True):
            values = {column: value for part in (*rows, *more) for column, value in part.items()}
            self._classify({**values, **({CLOCK: now} if CLOCK in self._subject.values else {})}, found, tally)

    def _row(self, row: Combination) -> tuple[str, dict[str, Scalar]] | None:
        """The table and the columns to insert; None where the row is absent."""
        if any(value == ABSENT for value in row.values()):
            return None
        table = next(iter(row)).rpartition(".")[0]
        return table, {**self._keys[table], **{column.rpartition(".")[2]: value for column, value in row.items()}}

    def _look(self, inventory: Inventory, now: Value) -> Situation:
        return self._probe.read(
            self._connection.execute(self._probe.request_without_invariants(now=now, inventory=inventory))
        )

    def _classify(self, combination: Combination, found: Found, tally: _Tally) -> None:
        if found is None:  # the statement after one that failed
            return
        if isinstance(found, ServerError):
            self._offend(_Offence(combination=combination, what=f"cannot be classified: {found}"), tally)
            return
        for key, rows in self._probe.read(found).of(self._id).items():
            state = state_of(rows, self._committed)
            if isinstance(state, Misfit):
                self._offend(_Offence(combination=combination, what=misfit(state), states=state.states), tally)
            elif key not in self._before:
                tally.hits[state] += 1

    def _offend(self, offence: _Offence, tally: _Tally) -> None:
        """Keep the smallest: the one that is nearest to everybody's first value."""
        if tally.offence is None or self._size(offence.combination) < self._size(tally.offence.combination):
            tally.offence = offence

    def _size(self, combination: Combination) -> int:
        values = self._subject.values
        return sum(
            values[column].index(value) if value in values[column] else 0 for column, value in combination.items()
        )

    def _inventory(self, files: Iterable[Combination]) -> Inventory:
        found: dict[str, tuple[Mapping[str, Scalar], ...]] = dict.fromkeys(self._catalogue.stores, ())
        for file in files:
            if file and not any(value == ABSENT for value in file.values()):
                store = next(iter(file)).rpartition(".")[0]
                given = {column.rpartition(".")[2]: value for column, value in file.items()}
                found[store] = (self._file(store, given),)
        return found

    def _file(self, store: str, given: Mapping[str, Scalar]) -> Mapping[str, Scalar]:
        """A file of the inventory: what is given, and something for the rest."""
        names = (name for each in self._catalogue.scenarios.values() for name in each.given.files.get(store, ()))
        name = given.get("name", next(names, "file"))
        digest = hashlib.sha256(str(name).encode()).hexdigest()
        return {"name": name, "bytes": 1, "sha256": digest, "modified": "2000-01-01T00:00:00Z", **given}

    def _unfit(self, error: ServerError) -> CatalogueInvalid:
        return CatalogueInvalid(
            (
                Finding(
                    place=self._catalogue.place("subjects", self._id, "values"),
                    rule="sql-rejected",
                    severity=Severity.ERROR,
                    message=f"the values of subject '{self._id}' cannot be inserted: PostgreSQL says {error}",
                    hint="name columns as table.column of the schema, and leave out what the server makes itself",
                ),
            )
        )


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
