"""Commands as a person runs them: verify and build of the shipped catalogue, and ``matrix --help``."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

from benchmarks.table import Measured, alternate
from failure_matrix.database.cluster import Source, serve

ROOT = Path(__file__).parents[1]
MATRIX = Path(sysconfig.get_path("scripts")) / "matrix"
EMPTY = """
import typer

app = typer.Typer(rich_markup_mode=None, add_completion=False, pretty_exceptions_enable=False)


@app.command()
def empty() -> None:
    "Do nothing."


app()
"""


def _run(*arguments: str | Path) -> None:
    subprocess.run(arguments, cwd=ROOT, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def _start_and_stop() -> None:
    with serve(Source()):
        pass


def build(rounds: int) -> Iterator[Measured]:
    """``matrix build``, which verifies, with everything on and quickly, against the server alone."""
    with tempfile.TemporaryDirectory() as place:
        for goal, options in ((20, ()), (4, ("--quick",))):
            site = Path(place) / f"site{goal}"
            taken = alternate(rounds, lambda o=options, s=site: _build(s, *o), _start_and_stop)  # type: ignore[misc]
            ours, theirs = taken.medians
            yield Measured(
                work=f"`{' '.join(('matrix build', *options))}`: verify and build the shipped catalogue",
                against="the server's start and stop",
                ours=ours,
                theirs=theirs,
                unit="s",
                times=rounds,
                goal=f"+ {goal} s",
                met=ours <= theirs + goal,
            )


def _build(site: Path, *options: str) -> None:
    done = subprocess.run(
        [MATRIX, "build", "--site", site, *options], cwd=ROOT, check=False, stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE, text=True,
    )  # fmt: skip
    quick = "--quick" in options  # leaves much out, so that its verdict is incomplete
    if done.returncode not in ((0, 1) if quick else (0,)):
        raise RuntimeError(f"matrix build ended with {done.returncode}: {done.stderr}")


def helps(rounds: int) -> Measured:
    """``matrix --help`` against an empty typer app's."""
    with tempfile.TemporaryDirectory() as place:
        empty = Path(place) / "empty.py"
        empty.write_text(EMPTY, encoding="utf-8")
        taken = alternate(rounds, lambda: _run(MATRIX, "--help"), lambda: _run(sys.executable, empty, "--help"))
    ours, theirs = taken.medians
    return Measured(
        work="`matrix --help`",
        against="an empty typer app's",
        ours=ours * 1000,
        theirs=theirs * 1000,
        unit="ms",
        times=rounds,
        goal="1.3",
        met=ours / theirs <= 1.3,
    )
