"""One connection over libpq, asked at once (``query``) or sent to and read piecemeal (``send``, ``receive``)."""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

from psycopg import pq
from psycopg.conninfo import make_conninfo
from psycopg.errors import OperationalError

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.database.answers import (
    Answer,
    Request,
    Result,
    ServerError,
    Value,
    connection_lost,
    encoded,
    oids,
    result_of,
    server_error,
    text_of,
)

_COPY = {pq.ExecStatus.COPY_IN, pq.ExecStatus.COPY_OUT, pq.ExecStatus.COPY_BOTH}
_ERROR = {pq.ExecStatus.FATAL_ERROR, pq.ExecStatus.BAD_RESPONSE}
_GOOD = {pq.ExecStatus.COMMAND_OK, pq.ExecStatus.TUPLES_OK}
_FIELD = pq.DiagnosticField


@dataclass(kw_only=True)
class _Pending:
    forget: bool = False
    results: list[Result] = field(default_factory=list)
    error: ServerError | None = None
    copying: bool = False  # in the middle of COPY TO STDOUT


class Connection:
    """A backend of ours. Text in, text out; nothing is prepared behind the caller's back."""

    def __init__(self, conninfo: str, name: str) -> None:
        self.name = self.first_name = name  # the first is what DISCARD ALL makes it again
        self._pg = pq.PGconn.connect(make_conninfo(conninfo, application_name=name).encode())
        if self._pg.status != pq.ConnStatus.OK:
            raise CouldNot("connect to PostgreSQL", self._pg.get_error_message().strip(), "run it again.")
        self._pg.nonblocking = 1
        self._notices: list[str] = []
        self._pg.notice_handler = self._hear
        self._pending: _Pending | None = None
        self._prepared: dict[tuple[str, tuple[int, ...]], str] = {}  # text and types -> name
        self.pid = self._pg.backend_pid
        self.lost = False

    def _hear(self, result: pq.abc.PGresult) -> None:
        self._notices.append(text_of(result.error_field(_FIELD.MESSAGE_PRIMARY)))

    def rename(self, name: str) -> None:
        """Go by another name until DISCARD ALL. Raises ServerError."""
        self.name = name
        self.query("SELECT set_config('application_name', $1, false)", [name])

    @property
    def socket(self) -> int:
        return self._pg.socket

    @property
    def busy(self) -> bool:
        """Something was sent and not all of its answer has been received."""
        return self._pending is not None

    @property
    def alive(self) -> bool:
        """Whether the backend of an idle connection is still there, as far as it has said."""
        while not self.lost and select.select([self._pg.socket], [], [], 0)[0]:  # first its farewell, then the end
            try:
                self._pg.consume_input()
                self._pg.is_busy()  # parses what has arrived
            except OperationalError:
                self._lose()
            self._notice_loss()
        return not self.lost

    @property
    def in_transaction(self) -> bool:
        """The last answer left a transaction open, failed ones included."""
        status = pq.TransactionStatus
        return not self.lost and self._pg.transaction_status in (status.INTRANS, status.INERROR)

    @property
    def in_failed_transaction(self) -> bool:
        return not self.lost and self._pg.transaction_status == pq.TransactionStatus.INERROR

    def send(self, text: str, values: Sequence[Value] = (), *, forget: bool = False) -> None:
        """Send without waiting for the answer, whose rows ``forget`` drops. With ``values`` it is one statement."""
        self._pending = _Pending(forget=forget)
        try:
            if values:
                self._pg.send_query_params(text.encode(), encoded(values), oids(values))
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
            if pending.copying and not self._drain(pending):
                return
            result = self._pg.get_result()
            if result is None:
                self._pending = None
                break
            self._take(result, pending)
        self._notice_loss()

    def _drain(self, pending: _Pending) -> bool:
        """Throw away what COPY has sent so far; whether that was the end of it."""
        length = 1
        while length > 0 and not self.lost:
            try:
                length, _ = self._pg.get_copy_data(1)
            except OperationalError:
                self._lose()
        pending.copying = length == 0 and not self.lost
        return not pending.copying

    def _take(self, result: pq.abc.PGresult, pending: _Pending) -> None:
        status = result.status
        if status in _GOOD:
            if not pending.forget:
                pending.results.append(result_of(result))
        elif status == pq.ExecStatus.COPY_IN:
            self._refuse_copy()
        elif status in _COPY:
            pending.copying = True
        elif status in _ERROR and pending.error is None:  # a lost connection says a second, vaguer thing
            pending.error = server_error(result)

    def _refuse_copy(self) -> None:
        try:
            self._pg.put_copy_end(b"a step sends no COPY data")
            while self._pg.flush():
                pass
        except OperationalError:
            self._lose()

    def _lose(self) -> None:
        self.lost = True

    def _notice_loss(self) -> None:
        if self._pg.status == pq.ConnStatus.BAD:
            self._lose()

    def query(self, text: str, values: Sequence[Value] = (), *, limit: float | None = None) -> Result:
        """Ask and wait for the answer; its last result. Raises ServerError, also after ``limit`` seconds."""
        self.send(text, values)
        answer = self._wait(limit)
        if answer is None:
            self.cancel()
            if self._wait(limit) is None:
                self.close()
            raise ServerError(severity="ERROR", sqlstate="57014", message=f"no answer within {limit:g} s")
        if answer.error is not None:
            raise answer.error
        if answer.lost:
            raise connection_lost()
        return answer.last or Result(tag="")

    def _wait(self, limit: float | None) -> Answer | None:
        until = None if limit is None else time.monotonic() + limit
        while (answer := self.receive()) is None:
            left = None if until is None else max(0.0, until - time.monotonic())
            if not select.select([self._pg.socket], [], [], left)[0]:
                return None
        return answer

    def _ask(self, ask: Callable[[], pq.abc.PGresult]) -> pq.abc.PGresult:
        """Ask and wait; the good result. Raises ServerError, also where the connection is or gets lost."""
        try:
            result = ask()
        except OperationalError as exc:
            self._lose()
            raise connection_lost() from exc
        self._notices.clear()
        self._notice_loss()
        if result.status in _ERROR:
            raise server_error(result)
        if result.status in _COPY:
            raise self._no_copy()
        return result

    def _no_copy(self) -> ServerError:
        """End a COPY that nobody is there for, and say so."""
        self._lose()  # what it still sends would be taken for the answer to the next question
        self._pg.finish()
        return ServerError(severity="ERROR", sqlstate="0A000", message="COPY to or from the client has no place here")

    def prepare(self, name: str, text: str, values: Sequence[Value] = ()) -> None:
        """Prepare ``text``, which runs nothing; the types are those of ``values``. Raises ServerError."""
        types = oids(values)
        self._ask(lambda: self._pg.prepare(name.encode(), text.encode(), types))

    def execute(self, request: Request) -> Result:
        """Run what is prepared under a name, planned once for each kind of values. Raises ServerError."""
        name = self._prepare_once(request)
        result = self._ask(lambda: self._pg.exec_prepared(name.encode(), request.encoded))
        return result_of(result, bare=request.bare)

    def together(self, *segments: Sequence[Request]) -> list[Result | ServerError | None]:
        """Send several statements at once and wait for all answers, in order: one round trip.

        After one that fails, the rest of its segment does not run and gives None; the next segment does.
        Raises ServerError where the connection is or gets lost.
        """
        names = [[request.prepared and self._prepare_once(request) for request in segment] for segment in segments]
        answers: list[Result | ServerError | None] = []
        if not any(segments):
            return answers
        try:
            self._pg.enter_pipeline_mode()
            for segment, prepared in zip(segments, names, strict=True):
                for request, name in zip(segment, prepared, strict=True):
                    self._send_in_pipeline(request, name)
                self._pg.pipeline_sync()
            for segment in segments:
                answers += [self._next_in_pipeline(bare=request.bare) for request in segment]
                self._wait_for_result()  # of the sync
            self._pg.exit_pipeline_mode()
        except OperationalError as exc:
            self._lose()
            raise connection_lost() from exc
        self._notices.clear()
        return answers

    def _send_in_pipeline(self, request: Request, name: str | None) -> None:
        if name is None:
            self._pg.send_query_params(request.text.encode(), request.encoded, request.types)
        else:
            self._pg.send_query_prepared(name.encode(), request.encoded)

    def _prepare_once(self, request: Request) -> str:
        """The name under which it is prepared: a plan is for one text, and for values of the same types.

        Raises ServerError.
        """
        kind = (request.text, request.types)
        name = self._prepared.get(kind)
        if name is None:
            name = f"{request.prepared} {len(self._prepared) + 1}"
            self.prepare(name, request.text, request.values)
            self._prepared[kind] = name
        return name

    def _next_in_pipeline(self, *, bare: bool) -> Result | ServerError | None:
        answer: Result | ServerError | None = None
        while (result := self._wait_for_result()) is not None:
            if result.status in _ERROR:
                answer = server_error(result)
            elif result.status != pq.ExecStatus.PIPELINE_ABORTED:
                answer = result_of(result, bare=bare)
        return answer

    def _wait_for_result(self) -> pq.abc.PGresult | None:
        while self._pg.flush() or self._pg.is_busy():
            select.select([self._pg.socket], [], [])
            self._pg.consume_input()
        return self._pg.get_result()

    def cancel(self) -> None:
        """Ask the server to cancel what runs here; where it can't be asked, the connection will be seen to be lost."""
        with suppress(OperationalError):
            self._pg.get_cancel().cancel()

    def close(self) -> None:
        self._pg.finish()
        self.lost = True
