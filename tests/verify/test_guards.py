"""Each guard removed alone: who notices, and what is said where nobody does."""

from __future__ import annotations

import pytest
from tests.verify.proving import Edit, Proof, Stage, edited, expected, fault, prove

from failure_matrix.catalogue.findings import CatalogueInvalid
from failure_matrix.evidence.records import Verdict
from failure_matrix.verify import guards, verify

QUEUE = """
catalogue:
  title: A queue with guards everywhere
  schema:
    - |
      CREATE SCHEMA app;
      CREATE TABLE job (
        id bigint PRIMARY KEY, state text NOT NULL DEFAULT 'ready', owner text, beats integer NOT NULL DEFAULT 0);
      CREATE UNIQUE INDEX one_at_a_time ON job (owner) WHERE state = 'held';
      CREATE FUNCTION app.finish(p_id bigint, p_owner text) RETURNS boolean LANGUAGE plpgsql AS $$
        BEGIN
          UPDATE job SET state = 'done' WHERE id = p_id AND state = 'held' AND owner = p_owner;
          RETURN found;
        END $$;
subjects:
  job: {key: {id: job.id}, spare: {id: 99}, from: job, show: [job.state, job.owner]}
states:
  ready: {subject: job, title: Ready, when: job.state = 'ready'}
  held: {subject: job, title: Held, when: job.state = 'held'}
  done: {subject: job, title: Done, when: job.state = 'done', final: true}
callers:
  holder: SELECT owner FROM job WHERE id = :id AND owner IS NOT NULL
  stranger: {owner: stranger}
actions:
  take:
    subject: job
    title: Take
    sql: UPDATE job SET state = 'held', owner = :owner WHERE id = :id AND state = 'ready'
    moves: {ready: held}
    refusal: {looks: [{rows: 0}, {error: {sqlstate: "23505", constraint: one_at_a_time}}]}
    guards: {drop: {one-job-a-worker: DROP INDEX one_at_a_time}}
  take-next:
    subject: job
    title: Take the next
    sql: |
      UPDATE job SET state = 'held', owner = gen_random_uuid()::text
       WHERE id = (SELECT id FROM job WHERE state = 'ready' ORDER BY id LIMIT 1 FOR UPDATE SKIP LOCKED)
      RETURNING id
    moves: {ready: held}
  finish:
    subject: job
    title: Finish
    permits: [holder]
    sql: SELECT app.finish(:id, :owner) AS finished
    moves: {held: done}
    refusal: {looks: {returns: [{finished: false}]}}
    guards: {in: app.finish}
  force:
    subject: job
    title: The wrong way
    instead_of: finish
    sql: UPDATE job SET state = 'done' WHERE id = :id
scenarios:
  all:
    title: Jobs are taken and finished
    given: {job: [{id: 1}, {id: 2}]}
    steps:
      - {in: A, do: take, with: {id: 1, owner: A}, rows: 1, then: {job: {1: held, 2: ready}}}
      - {in: A, do: take, with: {id: 2, owner: A}, error: {sqlstate: "23505", constraint: one_at_a_time}}
      - {in: B, do: take, with: {id: 1, owner: B}, rows: 0}
      - {in: B, do: finish, with: {id: 1, owner: B}, returns: [{finished: f}], then: {job: {1: held}}}
      - {in: A, do: finish, with: {id: 1, owner: A}, returns: [{finished: t}], then: {job: {1: done}}}
  side-by-side:
    title: Two workers, two jobs
    given: {job: [{id: 1}, {id: 2}]}
    steps:
      - {in: A, sql: BEGIN}
      - {in: A, do: take-next, returns: [{id: 1}]}
      - {in: B, do: take-next, returns: [{id: 2}]}
      - {in: A, sql: COMMIT, then: {job: {1: held, 2: held}}}
"""


@pytest.fixture(scope="module")
def queue(stage: Stage) -> Proof:
    return prove(stage, QUEUE)


NOTICED = {
    ("take", "id = :id"): "scenario all, step 1: ",
    ("take", "state = 'ready'"): "scenario all, step 3: ",
    ("take", "one-job-a-worker"): "scenario all, step 2: ",
    ("take-next", "SKIP LOCKED"): "scenario side-by-side, step 3: ",
    ("take-next", "FOR UPDATE SKIP LOCKED"): "scenario side-by-side, step 3: ",
    ("take-next", "state = 'ready'"): "cell ready, take-next as stranger: it also changed job 1, which stays ",
    ("finish", "owner = p_owner"): "scenario all, step 4: ",
    ("finish", "state = 'held'"): "cell ",
}


@pytest.mark.parametrize(("action", "guard"), NOTICED)
def test_who_notices_first(queue: Proof, action: str, guard: str) -> None:
    record = queue.guard(guard, action)
    assert (record.outcome, record.verdict, record.because) == ("noticed", Verdict.VERIFIED, None)
    (by,) = record.noticed_by
    assert by.startswith(NOTICED[action, guard])


def test_where_a_guard_stands(queue: Proof) -> None:
    take, finish = queue.guard("state = 'ready'", "take"), queue.guard("owner = p_owner")
    text = "UPDATE job SET state = 'held', owner = :owner WHERE id = :id AND state = 'ready'"
    assert text[take.start : take.end] == "state = 'ready'"
    assert (take.part, take.function) == ("condition", None)
    assert (finish.part, finish.function) == ("condition", "app.finish")
    assert (queue.guard("one-job-a-worker").part, queue.guard("one-job-a-worker").start) == ("drop", None)


