"""Every scenario finds the database as the schema left it, whatever the one before it did."""

from __future__ import annotations

from typing import Protocol

import pytest

from failure_matrix.evidence.records import Evidence, ScenarioRecord, Verdict

SCHEMA = """
catalogue:
  title: Objects of all kinds
  schema:
    - |
      CREATE SCHEMA app;
      CREATE TYPE app.mood AS ENUM ('calm', 'busy');
      CREATE TABLE app.parent (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, mood app.mood DEFAULT 'calm');
      CREATE TABLE app.child (id serial PRIMARY KEY, parent integer NOT NULL REFERENCES app.parent ON DELETE RESTRICT);
      CREATE TABLE "Odd ""name"" of it" (a integer);
      CREATE TABLE parted (a integer) PARTITION BY LIST (a);
      CREATE TABLE parted_1 PARTITION OF parted FOR VALUES IN (1);
      CREATE TABLE spoken (pid integer);
      CREATE SEQUENCE app.tickets START 5 INCREMENT 3;
      CREATE MATERIALIZED VIEW moods AS SELECT count(*) AS many FROM app.parent;
      CREATE FUNCTION app.grow() RETURNS void LANGUAGE plpgsql AS $$
      BEGIN EXECUTE 'ALTER TABLE app.parent ADD COLUMN IF NOT EXISTS grown integer DEFAULT 1'; END $$;
%s
scenarios:
%s
"""

SPOIL = {  # what a step does to the database
    "rows": "INSERT INTO app.parent DEFAULT VALUES; INSERT INTO app.child (parent) VALUES (1)",
    "rows-that-are-gone-again": "INSERT INTO app.parent DEFAULT VALUES; DELETE FROM app.parent",
    "odd-names": 'INSERT INTO "Odd ""name"" of it" VALUES (1); INSERT INTO parted VALUES (1)',
    "sequence": "SELECT nextval('app.tickets'), nextval('app.tickets')",
    "sequence-set": "SELECT setval('app.tickets', 90)",
    "sequence-restarted": "ALTER SEQUENCE app.tickets RESTART WITH 50",
    "sequence-altered": "ALTER SEQUENCE app.tickets INCREMENT BY 7",
    "sequence-dropped": "DROP SEQUENCE app.tickets",
    "identity-restarted": "ALTER TABLE app.parent ALTER COLUMN id RESTART WITH 70",
    "table-made": "CREATE TABLE app.more (a integer)",
    "table-dropped": "DROP TABLE app.child",
    "column-added": "ALTER TABLE app.parent ADD COLUMN more integer",
    "default-changed": "ALTER TABLE app.parent ALTER COLUMN mood SET DEFAULT 'busy'",
    "constraint-dropped": "ALTER TABLE app.child DROP CONSTRAINT child_parent_fkey",
    "index-made": "CREATE UNIQUE INDEX ON app.parent (mood)",
    "function-replaced": "CREATE OR REPLACE FUNCTION app.grow() RETURNS void LANGUAGE sql AS ''",
    "function-that-does-ddl": "SELECT app.grow()",
    "label-added": "ALTER TYPE app.mood ADD VALUE 'away'",
    "view-refreshed": "INSERT INTO app.parent DEFAULT VALUES; REFRESH MATERIALIZED VIEW moods",
    "policy-made": "CREATE POLICY p ON app.parent USING (false); ALTER TABLE app.parent ENABLE ROW LEVEL SECURITY",
    "trigger-made": (
        "CREATE TRIGGER t BEFORE UPDATE ON app.parent"
        " FOR EACH ROW EXECUTE FUNCTION suppress_redundant_updates_trigger()"
    ),
    "extension-made": "DROP FUNCTION app.grow(); CREATE SCHEMA other",
    "setting-of-the-database": (
        "DO $do$ BEGIN EXECUTE format('ALTER DATABASE %I SET search_path = app', current_database()); END $do$"
    ),
    "large-object": "SELECT lo_create(4711)",
    "path-and-locks": (
        "SET search_path = app; SELECT pg_advisory_lock(1); LISTEN news; CREATE TEMPORARY TABLE parent (a text)"
    ),
    "left-in-a-transaction": "BEGIN; INSERT INTO app.parent DEFAULT VALUES; SELECT pg_advisory_lock(2)",
    "everybody-else-ended": (
        "SELECT count(pg_terminate_backend(pid)) >= 0 FROM pg_stat_activity"
        " WHERE datname = current_database() AND pid <> pg_backend_pid()"
    ),
}

