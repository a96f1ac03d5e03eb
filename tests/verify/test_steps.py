"""Every verb, and everything that a step can expect of its answer: as it should be, and otherwise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import pytest

from failure_matrix.evidence.records import Failure, ScenarioRecord, Verdict

GOOD = """
  do-with-and-usual-values:
    title: with overrides by name what the action usually has
    given: {job: [{id: 1}, {id: 2}]}
    steps:
      - {in: A, do: take, with: {id: 1, owner: A}, returns: [{id: 1, owner: A, lease_until: 10}]}
      - {in: A, do: take, with: {id: 2, owner: A, ttl: 3}, returns: [[2, A, 3]]}
  sql-with-parameters:
    title: parameters are bound
    given: {job: [{id: 1, owner: "o'; DROP TABLE job; --"}]}
    steps:
      - in: A
        sql: "SELECT id FROM job WHERE owner = :owner"
        with: {owner: "o'; DROP TABLE job; --"}
        returns: [{id: 1}]
  several-statements:
    title: results are those of every statement
    given: {job: [{id: 1}, {id: 2}]}
    steps:
      - in: A
        sql: "BEGIN; SELECT id FROM job ORDER BY id; UPDATE note SET text = 'x'; SELECT NULL AS a, true AS b; COMMIT"
        results: [null, [[1], [2]], 0, [{a: null, b: true}], null]
        rows: null
      - {in: A, sql: "SELECT 1; SELECT 2 AS two", rows: 1, returns: [{two: 2}]}
  nothing-and-nulls:
    title: no row is not a row of NULLs
    given: {job: [{id: 1}]}
    steps:
      - {in: A, sql: SELECT owner FROM job WHERE id = 9, rows: 0, returns: []}
      - {in: A, sql: "SELECT owner, lease_until FROM job WHERE id = 1", rows: 1, returns: [[null, null]]}
      - {in: A, sql: SELECT id FROM job FOR UPDATE, rows: 1}
      - {in: A, sql: ";", returns: []}
  numbers-as-the-server-writes-them:
    title: returns compares the server's text
    steps:
      - in: A
        sql: SELECT 1.10 AS a, 0.5::float8 AS b, 'f'::boolean AS c, ARRAY[1,NULL] AS d, '[1,2]'::jsonb AS e
        returns: [{a: 1.10, b: 0.5, c: false, d: "{1,NULL}", e: "[1, 2]"}]
  errors:
    title: an error by SQLSTATE and constraint
    given: {job: [{id: 1}]}
    steps:
      - {in: A, do: create, with: {id: 1}, error: {sqlstate: "23505", constraint: job_pkey}}
      - {in: A, sql: SELECT 1/0, error: "22012"}
      - {in: A, sql: "DO $$ BEGIN RAISE EXCEPTION 'no' USING ERRCODE = 'P0042'; END $$", error: P0042}
  notices:
    title: notices in their order, and with an error
    given: {job: [{id: 1}]}
    steps:
      - in: A
        sql: "DO $$ BEGIN RAISE NOTICE 'one'; RAISE WARNING 'two'; END $$"
        notice: [one, two]
      - {in: A, sql: "DO $$ BEGIN RAISE NOTICE 'before'; RAISE division_by_zero; END $$", error: "22012", notice: before}
      - {in: A, sql: SELECT id AS job FROM job, keep: {job: job}}
      - {in: A, sql: "DO $$ BEGIN RAISE NOTICE 'job 1'; END $$", notice: "job $job"}
  kept-values:
    title: a kept value as value, key and inside text
    given: {job: [{id: 7}]}
    steps:
      - in: A
        sql: SELECT id, 'a' || id AS name, NULL AS nothing FROM job
        keep: {job: id, name: name, nothing: nothing}
      - {in: A, do: take, with: {id: $job, owner: "x-$name-$$"}, rows: 1, then: {job: {$job: leased}}}
      - {in: A, sql: "SELECT owner FROM job WHERE id = :id", with: {id: $job}, returns: [{owner: "x-a7-$$"}]}
      - {in: A, sql: "SELECT :it::text AS it", with: {it: $nothing}, returns: [{it: null}]}
      - {in: A, sql: "SELECT 'leased' AS state", keep: {state: state}, then: {job: {7: $state}}}
  clock:
    title: the clock moves what time moves
    given: {job: [{id: 1}]}
    steps:
      - {in: A, do: take, with: {id: 1, owner: A}}
      - {at: 9, then: {job: {1: leased}}}
      - {at: 10, event: lapses, then: {job: {1: expired}}}
      - {at: 10}
  events:
    title: an event with SQL, in the world and in a session, and one that a statement is
    given: {job: [{id: 1}, {id: 2}, {id: 3}]}
    steps:
      - {event: storm, with: {id: 1}, rows: 1, then: {job: {1: done, 2: ready}}}
      - {in: A, event: storm, with: {id: 2}, then: {job: {2: done}}}
      - {in: A, sql: "UPDATE job SET state = 'done' WHERE id = 3", event: storm, rows: 1, then: {job: {3: done}}}
      - {event: storm, with: {id: 9}, rows: 0}
  commit-and-rollback-as-events:
    title: commit and rollback are there without being declared
    steps:
      - {in: A, sql: BEGIN}
      - {in: A, do: create, with: {id: 1}, seen_by: {A: {job: {1: fresh}}}, then: {job: {1: absent}}}
      - {in: A, event: commit, then: {job: {1: ready}}}
      - {in: A, sql: BEGIN}
      - {in: A, do: create, with: {id: 2}, seen_by: {A: {job: {2: fresh}}}}
      - {in: A, event: rollback, then: {job: {2: absent}}}
  kill:
    title: a killed session loses its transaction and comes back
    given: {job: [{id: 1}]}
    sessions: {A: {setup: SET lock_timeout = 7}}
    steps:
      - {in: A, sql: BEGIN}
      - {in: A, do: take, with: {id: 1, owner: A}, rows: 1}
      - {kill: A, then: {job: {1: ready}}}
      - {in: A, sql: SHOW lock_timeout, returns: [[7ms]]}
      - {in: A, event: dies}
      - {in: A, sql: "SELECT pg_current_xact_id_if_assigned() AS xid", returns: [[null]]}
  carried-out-by-a-statement:
    title: a statement that is an action
    given: {job: [{id: 1}]}
    steps:
      - in: A
        carries_out: take
        sql: UPDATE job SET state = 'running', lease_until = 10
        then: {job: {1: leased}}
  breaks-as-declared:
    title: it breaks just what it says
    given: {job: [{id: 1}]}
    steps:
      - {in: A, sql: "UPDATE job SET owner = 'evil'", breaks: nobody-evil}
  breaks-two-things:
    title: an illegal state that nothing moves to
    given: {job: [{id: 1}]}
    steps:
      - {in: A, sql: "UPDATE job SET state = 'lost'", breaks: [undeclared-move, illegal-state]}
  breaks-by-ambiguity:
    title: two states at once
    given: {job: [{id: 1}]}
    steps:
      - {in: A, sql: "UPDATE job SET state = 'both', lease_until = 10", breaks: ambiguous}
  breaks-by-a-hole:
    title: no state at all
    given: {job: [{id: 1}]}
    steps:
      - {in: A, sql: "UPDATE job SET state = 'odd'", breaks: [unclassified]}
  after-with-kept-values:
    title: it begins where the other ended, with what that kept
    after: kept-values
    steps:
      - {in: A, do: finish, with: {id: $job, owner: "x-$name-$$"}, rows: 1, then: {job: {$job: done}}}
