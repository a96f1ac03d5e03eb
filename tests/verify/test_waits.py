"""Who waits for whom, and who sets whom free, as seen on the server."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest

from failure_matrix.evidence.records import Evidence, Failure, ScenarioRecord, Verdict

CATALOGUES = Path(__file__).with_name("catalogues")

GOOD = (CATALOGUES / "waits.yaml").read_text()

BAD = {  # steps after A has job 1 in an open transaction -> kind, expected, observed
    "waits-unsaid": (
        "{in: B, do: take, with: {id: 1, owner: B}}",
        "waits", "does not wait", "waits for A",
    ),
    "waits-for-another": (
        "{in: B, do: take, with: {id: 1, owner: B}, waits: C}, {in: C, sql: SELECT 1}",
        "waits", "waits for C", "waits for A",
    ),
    "does-not-wait": ("{in: B, sql: SELECT 1, waits: A}", "waits", "waits for A", "does not wait"),
    "release-unsaid": (
        "{in: B, do: take, with: {id: 1, owner: B}, waits: A, rows: 0}, {in: A, sql: COMMIT}",
        "releases", "releases nobody", "released B",
    ),
    "releases-nobody": (
        "{in: A, sql: COMMIT, releases: B}, {in: B, sql: SELECT 1}", "releases", "releases B", "released nobody",
    ),
    "other-answer-once-free": (
        "{in: B, do: take, with: {id: 1, owner: B}, waits: A, rows: 1}, {in: A, sql: COMMIT, releases: B}",
        "rows", "1 row", "0 rows",
    ),
    "still-waiting": (
        "{in: B, do: take, with: {id: 1, owner: B}, waits: A}",
        "still-waiting", "a step that sets it free", "step 3 still waits for A",
    ),
    "next-step-while-it-waits": (
        "{in: B, do: take, with: {id: 1, owner: B}, waits: A}, {in: B, sql: SELECT 1}",
        "waits", "a step that sets it free before this one", "none",
    ),
    "expects-a-look-that-cannot-be": (
        "{in: A, sql: LOCK TABLE job, then: {job: {1: ready}}}",
        "could-not-look", "a look at what is committed",
        "could not look: a session holds an ACCESS EXCLUSIVE lock on what is looked at",
    ),
    "expects-a-view-that-cannot-be": (
        "{in: A, sql: LOCK TABLE job}, {in: B, sql: SELECT 1, seen_by: {B: {job: {1: ready}}}}",
        "could-not-look", "a look at what is committed",
        "could not look: a session holds an ACCESS EXCLUSIVE lock on what is looked at",
    ),
    "ends-behind-a-lock": (
        "{in: A, sql: LOCK TABLE job}",
        "could-not-look", "a step that ends its transaction",
        "a session holds an ACCESS EXCLUSIVE lock on what is looked at",
    ),
    "looks-from-a-waiting-session": (
        "{in: B, do: take, with: {id: 1, owner: B}, waits: A}, {in: C, sql: SELECT 1, seen_by: {B: {job: {1: ready}}}}",
        "could-not-look", "a look by B", "B could not look: it waits for an answer",
    ),
    "looks-from-a-failed-transaction": (
        "{in: A, sql: SELECT 1/0, error: '22012', seen_by: {A: {job: {1: ready}}}}",
        "could-not-look", "a look by A",
        "A could not look: its transaction has failed, and answers nothing until it is rolled back",
    ),
}  # fmt: skip

DEADLOCK = """
  deadlock-%d:
    title: whoever closes the circle is given up
    given: {job: [{id: 1}, {id: 2}]}
    sessions: {A: {setup: SET deadlock_timeout = '20s'}, B: {setup: SET deadlock_timeout = '1ms'}}
    steps:
      - {in: A, sql: BEGIN}
      - {in: A, do: take, with: {id: 1, owner: A}}
      - {in: B, sql: BEGIN}
      - {in: B, do: take, with: {id: 2, owner: B}}
      - {in: A, do: take, with: {id: 2, owner: A}, waits: B, rows: 1}
      - {in: B, do: take, with: {id: 1, owner: B}, error: 40P01, releases: A}
      - {in: A, sql: COMMIT, then: {job: {1: leased, 2: leased}}}
