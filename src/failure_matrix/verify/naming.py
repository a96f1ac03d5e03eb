"""Names for values that differ by nature from run to run, given in order of appearance.

By type: uuid, xid, xid8, pg_lsn, oid of the moment, and timestamps near the run; by equality: our backends' pids.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

_BY_TYPE = {2950: "uuid", 28: "xid", 5069: "xid8", 3220: "lsn", 27: "tid"}  # pg_type oid -> name
_TIMES = {1114: "timestamp", 1184: "timestamptz"}
_PID_TYPES = {20, 23}
_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_NEAR = timedelta(days=1)


class Names:
    """The names of one order of a scenario."""

    def __init__(self, started: datetime) -> None:
        self._started = started
        self._names: dict[tuple[str, str], str] = {}
        self._counts: dict[str, int] = {}
        self._pids: dict[str, str] = {}

    def backend(self, pid: int, session: str) -> None:
        """A backend of ours, whose pid is shown as its session's name."""
        self._pids[str(pid)] = f"pid of {session}"

    def row(self, types: Sequence[int], row: Iterable[str | None]) -> tuple[str | None, ...]:
        """The row with each varying value replaced by its name."""
        return tuple(self._value(type, value) for type, value in zip(types, row, strict=True))

    def known(self, value: str | None) -> str | None:
        """A value without a type, replaced where it has been named before."""
        if value is None:
            return None
        return next((name for (_, text), name in self._names.items() if text == value), value)

    def key(self, value: str) -> str:
        """A key of a subject, which the probe gives as text: named where it is a uuid or was named before."""
        return self._name("uuid", value) if _UUID.fullmatch(value) else self.known(value) or value

    def _value(self, type: int, value: str | None) -> str | None:
        if value is None:
            return None
        if type in _PID_TYPES and value in self._pids:
            return self._pids[value]
        if type in _BY_TYPE:
            return self._name(_BY_TYPE[type], value)
        if type in _TIMES and self._is_near(value):
            return self._name(_TIMES[type], value)
        return value

    def _is_near(self, value: str) -> bool:
        try:
            at = datetime.fromisoformat(value)
        except ValueError:
            return False  # infinity, or a year that Python does not know: the same in every run
        at = at.replace(tzinfo=UTC) if at.tzinfo is None else at
        return abs(at - self._started) < _NEAR

    def _name(self, kind: str, value: str) -> str:
        if (kind, value) not in self._names:
            self._counts[kind] = self._counts.get(kind, 0) + 1
            self._names[kind, value] = f"{kind}-{self._counts[kind]}"
        return self._names[kind, value]
