"""Databases of ours on a server that is not ours: nothing else touched, nothing left, no password shown."""

from __future__ import annotations

import secrets
import traceback
from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote

import psutil  # type: ignore[import-untyped]
import psycopg
import pytest
from psycopg import sql

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.database.address import told
from failure_matrix.database.cluster import Server, Source, serve

Start = Callable[..., Any]  # see conftest
PASSWORD = "se cret/é@:'\\"


@pytest.fixture
def admin(server: Server) -> Iterator[psycopg.Connection[tuple[Any, ...]]]:
    with psycopg.connect(server.conninfo("postgres"), autocommit=True) as connection:
        yield connection


Admin = psycopg.Connection[tuple[Any, ...]]


def databases(admin: Admin, prefix: str = "") -> set[str]:
    query = "SELECT datname FROM pg_database WHERE starts_with(datname, %s)"
    return {name for (name,) in admin.execute(query, [prefix])}


@pytest.fixture
def maker(server: Server, admin: Admin) -> Iterator[str]:
    """The name of a role that may create databases and has to give PASSWORD."""
    name = f"maker_{secrets.token_hex(4)}"
    ((path,),) = admin.execute("SHOW hba_file").fetchall()
    before = admin.execute("SELECT pg_read_file(%s)", [path]).fetchall()[0][0]
    role = sql.Identifier(name)
    admin.execute(sql.SQL("CREATE ROLE {} LOGIN CREATEDB PASSWORD {}").format(role, PASSWORD))
    rewrite(admin, path, f"local all {name} scram-sha-256\n{before}")
    until_asked_for_a_password(server, name)
    yield name
    rewrite(admin, path, before)
    admin.execute(sql.SQL("DROP ROLE {}").format(role))


def rewrite(admin: Admin, path: str, text: str) -> None:
    lines = sql.SQL("COPY (SELECT unnest(string_to_array({}, chr(10)))) TO {}")
    admin.execute(lines.format(text.rstrip("\n"), path))
    admin.execute("SELECT pg_reload_conf()")


def until_asked_for_a_password(server: Server, role: str) -> None:
    for _ in range(1000):  # the server reads its rules again when it gets to it
        try:
            psycopg.connect(server.conninfo("postgres"), user=role).close()
        except psycopg.OperationalError:
            return
    pytest.fail("the server still lets everyone in")


def url(server: Server, role: str, password: str = PASSWORD) -> str:
    host = quote(server.parameters["host"], safe="")
    return f"postgresql://{role}:{quote(password, safe='')}@{host}:{server.parameters['port']}/postgres"


def test_only_databases_of_our_own(server: Server, admin: Admin, maker: str) -> None:
    before = databases(admin)
    with serve(Source(dsn=url(server, maker))) as borrowed:
        assert (borrowed.kind, borrowed.version, borrowed.superuser) == ("dsn", server.version, False)
        template = borrowed.create_database()
        copy = borrowed.create_database(template)
        assert databases(admin) - before == databases(admin, borrowed.prefix) == {template, copy}
        with psycopg.connect(borrowed.conninfo(copy)) as connection:
            row = connection.execute("SELECT current_database(), session_user").fetchone()
        assert row == (copy, maker)
        borrowed.drop_database(copy)
        assert databases(admin, borrowed.prefix) == {template}
        directory = borrowed.directory
        assert directory.is_dir()
    assert databases(admin) == before
    assert not directory.exists()


