"""What is sent to a server and what comes back: requests, results, errors, in text and in libpq's terms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from typing import cast

from psycopg import pq

Value = str | int | Decimal | bool | None

_INT, _BIGINT, _BOOL, _UNTYPED = 23, 20, 16, 0  # pg_type oids
_FIELD = pq.DiagnosticField


@dataclass(kw_only=True, eq=False)  # not frozen: Python hangs its traceback on it
class ServerError(Exception):
    """What the server said: severity, SQLSTATE, primary message and constraint, nothing else."""

    severity: str
    sqlstate: str
    message: str
    constraint: str | None = None
    position: int | None = None  # character of the statement, from 1

    def __str__(self) -> str:
        return f"{self.severity} {self.sqlstate}: {self.message}"


@dataclass(frozen=True, kw_only=True)
class Result:
    """One statement's result. ``affected`` is the server's count of rows, returned rows included."""

    tag: str
    affected: int | None = None
    columns: tuple[str, ...] = ()
    types: tuple[int, ...] = ()  # pg_type oids of the columns
    rows: tuple[tuple[str | None, ...], ...] = ()  # the server's text


@dataclass(frozen=True, kw_only=True)
class Answer:
    """Everything that a connection said to one request, in order."""

    results: tuple[Result, ...] = ()
    error: ServerError | None = None
    notices: tuple[str, ...] = ()
    lost: bool = False  # the connection ended

    @property
    def last(self) -> Result | None:
        return self.results[-1] if self.results else None


@dataclass(frozen=True, kw_only=True)
class Request:
    """One statement to send; with ``prepared`` it is planned once under that name, ``bare`` wants its rows alone."""

    text: str
    values: Sequence[Value] = ()
    prepared: str | None = None
    bare: bool = False

    @cached_property
    def encoded(self) -> list[bytes]:
        """The values as they are sent."""
        return encoded(self.values)

    @cached_property
    def types(self) -> tuple[int, ...]:
        """The types that the values are sent with."""
        return tuple(oids(self.values))


def encoded(values: Sequence[Value]) -> list[bytes]:
    """Values as they are sent: the server's own text, None for NULL, whatever the stubs of libpq say."""
    return cast("list[bytes]", [_encoded(value) for value in values])


def _encoded(value: Value) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return b"true" if value else b"false"
    return str(value).encode()


def oids(values: Sequence[Value]) -> list[int]:
    """The types that values are sent with; text is untyped, for the server to decide."""
    return [_oid(value) for value in values]


def _oid(value: Value) -> int:
    if isinstance(value, bool):
        return _BOOL
    if isinstance(value, int):
        return _INT if -(2**31) <= value < 2**31 else _BIGINT
    return _UNTYPED


def text_of(raw: bytes | None) -> str:
    """What the server wrote, nothing for NULL."""
    return "" if raw is None else raw.decode(errors="replace")


def server_error(result: pq.abc.PGresult) -> ServerError:
    """The error that a result is."""
    position = text_of(result.error_field(_FIELD.STATEMENT_POSITION))
    return ServerError(
        severity=text_of(result.error_field(_FIELD.SEVERITY_NONLOCALIZED)) or "FATAL",
        sqlstate=text_of(result.error_field(_FIELD.SQLSTATE)) or "08006",
        message=text_of(result.error_field(_FIELD.MESSAGE_PRIMARY)) or "the connection was lost",
        constraint=text_of(result.error_field(_FIELD.CONSTRAINT_NAME)) or None,
        position=int(position) if position else None,
    )


def result_of(result: pq.abc.PGresult, *, bare: bool = False) -> Result:
    """The rows that a result has, and unless it is to be ``bare`` what they are."""
    width, value = result.nfields, result.get_value
    rows = tuple([tuple([_cell(value(r, c)) for c in range(width)]) for r in range(result.ntuples)])
    if bare:
        return Result(tag="", rows=rows)
    columns = tuple([text_of(result.fname(i)) for i in range(width)])
    types = tuple([result.ftype(i) for i in range(width)])
    tag, affected = text_of(result.command_status), result.command_tuples
    return Result(tag=tag, affected=affected, columns=columns, types=types, rows=rows)


def _cell(raw: bytes | None) -> str | None:
    return None if raw is None else raw.decode(errors="replace")


def connection_lost() -> ServerError:
    return ServerError(severity="FATAL", sqlstate="08006", message="the connection was lost")
