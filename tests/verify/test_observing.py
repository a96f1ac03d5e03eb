"""Observations and retention costs: run wherever their state is, and what is said where they do not hold."""

from __future__ import annotations

import pytest
from tests.verify.proving import Proof, Stage, edited, expected, fault, prove

from failure_matrix.evidence.records import Verdict
from failure_matrix.verify import verify


@pytest.fixture(scope="module")
def faulty(stage: Stage) -> Proof:
    return prove(stage, fault("observations"))


def test_each_fault_says_what_is_wrong(faulty: Proof) -> None:
    assert [line for line in faulty.not_verified() if " observation " in line] == expected("observations")


def test_what_is_hidden_is_not_told(faulty: Proof) -> None:
    assert "secret" not in (faulty.observation("held", 0).because or "")


def test_a_state_is_as_bad_as_its_observations(stage: Stage) -> None:
    faulty = prove(stage, fault("observations"), quick=True)
    assert faulty.state("ready").verdict is Verdict.BROKEN
    assert (faulty.state("ready").because or "").startswith("observation 2: it gives no row, at one, step 0")


def test_they_are_run_at_what_is_given_and_at_each_entry(faulty: Proof) -> None:
    assert faulty.observation("ready", 0).runs == 1
    assert faulty.observation("done", 0).runs == 1
    assert faulty.observation("lost", 0).runs == 0


def test_they_change_nothing(stage: Stage) -> None:
    """Live commands run them in a transaction that may not write; one that would is told now."""
    writing = edited(
        fault("observations"),
        ("{see: it is lost, sql: SELECT 1}", "{see: it is lost, sql: \"SELECT nextval('log_id_seq')\"}"),
        (
            "  one:\n",
            "  lost: {title: Lost, given: {job: [{id: 1, state: lost}]}, steps: [{in: A, sql: SELECT 1}]}\n  one:\n",
        ),
    )
    record = prove(stage, writing).observation("lost")
    assert (record.verdict, record.because) == (
        Verdict.BROKEN,
        "ERROR 25006: cannot execute nextval() in a read-only transaction, at lost, step 0",
    )


UNSEEN = """
catalogue:
  title: What only one session sees
  schema: [CREATE TABLE job (id bigint PRIMARY KEY)]
subjects:
  job: {key: {id: job.id}, from: job}
states:
  fresh:
    subject: job
    title: Fresh
    when: "true"
    uncommitted: true
    observe:
      - see: a session holds a transaction open
        sql: |
          SELECT pid FROM pg_stat_activity
           WHERE datname = current_database() AND state = 'idle in transaction' AND backend_xid IS NOT NULL
      - {see: its number, sql: SELECT 1 WHERE :id = 7}
  there: {subject: job, title: There, when: "true", final: true}
actions:
  make: {subject: job, title: Make, sql: INSERT INTO job VALUES (:id), moves: {absent: fresh}}
events:
  commit: {title: It commits, moves: {fresh: there}}
  rollback: {title: It is rolled back, moves: {fresh: absent}}
scenarios:
  made:
    title: A job is made
    steps:
      - {in: A, sql: BEGIN}
      - {in: A, do: make, with: {id: 7}, rows: 1, seen_by: {A: {job: {7: fresh}}}}
      - {in: A, sql: ROLLBACK}
"""


def test_what_only_a_session_sees_is_observed_from_outside(stage: Stage) -> None:
    proof = prove(stage, UNSEEN)
    assert [(each.verdict, each.runs) for each in proof.evidence.observations] == [(Verdict.VERIFIED, 1)] * 2


def test_one_that_ends_our_own_connection_is_told(stage: Stage) -> None:
    ended = "SELECT pg_terminate_backend(pg_backend_pid())"
    made = edited(
        fault("observations"),
        ("{see: it is lost, sql: SELECT 1}", f'{{see: it is lost, sql: "{ended}"}}'),
        (
            "  one:\n",
            "  lost: {title: Lost, given: {job: [{id: 1, state: lost}]}, steps: [{in: A, sql: SELECT 1}]}\n  one:\n",
        ),
    )
    record = prove(stage, made).observation("lost")
    assert (record.verdict, (record.because or "")[:5]) == (Verdict.BROKEN, "FATAL")


def test_what_only_a_session_sees_is_known_by_nothing_else(stage: Stage) -> None:
    """From outside there is no row of it, so the other states' observations are not run there."""
    there = '  there: {subject: job, title: There, when: "true", final: true}\n'
    seen = there.replace("final: true}", "final: true, observe: [{see: it, sql: SELECT 1 WHERE :id > 0}]}")
    made = edited(UNSEEN, (there, seen))
    record = prove(stage, made).observation("there")
    assert (record.elsewhere, record.also_in) == (0, ())


def test_where_nobody_ran_them_in_other_states_they_are_incomplete(stage: Stage) -> None:
    quick = prove(stage, fault("observations"), quick=True)
    named = quick.observation("ready", 0)
    assert (named.verdict, named.because, named.elsewhere) == (Verdict.INCOMPLETE, "it was not run in other states", 0)
    assert quick.observation("ready", 1).verdict is Verdict.BROKEN
    assert quick.observation("ready", None).verdict is Verdict.VERIFIED


OFFERED = """
catalogue:
  title: A row that offers nothing
  schema:
    - CREATE TABLE job (id bigint PRIMARY KEY, state text NOT NULL DEFAULT 'ready', owner text)
subjects:
  job: {key: {id: job.id}, from: job, offers: {owner: job.owner}, show: [job.state]}
states:
  ready:
    subject: job
    title: Ready
    when: job.state = 'ready'
    observe: [{see: x, sql: SELECT 1 FROM job WHERE id = :id AND owner IS NOT DISTINCT FROM :owner, also_in: [held]}]
  held:
    subject: job
    title: Held
    when: job.state = 'held'
    final: true
    observe: [{see: its owner, sql: SELECT 1 FROM job WHERE owner = :owner || '?'}]
actions:
  take: {subject: job, title: Take, sql: "UPDATE job SET state = 'held', owner = 'A'", moves: {ready: held}}
scenarios:
  first: {title: First, given: {job: [{id: 1}]}, steps: [{in: A, do: take}]}
  second: {title: Second, given: {job: [{id: 1}]}, steps: [{in: A, sql: SELECT 1}, {in: A, do: take}]}
"""


def test_what_a_row_offers_may_be_null(stage: Stage) -> None:
    record = prove(stage, OFFERED).observation("ready")
    assert (record.verdict, record.runs) == (Verdict.VERIFIED, 2)


def test_the_first_scenario_of_the_catalogue_is_named_whoever_was_faster(stage: Stage) -> None:
    catalogue = stage.catalogue(OFFERED)
    one, two = (verify(catalogue, stage.server, jobs=jobs) for jobs in (1, 2))
    assert one.observations == two.observations
    assert one.scenarios == two.scenarios
    assert one.observations[1].because == "it gives no row, at first, step 1"


def test_costs_are_a_number_and_its_unit(stage: Stage) -> None:
    good = edited(fault("observations"), ("SELECT 'much', 'bytes'", "SELECT 1.5, 'bytes' AS unit"))
    assert prove(stage, good).observation("held", None).verdict is Verdict.VERIFIED
