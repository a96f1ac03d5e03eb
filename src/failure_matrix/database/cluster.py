"""A PostgreSQL server for as long as it is needed: the one in the package, an installation's, or a borrowed one."""

from __future__ import annotations

import os
import secrets
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import psycopg
from psycopg import sql
from psycopg.conninfo import make_conninfo

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.database import address, borrowed, guardian, hosting
from failure_matrix.database.keeper import Keeper

Kind = Literal["embedded", "prefix", "dsn"]
Admin = psycopg.Connection[tuple[Any, ...]]

INITDB = (
    "--no-sync", "--no-instructions", "--auth=trust", "--username=postgres", "--encoding=UTF8", "--locale=C",
)  # fmt: skip
SETTINGS = {
    "listen_addresses": "",
    # nothing here is to last
    "fsync": "off",
    "full_page_writes": "off",
    "synchronous_commit": "off",
    "wal_level": "minimal",
    "max_wal_size": "256MB",
    # nothing happens but what the catalogue does, and no process is there that has nothing to do
    "autovacuum": "off",
    "checkpoint_timeout": "1d",
    "jit": "off",
    "max_wal_senders": "0",
    "max_logical_replication_workers": "0",
    "max_connections": "100",
    "max_prepared_transactions": "10",
    "shared_buffers": "64MB",
    "dynamic_shared_memory_type": "mmap",  # in the data directory, so it goes with it
    "timezone": "UTC",
    "log_timezone": "UTC",
    # only what the server itself has to say
    "log_min_messages": "log",
    "log_min_error_statement": "panic",
    "log_checkpoints": "off",
    "log_line_prefix": "",
}
LOOKS = 100  # for backends that exit, a fraction of a millisecond each
COPY = "copy/package/prefix"  # where an installation is copied to, below the temporary directory
PASSED = ("PATH", "LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH")  # of our environment, to the server: no locale, no password


@dataclass(frozen=True, kw_only=True)
class Source:
    """Where the server comes from; with neither ``dsn`` nor ``prefix`` it is the one that came with the package."""

    dsn: str | None = field(default=None, repr=False)  # may hold a password
    prefix: Path | None = None  # an installation with bin/initdb
    start_limit: float = 30.0  # seconds


@dataclass(frozen=True, kw_only=True)
class Server:
    """A running server on which databases of ours may be made."""

    kind: Kind
    version: str  # "18.6"
    major: int
    superuser: bool
    directory: Path  # temporary, ours alone, removed whatever happens
    prefix: str  # with which the name of everything of ours on the server begins
    parameters: Mapping[str, str] = field(repr=False)  # of a connection; may hold a password
    admin: Admin = field(repr=False)
    keeper: Keeper = field(repr=False)

    def conninfo(self, database: str) -> str:
        """Give the connection string for ``database``; it may hold a password."""
        return make_conninfo(**{**self.parameters, "dbname": database})

    def create_database(self, template: str | None = None) -> str:
        """Create a database and return its name.

        It is a copy of ``template``, one of ours that nobody is connected to; else empty, UTF8, sorted by bytes.
        Raises ``CouldNot``.
        """
        name = f"{self.prefix}{secrets.token_hex(4)}"
        command = sql.SQL("CREATE DATABASE {} TEMPLATE {}").format(
            sql.Identifier(name), sql.Identifier(template or "template0")
        )
        if template is None:
            command += sql.SQL(" ENCODING 'UTF8' LOCALE 'C'")
            command += sql.SQL(" LOCALE_PROVIDER libc") if self.major >= 15 else sql.SQL("")
        if self.kind != "dsn" and self.major >= 15:  # half the time, at the price of a checkpoint, which is free here
            command += sql.SQL(" STRATEGY file_copy")
        self._run(command, "create a database")
        return name

    def drop_database(self, name: str) -> None:
        """Drop a database that we made, whoever is connected to it.

        Raises ``CouldNot``.
        """
        if not name.startswith(self.prefix):
            raise ValueError(f"'{name}' is not a database of ours")
        self._wait_until_left(name)
        self._run(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(sql.Identifier(name)), "drop a database")

    def _wait_until_left(self, name: str) -> None:
        """Let backends exit whose connections were closed just now: DROP DATABASE would wait in naps of 100 ms."""
        asked = sql.SQL("SELECT FROM pg_stat_activity WHERE datname = {}").format(sql.Literal(name))
        for _ in range(LOOKS):
            if not self._run(asked, "see who is connected to a database").rowcount:
                return

    def forget_on_death(self, path: Path) -> None:
        """Have the file removed when the server goes or we die, unless ``keep`` takes that back."""
        self.keeper.tell({"remove": str(path.absolute())})

    def keep(self, path: Path) -> None:
        """Take ``forget_on_death`` back."""
        self.keeper.tell({"keep": str(path.absolute())})

    def _run(self, command: sql.Composed, what: str) -> psycopg.Cursor[tuple[Any, ...]]:
        try:
            return self.admin.execute(command)
        except psycopg.Error as exc:
            role = self.admin.info.user
            advice = "run it again." if self.kind != "dsn" else "leave --dsn out to use the embedded server."
            if exc.sqlstate == "42501":  # insufficient_privilege
                advice = "pass --dsn of a role with CREATEDB, or leave it out to use the embedded server."
            elif self.admin.closed:
                advice = "did the server stop, or does SQL of the catalogue end backends? If neither, run it again."
            raise CouldNot(f"{what} as role '{role}'", address.told(exc, self.parameters), advice) from exc


