"""One verification, stage by stage."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.evidence.records import (
    GuardRecord,
    ObservationRecord,
    PopulationRecord,
    ScenarioRecord,
    Verdict,
)
from failure_matrix.verify.guards import GuardTrials, Removal
from failure_matrix.verify.lane import Lane, parted
from failure_matrix.verify.observing import Observing
from failure_matrix.verify.population import Population
from failure_matrix.verify.sweep import Sweep
from failure_matrix.verify.witnesses import reached

Progress = Callable[[str], None]


class Verification:
    """What the stages share: the catalogue, the lanes to play on, and whom to tell how far it is."""

    def __init__(self, catalogue: Catalogue, lanes: Sequence[Lane], progress: Progress, *, orders: bool) -> None:
        self._catalogue = catalogue
        self._lanes = lanes
        self._progress = progress
        self._orders = orders
        self._observing = Observing(catalogue)

    def scenarios(self, chosen: Sequence[str], sweep: Sweep | None) -> tuple[ScenarioRecord, ...]:
        """Play them in order on one lane, for the sweep's sake: which situation comes first is evidence.

        Their other orders, which sweep nothing, are played on all lanes at once.
        """
        records = []
        for number, id in enumerate(chosen, 1):
            self._progress(f"scenario {number}/{len(chosen)} {id}")
            records.append(self._lanes[0].play(self._catalogue, id, sweep, self._observing, orders=False))
        return self._in_all_orders(records) if self._orders else tuple(records)

    def _in_all_orders(self, records: Sequence[ScenarioRecord]) -> tuple[ScenarioRecord, ...]:
        def play(lane: Lane, record: ScenarioRecord) -> ScenarioRecord:
            if self._catalogue.scenarios[record.id].orders == "listed":
                return record
            self._progress(f"orders of {record.id}")
            return lane.orders(self._catalogue, record)

        return tuple(parted(self._lanes, records, play))

    def observations(self) -> tuple[ObservationRecord, ...]:
        """What the observations gave wherever the scenarios entered their states."""
        return tuple(self._observing.records())

    def population(self, records: Sequence[ScenarioRecord]) -> tuple[PopulationRecord, ...]:
        """Insert and classify every combination of ``values``."""
        self._progress("population")
        ground = self._lanes[0].ground
        reachable = frozenset(id for id, found in reached(self._catalogue, records).items() if found)
        found = tuple(Population(self._catalogue, ground.probe, ground.watcher("population")).run(reachable))
        ground.renew()  # the sequences
        return found

    def guards(self, records: Sequence[ScenarioRecord], sweep: Sweep) -> tuple[GuardRecord, ...]:
        """Remove each guard alone and see who notices, on all lanes at once."""
        verified = [record.id for record in records if record.verdict is Verdict.VERIFIED]
        trials = [GuardTrials(self._catalogue, lane.ground, lane.play, verified, sweep) for lane in self._lanes]
        removals = trials[0].removals()

        def remove(trial: GuardTrials, removal: Removal) -> GuardRecord:
            self._progress(f"guard {removals.index(removal) + 1}/{len(removals)} {removal.action}")
            return trial.try_one(removal)

        return tuple(parted(trials, removals, remove))
