"""One verification, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.evidence.records import GuardRecord, ObservationRecord, ScenarioRecord, Verdict
from failure_matrix.verify.guards import GuardTrials, Removal
from failure_matrix.verify.lane import Lane, beside, parted
from failure_matrix.verify.observing import Observing, records
from failure_matrix.verify.population import Population
from failure_matrix.verify.scenario import in_one_order
from failure_matrix.verify.sweep import Sweep

Progress = Callable[[str], None]


class Verification:
    """What the stages share: the catalogue, the lanes to play on, and whom to tell how far it is."""

    def __init__(self, catalogue: Catalogue, lanes: Sequence[Lane], progress: Progress) -> None:
        self._catalogue = catalogue
        self._lanes = lanes
        self._progress = progress
        self._observing: dict[str, Observing] = {}  # by scenario

    def listed(self, chosen: Sequence[str], sweep: Sweep | None) -> tuple[ScenarioRecord, ...]:
        """Play scenarios as listed; on one lane if they are swept, since which situation comes first is evidence."""

        def play(lane: Lane, id: str) -> ScenarioRecord:
            self._progress(f"scenario {chosen.index(id) + 1}/{len(chosen)} {id}")
            self._observing[id] = Observing(self._catalogue, elsewhere=sweep is not None)
            return lane.play(self._catalogue, id, sweep, self._observing[id], orders=False)

        return tuple(parted(self._lanes if sweep is None else self._lanes[:1], chosen, play))

    def in_all_orders(self, records: Sequence[ScenarioRecord]) -> tuple[ScenarioRecord, ...]:
        """Play the other orders, which sweep nothing, on all lanes at once."""

        def play(lane: Lane, record: ScenarioRecord) -> ScenarioRecord:
            if self._catalogue.scenarios[record.id].orders == "listed":
                return record
            self._progress(f"orders of {record.id}")
            return lane.orders(self._catalogue, record)

        return tuple(parted(self._lanes, records, play))

    def left_out(self, records: Sequence[ScenarioRecord]) -> tuple[ScenarioRecord, ...]:
        """What is known of scenarios whose other orders are not played."""
        return tuple(in_one_order(self._catalogue, record) for record in records)

    def observations(self) -> tuple[ObservationRecord, ...]:
        """What the observations gave wherever the scenarios entered their states."""
        return tuple(
            records(self._catalogue, [self._observing[id] for id in self._catalogue.scenarios if id in self._observing])
        )

    @contextmanager
    def probing(self) -> Iterator[Population]:
        """Insert and classify every combination of ``values``, during the block where a lane is free for it."""
        population = Population(self._catalogue, self._lanes[-1].ground.probe)
        with beside(partial(self._lanes[-1].tally, population)):
            yield population
            self._progress("population")

    def guards(self, records: Sequence[ScenarioRecord], sweep: Sweep) -> tuple[GuardRecord, ...]:
        """Remove each guard alone and see who notices, on all lanes at once."""
        verified = [record.id for record in records if record.verdict is Verdict.VERIFIED]
        trials = [GuardTrials(self._catalogue, lane.ground, lane.play, verified, sweep) for lane in self._lanes]
        removals = trials[0].removals()

        def remove(trial: GuardTrials, removal: Removal) -> GuardRecord:
            self._progress(f"guard {removals.index(removal) + 1}/{len(removals)} {removal.action}")
            return trial.try_one(removal)

        return tuple(parted(trials, removals, remove))