LOOK = """
      - in: A
        sql: INSERT INTO app.parent DEFAULT VALUES RETURNING *, ctid
        returns: [{id: 1, mood: calm, ctid: "(0,1)"}]
      - {in: A, sql: INSERT INTO app.child (parent) VALUES (1) RETURNING id, returns: [[1]]}
      - in: A
        sql: INSERT INTO app.child (parent) VALUES (99)
        error: {sqlstate: "23503", constraint: child_parent_fkey}
      - {in: A, sql: "INSERT INTO app.parent DEFAULT VALUES RETURNING mood", rows: 1}
      - {in: A, sql: "UPDATE app.parent SET mood = mood", rows: 2}
      - {in: A, sql: "SELECT nextval('app.tickets'), nextval('app.tickets')", returns: [[5, 8]]}
      - {in: A, sql: SELECT many FROM moods, returns: [[0]]}
      - {in: A, sql: 'SELECT * FROM "Odd ""name"" of it" UNION ALL SELECT * FROM parted', rows: 0}
      - {in: A, sql: SELECT current_schemas(false), returns: [["{public}"]]}
      - {in: A, sql: "SELECT 'away'::app.mood", error: "22P02"}
      - {in: A, sql: "SELECT pg_try_advisory_lock(1), pg_try_advisory_lock(2)", returns: [[true, true]]}
      - {in: A, sql: SELECT pg_listening_channels(), rows: 0}
      - {in: A, sql: "SELECT to_regclass('app.more'), to_regnamespace('other')", returns: [[null, null]]}
      - {in: A, sql: "SELECT prosrc <> '' AS same FROM pg_proc WHERE proname = 'grow'", returns: [[true]]}
      - {in: A, sql: SELECT count(*) FROM pg_largeobject_metadata, returns: [[0]]}
      - {in: A, sql: SELECT count(*) FROM pg_prepared_xacts WHERE database = current_database(), returns: [[0]]}
"""


class Stage(Protocol):
    def prove(self, *texts: str) -> Evidence: ...


def alternating(spoil: dict[str, str], look: str) -> str:
    """A scenario for each way to spoil the database, and one after each that looks at it."""
    made = []
    for number, (id, sql) in enumerate(spoil.items()):
        made.append(f"  {id}:\n    title: spoil\n    steps:\n      - in: A\n        sql: |\n          {sql}\n")
        made.append(f"  look-{number}-after-{id}:\n    title: look\n    steps:{look}")
    return "".join(made)


@pytest.fixture(scope="module")
def records(stage: Stage) -> dict[str, ScenarioRecord]:
    evidence = stage.prove(SCHEMA % ("", alternating(SPOIL, LOOK)))
    return {record.id: record for record in evidence.scenarios}


@pytest.mark.parametrize("number", range(len(SPOIL)), ids=list(SPOIL))
def test_the_next_scenario_finds_it_as_new(records: dict[str, ScenarioRecord], number: int) -> None:
    id = list(SPOIL)[number]
    spoilt, looked = records[id], records[f"look-{number}-after-{id}"]
    if id != "everybody-else-ended":  # the observer with them, so that nothing could be seen
        assert spoilt.because is None
    assert looked.because is None


SEEDED = """
    - INSERT INTO app.parent SELECT; DELETE FROM app.parent; INSERT INTO app.parent SELECT
    - INSERT INTO app.child (parent) VALUES (2)
    - SELECT nextval('app.tickets')
"""

SPOIL_SEEDED = {
    "nothing": "SELECT 1",
    "emptied": "TRUNCATE app.child, app.parent RESTART IDENTITY",
    "moved": "UPDATE app.parent SET mood = 'busy'; INSERT INTO app.parent DEFAULT VALUES",
}

