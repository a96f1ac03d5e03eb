"""The sweep: what each outcome means, what is put back, and what a cell that is wrong says to a tired person."""

from __future__ import annotations

import pytest
from tests.verify.proving import LEASE, Proof, Stage, edited, sweep

from failure_matrix.evidence.records import Outcome, Verdict

VERIFIED, BROKEN, UNREACHED = Verdict.VERIFIED, Verdict.BROKEN, Verdict.UNREACHED


@pytest.fixture(scope="module")
def lease(stage: Stage) -> Proof:
    return sweep(stage, LEASE)


def wrong(proof: Proof, state: str, action: str, caller: str | None = None) -> str:
    """Why a cell is broken."""
    cell = proof.cell(state, action, caller)
    assert cell.verdict is BROKEN, cell
    assert proof.evidence.verdict is BROKEN
    return cell.because or ""


@pytest.mark.parametrize(
    ("state", "action", "caller", "expected", "observed", "to"),
    [
        ("ready", "take", "stranger", Outcome.MOVED, Outcome.MOVED, ("held",)),
        ("held", "take", "stranger", Outcome.REFUSED, Outcome.REFUSED, ()),
        ("held", "touch", "holder", Outcome.MOVED, Outcome.MOVED, ("held",)),
        ("ready", "take-next", "stranger", Outcome.MOVED, Outcome.MOVED, ("held",)),
        ("held", "take-next", "stranger", Outcome.REFUSED, Outcome.TOOK_ANOTHER, ()),
        ("held", "give-back", "former", Outcome.REFUSED, Outcome.HELD_BACK, ("ready",)),
        ("held", "give-back", "holder", Outcome.MOVED, Outcome.MOVED, ("ready",)),
        ("held", "finish", "former", Outcome.UNSAFE, Outcome.UNSAFE, ("done",)),
        ("ready", "finish", "holder", Outcome.REFUSED, Outcome.NO_SUCH_CALLER, ()),
        ("ready", "take", "mute", Outcome.MOVED, Outcome.CANNOT_CALL, ()),
        ("absent", "ask", "mute", Outcome.MOVED, Outcome.MOVED, ("ready",)),
    ],
)
def test_outcomes(
    lease: Proof, state: str, action: str, caller: str, expected: Outcome, observed: Outcome, to: tuple[str, ...]
) -> None:
    cell = lease.cell(state, action, caller)
    assert (cell.expected, cell.observed, cell.to, cell.verdict) == (expected, observed, to, VERIFIED)


def test_a_cell_says_what_the_answer_was_and_where(lease: Proof) -> None:
    cell = lease.cell("held", "ask", "stranger")
    assert (cell.sqlstate, cell.rows) == ("23505", None)
    assert lease.cell("held", "take", "stranger").rows == 0
    assert [(w.scenario, w.step) for w in lease.cell("held", "finish", "former").witnesses] == [("held", 5)]
    assert lease.cell("ready", "take", "mute").because == "binds no owner"


def test_what_could_not_be_tried_has_no_verdict_and_a_reason(lease: Proof) -> None:
    cell = lease.cell("draft", "take", "stranger")
    assert (cell.observed, cell.verdict) == (Outcome.NOT_TRIED, None)
    assert cell.because == "open transaction: nobody but its own session can see this state"


def test_where_a_requirement_never_holds_a_scenario_s_own_step_is_the_witness(lease: Proof) -> None:
    cell = lease.cell("held", "give-back", "holder")
    assert cell.because == "by a scenario's own step; in the sweep its requirement did not hold"
    assert [(w.scenario, w.step) for w in cell.witnesses] == [("held", 4)]


def test_instead_of_takes_no_part_and_illegal_states_have_no_cells(lease: Proof) -> None:
    assert "force" not in {cell.action for cell in lease.evidence.cells}
    assert "orphaned" not in {cell.state for cell in lease.evidence.cells}


def test_all_is_verified(lease: Proof) -> None:
    assert lease.not_verified() == []
    assert lease.evidence.verdict is VERIFIED


