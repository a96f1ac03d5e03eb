"""What the observer finds after every step: keys of every kind, several subjects, stores, clocks, the step before."""

from __future__ import annotations

from typing import Protocol

import pytest

from failure_matrix.catalogue.findings import Finding
from failure_matrix.evidence.records import Evidence, Failure, ScenarioRecord, Verdict

ONE = "11111111-2222-3333-4444-aaaaaaaaaaaa"

KEYS = f"""
catalogue:
  title: Keys of many kinds
  schema:
    - |
      CREATE TABLE part (shop text, "Number" integer, state text NOT NULL DEFAULT 'new', PRIMARY KEY (shop, "Number"));
      CREATE TABLE thing (id uuid PRIMARY KEY, ok boolean NOT NULL DEFAULT false);
      CREATE TABLE loose (id integer, state text DEFAULT 'new');
subjects:
  part: {{key: {{shop: part.shop, number: part."Number"}}, from: part, show: [part.state]}}
  thing: {{key: {{id: thing.id}}, offers: {{thing: thing.id}}, from: thing, show: [thing.ok]}}
  loose-row: {{key: {{id: loose.id}}, from: loose, show: [loose.state]}}
states:
  new: {{subject: part, title: New, when: part.state = 'new'}}
  sold: {{subject: part, title: Sold, when: part.state = 'sold', final: true}}
  bad: {{subject: thing, title: Bad, when: NOT thing.ok}}
  good: {{subject: thing, title: Good, when: thing.ok, final: true}}
  loose-new: {{subject: loose-row, title: New, when: loose.state = 'new', final: true}}
actions:
  sell:
    subject: part
    title: Sell
    sql: UPDATE part SET state = 'sold' WHERE shop = :shop AND "Number" = :number
    moves: {{new: sold}}
  mend: {{subject: thing, title: Mend, sql: UPDATE thing SET ok = true WHERE id = :thing, moves: {{bad: good}}}}
invariants:
  sold-stays-sold:
    title: Nothing is sold back
    sql: |
      SELECT shop, number, part.state AS after FROM part JOIN previous_part USING (shop)
       WHERE "Number" = number AND previous_part.in_state = 'sold' AND previous_part.state <> part.state
  nothing-loose-goes:
    title: A loose row stays
    sql: SELECT id FROM previous_loose_row WHERE NOT EXISTS (SELECT FROM loose WHERE loose.id IS NOT DISTINCT FROM previous_loose_row.id)
scenarios:
  composite:
    title: a list in key order
    given: {{part: [{{shop: a, Number: 1}}, {{shop: a, Number: 2}}, {{shop: "", Number: 1}}]}}
    steps:
      - in: A
        do: sell
        with: {{shop: a, number: 2}}
        then: {{part: {{[a, 1]: new, [a, 2]: sold, [b, 1]: absent}}}}
      - {{in: A, sql: "SELECT shop, 1 AS one FROM part WHERE shop = ''", keep: {{shop: shop, one: one}}}}
      - {{in: A, do: sell, with: {{shop: $shop, number: $one}}, then: {{part: {{[$shop, $one]: sold}}}}}}
  composite-otherwise:
    title: another row of the same shop
    given: {{part: [{{shop: a, Number: 1}}, {{shop: a, Number: 2}}]}}
    steps:
      - {{in: A, do: sell, with: {{shop: a, number: 1}}, then: {{part: {{[a, 2]: sold}}}}}}
  uuid:
    title: a uuid in any case, bound through an offer
    given: {{thing: [{{id: {ONE}}}]}}
    steps:
      - in: A
        do: mend
        with: {{thing: {ONE.upper()}}}
        then: {{thing: {{{ONE.upper()}: good}}}}
  previous-broken:
    title: it was sold one step before
    given: {{part: [{{shop: a, Number: 1, state: sold}}]}}
    steps:
      - {{in: A, sql: UPDATE part SET state = 'new'}}
  previous-kept:
    title: two steps before is not one step before
    given: {{part: [{{shop: a, Number: 1}}]}}
    steps:
      - {{in: A, do: sell, with: {{shop: a, number: 1}}}}
      - {{in: A, sql: UPDATE part SET state = state}}
  previous-in-a-kebab-subject:
    title: a loose row goes
    given: {{loose: [{{id: 1}}]}}
    steps:
      - {{in: A, sql: DELETE FROM loose, breaks: [nothing-loose-goes, undeclared-move]}}
  duplicate-key:
    title: a key that stands twice
    given: {{loose: [{{id: 1}}]}}
    steps:
      - {{in: A, sql: "INSERT INTO loose VALUES (1, 'other')"}}
  a-key-that-is-null:
    title: a row without a key has one all the same
    given: {{loose: [{{id: null}}]}}
    steps:
      - {{in: A, sql: SELECT 1, then: {{loose-row: {{null: loose-new}}}}}}
"""


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
    broken = {record.id: failures(record)[0] for record in keys.scenarios if record.id == "duplicate-key"}["duplicate-key"]
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
        "goes-back": ["clock at $noon: the clock is at 2030-01-02 00:00:00+00, and does not go back to 2030-01-01 12:00:00+00"],
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
      - {in: A, sql: SELECT pg_sleep(0.3), event: passes, then: {job: {1: free}}}
