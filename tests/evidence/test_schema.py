"""Which statements of a schema make an object, and what it reaches."""

from __future__ import annotations

import pytest

from failure_matrix.evidence.schema import EVERYTHING, Objects, split_statements

BASE = """
CREATE TABLE a (id integer PRIMARY KEY, mood text CHECK (mood <> ''), b integer REFERENCES b ON DELETE CASCADE);
CREATE TABLE b (id integer PRIMARY KEY);
CREATE TABLE c (id integer PRIMARY KEY);
CREATE VIEW seen AS SELECT id FROM a;
CREATE FUNCTION touch() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN UPDATE c SET id = id; RETURN NEW; END $$;
CREATE TRIGGER touched AFTER UPDATE ON a FOR EACH ROW EXECUTE FUNCTION touch();
"""


def changed(before: str, after: str) -> set[str]:
    """The objects whose definitions differ."""
    old, new = Objects([before]), Objects([after])
    return {name for name in old.names | new.names if old.definition(name) != new.definition(name)}


@pytest.mark.parametrize(
    ("name", "reached"),
    [
        ("a", {"a", "b", "c", "touch"}),  # by the foreign key, by the trigger and its function
        ("b", {"b"}),
        ("c", {"c"}),
        ("seen", {"seen", "a", "b", "c", "touch"}),
        ("touch", {"touch", "c"}),
        ("nothing", set()),
    ],
)
def test_what_an_object_reaches(name: str, reached: set[str]) -> None:
    assert Objects([BASE]).reached([name]) == reached


def test_a_check_dropped_changes_its_table_alone() -> None:
    assert changed(BASE, BASE.replace(" CHECK (mood <> '')", "")) == {"a"}


def test_a_foreign_key_changes_both_its_ends() -> None:
    assert changed(BASE, BASE.replace("ON DELETE CASCADE", "ON DELETE RESTRICT")) == {"a", "b"}


def test_comments_and_white_space_change_nothing() -> None:
    spoken = BASE.replace("CREATE TABLE b", "-- b, of; all\n/* a /* nested */ one */ CREATE\n\tTABLE  b")
    assert changed(BASE, spoken + "COMMENT ON TABLE a IS 'a table';") == set()


def test_the_order_of_statements_about_one_object_counts_and_that_of_others_does_not() -> None:
    assert changed("CREATE TABLE x (); CREATE TABLE y ();", "CREATE TABLE y (); CREATE TABLE x ();") == set()
    defaults = "ALTER TABLE x ALTER a SET DEFAULT 1;", "ALTER TABLE x ALTER a SET DEFAULT 2;"
    table = "CREATE TABLE x (a integer);"
    assert changed(table + "".join(defaults), table + "".join(reversed(defaults))) == {"x"}


