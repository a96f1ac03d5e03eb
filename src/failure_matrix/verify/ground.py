"""A database for scenarios, made as new again between them, with connections that are used again.

Emptying what a scenario filled takes a millisecond, a clone of the template twenty and new connections as much
again. So the ground is emptied, tables and sequences as the template had them, and cloned anew only where that
cannot give the same: the schema itself inserted rows, or a scenario changed the schema.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.database.classify import Probe
from failure_matrix.database.cluster import Server
from failure_matrix.database.connection import Connection, Request, ServerError
from failure_matrix.database.waiting import Observer, answers

CLEAN_UP_LIMIT = 1.0  # seconds for a cancelled statement to end before its backend is ended
LOOK_LIMIT = "200ms"  # how long the observer waits behind an ACCESS EXCLUSIVE lock before it could not look

# Everything that DDL changes, of objects that are not the server's own. pg_class without what TRUNCATE changes.
_SHAPE = """
SELECT md5(string_agg(thing, ';' ORDER BY thing)) FROM (
    SELECT concat_ws(',', 'class', oid, relname, relnamespace, relowner, relkind, relrowsecurity, relforcerowsecurity,
                     relacl, reloptions, relhastriggers, relhasindex, relchecks, relnatts) AS thing
      FROM pg_class WHERE oid >= 16384 AND relpersistence <> 't' AND relnamespace <> 'pg_toast'::regnamespace
    UNION ALL SELECT concat_ws(',', 'attribute', attrelid, attnum, xmin) FROM pg_attribute
               WHERE attrelid IN (SELECT oid FROM pg_class WHERE oid >= 16384 AND relpersistence <> 't')
    UNION ALL SELECT concat_ws(',', 'proc', oid, xmin) FROM pg_proc WHERE oid >= 16384
    UNION ALL SELECT concat_ws(',', 'type', oid, xmin) FROM pg_type
               WHERE oid >= 16384 AND typnamespace::regnamespace::text !~ '^pg_temp'
    UNION ALL SELECT concat_ws(',', 'enum', oid, xmin) FROM pg_enum
    UNION ALL SELECT concat_ws(',', 'constraint', oid, xmin) FROM pg_constraint WHERE oid >= 16384
    UNION ALL SELECT concat_ws(',', 'trigger', oid, xmin) FROM pg_trigger
    UNION ALL SELECT concat_ws(',', 'policy', oid, xmin) FROM pg_policy
    UNION ALL SELECT concat_ws(',', 'rewrite', oid, xmin) FROM pg_rewrite WHERE oid >= 16384
    UNION ALL SELECT concat_ws(',', 'namespace', oid, xmin) FROM pg_namespace WHERE oid >= 16384 AND nspname !~ '^pg_'
    UNION ALL SELECT concat_ws(',', 'extension', oid, xmin) FROM pg_extension
    UNION ALL SELECT concat_ws(',', 'large object', oid, xmin) FROM pg_largeobject_metadata
) AS shape
"""

_FILLED = """
SELECT string_agg(oid::regclass::text, ', ') FROM pg_class
 WHERE oid >= 16384 AND relkind = 'r' AND relpersistence <> 't' AND pg_relation_size(oid) > 0
"""

_SEQUENCES = """
SELECT format('%I.%I', schemaname, sequencename), start_value::text, last_value::text FROM pg_sequences
 ORDER BY 1
"""


_PREPARED = "SELECT string_agg(gid, ',') FROM pg_prepared_xacts WHERE database = current_database()"

# What a renewal has to know, in one round trip: whether the shape is another, what is filled, where sequences stand.
_CHANGED = f"""
SELECT ({_SHAPE}), ({_FILLED}),
       (SELECT string_agg(concat_ws(',', schemaname, sequencename, last_value), ';'
                          ORDER BY schemaname, sequencename) FROM pg_sequences),
       ({_PREPARED})
