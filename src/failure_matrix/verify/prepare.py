"""The database that all others are made like: the catalogue's schema; and what a scenario is given."""

from __future__ import annotations

from collections.abc import Mapping

from failure_matrix.catalogue.findings import CatalogueInvalid, Finding, Severity
from failure_matrix.catalogue.model import Catalogue, Given, Place, Scalar
from failure_matrix.database.answers import Request, ServerError
from failure_matrix.database.cluster import Server
from failure_matrix.database.connection import Connection
from failure_matrix.database.relations import quoted
from failure_matrix.verify.stores import Stores

GIVEN_LIMIT = 60.0  # seconds


class NotGiven(Exception):
    """What is given is not there afterwards. ``str()`` says why."""


def make_template(catalogue: Catalogue, server: Server) -> str:
    """A database with the catalogue's schema. Raises CatalogueInvalid where the server rejects it."""
    name = server.create_database()
    connection = Connection(server.conninfo(name), "schema")
    try:
        for number, sql in enumerate(catalogue.settings.schema_):
            place = catalogue.place("catalogue", "schema", number)
            run_schema(connection, sql.text, place, sql.origin)
    finally:
        connection.close()
    return name


def run_schema(connection: Connection, text: str, place: Place, origin: str | None) -> None:
    """One item of the schema in its own transaction. Raises CatalogueInvalid."""
    of = f" of {origin}" if origin else ""
    try:
        connection.query(text)
    except ServerError as error:
        line = "" if error.position is None else f" at line {text.count(chr(10), 0, error.position) + 1}"
        what = f"PostgreSQL rejects the schema{line}{of}: {error}"
        raise _schema_rejected(place, what, "mend this SQL; each item of schema runs in its own transaction") from error
    if connection.in_transaction:
        hint = "end it with COMMIT, or leave BEGIN out: each item of schema runs in its own transaction"
        raise _schema_rejected(place, f"this item of the schema{of} leaves a transaction open", hint)


def _schema_rejected(place: Place, message: str, hint: str) -> CatalogueInvalid:
    found = Finding(place=place, rule="sql-rejected", severity=Severity.ERROR, message=message, hint=hint)
    return CatalogueInvalid((found,))


def give(connection: Connection, stores: Stores, given: Given) -> None:
    """Run the SQL, insert the rows and write the files. Raises ServerError, NotGiven, EffectRefused."""
    if given.sql is not None:
        connection.query(given.sql.text, limit=GIVEN_LIMIT)
        if connection.in_transaction:
            raise NotGiven("its SQL leaves a transaction open: end it with COMMIT")
    for answer in connection.together(*insertions(given)):
        if isinstance(answer, ServerError):
            raise answer
    put(stores, given)


def insertions(given: Given) -> list[list[Request]]:
    """What inserts the rows, each in a transaction of its own."""
    return [[insertion(table, row)] for table, rows in given.tables.items() for row in rows]


def put(stores: Stores, given: Given) -> None:
    """Write the files. Raises EffectRefused."""
    for store, files in given.files.items():
        for name, content in files.items():
            stores.put(store, name, content.encode())


def insert(connection: Connection, table: str, row: Mapping[str, Scalar]) -> None:
    """One row; a value takes the type of its column. Raises ServerError."""
    request = insertion(table, row)
    connection.query(request.text, request.values)


def insertion(table: str, row: Mapping[str, Scalar]) -> Request:
    """What inserts one row, to send."""
    if not row:
        return Request(text=f"INSERT INTO {relation(table)} DEFAULT VALUES")
    columns = ", ".join(map(quoted, row))
    places = ", ".join(f"${number}" for number in range(1, len(row) + 1))
    values = [_untyped(value) for value in row.values()]
    text = f"INSERT INTO {relation(table)} ({columns}) VALUES ({places})"
    return Request(text=text, values=values, prepared="a row")


def relation(table: str) -> str:
    """A table as SQL names it, its schema before a dot."""
    return ".".join(quoted(part) for part in table.split("."))


def _untyped(value: Scalar) -> str | None:
    if isinstance(value, bool):
        return "true" if value else "false"
    return None if value is None else str(value)
