"""How tables that scenarios fill are made empty again: as new, or just so that nobody can tell the difference.

TRUNCATE gives new files, and every backend has to plan anew what it has planned: with that it is the most of what
a short order costs. DELETE leaves the rows that are dead where they are, and new ones come after them, in the same
order as in a new table, as long as there is room for all on the first page and the server sees no reason to tidy it.
So DELETE will do for tables that nothing hangs on, until about half of that page is used.
"""

from __future__ import annotations

from collections.abc import Sequence

from failure_matrix.database.answers import Request, Result, ServerError
from failure_matrix.database.connection import Connection

HALF_A_PAGE = 3500  # bytes; a page has 8192, and is tidied when it is nearly full
_ITEM = 4  # bytes that a row takes on its page beside itself

# Nothing happens when a row goes: no trigger, foreign key, rule or policy; and no table is a part of another.
_PLAIN = """
SELECT oid::regclass::text FROM pg_class
 WHERE oid >= 16384 AND relkind = 'r' AND relpersistence = 'p'
   AND NOT (relhastriggers OR relhasrules OR relhassubclass OR relispartition OR relrowsecurity)
   AND oid NOT IN (SELECT inhrelid FROM pg_inherits)
"""


class Emptying:
    """Empties the tables of one database that were found filled before."""

    def __init__(self, connection: Connection) -> None:
        self._plain = frozenset(str(table) for (table,) in connection.query(_PLAIN).rows)
        self._tables: tuple[str, ...] = ()
        self._used: dict[str, int] = {}  # bytes of the first page, as far as rows that were there at the end tell
        self._deletes = False

    def found(self, filled: str) -> None:
        """These were filled, and are empty and as new now."""
        self._tables = tuple(filled.split(", "))
        self._used = dict.fromkeys(self._tables, 0)

    def requests(self, *, as_new: bool) -> list[Request]:
        """What empties them."""
        small = all(table in self._plain and self._used[table] <= HALF_A_PAGE for table in self._tables)
        self._deletes = small and not as_new
        if not self._tables:
            return []
        if not self._deletes:
            return [Request(text=f"TRUNCATE {', '.join(self._tables)} CASCADE")]
        return [
            Request(
                prepared=f"empty {table}",
                text=f"DELETE FROM {table} AS gone RETURNING gone.ctid, pg_column_size(gone.*)",
                bare=True,
            )
            for table in self._tables
        ]

    @property
    def left(self) -> str | None:
        """The tables that are not as new afterwards, as a renewal finds them."""
        return ", ".join(self._tables) if self._deletes and self._tables else None

    def emptied(self, answers: Sequence[Result | ServerError | None]) -> None:
        """Take what came of ``requests``."""
        if not self._deletes:
            self._used = dict.fromkeys(self._tables, 0)
            return
        for table, answer in zip(self._tables, answers, strict=True):
            rows = answer.rows if isinstance(answer, Result) else ()
            self._used[table] = max([self._used[table], *(_end(str(at), int(size or 0)) for at, size in rows)])


def _end(at: str, size: int) -> int:
    """How far a page is filled, if all rows before this one are like it; too far where it is not the first page."""
    page, item = at.strip("()").split(",")
    return int(item) * (size + _ITEM) if page == "0" else HALF_A_PAGE + 1