def test_sessions_are_alike_whatever_the_server_has_set(
    server: Server, admin: Admin, maker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PGTZ", "America/Lima")
    odd = {"timezone": "Asia/Tokyo", "default_transaction_isolation": "serializable", "datestyle": "german"}
    for name, value in odd.items():
        admin.execute(sql.SQL("ALTER ROLE {} SET {} = {}").format(sql.Identifier(maker), sql.Identifier(name), value))
    with (
        serve(Source(dsn=url(server, maker))) as borrowed,
        psycopg.connect(borrowed.conninfo(borrowed.create_database())) as connection,
    ):
        found = [connection.execute(sql.SQL("SHOW {}").format(sql.Identifier(name))).fetchone() for name in odd]
    assert found == [("UTC",), ("read committed",), ("ISO, MDY",)]


def test_dropped_though_connected_and_prepared(server: Server, admin: Admin, maker: str) -> None:
    with serve(Source(dsn=url(server, maker))) as borrowed:
        name = borrowed.create_database()
        connection = psycopg.connect(borrowed.conninfo(name), autocommit=True)
        connection.execute("CREATE TABLE t (x int)")
        connection.execute("BEGIN")
        connection.execute("INSERT INTO t VALUES (1)")
        connection.execute(f"PREPARE TRANSACTION '{name}'")
    assert databases(admin, borrowed.prefix) == set()
    connection.close()


def test_gone_when_killed(server: Server, admin: Admin, maker: str, start_owner: Start) -> None:
    owner = start_owner(dsn=url(server, maker), work="server.create_database()")
    prefix = owner.line()
    assert owner.line() == "worked"
    assert len(databases(admin, prefix)) == 1
    assert len(owner.traces()) == 1
    owner.process.kill()
    assert owner.all_gone() == ""
    assert databases(admin, prefix) == set()
    assert owner.traces() == []


def test_gone_when_killed_while_creating_one(server: Server, admin: Admin, maker: str, start_owner: Start) -> None:
    owner = start_owner(dsn=url(server, maker), work="while True: server.create_database()")
    prefix = owner.line()
    creating = "SELECT FROM pg_stat_activity WHERE usename = %s AND query ~ '^CREATE' AND state = 'active'"
    while not admin.execute(creating, [maker]).fetchall():
        assert owner.process.poll() is None
    owner.process.kill()
    assert owner.all_gone() == ""
    assert databases(admin, prefix) == set()


def test_a_database_that_stays_is_named(server: Server, admin: Admin, maker: str) -> None:
    names = []

    def give_one_away() -> None:
        with serve(Source(dsn=url(server, maker))) as borrowed:
            names.append(borrowed.create_database())
            admin.execute(sql.SQL("ALTER DATABASE {} OWNER TO postgres").format(sql.Identifier(names[0])))

    with pytest.raises(CouldNot) as caught:
        give_one_away()
    name = names[0]
    assert f"database {name}: ERROR 42501: must be owner of database {name}" in caught.value.details
    admin.execute(sql.SQL("DROP DATABASE {}").format(sql.Identifier(name)))


def test_a_role_that_may_not_create(server: Server, admin: Admin, maker: str) -> None:
    admin.execute(sql.SQL("ALTER ROLE {} NOCREATEDB").format(sql.Identifier(maker)))
    with pytest.raises(CouldNot) as caught, serve(Source(dsn=url(server, maker))) as borrowed:
        borrowed.create_database()
    assert caught.value.what == f"create a database as role '{maker}'"
    assert caught.value.details == (
        "ERROR 42501: permission denied to create database",
        "pass --dsn of a role with CREATEDB, or leave it out to use the embedded server.",
    )


def refused(dsn: str) -> str:
    """Everything that could be shown of the error."""
    with pytest.raises(CouldNot) as caught, serve(Source(dsn=dsn)):
        pass
    return "".join(traceback.format_exception(caught.value)) + repr(caught.value)


def test_a_wrong_password(server: Server, maker: str) -> None:
    shown = refused(url(server, maker, "wr0ng"))
    assert "connect to the server at" in shown
    assert "password authentication failed" in shown
    assert "wr0ng" not in shown


@pytest.mark.parametrize(
    "dsn",
    [
        "postgresql://someone:{}@127.0.0.1:1/postgres",  # nobody listens there
        "host=127.0.0.1 port=1 user=someone password={}",
        "postgresql://someone:{}/tail@127.0.0.1/postgres",  # not encoded: becomes a port
        "postgresql://someone:x@{}@127.0.0.1/postgres",  # not encoded: becomes a host
        "postgresql://someone:{}%zz@127.0.0.1/postgres",
        "postgresql://127.0.0.1/postgres?password={}&nonsense=1",
        "host=127.0.0.1 port=1 password='{}",
        "host=127.0.0.1 {}",
        "host=127.0.0.1 port={}",
        "{}",
    ],
)
def test_no_password_in_any_message(dsn: str) -> None:
    shown = refused(dsn.format("s3cret"))
    assert "could not connect to the server" in shown or "could not read --dsn" in shown
    assert "s3cret" not in shown


@pytest.mark.parametrize("form", ["s3 cret/", "s3%20cret%2F", "s3+cret%2F"])
def test_no_password_in_what_libpq_says(form: str) -> None:
    exc = psycopg.OperationalError(f"connection failed:\n  for {form} at last\n")
    assert told(exc, {"password": "s3 cret/"}) == "connection failed:; for *** at last"


def test_no_password_for_others_to_see(server: Server, maker: str) -> None:
    source = Source(dsn=url(server, maker))
    with serve(source) as borrowed:
        (guardian,) = (child for child in psutil.Process().children() if "borrowed" in " ".join(child.cmdline()))
        seen = [*guardian.cmdline(), *guardian.environ().values(), repr(borrowed), repr(source)]
        assert not [text for text in seen if PASSWORD in text or quote(PASSWORD, safe="") in text]


def test_nobody_there() -> None:
    shown = refused("host=127.0.0.1 port=1")
    assert "could not connect to the server at '127.0.0.1' port 1" in shown
    assert "check --dsn, or leave it out to use the embedded server." in shown
