"""The sweep: what each outcome means, what is put back, and what a cell that is wrong says to a tired person."""

from __future__ import annotations

import pytest
from tests.verify.proving import LEASE, Proof, Stage, edited, expected, fault, sweep

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.evidence.records import CellRecord, Outcome, Verdict, Witness
from failure_matrix.verify.assess import Assessment
from failure_matrix.verify.cells import Moved, cells
from failure_matrix.verify.tally import Tally

VERIFIED, BROKEN, UNREACHED = Verdict.VERIFIED, Verdict.BROKEN, Verdict.UNREACHED


@pytest.fixture(scope="module")
def lease(stage: Stage) -> Proof:
    return sweep(stage, LEASE)


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
    nobody = observed in (Outcome.NO_SUCH_CALLER, Outcome.CANNOT_CALL)  # proves nothing, and has no verdict
    assert (cell.expected, cell.observed, cell.to, cell.verdict) == (
        expected,
        observed,
        to,
        None if nobody else VERIFIED,
    )


def test_a_cell_says_what_the_answer_was_and_where(lease: Proof) -> None:
    cell = lease.cell("held", "ask", "stranger")
    assert (cell.sqlstate, cell.rows) == ("23505", None)
    assert lease.cell("held", "take", "stranger").rows == 0
    assert [(w.scenario, w.step) for w in lease.cell("held", "finish", "former").witnesses] == [("held", 5)]
    assert lease.cell("ready", "take", "mute").because == "cannot call: binds no owner"


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


@pytest.fixture(scope="module")
def faulty(stage: Stage) -> Proof:
    return sweep(stage, fault("cells"))


def test_each_fault_says_what_is_wrong(faulty: Proof) -> None:
    found = [line for line in faulty.not_verified() if not line.startswith("unreached")]
    assert found == expected("cells")
    assert faulty.evidence.verdict is BROKEN


def test_each_faulty_action_is_told(faulty: Proof) -> None:
    actions = {cell.action for cell in faulty.evidence.cells}
    assert {cell.action for cell in faulty.evidence.cells if cell.verdict is BROKEN} == actions


def test_what_a_try_ruins_is_broken_too(faulty: Proof) -> None:
    assert faulty.state("orphaned").verdict is BROKEN
    assert faulty.state("orphaned").because == (
        "cell held, duty-hides-ruin as holder: job 1 is orphaned, which must be empty"
    )
    assert faulty.invariant("nobody-evil").verdict is BROKEN


SMALL = """
catalogue:
  title: A small queue
  schema:
    - CREATE TABLE job (id bigint PRIMARY KEY, state text NOT NULL DEFAULT 'ready', next bigint, note text)
subjects:
  job: {key: {id: job.id}, from: job, show: [job.state]}
states:
  ready: {subject: job, title: Ready, when: job.state = 'ready'}
  blocked: {subject: job, title: Blocked, when: job.state = 'blocked'}
  done: {subject: job, title: Done, when: job.state = 'done'}
"""


def test_absent_needs_a_spare_key(stage: Stage) -> None:
    cell = sweep(stage, edited(LEASE, (" spare: {id: 99},", ""))).cell("absent", "ask", "stranger")
    assert (cell.observed, cell.verdict, cell.because) == (
        Outcome.NOT_TRIED, None, "job has no spare key to try it with",
    )  # fmt: skip


def test_a_spare_key_that_a_row_always_has_shows_nothing(stage: Stage) -> None:
    scenarios = """
scenarios:
  only: {title: Only, given: {job: [{id: 9}]}, steps: [{in: A, sql: SELECT 1}]}
actions:
  make:
    subject: job
    title: Make
    sql: INSERT INTO job (id) VALUES (:id) ON CONFLICT DO NOTHING
    moves: {absent: ready}
"""
    cell = sweep(stage, edited(SMALL, ("from: job,", "spare: {id: 9}, from: job,")), scenarios).cell("absent", "make")
    assert (cell.verdict, cell.because) == (
        UNREACHED, "wherever a scenario rests, a row has the spare key of job",
    )  # fmt: skip


