"""What the observer finds after every step: keys of every kind, several subjects, stores, clocks, the step before."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol

import pytest

from failure_matrix.catalogue.findings import Finding
from failure_matrix.evidence.records import Evidence, Failure, ScenarioRecord, Verdict

CATALOGUES = Path(__file__).with_name("catalogues")

KEYS = (CATALOGUES / "keys.yaml").read_text()


class Stage(Protocol):
    def prove(self, *texts: str) -> Evidence: ...

    def rejected(self, *texts: str) -> tuple[Finding, ...]: ...


def failures(record: ScenarioRecord) -> list[Failure]:
    return [*record.failures, *(failure for step in record.steps for failure in step.failures)]


def messages(evidence: Evidence) -> dict[str, list[str]]:
    return {record.id: [failure.message for failure in failures(record)] for record in evidence.scenarios}


@pytest.fixture(scope="module")
def keys(stage: Stage) -> Evidence:
    return stage.prove(KEYS)


@pytest.mark.parametrize(
    "id", ["composite", "uuid", "previous-kept", "previous-in-a-kebab-subject", "a-key-that-is-null"]
)
def test_keys_and_steps_before(keys: Evidence, id: str) -> None:
    assert messages(keys)[id] == []


def test_a_composite_key_is_told_in_full(keys: Evidence) -> None:
    assert messages(keys)["composite-otherwise"] == ["A did sell: part a, 2 is new, expected sold"]
    steps = {record.id: record.steps for record in keys.scenarios}["composite"]
    assert [(seen.key, seen.state) for seen in steps[0].then] == [
        (("", "1"), "new"), (("a", "1"), "new"), (("a", "2"), "sold"),
    ]  # fmt: skip


def test_an_invariant_sees_one_step_back(keys: Evidence) -> None:
    told = messages(keys)["previous-broken"]
    assert "A ran UPDATE part SET state = 'new': invariant sold-stays-sold is broken: Nothing is sold back" in told


def test_a_key_that_stands_twice_is_broken(keys: Evidence) -> None:
    broken = {record.id: failures(record)[0] for record in keys.scenarios if record.id == "duplicate-key"}[
        "duplicate-key"
    ]
    assert (broken.kind, broken.observed) == (
        "duplicate-key", "loose-row 1 stands 2 times in the relation: state new; state other",
    )  # fmt: skip
    assert {state.id: state.verdict for state in keys.states}["loose-new"] is Verdict.BROKEN


def test_keys_that_vary_are_named(keys: Evidence) -> None:
    step = {record.id: record.steps[0] for record in keys.scenarios}["uuid"]
    assert [seen.key for seen in step.then] == [("uuid-1",)]
    assert [move.key for move in step.moves] == [("uuid-1",)]


TIMES = """
catalogue:
  title: Moments
  clock: {clock}
  schema:
    - CREATE TABLE job (id integer PRIMARY KEY, until timestamptz)
subjects:
  job: {{key: {{id: job.id}}, from: job, show: [job.until]}}
states:
  held: {{subject: job, title: Held, when: "job.until > :now::timestamptz"}}
  free: {{subject: job, title: Free, when: "job.until <= :now::timestamptz", final: true}}
actions:
  hold:
    subject: job
    title: Hold
    sql: INSERT INTO job SELECT 1, :now::timestamptz + interval '{hold}'
    moves: {{absent: held}}
events:
  passes: {{title: It passes, at: job.until, moves: {{held: free}}}}
scenarios:
{scenarios}
"""


def test_a_clock_of_moments(stage: Stage) -> None:
    scenarios = """
  passes:
    title: the clock says a moment
    steps:
      - {at: 2030-01-01 00:00:00+00}
      - {in: A, do: hold, then: {job: {1: held}}}
      - {at: 2030-01-01 00:00:09+00, then: {job: {1: held}}}
      - {at: 2030-01-01 00:00:10+00, then: {job: {1: free}}}
  another-day:
    title: it begins where the first time of the catalogue is
    steps:
      - {in: A, do: hold, then: {job: {1: held}}}
      - {in: A, sql: SELECT until FROM job, returns: [["2030-01-01 00:00:10+00"]]}
  goes-back:
    title: times of one form can be compared
    steps:
      - {at: 2030-01-02 00:00:00+00}
      - {in: A, sql: "SELECT '2030-01-01 12:00:00+00' AS noon", keep: {noon: noon}}
      - {at: $noon}
