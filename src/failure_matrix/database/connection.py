"""One connection over libpq, asked at once (``query``) or sent to and read piecemeal (``send``, ``receive``)."""

from __future__ import annotations

import select
from collections.abc import Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import cast

from psycopg import pq
from psycopg.errors import OperationalError

from failure_matrix.catalogue.findings import CouldNot

Value = str | int | Decimal | bool | None

_INT, _BIGINT, _BOOL, _UNTYPED = 23, 20, 16, 0  # pg_type oids
_COPY = {pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT, pq.ExecStatus.COPY_BOTH}
_ERROR = {pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE}
_FIELD = pq.DiagnosticField


@dataclass(frozen=True, kw_only=True)
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


@dataclass(kw_only=True)
class _Pending:
    results: list[Result] = field(default_factory=list)
    error: ServerError | None = None


class Connection:
    """A backend of ours. Text in, text out; nothing is prepared behind the caller's back."""

    def __init__(self, conninfo: str, name: str) -> None:
        self.name = name
        self._pg = pq.PGconn.connect(conninfo.encode())
        if self._pg.status != pq.ConnStatus.OK:
            raise CouldNot("connect to PostgreSQL", self._pg.get_error_message().strip())
        self._pg.nonblocking = 1
        self._notices: list[str] = []
        self._pg.notice_handler = self._hear
        self._pending: _Pending | None = None
        self._prepared: set[str] = set()
        self.pid = self._pg.backend_pid
        self.lost = False

    def _hear(self, result: pq.abc.PGresult) -> None:
        self._notices.append(_text(result.error_field(_FIELD.MESSAGE_PRIMARY)))

    @property
    def socket(self) -> int:
        return self._pg.socket

    @property
    def busy(self) -> bool:
        """Something was sent and not all of its answer has been received."""
        return self._pending is not None

    @property
    def in_transaction(self) -> bool:
        """The last answer left a transaction open, failed ones included."""
        status = pq.TransactionStatus
        return not self.lost and self._pg.transaction_status in (status.INTRANS, status.INERROR)

    @property
    def in_failed_transaction(self) -> bool:
        return not self.lost and self._pg.transaction_status == pq.TransactionStatus.INERROR

    def send(self, text: str, values: Sequence[Value] = ()) -> None:
        """Send without waiting for the answer. With ``values`` it must be one statement."""
        self._pending = _Pending()
        try:
            if values:
                self._pg.send_query_params(
                    text.encode(), [_encode(value) for value in values], [_oid(value) for value in values]
                )
            else:
                self._pg.send_query(text.encode())
            while self._pg.flush():
                pass
        except OperationalError:
            self._lose()

    def receive(self) -> Answer | None:
        """Read what has arrived; the answer once it is whole (ReadyForQuery), else None."""
        pending = self._pending
        if pending is None:
            return None
        if not self.lost:
            self._read(pending)
        if self._pending is not None and not self.lost:
            return None
        self._pending = None
        notices, self._notices = tuple(self._notices), []
        return Answer(results=tuple(pending.results), error=pending.error, notices=notices, lost=self.lost)

    def _read(self, pending: _Pending) -> None:
        try:
            self._pg.consume_input()
        except OperationalError:
            self._lose()
        while self.lost or not self._pg.is_busy():
            result = self._pg.get_result()
            if result is None:
                if self._pg.status == pq.ConnStatus.BAD:
                    self._lose()
                self._pending = None
                return
            self._take(result, pending)

    def _take(self, result: pq.abc.PGresult, pending: _Pending) -> None:
        if result.status in _COPY:
            self._end_copy(result.status)
        elif result.status in _ERROR:
            if pending.error is None:  # a lost connection says a second, vaguer thing
                pending.error = _server_error(result)
        elif result.status != pq.ExecStatus.EMPTY_QUERY:
            pending.results.append(_result(result))

    def _end_copy(self, status: int) -> None:
        if status == pq.ExecStatus.COPY_IN:
            self._pg.put_copy_end(b"a step sends no COPY data")
            while self._pg.flush():
                pass
            return
        length = 1
        while length > 0:
            length, _ = self._pg.get_copy_data(0)

    def _lose(self) -> None:
        self.lost = True

    def query(self, text: str, values: Sequence[Value] = ()) -> Result:
        """Ask and wait for the answer; its last result. Raises ServerError."""
        if values:
            result = self._pg.exec_params(
                text.encode(), [_encode(value) for value in values], [_oid(value) for value in values]
            )
        else:
            result = self._pg.exec_(text.encode())
        self._notices.clear()
        if result.status in _ERROR:
            raise _server_error(result)
        return _result(result)

    def prepare(self, name: str, text: str, values: Sequence[Value] = ()) -> None:
        """Prepare ``text``, which runs nothing; the types are those of ``values``. Raises ServerError."""
        result = self._pg.prepare(name.encode(), text.encode(), [_oid(value) for value in values])
        if result.status in _ERROR:
            raise _server_error(result)

    def execute(self, name: str, text: str, values: Sequence[Value]) -> Result:
        """Run ``text``, prepared under ``name`` the first time: planned once. Raises ServerError."""
        if name not in self._prepared:
            self.prepare(name, text, values)
            self._prepared.add(name)
        encoded = cast("list[bytes]", [_encode(value) for value in values])  # NULLs too, whatever the stubs say
        result = self._pg.exec_prepared(name.encode(), encoded)
        if result.status in _ERROR:
            raise _server_error(result)
        return _result(result)

    def cancel(self) -> None:
        """Ask the server to cancel what runs here."""
        self._pg.get_cancel().cancel()

    def wait_for_end(self) -> None:
        """Wait until the backend has exited, which closes the socket: only then are its locks free."""
        while not self.lost:
            select.select([self._pg.socket], [], [])
            try:
                self._pg.consume_input()
            except OperationalError:
                self._lose()
            else:
                self._pg.is_busy()  # parses what has arrived, the farewell of the backend

    def close(self) -> None:
        self._pg.finish()
        self.lost = True


def _encode(value: Value) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, bool):
        return b"true" if value else b"false"
    return str(value).encode()


def _oid(value: Value) -> int:
    if isinstance(value, bool):
        return _BOOL
    if isinstance(value, int):
        return _INT if -(2**31) <= value < 2**31 else _BIGINT
    return _UNTYPED


def _text(raw: bytes | None) -> str:
    return "" if raw is None else raw.decode(errors="replace")


def _server_error(result: pq.abc.PGresult) -> ServerError:
    position = _text(result.error_field(_FIELD.STATEMENT_POSITION))
    return ServerError(
        severity=_text(result.error_field(_FIELD.SEVERITY_NONLOCALIZED)) or "FATAL",
        sqlstate=_text(result.error_field(_FIELD.SQLSTATE)) or "08006",
        message=_text(result.error_field(_FIELD.MESSAGE_PRIMARY)) or "the connection was lost",
        constraint=_text(result.error_field(_FIELD.CONSTRAINT_NAME)) or None,
        position=int(position) if position else None,
    )


def _result(result: pq.abc.PGresult) -> Result:
    columns = tuple(_text(result.fname(i)) for i in range(result.nfields))
    rows = tuple(
        tuple(None if (raw := result.get_value(r, c)) is None else _text(raw) for c in range(result.nfields))
        for r in range(result.ntuples)
    )
    types = tuple(result.ftype(i) for i in range(result.nfields))
    affected = result.command_tuples
    return Result(tag=_text(result.command_status), affected=affected, columns=columns, types=types, rows=rows)