def test_a_spare_key_gives_the_offers_that_stand_for_it(stage: Stage) -> None:
    more = """
actions:
  make:
    subject: job
    title: Make
    sql: INSERT INTO job (id) VALUES (:job) ON CONFLICT DO NOTHING
    moves: {absent: ready}
scenarios:
  only: {title: Only, steps: [{in: A, do: make, with: {job: 1}, rows: 1}]}
"""
    small = edited(SMALL, ("from: job,", "spare: {id: 9}, offers: {job: job.id}, from: job,"))
    assert sweep(stage, small, more).cell("absent", "make").observed is Outcome.MOVED


ALSO = """
actions:
  finish:
    subject: job
    title: Finish
    sql: |
      WITH freed AS (UPDATE job SET state = 'ready'
                      WHERE state = 'blocked' AND id = (SELECT next FROM job WHERE id = :id AND state = 'ready'))
      UPDATE job SET state = 'done' WHERE id = :id AND state = 'ready'
    moves: {ready: done}
    also: {blocked: ready}
  finish-first:
    subject: job
    title: Finish the first
    sql: |
      WITH first AS (SELECT id, next FROM job WHERE state = 'ready' ORDER BY id LIMIT 1),
           freed AS (UPDATE job SET state = 'ready' FROM first WHERE job.state = 'blocked' AND job.id = first.next)
      UPDATE job SET state = 'done' FROM first WHERE job.id = first.id
    moves: {ready: done}
    also: {blocked: ready}
scenarios:
  chain:
    title: One job lets the next run
    given: {job: [{id: 1, next: 2}, {id: 2, state: blocked}]}
    steps:
      - {in: A, do: finish, with: {id: 1}, rows: 1, then: {job: {1: done, 2: ready}}}
      - {in: A, do: finish-first, rows: 1, then: {job: {1: done, 2: done}}}
"""


def test_also_is_what_other_rows_may_do(stage: Stage) -> None:
    proof = sweep(stage, SMALL, ALSO)
    assert proof.not_verified() == []
    assert proof.cell("ready", "finish").observed is Outcome.MOVED
    assert proof.cell("blocked", "finish").observed is Outcome.REFUSED


def test_what_also_does_is_not_the_cell_s_own(stage: Stage) -> None:
    cell = sweep(stage, SMALL, ALSO).cell("blocked", "finish-first")
    assert (cell.expected, cell.observed, cell.verdict) == (Outcome.REFUSED, Outcome.TOOK_ANOTHER, VERIFIED)


def test_without_also_it_is_broken_where_the_action_names_its_row(stage: Stage) -> None:
    without = ALSO.replace("    also: {blocked: ready}\n", "", 1)
    cell = sweep(stage, SMALL, without).cell("ready", "finish")
    assert (cell.verdict, cell.because) == (BROKEN, "it also changed job 2: blocked -> ready")


CHOOSING = """
actions:
  finish-first:
    subject: job
    title: Finish the first
    sql: UPDATE job SET state = 'done' WHERE id = (SELECT min(id) FROM job WHERE state = 'ready')
    moves: {ready: done, blocked: done}
scenarios:
  first:
    title: The first is finished
    given: {job: [{id: 1}, {id: 2}, {id: 3, state: blocked}]}
    steps:
      - {in: A, do: finish-first, rows: 1, then: {job: {1: done, 2: ready}}}
"""


def test_a_choosing_action_must_have_taken_a_row_of_each_permitted_state(stage: Stage) -> None:
    proof = sweep(stage, SMALL, CHOOSING)
    taken, never = proof.cell("ready", "finish-first"), proof.cell("blocked", "finish-first")
    assert (taken.observed, taken.verdict) == (Outcome.MOVED, VERIFIED)
    assert (never.observed, never.verdict, never.because) == (
        Outcome.TOOK_ANOTHER, UNREACHED, "its row was never taken",
    )  # fmt: skip
    assert proof.state("blocked").verdict is UNREACHED


