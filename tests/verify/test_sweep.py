"""The sweep: what each outcome means, what is put back, and what a cell that is wrong says to a tired person."""

from __future__ import annotations

import pytest
from tests.verify.proving import LEASE, Edit, Proof, Stage, sweep

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


STEP_3, STEP_6 = (
    "do: touch, with: {id: 1, owner: A, epoch: 1}, rows: 1",
    "do: touch, with: {id: 1, owner: A, epoch: 1}, rows: 0",
)
NOT_TOUCHED = "do: touch, with: {id: 1, owner: A, epoch: 0}, rows: 0"
TOUCH = "UPDATE job SET epoch = epoch WHERE id = :id AND state = 'held' AND owner = :owner AND epoch = :epoch"
GIVE_BACK = "SET state = 'ready', owner = NULL"

FAULTS: dict[str, tuple[list[Edit], tuple[str, str, str], str]] = {
    "a guard is missing": (
        [("id = :id AND state = 'ready'\n    moves: {ready: held}", "id = :id\n    moves: {ready: held}")],
        ("held", "take", "stranger"),
        "it changed the row; it must be refused",
    ),
    "a caller is permitted that is refused": (
        [("title: Touch\n    permits: [holder]", "title: Touch\n    permits: [holder, stranger]")],
        ("held", "touch", "stranger"),
        "it is permitted here, and was refused: 0 rows",
    ),
    "a caller is not permitted that is let through": (
        [("title: Take\n", "title: Take\n    permits: [holder]\n")],
        ("ready", "take", "stranger"),
        "it moved to held; it must be refused",
    ),
    "a refusal has another constraint": (
        [("constraint: job_pkey", "constraint: job_key")],
        ("held", "ask", "stranger"),
        (
            "it changed nothing, and its answer is error 23505 (job_pkey): duplicate key value violates unique"
            ' constraint "job_pkey"; a refusal looks like error 23505 (job_key)'
        ),
    ),
    "a hazard is gone": (
        [
            (
                "AND owner = :owner\n    moves: {held: done}",
                "AND owner = :owner AND epoch = :epoch\n    moves: {held: done}",
            ),
            ("do: finish, with: {id: 1, owner: A}", "do: finish, with: {id: 1, owner: A, epoch: 2}"),
            ("do: finish, with: {id: 2, owner: B}", "do: finish, with: {id: 2, owner: B, epoch: 1}"),
        ],
        ("held", "finish", "former"),
        "the hazard that is declared here no longer happens (it asks for no epoch): take it out of the catalogue",
    ),
    "a false duty ruins": (
        [(GIVE_BACK, "SET state = CASE WHEN :reason = 'signed' THEN 'ready' ELSE 'done' END, owner = NULL")],
        ("held", "give-back", "stranger"),
        "job 1 is orphaned, which must be empty",
    ),
    "a row of the subject changes elsewhere": (
        [("id = :id AND state = 'ready'\n    moves", "(id = :id OR id = 7) AND state = 'ready'\n    moves")],
        ("ready", "take", "stranger"),
        "it also changed job 7: ready -> held",
    ),
    "its shown columns change elsewhere": (
        [
            (
                TOUCH,
                "UPDATE job SET epoch = epoch + (id <> :id)::int WHERE owner = :owner AND state = 'held' AND :epoch > 0",
            ),
            (STEP_3, NOT_TOUCHED),
            (STEP_6, NOT_TOUCHED),
        ],
        ("held", "touch", "holder"),
        "it also changed job 2, which stays held",
    ),
    "the answer is an error": (
        [(TOUCH, TOUCH.replace("= epoch WHERE", "= epoch / (epoch - 1) WHERE")), (STEP_3, NOT_TOUCHED)],
        ("held", "touch", "holder"),
        "it is permitted here, and nothing changed: error 22012: division by zero",
    ),
    "a requirement cannot be asked": (
        [("requires: :reason = 'signed'", "requires: 1 / length(substr(:reason, 5)) > 0")],
        ("held", "give-back", "holder"),
        "its requirement cannot be asked: ERROR 22012: division by zero",
    ),
    "a caller cannot be asked": (
        [
            ("SELECT owner, epoch - 1 AS epoch FROM job", "SELECT owner, 1 / (epoch - 1) AS epoch FROM job"),
            ("WHERE id = :id AND epoch > 1", "WHERE id = :id AND epoch > 0"),
        ],
        ("held", "touch", "former"),
        "the caller former cannot be asked: ERROR 22012: division by zero",
    ),
    "it leaves what cannot be classified": (
        [
            ("when: job.state = 'held'}", "when: job.state = 'held' AND 1 / (3 - job.epoch) IS NOT NULL}"),
            (GIVE_BACK, f"{GIVE_BACK}, epoch = CASE WHEN :reason = 'signed' THEN epoch ELSE 3 END"),
        ],
        ("held", "give-back", "holder"),
        "what it leaves cannot be classified: ERROR 22012: division by zero",
    ),
    "it ends the transaction": (
        [
            ("sql: INSERT INTO job (id) VALUES (:id)", "sql: BEGIN; SELECT 1; COMMIT"),
            ("do: ask, with: {id: 3}, rows: 1", "sql: INSERT INTO job (id) VALUES (3), carries_out: ask"),
        ],
        ("ready", "ask", "stranger"),
        "its SQL begins or ends a transaction, so it cannot be tried and rolled back: leave that to the session",
    ),
}


@pytest.mark.parametrize(("edits", "cell", "because"), FAULTS.values(), ids=list(FAULTS))
def test_a_wrong_cell_says_what_is_wrong(
    stage: Stage, edits: list[Edit], cell: tuple[str, str, str], because: str
) -> None:
    assert wrong(sweep(stage, LEASE, *edits), *cell) == because
