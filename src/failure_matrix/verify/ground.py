"""A database for scenarios, made as new again between them, with connections that are used again.

Emptying what a scenario filled takes a millisecond, a clone of the template twenty and new connections as much
again. So the ground is emptied, tables and sequences as the template had them, and cloned anew only where that
cannot give the same: the schema itself inserted rows, or a scenario changed the schema.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database.answers import Request, Result, ServerError
from failure_matrix.database.classify import Probe
from failure_matrix.database.cluster import Server
from failure_matrix.database.connection import Connection
from failure_matrix.database.waiting import Observer, answers, wait_for_end
from failure_matrix.verify.emptying import Emptying

CLEAN_UP_LIMIT = 1.0  # seconds for a cancelled statement to end before its backend is ended
LOOK_LIMIT = "200ms"  # how long the observer waits behind an ACCESS EXCLUSIVE lock before it could not look
ASK_LIMIT = "30s"  # how long what a catalogue asks of us may run: a predicate can sleep

# Everything that DDL changes, of objects that are not the server's own. pg_class without what TRUNCATE changes.
_SHAPE = """
SELECT md5(string_agg(thing, ';' ORDER BY thing)) FROM (
    SELECT concat_ws(',', 'class', oid, relname, relnamespace, relowner, relkind, relrowsecurity, relforcerowsecurity,
                     relacl, reloptions, relhastriggers, relhasindex, relchecks, relnatts,
                     CASE WHEN relkind = 'm' THEN relfilenode END) AS thing
      FROM pg_class WHERE oid >= 16384 AND relpersistence <> 't' AND relnamespace <> 'pg_toast'::regnamespace
    UNION ALL SELECT concat_ws(',', 'attribute', attrelid, attnum, xmin) FROM pg_attribute
               WHERE attrelid IN (SELECT oid FROM pg_class WHERE oid >= 16384 AND relpersistence <> 't')
    UNION ALL SELECT concat_ws(',', 'sequence', seqrelid, xmin) FROM pg_sequence
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
    UNION ALL SELECT concat_ws(',', 'event trigger', oid, xmin) FROM pg_event_trigger
    UNION ALL SELECT concat_ws(',', 'privileges', oid, xmin) FROM pg_default_acl
    UNION ALL SELECT concat_ws(',', 'setting', setrole, xmin) FROM pg_db_role_setting
               WHERE setdatabase = (SELECT oid FROM pg_database WHERE datname = current_database())
) AS shape
"""

_FILLED = """
SELECT string_agg(oid::regclass::text, ', ' ORDER BY oid) FROM pg_class
 WHERE oid >= 16384 AND relkind = 'r' AND relpersistence <> 't' AND pg_relation_size(oid) > 0
