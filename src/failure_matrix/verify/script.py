"""A scenario with all that it inherits by ``after``, and what it begins with put there."""

from __future__ import annotations

from dataclasses import dataclass

from failure_matrix.catalogue.model import Catalogue, Given, Place, Scenario, SessionSetup
from failure_matrix.database.answers import ServerError
from failure_matrix.database.classify import Situation
from failure_matrix.evidence.records import Failure, FailureKind
from failure_matrix.verify.entry import Entry, Numbered, describe
from failure_matrix.verify.play import Play, Stop
from failure_matrix.verify.prepare import NotGiven
from failure_matrix.verify.stores import EffectRefused
from failure_matrix.verify.world import World


@dataclass(frozen=True, kw_only=True)
class Script:
    """A scenario with all that it inherits by ``after``."""

    id: str
    first: str  # the scenario that the chain of ``after`` begins with
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
        first=chain[0],
        scenario=catalogue.scenarios[id],
        given=catalogue.scenarios[chain[0]].given,
        before=tuple(steps[: len(steps) - own]),
        own=tuple(steps[len(steps) - own :]),
        setups=setups,
    )


def begin(
    catalogue: Catalogue, unfolded: Script, world: World, play: Play, *, given: Situation | None = None
) -> list[Failure]:
    """Put there what is given, unless it is there and was looked at, and play the steps of ``after``.

    What went wrong before the scenario's own first step.
    """
    place = catalogue.place("scenarios", unfolded.first, "given")
    try:
        if given is None:
            world.given(unfolded.given)
    except (ServerError, NotGiven, EffectRefused) as why:
        message = f"what is given could not be put there: {why}"
        return [_not_given(place, "given", message, "what the schema takes", why)]
    try:
        failures = play.begin(place, given)
    except ServerError as error:
        at = " ".join(world.culprit(None) or ("what is given",))
        message = f"what is given cannot be classified: {at}: {error}"
        return [_not_given(place, "error", message, "predicates that the server can evaluate", error)]
    for numbered in unfolded.before if not failures else ():
        try:
            play.play(numbered)
        except Stop:
            if not _stands_wrong(play):
                return _inherited(catalogue, unfolded, play)
    return failures or _still_waiting(catalogue, unfolded, play)


def _stands_wrong(play: Play) -> bool:
    """Whether an earlier scenario ended as declared in a state that must be empty: the way out begins there."""
    last = play.entries[-1]
    return not any(entry.failures for entry in play.entries) and last.breaks == ("illegal-state",)


def _not_given(place: Place, kind: FailureKind, message: str, expected: str, why: Exception) -> Failure:
    at = f"{place.path}:{place.line}"
    return Failure(kind=kind, message=message, expected=expected, observed=str(why), place=at)


def _inherited(catalogue: Catalogue, unfolded: Script, play: Play) -> list[Failure]:
    """Why there is nothing to begin after: an earlier scenario fails, or ends by breaking something."""
    after = f"it begins after {unfolded.scenario.after}, which"
    found = [failure for entry in play.entries for failure in entry.failures]
    if found:
        return [failure.model_copy(update={"message": f"{after} fails: {failure.message}"}) for failure in found]
    last = play.entries[-1]
    broke = f"breaks {', '.join(last.breaks)}"
    return [_before(catalogue, last, f"{after} {broke}, and is over then", "a scenario that breaks nothing", broke)]


def _still_waiting(catalogue: Catalogue, unfolded: Script, play: Play) -> list[Failure]:
    """A scenario that ends while a step waits is broken, and nothing begins after it."""
    waiting = play.still_waiting() if unfolded.before else []
    return [
        _before(
            catalogue,
            entry,
            f"it begins after {unfolded.scenario.after}, where {describe(entry.step)} and still waits",
            "a scenario in which no step still waits",
            f"waits for {', '.join(entry.waits)}",
        )
        for entry in waiting
    ]


def _before(catalogue: Catalogue, entry: Entry, message: str, expected: str, observed: str) -> Failure:
    place = catalogue.place(*entry.numbered.path)
    at = f"{place.path}:{place.line}"
    return Failure(kind="given", message=message, expected=expected, observed=observed, place=at)
