"""The runner against isolationtester, part by part, and with what helps one of the two left away."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from unittest.mock import patch

from benchmarks.isolation import IsolationTester, Order, Runner, as_spec, compare, possible, printed
from benchmarks.table import Measured, alternate
from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database.cluster import Server

NEVER, WAIT = "never wait", "wait"
EXPORTED, STAY = "isolationtester, as exported", "isolationtester, its tables made beforehand"
EVERYTHING, ALONE = 0.40, 1.25  # goals: for all, and for those that never wait


class Race:
    """Both on one server, on the orders that are possible. Raises Disagreement where they do not see the same."""

    def __init__(self, catalogue: Catalogue, server: Server, prefix: Path, rounds: int) -> None:
        self._catalogue = catalogue
        self._server = server
        self._prefix = prefix
        self._rounds = rounds
        self._orders = {id: possible(catalogue, server, id) for id in catalogue.scenarios}
        waits = {id: any(order.waited for order in orders) for id, orders in self._orders.items()}
        self._parts = {part: [id for id in waits if waits[id] == (part == WAIT)] for part in (NEVER, WAIT)}
        with self._tester(tables_stay=False) as tester:
            for id, orders in self._orders.items():
                compare(id, orders, list(printed(tester.run(as_spec(catalogue, id, orders, tables_stay=False)))))

    def _tester(self, *, tables_stay: bool) -> IsolationTester:
        return IsolationTester(self._catalogue, self._server, self._prefix, tables_stay=tables_stay)

    def results(self) -> Iterator[Measured]:
        """Every comparison, as it is made."""
        jobs = os.cpu_count() or 1
        together = self._timed(jobs=jobs)
        yield self._measured(
            f"all, in {jobs} databases at once, as `verify` does it", EXPORTED, *_sum(together), EVERYTHING
        )
        plain = self._timed()
        for part, (ours, theirs) in plain.items():
            yield self._measured(self._named(part), EXPORTED, ours, theirs, ALONE if part == NEVER else None)
        yield self._measured("all, in one database", EXPORTED, *_sum(plain))
        with patch("failure_matrix.verify.order.only_commits_tell", return_value=False):
            everywhere = self._timed()
        yield self._measured(
            "the same, looking also where nothing can have been committed", EXPORTED, *_sum(everywhere)
        )
        for part, (ours, theirs) in self._timed(tables_stay=True).items():
            yield self._measured(f"those that {part}", STAY, ours, theirs)

    def _measured(self, work: str, against: str, ours: float, theirs: float, goal: float | None = None) -> Measured:
        met = None if goal is None else ours / theirs <= goal
        return Measured(
            work=work,
            against=against,
            ours=ours,
            theirs=theirs,
            unit="s",
            times=self._rounds,
            goal=None if goal is None else f"{goal:.2f}",
            met=met,
        )

    def _named(self, part: str) -> str:
        found: list[Order] = [order for id in self._parts[part] for order in self._orders[id]]
        return f"{len(found)} orders, {sum(len(order.steps) for order in found):,} steps, of scenarios that {part}"

    def _timed(self, *, tables_stay: bool = False, jobs: int = 1) -> dict[str, tuple[float, float]]:
        """Medians of ours and theirs for each part, in seconds."""
        found = {}
        runner = Runner(self._catalogue, self._server, jobs=jobs)
        with self._tester(tables_stay=tables_stay) as tester, runner:
            for part, ids in self._parts.items():
                texts = [as_spec(self._catalogue, id, self._orders[id], tables_stay=tables_stay) for id in ids]
                ours, theirs = partial(runner.run, ids), partial(_run_all, tester, texts)
                found[part] = alternate(self._rounds, ours, theirs).medians
        return found


def _run_all(tester: IsolationTester, texts: Sequence[str]) -> None:
    for text in texts:
        tester.run(text)


def _sum(parts: dict[str, tuple[float, float]]) -> tuple[float, float]:
    return sum(ours for ours, _ in parts.values()), sum(theirs for _, theirs in parts.values())
