"""Scenarios as files for isolationtester, and what of a scenario such a file cannot say."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from failure_matrix.catalogue.load import load
from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database import hosting
from failure_matrix.database.cluster import Server
from failure_matrix.export.spec import spec

ROOT = Path(__file__).parents[2]
TESTER = hosting.installation(None).prefix / "lib/pgxs/src/test/isolation/isolationtester"
Loaded = Callable[[str], Catalogue]


@pytest.fixture
def loaded(tmp_path: Path) -> Loaded:
    def read(text: str) -> Catalogue:
        (tmp_path / "matrix.yaml").write_text(text, encoding="utf-8")
        return load(tmp_path)

    return read


@pytest.fixture
def tester(server: Server) -> Callable[[str], str]:
    """Run a file with isolationtester in an empty database, and give what it printed."""

    def run(text: str) -> str:
        name = server.create_database()
        done = subprocess.run(
            [TESTER, server.conninfo(name)],
            input=text,
            capture_output=True,
            text=True,
            check=False,
            timeout=50,
            env={**os.environ, "PG_TEST_TIMEOUT_DEFAULT": "5"},
        )
        server.drop_database(name)
        assert (done.returncode, done.stderr) == (0, "")
        return done.stdout

    return run


TEXT = """
catalogue:
  title: A queue
  schema:
    - CREATE TABLE job (id bigint PRIMARY KEY, state text NOT NULL DEFAULT 'ready', until integer, note text)
stores: {file: {directory: files}}
sessions: {B: {isolation: repeatable read, setup: "SET work_mem = '4MB'"}}
subjects: {job: {key: {id: job.id}, from: job, show: [job.state]}}
states:
  ready: {subject: job, title: Ready, when: job.state = 'ready'}
  done: {subject: job, title: Done, when: job.state = 'done', final: true}
callers:
  clerk: {note: by the clerk}
  reader: SELECT note FROM job WHERE id = :id
actions:
  finish:
    subject: job
    title: Finish
    with: {note: "it's {1,2}"}
    sql: UPDATE job SET state = 'done', until = :now, note = :note WHERE id = :id AND state = 'ready'
    moves: {ready: done}
events:
  lost: {title: Lost, store: {remove: file/a}}
  swept: {title: Swept, sql: "DELETE FROM job WHERE state = 'done'", moves: {done: absent}}
scenarios:
  one:
    title: One of everything
    given: {job: [{id: 1}, {id: 2, note: "}"}], file: {a: text}}
    steps:
      - {in: A, sql: SELECT id FROM job WHERE id = 2, keep: {other: id}, returns: [{id: 2}]}
      - {at: 7}
      - {in: A, do: finish, with: {id: 1}, rows: 1}
      - {in: B, do: finish, with: {id: $other}}
      - {in: B, do: finish, as: clerk, with: {id: 2}}
      - {in: B, do: finish, as: reader, with: {id: 2}}
      - {event: lost}
      - {event: swept}
      - {in: B, event: commit}
      - {kill: A}
"""


def test_what_can_be_said_is_said(loaded: Loaded) -> None:
    assert spec(loaded(TEXT), "one").text == (Path(__file__).with_name("one.spec")).read_text(encoding="utf-8")


def test_it_runs_and_leaves_nothing(loaded: Loaded, tester: Callable[[str], str]) -> None:
    text = spec(loaded(TEXT), "one").text
    listed = next(line for line in text.splitlines() if line.startswith("permutation "))
    printed = tester(f"{text}\n{listed}\n")  # twice: the second finds what the first tore down
    assert printed.count("starting permutation: s1_sql s3_finish s5_finish s8_swept s9_commit") == 2
    assert "ERROR" not in printed


def test_what_a_step_begins_is_torn_down(loaded: Loaded, tester: Callable[[str], str]) -> None:
    open_ended = TEXT[: TEXT.index("    steps:")] + (
        "    steps:\n      - {in: A, sql: BEGIN}\n      - {in: A, do: finish, with: {id: 1}}\n"
        "      - {in: B, do: finish, with: {id: 1}}\n"
    )
    assert "<waiting ...>" in tester(spec(loaded(open_ended), "one").text)


def test_all_orders_are_no_permutation_at_all(loaded: Loaded, tester: Callable[[str], str]) -> None:
    steps = "    orders: all\n    steps:\n      - {in: A, sql: SELECT 1}\n      - {in: B, sql: SELECT 2}\n"
    text = spec(loaded(TEXT[: TEXT.index("    steps:")] + steps), "one").text
    assert "permutation" not in text.split("setup", 1)[1]
    assert tester(text).count("starting permutation:") == 2


def test_it_says_that_orders_after_another_scenario_are_lost(loaded: Loaded) -> None:
    more = "  two: {title: Two, after: one, orders: all, steps: [{in: A, sql: SELECT 1}, {in: B, sql: SELECT 2}]}\n"
    found = spec(loaded(TEXT + more), "two")
    assert "all orders: it begins after another scenario, so only the listed one is written" in found.left_out
    assert "permutation one_s1_sql one_s3_finish" in found.text
    assert found.text.rstrip().endswith("s1_sql s2_sql")


def test_odd_names_of_sessions_and_columns(loaded: Loaded, tester: Callable[[str], str]) -> None:
    text = """
catalogue: {title: Odd, schema: ['CREATE TABLE "a}b" ("c}""d" text)']}
scenarios:
  odd:
    title: "Odd } names\\nand lines"
    given: {"a}b": [{'c}"d': "x'}\\\\"}]}
    steps:
      - {in: "it's {me}", sql: 'SELECT "c}""d" FROM "a}b"'}
      - {in: it-s-me, sql: SELECT 'last'}
"""
    printed = tester(spec(loaded(text), "odd").text)
    assert "x'}\\" in printed
    assert "last" in printed


@pytest.mark.parametrize("directory", ["matrix", "examples/smallest", "benchmarks/catalogue"])
def test_every_scenario_of_ours_runs(directory: str, tester: Callable[[str], str]) -> None:
    catalogue = load(ROOT / directory)
    for id, scenario in catalogue.scenarios.items():
        written = spec(catalogue, id, orders=[tuple(range(1, len(scenario.steps) + 1))])
        printed = tester(written.text)
        assert "syntax error" not in printed
        assert "does not exist" not in printed
        for key in ("left out", "It leaves out:"):
            assert (key in written.text) <= bool(written.left_out)


def test_orders_may_be_named(loaded: Loaded) -> None:
    text = spec(loaded(TEXT), "one", orders=[(3, 5), (5, 3)]).text
    assert text.endswith("permutation s3_finish s5_finish\npermutation s5_finish s3_finish")
