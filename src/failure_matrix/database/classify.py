"""The probe: every row of every subject, every predicate over it, and every invariant, in one statement.

One statement is one snapshot, so what it finds was true at one instant.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

from failure_matrix.catalogue.model import Catalogue, Scalar, Sql, State, Subject
from failure_matrix.catalogue.sql import Statement, identifiers, statement
from failure_matrix.database.connection import Connection, Result, Value

KeyText = tuple[str, ...]  # a key's values as the server writes them, in key order
Inventory = Mapping[str, tuple[Mapping[str, Scalar], ...]]  # store -> files: name, bytes, sha256, modified

_FILE_COLUMNS = "name text, bytes bigint, sha256 text, modified timestamptz"


@dataclass(frozen=True, kw_only=True)
class Row:
    """One row of a subject's relation. ``matches`` are the states whose predicate holds."""

    subject: str
    key: KeyText
    matches: tuple[str, ...]
    shown: tuple[str | None, ...]  # as Subject.show lists them


@dataclass(frozen=True, kw_only=True)
class Situation:
    """What one look found."""

    rows: tuple[Row, ...] = ()
    offending: Mapping[str, tuple[str, ...]] = field(default_factory=dict)  # invariant -> offending rows, as JSON

    def of(self, subject: str) -> dict[KeyText, list[Row]]:
        """The rows of one subject by key; a key that stands twice has two."""
        found: dict[KeyText, list[Row]] = {}
        for row in self.rows:
            if row.subject == subject:
                found.setdefault(row.key, []).append(row)
        return found


def store_relations(stores: Mapping[str, object]) -> list[str]:
    """The WITH items that offer each store as a relation of its name."""
    return [
        f'"{name}" AS (SELECT * FROM jsonb_to_recordset(:{store_parameter(name)}::jsonb) AS ({_FILE_COLUMNS}))'
        for name in stores
    ]


def store_parameter(store: str) -> str:
    return "matrix_store_" + store.replace("-", "_")


def store_values(inventory: Inventory) -> dict[str, Value]:
    """The parameters of ``store_relations``: one jsonb text a store."""
    return {store_parameter(name): json.dumps(files, default=str) for name, files in inventory.items()}


class Probe:
    """The classification of one catalogue, ready to be asked on any of its connections."""

    def __init__(self, catalogue: Catalogue, previous_types: Mapping[str, tuple[str, ...]] | None = None) -> None:
        self._catalogue = catalogue
        self._subjects = tuple(catalogue.subjects.items())
        self._states = {id: tuple(catalogue.states_of(id)) for id in catalogue.subjects}
        self._invariants = tuple(catalogue.invariants)
        self._previous_types = previous_types or {}
        self.statement = self._compose(with_invariants=True)
        self._for_sessions = self._compose(with_invariants=False)

    def _compose(self, *, with_invariants: bool) -> Statement:
        parts = [
            subject_select(str(number), subject, self._catalogue.states_of(id).values())
            for number, (id, subject) in enumerate(self._subjects)
        ]
        with_items = store_relations(self._catalogue.stores)
        if with_invariants:
            parts += [
                f"SELECT '!{number}', NULL, NULL, to_jsonb(offending)::text FROM (\n{invariant.sql.text}\n) AS offending"
                for number, invariant in enumerate(self._catalogue.invariants.values())
            ]
            with_items += self._previous_relations()
        if not parts:
            parts = ["SELECT '0', '[]', '', '[]' WHERE false"]
        head = "WITH " + ",\n     ".join(with_items) + "\n" if with_items else ""
        return statement(Sql(text=head + "\nUNION ALL\n".join(parts)))

    def _previous_relations(self) -> list[str]:
        items = []
        for id, types in self._previous_types.items():
            names = previous_columns(self._catalogue.subjects[id])
            columns = ", ".join(f'"{name}" {type}' for name, type in zip(names, types, strict=True))
            items.append(
                f"previous_{id} AS (SELECT * FROM jsonb_to_recordset(:matrix_previous_{id}::jsonb) AS ({columns}))"
            )
        return items

    def look(
        self, connection: Connection, *, now: Value, inventory: Inventory, previous: Situation | None
    ) -> Situation:
        """Classify everything that ``connection`` sees, and check the invariants. Raises ServerError."""
        values = {"now": now, **store_values(inventory), **self._previous_values(previous)}
        name = "probe for an integer clock" if isinstance(now, int) else "probe"
        sample = [values[parameter] for parameter in self.statement.parameters]
        return self._read(connection.execute(name, self.statement.text, sample))

    def look_from_session(self, connection: Connection, *, now: Value, inventory: Inventory) -> Situation:
        """Classify what a session sees, without invariants. Raises ServerError."""
        values = {"now": now, **store_values(inventory)}
        return self._read(connection.query(self._for_sessions.text, _bound(self._for_sessions, values)))

    def _previous_values(self, previous: Situation | None) -> dict[str, Value]:
        values: dict[str, Value] = {}
        for id, subject in self._subjects:
            if id not in self._previous_types:
                continue
            names = previous_columns(subject)
            rows = previous.rows if previous is not None else ()
            values[f"matrix_previous_{id}"] = json.dumps(
                [
                    dict(zip(names, (*row.key, ",".join(row.matches), *row.shown), strict=True))
                    for row in rows
                    if row.subject == id
                ]
            )
        return values

    def _read(self, result: Result) -> Situation:
        rows: list[Row] = []
        offending: dict[str, list[str]] = {}
        for kind, key, bits, shown in result.rows:
            if kind is None:
                continue
            if kind.startswith("!"):
                offending.setdefault(self._invariants[int(kind[1:])], []).append(shown or "")
                continue
            id = self._subjects[int(kind)][0]
            matches = tuple(state for state, bit in zip(self._states[id], bits or "", strict=True) if bit == "1")
            rows.append(Row(subject=id, key=_key(key), matches=matches, shown=tuple(json.loads(shown or "[]"))))
        rows.sort(key=lambda row: (row.subject, row.key))
        return Situation(rows=tuple(rows), offending={id: tuple(sorted(found)) for id, found in offending.items()})


