"""Keeps databases of ours on a server that is not ours, and drops them when their owner is gone.

Runs as a process of its own. Unlike ``guardian`` it needs psycopg; it hears and answers its owner in the same way.
The connection's parameters come as the owner's first line, so that no list of processes shows a password.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from typing import Any

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from failure_matrix.database.address import told
from failure_matrix.database.guardian import Watch, claim

# whoever still works for the owner: a CREATE DATABASE in progress would be seen by nobody
LEAVE = """
SELECT pg_terminate_backend(pid, 10000) FROM pg_stat_activity
WHERE application_name = %(name)s AND usename = current_user AND pid <> pg_backend_pid()
"""
OURS = "SELECT datname FROM pg_database WHERE starts_with(datname, %(prefix)s) ORDER BY datname"
PREPARED = "SELECT gid, database FROM pg_prepared_xacts WHERE starts_with(database, %(prefix)s)"


def drop_all(parameters: Mapping[str, str], prefix: str) -> Iterator[str]:
    """Drop every database whose name starts with ``prefix``; yield what went wrong."""
    name = prefix.rstrip("_")
    mine: dict[str, Any] = {**parameters, "application_name": f"{name} guardian"}
    try:
        with psycopg.connect(make_conninfo(**mine), autocommit=True, prepare_threshold=None) as connection:
            connection.execute(LEAVE, {"name": name})
            for gid, database in connection.execute(PREPARED, {"prefix": prefix}).fetchall():
                with psycopg.connect(make_conninfo(**{**mine, "dbname": database}), autocommit=True) as inside:
                    inside.execute(sql.SQL("ROLLBACK PREPARED {}").format(gid))
            for (database,) in connection.execute(OURS, {"prefix": prefix}).fetchall():
                try:
                    connection.execute(sql.SQL("DROP DATABASE {} WITH (FORCE)").format(sql.Identifier(database)))
                except psycopg.Error as exc:
                    yield f"database {database}: {told(exc, parameters)}"
    except psycopg.Error as exc:
        yield f"databases named {prefix}…: {told(exc, parameters)}"


def main() -> None:
    watch = Watch()
    watch.until(lambda: watch.gone or watch.orders is not None)
    if watch.gone or watch.orders is None:
        return
    orders, root = watch.orders, None
    try:
        root = tempfile.mkdtemp(prefix="matrix-", dir=orders["parent"])
        claim(root)
        watch.report(ready={"directory": root})
        watch.until(lambda: watch.gone)
    except OSError as exc:
        watch.report(failed={"what": str(exc), "log": []})
    finally:
        watch.remove(root, *drop_all(orders["parameters"], orders["prefix"]))


if __name__ == "__main__":
    main()
