"""Several sessions on one loop: send to one, and see whether each has answered or waits for another.

A session *waits* when every chain of the sessions of ours that block it ends at one that is idle. A blocker
that still runs, or a cycle (a deadlock that the server is about to resolve), is "not yet": so the outcome does
not depend on when one looked. Only blockers of ours count: autovacuum or another database is not waiting on us.
"""

from __future__ import annotations

import select
import time
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.database.answers import Answer, Request
from failure_matrix.database.connection import Connection

FIRST_LOOK, LATEST_FIRST_LOOK = 0.0003, 0.0015  # seconds; most statements have answered by then
LONGEST_PAUSE = 0.005  # seconds between two looks
END_LIMIT = 30.0  # seconds that a backend may take to exit
PREPARED = "a prepared transaction"  # what a session waits for where no session holds the lock

_BLOCKERS = """
SELECT pid, array_to_string(pg_blocking_pids(pid), ','), array_to_string(pg_safe_snapshot_blocking_pids(pid), ',')
  FROM unnest($1::int[]) AS pid
"""


@dataclass(frozen=True, kw_only=True)
class Settled:
    """What came of letting things settle: who waits for whom, and who ran out of time."""

    waiting: Mapping[str, tuple[str, ...]]  # session -> the sessions it waits for
    cancelled: frozenset[str] = frozenset()  # ran past the limit and were cancelled


@dataclass(frozen=True, kw_only=True)
class Blockers:
    """Who blocks one backend: by a lock, or because it waits for a safe snapshot."""

    lock: frozenset[int]
    snapshot: frozenset[int]


