"""States and moves for Graphviz and Mermaid: every state, every move, and text that is only text."""

from __future__ import annotations

import subprocess
import sysconfig
from pathlib import Path

import pytest

from failure_matrix.catalogue.load import load
from failure_matrix.catalogue.model import Catalogue
from failure_matrix.export.dot import dot
from failure_matrix.export.mermaid import mermaid
from failure_matrix.export.moves import Arrow, arrows

TEXT = """
catalogue: {title: 'A "queue" \\'}
subjects:
  job: {key: {id: job.id}, from: job}
  file: {key: {name: file.name}, from: file}
states:
  ready: {subject: job, title: "Ready; go: \\"now\\" {x}", when: "true"}
  done: {subject: job, title: Done, when: "true", final: true}
  kept-file: {subject: file, title: Kept, when: "true"}
actions:
  put: {subject: job, title: Put, sql: SELECT 1, moves: {absent: ready}}
  finish: {subject: job, title: Finish, sql: SELECT 1, moves: {ready: [done, $to], absent: kept-file}}
  finish-too: {subject: job, title: Finish, sql: SELECT 1, moves: {ready: done}}
events:
  purge: {title: Purge, moves: {done: absent, kept-file: absent}}
"""


@pytest.fixture
def catalogue(tmp_path: Path) -> Catalogue:
    (tmp_path / "matrix.yaml").write_text(TEXT, encoding="utf-8")
    return load(tmp_path)


def test_every_move_is_an_arrow_of_its_subject(catalogue: Catalogue) -> None:
    assert arrows(catalogue) == [
        Arrow(subject="job", start=None, end="ready", by=("put",)),
        Arrow(subject="job", start="ready", end="done", by=("finish", "finish-too")),
        Arrow(subject="job", start="done", end=None, by=("purge",)),
        Arrow(subject="file", start=None, end="kept-file", by=("finish",)),
        Arrow(subject="file", start="kept-file", end=None, by=("purge",)),
    ]


def test_mermaid(catalogue: Catalogue) -> None:
    assert mermaid(catalogue).splitlines() == [
        "stateDiagram-v2",
        '  state "job" as subject_s_job {',
        '    state "Ready#59; go#58; #34;now#34; #123;x#125;" as s_ready',
        '    state "Done" as s_done',
        "    [*] --> s_ready : put",
        "    s_ready --> s_done : finish, finish-too",
        "    s_done --> [*] : purge",
        "  }",
        '  state "file" as subject_s_file {',
        '    state "Kept" as s_kept_file',
        "    [*] --> s_kept_file : finish",
        "    s_kept_file --> [*] : purge",
        "  }",
    ]


def test_graphviz_takes_the_dot(catalogue: Catalogue) -> None:
    text = dot(catalogue)
    assert text.startswith('digraph "A \\"queue\\" \\\\" {\n')
    assert '  "ready" -> "done" [label="finish, finish-too"];' in text
    assert '  "done" -> "no job" [label="purge"];' in text
    program = Path(sysconfig.get_path("scripts")) / "graphviz-pure"
    drawn = subprocess.run([program, "-Kdot", "-Tsvg"], input=text, capture_output=True, text=True, check=True)
    assert ">Kept<" in drawn.stdout