def test_a_choosing_action_must_take_no_row_of_another_state(stage: Stage) -> None:
    greedy = edited(CHOOSING, ("WHERE state = 'ready'", "WHERE state <> 'done'"), (", blocked: done", ""))
    given = edited(greedy, ("[{id: 1}, {id: 2}, {id: 3, state: blocked}]", "[{id: 1}, {id: 3, state: blocked}]"))
    cell = sweep(stage, SMALL, edited(given, ("1: done, 2: ready", "1: done"))).cell("blocked", "finish-first")
    assert (cell.verdict, cell.because) == (BROKEN, "it moved to done; it must be refused")


KEPT = """
catalogue:
  title: What a rollback keeps
  schema:
    - |
      CREATE TABLE job (id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, state text NOT NULL DEFAULT 'ready');
      CREATE TABLE log (id serial, job bigint);
      CREATE FUNCTION make() RETURNS bigint LANGUAGE plpgsql AS $$
        DECLARE made bigint;
        BEGIN
          PERFORM pg_advisory_lock(4711);
          INSERT INTO job DEFAULT VALUES RETURNING id INTO made;
          INSERT INTO log (job) VALUES (made);
          RETURN made;
        END $$;
subjects:
  job: {key: {id: job.id}, spare: {id: 0}, from: job, show: [job.state]}
states:
  ready: {subject: job, title: Ready, when: job.state = 'ready', final: true}
actions:
  make: {subject: job, title: Make, sql: SELECT make() AS made, moves: {absent: ready}}
  poke:
    subject: job
    title: Poke
    sql: SELECT nullif(:id, :id) AS poked
    refusal: {looks: {returns: [{poked: null}]}}
scenarios:
  made:
    title: Jobs are made
    steps:
      - {in: A, do: make, returns: [{made: 1}]}
      - {in: B, sql: SELECT pg_try_advisory_lock(4711) AS free, returns: [{free: f}]}
      - {in: A, sql: SELECT pg_advisory_unlock_all()}
      - {in: A, do: make, returns: [{made: 2}]}
      - {in: A, sql: SELECT max(id) AS last FROM log, returns: [{last: 2}]}
"""


@pytest.fixture(scope="module")
def kept(stage: Stage) -> Proof:
    return sweep(stage, KEPT)


def test_sequences_and_advisory_locks_are_put_back(kept: Proof) -> None:
    assert kept.not_verified() == []


def test_a_new_row_of_any_key_counts_where_the_key_is_generated(kept: Proof) -> None:
    cell = kept.cell("absent", "make")
    assert (cell.observed, cell.to) == (Outcome.MOVED, ("ready",))
    assert kept.cell("ready", "make").observed is Outcome.TOOK_ANOTHER


def test_a_function_that_returns_nothing_returns_a_row(kept: Proof) -> None:
    """A row of NULLs is 1 row: a refusal that is said to be 0 rows would not look so."""
    assert (kept.cell("ready", "poke").observed, kept.cell("ready", "poke").rows) == (Outcome.REFUSED, 1)


LOCKED = """
actions:
  finish:
    subject: job
    title: Finish
    sql: UPDATE job SET state = 'done' WHERE id = :id AND pg_advisory_xact_lock(id) IS NOT NULL
    moves: {ready: done, blocked: done}
scenarios:
  one:
    title: A job is blocked while a session holds its lock
    given: {job: [{id: 1}]}
    steps:
      - {in: A, sql: SELECT pg_advisory_lock(1)}
      - {in: A, sql: UPDATE job SET state = 'blocked', event: stumbles}
      - {in: A, sql: SELECT pg_advisory_unlock(1)}
events:
  stumbles: {title: It stumbles, moves: {ready: blocked}}
"""


