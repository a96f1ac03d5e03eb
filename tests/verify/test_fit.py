"""What the server finds wrong with a catalogue, told as findings with file and line, all at once."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest

from failure_matrix.catalogue.findings import CouldNot, Finding, Severity
from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database.cluster import Server
from failure_matrix.evidence.records import Evidence, Verdict
from failure_matrix.verify import verify

CATALOGUES = Path(__file__).with_name("catalogues")


class Stage(Protocol):
    server: Server

    def catalogue(self, *texts: str) -> Catalogue: ...

    def prove(self, *texts: str) -> Evidence: ...

    def rejected(self, *texts: str) -> tuple[Finding, ...]: ...


WRONG = (CATALOGUES / "wrong.yaml").read_text()
PREVIOUS = """
invariants:
  wrong-previous: {title: I, sql: SELECT id FROM previous_job WHERE previous_job.statt = 'x'}
"""


@pytest.fixture(scope="module")
def found(stage: Stage, queue: str) -> dict[str, Finding]:
    findings = stage.rejected(queue, WRONG)
    assert len({finding.place for finding in findings}) == len(findings)
    return {finding.message.split(": ")[0]: finding for finding in findings}


@pytest.mark.parametrize(
    ("where", "rule", "said"),
    [
        ("states misspelt when", "unknown-column", "ERROR 42703: column job.stat does not exist, at 'job.stat = 'x''"),
        ("states mistyped when", "sql-rejected", 'ERROR 22P02: invalid input syntax for type integer: "soon"'),
        ("states wrongly-observed observe 0 sql", "unknown-relation", 'ERROR 42P01: relation "jobs" does not exist'),
        ("states wrongly-observed retention cost", "unknown-column", 'ERROR 42703: column "bytes" does not exist'),
        ("callers nobody sql", "unknown-column", 'ERROR 42703: column "nobody" does not exist'),
        ("actions unknown-function sql", "unknown-function", "ERROR 42883: function shrink(unknown) does not exist"),
        ("actions two-types sql", "untyped-parameter", "ERROR 42P08: inconsistent types deduced for parameter :it"),
        (
            "actions broken-syntax sql",
            "sql-syntax",
            "ERROR 42601: syntax error at or near \"WHERE\", at 'WHERE id = :id'",
        ),
        ("actions store-in-action sql", "unknown-relation", 'ERROR 42P01: relation "files" does not exist'),
        ("events wrong-event sql", "unknown-column", 'ERROR 42703: column "ident" does not exist'),
        ("invariants wrong-invariant sql", "unknown-column", 'ERROR 42703: column "nothing" does not exist'),
    ],
)
def test_sql_that_does_not_fit_the_schema(found: dict[str, Finding], where: str, rule: str, said: str) -> None:
    finding = found[where]
    assert (finding.rule, finding.severity) == (rule, Severity.ERROR)
    assert finding.message.startswith(f"{where}: PostgreSQL says {said}")
    assert finding.place.path.endswith("2.yaml")
    assert finding.hint


def test_nothing_else_is_found(found: dict[str, Finding]) -> None:
    assert len(found) == 11


def test_an_invariant_about_the_step_before_is_tried_as_well(stage: Stage, queue: str) -> None:
    (finding,) = stage.rejected(queue, PREVIOUS)
    assert finding.rule == "unknown-column"
    assert "column previous_job.statt does not exist" in finding.message
    assert (finding.place.path.rsplit("/", 1)[1], finding.place.line) == ("2.yaml", 3)


def test_a_clock_that_has_two_types_is_found(stage: Stage, queue: str) -> None:
    more = """
states:
  dated: {subject: job, title: D, when: "job.lease_until IS NULL AND :now > '2030-01-01'::date"}