@pytest.mark.parametrize(
    ("statement", "of"),
    [
        ("ALTER TABLE a ADD COLUMN d integer", {"a"}),
        ("ALTER TABLE IF EXISTS ONLY a ADD COLUMN d integer", {"a"}),
        ("alter table public.a add column d integer", {"a"}),
        ('ALTER TABLE "a" ADD COLUMN d integer', {"a"}),
        ("ALTER TABLE a ADD CONSTRAINT f FOREIGN KEY (id) REFERENCES public.c", {"a", "c"}),
        ("CREATE INDEX ON a (id)", {"a"}),
        ("CREATE UNIQUE INDEX CONCURRENTLY IF NOT EXISTS i ON ONLY public.a (id)", {"a"}),
        ("CREATE TRIGGER t BEFORE INSERT ON a EXECUTE FUNCTION touch()", {"a"}),
        ("CREATE CONSTRAINT TRIGGER t AFTER INSERT ON a FOR EACH ROW EXECUTE FUNCTION touch()", {"a"}),
        ("CREATE POLICY p ON a USING (true)", {"a"}),
        ("CREATE RULE r AS ON INSERT TO a DO INSTEAD NOTHING", {"a"}),
        ("ALTER POLICY p ON a USING (false)", {"a"}),
        ("INSERT INTO a (id) SELECT id FROM c", {"a"}),
        ("UPDATE a SET id = c.id FROM c", {"a", "c"}),
        ("DROP TABLE a", {"a"}),
        ("GRANT SELECT ON a, b TO PUBLIC", {"a", "b"}),
        ("TRUNCATE a", {"a"}),
        ("CREATE OR REPLACE VIEW seen AS SELECT 1", {"seen"}),
        ("CREATE OR REPLACE FUNCTION touch() RETURNS void LANGUAGE sql AS ''", {"touch"}),
        ("CREATE TABLE part PARTITION OF a FOR VALUES IN (1)", {"part", "a"}),
        ("CREATE TABLE heir () INHERITS (public.a, b)", {"heir", "a", "b"}),
        ("CREATE UNLOGGED TABLE IF NOT EXISTS more (id integer)", {"more"}),
        ("CREATE MATERIALIZED VIEW more AS SELECT 1", {"more"}),
        ("CREATE SEQUENCE more", {"more"}),
        ("CREATE TYPE app.more AS ENUM ('a')", {"more"}),
        ('CREATE TABLE "More ""of"" it" (id integer)', {'More "of" it'}),
        ("CREATE TABLE temp (id integer)", {"temp"}),
        ("CREATE EXTENSION IF NOT EXISTS citext", {"citext"}),
        ("SELECT touch()", {EVERYTHING}),
        ("DO $$ BEGIN EXECUTE 'DROP TABLE ' || 'c'; END $$", {EVERYTHING}),
        ("SET search_path = app", {EVERYTHING}),
        ("ALTER DEFAULT PRIVILEGES GRANT SELECT ON TABLES TO PUBLIC", {EVERYTHING}),
        ("SELECT setval('a_id_seq', 7)", {EVERYTHING}),
        ("CREATE SCHEMA app CREATE TABLE t (id integer)", {EVERYTHING}),
        ("CREATE CAST (integer AS text) WITH INOUT", {EVERYTHING}),
    ],
)
def test_a_statement_is_part_of(statement: str, of: set[str]) -> None:
    assert changed(BASE, f"{BASE} {statement};") == of


def test_an_index_is_changed_by_its_own_name() -> None:
    index = BASE + "CREATE INDEX fast ON a (id);"
    assert changed(index, index + "DROP INDEX fast;") == {"a"}
    assert changed(index, index + "ALTER INDEX fast RENAME TO slow;") == {"a"}


def test_everything_rests_on_what_no_object_can_be_held_to() -> None:
    objects = Objects([BASE, "SELECT touch();"])
    assert objects.reached(["b"]) == {"b", EVERYTHING, "touch", "c"}
    assert EVERYTHING not in Objects([BASE]).names


@pytest.mark.parametrize(
    "body",
    [
        "LANGUAGE sql AS 'SELECT count(*) FROM c'",
        "LANGUAGE sql AS $body$ SELECT count(*) FROM c $body$",
        "LANGUAGE plpgsql AS $$ BEGIN EXECUTE 'SELECT ''x'' FROM c'; END $$",
        "LANGUAGE sql BEGIN ATOMIC SELECT count(*) FROM c; SELECT CASE WHEN true THEN 1 END; END",
        "RETURN (SELECT count(*) FROM public.c)",
    ],
)
def test_a_function_reaches_what_its_body_names(body: str) -> None:
    text = f"{BASE} CREATE FUNCTION count_c() RETURNS bigint {body}; CREATE TABLE last (id integer);"
    objects = Objects([text])
    assert objects.reached(["count_c"]) == {"count_c", "c"}
    assert "last" in objects.names


def test_statements_end_where_postgresql_ends_them() -> None:
    text = """
      CREATE FUNCTION f() RETURNS integer BEGIN ATOMIC SELECT 1; SELECT CASE WHEN true THEN 2 END; END;
      SELECT ';' AS "a;b", $$;$$, E'\\';' -- ; not here
      ; /* nor ; here */ ;
      INSERT INTO t VALUES (1); SELECT 3
    """
    assert [statement.split()[0] for statement in split_statements(text)] == ["CREATE", "SELECT", "INSERT", "SELECT"]
    assert split_statements(" ; -- nothing\n ;") == ()
