"""All orders of a scenario's steps: how many there are, which are possible, and what must hold in each."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import UTC, datetime

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.evidence.fingerprints import Fingerprints
from failure_matrix.evidence.records import Orders, ScenarioRecord, Verdict
from failure_matrix.verify import verify
from failure_matrix.verify.ground import laid
from failure_matrix.verify.interleavings import Interleavings
from failure_matrix.verify.lane import lanes
from failure_matrix.verify.order import End
from failure_matrix.verify.orders import Table
from failure_matrix.verify.script import script
from failure_matrix.verify.stores import Stores
from failure_matrix.verify.verification import Verification

from .proving import Stage, template

STARTED = datetime(2026, 1, 1, tzinfo=UTC)


def _play(stage: Stage, *texts: str) -> dict[str, ScenarioRecord]:
    """The scenarios of a catalogue in all orders that they ask for."""
    return _played(stage, stage.catalogue(*texts))


def _played(stage: Stage, catalogue: Catalogue, *, jobs: int = 1) -> dict[str, ScenarioRecord]:
    server = stage.server
    fingerprints = Fingerprints(catalogue, server.major)
    with (
        template(catalogue, server) as (name, probe),
        lanes(catalogue, server, name, probe, fingerprints, STARTED, count=jobs) as laid_out,
    ):
        verification = Verification(catalogue, laid_out, lambda _: None)
        listed = verification.listed(tuple(catalogue.scenarios), None)
        return {record.id: record for record in verification.in_all_orders(listed)}


@contextmanager
def _table(stage: Stage, catalogue: Catalogue, id: str) -> Iterator[Table]:
    with template(catalogue, stage.server) as (name, probe), laid(stage.server, name, probe) as ground:
        stores = Stores(stage.server.directory / "orders", catalogue.stores)
        yield Table(catalogue, script(catalogue, id), ground, stores, STARTED)


def _one(stage: Stage, queue: str, steps: Sequence[str], *, more: str = "", given: str = "{id: 1}") -> ScenarioRecord:
    """One scenario with these steps, in all orders."""
    return _play(stage, queue, _text(steps, more=more, given=given))["one"]


def _text(steps: Sequence[str], *, more: str = "", given: str = "{id: 1}") -> str:
    listed = "".join(f"      - {step}\n" for step in steps)
    head = f"scenarios:\n  one:\n    title: One\n    orders: all\n    given: {{job: [{given}]}}\n"
    return f"{head}{more}    steps:\n{listed}"


TAKE_A = "{in: A, do: take, with: {id: 1, owner: A}, rows: 1, then: {job: {1: leased}}}"
TAKE_B = "{in: B, do: take, with: {id: 1, owner: B}, rows: 0}"
BLIND = "{in: B, sql: UPDATE job SET state = 'done', carries_out: finish, rows: 1}"  # whatever state it is in


def test_expectations_belong_to_the_listed_order(stage: Stage, queue: str) -> None:
    record = _one(stage, queue, [TAKE_A, TAKE_B])
    assert record.verdict == Verdict.VERIFIED
    assert record.orders == Orders(exist=2, ran=2)


def test_a_listed_scenario_has_one_order(stage: Stage, queue: str) -> None:
    text = _text([TAKE_A, TAKE_B]).replace("orders: all", "orders: listed")
    assert _play(stage, queue, text)["one"].orders == Orders(exist=1, ran=1)


def test_each_session_keeps_its_own_order_and_steps_without_one_are_the_worlds(stage: Stage, queue: str) -> None:
    steps = [TAKE_A, "{at: 4}", "{in: A, sql: SELECT 1}", "{at: 9}", "{in: B, sql: SELECT 1}", "{at: 12}"]
    catalogue = stage.catalogue(queue, _text(steps))
    with _table(stage, catalogue, "one") as table:
        orders = {tuple(entry.numbered.number for entry in each.entries) for each in table.outcomes(10**6)}
    assert len(orders) == 59  # 6! / (2! 1! 3!), without the listed one
    for order in orders:
        assert [step for step in order if step in (1, 3)] == [1, 3]
        assert [step for step in order if step in (2, 4, 6)] == [2, 4, 6]


def test_an_order_in_which_something_breaks_is_told(stage: Stage, queue: str) -> None:
    record = _one(stage, queue, [TAKE_A, BLIND])
    assert record.verdict == Verdict.BROKEN
    assert (record.orders.exist, record.orders.ran, record.orders.failed) == (2, 2, 1)
    failing = record.orders.failing
    assert failing is not None
    assert failing.order == (2,)
    (failure,) = failing.steps[0].failures
    assert failure.kind == "undeclared-move"
    assert [each.message for each in record.failures] == [f"in order 2: {failure.message}"]
    assert record.because == record.failures[0].message


def test_the_shortest_order_that_fails_is_told(stage: Stage, queue: str) -> None:
    record = _one(stage, queue, ["{in: B, sql: SELECT 1}", TAKE_A, BLIND, "{in: C, sql: SELECT 1}"])
    failing = record.orders.failing
    assert failing is not None
    assert failing.order == (1, 3)  # B's own order is kept; A's and C's steps are in nobody's way
    assert record.orders.failed == 4  # of the twelve that exist, those in which the third step comes before the second
    assert record.orders.ran == record.orders.exist == 12


def test_a_declared_break_must_happen_in_some_order_and_in_just_that_way(stage: Stage, queue: str) -> None:
    record = _one(stage, queue, [TAKE_A, BLIND], more="    breaks: undeclared-move\n")
    assert record.verdict == Verdict.VERIFIED
    assert (record.orders.broke, record.orders.failed) == (1, 0)
    assert record.orders.breaking is not None
    assert record.orders.breaking.order == (2,)
    assert record.orders.breaking.steps[0].breaks == ("undeclared-move",)


def test_another_break_than_the_declared_one_is_a_failure(stage: Stage, queue: str) -> None:
    record = _one(stage, queue, [TAKE_A, BLIND], more="    breaks: nobody-evil\n")
    assert record.verdict == Verdict.BROKEN
    assert record.orders.failing is not None
    assert (record.orders.broke, record.orders.failed) == (0, 1)


def test_a_declared_break_that_never_happens_is_a_failure(stage: Stage, queue: str) -> None:
    record = _one(stage, queue, [TAKE_A, TAKE_B], more="    breaks: nobody-evil\n")
    assert record.verdict == Verdict.BROKEN
    assert [failure.kind for failure in record.failures] == ["breaks"]
    assert "no order breaks nobody-evil" in (record.because or "")


def test_a_break_that_the_listed_order_declares_is_one(stage: Stage, queue: str) -> None:
    evil = "{in: A, do: take, with: {id: 1, owner: evil}, breaks: nobody-evil}"
    record = _one(stage, queue, ["{in: B, sql: SELECT 1}", evil], more="    breaks: nobody-evil\n")
    assert record.verdict == Verdict.VERIFIED
    assert (record.orders.ran, record.orders.broke) == (2, 1)


def test_an_illegal_state_is_never_allowed_in_another_order(stage: Stage, queue: str) -> None:
    lose = "{in: A, sql: UPDATE job SET state = 'lost', breaks: [illegal-state, undeclared-move]}"
    record = _one(stage, queue, ["{in: B, sql: SELECT 1}", lose])
    assert record.verdict == Verdict.BROKEN
    assert record.orders.failing is not None
    kinds = [failure.kind for step in record.orders.failing.steps for failure in step.failures]
    assert sorted(kinds) == ["illegal-state", "undeclared-move"]


def test_a_value_that_no_step_has_kept_makes_an_order_impossible(stage: Stage, queue: str) -> None:
    keep = "{in: A, sql: SELECT 1 AS one, keep: {one: one}}"
    record = _one(stage, queue, [keep, "{in: B, do: take, with: {id: $one, owner: B}}", "{in: C, sql: SELECT 1}"])
    assert record.verdict == Verdict.VERIFIED
    assert record.orders == Orders(exist=6, ran=3, impossible=3)


def test_a_value_that_a_step_fails_to_keep_makes_an_order_impossible(stage: Stage, queue: str) -> None:
    first = "{in: A, do: take, with: {id: 1, owner: A}, keep: {chosen: id}}"
    second = "{in: A, do: beat, with: {id: $chosen, owner: A}, rows: 1}"
    record = _one(stage, queue, [first, second, "{in: B, do: take, with: {id: 1, owner: B}, rows: 0}"])
    assert record.verdict == Verdict.VERIFIED
    assert record.orders == Orders(exist=3, ran=2, impossible=1)


def test_where_orders_are_left_out_a_scenario_is_incomplete(stage: Stage, queue: str) -> None:
    catalogue = stage.catalogue(
        queue, _text(["{in: A, sql: SELECT 1}", "{in: B, sql: SELECT 2}", "{in: C, sql: SELECT 3}"])
    )
    (record,) = verify(catalogue, stage.server, quick=True).scenarios
    assert (record.verdict, record.because) == (Verdict.INCOMPLETE, "1 of 6 orders")
    assert record.orders == Orders(exist=6, ran=1, skipped=5)


LOCKING = """
catalogue:
  title: An order in which nobody can look
  schema:
    - |
      CREATE TABLE job (id bigint PRIMARY KEY, state text NOT NULL); CREATE SEQUENCE number;
      CREATE FUNCTION lock_it() RETURNS text LANGUAGE plpgsql AS
        $$ BEGIN IF (SELECT state FROM job) = 'held' THEN LOCK TABLE job; END IF; RETURN 'x'; END $$;
