"""Where a scenario rests, and when two such places are equal: where nothing that a try can depend on differs."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass

from failure_matrix.database.answers import Value
from failure_matrix.database.classify import Situation
from failure_matrix.database.connection import Connection
from failure_matrix.database.relations import Inventory
from failure_matrix.verify.judge import Standing

_TABLES = """
SELECT string_agg(format('SELECT %L || (matrix_row.*)::text AS one FROM %s AS matrix_row', relation, relation),
                  ' UNION ALL ' ORDER BY relation)
  FROM (SELECT oid::regclass::text AS relation FROM pg_class
         WHERE oid >= 16384 AND relkind = 'r' AND relpersistence <> 't') AS tables
"""

_LOCKS = """
SELECT string_agg(concat_ws(',', classid, objid, objsubid, mode), ';' ORDER BY classid, objid, objsubid, mode)
  FROM pg_locks
 WHERE locktype = 'advisory' AND database = (SELECT oid FROM pg_database WHERE datname = current_database())
"""


@dataclass(frozen=True, kw_only=True)
class Rest:
    """What there is when no session holds a transaction open."""

    now: Value
    inventory: Inventory
    locks: str | None  # advisory locks that sessions hold all the same
    situation: Situation
    standing: Standing


def held_locks(connection: Connection) -> str | None:
    """The advisory locks that are held, by whomever; None where none is."""
    return connection.query(_LOCKS).rows[0][0]


def signature(connection: Connection, rest: Rest) -> str:
    """Everything that a try can depend on: rows, clock, files, locks; not when a file was written."""
    parts = connection.query(_TABLES).rows[0][0]
    rows = connection.query(f"SELECT string_agg(one, ';' ORDER BY one) FROM ({parts}) AS rows").rows if parts else ()
    files = [(store, file["name"], file["sha256"]) for store, found in rest.inventory.items() for file in found]
    return hashlib.sha256(repr((rows, rest.now, files, rest.locks)).encode()).hexdigest()
