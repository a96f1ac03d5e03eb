"""A ground with stores of its own, which one thread plays on; and work parted among several."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import datetime
from typing import TypeVar

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database.classify import Probe
from failure_matrix.database.cluster import Server
from failure_matrix.evidence.fingerprints import Fingerprints
from failure_matrix.evidence.records import ScenarioRecord
from failure_matrix.verify import scenario
from failure_matrix.verify.ground import Ground, laid
from failure_matrix.verify.observing import Observing
from failure_matrix.verify.stores import Stores
from failure_matrix.verify.sweep import Sweep

Worker = TypeVar("Worker")
Work = TypeVar("Work")
Found = TypeVar("Found")


class Lane:
    """Plays scenarios one after another, each on ground that is as new."""

    def __init__(self, ground: Ground, stores: Stores, fingerprints: Fingerprints, started: datetime) -> None:
        self.ground = ground
        self._stores = stores
        self._fingerprints = fingerprints
        self._started = started

    def play(
        self,
        catalogue: Catalogue,
        id: str,
        sweep: Sweep | None = None,
        observing: Observing | None = None,
        *,
        orders: bool = True,
    ) -> ScenarioRecord:
        """Play one scenario of a catalogue that has the ground's schema, with ``orders`` in all that it asks for."""
        fingerprint = self._fingerprints.fingerprint(self._fingerprints.scenario_rests_on(id))
        watch = scenario.Watch(sweep=sweep, observing=observing, orders=orders)
        try:
            return scenario.run(
                catalogue, id, self.ground, self._stores, fingerprint=fingerprint, started=self._started, watch=watch
            )
        finally:
            self.ground.renew()
            self._stores.clear()

    def orders(self, catalogue: Catalogue, listed: ScenarioRecord) -> ScenarioRecord:
        """Play the other orders of a scenario that was played as listed."""
        try:
            return scenario.in_all_orders(catalogue, listed, self.ground, self._stores, self._started)
        finally:
            self.ground.renew()
            self._stores.clear()


@contextmanager
def lanes(
    catalogue: Catalogue,
    server: Server,
    template: str,
    probe: Probe,
    fingerprints: Fingerprints,
    started: datetime,
    *,
    count: int,
) -> Iterator[list[Lane]]:
    """So many lanes for the time of the block."""
    with ExitStack() as stack:
        yield [
            Lane(
                stack.enter_context(laid(server, template, probe)),
                Stores(server.directory / f"stores-{number}", catalogue.stores),
                fingerprints,
                started,
            )
            for number in range(1, count + 1)
        ]


def parted(workers: Sequence[Worker], works: Sequence[Work], do: Callable[[Worker, Work], Found]) -> list[Found]:
    """Do all works, each by whichever worker is free; what was found in the order of the works.

    The first exception, ^C too, ends the others after the work that they are at, and is raised.
    """
    todo: queue.SimpleQueue[int] = queue.SimpleQueue()
    for number in range(len(works)):
        todo.put(number)
    found: dict[int, Found] = {}

    def go(worker: Worker) -> None:
        while not todo.empty():
            try:
                number = todo.get_nowait()
            except queue.Empty:
                return
            found[number] = do(worker, works[number])

    with ThreadPoolExecutor(len(workers)) as pool:
        try:
            for future in [pool.submit(go, worker) for worker in workers]:
                future.result()
        finally:
            while not todo.empty():
                todo.get_nowait()
    return [found[number] for number in range(len(works))]
