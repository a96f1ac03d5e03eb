"""Waivers: they stand until their day, while what they waive does not hold, and no longer."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
from tests.verify.proving import Proof, Stage, edited, prove

from failure_matrix.catalogue.load import load
from failure_matrix.evidence.records import Verdict, WaiverRecord
from failure_matrix.evidence.waiving import Waiving

WAIVERS = """
catalogue: {title: A test}
owners: {team: {title: The team}}
waivers:
  one: {of: state ready, owner: team, because: it is being mended, until: 2027-01-31}
  two: {of: state ready, owner: team, because: it is known, until: 2027-06-30}
"""

GOOD, BAD = Verdict.VERIFIED, Verdict.BROKEN


def waiving(directory: Path, today: str, *, whole: bool = True) -> Waiving:
    (directory / "matrix.yaml").write_text(WAIVERS, encoding="utf-8")
    return Waiving(load(directory), date.fromisoformat(today), whole=whole)


def said(waivers: Waiving) -> list[tuple[Verdict, str | None]]:
    return [(record.verdict, record.because) for record in waivers.records()]


def test_it_says_until_when_and_why(tmp_path: Path) -> None:
    waivers = waiving(tmp_path, "2027-01-30")
    assert waivers.judge("state ready", BAD, "it is") == (Verdict.WAIVED, "until 2027-01-31: it is being mended")
    assert said(waivers) == [(Verdict.WAIVED, None)] * 2


def test_it_stands_on_its_last_day_and_not_after(tmp_path: Path) -> None:
    assert (
        waiving(tmp_path, "2027-01-31").judge("state ready", BAD, "it is")[1] == "until 2027-01-31: it is being mended"
    )
    after = waiving(tmp_path, "2027-02-01")
    assert after.judge("state ready", BAD, "it is") == (Verdict.WAIVED, "until 2027-06-30: it is known")
    assert said(after) == [(BAD, "it ended on 2027-01-31: decide again"), (Verdict.WAIVED, None)]


def test_past_all_dates_the_verdict_is_what_it_is(tmp_path: Path) -> None:
    waivers = waiving(tmp_path, "2028-01-01")
    assert waivers.judge("state ready", BAD, "it is") == (BAD, "it is")
    assert [verdict for verdict, _ in said(waivers)] == [BAD, BAD]


def test_one_that_is_not_needed_is_broken(tmp_path: Path) -> None:
    waivers = waiving(tmp_path, "2027-01-01")
    assert waivers.judge("state ready", GOOD, None) == (GOOD, None)
    assert said(waivers) == [(BAD, "'state ready' holds now: delete the waiver")] * 2


def test_one_of_several_things_of_one_name_is_enough(tmp_path: Path) -> None:
    """Two guards of one action may be written alike."""
    waivers = waiving(tmp_path, "2027-01-01")
    waivers.judge("state ready", BAD, "it is")
    waivers.judge("state ready", GOOD, None)
    assert said(waivers) == [(Verdict.WAIVED, None)] * 2


def test_one_of_what_was_not_tried_is_broken(tmp_path: Path) -> None:
    waivers = waiving(tmp_path, "2027-01-01")
    waivers.untried("state ready")
    assert said(waivers)[0] == (BAD, "'state ready' was not tried, and that needs no waiver: delete it")


def test_one_that_names_nothing_is_broken_and_told_the_nearest(tmp_path: Path) -> None:
    waivers = waiving(tmp_path, "2027-01-01")
    waivers.judge("invariant no-two", GOOD, None)
    assert said(waivers)[0] == (BAD, "nothing is called 'state ready'")
    waivers.judge("state reedy", GOOD, None)
    assert said(waivers)[0] == (BAD, "nothing is called 'state ready': did you mean 'state reedy'?")


def test_where_not_all_was_run_only_its_date_counts(tmp_path: Path) -> None:
    waivers = waiving(tmp_path, "2027-02-01", whole=False)
    waivers.judge("state ready", GOOD, None)
    assert said(waivers) == [(BAD, "it ended on 2027-01-31: decide again"), (Verdict.WAIVED, None)]


QUEUE = """
catalogue:
  title: A queue with known faults
  schema: ["CREATE TABLE job (id bigint PRIMARY KEY, state text NOT NULL DEFAULT 'ready', note text)"]
owners: {team: {title: The team}}
subjects:
  job: {key: {id: job.id}, from: job, show: [job.state], values: {job.state: [ready, done, odd]}}
