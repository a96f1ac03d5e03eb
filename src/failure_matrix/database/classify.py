"""The probe: every row of every subject, every predicate over it, and every invariant, in one statement.

One statement is one snapshot, so what it finds was true at one instant.
"""

from __future__ import annotations

import json
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal

from failure_matrix.catalogue.model import Catalogue, Sql, State, Subject
from failure_matrix.catalogue.sql import Statement, statement
from failure_matrix.database.answers import Request, Result, ServerError, Value
from failure_matrix.database.connection import Connection
from failure_matrix.database.relations import (
    Inventory,
    previous_relation,
    previous_relations,
    store_relations,
    store_values,
)

KeyText = tuple[str, ...]  # a key's values as the server writes them, in key order

SESSION_LIMIT = 5.0  # seconds that a session may take to look; it may wait for a lock
_OFFENDING = '"an offending row"'  # no column is called so
MOST_KNOWN = 4_000  # rows, and situations, that a probe remembers


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

    def of(self, subject: str) -> Mapping[KeyText, Sequence[Row]]:
        """The rows of one subject by key; a key that stands twice has two."""
        return self._by_subject.get(subject, {})

    @cached_property
    def _by_subject(self) -> dict[str, dict[KeyText, list[Row]]]:
        found: dict[str, dict[KeyText, list[Row]]] = {}
        for row in self.rows:
            found.setdefault(row.subject, {}).setdefault(row.key, []).append(row)
        return found


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
        # Most looks find what the look before them found: what was read once is not read again.
        self._read: dict[tuple[tuple[str | None, ...], ...], Situation] = {}
        self._known: dict[tuple[str | None, ...], Row] = {}
        self._previous: dict[int, tuple[Situation, dict[str, Value]]] = {}

    def _compose(self, *, with_invariants: bool) -> Statement:
        parts = [
            subject_select(str(number), subject, self._catalogue.states_of(id).values())
            for number, (id, subject) in enumerate(self._subjects)
        ]
        with_items = store_relations(self._catalogue.stores)
        if with_invariants:
            parts += [
                f"SELECT '!{number}', NULL, NULL, to_jsonb({_OFFENDING})::text"
                f" FROM (\n{invariant.sql.text}\n) AS {_OFFENDING}"
                for number, invariant in enumerate(self._catalogue.invariants.values())
            ]
            with_items += previous_relations(self._catalogue.subjects, self._previous_types)
        if not parts:
            parts = ["SELECT '0', '[]', '', '[]' WHERE false"]
        head = "WITH " + ",\n     ".join(with_items) + "\n" if with_items else ""
        return statement(Sql(text=head + "\nUNION ALL\n".join(parts)))

    def invariant(self, id: str) -> Statement:
        """One invariant alone, with the relations that it may ask for."""
        items = [
            *store_relations(self._catalogue.stores),
            *previous_relations(self._catalogue.subjects, self._previous_types),
        ]
        head = f"WITH {', '.join(items)}\n" if items else ""
        return statement(Sql(text=f"{head}SELECT * FROM (\n{self._catalogue.invariants[id].sql.text}\n) AS offending"))

    def look(
        self, connection: Connection, *, now: Value, inventory: Inventory, previous: Situation | None
    ) -> Situation:
        """Classify everything that ``connection`` sees, and check the invariants. Raises ServerError."""
        return self.read(connection.execute(self.request(now=now, inventory=inventory, previous=previous)))

    def request(self, *, now: Value, inventory: Inventory, previous: Situation | None) -> Request:
        """The probe with its invariants, to send; ``read`` takes what comes back."""
        values = {"now": now, **store_values(inventory), **self._previous_values(previous)}
        return Request(prepared="probe", text=self.statement.text, values=_bound(self.statement, values), bare=True)

    def culprit(
        self, connection: Connection, *, now: Value, inventory: Inventory, previous: Situation | None
    ) -> tuple[str, ...] | None:
        """Find what the server could not evaluate, as a path in the catalogue; None where each alone can be."""
        values = {"now": now, **store_values(inventory), **self._previous_values(previous)}
        for path, asked in self._alone():
            try:
                connection.query(asked.text, _bound(asked, values))
            except ServerError:
                return None if connection.lost else path
        return None

    def _alone(self) -> Iterator[tuple[tuple[str, ...], Statement]]:
        """Each predicate and each invariant in a statement of its own."""
        items = store_relations(self._catalogue.stores)
        head = f"WITH {', '.join(items)}\n" if items else ""
        for id, subject in self._subjects:
            for state, body in self._catalogue.states_of(id).items():
                yield ("states", state, "when"), statement(Sql(text=head + subject_select("0", subject, [body])))
        for id in self._invariants:
            yield ("invariants", id, "sql"), self.invariant(id)

    def look_from_session(self, connection: Connection, *, now: Value, inventory: Inventory) -> Situation:
        """Classify what a session sees, without invariants. Raises ServerError."""
        values = {"now": now, **store_values(inventory)}
        asked = _bound(self._for_sessions, values)
        return self.read(connection.query(self._for_sessions.text, asked, limit=SESSION_LIMIT))

    def request_without_invariants(self, *, now: Value, inventory: Inventory) -> Request:
        """The probe of states alone, to send; ``read`` takes what comes back."""
        values = _bound(self._for_sessions, {"now": now, **store_values(inventory)})
        return Request(prepared="probe of states", text=self._for_sessions.text, values=values, bare=True)

    def _previous_values(self, previous: Situation | None) -> dict[str, Value]:
        if previous is None:
            return self._values_of(None)
        values = self._previous.get(id(previous))
        if values is None or values[0] is not previous:
            if len(self._previous) > MOST_KNOWN:
                self._previous.clear()
            values = self._previous[id(previous)] = (previous, self._values_of(previous))
        return values[1]

    def _values_of(self, previous: Situation | None) -> dict[str, Value]:
        values: dict[str, Value] = {}
        for id in self._previous_types:
            rows = [row for row in previous.rows if row.subject == id] if previous is not None else []
            values[f"matrix_{previous_relation(id)}"] = json.dumps([self._previous_row(row) for row in rows])
        return values

    def values_without_rows(self) -> Mapping[str, Value]:
        """The parameters that stand for previous rows, where there are none."""
        return self._previous_values(None)

    def _previous_row(self, row: Row) -> list[str | None]:
        committed = (state for state in row.matches if not self._catalogue.states[state].uncommitted)
        return [*row.key, ",".join(committed), *row.shown]

    def read(self, result: Result) -> Situation:
        """What the probe's rows say; the same object where they have said the same before."""
        situation = self._read.get(result.rows)
        if situation is None:
            if len(self._read) > MOST_KNOWN:
                self._read.clear()
            situation = self._read[result.rows] = self._situation(result)
        return situation

    def _situation(self, result: Result) -> Situation:
        rows: list[Row] = []
        offending: dict[str, list[str]] = {}
        for answered in result.rows:
            kind, _, _, shown = answered
            if kind is None:
                continue
            if kind.startswith("!"):
                offending.setdefault(self._invariants[int(kind[1:])], []).append(shown or "")
                continue
            row = self._known.get(answered)
            if row is None:
                if len(self._known) > MOST_KNOWN:
                    self._known.clear()
                row = self._known[answered] = self._row(*answered)
            rows.append(row)
        rows.sort(key=lambda row: (row.subject, row.key))
        return Situation(rows=tuple(rows), offending={id: tuple(sorted(found)) for id, found in offending.items()})

    def _row(self, kind: str | None, key: str | None, bits: str | None, shown: str | None) -> Row:
        id = self._subjects[int(kind or 0)][0]
        matches = tuple(state for state, bit in zip(self._states[id], bits or "", strict=True) if bit == "1")
        return Row(subject=id, key=_key(key), matches=matches, shown=tuple(json.loads(shown or "[]")))


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
