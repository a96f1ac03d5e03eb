"""``make bench``: how long our work takes, as ratios against a peer or a floor measured in the same run."""

from __future__ import annotations

import os
import platform
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from benchmarks import isolation
from failure_matrix.catalogue.load import load
from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database import hosting
from failure_matrix.database.cluster import Server, Source, serve
from failure_matrix.database.connection import Connection
from failure_matrix.database.waiting import Observer, settle

CATALOGUE = Path(__file__).with_name("catalogue")
ROUNDS = 3
LOOKS = 50
BIN = Path(sys.executable).parent


@dataclass(frozen=True, kw_only=True)
class Row:
    """One measurement: ours and what it is held against, in seconds, or a single figure in milliseconds."""

    work: str
    against: str
    ours: float
    floor: float | None
    goal: str

    @property
    def cells(self) -> tuple[str, ...]:
        if self.floor is None:
            return self.work, self.against, f"{self.ours * 1000:.2f} ms", "", "", self.goal
        ratio = f"{self.ours / self.floor:.2f}"
        return self.work, self.against, f"{self.ours:.2f} s", f"{self.floor:.2f} s", ratio, self.goal


def main() -> None:
    """Measure every row and print the table."""
    sys.stdout.write(
        f"{os.cpu_count()} cores, Python {platform.python_version()}, medians of {ROUNDS} rounds, A and B in turn\n\n"
    )
    columns = ("work", "against", "ours", "theirs", "ratio", "goal")
    rows = [columns, tuple("---" for _ in columns), *(row.cells for row in _rows())]
    sys.stdout.writelines("| " + " | ".join(row) + " |\n" for row in rows)


def _rows() -> Iterator[Row]:
    catalogue = load(CATALOGUE)
    with serve(Source()) as server:
        yield from _against_isolationtester(catalogue, server)
        yield _waits_seen(server)
    yield from _shipped()
    yield _help()


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _in_turn(ours: Callable[[], object], theirs: Callable[[], object]) -> tuple[float, float]:
    """The median of each, measured A B A B."""
    pairs = [(_seconds(ours), _seconds(theirs)) for _ in range(ROUNDS)]
    return statistics.median(a for a, _ in pairs), statistics.median(b for _, b in pairs)


def _against_isolationtester(catalogue: Catalogue, server: Server) -> Iterator[Row]:
    """All orders that are possible, a classification after every step against none; who waited must agree."""
    tester = isolation.Tester(catalogue, server, hosting.installation(None).prefix, tables_stay=False)
    orders = {id: isolation.possible(catalogue, server, id) for id in catalogue.scenarios}
    specs = {id: isolation.as_spec(catalogue, id, found, tables_stay=False) for id, found in orders.items()}
    for id, text in specs.items():
        isolation.compare(id, orders[id], list(isolation.printed(tester.run(text))))
    wait = [id for id, found in orders.items() if any(order.waited for order in found)]
    jobs = min(os.cpu_count() or 1, 4)  # what verify uses by itself
    total = [0.0, 0.0]
    for name, ids, goal in (
        ("scenarios that wait", wait, ""),
        ("scenarios that never wait", [id for id in orders if id not in wait], "1.25"),
    ):
        ours, theirs = _in_turn(
            lambda ids=ids: isolation.run_ours(catalogue, server, ids, jobs=jobs),  # type: ignore[misc]
            lambda ids=ids: [tester.run(specs[id]) for id in ids],  # type: ignore[misc]
        )
        total = [total[0] + ours, total[1] + theirs]
        count = sum(len(orders[id]) for id in ids)
        yield Row(
            work=f"{name}, {count} orders",
            against=f"isolationtester, {jobs} jobs of ours",
            ours=ours,
            floor=theirs,
            goal=goal,
        )
    yield Row(work="in total", against="isolationtester", ours=total[0], floor=total[1], goal="0.40")
    tester.close()


def _waits_seen(server: Server) -> Row:
    """From sending a statement that waits to seeing that it does."""
    database = server.create_database()
    a, b, observer = (Connection(server.conninfo(database), name) for name in ("A", "B", "observer"))
    a.query("BEGIN; SELECT pg_advisory_xact_lock(1)")
    taken = []
    for _ in range(LOOKS):
        began = time.perf_counter()
        b.send("SELECT pg_advisory_lock(1)")
        seen = settle(Observer(observer), {"A": a, "B": b}, lambda *_: None, limit=10)
        taken.append(time.perf_counter() - began)
        if seen.waiting != {"B": ("A",)}:
            raise isolation.Disagreement(f"B waits for A, and we saw {seen.waiting}")
        b.cancel()
        settle(Observer(observer), {"A": a, "B": b}, lambda *_: None, limit=10)
    for connection in (a, b, observer):
        connection.close()
    server.drop_database(database)
    return Row(work="seeing that a step waits", against="", ours=statistics.median(taken), floor=None, goal="1 ms")


def _shipped() -> Iterator[Row]:
    """``verify`` and ``build`` of the shipped catalogue, against starting and stopping the server alone."""

    def alone() -> None:
        with serve(Source()):
            pass

    for name, options, goal in (
        ("build, everything on", (), "floor + 20 s"),
        ("build --quick", ("--quick",), "floor + 4 s"),
    ):
        with tempfile.TemporaryDirectory() as place:
            site = str(Path(place) / "site")
            ours, floor = _in_turn(lambda options=options, site=site: _matrix("build", "--site", site, *options), alone)  # type: ignore[misc]
        yield Row(work=f"matrix {name}", against="server start and stop", ours=ours, floor=floor, goal=goal)


def _matrix(*arguments: str) -> None:
    done = subprocess.run([BIN / "matrix", *arguments], capture_output=True, text=True, check=False)
    if done.returncode not in (0, 1):  # 1: --quick is incomplete, and says so
        raise isolation.Disagreement(
            f"matrix {' '.join(arguments)} ended with {done.returncode}: {done.stderr.strip()}"
        )


def _help() -> Row:
    empty = "import typer\napp = typer.Typer()\n@app.command()\ndef main() -> None: ...\napp(['--help'])"

    def theirs() -> None:
        subprocess.run([sys.executable, "-c", empty], capture_output=True, check=True)

    ours, floor = _in_turn(lambda: _matrix("--help"), theirs)
    return Row(work="matrix --help", against="an empty typer app", ours=ours, floor=floor, goal="1.3")


if __name__ == "__main__":
    main()