"""


class Stage(Protocol):
    def scenarios(self, text: str, *more: str) -> dict[str, ScenarioRecord]: ...

    def prove(self, *texts: str) -> Evidence: ...


def failures(record: ScenarioRecord) -> list[Failure]:
    return [*record.failures, *(failure for step in record.steps for failure in step.failures)]


def ids(text: str) -> list[str]:
    return [line.strip(" :") for line in text.splitlines() if line.startswith("  ") and line[2] != " "]


@pytest.fixture(scope="module")
def good(stage: Stage) -> dict[str, ScenarioRecord]:
    return stage.scenarios(GOOD)


@pytest.fixture(scope="module")
def bad(stage: Stage) -> dict[str, ScenarioRecord]:
    made = (
        f"  {id}:\n    title: it fails\n    given: {{job: [{{id: 1}}]}}\n    steps:\n      [{{in: A, sql: BEGIN}},"
        f" {{in: A, do: take, with: {{id: 1, owner: A}}}}, {steps}]\n"
        for id, (steps, _, _, _) in BAD.items()
    )
    return stage.scenarios("scenarios:\n" + "".join(made))


@pytest.mark.parametrize("id", ids(GOOD))
def test_a_wait_that_is_as_it_should_be(good: dict[str, ScenarioRecord], id: str) -> None:
    assert [(failure.message, failure.observed) for failure in failures(good[id])] == []
    assert good[id].verdict is Verdict.VERIFIED


@pytest.mark.parametrize("id", BAD)
def test_a_wait_that_is_not(bad: dict[str, ScenarioRecord], id: str) -> None:
    _, *wanted = BAD[id]
    assert [[failure.kind, failure.expected, failure.observed] for failure in failures(bad[id])] == [wanted]
    blind = wanted[0] == "could-not-look"  # nobody knows, and nothing is shown broken
    assert bad[id].verdict is (Verdict.INCOMPLETE if blind else Verdict.BROKEN)


def test_waits_and_releases_name_each_other(good: dict[str, ScenarioRecord]) -> None:
    *_, first, second, last = good["first-come-first-served"].steps
    assert (first.waits, first.released_by) == (("A",), last.number)
    assert (second.waits, second.released_by) == (("B",), last.number)
    assert last.releases == (first.number, second.number)


def test_the_failure_of_a_step_that_waited_is_told_at_that_step(bad: dict[str, ScenarioRecord]) -> None:
    waited, releasing = bad["other-answer-once-free"].steps[2:]
    assert [failure.kind for failure in waited.failures] == ["rows"]
    assert releasing.failures == ()


def test_what_could_not_be_seen_is_accounted_for_later(good: dict[str, ScenarioRecord]) -> None:
    *_, locked, between, last = good["behind-an-exclusive-lock"].steps
    assert locked.then == between.then == ()
    assert [(move.from_, move.by, move.to) for move in last.moves] == [("ready", ("take",), "leased")]


def test_a_deadlock_has_one_outcome_and_one_evidence(stage: Stage) -> None:
    records = stage.scenarios("scenarios:\n" + "".join(DEADLOCK % number for number in range(15)))
    assert {record.verdict for record in records.values()} == {Verdict.VERIFIED}
    alike = {"id": "", "place": "", "fingerprint": ""}
    seen = {
        record.model_copy(
            update={**alike, "steps": tuple(step.model_copy(update={"place": ""}) for step in record.steps)}
        ).model_dump_json()
        for record in records.values()
    }
    assert len(seen) == 1


def test_where_time_decides_evidence_does_not(good: dict[str, ScenarioRecord]) -> None:
    decided = good["time-decides-at-its-own-step"].steps
    assert [(step.waits, step.released_by, step.releases) for step in decided] == [((), None, ())] * 4
    assert decided[2].error is not None
    waited = good["time-does-not-decide"].steps
    assert (waited[2].waits, waited[2].released_by) == (("A",), 4)
