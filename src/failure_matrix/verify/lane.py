"""A ground with stores of its own, which one thread plays on; and work parted among several."""

from __future__ import annotations

import queue
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from datetime import datetime
from threading import Event, Lock
from typing import TypeVar

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database.classify import Probe
from failure_matrix.database.cluster import Server
from failure_matrix.evidence.fingerprints import Fingerprints
from failure_matrix.evidence.records import ScenarioRecord
from failure_matrix.verify import scenario
from failure_matrix.verify.ground import Ground, laid
from failure_matrix.verify.observing import Observing
from failure_matrix.verify.population import Population
from failure_matrix.verify.stores import Stores
from failure_matrix.verify.sweep import Sweep

Worker = TypeVar("Worker")
Work = TypeVar("Work")
Found = TypeVar("Found")


class Lane:
    """Plays scenarios, each on ground that is as new; one thread at a time, others wait."""

    def __init__(self, ground: Ground, stores: Stores, fingerprints: Fingerprints, started: datetime) -> None:
        self.ground = ground
        self._stores = stores
        self._fingerprints = fingerprints
        self._started = started
        self._lock = Lock()

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
        with self._taken():
            return scenario.run(
                catalogue, id, self.ground, self._stores, fingerprint=fingerprint, started=self._started, watch=watch
            )

    def orders(self, catalogue: Catalogue, listed: ScenarioRecord) -> ScenarioRecord:
        """Play the other orders of a scenario that was played as listed."""
        with self._taken():
            return scenario.in_all_orders(catalogue, listed, self.ground, self._stores, self._started)

    def tally(self, population: Population, stopped: Callable[[], bool]) -> None:
        """Insert and classify what the population probe asks for."""
        with self._taken():
            population.tally(self.ground.watcher("population"), stopped)

    @contextmanager
    def _taken(self) -> Iterator[None]:
        """Have it for oneself; as new afterwards."""
        with self._lock:
            try:
                yield
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


@contextmanager
def beside(work: Callable[[Callable[[], bool]], None]) -> Iterator[None]:
    """Do ``work`` in a thread of its own during the block, and wait for it at the end.

    What it is called with tells it whether to stop: the block has raised an exception, ^C too.
    """
    raised = Event()
    with ThreadPoolExecutor(1) as pool:
        done = pool.submit(work, raised.is_set)
        try:
            yield
            done.result()
        except BaseException:
            raised.set()
            raise


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
