"""Which situations are equal: where nothing that a try can depend on differs, none need be swept again."""

from __future__ import annotations

import hashlib

from failure_matrix.database.classify import Inventory
from failure_matrix.database.connection import Connection, Value

_TABLES = """
SELECT string_agg(format('SELECT %L || (matrix_row.*)::text AS one FROM %s AS matrix_row', relation, relation),
                  ' UNION ALL ' ORDER BY relation)
  FROM (SELECT oid::regclass::text AS relation FROM pg_class
         WHERE oid >= 16384 AND relkind = 'r' AND relpersistence <> 't') AS tables
"""


def signature(connection: Connection, now: Value, inventory: Inventory) -> str:
    """Everything that a try can depend on: rows, clock and files; not when a file was written."""
    parts = connection.query(_TABLES).rows[0][0]
    rows = connection.query(f"SELECT string_agg(one, ';' ORDER BY one) FROM ({parts}) AS rows").rows if parts else ()
    files = [(store, file["name"], file["sha256"]) for store, found in inventory.items() for file in found]
    return hashlib.sha256(repr((rows, now, files)).encode()).hexdigest()
