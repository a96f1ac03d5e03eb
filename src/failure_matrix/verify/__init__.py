"""Prove a catalogue on a live PostgreSQL: ``verify`` runs it and returns what was seen."""

from __future__ import annotations

import difflib
import platform
import time
from collections.abc import Callable, Sequence
from datetime import UTC, datetime

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database.cluster import Server
from failure_matrix.evidence.fingerprints import Fingerprints
from failure_matrix.evidence.records import CatalogueRecord, Evidence, PostgreSQL, Run, ScenarioRecord
from failure_matrix.verify import prepare, scenario, version
from failure_matrix.verify.conclude import Conclusion
from failure_matrix.verify.ground import laid
from failure_matrix.verify.probing import ready_probe
from failure_matrix.verify.stores import Stores

Progress = Callable[[str], None]


def verify(
    catalogue: Catalogue, server: Server, *, only: Sequence[str] = (), progress: Progress = lambda _: None
) -> Evidence:
    """Run every scenario, or ``only`` these, and say what follows.

    Raises CatalogueInvalid where the server rejects SQL of the catalogue, CouldNot where nothing could be run.
    """
    chosen = _choose(catalogue, only)
    started, began = datetime.now(UTC), time.monotonic()
    fingerprints = Fingerprints(catalogue, server.major)
    template = prepare.make_template(catalogue, server)
    probe = ready_probe(catalogue, server.conninfo(template))
    records: list[ScenarioRecord] = []
    stores = Stores(server.directory / "stores", catalogue.stores)
    with laid(server, template, probe) as ground:
        for number, id in enumerate(chosen, 1):
            progress(f"{number}/{len(chosen)} {id}")
            fingerprint = fingerprints.fingerprint(fingerprints.scenario_rests_on(id))
            records.append(scenario.run(catalogue, id, ground, stores, fingerprint=fingerprint, started=started))
            ground.renew()
            stores.clear()
    server.drop_database(template)
    run = Run(
        started=started.isoformat(timespec="seconds").replace("+00:00", "Z"),
        seconds=round(time.monotonic() - began, 1),
        postgresql=server.version,
        server=server.kind,
        host=platform.platform(terse=True),
        commit=version.commit(catalogue.directory),
        version=version.ours(),
    )
    return _conclude(catalogue, server.major, records, fingerprints, run)


def _choose(catalogue: Catalogue, only: Sequence[str]) -> tuple[str, ...]:
    """The scenarios to run, in the catalogue's order. Raises CouldNot for one that is not there."""
    for id in only:
        if id not in catalogue.scenarios:
            near = difflib.get_close_matches(id, catalogue.scenarios, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"it has {', '.join(catalogue.scenarios) or 'none'}"
            raise CouldNot(f"verify '{id}': the catalogue has no such scenario", hint)
    return tuple(id for id in catalogue.scenarios if not only or id in only)


def _conclude(
    catalogue: Catalogue, major: int, records: list[ScenarioRecord], fingerprints: Fingerprints, run: Run
) -> Evidence:
    """The evidence of these scenarios."""
    conclusion = Conclusion(catalogue, records, fingerprints)
    names = {name for state in conclusion.states for name in state.rests_on}
    names |= {name for id in catalogue.scenarios for name in fingerprints.scenario_rests_on(id)}
    return Evidence(
        catalogue=CatalogueRecord(title=catalogue.settings.title, fingerprint=fingerprints.catalogue()),
        postgresql=PostgreSQL(major=major),
        verdict=conclusion.verdict(),
        scenarios=tuple(records),
        states=conclusion.states,
        moves=conclusion.moves,
        invariants=conclusion.invariants,
        coverage=conclusion.coverage(),
        digests=fingerprints.digests(names),
        run=run,
    )
