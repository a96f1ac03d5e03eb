"""Older evidence against a catalogue that has changed since."""

from __future__ import annotations

from pathlib import Path

import pytest

from failure_matrix.catalogue.load import load
from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database.cluster import Server
from failure_matrix.evidence.records import Evidence, Verdict
from failure_matrix.evidence.renewal import NEW
from failure_matrix.evidence.staleness import against
from failure_matrix.verify import verify

TEXT = """
catalogue:
  title: Two tables
  schema:
    - |
      CREATE TABLE job (id bigint PRIMARY KEY, state text NOT NULL CHECK (state IN ('ready', 'done', 'held')));
      CREATE TABLE note (id bigint PRIMARY KEY, text text NOT NULL CHECK (text <> ''));
subjects:
  job: {key: {id: job.id}, from: job, show: [job.state]}
  note: {key: {note: note.id}, from: note, spare: {note: 9}}
states:
  ready:
    subject: job
    title: Ready
    when: job.state = 'ready'
    observe: [{see: it is ready, sql: SELECT 1 FROM job WHERE id = :id AND state = 'ready'}]
    retention: {keep: for ever, cost: "SELECT count(*), 'rows' FROM job"}
  held: {subject: job, title: Held, when: job.state = 'held'}
  done: {subject: job, title: Done, when: job.state = 'done', final: true}
  written: {subject: note, title: Written, when: note.id > 0, final: true}
  nowhere: {subject: note, title: Nowhere, when: note.id < 0, illegal: true}
callers:
  worker: {worker: w}
  visitor: {}
actions:
  finish:
    subject: job
    title: Finish
    sql: UPDATE job SET state = 'done' WHERE id = :id AND state = 'ready'
    moves: {ready: done}
  hold:
    subject: job
    title: Hold
    sql: UPDATE job SET state = 'held' WHERE id = :id AND state = 'ready'
    moves: {ready: held}
  note:
    subject: note
    title: Write a note
    sql: INSERT INTO note SELECT :note, :worker
    moves: {absent: written}
    refusal: {looks: {error: "23505"}}
scenarios:
  finish-once:
    title: A job is finished once
    given: {job: [{id: 1, state: ready}], note: [{id: 1, text: x}]}
    steps:
      - {in: A, do: finish, with: {id: 1}, rows: 1}
      - {in: A, do: finish, with: {id: 1}, rows: 0}
  hold-once:
    title: A job is held once
    given: {job: [{id: 1, state: ready}]}
    steps:
      - {in: A, do: hold, with: {id: 1}, rows: 1}
      - {in: A, sql: SELECT 1 AS answer, returns: [{answer: 1}]}
  hold-again:
    title: A job is held, and nobody asks further
    given: {job: [{id: 1, state: ready}]}
    steps:
      - {in: A, do: hold, with: {id: 1}, rows: 1}
  a-note:
    title: A note is written
    steps:
      - {in: A, do: note, with: {note: 2, worker: w}, rows: 1}
invariants:
  few: {title: Few jobs, sql: SELECT id FROM job WHERE id > 100}
"""


@pytest.fixture(scope="module")
def evidence(server: Server, tmp_path_factory: pytest.TempPathFactory) -> Evidence:
    return verify(_load(tmp_path_factory.mktemp("then"), TEXT), server)


def _load(directory: Path, text: str) -> Catalogue:
    (directory / "matrix.yaml").write_text(text)
    return load(directory)


def _changed(directory: Path, old: str, new: str) -> Catalogue:
    assert TEXT.count(old) == 1
    return _load(directory, TEXT.replace(old, new))


def _not_verified(evidence: Evidence) -> dict[str, str | None]:
    return {state.id: state.because for state in evidence.states if state.verdict is not Verdict.VERIFIED}


def test_nothing_changed(evidence: Evidence, tmp_path: Path) -> None:
    today = against(evidence, _load(tmp_path, TEXT))
    assert today.verdict is Verdict.VERIFIED
    assert today == evidence


def test_comments_and_white_space_change_nothing(evidence: Evidence, tmp_path: Path) -> None:
    catalogue = _changed(tmp_path, "when: job.state = 'held'", "when: \"job.state   = /* still */ 'held'\"")
    assert against(evidence, catalogue).verdict is Verdict.VERIFIED


def test_prose_changes_nothing(evidence: Evidence, tmp_path: Path) -> None:
    catalogue = _changed(tmp_path, "title: Held, when", "title: Held back, when")
    assert against(evidence, catalogue).verdict is Verdict.VERIFIED


def test_a_predicate_makes_its_state_stale_and_only_that_one(evidence: Evidence, tmp_path: Path) -> None:
    today = against(evidence, _changed(tmp_path, "when: job.state = 'held'", "when: job.state IN ('held')"))
    assert _not_verified(today) == {"held": "changed since: state held"}
    assert today.verdict is Verdict.STALE


def test_a_check_dropped_makes_stale_what_rests_on_its_table(evidence: Evidence, tmp_path: Path) -> None:
    today = against(evidence, _changed(tmp_path, " CHECK (state IN ('ready', 'done', 'held'))", ""))
    assert _not_verified(today) == dict.fromkeys(("ready", "held", "done"), "changed since: schema job")


def test_an_action_makes_stale_the_states_that_it_joins(evidence: Evidence, tmp_path: Path) -> None:
    held = "UPDATE job SET state = 'held' WHERE "
    today = against(evidence, _changed(tmp_path, f"{held}id = :id", f"{held}:id = id"))
    whether = "as worker: changed since: action hold"  # nobody knows what it does to a job that is done
    assert _not_verified(today) == {
        **dict.fromkeys(("ready", "held"), "changed since: action hold"),
        "done": f"hold {whether}",
    }
    stale = [(move.from_, move.by) for move in today.moves if move.verdict is Verdict.STALE]
    assert stale == [("ready", "hold")]


