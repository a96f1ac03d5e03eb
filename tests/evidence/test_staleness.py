"""Older evidence against a catalogue that has changed since."""

from __future__ import annotations

from pathlib import Path

import pytest

from failure_matrix.catalogue.load import load
from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database.cluster import Server
from failure_matrix.evidence.records import Evidence, Verdict
from failure_matrix.evidence.staleness import NEW, against
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
  note: {key: {note: note.id}, from: note}
states:
  ready: {subject: job, title: Ready, when: job.state = 'ready'}
  held: {subject: job, title: Held, when: job.state = 'held'}
  done: {subject: job, title: Done, when: job.state = 'done', final: true}
  written: {subject: note, title: Written, when: note.id > 0, final: true}
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
    assert _not_verified(today) == dict.fromkeys(("ready", "held"), "changed since: action hold")
    stale = [(move.from_, move.by) for move in today.moves if move.verdict is Verdict.STALE]
    assert stale == [("ready", "hold")]


def test_what_is_new_was_never_shown(evidence: Evidence, tmp_path: Path) -> None:
    more = "  lost: {subject: job, title: Lost, when: job.state = 'lost', final: true}\nactions:\n"
    today = against(evidence, _changed(tmp_path, "actions:\n", more))
    assert _not_verified(today) == {"lost": NEW}
    assert today.verdict is Verdict.UNREACHED


def test_what_is_gone_is_gone(evidence: Evidence, tmp_path: Path) -> None:
    gone = "  written: {subject: note, title: Written, when: note.id > 0, final: true}\n"
    today = against(evidence, _changed(tmp_path, gone, ""))
    assert "written" not in {state.id for state in today.states}


def test_broken_stays_broken(evidence: Evidence, tmp_path: Path) -> None:
    states = [state.model_copy(update={"verdict": Verdict.BROKEN, "because": "it was"}) for state in evidence.states]
    broken = evidence.model_copy(update={"states": tuple(states)})
    today = against(broken, _changed(tmp_path, "when: job.state = 'held'", "when: job.state IN ('held')"))
    assert {state.verdict for state in today.states} == {Verdict.BROKEN}