LOOK_SEEDED = """
      - {in: A, sql: "SELECT id, mood, ctid FROM app.parent", returns: [{id: 2, mood: calm, ctid: "(0,2)"}]}
      - {in: A, sql: "SELECT id, parent FROM app.child", returns: [[1, 2]]}
      - {in: A, sql: INSERT INTO app.parent DEFAULT VALUES RETURNING id, returns: [[3]]}
      - {in: A, sql: "SELECT nextval('app.tickets')", returns: [[8]]}
"""


def test_what_the_schema_inserted_is_there_again(stage: Stage) -> None:
    evidence = stage.prove(SCHEMA % (SEEDED, alternating(SPOIL_SEEDED, LOOK_SEEDED)))
    assert [record.because for record in evidence.scenarios] == [None] * 6


def test_a_trigger_on_truncate_is_not_run(stage: Stage) -> None:
    trigger = """
    - |
      CREATE FUNCTION note() RETURNS trigger LANGUAGE plpgsql AS
        $$ BEGIN INSERT INTO spoken VALUES (1); RETURN NULL; END $$;
      CREATE TRIGGER note AFTER TRUNCATE ON app.parent EXECUTE FUNCTION note()
"""
    look = "\n      - {in: A, sql: SELECT FROM app.parent, rows: 0}\n      - {in: A, sql: TABLE spoken, rows: 0}\n"
    evidence = stage.prove(SCHEMA % (trigger, alternating({"rows": SPOIL["rows"]}, look)))
    assert [record.because for record in evidence.scenarios] == [None, None]


def test_given_sql_is_for_its_scenario_alone(stage: Stage) -> None:
    scenarios = """
  given-ddl:
    title: DDL, settings and locks
    given: |
      CREATE TABLE app.extra (a integer); INSERT INTO app.extra VALUES (1);
      SET search_path = app; SELECT pg_advisory_lock(1); CREATE TEMPORARY TABLE extra (a integer)
    steps:
      - {in: A, sql: SELECT a FROM app.extra, returns: [[1]]}
      - {in: A, sql: SELECT current_schemas(false), returns: [["{public}"]]}
      - {in: A, sql: SELECT pg_try_advisory_lock(1), returns: [[true]]}
  given-a-table-with-a-schema:
    title: rows of a table outside of the search path
    given: {app.parent: [{}, {mood: busy}], app.child: [{parent: 2}]}
    steps:
      - {in: A, sql: "SELECT id, mood FROM app.parent", returns: [[1, calm], [2, busy]]}
      - {in: A, sql: "SELECT to_regclass('app.extra')", returns: [[null]]}
"""
    evidence = stage.prove(SCHEMA % ("", scenarios))
    assert [record.because for record in evidence.scenarios] == [None, None]
    assert {record.verdict for record in evidence.scenarios} == {Verdict.VERIFIED}


def test_what_sessions_held_and_who_of_them_is_gone_is_no_matter_to_the_next(stage: Stage) -> None:
    scenarios = """
  held:
    title: a session's lock, in the session whose turn comes last
    steps: [{in: C, sql: SELECT 1}, {in: B, sql: SELECT 1}, {in: Z, sql: SELECT pg_advisory_lock(1)}]
  free-again:
    title: another session takes it at once
    steps: [{in: A, sql: "SELECT pg_try_advisory_lock(1)", returns: [[true]]}]
  idle-ended:
    title: connections that rest are ended, ours is not
    steps:
      - in: A
        sql: |
          CREATE TEMPORARY VIEW others AS
            SELECT pid FROM pg_stat_activity
             WHERE datname = current_database() AND application_name NOT IN ('observer', 'A');
          SELECT count(pg_terminate_backend(pid)) > 1 AS many FROM others;
          DO $$ BEGIN WHILE EXISTS (SELECT FROM others) LOOP PERFORM pg_stat_clear_snapshot(); END LOOP; END $$
        results: [null, [[true]], null]
  after-that:
    title: every session is there
    steps: [{in: B, sql: SELECT 1}, {in: C, sql: SELECT 1}, {in: Z, sql: SELECT 1}, {in: A, sql: SELECT 1}]
"""
    evidence = stage.prove(SCHEMA % ("", scenarios))
    assert [record.because for record in evidence.scenarios] == [None] * 4
