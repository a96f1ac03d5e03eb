"""Every verb, and everything that a step can expect of its answer: as it should be, and otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import pytest

from failure_matrix.evidence.records import Failure, ScenarioRecord, Verdict

CATALOGUES = Path(__file__).with_name("catalogues")

GOOD = (CATALOGUES / "steps.yaml").read_text()

CANCELLED = "it ran on, waiting for no session of the scenario, and was cancelled"

BAD: Mapping[str, tuple[str, str, str, str]] = {  # scenario -> steps, kind, expected, observed
    "rows": ("{in: A, do: take, with: {id: 1, owner: A}, rows: 2}", "rows", "2 rows", "1 row"),
    "rows-of-none": ("{in: A, sql: BEGIN, rows: 0}", "rows", "0 rows", "no row count"),
    "rows-of-the-last": ("{in: A, sql: SELECT 1; SELECT 1 WHERE false, rows: 1}", "rows", "1 row", "0 rows"),
    "returns-value": (
        "{in: A, sql: 'SELECT id, owner FROM job', returns: [{id: 1, owner: A}]}",
        "returns", "id 1, owner A", "id 1, owner null",
    ),
    "returns-order": (
        "{in: A, sql: 'VALUES (1), (2)', returns: [[2], [1]]}", "returns", "2; 1", "column1 1; column1 2",
    ),
    "returns-too-few": ("{in: A, sql: 'VALUES (1), (2)', returns: [[1]]}", "returns", "1", "column1 1; column1 2"),
    "returns-other-columns": (
        "{in: A, sql: 'SELECT 1 AS a, 2 AS b', returns: [{a: 1}]}", "returns", "a 1", "a 1, b 2",
    ),
    "returns-too-short": ("{in: A, sql: 'SELECT 1 AS a, 2 AS b', returns: [[1]]}", "returns", "1", "a 1, b 2"),
    "returns-null-for-empty": ("{in: A, sql: \"SELECT '' AS a\", returns: [[null]]}", "returns", "null", "a ''"),
    "returns-a-row-for-none": ("{in: A, sql: SELECT 1 WHERE false, returns: [[null]]}", "returns", "null", "no row"),
    "results-count": ("{in: A, sql: SELECT 1; SELECT 2, results: [1]}", "returns", "1 results", "2 results"),
    "results-rows": ("{in: A, sql: SELECT 1; SELECT 2, results: [1, 0]}", "rows", "0 rows", "1 row"),
    "results-returns": ("{in: A, sql: SELECT 1; SELECT 2 AS b, results: [[[1]], [{b: 3}]]}", "returns", "b 3", "b 2"),
    "error-unexpected": (
        "{in: A, do: create, with: {id: 1}}", "error", "no error",
        '23505 (job_pkey): duplicate key value violates unique constraint "job_pkey"',
    ),
    "error-missing": ("{in: A, sql: SELECT 1, error: '22012'}", "error", "22012", "no error, 1 row"),
    "error-other": ("{in: A, sql: SELECT 1/0, error: '23505'}", "error", "23505", "22012: division by zero"),
    "error-other-constraint": (
        "{in: A, do: create, with: {id: 1}, error: {sqlstate: '23505', constraint: other}}", "error", "23505 (other)",
        '23505 (job_pkey): duplicate key value violates unique constraint "job_pkey"',
    ),
    "notice-missing": ("{in: A, sql: SELECT 1, notice: one}", "notice", "one", "no notice"),
    "notice-too-many": (
        "{in: A, sql: \"DO $x$ BEGIN RAISE NOTICE 'a'; RAISE NOTICE 'b'; END $x$\", notice: a}", "notice", "a", "a; b",
    ),
    "keep-nothing": ("{in: A, sql: SELECT 1 AS a WHERE false, keep: {k: a}}", "keep", "a row with a", "no row"),
    "keep-other-column": ("{in: A, sql: SELECT 1 AS a, keep: {k: b}}", "keep", "a row with b", "columns a"),
    "then-other": ("{in: A, sql: SELECT 1, then: {job: {1: done}}}", "then", "job 1 is done", "job 1 is ready"),
    "then-absent": ("{in: A, sql: SELECT 1, then: {job: {9: ready}}}", "then", "job 9 is ready", "job 9 is absent"),
    "then-there": ("{in: A, sql: SELECT 1, then: {job: {1: absent}}}", "then", "job 1 is absent", "job 1 is ready"),
    "undeclared": (
        "{in: A, sql: \"UPDATE job SET state = 'done'\"}", "undeclared-move", "job 1 stays ready, or a declared move",
        "job 1 is done: state done, owner null, lease_until null",
    ),
    "undeclared-by-another": (
        "{in: A, carries_out: take, sql: \"UPDATE job SET state = 'done'\"}", "undeclared-move",
        "job 1 stays ready, or a declared move", "job 1 is done: state done, owner null, lease_until null",
    ),
    "invariant": (
        "{in: A, sql: \"UPDATE job SET owner = 'evil'\"}", "invariant",
        "no offending row", '{"id": 1, "owner": "evil"}',
    ),
    "ambiguous": (
        "{in: A, sql: \"UPDATE job SET state = 'both', lease_until = 9\"}", "ambiguous",
        "every job is in exactly one state",
        "job 1 is in 2 states at once: leased, done: state both, owner null, lease_until 9",
    ),
    "unclassified": (
        "{in: A, sql: \"UPDATE job SET state = 'odd'\"}", "unclassified", "every job is in exactly one state",
        "job 1 is in no state: state odd, owner null, lease_until null",
    ),
    "breaks-nothing": ("{in: A, sql: SELECT 1, breaks: nobody-evil}", "breaks", "breaks nobody-evil", "broke nothing"),
    "backwards": ("{at: -1}", "error", "a time that is not before the clock's", "-1"),
    "past-its-limit": (
        "{in: A, sql: SELECT pg_sleep(60), limit: 0.1}", "time-limit", "an answer within 0.1 s", CANCELLED,
    ),
    "catches-the-cancel": (
        (
            "{in: A, limit: 0.1, sql: \"DO $x$ BEGIN LOOP BEGIN PERFORM pg_sleep(60);"
            " EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $x$\"}"
        ),
        "time-limit", "an answer within 0.1 s", CANCELLED,
    ),
    "sends-and-sleeps": (  # rows arrive, and then nothing more
        "{in: A, limit: 0.1, sql: \"COPY (SELECT repeat('x', 100000) UNION ALL SELECT pg_sleep(60)::text) TO STDOUT\"}",
        "time-limit", "an answer within 0.1 s", CANCELLED,
    ),
}  # fmt: skip

BROKEN_ELSEWHERE = (CATALOGUES / "steps-broken-elsewhere.yaml").read_text()


class Scenarios(Protocol):
    def scenarios(self, text: str, *more: str) -> dict[str, ScenarioRecord]: ...


def ids(text: str) -> list[str]:
    """The ids of the scenarios in a text."""
    return [line.strip(" :") for line in text.splitlines() if line.startswith("  ") and line[2] != " "]


def failures(record: ScenarioRecord) -> list[Failure]:
    return [*record.failures, *(failure for step in record.steps for failure in step.failures)]


@pytest.fixture(scope="module")
def good(stage: Scenarios) -> dict[str, ScenarioRecord]:
    return stage.scenarios(GOOD)


@pytest.fixture(scope="module")
def bad(stage: Scenarios) -> dict[str, ScenarioRecord]:
    made = (
        f"  {id}:\n    title: it fails\n    given: {{job: [{{id: 1}}]}}\n    steps:\n      - {step}\n"
        for id, (step, _, _, _) in BAD.items()
    )
    return stage.scenarios("scenarios:\n" + "".join(made))


@pytest.fixture(scope="module")
def elsewhere(stage: Scenarios) -> dict[str, ScenarioRecord]:
    return stage.scenarios(BROKEN_ELSEWHERE)


@pytest.mark.parametrize("id", ids(GOOD))
def test_a_step_that_shows_what_it_should(good: dict[str, ScenarioRecord], id: str) -> None:
    record = good[id]
    assert [(failure.message, failure.observed) for failure in failures(record)] == []
    assert record.verdict is Verdict.VERIFIED


@pytest.mark.parametrize("id", BAD)
def test_a_step_that_does_not(bad: dict[str, ScenarioRecord], id: str) -> None:
    _, kind, expected, observed = BAD[id]
    assert [(failure.kind, failure.expected, failure.observed) for failure in failures(bad[id])] == [
        (kind, expected, observed)
    ]
    assert bad[id].verdict is Verdict.BROKEN
    assert bad[id].because == failures(bad[id])[0].message


def test_a_failure_stands_where_its_expectation_stands(bad: dict[str, ScenarioRecord]) -> None:
    places = {int(failures(bad[id])[0].place.rsplit(":", 1)[1]) for id in ("rows", "then-other", "undeclared")}
    assert len(places) == 3
    assert all(place > 1 for place in places)


@pytest.mark.parametrize(
    ("id", "said"),
    [
        ("clock-that-goes-back", "clock at $earlier: the clock is at 5, and does not go back to 4"),
        ("dies-nowhere", "event dies: 'dies' ends a session, and the step names none"),
        ("no-caller", "A did beat: there is no caller 'holder' here: its SQL gives no row"),
        (
            "given-what-the-schema-refuses",
            'what is given could not be put there: ERROR 23514: new row for relation "job" violates check constraint',
        ),
        ("given-a-hole", "what is given: unclassified: job 1 is in no state"),
        ("given-and-left-open", "what is given could not be put there: its SQL leaves a transaction open"),
        ("set-up-fails", "A ran SELECT 1: ERROR 22012: division by zero (in the set-up of session A)"),
        ("after-one-that-breaks", "it begins after breaking, which breaks nobody-evil, and is over then"),
    ],
)
def test_what_goes_wrong_outside_of_a_steps_own_statement(
    elsewhere: dict[str, ScenarioRecord], id: str, said: str
) -> None:
    assert failures(elsewhere[id])[0].message.startswith(said)
    assert elsewhere[id].verdict is Verdict.BROKEN


def test_steps_that_did_not_run_are_listed(
    elsewhere: dict[str, ScenarioRecord], good: dict[str, ScenarioRecord]
) -> None:
    assert elsewhere["given-a-hole"].not_run == (1,)
    assert elsewhere["clock-that-goes-back"].not_run == ()
    assert good["clock"].not_run == ()


def test_parameters_and_clock_are_recorded(good: dict[str, ScenarioRecord]) -> None:
    first, *_, last = good["clock"].steps
    assert first.with_ == {"id": "1", "owner": "A", "ttl": "10"}
    assert (first.at, last.at) == ("0", "10")
    assert first.text.startswith("UPDATE job SET state = 'running', owner = $1")