def test_a_caller_makes_stale_what_it_was_tried_in(evidence: Evidence, tmp_path: Path) -> None:
    today = against(evidence, _changed(tmp_path, "worker: {worker: w}", "worker: {worker: v}"))
    stale = {(cell.action, cell.caller) for cell in today.cells if cell.verdict is Verdict.STALE}
    assert {caller for _, caller in stale} == {"worker"}
    assert _not_verified(today)["written"] == "note as worker: changed since: caller worker"


def test_a_new_caller_has_not_been_tried(evidence: Evidence, tmp_path: Path) -> None:
    today = against(evidence, _changed(tmp_path, "  visitor: {}\n", "  visitor: {}\n  thief: {worker: t}\n"))
    new = [cell for cell in today.cells if cell.because == NEW]
    assert {cell.caller for cell in new} == {"thief"}
    assert {cell.verdict for cell in new} == {Verdict.UNREACHED}
    assert _not_verified(today)["ready"] == f"finish as thief: {NEW}"
    assert today.coverage["cells"].of == evidence.coverage["cells"].of + len(new)


def test_a_new_action_is_told_as_new(evidence: Evidence, tmp_path: Path) -> None:
    more = "  drop: {subject: job, title: Drop, sql: DELETE FROM job WHERE id = :id, moves: {held: absent}}\n"
    note = "  note:\n    subject"
    today = against(evidence, _changed(tmp_path, note, more + note))
    assert _not_verified(today)["held"] == "changed since: action drop (new)"
    assert ("held", "drop", NEW) in {(move.from_, move.by, move.because) for move in today.moves}
    assert [guard.because for guard in today.guards if guard.action == "drop"] == [NEW]


def test_a_new_invariant_was_never_asked(evidence: Evidence, tmp_path: Path) -> None:
    more = "invariants:\n  none: {title: None, sql: SELECT id FROM note WHERE id > 100}\n"
    today = against(evidence, _changed(tmp_path, "invariants:\n", more))
    assert {record.id: record.verdict for record in today.invariants} == {
        "none": Verdict.UNREACHED, "few": Verdict.VERIFIED,
    }  # fmt: skip


def test_a_cost_is_what_was_measured(evidence: Evidence, tmp_path: Path) -> None:
    today = against(evidence, _changed(tmp_path, "SELECT count(*), 'rows'", "SELECT count(*) * 2, 'rows'"))
    assert _not_verified(today) == {"ready": "changed since: observations ready"}


def test_a_check_reaches_tries_that_are_nothing_but_a_write_elsewhere(evidence: Evidence, tmp_path: Path) -> None:
    """A caller's constants and an action without SQL name no table; their cell's row still has one."""
    today = against(evidence, _changed(tmp_path, " CHECK (text <> '')", ""))
    tried = [cell for cell in today.cells if cell.action == "note" and cell.verdict is not None]
    assert {cell.verdict for cell in tried} == {Verdict.STALE}


def test_one_scenario_as_it_was_is_enough(evidence: Evidence, tmp_path: Path) -> None:
    """What one scenario asks besides makes nothing stale that another one shows."""
    today = against(evidence, _changed(tmp_path, "SELECT 1 AS answer, returns", "SELECT 2 - 1 AS answer, returns"))
    assert _not_verified(today) == {}
    assert [record.id for record in today.scenarios if record.verdict is Verdict.STALE] == ["hold-once"]
    assert {move.verdict for move in today.moves} == {Verdict.VERIFIED}


def test_a_guard_is_as_old_as_who_noticed(evidence: Evidence, tmp_path: Path) -> None:
    today = against(evidence, _changed(tmp_path, "finish, with: {id: 1}, rows: 0", "finish, with: {id: 2}, rows: 0"))
    stale = [(guard.action, guard.guard) for guard in today.guards if guard.verdict is Verdict.STALE]
    assert stale == [("finish", "state = 'ready'")]


def test_of_a_part_of_the_scenarios_the_rest_is_not_new(server: Server, tmp_path: Path) -> None:
    catalogue = _load(tmp_path, TEXT)
    part = verify(catalogue, server, only=["hold-once"])
    assert against(part, catalogue) == part
    quick = verify(catalogue, server, quick=True)
    assert against(quick, catalogue) == quick


def test_what_is_new_was_never_shown(evidence: Evidence, tmp_path: Path) -> None:
    more = "  lost: {subject: job, title: Lost, when: job.state = 'lost', final: true}\ncallers:\n"
    today = against(evidence, _changed(tmp_path, "callers:\n", more))
    assert _not_verified(today) == {"lost": NEW}
    assert today.verdict is Verdict.UNREACHED


def test_what_is_gone_is_gone(evidence: Evidence, tmp_path: Path) -> None:
    gone = "  nowhere: {subject: note, title: Nowhere, when: note.id < 0, illegal: true}\n"
    today = against(evidence, _changed(tmp_path, gone, ""))
    assert "nowhere" not in {state.id for state in today.states}


def test_broken_stays_broken(evidence: Evidence, tmp_path: Path) -> None:
    states = [state.model_copy(update={"verdict": Verdict.BROKEN, "because": "it was"}) for state in evidence.states]
    broken = evidence.model_copy(update={"states": tuple(states)})
    today = against(broken, _changed(tmp_path, "when: job.state = 'held'", "when: job.state IN ('held')"))
    assert {state.verdict for state in today.states} == {Verdict.BROKEN}
