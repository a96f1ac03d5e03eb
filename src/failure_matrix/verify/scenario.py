"""A scenario from its beginning to its verdict: given, the steps of ``after``, its own steps, teardown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from failure_matrix.catalogue.model import Catalogue, Given, Scenario, SessionSetup
from failure_matrix.database.connection import ServerError
from failure_matrix.evidence.records import Failure, Orders, ScenarioRecord, Verdict
from failure_matrix.verify.ground import Ground
from failure_matrix.verify.naming import Names
from failure_matrix.verify.play import Numbered, Play, Stop
from failure_matrix.verify.prepare import give
from failure_matrix.verify.stores import Stores
from failure_matrix.verify.transcript import Transcript
from failure_matrix.verify.world import World


@dataclass(frozen=True, kw_only=True)
class Script:
    """A scenario with all that it inherits by ``after``."""

    id: str
    scenario: Scenario
    given: Given
    before: tuple[Numbered, ...]  # the steps of the scenarios it begins after
    own: tuple[Numbered, ...]
    setups: dict[str, SessionSetup]


def script(catalogue: Catalogue, id: str) -> Script:
    """Unfold ``after``: first things first."""
    chain = [id]
    while (earlier := catalogue.scenarios[chain[0]].after) is not None:
        chain.insert(0, earlier)
    steps = [
        Numbered(number=number if each == id else 0, path=("scenarios", each, "steps", number - 1), step=step)
        for each in chain
        for number, step in enumerate(catalogue.scenarios[each].steps, 1)
    ]
    own = len(catalogue.scenarios[id].steps)
    setups = dict(catalogue.sessions)
    for each in chain:
        setups |= catalogue.scenarios[each].sessions
    return Script(
        id=id,
        scenario=catalogue.scenarios[id],
        given=catalogue.scenarios[chain[0]].given,
        before=tuple(steps[: len(steps) - own]),
        own=tuple(steps[len(steps) - own :]),
        setups=setups,
    )


def run(
    catalogue: Catalogue, id: str, ground: Ground, stores: Stores, *, fingerprint: str, started: datetime
) -> ScenarioRecord:
    """Play a scenario as listed, on ground that is as new."""
    unfolded = script(catalogue, id)
    world = World(ground, stores, unfolded.setups)
    names = Names(started)
    play = Play(catalogue, world)
    try:
        beginning = _begin(catalogue, unfolded, world, play)
        if not beginning:
            _play_own(unfolded.own, play)
    finally:
        for session in world.sessions.values():
            names.backend(session.pid, session.name)
        world.close()
    transcript = Transcript(catalogue, play, names)
    return _record(catalogue, unfolded, transcript, beginning, fingerprint)


def _begin(catalogue: Catalogue, unfolded: Script, world: World, play: Play) -> list[Failure]:
    """Given, and the steps of ``after``; what went wrong before the scenario's own first step."""
    place = catalogue.place("scenarios", unfolded.id, "given")
    try:
        give(world.admin, world.stores, unfolded.given)
    except ServerError as error:
        return [
            Failure(
                kind="given",
                message=f"what is given could not be put there: {error}",
                expected="rows that the schema takes",
                observed=str(error),
                place=f"{place.path}:{place.line}",
            )
        ]
    failures = play.begin()
    for numbered in unfolded.before if not failures else ():
        try:
            play.play(numbered)
        except Stop:
            return [_inherited(unfolded, failure) for entry in play.entries for failure in entry.failures]
    return failures


def _inherited(unfolded: Script, failure: Failure) -> Failure:
    message = f"it begins after {unfolded.scenario.after}, which fails: {failure.message}"
    return failure.model_copy(update={"message": message})


def _play_own(own: Sequence[Numbered], play: Play) -> None:
    for numbered in own:
        try:
            play.play(numbered)
        except Stop:
            return


def _record(
    catalogue: Catalogue, unfolded: Script, transcript: Transcript, beginning: list[Failure], fingerprint: str
) -> ScenarioRecord:
    steps = transcript.steps()
    failures = [*beginning, *transcript.unsettled()]
    first = next((failure for step in steps for failure in step.failures), next(iter(failures), None))
    played = {step.number for step in steps}
    place = catalogue.place("scenarios", unfolded.id)
    return ScenarioRecord(
        id=unfolded.id,
        title=unfolded.scenario.title,
        verdict=Verdict.VERIFIED if first is None else Verdict.BROKEN,
        because=None if first is None else first.message,
        orders=Orders(),
        given=transcript.given(),
        steps=steps,
        not_run=tuple(numbered.number for numbered in unfolded.own if numbered.number not in played),
        failures=tuple(failures),
        fingerprint=fingerprint,
        place=f"{place.path}:{place.line}",
    )
