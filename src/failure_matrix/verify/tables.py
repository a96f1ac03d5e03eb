"""What the schema says of the tables that the population probe fills: in which order, and what must be given."""

from __future__ import annotations

from collections.abc import Iterable
from graphlib import CycleError, TopologicalSorter

from failure_matrix.catalogue.model import Catalogue, Scalar
from failure_matrix.database.connection import Connection
from failure_matrix.verify.prepare import relation

# Columns of the primary key that have no default and are not made by the server.
_KEYS = """
SELECT attname, typcategory, typname FROM pg_index
  JOIN pg_attribute ON attrelid = indrelid AND attnum = ANY (indkey)
  JOIN pg_type ON pg_type.oid = atttypid
 WHERE indrelid = $1::regclass AND indisprimary AND NOT atthasdef AND attidentity = ''
 ORDER BY attnum
"""

_REFERS = """
SELECT count(*) FROM pg_constraint
 WHERE contype = 'f' AND conrelid = $1::regclass AND confrelid = $2::regclass AND conrelid <> confrelid
"""

_DEFERRABLE = "SELECT count(*) FROM pg_constraint WHERE condeferrable"

_BY_NAME: dict[str, Scalar] = {"uuid": "00000000-0000-0000-0000-000000000001"}  # pg_type.typname -> a value
_BY_CATEGORY: dict[str, Scalar] = {"N": 1, "B": False, "D": "2000-01-01", "T": "1 second"}  # pg_type.typcategory


def parents_first(connection: Connection, tables: Iterable[str]) -> list[str]:
    """The tables so that a foreign key finds its row; where they refer to each other in a circle, as they stand."""
    named = list(tables)
    graph = {
        child: [parent for parent in named if parent != child and _refers(connection, child, parent)] for child in named
    }
    try:
        return list(TopologicalSorter(graph).static_order())
    except CycleError:
        return named


def _refers(connection: Connection, child: str, parent: str) -> bool:
    return connection.query(_REFERS, [relation(child), relation(parent)]).rows[0][0] != "0"


def keys_to_give(catalogue: Catalogue, connection: Connection, table: str) -> dict[str, Scalar]:
    """A value for each column of a table's primary key that would have none; one that scenarios use, where they do."""
    found: dict[str, Scalar] = {}
    for name, category, type in connection.query(_KEYS, [relation(table)]).rows:
        column = str(name)
        sample = _BY_NAME.get(str(type), _BY_CATEGORY.get(str(category), "a"))
        given = (
            row[column]
            for each in catalogue.scenarios.values()
            for row in each.given.tables.get(table, ())
            if column in row
        )
        found[column] = next(given, sample)
    return found


def has_deferrable(connection: Connection) -> bool:
    """Whether a constraint may be looked at as late as the commit."""
    return connection.query(_DEFERRABLE).rows[0][0] != "0"
