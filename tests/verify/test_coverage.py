"""Coverage: the counts are those of the records, and what was left out is never called verified."""

from __future__ import annotations

from collections import Counter

import pytest
from tests.verify.proving import LEASE, Proof, Stage, edited, prove

from failure_matrix.evidence.records import Evidence, Verdict

OBSERVED = "observe: [{see: it, sql: SELECT 1 FROM job WHERE id = :id}]"
BESIDE = """
owners: {team: {title: The team}}
invariants: {none: {title: None, sql: SELECT 1 WHERE false}}
waivers: {one: {of: move ready finish done, owner: team, because: so, until: 2999-01-01}}
events:
"""
MIXED = edited(
    LEASE,
    ("  job: {key:", "  job: {values: {job.state: [ready, held, done], job.owner: [null, A]}, key:"),
    ("title: Ready, ", f"title: Ready, {OBSERVED}, "),
    ("title: Draft, ", "title: Draft, observe: [{see: it, sql: SELECT 1 WHERE false}], "),
    (
        "AND owner = :owner\n    moves: {held: done}",
        "AND owner = :owner AND 'x' = 'x'\n    moves: {held: done, ready: done}",
    ),
    ("events:\n", BESIDE),
)

KINDS = ("scenarios", "states", "moves", "cells", "guards", "population", "observations", "invariants")


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


def test_the_whole_is_the_worst_of_all(mixed: Proof, stage: Stage) -> None:
    assert mixed.evidence.verdict is Verdict.BROKEN
    waived = edited(MIXED, (" AND 'x' = 'x'", ""), ("sql: SELECT 1 WHERE false}], ", "sql: SELECT 1}], "))
    found = prove(
        stage, edited(waived, ("{held: done, ready: done}", "{held: done}"), ("move ready finish", "move held touch"))
    )
    assert found.evidence.verdict is Verdict.BROKEN
    name = "move held touch"
    assert found.not_verified() == [f"broken waiver one: nothing is called '{name} done': did you mean '{name} held'?"]


def test_what_has_no_verdict_has_a_reason(mixed: Proof) -> None:
    untried = [cell for cell in mixed.evidence.cells if cell.verdict is None]
    assert untried
    assert all(cell.because for cell in untried)
    assert all(guard.because for guard in mixed.evidence.guards if guard.verdict is None)


def test_every_cell_is_there_once(mixed: Proof) -> None:
    names = [(cell.state, cell.action, cell.caller) for cell in mixed.evidence.cells]
    states, actions, callers = ("absent", "draft", "ready", "held", "done"), 6, 4
    assert len(names) == len(set(names)) == len(states) * actions * callers


def test_a_state_is_as_bad_as_the_worst_that_bears_on_it(mixed: Proof) -> None:
    assert mixed.guard("'x' = 'x'").verdict is Verdict.BROKEN
    assert mixed.state("held").verdict is Verdict.BROKEN  # its action finish has a guard that nothing notices
    assert mixed.state("draft").verdict is Verdict.BROKEN  # its observation
    assert mixed.state("done").verdict is Verdict.VERIFIED


def test_quick_is_incomplete_and_never_verified(stage: Stage) -> None:
    proof = prove(stage, LEASE, quick=True)
    assert {state.verdict for state in proof.evidence.states} == {Verdict.INCOMPLETE}
    assert {state.because for state in proof.evidence.states} == {"sweep and guards were left out"}
    assert proof.evidence.verdict is Verdict.INCOMPLETE
    assert (proof.evidence.cells, proof.evidence.guards) == ((), ())


def test_a_part_says_what_did_not_run(stage: Stage) -> None:
    proof = prove(stage, LEASE, only=("asked",))
    assert proof.state("done").because == "only 1 of 3 scenarios ran"
    assert proof.state("done").verdict is Verdict.INCOMPLETE
    assert proof.evidence.coverage["scenarios"].of == 1