"""
    evidence = stage.prove(TIMES.format(clock="wall", hold="1 h", scenarios=scenarios))
    assert messages(evidence) == {"long": [], "short": []}
    steps = evidence.scenarios[0].steps
    assert [step.at for step in steps] == [None, None]
    assert steps[1].returns is not None
    assert steps[1].returns.rows == (("moment-1",),)


FILES = """
catalogue:
  title: Files
  schema:
    - CREATE TABLE job (id integer PRIMARY KEY, file text)
stores:
  big-files: {directory: files}
subjects:
  file: {key: {name: '"big-files".name'}, from: '"big-files" LEFT JOIN job ON job.file = "big-files".name', show: ['"big-files".bytes']}
states:
  orphan: {subject: file, title: Orphan, when: job.id IS NULL}
  whole: {subject: file, title: Whole, when: job.id IS NOT NULL AND "big-files".bytes > 2}
  cut: {subject: file, title: Cut, when: job.id IS NOT NULL AND "big-files".bytes <= 2}
actions:
  write:
    subject: file
    title: Write
    store: {create: big-files/$name, content: $content}
    moves: {absent: orphan}
  overwrite:
    subject: file
    title: Overwrite
    store: {write: big-files/$name, content: $content}
    moves: {orphan: orphan, whole: whole}
  record:
    subject: file
    title: Record
    sql: INSERT INTO job VALUES (:id, :name)
    moves: {orphan: whole}
  take-in:
    subject: file
    title: Take in
    sql: INSERT INTO job VALUES (:id, :name)
    store: {write: big-files/$name, content: $content}
    moves: {absent: whole}
  collect:
    subject: file
    title: Collect
    sql: SELECT FROM (VALUES (1)) AS one WHERE NOT EXISTS (SELECT FROM job WHERE file = :name)
    store: {remove: big-files/$name}
    moves: {orphan: absent}
events:
  cut-short: {title: Cut, store: {truncate: big-files/$name}, moves: {whole: cut}}
  altered: {title: Altered, store: {corrupt: big-files/$name}}
  lost: {title: Lost, store: {remove: big-files/$name}, moves: {orphan: absent, whole: absent, cut: absent}}