def test_what_would_wait_for_a_lock_of_a_session_is_not_tried(stage: Stage) -> None:
    """Sessions that hold no transaction open can hold an advisory lock; the rows are as they are without it."""
    to_the_end = edited(LOCKED, ("      - {in: A, sql: SELECT pg_advisory_unlock(1)}\n", ""))
    cell = sweep(stage, SMALL, to_the_end).cell("blocked", "finish")
    assert (cell.observed, cell.verdict, cell.tries, cell.because) == (
        Outcome.NOT_TRIED, UNREACHED, 0, "wherever it was tried, it waits for a lock that a session holds",
    )  # fmt: skip
    proof = sweep(stage, SMALL, LOCKED)
    assert (proof.cell("ready", "finish").observed, proof.cell("blocked", "finish").tries) == (Outcome.MOVED, 1)


ENDING = """
actions:
  finish:
    subject: job
    title: Finish
    sql: UPDATE job SET state = 'done' WHERE id = :id AND state = 'ready'
    moves: {ready: done}
  give-up:
    subject: job
    title: Give up
    sql: SELECT pg_terminate_backend(pg_backend_pid()) FROM job WHERE id = :id AND state = 'done'
    moves: {ready: done}
scenarios:
  one: {title: One, given: {job: [{id: 1}]}, steps: [{in: A, do: finish, with: {id: 1}, rows: 1}]}
"""


def test_an_action_that_ends_its_own_backend_breaks_its_cell_alone(stage: Stage) -> None:
    proof = sweep(stage, SMALL, ENDING)
    cell = proof.cell("done", "give-up")
    assert (cell.observed, cell.verdict, cell.because) == (
        Outcome.NOT_TRIED, BROKEN, "it ends the backend that runs it, so it cannot be tried and rolled back",
    )  # fmt: skip
    assert [proof.cell("ready", "finish").verdict, proof.cell("done", "finish").verdict] == [VERIFIED, VERIFIED]


DEFERRED = """
actions:
  finish:
    subject: job
    title: Finish
    sql: UPDATE job SET state = 'done', next = 99 WHERE id = :id AND state = 'ready'
    moves: {ready: done}
    refusal: {looks: [{rows: 0}, {error: {sqlstate: "23503", constraint: next_exists}}]}
scenarios:
  one: {title: One, given: {job: [{id: 1}]}, steps: [{in: A, do: finish, with: {id: 1}, error: "23503"}]}
"""


def test_what_the_commit_would_refuse_is_refused(stage: Stage) -> None:
    deferred = "CONSTRAINT next_exists REFERENCES job DEFERRABLE INITIALLY DEFERRED"
    cell = sweep(stage, edited(SMALL, ("next bigint", f"next bigint {deferred}")), DEFERRED).cell("ready", "finish")
    assert (cell.observed, cell.sqlstate, cell.verdict) == (Outcome.REFUSED, "23503", BROKEN)


def test_tables_that_no_subject_covers_are_nobody_s_business(stage: Stage) -> None:
    more = """
actions:
  log:
    subject: job
    title: Log
    sql: INSERT INTO log SELECT id FROM job WHERE id = :id
    refusal: {looks: {silent: true}}
scenarios:
  logged: {title: Logged, given: {job: [{id: 1}]}, steps: [{in: A, do: log, with: {id: 1}, rows: 1}]}
"""
    small = edited(SMALL, ("note text)", "note text); CREATE TABLE log (job bigint)"))
    cell = sweep(stage, small, more).cell("ready", "log")
    assert (cell.observed, cell.rows, cell.verdict) == (Outcome.REFUSED, 1, VERIFIED)


