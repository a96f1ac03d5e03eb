"""When an action takes effect, and what a session sees before: transactions in every form they come in."""

from __future__ import annotations

from typing import Protocol

import pytest

from failure_matrix.evidence.records import Failure, ScenarioRecord, Verdict

GOOD = """
  commit-answers-for-the-action:
    title: an action counts where it takes effect
    given: {job: [{id: 1}]}
    steps:
      - {in: A, sql: BEGIN}
      - {in: A, do: take, with: {id: 1, owner: A}, then: {job: {1: ready}}}
      - {in: A, sql: COMMIT, then: {job: {1: leased}}}
  commit-and-chain:
    title: a transaction ends and the next is open
    given: {job: [{id: 1}]}
    steps:
      - {in: A, sql: BEGIN}
      - {in: A, do: take, with: {id: 1, owner: A}}
      - {in: A, sql: COMMIT AND CHAIN, then: {job: {1: leased}}}
      - {in: A, do: finish, with: {id: 1, owner: A}, then: {job: {1: leased}}}
      - {in: A, sql: ROLLBACK AND CHAIN, then: {job: {1: leased}}}
      - {in: A, do: finish, with: {id: 1, owner: A}}
      - {in: A, sql: COMMIT, then: {job: {1: done}}}
  whole-transaction-in-one-step:
    title: BEGIN and COMMIT in one step
    given: {job: [{id: 1}, {id: 2}]}
    steps:
      - in: A
        carries_out: take
        sql: BEGIN; UPDATE job SET state = 'running', lease_until = 10 WHERE id = 1; UPDATE note SET text = 'x'; COMMIT
        then: {job: {1: leased, 2: ready}}
      - in: A
        carries_out: take
        sql: BEGIN; UPDATE job SET state = 'running', lease_until = 10 WHERE id = 2; ROLLBACK
        then: {job: {2: ready}}
      - in: A
        carries_out: take
        sql: UPDATE job SET state = 'running', lease_until = 10 WHERE id = 2; COMMIT; SELECT 1/0
        error: "22012"
        notice: there is no transaction in progress
        then: {job: {2: leased}}
  savepoints:
    title: what was rolled back to a savepoint never happened
    given: {job: [{id: 1}, {id: 2}, {id: 3}]}
    steps:
      - {in: A, sql: BEGIN}
      - {in: A, do: take, with: {id: 1, owner: A}}
      - {in: A, sql: SAVEPOINT one}
      - {in: A, do: take, with: {id: 2, owner: A}}
      - {in: A, sql: SAVEPOINT "the Other"}
      - {in: A, do: take, with: {id: 3, owner: A}}
      - {in: A, sql: SELECT 1/0, error: "22012"}
      - {in: A, sql: ROLLBACK TO SAVEPOINT "the Other"}
      - {in: A, sql: RELEASE SAVEPOINT "the Other"}
      - {in: A, sql: COMMIT, then: {job: {1: leased, 2: leased, 3: ready}}}
  an-error-in-a-transaction:
    title: COMMIT of a failed transaction is a rollback
    given: {job: [{id: 1}]}
    steps:
      - {in: A, sql: BEGIN}
      - {in: A, do: take, with: {id: 1, owner: A}, rows: 1}
      - {in: A, do: create, with: {id: 1}, error: "23505"}
      - {in: A, do: finish, with: {id: 1, owner: A}, error: 25P02}
      - {in: A, sql: COMMIT, then: {job: {1: ready}}}
  prepared:
    title: prepared by one, ended by another
    given: {job: [{id: 1}, {id: 2}]}
    steps:
      - {in: A, sql: BEGIN}
      - {in: A, do: take, with: {id: 1, owner: A}}
      - {in: A, sql: PREPARE TRANSACTION 'one'}
      - {in: A, do: take, with: {id: 2, owner: A}, then: {job: {1: ready, 2: leased}}}
      - {in: B, sql: COMMIT PREPARED 'one', then: {job: {1: leased, 2: leased}}}
      - {in: A, sql: BEGIN}
      - {in: A, do: finish, with: {id: 1, owner: A}}
      - {in: A, sql: PREPARE TRANSACTION 'two'}
      - {in: B, sql: ROLLBACK PREPARED 'two', then: {job: {1: leased}}}
  left-prepared:
    title: nobody ends it
    given: {job: [{id: 1}]}
    steps:
      - {in: A, sql: BEGIN}
      - {in: A, do: take, with: {id: 1, owner: A}}
      - {in: A, sql: "PREPARE TRANSACTION 'left, behind'"}
  a-deferred-constraint:
    title: it fails where it commits
    given: {job: [{id: 1}]}
    steps:
      - {in: A, sql: ALTER TABLE note ALTER CONSTRAINT note_job_fkey DEFERRABLE INITIALLY DEFERRED}
      - {in: A, sql: BEGIN}
      - {in: A, do: take, with: {id: 1, owner: A}}
      - {in: A, sql: INSERT INTO note (job) VALUES (9)}
      - {in: A, sql: COMMIT, error: {sqlstate: "23503", constraint: note_job_fkey}, then: {job: {1: ready}}}
  a-change-that-no-row-tells:
    title: data-modifying WITH that returns nothing
    given: {job: [{id: 1}]}
    steps:
      - in: A
        carries_out: take
        sql: |
          WITH taken AS (UPDATE job SET state = 'running', lease_until = 10 RETURNING id) SELECT id FROM taken WHERE false
        rows: 0
        then: {job: {1: leased}}
  a-refused-action-explains-nothing:
    title: the move is that of the action which did it
    given: {job: [{id: 1, state: done}]}
    steps:
      - {in: A, sql: BEGIN}
      - {in: A, do: erase-lost, with: {id: 1}, rows: 0}
      - {in: A, do: remove, with: {id: 1}, rows: 1}
      - {in: A, sql: COMMIT, then: {job: {1: absent}}}
  late:
    title: the lease has passed before the commit
    given: {job: [{id: 1}]}
    steps:
      - {in: A, sql: BEGIN}
      - {in: A, do: take, with: {id: 1, owner: A}}
      - {at: 10}
      - {in: A, sql: COMMIT, then: {job: {1: expired}}}
  others-meanwhile:
    title: another session moves the row before, and the path goes through that
    given: {job: [{id: 1}]}
    steps:
      - {in: A, sql: BEGIN}
      - {in: A, do: beat, with: {id: 1, owner: B}, rows: 0}
      - {in: B, do: take, with: {id: 1, owner: B}}
      - {in: A, do: finish, with: {id: 1, owner: B}, rows: 1, then: {job: {1: leased}}}
      - {in: A, sql: COMMIT, then: {job: {1: done}}}
  only-its-own-session-sees-it:
    title: an uncommitted row
    steps:
      - {in: B, sql: SELECT 1}
      - {in: A, sql: BEGIN}
      - in: A
        do: create
        with: {id: 1}
        then: {job: {1: absent}}
        seen_by: {A: {job: {1: fresh}}, B: {job: {1: absent}}}
      - {in: A, sql: SAVEPOINT s}
      - {in: A, do: take, with: {id: 1, owner: A}, seen_by: {A: {job: {1: fresh}}}}
      - {in: A, sql: ROLLBACK, then: {job: {1: absent}}, seen_by: {A: {job: {1: absent}}}}
  a-snapshot-is-kept:
    title: REPEATABLE READ sees what was
    given: {job: [{id: 1}]}
    sessions: {B: {isolation: repeatable read}}
    steps:
      - {in: B, sql: BEGIN}
      - {in: B, sql: SHOW transaction_isolation, returns: [[repeatable read]], seen_by: {B: {job: {1: ready}}}}
      - {in: A, do: take, with: {id: 1, owner: A}, then: {job: {1: leased}}, seen_by: {B: {job: {1: ready}}}}
      - {in: B, do: take, with: {id: 1, owner: B}, error: "40001"}
      - {in: B, sql: ROLLBACK, seen_by: {B: {job: {1: leased}}}}
  write-skew:
    title: SERIALIZABLE notices
    given: {job: [{id: 1}, {id: 2}]}
    sessions: {A: {isolation: serializable}, B: {isolation: serializable}}
    steps:
      - {in: A, sql: BEGIN; SELECT count(*) FROM job WHERE state = 'ready', returns: [[2]]}
      - {in: B, sql: BEGIN; SELECT count(*) FROM job WHERE state = 'ready', returns: [[2]]}
      - {in: A, do: take, with: {id: 1, owner: A}}
      - {in: B, do: take, with: {id: 2, owner: B}}
      - {in: A, sql: COMMIT}
      - {in: B, sql: COMMIT, error: "40001", then: {job: {1: leased, 2: ready}}}
  a-temporary-table:
    title: it is of its session
    given: {job: [{id: 1}]}
    steps:
      - {in: A, sql: CREATE TEMPORARY TABLE job (LIKE public.job)}
      - {in: A, sql: SELECT id FROM job, rows: 0, then: {job: {1: ready}}}
      - {in: B, sql: SELECT id FROM job, rows: 1}
"""

