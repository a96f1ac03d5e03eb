"""When a step that committed nothing need not be looked after, and that in all other cases it is."""

from __future__ import annotations

import pytest

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database.classify import Situation
from failure_matrix.database.cluster import Server
from failure_matrix.database.connection import Connection
from failure_matrix.verify import prepare
from failure_matrix.verify.probing import ready_probe
from failure_matrix.verify.steady import only_commits_tell
from failure_matrix.verify.world import World

from .proving import Stage, edited
from .test_orders import _one, _table, _text

PLAIN = """
catalogue:
  title: What predicates may ask
  schema:
    - |
      CREATE TABLE job (id bigint PRIMARY KEY, state text NOT NULL DEFAULT 'ready', seen timestamptz);
      CREATE VIEW everything AS SELECT * FROM job;
      CREATE SEQUENCE counter;
      CREATE FUNCTION pure(text) RETURNS boolean IMMUTABLE LANGUAGE sql RETURN $1 = 'ready';
      CREATE FUNCTION impure(text) RETURNS boolean STABLE LANGUAGE sql RETURN $1 = 'ready';
      CREATE FUNCTION late(job) RETURNS boolean LANGUAGE sql AS 'SELECT $1.seen < clock_timestamp()';
subjects: {job: {key: {id: job.id}, from: job, show: [job.state, job.seen]}}
states:
  ready: {subject: job, title: Ready, when: job.state = 'ready'}
  other: {subject: job, title: Other, when: job.state <> 'ready'}
invariants:
  few: {title: Few, sql: SELECT count(*) FROM job HAVING count(*) > 9}
"""
WHEN = "when: job.state = 'ready'}"

STEADY = {
    "columns": "job.state = 'ready'",
    "functions of their arguments": "lower(job.state) = 'ready' AND job.id BETWEEN abs(-1) AND 9",
    "other rows": "job.state = 'ready' AND EXISTS (SELECT FROM job AS other WHERE other.id >= job.id)",
    "a function of the schema that is immutable": "pure(job.state)",
    "the catalogue's clock": "job.state = 'ready' AND :now >= 0",
    "words that are functions elsewhere": "coalesce(job.state, 'sooner') IN ('ready')",
}
NOT_STEADY = {
    "the time": "job.seen < now()",
    "the time, by keyword": "job.seen < CURRENT_TIMESTAMP",
    "the time, by text": "job.seen < 'now'::timestamptz",
    "a lock": "EXISTS (SELECT FROM pg_locks WHERE NOT granted)",
    "who locked a row": "job.xmax::text <> '0'",
    "where a row is": "job.ctid = '(0,1)'",
    "a view": "EXISTS (SELECT FROM everything)",
    "a sequence": "(SELECT last_value FROM counter) > 0",
    "a function of the schema that is not immutable": "impure(job.state)",
    "a function of the schema, written as a column": "job.late",
    "chance": "random() < 2",
    "a setting": "current_setting('lock_timeout') <> ''",
}


def _tells(server: Server, catalogue: Catalogue) -> bool:
    name = prepare.make_template(catalogue, server)
    probe = ready_probe(catalogue, server.conninfo(name))
    connection = Connection(server.conninfo(name), "steady")
    try:
        return only_commits_tell(catalogue, probe, connection)
    finally:
        connection.close()
        server.drop_database(name)


def _asking(predicate: str) -> str:
    quoted = predicate.replace('"', '\\"')
    return edited(PLAIN, (WHEN, f'when: "{quoted}"}}'))


@pytest.mark.parametrize("predicate", STEADY.values(), ids=STEADY)
def test_rows_and_what_is_computed_from_them_stay_until_something_commits(stage: Stage, predicate: str) -> None:
    assert _tells(stage.server, stage.catalogue(_asking(predicate)))


@pytest.mark.parametrize("predicate", NOT_STEADY.values(), ids=NOT_STEADY)
def test_all_else_may_change_at_any_step(stage: Stage, predicate: str) -> None:
    assert not _tells(stage.server, stage.catalogue(_asking(predicate)))


def test_an_invariant_is_asked_too(stage: Stage) -> None:
    asked = edited(PLAIN, ("HAVING count(*) > 9", "HAVING count(*) > 9 AND now() IS NULL"))
    assert not _tells(stage.server, stage.catalogue(asked))


@pytest.mark.parametrize(
    "sql",
    ["CREATE VIEW job AS SELECT 1", "ALTER TABLE job RENAME TO other", "COPY job TO PROGRAM 'cat'"],
)
def test_steps_that_may_change_what_the_names_mean_or_commit_elsewhere(stage: Stage, sql: str) -> None:
    scenario = f'scenarios:\n  one: {{title: One, steps: [{{in: A, sql: "{sql}", error: 42P07}}]}}'
    assert not _tells(stage.server, stage.catalogue(PLAIN, scenario))


def test_a_clock_on_the_wall_never_stands_still(stage: Stage) -> None:
    assert not _tells(stage.server, stage.catalogue(edited(PLAIN, ("  title:", "  clock: wall\n  title:"))))


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """One entry for each look at what is committed, but the first of an order."""
    counted: list[int] = []
    look = World.look

    def count(world: World, previous: Situation | None) -> Situation:
        counted.append(1)
        return look(world, previous)

    monkeypatch.setattr(World, "look", count)
    return counted


OPEN = [
    "{in: A, sql: BEGIN}",
    "{in: A, do: take, with: {id: 1, owner: A}, rows: 1}",
    "{in: A, do: beat, with: {id: 1, owner: A}, rows: 1}",
    "{in: A, sql: COMMIT}",
    "{at: 3}",
]


def test_only_what_may_have_changed_something_is_looked_after(stage: Stage, queue: str, looks: list[int]) -> None:
    catalogue = stage.catalogue(queue, _text(OPEN))
    with _table(stage, catalogue, "one") as table:
        (outcome,) = [each for each in table.outcomes(9) if each.beginning[0] == 5]
    assert [bool(entry.standing) for entry in outcome.entries] == [True] * 5
    assert len(looks) == 4 * 2  # of each of the four orders besides the listed one: the clock, and the commit


def test_where_in_doubt_every_step_is_looked_after(stage: Stage, queue: str, looks: list[int]) -> None:
    locks = '\n  locks: {title: Locks, sql: "SELECT 1 FROM pg_locks HAVING count(*) < 0"}\n'
    catalogue = stage.catalogue(queue.rstrip() + locks, _text(OPEN))
    with _table(stage, catalogue, "one") as table:
        assert len(list(table.outcomes(9))) == 4
    assert len(looks) == 4 * 5


def test_a_commit_in_the_middle_of_a_step_is_looked_after(stage: Stage, queue: str) -> None:
    chained = "{in: A, sql: \"UPDATE job SET state = 'done'; COMMIT AND CHAIN\"}"
    steps = [
        "{in: A, sql: BEGIN}",
        "{in: A, do: take, with: {id: 1, owner: A}, rows: 1}",
        chained,
        "{in: B, sql: SELECT 1}",
    ]
    record = _one(stage, queue, steps, more="    breaks: undeclared-move\n")
    assert [failure.kind for step in record.steps for failure in step.failures] == ["undeclared-move"]
    catalogue = stage.catalogue(queue, _text(steps))
    with _table(stage, catalogue, "one") as table:
        for outcome in table.outcomes(9):
            last = outcome.entries[-1]
            assert (last.numbered.number, last.breaks, last.in_transaction) == (3, ("undeclared-move",), True)