def test_equal_situations_are_swept_once(stage: Stage) -> None:
    once = """
actions:
  finish:
    subject: job
    title: Finish
    sql: UPDATE job SET state = 'done' WHERE id = :id
    moves: {ready: done, done: done}
scenarios:
  one: {title: One, given: {job: [{id: 1}]}, steps: [{in: A, do: finish, with: {id: 1}, rows: 1}]}
"""
    twice = edited(once, ("with: {id: 1}, rows: 1}]", "with: {id: 1}, rows: 1}, {in: A, sql: UPDATE job SET id = id}]"))
    twice += "  two: {title: Two, given: {job: [{id: 1}]}, steps: [{in: A, sql: SELECT 1}]}\n"
    at_another_time = once + (
        "  two: {title: Two, given: {job: [{id: 1}]}, steps: [{at: 5}, {in: A, sql: SELECT 1}]}\n"
    )
    assert sweep(stage, SMALL, once).cell("ready", "finish").tries == 1
    assert sweep(stage, SMALL, twice).cell("ready", "finish").tries == 1
    assert sweep(stage, SMALL, at_another_time).cell("ready", "finish").tries == 2


STORE = """
catalogue:
  title: Files
  schema: ["CREATE TABLE job (id bigint PRIMARY KEY, file text)"]
stores: {box: {directory: box}}
subjects:
  file:
    key: {name: box.name}
    spare: {name: spare}
    from: box LEFT JOIN job ON job.file = box.name
    show: [box.bytes]
states:
  loose: {subject: file, title: Loose, when: job.id IS NULL}
  used: {subject: file, title: Used, when: job.id IS NOT NULL}
callers:
  anyone: {content: text}
  nameless: {content: null}
actions:
  put: {subject: file, title: Put, store: {create: box/$name, content: $content}, moves: {absent: loose}}
  clear:
    subject: file
    title: Clear
    sql: SELECT 1 WHERE NOT EXISTS (SELECT FROM job WHERE file = :name)
    store: {remove: box/$name}
    moves: {loose: absent}
    refusal: {looks: {rows: 0}}
  rename:
    subject: file
    title: Rename
    with: {to: a/b}
    store: {write: box/$to, content: $name}
scenarios:
  files:
    title: Files come and go
    given: {job: [{id: 1, file: used}], box: {used: a}}
    steps:
      - {in: A, do: put, with: {name: loose, content: text}, rows: 1, then: {file: {loose: loose, used: used}}}
      - {in: A, do: put, with: {name: loose, content: other}, rows: 0}
      - {in: A, do: clear, with: {name: loose}, rows: 1, then: {file: {used: used}}}
"""


def test_store_effects_never_touch_a_file(stage: Stage) -> None:
    """Were the sweep to remove or create one, the scenario's own steps would find it."""
    proof = sweep(stage, STORE)
    assert proof.not_verified() == []
    assert proof.cell("absent", "put", "anyone").to == ("loose",)
    assert proof.cell("loose", "put", "anyone").observed is Outcome.REFUSED
    assert proof.cell("loose", "clear", "anyone").to == ("absent",)
    assert proof.cell("used", "clear", "anyone").observed is Outcome.REFUSED
    cell = proof.cell("used", "rename", "anyone")
    assert cell.observed is Outcome.CANNOT_CALL
    assert "a/b" in (cell.because or "")


def test_evidence_keeps_what_is_hidden_and_what_varies_to_itself(stage: Stage) -> None:
    text = fault("cells").replace(
        "show: [job.state, job.owner, job.epoch]}", "show: [job.state, job.owner, job.epoch], hide: [job.owner]}"
    )
    lines = [line for line in sweep(stage, text).not_verified() if "breaks-an-invariant" in line]
    assert lines
    assert not any('evil"' in line for line in lines)