"""


class Ground:
    """One database of ours; ``renew`` makes it as the template was."""

    def __init__(self, server: Server, template: str, probe: Probe) -> None:
        self._server = server
        self._template = template
        self.probe = probe
        self._idle: dict[str, Connection] = {}
        self._change: str | None = None
        self._lay()
        self._shape, filled, self._at, _ = self.admin.query(_CHANGED).rows[0]
        self._sequences = self.admin.query(_SEQUENCES).rows
        self._seeded = filled is not None

    def _lay(self) -> None:
        self._database = self._server.create_database(self._template)
        self._watchers: dict[str, Connection] = {}
        self.admin = self.watcher("observer")
        self.observer = Observer(self.admin)
        if self._change is not None:
            self.admin.query(self._change)

    def _ask(self, text: str) -> str | None:
        return self.admin.query(text).rows[0][0]

    def watcher(self, name: str) -> Connection:
        """A connection of our own that lasts as long as the database: never a session, sees every row."""
        if name not in self._watchers:
            self._watchers[name] = Connection(self._server.conninfo(self._database), name)
            self._watchers[name].query(f"SET lock_timeout = '{LOOK_LIMIT}'; SET row_security = off")
        return self._watchers[name]

    def connection(self, name: str) -> Connection:
        """A connection as good as new, under a session's name."""
        if name not in self._idle and self._idle:
            other = self._idle.pop(next(iter(self._idle)))
            other.rename(name)
            return other
        return self._idle.pop(name, None) or Connection(self._server.conninfo(self._database), name)

    def give_back(self, connections: Iterable[Connection]) -> None:
        """Take connections back, all at once: what runs is cancelled, what is open rolled back, the rest forgotten."""
        kept = [connection for connection in connections if not connection.lost]
        if busy := [connection.pid for connection in kept if connection.busy]:
            self.admin.query(
                "SELECT pg_cancel_backend(pid) FROM unnest($1::int[]) AS pid", [f"{{{','.join(map(str, busy))}}}"]
            )
        answers(kept, CLEAN_UP_LIMIT)
        for text, chosen in (("ROLLBACK", [each for each in kept if each.in_transaction]), ("DISCARD ALL", kept)):
            for connection in chosen:
                if not connection.busy:
                    connection.send(text)
            answers(chosen, CLEAN_UP_LIMIT)
        for connection in kept:
            if connection.lost or connection.busy or connection.in_transaction:
                self._close(connection)
            else:
                self._idle[connection.name] = connection

    def _close(self, connection: Connection) -> None:
        if connection.lost:
            return
        self.admin.query("SELECT pg_terminate_backend($1::int)", [connection.pid])
        connection.wait_for_end()  # its locks must be gone before the tables are emptied
        connection.close()

    def renew(self) -> None:
        """Make the database as the template was."""
        try:
            shape, filled, at, prepared = self.admin.execute(Request(prepared="changed", text=_CHANGED)).rows[0]
            for name in prepared.split(",") if prepared else ():
                self.admin.query(f"ROLLBACK PREPARED '{name.replace(chr(39), chr(39) * 2)}'")
            if self._seeded or shape != self._shape:
                self._relay()
                return
            if filled is not None:
                self.admin.query(f"TRUNCATE {filled} CASCADE")
            if at != self._at:
                self.restore(self._sequences)
        except ServerError as error:
            raise CouldNot(f"empty the database between two scenarios: {error}") from error

    def sequences(self) -> Sequence[tuple[str | None, ...]]:
        """Where the sequences stand, for ``restore``."""
        return self.admin.query(_SEQUENCES).rows if self._sequences else ()

    def restore(self, sequences: Sequence[tuple[str | None, ...]]) -> None:
        """Set the sequences back, which no rollback does."""
        for before, now in zip(sequences, self.sequences(), strict=True):
            name, start, last = before
            if now != before:
                self.admin.query(
                    "SELECT setval($1::regclass, $2::bigint, $3::boolean)", [name, last or start, last is not None]
                )

    def _relay(self) -> None:
        self.close()
        self._lay()

    def change(self, sql: str) -> None:
        """Make the database differ from the template by this SQL, until ``undo_change``. Raises ServerError."""
        self.admin.query(sql)
        self._change = sql
        self._unchanged, self._shape = self._shape, self._ask(_SHAPE)

    def undo_change(self) -> None:
        """Be like the template again."""
        self._change, self._shape = None, self._unchanged
        self._relay()

    def close(self) -> None:
        """Drop the database."""
        for connection in (*self._idle.values(), *self._watchers.values()):
            connection.close()
        self._idle.clear()
        self._server.drop_database(self._database)


@contextmanager
def laid(server: Server, template: str, probe: Probe) -> Iterator[Ground]:
    """A ground for the time of the block."""
    ground = Ground(server, template, probe)
    try:
        yield ground
    finally:
        ground.close()