subjects:
  job: {key: {id: job.id}, from: job, show: [job.state]}
states:
  ready: {subject: job, title: Ready, when: job.state = 'ready'}
  held: {subject: job, title: Held, when: job.state = 'held', final: true}
actions:
  hold:
    subject: job
    title: Hold
    sql: UPDATE job SET state = 'held' WHERE id = :id AND state = 'ready'
    moves: {ready: held}
invariants:
  few: {title: Few numbers, sql: SELECT last_value FROM number WHERE last_value > 9}
scenarios:
  one:
    title: As listed it is ready when it is asked
    orders: all
    given: {job: [{id: 1, state: ready}]}
    steps:
      - {in: A, sql: BEGIN}
      - {in: A, sql: SELECT lock_it()}
      - {in: B, do: hold, with: {id: 1}, rows: 1}
"""


def test_an_order_in_which_nobody_could_look_shows_nothing_broken(stage: Stage) -> None:
    (record,) = verify(stage.catalogue(LOCKING), stage.server).scenarios
    assert record.verdict is Verdict.INCOMPLETE
    assert (record.because or "").endswith("could not look afterwards, and the scenario is over")


def test_a_caller_that_is_not_there_makes_an_order_impossible(stage: Stage, queue: str) -> None:
    record = _one(stage, queue, [TAKE_A, "{in: B, do: beat, as: holder, with: {id: 1}, rows: 1}"])
    assert record.orders == Orders(exist=2, ran=1, impossible=1)


WAITING = [
    "{in: A, sql: BEGIN}",
    "{in: A, do: take, with: {id: 1, owner: A}, rows: 1}",
    "{in: A, sql: COMMIT}",
    "{in: B, do: take, with: {id: 1, owner: B}, rows: 0}",
    "{in: B, sql: SELECT 1}",
    "{in: C, do: take, with: {id: 1, owner: C}, rows: 0}",
]


def test_what_is_left_out_as_impossible_is_impossible(stage: Stage, queue: str) -> None:
    """Each order is played by itself here; the table leaves out what it infers."""
    catalogue = stage.catalogue(queue, _text(WAITING))
    counted: Counter[End] = Counter()
    with _table(stage, catalogue, "one") as table:
        interleavings = Interleavings([[1, 2, 3], [4, 5], [6]])
        orders = [interleavings.order(rank) for rank in range(interleavings.total)]
        each = Counter(table.player.play(order).end for order in orders)
        played = 0
        for outcome in table.outcomes(10**6):
            counted[outcome.end] += outcome.alike
            played += outcome.played
    counted[End.HELD] += 1  # the listed one
    assert counted == each
    assert each[End.IMPOSSIBLE] > 0
    assert played == each[End.HELD] - 1  # no play was in vain, but for the listed order's


def test_who_waits_does_not_have_to_be_said(stage: Stage, queue: str) -> None:
    record = _one(stage, queue, WAITING)
    assert record.verdict == Verdict.VERIFIED
    assert record.orders.exist == 60
    assert record.orders.ran + record.orders.impossible == 60


def test_a_step_that_waits_to_the_end_is_counted(stage: Stage, queue: str) -> None:
    steps = [TAKE_A, "{in: B, sql: BEGIN}", "{in: B, sql: SELECT FROM job WHERE id = 1 FOR UPDATE, rows: 1}"]
    record = _one(stage, queue, steps)
    assert record.orders == Orders(exist=3, ran=3, waiting=1)


def test_where_time_decides_every_order_is_played(stage: Stage, queue: str) -> None:
    steps = [
        "{in: A, sql: BEGIN}",
        "{in: A, do: take, with: {id: 1, owner: A}, rows: 1}",
        "{in: B, do: take, with: {id: 1, owner: B}, waits: maybe, error: 55P03}",
        "{in: B, sql: SELECT 1}",
        "{in: A, sql: COMMIT}",
    ]
    more = "    sessions: {B: {setup: SET lock_timeout = '20ms'}}\n"
    record = _one(stage, queue, steps, more=more)
    assert record.verdict == Verdict.VERIFIED
    assert record.orders == Orders(exist=10, ran=10)


def test_the_end_of_a_backend_is_a_step_like_others(stage: Stage, queue: str) -> None:
    steps = [
        "{in: A, sql: BEGIN}",
        "{in: A, do: take, with: {id: 1, owner: A}, rows: 1}",
        "{kill: A}",
        "{in: A, sql: COMMIT}",
    ]
    record = _one(stage, queue, steps)
    assert record.verdict == Verdict.VERIFIED
    assert record.orders == Orders(exist=4, ran=4)


def test_what_it_begins_after_is_played_as_listed(stage: Stage, queue: str) -> None:
    text = (
        _text([TAKE_A]).replace("orders: all", "orders: listed")
        + """
  two:
    title: Two
    after: one
    orders: all
    steps:
      - {in: A, do: finish, with: {id: 1, owner: A}, rows: 1, then: {job: {1: done}}}
      - {in: B, do: finish, with: {id: 1, owner: B}, rows: 0}