@contextmanager
def serve(source: Source, *, meanwhile: Callable[[], object] = lambda: None) -> Iterator[Server]:
    """Have a server, ours or borrowed, until the end of the ``with`` or of our life; do ``meanwhile`` as it starts.

    Raises ``CouldNot`` when there is none to be had, or when something of ours could not be taken away again.
    """
    if sys.platform == "win32":
        raise CouldNot("start or borrow a PostgreSQL server on Windows", "run it under WSL.")
    if source.dsn is not None:
        with _without("PGTZ", "PGDATESTYLE", "PGGEQO"), _borrow(source.dsn, meanwhile) as server:
            yield server
    else:
        with _without(*(name for name in os.environ if name.startswith("PG"))), _own(source, meanwhile) as server:
            yield server


@contextmanager
def _without(*names: str) -> Iterator[None]:
    """Hide variables from libpq, which sets sessions by them whatever the connection string says."""
    hidden = {name: os.environ.pop(name) for name in names if name in os.environ}
    try:
        yield
    finally:
        os.environ.update(hidden)


@contextmanager
def _own(source: Source, meanwhile: Callable[[], object]) -> Iterator[Server]:
    found = hosting.installation(source.prefix)
    user = hosting.server_user()
    copied = hosting.must_copy(found, user)
    place = hosting.place(user, programs=copied)
    hosting.clear_leftovers(place)
    orders = {
        "parent": str(place),
        "user": None if user is None else {"user": user.uid, "group": user.gid, "extra_groups": []},
        "copy": [(str(found.prefix / part), f"{COPY}/{part}") for part in found.parts] if copied else [],
        "programs": f"{COPY}/bin" if copied else str(found.prefix / "bin"),
        "environment": {"LC_ALL": "C", "TZ": "UTC"} | {name: os.environ[name] for name in PASSED if name in os.environ},
        "initdb": INITDB,
        "settings": SETTINGS | ({"io_method": "sync"} if found.major >= 18 else {}),
        "limit": source.start_limit,
    }
    argv = [sys.executable, "-I", "-S", "-X", f"utf8={sys.flags.utf8_mode}", guardian.__file__]
    with _kept(argv, orders, "start PostgreSQL", meanwhile) as (keeper, ready):
        parameters = {"host": ready["socket"], "port": ready["port"], "user": "postgres"}
        with _connected({**parameters, "dbname": "postgres"}) as admin:
            kind: Kind = "embedded" if source.prefix is None else "prefix"
            prefix = f"matrix_{secrets.token_hex(4)}_"
            yield _server(kind, prefix, address.settled(parameters), admin, keeper, ready)


@contextmanager
def _borrow(dsn: str, meanwhile: Callable[[], object]) -> Iterator[Server]:
    prefix = f"matrix_{secrets.token_hex(4)}_"
    parameters = address.parameters(dsn, prefix.rstrip("_"))
    with _connected(parameters) as admin:
        major = admin.info.server_version // 10000
        if major < hosting.OLDEST:
            raise CouldNot(
                f"use PostgreSQL {major} at {address.spoken(parameters)}: {hosting.OLDEST} is the oldest that will do",
                "pass --dsn of a newer one, or leave it out to use the embedded server.",
            )
        orders = {"parent": str(hosting.place(None, programs=False)), "parameters": parameters, "prefix": prefix}
        argv = [sys.executable, "-P", "-m", borrowed.__name__]
        with _kept(argv, orders, "borrow a server", meanwhile) as (keeper, ready):
            yield _server("dsn", prefix, address.settled(parameters), admin, keeper, ready)


@contextmanager
def _kept(
    argv: list[str], orders: Mapping[str, Any], what: str, meanwhile: Callable[[], object]
) -> Iterator[tuple[Keeper, dict[str, Any]]]:
    """Have a guardian, and its answer that all is ready."""
    keeper = Keeper(argv, orders)
    try:
        meanwhile()
        answer = keeper.answer()
        if "failed" in answer:
            failed = answer["failed"]
            raise CouldNot(f"{what}: {failed['what']}", *_last_words(failed["log"]), hosting.OTHERWISE)
        yield keeper, answer["ready"]
    finally:
        left = keeper.close()
    if left:
        raise CouldNot(f"{what} and take everything away again; left is", *left, "remove it by hand.")


def _last_words(log: list[str]) -> list[str]:
    """Find the line that says why, which "the database system is shut down" may follow."""
    fatal = [line for line in log if line.startswith(("FATAL:", "PANIC:", "initdb: error:"))]
    return [f"its last log line: {line}" for line in (fatal or log)[-1:]]


@contextmanager
def _connected(parameters: Mapping[str, str]) -> Iterator[Admin]:
    try:
        admin = psycopg.connect(make_conninfo(**dict(parameters)), autocommit=True, prepare_threshold=None)
    except psycopg.Error as exc:
        raise CouldNot(
            f"connect to the server at {address.spoken(parameters)}",
            address.told(exc, parameters),
            "check --dsn, or leave it out to use the embedded server.",
        ) from None  # whose text might show the password
    with admin:
        yield admin


def _server(
    kind: Kind, prefix: str, parameters: Mapping[str, str], admin: Admin, keeper: Keeper, ready: Mapping[str, Any]
) -> Server:
    (superuser,) = admin.execute("SELECT rolsuper FROM pg_roles WHERE rolname = current_user").fetchall()[0]
    return Server(
        kind=kind,
        version=(admin.info.parameter_status("server_version") or "").split()[0],
        major=admin.info.server_version // 10000,
        superuser=superuser,
        directory=Path(ready["directory"]),
        prefix=prefix,
        parameters=parameters,
        admin=admin,
        keeper=keeper,
    )
