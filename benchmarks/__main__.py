"""Measure, and print a table: ``python -m benchmarks [PART…]``, all parts where none is named."""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

from benchmarks import cells, pages, waits, whole
from benchmarks.race import Race
from benchmarks.table import Measured, table
from failure_matrix.catalogue.load import load
from failure_matrix.database import hosting
from failure_matrix.database.cluster import Source, serve

CATALOGUE = Path(__file__).with_name("catalogue")
PARTS = ("isolation", "waits", "cells", "build", "pages", "help")


def measure(parts: frozenset[str], rounds: int) -> Iterator[Measured]:
    """Every comparison of these parts, as it is made."""
    if parts & {"isolation", "waits", "cells", "pages"}:
        with serve(Source()) as server:
            if "isolation" in parts:
                prefix = hosting.installation(None).prefix
                yield from Race(load(CATALOGUE), server, prefix, rounds).results()
            if "waits" in parts:
                yield waits.measure(server, hosting.installation(None).prefix, rounds)
            if "cells" in parts:
                yield cells.measure(server)
            if "pages" in parts:
                yield from pages.measure(server, max(1, rounds // 2))
    if "build" in parts:
        yield from whole.build(max(1, rounds // 2))
    if "help" in parts:
        yield whole.helps(4 * rounds)


def main() -> int:
    """Print the table; 1 where a goal is not met."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description="How fast it is, as ratios in one run.")
    parser.add_argument("parts", nargs="*", metavar="PART", choices=[*PARTS, []], help=f"of {', '.join(PARTS)}; all")
    parser.add_argument("--rounds", type=int, default=5, metavar="N", help="of each comparison (5)")
    asked = parser.parse_args()
    rows = []
    for row in measure(frozenset(asked.parts or PARTS), asked.rounds):
        sys.stderr.write(f"{row.work}: {row.ratio:.2f}\n")
        rows.append(row)
    day = datetime.now(UTC).date().isoformat()
    cores = os.cpu_count() or 1
    sys.stdout.write(f"{table(rows)}\n\n{day}, {cores} cores, {platform.system()} {platform.machine()}, ")
    sys.stdout.write(f"Python {platform.python_version()}; each is the median of so many times.\n")
    return int(any(row.met is False for row in rows))


if __name__ == "__main__":
    sys.exit(main())