"""

_SEQUENCES = "SELECT format('%I.%I', schemaname, sequencename) FROM pg_sequences ORDER BY 1"

_SETVAL = "SELECT setval($1::regclass, $2::bigint, $3::boolean)"

_PREPARED = "SELECT gid FROM pg_prepared_xacts WHERE database = current_database()"

# TRUNCATE would run these; so such a database is laid anew.
_ON_TRUNCATE = "SELECT count(*) FROM pg_trigger WHERE NOT tgisinternal AND tgtype & 32 <> 0"


class Ground:
    """One database of ours; ``renew`` makes it as the template was."""

    def __init__(self, server: Server, template: str, probe: Probe) -> None:
        self._server = server
        self._template = template
        self.probe = probe
        self._idle: list[Connection] = []  # as good as new, or about to be
        self._change: str | None = None
        self._lay()
        self._sequences = tuple(str(name) for (name,) in self.admin.query(_SEQUENCES).rows)
        self._shape, filled, self._at, _ = self.admin.query(_changed(_SHAPE, self._sequences)).rows[0]
        self._start = self.sequences()
        self._emptying = Emptying(self.admin)
        self._remembered: dict[int, tuple[Catalogue, bool]] = {}
        self._moved: Sequence[tuple[str | None, ...]] = ()
        self._seeded = filled is not None or self._ask(_ON_TRUNCATE) != "0"

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
        if name not in self._watchers or self._watchers[name].lost:
            self._watchers[name] = Connection(self._server.conninfo(self._database), name)
            self._watchers[name].query(
                f"SET lock_timeout = '{LOOK_LIMIT}'; SET statement_timeout = '{ASK_LIMIT}'; SET row_security = off; "
                "SET plan_cache_mode = force_generic_plan"  # to plan for values costs more than it gives
            )
        return self._watchers[name]

    def connection(self, name: str) -> Connection:
        """A connection as good as new, under a session's name. Raises ServerError."""
        while self._idle:
            connection = next((each for each in self._idle if each.name == name), self._idle[0])
            self._idle.remove(connection)
            answers([connection], CLEAN_UP_LIMIT)  # to its DISCARD ALL
            if not connection.alive or connection.busy or connection.in_transaction:
                self._close(connection)
                continue
            if connection.name != name:
                connection.rename(name)
            return connection
        return Connection(self._server.conninfo(self._database), name)

    def give_back(self, connections: Iterable[Connection]) -> None:
        """Take connections back, all at once: what runs is cancelled, what is open rolled back."""
        kept = [connection for connection in connections if not connection.lost]
        if self.admin.lost:  # the database will be dropped, and whoever is connected to it
            for connection in kept:
                connection.close()
            return
        if busy := [connection.pid for connection in kept if connection.busy]:
            self.admin.query(
                "SELECT pg_cancel_backend(pid) FROM unnest($1::int[]) AS pid", [f"{{{','.join(map(str, busy))}}}"]
            )
        answers(kept, CLEAN_UP_LIMIT)
        open = [connection for connection in kept if connection.in_transaction and not connection.busy]
        for connection in open:
            connection.send("ROLLBACK", forget=True)
        answers(open, CLEAN_UP_LIMIT)
        for connection in kept:
            if connection.lost or connection.busy or connection.in_transaction:
                self._close(connection)
            else:
                connection.send(
                    "DISCARD ALL", forget=True
                )  # waited for in ``renew``, which has its own to do meanwhile
                connection.name = connection.first_name
                self._idle.append(connection)

    def _close(self, connection: Connection) -> None:
        if connection.lost:
            return
        self.admin.query("SELECT pg_terminate_backend($1::int)", [connection.pid])
        wait_for_end(connection)  # its locks must be gone before the tables are emptied
        connection.close()

    def renew(
        self, *then: Sequence[Request], as_new: bool = True, any_shape: bool = False
    ) -> list[Result | ServerError | None]:
        """Make the database as the template was, and do ``then`` in it; what came of that, as ``together`` gives it.

        Without ``as_new`` tables may have pages that no row is on; with ``any_shape`` a change of the schema is not
        noticed, see ``same_shape``. It is one round trip where the same tables were filled as the last time. Raises
        ServerError where the new observer is lost too.
        """
        if not self._seeded:
            empty = self._emptying.requests(as_new=as_new)
            back = [Request(text=_SETVAL, values=start) for start in self._moved]
            changed = self._asks(any_shape=any_shape)
            try:
                answers = self.admin.together(empty, back, [changed], *then)
            except ServerError:  # the observer was ended
                answers = [None]
            found = answers[-1 - sum(map(len, then))]
            expected = (None if any_shape else self._shape, self._emptying.left, self._at, "0")
            if isinstance(found, Result) and found.rows[0] == expected:
                self._emptying.emptied(answers[: len(empty)])
                self._forgotten()
                return answers[len(empty) + len(back) + 1 :]
        try:
            renewed = self._emptied()
        except ServerError:  # the observer was ended, or what it asks for is gone
            renewed = False
        if not renewed:
            self._relay()
        self._forgotten()
        return self.admin.together(*then)

    def _forgotten(self) -> None:
        """Wait until idle sessions have let go of all, which others would meet: advisory locks outlive transactions."""
        answers(self._idle, CLEAN_UP_LIMIT)

    def same_shape(self) -> bool:
        """Whether the schema is as the template's."""
        try:
            return bool(self.admin.execute(self._asks(any_shape=False)).rows[0][0] == self._shape)
        except ServerError:  # the observer was ended
            return False

    def _asks(self, *, any_shape: bool) -> Request:
        shape, name = ("SELECT NULL::text", "changed, of any shape") if any_shape else (_SHAPE, "changed")
        return Request(prepared=name, text=_changed(shape, self._sequences), bare=True)

    def _emptied(self) -> bool:
        """Empty what was filled, and set sequences back; whether that makes it as new. Raises ServerError."""
        shape, filled, at, prepared = self.admin.execute(self._asks(any_shape=False)).rows[0]
        if prepared != "0":
            _roll_back_prepared(self.admin)
        if self._seeded or shape != self._shape:
            return False
        if filled is not None:
            self.admin.query(f"TRUNCATE {filled} CASCADE")
            self._emptying.found(filled)
        if at != self._at:
            self.restore(self._start)
            self._moved = self._start
        return True

    def sequences(self) -> Sequence[tuple[str | None, ...]]:
        """Where the sequences stand, for ``restore``."""
        asked = (
            f"SELECT '{_in_string(name)}', last_value::text, is_called::text FROM {name}" for name in self._sequences
        )
        return self.admin.query(" UNION ALL ".join(asked)).rows if self._sequences else ()

    def restore(self, sequences: Sequence[tuple[str | None, ...]]) -> None:
        """Set the sequences back, which no rollback does."""
        for before, now in zip(sequences, self.sequences(), strict=True):
            if now != before:
                self.admin.query(_SETVAL, before)

    def _relay(self) -> None:
        self.close()
        self._lay()

    def remembered(self, catalogue: Catalogue, ask: Callable[[Catalogue, Probe, Connection], bool]) -> bool:
        """What ``ask`` says of the database as it is when it is as new; asked once for each catalogue."""
        kept = self._remembered.get(id(catalogue))
        if kept is None or kept[0] is not catalogue:
            kept = self._remembered[id(catalogue)] = (catalogue, ask(catalogue, self.probe, self.admin))
        return kept[1]

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
        for connection in (*self._idle, *self._watchers.values()):
            connection.close()
        self._idle.clear()
        try:
            self._server.drop_database(self._database)
        except CouldNot:  # a prepared transaction outlives its session
            connection = Connection(self._server.conninfo(self._database), "observer")
            _roll_back_prepared(connection)
            connection.close()
            self._server.drop_database(self._database)


@cache
def _changed(shape: str, sequences: tuple[str, ...]) -> str:
    """What a renewal has to know, in one round trip: shape, filled tables, where sequences stand, what is prepared."""
    at = ", ".join(f"(SELECT concat_ws(',', last_value, is_called) FROM {name})" for name in sequences)
    at = f"array_to_string(ARRAY[{at}]::text[], ';')"
    return f"SELECT ({shape}), ({_FILLED}), {at}, (SELECT count(*) FROM ({_PREPARED}) AS prepared)"


def _roll_back_prepared(connection: Connection) -> None:
    for (name,) in connection.query(_PREPARED).rows:
        connection.query(f"ROLLBACK PREPARED '{_in_string(str(name))}'")


def _in_string(text: str) -> str:
    return text.replace("'", "''")


@contextmanager
def laid(server: Server, template: str, probe: Probe) -> Iterator[Ground]:
    """A ground for the time of the block."""
    ground = Ground(server, template, probe)
    try:
        yield ground
    finally:
        ground.close()
