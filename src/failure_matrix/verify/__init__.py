"""Prove a catalogue on a live PostgreSQL: ``verify`` runs it and returns what was seen."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from contextlib import nullcontext

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database.cluster import Server
from failure_matrix.evidence.fingerprints import Fingerprints
from failure_matrix.evidence.records import Evidence
from failure_matrix.verify import prepare
from failure_matrix.verify.conclude import Seen, conclude
from failure_matrix.verify.lane import lanes
from failure_matrix.verify.probing import ready_probe
from failure_matrix.verify.provenance import Clock
from failure_matrix.verify.sweep import Sweep
from failure_matrix.verify.verification import Progress, Verification
from failure_matrix.verify.witnesses import reachable


def verify(
    catalogue: Catalogue,
    server: Server,
    *,
    only: Sequence[str] = (),
    quick: bool = False,
    jobs: int = 1,
    progress: Progress = lambda _: None,
) -> Evidence:
    """Run every scenario, or ``only`` these, sweep, cut guards, probe the population, and say what follows.

    ``quick`` leaves sweep, guards and orders out, and what rests on them is incomplete. ``jobs`` databases are used
    at once where work is independent; the evidence is the same. Raises CatalogueInvalid where the
    server rejects SQL of the catalogue, CouldNot where nothing could be run.
    """
    chosen = _choose(catalogue, only)
    clock = Clock()
    fingerprints = Fingerprints(catalogue, server.major)
    template = prepare.make_template(catalogue, server)
    probe = ready_probe(catalogue, server.conninfo(template))
    whole = not only and not quick
    count = min(jobs, len(chosen)) if only else min(jobs, 2) if quick else jobs
    with lanes(catalogue, server, template, probe, fingerprints, clock.started, count=count) as laid:
        verification = Verification(catalogue, laid, progress)
        sweep = Sweep(catalogue) if whole else None
        with nullcontext() if only else verification.probing() as population:
            listed = verification.listed(chosen, sweep)
        records = verification.left_out(listed) if quick else verification.in_all_orders(listed)
        seen = Seen(
            scenarios=records,
            observations=verification.observations(),
            sweep=sweep,
            population=() if population is None else tuple(population.records(reachable(catalogue, records))),
            guards=() if sweep is None else verification.guards(records, sweep),
            quick=quick,
        )
    server.drop_database(template)
    run = clock.run(server, catalogue.directory)
    return conclude(catalogue, server.major, seen, fingerprints, run, today=clock.started.date())


def _choose(catalogue: Catalogue, only: Sequence[str]) -> tuple[str, ...]:
    """The scenarios to run, in the catalogue's order. Raises CouldNot for one that is not there."""
    for id in only:
        if id not in catalogue.scenarios:
            near = difflib.get_close_matches(id, catalogue.scenarios, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"it has {', '.join(catalogue.scenarios) or 'none'}"
            raise CouldNot(f"verify '{id}': the catalogue has no such scenario", hint)
    return tuple(id for id in catalogue.scenarios if not only or id in only)
