"""Relations that are offered to SQL beside those of the schema: stores, and what subjects were one step before."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping

from failure_matrix.catalogue.model import Catalogue, Scalar, Sql, Subject
from failure_matrix.catalogue.sql import identifiers, statement
from failure_matrix.database.answers import Value
from failure_matrix.database.connection import Connection

Inventory = Mapping[str, tuple[Mapping[str, Scalar], ...]]  # store -> files: name, bytes, sha256, modified

_FILE_COLUMNS = "name text, bytes bigint, sha256 text, modified timestamptz"
_TEXTS = ("text", "character varying", "character", "name", "citext")  # of which empty text is a value


def store_relations(stores: Iterable[str]) -> list[str]:
    """The WITH items that offer each store as a relation of its name."""
    return [
        f"{quoted(name)} AS (SELECT * FROM jsonb_to_recordset(:{store_parameter(name)}::jsonb) AS ({_FILE_COLUMNS}))"
        for name in stores
    ]


def store_parameter(store: str) -> str:
    return "matrix_store_" + store.replace("-", "_")


def store_values(inventory: Inventory) -> dict[str, Value]:
    """The parameters of ``store_relations``: one jsonb text a store."""
    return {store_parameter(name): json.dumps(files, default=str) for name, files in inventory.items()}


def previous_relation(subject: str) -> str:
    """The relation that an invariant asks for what a subject was one step before."""
    return f"previous_{subject.replace('-', '_')}"


def previous_columns(subject: Subject) -> dict[str, int]:
    """The columns of ``previous_<subject>``, each with its place in a previous row.

    They are the key's parameters, ``in_state``, and the shown columns' own names; the first of two equal names
    counts. The state is called ``state`` as well where no column is.
    """
    names = (*subject.key, "in_state", *(column.rsplit(".", 1)[-1].strip('"') for column in subject.show))
    places = {name: place for place, name in reversed(list(enumerate(names)))}
    return {**places, "state": places.get("state", len(subject.key))}


def previous_relations(subjects: Mapping[str, Subject], types_of: Mapping[str, tuple[str, ...]]) -> list[str]:
    """The WITH items that offer the previous rows of these subjects, whose columns have these types."""
    items = []
    for id, types in types_of.items():
        columns = ", ".join(
            f"{_previous_value(place, type, in_key=place < len(subjects[id].key))} AS {quoted(name)}"
            for (name, place), type in zip(previous_columns(subjects[id]).items(), types, strict=True)
        )
        name = previous_relation(id)
        items.append(f"{name} AS (SELECT {columns} FROM jsonb_array_elements(:matrix_{name}::jsonb) AS was)")
    return items


def _previous_value(place: int, type: str, *, in_key: bool) -> str:
    """One column of a previous row; in a key, NULL has been written as empty text."""
    value = f"(was ->> {place})"
    return f"NULLIF({value}, '')::{type}" if in_key and type not in _TEXTS else f"{value}::{type}"


def previous_types(catalogue: Catalogue, connection: Connection, inventory: Inventory) -> dict[str, tuple[str, ...]]:
    """The types of ``previous_columns`` for the subjects whose previous rows an invariant asks for."""
    asked: frozenset[str] = frozenset()
    asked = asked.union(*(identifiers(invariant.sql.text) for invariant in catalogue.invariants.values()))
    found = {}
    for id, subject in catalogue.subjects.items():
        if previous_relation(id) not in asked:
            continue
        columns = (*subject.key.values(), "NULL::text", *subject.show)
        types = ", ".join(f"pg_typeof({columns[place]})::text" for place in previous_columns(subject).values())
        # A subject without rows still has types: the outer join makes one row of NULLs.
        with_items = ", ".join(store_relations(catalogue.stores))
        head = f"WITH {with_items} " if with_items else ""
        relation = f"{subject.from_.text}\n CROSS JOIN (SELECT) AS always"
        text = f"{head}SELECT {types} FROM (SELECT) AS one LEFT JOIN ({relation}) ON true LIMIT 1"
        probe = statement(Sql(text=text))
        values: dict[str, Value] = {"now": None, **store_values(inventory)}
        result = connection.query(probe.text, [values[name] for name in probe.parameters])
        found[id] = tuple("text" if type in (None, "unknown") else str(type) for type in result.rows[0])
    return found


def quoted(name: str) -> str:
    """An identifier as SQL quotes it."""
    return '"' + name.replace('"', '""') + '"'
