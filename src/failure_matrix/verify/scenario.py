"""A scenario from its beginning to its verdict: given, the steps of ``after``, its own steps, its other orders."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.evidence.records import Failure, Orders, ScenarioRecord, Verdict, Witness, of_failures
from failure_matrix.verify import orders
from failure_matrix.verify.entry import Entry
from failure_matrix.verify.ground import Ground
from failure_matrix.verify.naming import Names
from failure_matrix.verify.observing import Observing
from failure_matrix.verify.play import Play, Stop
from failure_matrix.verify.script import Script, begin, script
from failure_matrix.verify.stores import Stores
from failure_matrix.verify.sweep import Sweep
from failure_matrix.verify.transcript import Transcript
from failure_matrix.verify.world import World


@dataclass(frozen=True, kw_only=True)
class Watch:
    """What is done beside playing: between the steps, and after them."""

    sweep: Sweep | None = None
    observing: Observing | None = None
    orders: bool = True  # play the other orders of a scenario that asks for all


def run(
    catalogue: Catalogue,
    id: str,
    ground: Ground,
    stores: Stores,
    *,
    fingerprint: str,
    started: datetime,
    watch: Watch,
) -> ScenarioRecord:
    """Play a scenario as listed, on ground that is as new, sweep where it rests, then play its other orders."""
    unfolded = script(catalogue, id)
    world = World(ground, stores, unfolded.setups)
    names = Names(started)
    play = Play(catalogue, world)
    try:
        beginning = begin(catalogue, unfolded, world, play)
        if not beginning:
            _play_own(unfolded, play, _Rests(watch, unfolded.id, ground, world, play))
    finally:
        for pid, session in world.backends:
            names.backend(pid, session)
        world.close()
    transcript = Transcript(catalogue, play, names)
    record = _record(catalogue, unfolded, transcript, beginning, fingerprint)
    return in_all_orders(catalogue, record, ground, stores, started) if watch.orders else record


def in_all_orders(
    catalogue: Catalogue, listed: ScenarioRecord, ground: Ground, stores: Stores, started: datetime
) -> ScenarioRecord:
    """Play the other orders too, where the scenario asks for them; where the listed one is broken they are left out."""
    unfolded = script(catalogue, listed.id)
    if unfolded.scenario.orders == "listed":
        return listed
    table = orders.Table(catalogue, unfolded, ground, stores, started)
    if listed.verdict != Verdict.VERIFIED:
        return listed.model_copy(update={"orders": orders.play_orders(table, 0)})
    seen = orders.play_orders(table, catalogue.settings.most_orders)
    broke = any(step.breaks for step in listed.steps)
    failures = orders.failures(catalogue, unfolded, seen, listed_broke=broke)
    verdict, because = Verdict.VERIFIED, None
    if failures:
        verdict, because = of_failures(failures), failures[0].message
    elif seen.skipped:
        verdict, because = Verdict.INCOMPLETE, f"{seen.ran} of {seen.exist - seen.impossible} orders"
    changed = {"orders": seen, "failures": (*listed.failures, *failures), "verdict": verdict, "because": because}
    return listed.model_copy(update=changed)


def in_one_order(catalogue: Catalogue, listed: ScenarioRecord) -> ScenarioRecord:
    """A scenario of which the other orders are left out: incomplete where there are some, and it asks for them."""
    unfolded = script(catalogue, listed.id)
    exist = orders.exist(unfolded)
    if unfolded.scenario.orders == "listed" or exist == 1:
        return listed
    left = listed.model_copy(update={"orders": Orders(exist=exist, ran=1, skipped=exist - 1)})
    if listed.verdict != Verdict.VERIFIED:
        return left
    return left.model_copy(update={"verdict": Verdict.INCOMPLETE, "because": f"1 of {exist:,} orders"})


def _play_own(unfolded: Script, play: Play, rests: _Rests) -> None:
    rests.begin()
    for numbered in unfolded.own:
        try:
            entry = play.play(numbered)
        except Stop:
            rests.observe(play.entries[-1])
            return
        rests.observe(entry)
        rests.sweep(numbered.number)


class _Rests:
    """What happens between two steps of one scenario."""

    def __init__(self, watch: Watch, id: str, ground: Ground, world: World, play: Play) -> None:
        self._watch = watch
        self._id = id
        self._ground = ground
        self._world = world
        self._play = play

    def begin(self) -> None:
        """Run the observations of the states that are there, and sweep."""
        if self._watch.observing is not None:
            self._watch.observing.begin(self._world, self._play.standing, Witness(scenario=self._id, step=0))
        self.sweep(0)

    def observe(self, entry: Entry) -> None:
        """Run the observations of the states that a step entered, unless it failed."""
        if self._watch.observing is not None and not entry.failures:
            witness = Witness(scenario=self._id, step=entry.numbered.number)
            self._watch.observing.visit(self._world, entry, witness)

    def sweep(self, number: int) -> None:
        """Sweep, where no session holds a transaction open."""
        situation = self._play.situation
        ready = self._world.at_rest and not self._world.admin.lost
        if self._watch.sweep is not None and situation is not None and ready:
            witness = Witness(scenario=self._id, step=number)
            self._watch.sweep.visit(self._ground, self._world, situation, self._play.standing, witness)


def _record(
    catalogue: Catalogue, unfolded: Script, transcript: Transcript, beginning: list[Failure], fingerprint: str
) -> ScenarioRecord:
    steps = transcript.steps()
    failures = transcript.told([*beginning, *transcript.unsettled()])
    every = [*(failure for step in steps for failure in step.failures), *failures]
    played = {step.number for step in steps}
    place = catalogue.place("scenarios", unfolded.id)
    return ScenarioRecord(
        id=unfolded.id,
        title=unfolded.scenario.title,
        verdict=of_failures(every),
        because=every[0].message if every else None,
        orders=Orders(),
        given=transcript.given(),
        steps=steps,
        not_run=tuple(numbered.number for numbered in unfolded.own if numbered.number not in played),
        failures=failures,
        fingerprint=fingerprint,
        place=f"{place.path}:{place.line}",
    )