"""
    )
    record = _play(stage, queue, text)["two"]
    assert record.verdict == Verdict.VERIFIED
    assert record.orders == Orders(exist=2, ran=2)


def test_files_of_a_store_are_given_anew_to_each_order(stage: Stage) -> None:
    text = """
catalogue: {title: Files}
stores: {file: {directory: files}}
subjects: {file: {key: {name: file.name}, from: file, show: [file.bytes]}}
states:
  whole: {subject: file, title: Whole, when: file.bytes = 4}
  cut: {subject: file, title: Cut, when: file.bytes < 4}
events:
  cut: {title: Cut, store: {truncate: file/a}, moves: {whole: cut, cut: cut}}
  lose: {title: Lost, store: {remove: file/a}, moves: {whole: absent, cut: absent}}
scenarios:
  one:
    title: One
    orders: all
    given: {file: {a: text}}
    steps:
      - {in: A, event: cut, rows: 1}
      - {in: B, event: lose, rows: 1, then: {file: {a: absent}}}
      - {in: C, event: cut, rows: 0}
"""
    catalogue = stage.catalogue(text)
    with _table(stage, catalogue, "one") as table:
        for outcome in table.outcomes(10):
            lost = next(entry for entry in outcome.entries if entry.numbered.number == 2)
            assert lost.answer is not None
            assert lost.answer.last is not None
            assert lost.answer.last.affected == 1


def test_more_than_may_run_are_left_out_and_that_is_incomplete(stage: Stage, queue: str) -> None:
    steps = [f"{{in: {session}, sql: SELECT {number}}}" for session in "ABC" for number in (1, 2)]
    few = queue.replace("catalogue:\n", "catalogue:\n  most_orders: 9\n")
    catalogue = stage.catalogue(few, _text(steps))
    record = _played(stage, catalogue)["one"]
    assert record.orders == Orders(exist=90, ran=10, skipped=80)
    assert record.verdict == Verdict.INCOMPLETE
    assert record.because == "10 of 90 orders"
    assert _played(stage, catalogue)["one"] == record


def test_what_is_impossible_is_not_what_was_left_out(stage: Stage, queue: str) -> None:
    few = queue.replace("catalogue:\n", "catalogue:\n  most_orders: 3\n")
    record = _one(stage, few, WAITING)
    assert record.orders.ran + record.orders.impossible + record.orders.skipped == 60
    assert record.because == f"{record.orders.ran} of {60 - record.orders.impossible} orders"


def test_a_scenario_that_is_broken_as_listed_is_not_played_on(stage: Stage, queue: str) -> None:
    record = _one(stage, queue, [TAKE_A.replace("rows: 1", "rows: 2"), TAKE_B])
    assert record.verdict == Verdict.BROKEN
    assert record.orders == Orders(exist=2, ran=1, skipped=1)


def test_a_declared_break_that_was_not_seen_among_few_orders_is_incomplete(stage: Stage, queue: str) -> None:
    few = queue.replace("catalogue:\n", "catalogue:\n  most_orders: 0\n")
    record = _one(stage, few, [TAKE_A, BLIND], more="    breaks: undeclared-move\n")
    assert record.verdict == Verdict.INCOMPLETE


def test_an_order_that_changes_the_schema_leaves_no_trace_in_the_next(stage: Stage, queue: str) -> None:
    steps = [
        "{in: A, sql: CREATE TABLE more (a integer)}",
        TAKE_B.replace("rows: 0", "rows: 1"),
        "{in: C, sql: SELECT 1}",
    ]
    catalogue = stage.catalogue(queue, _text(steps))
    with _table(stage, catalogue, "one") as table:
        outcomes = list(table.outcomes(100))
    assert len(outcomes) == 5
    for outcome in outcomes:
        assert [entry.answer.error for entry in outcome.entries if entry.answer] == [None, None, None]


def test_a_sequence_starts_where_it_did_in_every_order(stage: Stage, queue: str) -> None:
    note = "{{in: {}, sql: \"INSERT INTO note (job, text) VALUES (1, '{}') RETURNING id\"}}"
    catalogue = stage.catalogue(queue, _text([note.format("A", "a"), note.format("B", "b"), "{in: C, sql: SELECT 1}"]))
    with _table(stage, catalogue, "one") as table:
        for outcome in table.outcomes(100):
            answers = [entry.answer for entry in outcome.entries if entry.numbered.number < 3]
            assert [answer.last.rows for answer in answers if answer and answer.last] == [(("1",),), (("2",),)]


def test_the_evidence_is_the_same_in_every_run_and_with_every_number_of_jobs(stage: Stage, queue: str) -> None:
    more = _text([TAKE_A, BLIND]).replace("  one:", "  two:").removeprefix("scenarios:\n")
    catalogue = stage.catalogue(queue, _text(WAITING) + more)
    first = _played(stage, catalogue)
    assert first["two"].orders.failing is not None
    assert _played(stage, catalogue) == first
    assert _played(stage, catalogue, jobs=2) == first