def test_row_security_hides_nothing_from_the_sweep(stage: Stage) -> None:
    more = """
actions:
  finish:
    subject: job
    title: Finish
    sql: UPDATE job SET state = 'done' WHERE id = :id AND state = 'ready'
    moves: {ready: done}
scenarios:
  one: {title: One, given: {job: [{id: 1}]}, steps: [{in: A, do: finish, with: {id: 1}, rows: 1}]}
"""
    closed = "; ALTER TABLE job ENABLE ROW LEVEL SECURITY; ALTER TABLE job FORCE ROW LEVEL SECURITY"
    proof = sweep(stage, edited(SMALL, ("next bigint, note text)", f"next bigint, note text){closed}")), more)
    assert proof.cell("ready", "finish").observed is Outcome.MOVED


HAZARDS = """
actions:
  steal:
    subject: job
    title: Steal
    permits: [holder]
    requires: ":owner <> 'stranger'"
    sql: UPDATE job SET owner = :owner WHERE id = :id AND state = 'held'
    moves: {held: held}
    hazards: [{moves: {held: held, done: held}, because: it asks for no owner}]
"""


@pytest.fixture(scope="module")
def hazards(stage: Stage) -> Catalogue:
    return stage.catalogue(LEASE, HAZARDS)


def recorded(
    catalogue: Catalogue, state: str, caller: str, *outcomes: Assessment, moved: Moved | None = None
) -> CellRecord:
    """The record of a cell that had these tries."""
    tally = Tally()
    for step, outcome in enumerate(outcomes):
        tally.add(outcome, Witness(scenario="held", step=step))
    found = cells(catalogue, {(state, "steal", caller): tally}, moved or {}, {})
    return next(cell for cell in found if (cell.state, cell.action, cell.caller) == (state, "steal", caller))


MOVED_ = Assessment(outcome=Outcome.MOVED, to="held", rows=1)
HELD_BACK = Assessment(outcome=Outcome.HELD_BACK, to="held", rows=1, note="its requirement did not hold")
NOBODY = Assessment(outcome=Outcome.NO_SUCH_CALLER)
REFUSED = Assessment(outcome=Outcome.REFUSED, rows=0)


def test_a_permitted_cell_shows_that_it_moved_and_what_else_was_seen(hazards: Catalogue) -> None:
    cell = recorded(hazards, "held", "holder", HELD_BACK, MOVED_, Assessment(outcome=Outcome.MOVED, to="done"))
    assert (cell.observed, cell.verdict, cell.to, cell.tries) == (Outcome.MOVED, VERIFIED, ("held", "done"), 3)
    assert cell.because == "where its requirement does not hold, only the caller's duty holds it back"
    assert [witness.step for witness in cell.witnesses] == [1, 0]


def test_a_permitted_cell_of_a_caller_who_is_nowhere_is_not_said_to_have_moved(hazards: Catalogue) -> None:
    """A scenario's own step made the move, and says nothing about this caller."""
    seen = {("held", "steal", "held"): [Witness(scenario="held", step=1)]}
    cell = recorded(hazards, "held", "holder", NOBODY, moved=seen)
    assert (cell.expected, cell.observed, cell.verdict) == (Outcome.MOVED, Outcome.NO_SUCH_CALLER, None)


def test_a_permitted_cell_that_nothing_showed_is_unreached(hazards: Catalogue) -> None:
    cell = recorded(hazards, "held", "holder", HELD_BACK)
    assert (cell.observed, cell.verdict) == (Outcome.HELD_BACK, UNREACHED)
    assert cell.because == "permitted, and never shown: its requirement did not hold"


READ_ONLY = "ERROR 25006: cannot execute nextval() in a read-only transaction"
RESCUE = """
actions:
  rescue:
    subject: job
    title: Rescue
    sql: UPDATE job SET state = 'ready' WHERE id = :id AND state = 'done' AND owner IS NULL
    moves: {orphaned: ready}
scenarios:
  rescued:
    title: The way out of a state that must be empty
    after: pitfall
    steps:
      - {in: A, sql: SELECT 1}
      - {in: A, do: rescue, with: {id: 1}, rows: 1, then: {job: {1: ready}}}
"""