FAULTS = {  # what is wrong -> an action, the cell that shows it, and what it says
    "a-guard-is-missing": (
        "{sql: UPDATE job SET state = 'held' WHERE id = :id, moves: {ready: held}}",
        ("held", None),
        "it was accepted; it must be refused",
    ),
    "it-changes-the-row": (
        "{sql: UPDATE job SET state = 'held', owner = 'it' WHERE id = :id AND state <> 'done', moves: {ready: held}}",
        ("held", None),
        "it changed the row; it must be refused",
    ),
    "it-moves-elsewhere": (
        "{sql: UPDATE job SET state = 'done', owner = 'it' WHERE id = :id AND state = 'ready', moves: {ready: held}}",
        ("ready", None),
        "it moved to done; declared is held",
    ),
    "it-removes-the-row": (
        "{sql: DELETE FROM job WHERE id = :id AND state = 'ready', moves: {ready: held}}",
        ("ready", None),
        "it moved to absent; declared is held",
    ),
    "permitted-and-refused": (
        "{sql: UPDATE job SET state = 'held' WHERE id = :id AND state = 'done', moves: {ready: held, done: held}}",
        ("ready", None),
        "it is permitted here, and was refused: 0 rows",
    ),
    "not-permitted-and-let-through": (
        "{permits: [holder], sql: UPDATE job SET state = 'held' WHERE id = :id AND state = 'ready', moves: {ready: held}}",
        ("ready", "stranger"),
        "it moved to held; it must be refused",
    ),
    "another-constraint": (
        "{sql: INSERT INTO job (id) VALUES (:id), moves: {absent: draft},"
        " refusal: {looks: {error: {sqlstate: '23505', constraint: job_key}}}}",
        ("held", None),
        'it changed nothing, and its answer is error 23505 (job_pkey): duplicate key value violates unique constraint "job_pkey";'
        " a refusal looks like error 23505 (job_key)",
    ),
    "another-answer": (
        "{sql: SELECT count(*) AS n FROM job WHERE id = :id AND epoch < 0, refusal: {looks: [{rows: 0}, {silent: true, rows: 2},"
        " {returns: [{n: 1}]}, {returns: [[1, null]]}, {error: '40001'}]}}",
        ("held", None),
        "it changed nothing, and its answer is 1 row (n 0); a refusal looks like 0 rows or a row that changes nothing"
        " or (n 1) or (1, null) or error 40001",
    ),
    "the-answer-is-an-error": (
        "{sql: UPDATE job SET epoch = epoch / (epoch - epoch) WHERE id = :id AND state = 'held', moves: {held: held}}",
        ("held", None),
        "it is permitted here, and nothing changed: error 22012: division by zero",
    ),
    "a-serialization-failure": (
        "{sql: \"DO $$ BEGIN RAISE SQLSTATE '40001' USING message = 'could not serialize'; END $$\"}",
        ("held", None),
        "it changed nothing, and its answer is error 40001: could not serialize; a refusal looks like 0 rows",
    ),
    "a-lock-is-not-to-be-had": (
        "{sql: SELECT raise_if('55P03') FROM job WHERE id = :id, moves: {held: held}}",
        ("held", None),
        "it is permitted here, and nothing changed: error 55P03: as you wish",
    ),
    "another-row-moves": (
        "{sql: \"UPDATE job SET state = 'held', owner = 'it' WHERE (id = :id OR id = 7) AND state = 'ready'\","
        " moves: {ready: held}}",
        ("ready", None),
        "it also changed job 7: ready -> held",
    ),
    "another-row-changes": (
        "{sql: UPDATE job SET epoch = epoch + (id <> :id)::int WHERE state = 'held', moves: {held: held}}",
        ("held", None),
        "it also changed job 2, which stays held",
    ),
    "a-duty-hides-ruin": (
        "{with: {reason: none}, requires: :reason = 'signed', moves: {held: ready},"
        " sql: UPDATE job SET state = 'done', owner = NULL WHERE id = :id AND state = 'held'}",
        ("held", None),
        "job 1 is orphaned, which must be empty",
    ),
    "it-leads-to-no-state": (
        "{sql: UPDATE job SET state = 'odd' WHERE id = :id AND state = 'held', moves: {held: done}}",
        ("held", None),
        "job 1 is in no state",
    ),
    "it-leads-to-two-states": (
        "{sql: UPDATE job SET state = 'both' WHERE id = :id AND state = 'held', moves: {held: done}}",
        ("held", None),
        "job 1 is in 2 states at once: one, two",
    ),
    "it-leads-to-an-error": (
        "{sql: UPDATE job SET epoch = 0 WHERE id = :id AND state = 'held', moves: {held: held}}",
        ("held", None),
        "what it leaves cannot be classified: ERROR 22012: division by zero",
    ),
    "it-breaks-an-invariant": (
        "{sql: UPDATE job SET owner = 'evil' WHERE id = :id AND state = 'held', moves: {held: held}}",
        ("held", None),
        'invariant nobody-evil is broken: {"id": 1}',
    ),
    "a-duty-cannot-be-asked": (
        "{with: {n: 0}, requires: 1 / :n > 0, sql: DELETE FROM job WHERE id = :id AND state = 'done', moves: {done: absent}}",
        ("held", None),
        "its requirement cannot be asked: ERROR 22012: division by zero",
    ),
    "a-hazard-is-gone": (
        "{permits: [holder], moves: {held: ready},"
        " hazards: [{caller: stranger, moves: {held: ready}, because: it asks for no owner}],"
        " sql: UPDATE job SET state = 'ready', owner = NULL WHERE id = :id AND state = 'held' AND owner = :owner}",
        ("held", "stranger"),
        "the hazard that is declared here no longer happens (it asks for no owner): take it out of the catalogue",
    ),
    "a-hazard-goes-elsewhere": (
        "{permits: [holder], moves: {held: ready},"
        " hazards: [{caller: stranger, moves: {held: ready}, because: it asks for no owner}],"
        " sql: DELETE FROM job WHERE id = :id AND state = 'held' AND :owner <> 'A'}",
        ("held", "stranger"),
        "it moved to absent; it must be refused",
    ),
    "it-ends-the-transaction": (
        "{sql: BEGIN; SELECT 1; COMMIT}",
        ("held", None),
        "its SQL begins or ends a transaction, so it cannot be tried and rolled back: leave that to the session",
    ),
    "another-subject-changes": (
        "{sql: \"UPDATE file SET job = NULL WHERE job = :id AND name = 'b'\"}",
        ("held", None),
        "it also changed file b: claimed -> free",
    ),
}  # fmt: skip