"""
    (finding,) = stage.rejected(queue, more)
    assert finding.message.startswith(
        "states dated when: PostgreSQL says ERROR 42883: operator does not exist: integer > date"
    )


@pytest.mark.parametrize(
    ("schema", "said"),
    [
        (
            "CREATE TABLE a (id integer);\n      CREATE TABEL b (id integer)",
            "rejects the schema at line 2: ERROR 42601",
        ),
        ("CREATE TABLE a (id integer); CREATE TABLE a (id integer)", "rejects the schema: ERROR 42P07"),
        ("CREATE TABLE a (id integer); INSERT INTO a SELECT 1/0", "rejects the schema: ERROR 22012: division by zero"),
        ("COPY pg_class FROM STDIN", "rejects the schema: ERROR 57014"),
    ],
)
def test_a_schema_that_the_server_rejects(stage: Stage, schema: str, said: str) -> None:
    text = f"catalogue:\n  title: T\n  schema:\n    - CREATE TABLE first (id integer)\n    - |\n      {schema}\n"
    (finding,) = stage.rejected(text)
    assert finding.rule == "sql-rejected"
    assert said in finding.message
    assert finding.place.line == 5


def test_schema_items_run_in_transactions_of_their_own(stage: Stage) -> None:
    text = """
catalogue:
  title: T
  schema:
    - CREATE TYPE mood AS ENUM ('a')
    - ALTER TYPE mood ADD VALUE 'b'
    - CREATE TABLE t (m mood DEFAULT 'b')
    - CREATE INDEX CONCURRENTLY ON t (m)
scenarios:
  s: {title: S, steps: [{in: A, sql: INSERT INTO t DEFAULT VALUES RETURNING m, returns: [[b]]}]}
"""
    assert [record.because for record in stage.prove(text).scenarios] == [None]


def test_a_catalogue_without_subjects_is_a_test_suite(stage: Stage) -> None:
    text = """
catalogue: {title: T}
scenarios:
  s:
    title: S
    steps:
      - {in: A, sql: SELECT pg_advisory_lock(1)}
      - {in: B, sql: SELECT pg_advisory_lock(1), waits: A}
      - {in: A, sql: SELECT pg_advisory_unlock(1), releases: B}
"""
    evidence = stage.prove(text)
    assert [record.verdict for record in evidence.scenarios] == [Verdict.VERIFIED]


def test_a_scenario_that_is_not_there_is_no_traceback(stage: Stage, queue: str) -> None:
    more = "scenarios: {one: {title: One, steps: [{in: A, sql: SELECT 1}]}}"
    with pytest.raises(CouldNot) as caught:
        verify(stage.catalogue(queue, more), stage.server, only=("oen",))
    assert str(caught.value).splitlines() == [
        "could not verify 'oen': the catalogue has no such scenario", "  did you mean 'one'?", "  No verdict.",
    ]  # fmt: skip


def test_only_some_scenarios(stage: Stage, queue: str) -> None:
    more = """
scenarios:
  one: {title: One, given: {job: [{id: 1}]}, steps: [{in: A, do: take, with: {id: 1, owner: A}, keep: {id: id}}]}
  two: {title: Two, after: one, steps: [{in: A, do: finish, with: {id: $id, owner: A}}]}
"""
    evidence = verify(stage.catalogue(queue, more), stage.server, only=("two",))
    assert [record.id for record in evidence.scenarios] == ["two"]
    assert evidence.verdict is Verdict.INCOMPLETE
    assert {state.id: state.verdict for state in evidence.states}["expired"] is Verdict.INCOMPLETE


def test_a_schema_item_that_leaves_a_transaction_open_is_said(stage: Stage) -> None:
    (finding,) = stage.rejected("catalogue:\n  title: T\n  schema: [BEGIN; CREATE TABLE job (id integer)]\n")
    assert "leaves a transaction open" in finding.message
    assert "COMMIT" in finding.hint


def test_several_statements_with_parameters_are_told_what_to_do(stage: Stage, queue: str) -> None:
    text = "actions: {both: {subject: job, title: B, sql: 'DELETE FROM job WHERE id = :id; DELETE FROM job'}}\n"
    (finding,) = stage.rejected(queue, text)
    assert finding.hint == "SQL with parameters is one statement: make it several steps, or a function"