BAD = """
  a-change-that-nothing-carries-out:
    title: plain SQL in the transaction of an action
    given: {job: [{id: 1}, {id: 2}]}
    steps:
      - {in: A, sql: BEGIN}
      - {in: A, do: take, with: {id: 1, owner: A}}
      - {in: A, sql: UPDATE job SET state = 'done' WHERE id = 2}
      - {in: A, sql: COMMIT}
  an-action-on-another-row:
    title: the move is declared, and the row is another's
    given: {job: [{id: 1}, {id: 2}]}
    steps:
      - {in: A, do: take-next, with: {id: 1}}
  rolled-back-and-yet-done:
    title: what was rolled back explains nothing
    given: {job: [{id: 1}]}
    steps:
      - {in: A, sql: BEGIN}
      - {in: A, sql: SAVEPOINT s}
      - {in: A, do: take, with: {id: 1, owner: A}}
      - {in: A, sql: ROLLBACK TO s}
      - {in: A, sql: "UPDATE job SET state = 'running', lease_until = 10"}
      - {in: A, sql: COMMIT}
  a-view-that-is-otherwise:
    title: what a session sees is not what is said
    steps:
      - {in: A, sql: BEGIN}
      - {in: A, do: create, with: {id: 1}, seen_by: {A: {job: {1: ready}}}}
"""