def _key(text: str | None) -> KeyText:
    return tuple("" if value is None else value for value in json.loads(text or "[]"))


def _bound(statement: Statement, values: Mapping[str, Value]) -> list[Value]:
    return [values[name] for name in statement.parameters]


def subject_select(tag: str, subject: Subject, states: Iterable[State]) -> str:
    """One SELECT: tag, key as a JSON array of text, a bit a state, shown columns as a JSON array of text."""
    bits = " || ".join(f"CASE WHEN (\n{state.when.text}\n) THEN '1' ELSE '0' END" for state in states) or "''"
    return (
        f"SELECT '{tag}', {_texts(subject.key.values())}, {bits}, {_texts(subject.show)}\n  FROM {subject.from_.text}"
    )


def _texts(columns: Iterable[str]) -> str:
    listed = ", ".join(f"({column})::text" for column in columns)
    return f"jsonb_build_array({listed})::text"


def previous_columns(subject: Subject) -> tuple[str, ...]:
    """The columns of ``previous_<subject>``: the key's parameters, ``in_state``, the shown columns' own names."""
    return (*subject.key, "in_state", *(column.rsplit(".", 1)[-1].strip('"') for column in subject.show))


def previous_types(catalogue: Catalogue, connection: Connection, inventory: Inventory) -> dict[str, tuple[str, ...]]:
    """The types of ``previous_columns`` for the subjects whose previous rows an invariant asks for."""
    asked = frozenset().union(*(identifiers(invariant.sql.text) for invariant in catalogue.invariants.values()))
    found = {}
    for id, subject in catalogue.subjects.items():
        if f"previous_{id}" not in asked:
            continue
        columns = [*subject.key.values(), "NULL::text", *subject.show]
        types = ", ".join(f"pg_typeof({column})::text" for column in columns)
        # A subject without rows still has types: the outer join makes one row of NULLs.
        with_items = ", ".join(store_relations(catalogue.stores))
        head = f"WITH {with_items} " if with_items else ""
        relation = f"{subject.from_.text}\n CROSS JOIN (SELECT) AS always"
        text = f"{head}SELECT {types} FROM (SELECT) AS one LEFT JOIN ({relation}) ON true LIMIT 1"
        probe = statement(Sql(text=text))
        result = connection.query(probe.text, _bound(probe, {"now": 0, **store_values(inventory)}))
        found[id] = tuple(type or "text" for type in result.rows[0])
    return found


@dataclass(frozen=True, kw_only=True)
class Misfit:
    """A key that is not in exactly one state."""

    kind: Literal["unclassified", "ambiguous", "duplicate-key"]
    states: tuple[str, ...]
    rows: tuple[Row, ...]


def state_of(rows: Sequence[Row], among: Container[str]) -> str | Misfit:
    """The one state of a key's row among these states, or why there is none."""
    if len(rows) > 1:
        return Misfit(kind="duplicate-key", states=(), rows=tuple(rows))
    matches = tuple(state for state in rows[0].matches if state in among)
    match matches:
        case [state]:
            return state
        case []:
            return Misfit(kind="unclassified", states=(), rows=tuple(rows))
        case _:
            return Misfit(kind="ambiguous", states=matches, rows=tuple(rows))
