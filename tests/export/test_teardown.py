"""What undoes a schema."""

from __future__ import annotations

import pytest

from failure_matrix.catalogue.model import Sql
from failure_matrix.database.cluster import Server
from failure_matrix.database.connection import Connection
from failure_matrix.export.teardown import undo

UNDONE = {
    "CREATE TABLE a (id int)": "DROP TABLE IF EXISTS a CASCADE",
    'CREATE UNLOGGED TABLE IF NOT EXISTS s."A b" (id int)': 'DROP TABLE IF EXISTS s."A b" CASCADE',
    "CREATE OR REPLACE VIEW v AS SELECT 1": "DROP VIEW IF EXISTS v CASCADE",
    "CREATE MATERIALIZED VIEW IF NOT EXISTS m AS SELECT 1": "DROP MATERIALIZED VIEW IF EXISTS m CASCADE",
    "CREATE TYPE mood AS ENUM ('a')": "DROP TYPE IF EXISTS mood CASCADE",
    "CREATE FUNCTION f(a int DEFAULT 1, OUT b numeric(3,1) = 2.0) LANGUAGE sql RETURN 1": (
        "DROP FUNCTION IF EXISTS f( a int , OUT b numeric ( 3 , 1 )) CASCADE"
    ),
    "CREATE SCHEMA s": "DROP SCHEMA IF EXISTS s CASCADE",
    "CREATE EXTENSION IF NOT EXISTS pgcrypto": "DROP EXTENSION IF EXISTS pgcrypto CASCADE",
}
GOES_WITH_OTHERS = [
    "CREATE UNIQUE INDEX i ON a (id)", "CREATE TRIGGER t BEFORE INSERT ON a EXECUTE FUNCTION f()",
    "CREATE POLICY p ON a", "INSERT INTO a VALUES (1)", "ALTER TABLE a ADD COLUMN b int", "COMMENT ON TABLE a IS 'x'",
]  # fmt: skip


@pytest.mark.parametrize(("made", "undone"), UNDONE.items())
def test_what_is_made_is_dropped(made: str, undone: str) -> None:
    assert undo([Sql(text=made, params="none")]) == ((undone,), ())


@pytest.mark.parametrize("text", GOES_WITH_OTHERS)
def test_what_goes_with_its_table_needs_nothing(text: str) -> None:
    assert undo([Sql(text=text)]) == ((), ())


def test_what_nobody_can_undo_is_told() -> None:
    assert undo([Sql(text="DO $$ BEGIN NULL; END $$"), Sql(text="CREATE ROLE r LOGIN")]) == (
        (),
        ("DO $$ BEGIN NULL; END $$", "CREATE ROLE r LOGIN"),
    )


def test_the_last_is_dropped_first_and_bodies_are_not_read_as_statements(server: Server) -> None:
    schema = """
        CREATE SCHEMA s;
        CREATE TABLE s.a (id int);
        CREATE FUNCTION s.f(x int, y text DEFAULT 'a;b') RETURNS int LANGUAGE sql
        BEGIN ATOMIC SELECT CASE WHEN x > 0 THEN 1 ELSE 2 END; SELECT 2; END;
        CREATE PROCEDURE p() LANGUAGE plpgsql AS $$ BEGIN NULL; END $$;
        CREATE VIEW v AS SELECT * FROM s.a;
    """
    drops, lost = undo([Sql(text=schema)])
    assert lost == ()
    assert [drop.split()[1] for drop in drops] == ["VIEW", "PROCEDURE", "FUNCTION", "TABLE", "SCHEMA"]
    name = server.create_database()
    connection = Connection(server.conninfo(name), "teardown")
    for _ in range(2):
        connection.query(schema)
        connection.query(";".join(drops))
    connection.close()
    server.drop_database(name)