def test_the_way_out_of_an_illegal_state_begins_in_it_and_nothing_is_swept_there(stage: Stage) -> None:
    proof = sweep(stage, LEASE, RESCUE)
    rescued = next(record for record in proof.evidence.scenarios if record.id == "rescued")
    assert (rescued.verdict, [seen.state for seen in rescued.given]) == (VERIFIED, ["orphaned"])
    moves = {(move.from_, move.by): move.verdict for move in proof.evidence.moves}
    assert moves["orphaned", "rescue"] is VERIFIED
    assert {cell.state for cell in proof.evidence.cells}.isdisjoint({"orphaned"})
    assert not [cell for cell in proof.evidence.cells if cell.verdict is BROKEN]


ASKED = """
  sign-off:
    subject: job
    title: Sign off
    permits: [holder]
    sql: UPDATE job SET state = 'done' WHERE id = :id AND state = 'held' AND owner = :owner AND epoch = :epoch
    moves: {held: done}
    refusal:
      ask: SELECT state, owner = :owner AS yours FROM job WHERE id = :id
"""


def test_the_record_is_asked_wherever_an_action_was_refused(stage: Stage) -> None:
    proof = sweep(stage, edited(LEASE, ("  give-back:\n", f"{ASKED.lstrip(chr(10))}  give-back:\n")))
    assert proof.cell("held", "sign-off", "holder").answers == ()
    assert proof.cell("held", "sign-off", "stranger").answers == ("held, f",)
    assert proof.cell("ready", "sign-off", "stranger").answers == ("ready, null",)
    assert proof.cell("absent", "sign-off", "stranger").answers == ("no row",)
    assert proof.cell("held", "touch", "stranger").answers == ()


@pytest.mark.parametrize(
    ("ask", "wrong"),
    [
        (
            "SELECT 1 / (epoch - epoch) FROM job WHERE id = :id",
            "the record cannot be asked after a refusal: ERROR 22012: division by zero",
        ),
        ("SELECT 1 FROM generate_series(1, 2)", "asked after a refusal, the record gives 2 rows, and an answer is one"),
        (
            "SELECT nextval('job_seq')",
            f"the record cannot be asked after a refusal: {READ_ONLY}",
        ),
    ],
)
def test_a_record_that_cannot_be_asked_is_a_fault(stage: Stage, ask: str, wrong: str) -> None:
    asked = ASKED.lstrip("\n").replace("SELECT state, owner = :owner AS yours FROM job WHERE id = :id", f'"{ask}"')
    made = edited(
        LEASE,
        ("  give-back:\n", f"{asked}  give-back:\n"),
        ("      CREATE TABLE", "      CREATE SEQUENCE job_seq; CREATE TABLE"),
    )
    cell = sweep(stage, made).cell("held", "sign-off", "stranger")
    assert (cell.verdict, cell.because) == (BROKEN, wrong)


def test_a_hazard_for_everyone_needs_not_every_caller(hazards: Catalogue) -> None:
    assert recorded(hazards, "done", "former", NOBODY).verdict is None


def test_a_hazard_must_happen(hazards: Catalogue) -> None:
    cell = recorded(hazards, "done", "stranger", REFUSED)
    assert (cell.expected, cell.verdict, cell.because) == (
        Outcome.UNSAFE, BROKEN, "the hazard that is declared here did not happen",
    )  # fmt: skip
    unshown = recorded(hazards, "done", "stranger", HELD_BACK)
    assert (unshown.verdict, unshown.because) == (
        UNREACHED, "a hazard is declared here, and its requirement never held",
    )  # fmt: skip


def test_one_bad_witness_is_enough(hazards: Catalogue) -> None:
    bad = Assessment(outcome=Outcome.MOVED, to="ready", wrong="it moved to ready; declared is held")
    cell = recorded(hazards, "held", "holder", MOVED_, bad, MOVED_)
    assert (cell.verdict, cell.because, [witness.step for witness in cell.witnesses]) == (BROKEN, bad.wrong, [1])
