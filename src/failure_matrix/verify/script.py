"""A scenario with all that it inherits by ``after``, and what it begins with put there."""

from __future__ import annotations

from dataclasses import dataclass

from failure_matrix.catalogue.model import Catalogue, Given, Scenario, SessionSetup
from failure_matrix.database.connection import ServerError
from failure_matrix.evidence.records import Failure
from failure_matrix.verify.entry import Numbered
from failure_matrix.verify.play import Play, Stop
from failure_matrix.verify.prepare import give
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


def begin(catalogue: Catalogue, unfolded: Script, world: World, play: Play) -> list[Failure]:
    """Put there what is given and play the steps of ``after``; what went wrong before the scenario's own first step."""
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
