"""Coverage: the counts are those of the records, and what was left out is never called verified."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.verify.proving import FAULTS, Proof, Stage, edited, prove

from failure_matrix.catalogue.findings import Severity
from failure_matrix.catalogue.load import load
from failure_matrix.catalogue.rules import check
from failure_matrix.evidence.records import Evidence, Verdict

MIXED = """
catalogue:
  title: A queue with something of every verdict
  schema: ["CREATE TABLE job (id bigint PRIMARY KEY, state text NOT NULL DEFAULT 'ready')"]
owners: {team: {title: The team}}
subjects:
  job: {key: {id: job.id}, from: job, show: [job.state], values: {job.state: [ready, done]}}
states:
  draft: {subject: job, title: Draft, uncommitted: true, when: "true", observe: [{see: it, sql: SELECT 1 WHERE false}]}
  ready: {subject: job, title: Ready, when: job.state = 'ready', observe: [{see: it, sql: SELECT 1}]}
  done: {subject: job, title: Done, when: job.state = 'done', final: true}
actions:
  ask:
    subject: job
    title: Ask
    sql: INSERT INTO job (id) VALUES (:id)
    moves: {absent: draft}
    refusal: {looks: {error: "23505"}}
  finish:
    subject: job
    title: Finish
    sql: UPDATE job SET state = 'done' WHERE id = :id AND state = 'ready' AND 'x' = 'x'
    moves: {ready: done, draft: done}
events:
  commit: {title: It commits, moves: {draft: ready}}
mechanisms:
  asking: {title: Asking, scenarios: [asked]}
  all-of-it: {title: All of it, scenarios: [asked, finished]}
  later: {title: Later, scenarios: []}
invariants:
  none: {title: None, sql: SELECT 1 WHERE false}
waivers:
  one: {of: move draft finish done, owner: team, because: so, until: 2999-01-01}
scenarios:
  asked:
    title: A job is asked for
    steps:
      - {in: A, sql: BEGIN}
      - {in: A, do: ask, with: {id: 1}, seen_by: {A: {job: {1: draft}}}}
      - {in: A, sql: COMMIT, then: {job: {1: ready}}}
  finished:
    title: A job is finished
    given: {job: [{id: 1}]}
    steps:
      - {in: A, do: finish, with: {id: 1}, rows: 1, then: {job: {1: done}}}
      - {in: A, do: finish, with: {id: 1}, rows: 0}
"""

KINDS = ("scenarios", "mechanisms", "states", "moves", "cells", "guards", "population", "observations", "invariants")


@pytest.fixture(scope="module")
def mixed(stage: Stage) -> Proof:
    return prove(stage, MIXED)


def verdicts(evidence: Evidence, kind: str) -> Counter[Verdict | None]:
    records = getattr(evidence, kind)
    return Counter(each.verdict for each in records if getattr(each, "part", None) != "assignment")


@pytest.mark.parametrize("kind", KINDS)
def test_counts_are_those_of_the_records(mixed: Proof, kind: str) -> None:
    count, found = mixed.evidence.coverage[kind], verdicts(mixed.evidence, kind)
    assert (count.verified, count.waived, count.not_tried) == (
        found[Verdict.VERIFIED], found[Verdict.WAIVED], found[None],
    )  # fmt: skip
    assert count.of == sum(found.values()) - found[None]
    assert count.of > 0


def test_every_verdict_is_there_to_be_counted(mixed: Proof) -> None:
    found = sum((verdicts(mixed.evidence, kind) for kind in KINDS), Counter())
    assert {Verdict.VERIFIED, Verdict.WAIVED, Verdict.BROKEN, None} <= set(found)


def test_a_mechanism_is_as_good_as_the_worst_of_its_scenarios(mixed: Proof, stage: Stage) -> None:
    def told(proof: Proof) -> dict[str, tuple[Verdict, str | None]]:
        return {record.id: (record.verdict, record.because) for record in proof.evidence.mechanisms}

    never = (Verdict.UNREACHED, "no scenario shows it")
    good = (Verdict.VERIFIED, None)
    assert told(mixed) == {"asking": good, "all-of-it": good, "later": never}
    part = told(prove(stage, MIXED, only=("asked",)))
    assert part["all-of-it"] == (Verdict.INCOMPLETE, "only 1 of its 2 scenarios ran")
    assert part["asking"] == good
    broken = told(prove(stage, edited(MIXED, ("with: {id: 1}, rows: 0", "with: {id: 1}, rows: 1"))))
    assert broken["asking"] == good
    assert broken["all-of-it"] == (Verdict.BROKEN, "finished: A did finish: 0 rows, expected 1")


def test_the_whole_is_the_worst_of_all(mixed: Proof, stage: Stage) -> None:
    assert mixed.evidence.verdict is Verdict.BROKEN
    mended = edited(
        MIXED,
        (" AND 'x' = 'x'", ""),
        ("SELECT 1 WHERE false}]}", "SELECT 1}]}"),
        ("scenarios: []", "scenarios: [asked]"),
    )
    assert prove(stage, mended).evidence.verdict is Verdict.WAIVED
    unneeded = edited(mended, (", draft: done}", "}"), ("move draft finish done", "move ready finish done"))
    assert prove(stage, unneeded).evidence.verdict is Verdict.BROKEN


def test_what_has_no_verdict_has_a_reason(mixed: Proof) -> None:
    untried = [cell for cell in mixed.evidence.cells if cell.verdict is None]
    assert untried
    assert all(cell.because for cell in untried)
    assert all(guard.because for guard in mixed.evidence.guards if guard.verdict is None)


def test_every_cell_is_there_once(mixed: Proof) -> None:
    names = [(cell.state, cell.action) for cell in mixed.evidence.cells]
    assert sorted(names) == sorted(
        (state, action) for state in ("absent", "draft", "ready", "done") for action in ("ask", "finish")
    )


def test_a_state_is_as_bad_as_the_worst_that_bears_on_it(mixed: Proof) -> None:
    assert mixed.guard("'x' = 'x'").verdict is Verdict.BROKEN
    assert mixed.state("ready").verdict is Verdict.BROKEN  # its action has a guard that nothing notices
    assert mixed.state("draft").verdict is Verdict.BROKEN  # its observation gives no row
    assert mixed.state("done").verdict is Verdict.VERIFIED


def test_quick_is_incomplete_and_never_verified(stage: Stage) -> None:
    good = edited(MIXED, (" AND 'x' = 'x'", ""), ("SELECT 1 WHERE false}]}", "SELECT 1}]}"))
    proof = prove(stage, good, quick=True)
    assert {state.verdict for state in proof.evidence.states} == {Verdict.INCOMPLETE}
    assert {state.because for state in proof.evidence.states} == {"sweep and guards were left out"}
    assert proof.evidence.verdict is Verdict.INCOMPLETE
    assert (proof.evidence.cells, proof.evidence.guards) == ((), ())


def test_a_part_says_what_did_not_run(stage: Stage) -> None:
    proof = prove(stage, MIXED, only=("asked",))
    assert proof.state("done").because == "only 1 of 2 scenarios ran"
    assert proof.state("done").verdict is Verdict.INCOMPLETE
    assert proof.evidence.coverage["scenarios"].of == 1


@pytest.mark.parametrize("kind", sorted(path.name for path in FAULTS.iterdir()))
def test_a_fault_catalogue_is_wrong_only_where_a_server_sees_it(kind: str) -> None:
    found = check(load(FAULTS / kind))
    assert [str(each) for each in found if each.severity is Severity.ERROR] == []