"""

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
    "results-returns": ("{in: A, sql: SELECT 1 AS a; SELECT 2 AS b, results: [[[1]], [{b: 3}]]}", "returns", "b 3", "b 2"),
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
    "invariant": ("{in: A, sql: \"UPDATE job SET owner = 'evil'\"}", "invariant", "no offending row", '{"id": 1, "owner": "evil"}'),
    "ambiguous": (
        "{in: A, sql: \"UPDATE job SET state = 'both', lease_until = 9\"}", "ambiguous", "every job is in exactly one state",
        "job 1 is in 2 states at once: leased, done: state both, owner null, lease_until 9",
    ),
    "unclassified": (
        "{in: A, sql: \"UPDATE job SET state = 'odd'\"}", "unclassified", "every job is in exactly one state",
        "job 1 is in no state: state odd, owner null, lease_until null",
    ),
    "breaks-nothing": ("{in: A, sql: SELECT 1, breaks: nobody-evil}", "breaks", "breaks nobody-evil", "broke nothing"),
    "backwards": ("{at: -1}", "error", "a time that is not before the clock's", "-1"),
    "past-its-limit": ("{in: A, sql: SELECT pg_sleep(60), limit: 0.1}", "time-limit", "an answer within 0.1 s", "cancelled"),
    "catches-the-cancel": (
        "{in: A, limit: 0.1, sql: \"DO $x$ BEGIN LOOP BEGIN PERFORM pg_sleep(60);"
        " EXCEPTION WHEN query_canceled THEN NULL; END; END LOOP; END $x$\"}",
        "time-limit", "an answer within 0.1 s", "cancelled",
    ),
    "sends-and-sleeps": (  # rows arrive, and then nothing more
        "{in: A, limit: 0.1, sql: \"COPY (SELECT repeat('x', 100000) UNION ALL SELECT pg_sleep(60)::text) TO STDOUT\"}",
        "time-limit", "an answer within 0.1 s", "cancelled",
    ),
}  # fmt: skip

BROKEN_ELSEWHERE = """
  clock-that-goes-back:
    title: the clock goes back where check cannot see it
    steps:
      - {at: 5}
      - {in: A, sql: SELECT 4 AS earlier, keep: {earlier: earlier}}
      - {at: $earlier}
  dies-nowhere:
    title: an event that kills needs a session
    steps:
      - {event: dies}
  no-caller:
    title: a caller without a row
    steps:
      - {in: A, do: beat, as: holder, with: {id: 9}}
  given-what-the-schema-refuses:
    title: rows that the schema does not take
    given: {job: [{id: 1, state: nonsense}]}
    steps:
      - {in: A, sql: SELECT 1}
  given-a-hole:
    title: a row in no state
    given: {job: [{id: 1, state: odd}]}
    steps:
      - {in: A, sql: SELECT 1}
  given-and-left-open:
    title: SQL that does not commit
    given: BEGIN; INSERT INTO job VALUES (1)
    steps:
      - {in: A, sql: SELECT 1}
  set-up-fails:
    title: a session that cannot be set up
    sessions: {A: {setup: SELECT 1/0}}
    steps:
      - {in: A, sql: SELECT 1}
  after-a-broken-one:
    title: it begins after a scenario that fails
    after: given-what-the-schema-refuses
    steps:
      - {in: A, sql: SELECT 1}
  after-one-that-breaks:
    title: it begins after a scenario that ends by breaking something
    after: breaking
    steps:
      - {in: A, sql: SELECT 1}
  breaking:
    title: it breaks, as declared
    given: {job: [{id: 1}]}
    steps:
      - {in: A, sql: "UPDATE job SET owner = 'evil'", breaks: nobody-evil}
"""


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
    return stage.scenarios("".join(made))


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
            "what is given could not be put there: ERROR 23514: new row for relation"
            ' "job" violates check constraint "known_state"',
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
    assert [failure.message for failure in failures(elsewhere[id])][0].startswith(said)
    assert elsewhere[id].verdict is Verdict.BROKEN


def test_steps_that_did_not_run_are_listed(elsewhere: dict[str, ScenarioRecord], good: dict[str, ScenarioRecord]) -> None:
    assert elsewhere["given-a-hole"].not_run == (1,)
    assert elsewhere["clock-that-goes-back"].not_run == ()
    assert good["clock"].not_run == ()


def test_parameters_and_clock_are_recorded(good: dict[str, ScenarioRecord]) -> None:
    first, *_, last = good["clock"].steps
    assert first.with_ == {"id": "1", "owner": "A", "ttl": "10"}
    assert (first.at, last.at) == ("0", "10")
    assert first.text.startswith("UPDATE job SET state = 'running', owner = $1")
