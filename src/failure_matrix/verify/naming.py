"""Names for values that differ by nature from run to run, given in order of appearance.

By type: uuid, transaction ids and snapshots, LSNs, oids that the server hands out, and moments near the run; by
equality: our backends' pids. In text, a uuid and a moment tell themselves.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime, timedelta

_BY_TYPE = {2950: "uuid", 28: "xid", 5069: "xid8", 3220: "lsn", 2970: "snapshot", 5038: "snapshot"}  # pg_type oids
_OID, _FIRST_OID = 26, 16384  # lower ones are the server's own, the same everywhere
_DATE = 1082
_PID_TYPES = {23: re.compile(r"[0-9]+"), 1007: re.compile(r"[0-9]+")}  # integer and integer[], as the server makes them
_TEXTS = (25, 1043)  # text, varchar
_UUID = re.compile(r"(?<![0-9A-Za-z])[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?![0-9A-Za-z])")
_MOMENT = re.compile(
    r"(?<![0-9])\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d(?:\.\d+)?(?:Z|[+-]\d\d(?::?\d\d)?)?(?![0-9])", re.ASCII
)
_NUMBER = re.compile(r"(?<![\w.-])[0-9]+(?![\w.-])", re.ASCII)
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

    def kept(self, value: str | None) -> str | None:
        """A value that an earlier answer gave: named where it was named there, or is a pid."""
        if value is None:
            return None
        named = next((name for (_, text), name in self._names.items() if text == value), None)
        return named or self._pids.get(value) or self.text(value)

    def text(self, value: str) -> str:
        """A text with each uuid, and each moment near the run, replaced by its name."""
        return _MOMENT.sub(self._moment, _UUID.sub(lambda match: self._name("uuid", match[0]), value))

    def told(self, value: str) -> str:
        """What a failure tells: a text that may name a pid as well."""
        return _NUMBER.sub(lambda match: self._pids.get(match[0], match[0]), self.text(value))

    def _value(self, type: int, value: str | None) -> str | None:
        if value is None:
            return None
        if type in _PID_TYPES:
            return _PID_TYPES[type].sub(lambda match: self._pids.get(match[0], match[0]), value)
        if type in _BY_TYPE:
            return self._name(_BY_TYPE[type], value)
        if type == _OID and int(value) >= _FIRST_OID:
            return self._name("oid", value)
        if type == _DATE and self._is_near(value):
            return self._name("date", value)
        if type in _TEXTS and value in self._pids:
            return self._pids[value]
        return self.text(value)

    def _moment(self, match: re.Match[str]) -> str:
        return self._name("moment", match[0]) if self._is_near(match[0]) else match[0]

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