MORE = """
actions:
  erase-lost: {subject: job, title: Erase, sql: DELETE FROM job WHERE id = :id AND state = 'lost', moves: {done: absent}}
  take-next:
    subject: job
    title: Take the next
    sql: UPDATE job SET state = 'running', lease_until = 10 WHERE id = :id + 1
    moves: {ready: leased}
"""


class Stage(Protocol):
    def scenarios(self, text: str, *more: str) -> dict[str, ScenarioRecord]: ...


def failures(record: ScenarioRecord) -> list[Failure]:
    return [*record.failures, *(failure for step in record.steps for failure in step.failures)]


def ids(text: str) -> list[str]:
    return [line.strip(" :") for line in text.splitlines() if line.startswith("  ") and line[2] != " "]


@pytest.fixture(scope="module")
def records(stage: Stage) -> dict[str, ScenarioRecord]:
    return stage.scenarios(GOOD + BAD, MORE)


@pytest.mark.parametrize("id", ids(GOOD))
def test_a_transaction_is_accounted_for(records: dict[str, ScenarioRecord], id: str) -> None:
    assert [(failure.message, failure.observed) for failure in failures(records[id])] == []
    assert records[id].verdict is Verdict.VERIFIED


@pytest.mark.parametrize(
    ("id", "said"),
    [
        (
            "a-change-that-nothing-carries-out",
            "A ran COMMIT: undeclared: job 2 went ready -> done; take declares no such move",
        ),
        (
            "an-action-on-another-row",
            "A did take-next: undeclared: job 2 went ready -> leased; take-next declares no such move",
        ),
        ("rolled-back-and-yet-done", "A ran COMMIT: undeclared: job 1 went ready -> leased; no action did it"),
        ("a-view-that-is-otherwise", "A did create: job 1 is fresh, expected ready"),
    ],
)
def test_what_is_not_declared_is_told(records: dict[str, ScenarioRecord], id: str, said: str) -> None:
    assert [failure.message for failure in failures(records[id])] == [said]


def moves(record: ScenarioRecord) -> list[tuple[str, tuple[str, ...], str, bool, str | None]]:
    return [(move.from_, move.by, move.to, move.late, move.session) for step in record.steps for move in step.moves]


def test_a_move_is_made_where_it_takes_effect(records: dict[str, ScenarioRecord]) -> None:
    assert moves(records["commit-answers-for-the-action"]) == [("ready", ("take",), "leased", False, None)]
    assert [len(step.moves) for step in records["commit-answers-for-the-action"].steps] == [0, 0, 1]


def test_a_path_of_several_moves_is_late(records: dict[str, ScenarioRecord]) -> None:
    assert moves(records["late"]) == [("ready", ("take", "lapses"), "expired", True, None)]


def test_a_path_goes_through_what_others_did_meanwhile(records: dict[str, ScenarioRecord]) -> None:
    assert moves(records["others-meanwhile"])[-1] == ("leased", ("finish",), "done", False, None)


def test_the_action_that_did_nothing_is_no_witness(records: dict[str, ScenarioRecord]) -> None:
    assert moves(records["a-refused-action-explains-nothing"]) == [("done", ("remove",), "absent", False, None)]


def test_an_uncommitted_state_comes_and_goes_in_its_own_session(records: dict[str, ScenarioRecord]) -> None:
    assert moves(records["only-its-own-session-sees-it"]) == [
        ("absent", ("create",), "fresh", False, "A"),
        ("fresh", ("rollback",), "absent", False, "A"),
    ]


def test_an_open_transaction_is_recorded(records: dict[str, ScenarioRecord]) -> None:
    steps = records["commit-and-chain"].steps
    assert [step.in_transaction for step in steps] == [True, True, True, True, True, True, False]