"""
    evidence = stage.prove(TIMES.format(clock="logical", hold="10 s", scenarios=scenarios))
    assert messages(evidence) == {
        "passes": [],
        "another-day": [],
        "goes-back": [
            "clock at $noon: the clock is at 2030-01-02 00:00:00+00, and does not go back to 2030-01-01 12:00:00+00"
        ],
    }


def test_a_clock_that_follows_the_wall(stage: Stage) -> None:
    scenarios = """
  long:
    title: an hour is long
    steps:
      - {in: A, do: hold, then: {job: {1: held}}}
      - {in: A, sql: SELECT until FROM job, rows: 1}
  short:
    title: time passes by itself
    given: INSERT INTO job VALUES (1, clock_timestamp() + interval '0.2 s')
    steps:
      - {in: A, sql: SELECT pg_sleep(0.3), then: {job: {1: free}}}
"""
    evidence = stage.prove(TIMES.format(clock="wall", hold="1 h", scenarios=scenarios))
    assert messages(evidence) == {"long": [], "short": []}
    steps = evidence.scenarios[0].steps
    assert [step.at for step in steps] == [None, None]
    assert steps[1].returns is not None
    assert steps[1].returns.rows == (("moment-1",),)


FILES = (CATALOGUES / "files.yaml").read_text()
LATER = (CATALOGUES / "files-later.yaml").read_text()


def test_stores(stage: Stage) -> None:
    assert messages(stage.prove(FILES, LATER)) == {
        "effects": [],
        "at-its-own-step": [],
        "nothing-is-left-of-the-scenario-before": [],
        "a-name-that-leads-out": [
            "A did write: 'big-files/../n' is not a store and a file name: the name is one part, without '/'"
        ],
        "given-a-name-that-leads-out": [
            (
                "what is given could not be put there: 'big-files/a/b' is not a store and a file name:"
                " the name is one part, without '/'"
            )
        ],
        "a-name-too-long": [],
    }


def test_a_predicate_that_the_server_cannot_evaluate_is_named(stage: Stage, queue: str) -> None:
    more = """
states:
  odd-one: {subject: job, title: Odd, when: 1 / (job.id - 2) > 1}
scenarios:
  later: {title: it fails after a step, given: {job: [{id: 1}]}, steps: [{in: A, sql: UPDATE job SET id = 2}]}
  at-once: {title: it fails on what is given, given: {job: [{id: 2}]}, steps: [{in: A, sql: SELECT 1}]}
""".replace("{in: A, sql: INSERT INTO job VALUES (2\\, 'odd')}", "{in: A, sql: \"INSERT INTO job VALUES (2, 'odd')\"}")
    assert messages(stage.prove(queue, more)) == {
        "later": [
            "A ran UPDATE job SET id = 2: cannot be classified: ERROR 22012: division by zero in states odd-one when",
        ],
        "at-once": ["what is given cannot be classified: states odd-one when: ERROR 22012: division by zero"],
    }


@pytest.mark.parametrize("pause", ["", ", pg_sleep(0.05)"])
def test_who_ends_our_own_connection_shows_nothing_broken(stage: Stage, queue: str, pause: str) -> None:
    ended = f"SELECT pg_terminate_backend(pid){pause} FROM pg_stat_activity WHERE application_name = 'observer'"
    ended += " AND datname = current_database()"
    more = f"scenarios:\n  ends: {{title: It ends, given: {{job: [{{id: 1}}]}}, steps: [{{in: A, sql: {ended!r}}}]}}\n"
    (record,) = stage.prove(queue, more).scenarios
    failures = [failure for step in record.steps for failure in step.failures]
    assert (record.verdict, [failure.kind for failure in failures]) == (Verdict.INCOMPLETE, ["could-not-look"])


def test_a_column_that_a_step_takes_away_is_no_traceback(stage: Stage, queue: str) -> None:
    more = """
scenarios:
  dropped: {title: a column goes, given: {job: [{id: 1}]}, steps: [{in: A, sql: ALTER TABLE job DROP COLUMN owner}]}
  after: {title: and is there again, given: {job: [{id: 1}]}, steps: [{in: A, sql: SELECT owner FROM job, rows: 1}]}
"""
    told = messages(stage.prove(queue, more))
    assert told["dropped"][0].startswith("A ran ALTER TABLE job DROP COLUMN owner: cannot be classified: ERROR 42703")
    assert told["after"] == []