scenarios:
  effects:
    title: every effect, and what it gives
    given: {big-files: {"a b.csv": abcd}}
    steps:
      - {in: A, do: write, with: {name: n, content: abcd}, rows: 1, keep: {digest: sha256}, then: {file: {n: orphan}}}
      - {in: A, do: write, with: {name: n, content: other}, rows: 0, returns: []}
      - {in: A, do: overwrite, with: {name: n, content: abcde}, rows: 1, then: {file: {n: orphan}}}
      - {in: A, do: record, with: {id: 1, name: n}, then: {file: {n: whole}}}
      - {event: altered, with: {name: n}, rows: 1, then: {file: {n: whole}}}
      - {event: cut-short, with: {name: n}, rows: 1, then: {file: {n: cut}}}
      - {in: A, do: collect, with: {name: n}, rows: 0, then: {file: {n: cut}}}
      - {in: A, do: collect, with: {name: a b.csv}, rows: 1, then: {file: {a b.csv: absent}}}
      - {event: lost, with: {name: n}, rows: 1, then: {file: {n: absent}}}
      - {event: lost, with: {name: n}, rows: 0}
      - {in: A, do: take-in, with: {id: 2, name: m, content: abc}, rows: 1, then: {file: {m: whole}}}
  at-its-own-step:
    title: an effect in an open transaction counts at once, its statement at the commit
    steps:
      - {in: A, sql: BEGIN}
      - {in: A, do: write, with: {name: n, content: abcd}, then: {file: {n: orphan}}}
      - {in: A, do: take-in-later, with: {id: 1, name: m, content: abcd}, then: {file: {m: orphan}}}
      - {in: A, sql: COMMIT, then: {file: {n: orphan, m: whole}}}
  nothing-is-left-of-the-scenario-before:
    title: the store is empty
    steps:
      - {in: A, sql: SELECT 1, then: {file: {n: absent, m: absent, a b.csv: absent}}}
      - {in: A, do: take-in, with: {id: 1, name: n, content: abcd}, rows: 1}
      - {in: A, do: take-in, with: {id: 1, name: k, content: abcd}, error: "23505", then: {file: {k: absent}}}
  a-name-that-leads-out:
    title: a name is a name
    steps:
      - {in: A, do: write, with: {name: ../n, content: x}}
  given-a-name-that-leads-out:
    title: in given, too
    given: {big-files: {a/b: x}}
    steps:
      - {in: A, sql: SELECT 1}
  a-name-too-long:
    title: the file system has its own limits
    steps:
      - {in: A, sql: "SELECT repeat('n', 255) AS name", keep: {name: name}}
      - {in: A, do: write, with: {name: $name, content: x}, rows: 1}
"""
LATER = """
actions:
  take-in-later:
    subject: file
    title: Take in, in a transaction
    sql: INSERT INTO job VALUES (:id, :name)
    store: {write: big-files/$name, content: $content}
    moves: {absent: orphan, orphan: whole}
"""


def test_stores(stage: Stage) -> None:
    assert messages(stage.prove(FILES, LATER)) == {
        "effects": [],
        "at-its-own-step": [],
        "nothing-is-left-of-the-scenario-before": [],
        "a-name-that-leads-out": [
            "A did write: 'big-files/../n' is not a store and a file name: the name is one part, without '/'"
        ],
        "given-a-name-that-leads-out": [
            "what is given could not be put there: 'big-files/a/b' is not a store and a file name:"
            " the name is one part, without '/'"
        ],
        "a-name-too-long": [],
    }


def test_a_predicate_that_the_server_cannot_evaluate_is_named(stage: Stage, queue: str) -> None:
    more = """
states:
  odd-one: {subject: job, title: Odd, when: job.state = 'odd' AND 1 / (job.id - 2) > 0}
scenarios:
  later: {title: it fails after a step, given: {job: [{id: 1}]}, steps: [{in: A, sql: INSERT INTO job VALUES (2\\, 'odd')}]}
  at-once: {title: it fails on what is given, given: {job: [{id: 2, state: odd}]}, steps: [{in: A, sql: SELECT 1}]}
""".replace("{in: A, sql: INSERT INTO job VALUES (2\\, 'odd')}", "{in: A, sql: \"INSERT INTO job VALUES (2, 'odd')\"}")
    assert messages(stage.prove(queue, more)) == {
        "later": [
            "A ran INSERT INTO job VALUES (2, 'odd'): could not look: ERROR 22012: division by zero in states odd-one when"
        ],
        "at-once": ["could not look at what is given: states odd-one when: ERROR 22012: division by zero"],
    }


def test_a_column_that_a_step_takes_away_is_no_traceback(stage: Stage, queue: str) -> None:
    more = """
scenarios:
  dropped: {title: a column goes, given: {job: [{id: 1}]}, steps: [{in: A, sql: ALTER TABLE job DROP COLUMN owner}]}
  after: {title: and is there again, given: {job: [{id: 1}]}, steps: [{in: A, sql: SELECT owner FROM job, rows: 1}]}
"""
    told = messages(stage.prove(queue, more))
    assert told["dropped"][0].startswith("A ran ALTER TABLE job DROP COLUMN owner: could not look: ERROR 42703")
    assert told["after"] == []
