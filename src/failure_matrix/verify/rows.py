"""What each row of a subject gives: the parameters of its key and its offers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache

from failure_matrix.catalogue.model import Catalogue, Scalar, Sql
from failure_matrix.catalogue.sql import identifiers, statement
from failure_matrix.database.answers import Request, Value
from failure_matrix.database.classify import KeyText
from failure_matrix.database.connection import Connection
from failure_matrix.database.relations import store_relations


def with_stores(catalogue: Catalogue, text: str) -> Sql:
    """SQL that asks, with the stores that it names as relations before it."""
    return _with_stores(tuple(catalogue.stores), text)


@lru_cache(maxsize=4096)
def _with_stores(stores: tuple[str, ...], text: str) -> Sql:
    names = identifiers(text)
    items = store_relations(store for store in stores if store in names)
    return Sql(text=f"WITH {', '.join(items)}\n{text}" if items else text)


def bound(sql: Sql, sources: Mapping[str, Value]) -> tuple[str, list[Value]]:
    """The statement as it is sent, and its values. Raises KeyError for a parameter without a source."""
    prepared = statement(sql)
    return prepared.text, [sources[name] for name in prepared.parameters]


def rows_of(
    catalogue: Catalogue, subject: str, connection: Connection, sources: Mapping[str, Value]
) -> Iterator[tuple[KeyText, dict[str, Scalar]]]:
    """Each key with the parameters that its row gives, NULLs left out; in a stable order. Raises ServerError."""
    noun = catalogue.subjects[subject]
    columns = ", ".join(f"({column})::text" for column in (*noun.key.values(), *noun.offers.values()))
    names = (*noun.key, *noun.offers)
    asked = with_stores(catalogue, f"SELECT {columns} FROM {noun.from_.text}")
    text, values = bound(asked, sources)
    found = connection.execute(Request(text=text, values=values, prepared="rows", bare=True))
    for row in sorted(found.rows, key=str):
        given: dict[str, Scalar] = {name: value for name, value in zip(names, row, strict=True) if value is not None}
        yield tuple(value or "" for value in row[: len(noun.key)]), given