class Observer:
    """The connection that watches and is never a session."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self._usual = 0.0  # seconds that steps took which nothing held up, the last ones most

    def answered(self, seconds: float) -> None:
        """A step took so long that was not looked at."""
        self._usual += (seconds - self._usual) / 8

    @property
    def patience(self) -> float:
        """How long to wait for an answer before a look: on a busy machine a look too early costs more than it gives."""
        return min(max(2 * self._usual, FIRST_LOOK), LATEST_FIRST_LOOK)

    def blockers(self, pids: Collection[int]) -> dict[int, Blockers]:
        array = "{" + ",".join(map(str, pids)) + "}"
        rows = self.connection.execute(Request(prepared="blockers", text=_BLOCKERS, values=[array], bare=True)).rows
        return {int(pid or 0): Blockers(lock=_pids(lock), snapshot=_pids(snapshot)) for pid, lock, snapshot in rows}

    def end(self, pid: int) -> None:
        """Tell a backend to exit; it may take its time. Raises ServerError."""
        self.connection.query("SELECT pg_terminate_backend($1::int)", [pid])


def _pids(text: str | None) -> frozenset[int]:
    return frozenset(int(pid) for pid in (text or "").split(",") if pid)


def waits_for(pid: int, blockers: Mapping[int, Blockers], idle: Collection[int]) -> frozenset[int] | None:
    """The pids of ours that ``pid`` waits for directly, or None while that can't be said.

    ``blockers`` has an entry for each backend of ours that is busy; ``idle`` are the others of ours.
    Pid 0 stands for a prepared transaction, which is as idle as can be.
    """
    ours = set(blockers) | set(idle) | {0}
    snapshot = blockers[pid].snapshot & ours
    lock = blockers[pid].lock & ours
    if snapshot:
        return snapshot
    if not lock or not all(_settled(blocker, blockers, idle, frozenset({pid})) for blocker in lock):
        return None
    return lock


def _settled(pid: int, blockers: Mapping[int, Blockers], idle: Collection[int], path: frozenset[int]) -> bool:
    if pid == 0 or pid in idle:
        return True
    if pid in path:
        return False
    ours = set(blockers) | set(idle) | {0}
    if blockers[pid].snapshot & ours:
        return True
    own = blockers[pid].lock & ours
    return bool(own) and all(_settled(blocker, blockers, idle, path | {pid}) for blocker in own)


def settle(
    observer: Observer,
    sessions: Mapping[str, Connection],
    proceed: Callable[[str, Answer], None],
    *,
    limit: float,
    until: Collection[str] = (),
) -> Settled:
    """Wait until each session has answered or is seen to wait for another.

    ``proceed(session, answer)`` is called for each answer and may send that session on. After ``limit``
    seconds what still runs is cancelled, after twice that its backend is ended, after three times that its
    connection is dropped; a session that waits for another of ours may wait for ever. ``until`` are
    sessions whose answers are waited for up to the limit even so: a cancel is on its way, or their own lock_timeout.
    Raises ServerError where the observer is lost.
    """
    late = _Late(observer, limit)
    pause, looked = observer.patience, False
    while True:
        _receive(sessions, proceed, pause)
        pending = _pending(sessions)
        if not pending:
            if not looked:
                observer.answered(late.seconds)
            return Settled(waiting={}, cancelled=late.cancelled)
        looked = True
        waiting = _look(observer, sessions, pending)
        if _receive(sessions, proceed, 0):  # something moved while we looked: look again at once
            pause = 0.0
            continue
        if len(waiting) == len(pending) and (set(until).isdisjoint(pending) or late.seconds > limit):
            return Settled(waiting=waiting, cancelled=late.cancelled)
        pause = min(max(2 * pause, FIRST_LOOK), LONGEST_PAUSE)
        late.stop([sessions[name] for name in pending if name not in waiting])


def wait_for_end(connection: Connection) -> None:
    """Wait until a backend that was told to has exited, which closes the socket: only then are its locks free.

    Raises CouldNot where it does not exit.
    """
    until = time.monotonic() + END_LIMIT
    while connection.alive:
        if not select.select([connection.socket], [], [], max(0.0, until - time.monotonic()))[0]:
            raise CouldNot(
                f"end a session: the backend of {connection.name} did not exit within {END_LIMIT:g} s",
                "look at what it runs in pg_stat_activity, and run it again.",
            )


def answers(connections: Iterable[Connection], limit: float) -> None:
    """Wait until each of these has answered, and forget what; ``limit`` seconds in all."""
    until = time.monotonic() + limit
    while pending := [connection for connection in connections if connection.busy and not connection.lost]:
        sockets = [connection.socket for connection in pending]
        if not select.select(sockets, [], [], max(until - time.monotonic(), 0))[0]:
            return
        for connection in pending:
            connection.receive()


def _pending(sessions: Mapping[str, Connection]) -> tuple[str, ...]:
    return tuple([name for name, session in sessions.items() if session.busy])


def _receive(sessions: Mapping[str, Connection], proceed: Callable[[str, Answer], None], timeout: float) -> bool:
    """Read what arrives within ``timeout`` seconds and pass on whole answers; whether there was one."""
    pending = [session for session in sessions.values() if session.busy]
    sockets = [session.socket for session in pending if not session.lost]
    if len(sockets) == len(pending):
        select.select(sockets, [], [], timeout)
    answered = False
    for session in pending:
        if (answer := session.receive()) is not None:
            answered = True
            proceed(session.name, answer)
    return answered


def _look(
    observer: Observer, sessions: Mapping[str, Connection], pending: Collection[str]
) -> dict[str, tuple[str, ...]]:
    names = {session.pid: name for name, session in sessions.items()}
    idle = [session.pid for name, session in sessions.items() if name not in pending and not session.lost]
    blockers = observer.blockers([sessions[name].pid for name in pending])
    waiting = {}
    for name in pending:
        pids = waits_for(sessions[name].pid, blockers, idle)
        if pids is not None:
            waiting[name] = tuple(sorted(names.get(pid, PREPARED) for pid in pids))
    return waiting


class _Late:
    """Stops what runs past the limit, by and by harder: it may catch a cancel, or not look for one."""

    def __init__(self, observer: Observer, limit: float) -> None:
        self._observer = observer
        self._limit = limit
        self._began = time.monotonic()
        self._stopped: dict[str, int] = {}  # session -> how hard so far

    @property
    def seconds(self) -> float:
        return time.monotonic() - self._began

    @property
    def cancelled(self) -> frozenset[str]:
        return frozenset(self._stopped)

    def stop(self, running: Iterable[Connection]) -> None:
        hardest = int(self.seconds / self._limit)
        for session in running:
            hard = self._stopped.get(session.name, 0) + 1
            if hard > hardest:
                continue
            self._stopped[session.name] = hard
            match hard:
                case 1:
                    session.cancel()
                case 2:
                    self._observer.end(session.pid)
                case _:
                    session.close()