BESIDE = """
subjects:
  file: {key: {name: file.name}, from: file, show: [file.job]}
states:
  one: {subject: job, title: One, when: job.state = 'both'}
  two: {subject: job, title: Two, when: job.state = 'both' AND 1 / job.epoch > -1}
  free: {subject: file, title: Free, when: file.job IS NULL}
  claimed: {subject: file, title: Claimed, when: file.job IS NOT NULL}
invariants:
  nobody-evil: {title: No evil owner, sql: SELECT id FROM job WHERE owner = 'evil'}
scenarios:
  all:
    title: Everything that the faults need
    given:
      job: [{id: 1, state: held, owner: A, epoch: 1}, {id: 2, state: held, owner: B, epoch: 1}, {id: 3}, {id: 7},
            {id: 8, state: done, owner: A, epoch: 1}]
      file: [{name: b, job: 1}]
    steps: [{in: A, sql: SELECT 1}]
"""


@pytest.fixture(scope="module")
def faulty(stage: Stage) -> Proof:
    """One catalogue that has them all: each is in an action of its own."""
    lease = edited(
        LEASE[: LEASE.index("scenarios:")],
        ("('ready', 'held', 'done')", "('ready', 'held', 'done', 'odd', 'both')"),
        ("when: job.state = 'held'}", "when: \"CASE WHEN job.state = 'held' THEN 1 / job.epoch > -1 END\"}"),
        ("epoch integer NOT NULL DEFAULT 0)", "epoch integer NOT NULL DEFAULT 0);"
         " CREATE TABLE file (name text PRIMARY KEY, job bigint);"
         " CREATE FUNCTION raise_if(state text) RETURNS boolean LANGUAGE plpgsql AS"
         " $$ BEGIN RAISE SQLSTATE '55P03' USING message = 'as you wish'; END $$"),
    )
    actions = "".join(
        f"  {id}: {{subject: job, title: It, {action[1:]}\n" for id, (action, _, _) in FAULTS.items()
    )
    return sweep(stage, lease, f"{BESIDE}actions:\n{actions}")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_wrong_cell_says_what_is_wrong(faulty: Proof, fault: str) -> None:
    _, (state, caller), because = FAULTS[fault]
    assert wrong(faulty, state, fault, caller or "holder") == because