states:
  ready:
    subject: job
    title: Ready
    when: job.state = 'ready'
    observe: [{see: nothing, sql: SELECT 1 WHERE false}]
    retention: {keep: for ever, cost: SELECT 1 WHERE false}
  done: {subject: job, title: Done, when: job.state = 'done', final: true}
  lost: {subject: job, title: Lost, when: job.state = 'lost', final: true}
actions:
  finish:
    subject: job
    title: Finish
    sql: UPDATE job SET state = 'done' WHERE id = :id AND state = 'ready' AND note IS NULL
    moves: {ready: done, done: done}
  lose:
    subject: job
    title: Lose
    sql: UPDATE job SET state = 'lost' WHERE id = :id AND state = 'ready' AND false
    moves: {ready: lost}
invariants:
  no-two: {title: No job two, sql: SELECT id FROM job WHERE id = 2}
scenarios:
  one: {title: One, given: {job: [{id: 1}]}, steps: [{in: A, do: finish, with: {id: 1}, rows: 1}]}
  two: {title: Two, given: {job: [{id: 2}]}, steps: [{in: A, sql: SELECT 1}]}
  three: {title: Three, given: {job: [{id: 3}]}, steps: [{in: A, do: finish, with: {id: 3}, rows: 2}]}
"""

OF = {
    "population": "population job",
    "guard": "guard finish note IS NULL",
    "guard-1": "guard finish state = 'ready'",
    "guard-2": "guard lose state = 'ready'",
    "guard-3": "guard lose false",
    "cell": "cell done finish",
    "cell-2": "cell ready lose",
    "cell-3": "cell lost finish",
    "cell-4": "cell lost lose",
    "move": "move ready lose lost",
    "move-2": "move done finish done",
    "observation": "observation 1 ready",
    "cost": "cost ready",
    "invariant": "invariant no-two",
    "scenario": "scenario two",
    "scenario-3": "scenario three",
    "state": "state lost",
}


def with_waivers(of: dict[str, str], until: str = "2999-01-01") -> str:
    lines = (
        f'  {id}: {{of: "{name}", owner: team, because: the winter was hard, until: {until}}}'
        for id, name in of.items()
    )
    return QUEUE + "waivers:\n" + "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def waived(stage: Stage) -> Proof:
    return prove(stage, with_waivers(OF))


def test_everything_that_is_judged_can_be_waived_by_name(waived: Proof) -> None:
    assert [line for line in waived.not_verified() if not line.startswith("waived ")] == []
    assert [record.id for record in waived.evidence.waivers] == list(OF)


def test_what_rests_on_something_waived_is_waived(waived: Proof) -> None:
    assert waived.state("ready").verdict is Verdict.WAIVED
    assert waived.evidence.verdict is Verdict.WAIVED
    assert waived.cell("done", "finish").because == "until 2999-01-01: the winter was hard"


def test_coverage_tells_waived_from_verified(waived: Proof) -> None:
    coverage = waived.evidence.coverage
    assert (coverage["scenarios"].of, coverage["scenarios"].verified, coverage["scenarios"].waived) == (3, 1, 2)
    assert (coverage["invariants"].of, coverage["invariants"].waived) == (1, 1)


def test_a_waiver_whose_day_has_passed_waives_nothing(stage: Stage) -> None:
    proof = prove(stage, with_waivers({"one": "state lost"}, until="2001-01-01"), quick=True)
    assert proof.waiver("one") == WaiverRecord(
        id="one", of="state lost", owner="team", reason="the winter was hard", until="2001-01-01", verdict=BAD,
        because="it ended on 2001-01-01: decide again",
    )  # fmt: skip
    assert proof.evidence.verdict is BAD


def test_an_unneeded_waiver_breaks_what_is_otherwise_good(stage: Stage) -> None:
    good = """
catalogue:
  title: A good queue
  schema: ["CREATE TABLE job (id bigint PRIMARY KEY)"]
owners: {team: {title: The team}}
subjects:
  job: {key: {id: job.id}, from: job}
states:
  there: {subject: job, title: There, when: "true", final: true}
scenarios:
  one: {title: One, given: {job: [{id: 1}]}, steps: [{in: A, sql: SELECT 1}]}
waivers:
  needless: {of: state there, owner: team, because: so, until: 2999-01-01}
"""
    proof = prove(stage, good)
    assert proof.not_verified() == ["broken waiver needless: 'state there' holds now: delete the waiver"]
    assert proof.evidence.verdict is BAD
    assert prove(stage, good, quick=True).waiver("needless").verdict is Verdict.WAIVED
    assert prove(stage, edited(good, ("of: state there", "of: scenario one"))).evidence.verdict is BAD
