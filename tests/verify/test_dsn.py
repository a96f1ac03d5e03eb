"""``matrix verify --dsn`` from end to end: the same evidence, and nothing of the other server is touched."""

from __future__ import annotations

import json
import secrets
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psycopg
import pytest
from psycopg import sql

from failure_matrix.catalogue.load import load
from failure_matrix.cli.main import main
from failure_matrix.database.cluster import Server
from failure_matrix.evidence import files
from failure_matrix.verify import verify

WHAT_IS_THERE = """
SELECT 'database', oid, datname, datdba, datacl::text, datconnlimit FROM pg_database
UNION ALL SELECT 'role', oid, rolname, NULL, rolconfig::text, rolconnlimit FROM pg_roles
UNION ALL SELECT 'relation', oid, relname, relowner, relacl::text, relnatts FROM pg_class
ORDER BY 1, 2
"""
ENDS_ALL = """
      - in: A
        sql: >-
          SELECT pg_terminate_backend(pid) FROM pg_stat_activity
          WHERE usename = session_user AND pid <> pg_backend_pid()
"""

Admin = psycopg.Connection[tuple[Any, ...]]


@pytest.fixture
def admin(server: Server) -> Iterator[Admin]:
    with psycopg.connect(server.conninfo("postgres"), autocommit=True) as connection:
        yield connection


@pytest.fixture
def roles(admin: Admin) -> Iterator[dict[str, str]]:
    """A role that may create databases, and one that may not; neither is a superuser."""
    made = {right: f"role_{secrets.token_hex(4)}" for right in ("CREATEDB", "NOCREATEDB")}
    for right, name in made.items():
        admin.execute(sql.SQL("CREATE ROLE {} LOGIN {}").format(sql.Identifier(name), sql.SQL(right)))
    yield made
    for name in made.values():
        admin.execute(sql.SQL("DROP ROLE {}").format(sql.Identifier(name)))


@pytest.fixture
def catalogue(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Path:
    monkeypatch.chdir(tmp_path)
    for name in ("MATRIX_DSN", "MATRIX_POSTGRES_PREFIX", "PGPASSWORD"):
        monkeypatch.delenv(name, raising=False)
    assert main(["init"]) == 0
    capsys.readouterr()
    return tmp_path / "matrix" / "queue.yaml"


def dsn(server: Server, role: str) -> str:
    return f"postgresql://{role}@{quote(server.parameters['host'], safe='')}:{server.parameters['port']}/postgres"


def there(admin: Admin) -> list[tuple[Any, ...]]:
    return admin.execute(WHAT_IS_THERE).fetchall()


@pytest.mark.usefixtures("catalogue")
def test_the_evidence_is_that_of_a_server_of_our_own(server: Server, admin: Admin, roles: dict[str, str]) -> None:
    before = there(admin)
    assert main(["verify", "--dsn", dsn(server, roles["CREATEDB"]), "--output", "borrowed.json"]) == 0
    assert there(admin) == before
    borrowed = json.loads(Path("borrowed.json").read_text(encoding="utf-8"))
    own = json.loads(files.text(verify(load(Path("matrix")), server)))
    assert borrowed.pop("run")["server"] == "dsn"
    assert own.pop("run")["server"] == server.kind != "dsn"
    assert borrowed == own


@pytest.mark.usefixtures("catalogue")
def test_a_role_that_may_not_create_databases(
    server: Server, admin: Admin, roles: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    before = there(admin)
    assert main(["verify", "--dsn", dsn(server, roles["NOCREATEDB"])]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith(f"could not create a database as role '{roles['NOCREATEDB']}'\n  ERROR 42501: ")
    assert "CREATEDB" in err
    assert err.endswith("No verdict. Earlier evidence is untouched.\n")
    assert there(admin) == before
    assert not Path(".matrix").exists()


def test_a_server_that_ends_our_connections(
    catalogue: Path, server: Server, admin: Admin, roles: dict[str, str], capsys: pytest.CaptureFixture[str]
) -> None:
    catalogue.write_text(catalogue.read_text(encoding="utf-8").rstrip("\n") + ENDS_ALL, encoding="utf-8")
    before = there(admin)
    assert main(["verify", "--dsn", dsn(server, roles["CREATEDB"])]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.splitlines()[-2:] == [
        "  did the server stop, or does SQL of the catalogue end backends? If neither, run it again.",
        "  No verdict. Earlier evidence is untouched.",
    ]
    assert there(admin) == before
    assert not Path(".matrix").exists()