def test_the_condition_that_binds_the_key_needs_a_second_row(queue: Proof) -> None:
    """Nowhere are two jobs held by one owner, so that its absence could show."""
    record = queue.guard("id = p_id")
    assert (record.outcome, record.verdict) == ("not tried", None)
    assert record.because == (
        "no situation has a second row that passes the other guards: give a scenario two such rows"
    )


def test_all_is_verified_and_what_proves_nothing_is_not_counted(queue: Proof) -> None:
    assert queue.not_verified() == []
    count = queue.evidence.coverage["guards"]
    counted = [guard for guard in queue.evidence.guards if guard.part != "assignment"]
    assert (count.of, count.verified, count.not_tried) == (len(counted) - 1, len(counted) - 1, 1)


def test_assignments_are_a_list_of_their_own(queue: Proof) -> None:
    assignments = {(each.guard, each.outcome) for each in queue.evidence.guards if each.part == "assignment"}
    assert ("state = 'held'", "noticed") in assignments
    assert ("owner = gen_random_uuid()::text", "missed") in assignments


def test_an_assignment_that_nothing_notices_is_no_fault(queue: Proof) -> None:
    record = queue.guard("owner = gen_random_uuid()::text")
    assert (record.verdict, record.because) == (None, "nothing notices that it is gone")


def test_the_wrong_way_has_no_guards(queue: Proof) -> None:
    assert {guard.action for guard in queue.evidence.guards} == {"take", "take-next", "finish"}


@pytest.fixture(scope="module")
def faulty(stage: Stage) -> Proof:
    return prove(stage, fault("guards"))


def test_each_fault_says_what_is_wrong(faulty: Proof) -> None:
    assert [line for line in faulty.not_verified() if " guard " in line] == expected("guards")
    assert faulty.evidence.verdict is Verdict.BROKEN


def test_a_missed_guard_makes_the_states_broken_that_its_action_leaves(faulty: Proof) -> None:
    ready = faulty.state("ready")
    assert ready.verdict is Verdict.BROKEN
    assert (ready.because or "").startswith("take, guard state = 'ready': nothing notices that it is gone: add ")


def test_not_removable_is_another_word_than_missed(faulty: Proof) -> None:
    record = faulty.guard("beats >= :beats")
    assert (record.outcome, record.verdict) == ("not removable", None)
    assert (record.because or "").startswith("PostgreSQL rejects the statement without it: ERROR 42")


def test_functions_that_hold_guards_must_be_there(stage: Stage) -> None:
    wrong: Edit = ("guards: {in: app.finish}", "guards: {in: [app.finish, now]}")
    with pytest.raises(CatalogueInvalid) as caught:
        prove(stage, edited(QUEUE, wrong))
    (finding,) = caught.value.findings
    assert finding.rule == "unknown-function"
    assert "guards of action 'finish' are in 'now', and the schema has no such function" in finding.message


def test_the_evidence_is_the_same_on_two_lanes(stage: Stage, queue: Proof) -> None:
    again = verify(stage.catalogue(QUEUE), stage.server, jobs=2)
    assert again.guards == queue.evidence.guards
    assert again.cells == queue.evidence.cells


@pytest.mark.parametrize(
    ("sqlstate", "rejection"), [("42601", True), ("42P18", True), ("42501", False), ("23505", False)]
)
def test_what_the_server_makes_nothing_of_is_not_removable(sqlstate: str, rejection: bool) -> None:
    """A refusal by privilege or by row-level security is of class 42 too, and is one that was noticed."""
    assert guards._is_rejection(sqlstate) is rejection


SEATS = """
catalogue:
  title: Seats
  schema:
    - |
      CREATE TABLE seat (
        id bigint PRIMARY KEY, taken boolean NOT NULL DEFAULT false, holders integer NOT NULL DEFAULT 0)
subjects:
  seat: {key: {id: seat.id}, from: seat, show: [seat.taken]}
states:
  free: {subject: seat, title: Free, when: NOT seat.taken}
  taken: {subject: seat, title: Taken, when: seat.taken}
actions:
  hold:
    subject: seat
    title: Hold
    sql: SELECT id FROM seat WHERE id = :id AND NOT taken FOR UPDATE
    moves: {free: free}
events:
  taking: {title: It is taken, moves: {free: taken}}
  leaving: {title: It is left, moves: {taken: free}}
invariants:
  one-holder: {title: One holder a seat, sql: SELECT id FROM seat WHERE holders > 1}
scenarios:
  one-after-the-other:
    title: Two take the seat, one after the other
    orders: all
    given: {seat: [{id: 1}, {id: 2, taken: true}]}
    steps:
      - {in: A, sql: BEGIN}
      - {in: A, do: hold, with: {id: 1}, rows: 1, keep: {a: id}}
      - in: A
        sql: UPDATE seat SET taken = true, holders = holders + 1 WHERE id = :id
        with: {id: $a}
        event: taking
      - {in: A, sql: COMMIT}
      - {in: A, sql: "UPDATE seat SET taken = false, holders = holders - 1 WHERE id = 1", event: leaving}
      - {in: B, sql: BEGIN}
      - {in: B, do: hold, with: {id: 1}, rows: 1, keep: {b: id}}
      - in: B
        sql: UPDATE seat SET taken = true, holders = holders + 1 WHERE id = :id
        with: {id: $b}
        event: taking
      - {in: B, sql: COMMIT}
"""


def test_what_only_another_order_notices_is_noticed(stage: Stage) -> None:
    proof = prove(stage, SEATS)
    lock = proof.guard("FOR UPDATE")
    assert (lock.outcome, lock.verdict) == ("noticed", Verdict.VERIFIED), lock.because
    assert "in order " in lock.noticed_by[0]
    assert "invariant one-holder is broken" in lock.noticed_by[0]
    assert proof.evidence.scenarios[0].verdict is Verdict.VERIFIED
