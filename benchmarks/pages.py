"""``matrix build --evidence`` of catalogues with many states, against markdown-it-py alone on the same Markdown."""

from __future__ import annotations

import subprocess
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from markdown_it import MarkdownIt

from benchmarks.table import Measured, alternate
from benchmarks.whole import MATRIX
from failure_matrix.catalogue.load import load
from failure_matrix.database.cluster import Server
from failure_matrix.evidence import files
from failure_matrix.verify import verify

STATES = 20  # of each subject
FEW, MANY = 5, 50  # subjects
FIVE = (
    5.0  # goal: the faster of mkdocs and zensical takes twenty times as long as markdown-it-py, and a quarter is enough
)
LINEAR = 1.2  # goal: so much more a state may cost with ten times as many

_SUBJECT = """\
subjects:
  job-{s}: {{key: {{id: job_{s}.id}}, from: job_{s}, show: [job_{s}.state, job_{s}.owner]}}
scenarios:
  through-{s}:
    title: Job {s} goes through all stages
    given: {{job_{s}: [{{id: 1, state: stage 0}}]}}
    steps:
"""
_STEP = "      - {{in: A, do: go-{s}-{n}, with: {{id: 1}}, rows: 1, then: {{job-{s}: {{1: s{s}-{to}}}}}}}\n"
_STATE = """\
  s{s}-{n}:
    subject: job-{s}
    title: Job {s} at stage {n}
    when: job_{s}.state = 'stage {n}'
    about: Work {s} stands at stage {n}, and whoever holds it goes on from here.
    observe: [{{see: its row says so, sql: "SELECT 1 FROM job_{s} WHERE id = :id AND state = 'stage {n}'"}}]
"""
_ACTION = """\
  go-{s}-{n}:
    subject: job-{s}
    title: Go from stage {n} to the next
    sql: UPDATE job_{s} SET state = 'stage {to}' WHERE id = :id AND state = 'stage {n}'
    moves: {{s{s}-{n}: s{s}-{to}}}
"""


def _write(directory: Path, subjects: int) -> None:
    """A catalogue of so many subjects, each with its states in a row."""
    directory.mkdir()
    tables = "\n".join(
        f"    - CREATE TABLE job_{s} (id bigint PRIMARY KEY, state text NOT NULL, owner text)" for s in range(subjects)
    )
    (directory / "matrix.yaml").write_text(f"catalogue:\n  title: Many states\n  schema:\n{tables}\n", encoding="utf-8")
    for s in range(subjects):
        numbers = [{"s": s, "n": n, "to": n + 1} for n in range(STATES)]
        steps = "".join(_STEP.format(**each) for each in numbers[:-1])
        states = "".join(_STATE.format(**each) for each in numbers)
        actions = "".join(_ACTION.format(**each) for each in numbers[:-1])
        text = f"{_SUBJECT.format(s=s)}{steps}states:\n{states}    final: true\nactions:\n{actions}"
        (directory / f"job-{s}.yaml").write_text(text, encoding="utf-8")


def measure(server: Server, rounds: int) -> Iterator[Measured]:
    """A thousand states, and what one of them costs beside one of a hundred."""
    seconds = {}
    with tempfile.TemporaryDirectory() as place:
        for subjects in (FEW, MANY):
            catalogue, evidence = Path(place) / f"matrix-{subjects}", Path(place) / f"{subjects}.json"
            _write(catalogue, subjects)
            evidence.write_text(files.text(verify(load(catalogue), server, quick=True)), encoding="utf-8")
            built = [MATRIX, "build", "--catalogue", catalogue, "--evidence", evidence, "--site"]
            texts = [path.read_text(encoding="utf-8") for path in _build(built, place).rglob("*.md")]
            seconds[subjects] = alternate(rounds, partial(_build, built, place), partial(_render, texts)).medians
    ours, theirs = seconds[MANY]
    yield Measured(
        work=f"`matrix build --evidence` of {MANY * STATES:,} states, pictures and all",
        against="markdown-it-py on the same Markdown",
        ours=ours,
        theirs=theirs,
        unit="s",
        times=rounds,
        goal=f"{FIVE:.2f}",
        met=ours / theirs <= FIVE,
    )
    few, many = seconds[FEW][0] / FEW, seconds[MANY][0] / MANY
    yield Measured(
        work=f"a state of {MANY * STATES:,}",
        against=f"a state of {FEW * STATES}",
        ours=many / STATES * 1000,
        theirs=few / STATES * 1000,
        unit="ms",
        times=rounds,
        goal=f"{LINEAR:.2f}",
        met=many / few <= LINEAR,
    )


def _build(command: list[str | Path], place: str) -> Path:
    site = Path(tempfile.mkdtemp(dir=place)) / "site"  # a fresh one: what is there already is not written again
    done = subprocess.run([*command, site], check=False, capture_output=True, text=True)
    if done.returncode not in (0, 1):  # quick evidence is incomplete
        raise RuntimeError(f"matrix build ended with {done.returncode}: {done.stderr}")
    return site


def _render(texts: list[str]) -> None:
    markdown = MarkdownIt("commonmark").enable("table")
    for text in texts:
        markdown.render(text)
