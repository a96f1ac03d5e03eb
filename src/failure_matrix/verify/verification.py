"""One verification, stage by stage, on a ground that is as new before every scenario."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.evidence.fingerprints import Fingerprints
from failure_matrix.evidence.records import GuardRecord, ObservationRecord, PopulationRecord, ScenarioRecord, Verdict
from failure_matrix.verify import scenario
from failure_matrix.verify.ground import Ground
from failure_matrix.verify.guards import GuardTrials
from failure_matrix.verify.observing import Observing
from failure_matrix.verify.population import Population
from failure_matrix.verify.stores import Stores
from failure_matrix.verify.sweep import Sweep
from failure_matrix.verify.witnesses import reached

Progress = Callable[[str], None]


class Verification:
    """What the stages share: the catalogue, the ground, the stores, and whom to tell how far it is."""

    def __init__(
        self,
        catalogue: Catalogue,
        ground: Ground,
        stores: Stores,
        fingerprints: Fingerprints,
        started: datetime,
        progress: Progress,
        *,
        orders: bool,
    ) -> None:
        self._catalogue = catalogue
        self._ground = ground
        self._stores = stores
        self._fingerprints = fingerprints
        self._started = started
        self._progress = progress
        self._orders = orders
        self._observing = Observing(catalogue)

    def scenarios(self, chosen: Sequence[str], sweep: Sweep | None) -> tuple[ScenarioRecord, ...]:
        """Play them, and sweep where they rest."""
        records = []
        for number, id in enumerate(chosen, 1):
            self._progress(f"scenario {number}/{len(chosen)} {id}")
            records.append(self._play(self._catalogue, id, sweep, self._observing))
        return tuple(records)

    def _play(
        self, catalogue: Catalogue, id: str, sweep: Sweep | None, observing: Observing | None = None
    ) -> ScenarioRecord:
        fingerprint = self._fingerprints.fingerprint(self._fingerprints.scenario_rests_on(id))
        watch = scenario.Watch(sweep=sweep, observing=observing, orders=self._orders)
        try:
            return scenario.run(
                catalogue, id, self._ground, self._stores, fingerprint=fingerprint, started=self._started, watch=watch
            )
        finally:
            self._ground.renew()
            self._stores.clear()

    def observations(self) -> tuple[ObservationRecord, ...]:
        """What the observations gave wherever the scenarios entered their states."""
        return tuple(self._observing.records())

    def population(self, records: Sequence[ScenarioRecord]) -> tuple[PopulationRecord, ...]:
        """Insert and classify every combination of ``values``."""
        self._progress("population")
        connection = self._ground.watcher("population")
        reachable = frozenset(id for id, found in reached(self._catalogue, records).items() if found)
        return tuple(Population(self._catalogue, self._ground.probe, connection).run(reachable))

    def guards(self, records: Sequence[ScenarioRecord], sweep: Sweep) -> tuple[GuardRecord, ...]:
        """Remove each guard alone and see who notices."""
        verified = [record.id for record in records if record.verdict is Verdict.VERIFIED]
        situations = [id for id in sweep.situations if id in verified]
        trials = GuardTrials(self._catalogue, self._ground, self._play, verified, situations)
        removals = trials.removals()
        found = []
        for number, removal in enumerate(removals, 1):
            self._progress(f"guard {number}/{len(removals)} {removal.action}")
            found.append(trials.try_one(removal))
        return tuple(found)
