"""One order of a scenario's steps, played without expectations on ground that is made as new."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.database.answers import Result, ServerError
from failure_matrix.database.classify import Situation
from failure_matrix.evidence.records import Failure, OrderRecord
from failure_matrix.verify import clock
from failure_matrix.verify.bind import Bindings
from failure_matrix.verify.entry import Entry, Numbered
from failure_matrix.verify.ground import Ground
from failure_matrix.verify.naming import Names
from failure_matrix.verify.play import Impossible, Play, Stop
from failure_matrix.verify.prepare import insertions, put
from failure_matrix.verify.script import Script, begin
from failure_matrix.verify.steady import only_commits_tell
from failure_matrix.verify.stores import Stores
from failure_matrix.verify.transcript import Transcript
from failure_matrix.verify.world import World

Order = tuple[int, ...]  # numbers of steps


_BREACHES = {"invariant", "illegal-state", "ambiguous", "unclassified", "duplicate-key", "undeclared-move"}


class End(Enum):
    """How an order ended."""

    HELD = "held"
    WAITING = "waiting"  # it held, and a step still waited when all had been taken
    BROKE = "broke"  # just as the scenario's ``breaks`` says
    FAILED = "failed"
    IMPOSSIBLE = "impossible"


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What came of one order. All orders that begin with ``beginning`` come to the same."""

    end: End
    beginning: Order
    alike: int = 1  # how many orders that were not known yet
    played: bool = True  # it took a server to know
    entries: tuple[Entry, ...] = ()  # of the steps that were taken
    record: OrderRecord | None = None  # where something broke


Otherwise = Callable[[Order], Order | None]


class Player:
    """Plays orders of one scenario, one after another."""

    def __init__(
        self, catalogue: Catalogue, unfolded: Script, ground: Ground, stores: Stores, started: datetime
    ) -> None:
        self._catalogue = catalogue
        self._script = unfolded
        self._ground = ground
        self._stores = stores
        self._started = started
        self._steps: Mapping[int, Numbered] = {numbered.number: numbered for numbered in unfolded.own}
        timed = any(numbered.step.waits == ("maybe",) for numbered in (*unfolded.before, *unfolded.own))
        self.alike = not timed  # where time decides, orders that begin alike may part
        self.careful = False  # compare the schema before each order, not once for many
        self._steady = ground.remembered(catalogue, only_commits_tell)
        self._bindings = Bindings(catalogue)
        self._rows = insertions(unfolded.given) if unfolded.given.sql is None else []
        self._start = clock.start(catalogue)

    def play(self, order: Order, otherwise: Otherwise = lambda _: None) -> Outcome:
        """Play one order on ground that is made as new.

        Where its next step is impossible, ``otherwise`` is told how far it came, that step included, and may name
        another order that begins with the steps taken; so what was played is not in vain.
        """
        given = self._lay()
        world = World(self._ground, self._stores, self._script.setups)
        world.now = self._start
        play = Play(self._catalogue, world, expects=False, steady=self._steady, bindings=self._bindings)
        failures: list[Failure] = []
        beginning: Order = ()
        try:
            failures += begin(self._catalogue, self._script, world, play, given=given)
            end, beginning = (End.FAILED, ()) if failures else self._take(order, play, otherwise)
        except Impossible as why:
            failures.append(self._other_beginning(why))
            end = End.FAILED
        finally:
            world.close()
        entries = tuple([entry for entry in play.entries if entry.numbered.number])
        blind = bool(entries) and entries[-1].standing is None
        record = None
        if end in (End.FAILED, End.BROKE) or (blind and end is not End.IMPOSSIBLE):
            record, end = self._told(play, world, failures, end)
        beginning = beginning if self.alike else order
        return Outcome(end=end, beginning=beginning, entries=entries, record=record)

    def _told(self, play: Play, world: World, failures: list[Failure], end: End) -> tuple[OrderRecord, End]:
        """The record of an order that did not hold; one that held as far as it could be looked at failed."""
        names = Names(self._started)
        for pid, session in world.backends:
            names.backend(pid, session)
        transcript = Transcript(self._catalogue, play, names)
        if end in (End.HELD, End.WAITING):
            failures += [failure for failure in transcript.unsettled() if failure.kind == "could-not-look"]
            end = End.FAILED
        return OrderRecord(steps=transcript.steps(), failures=transcript.told(failures)), end

    def _other_beginning(self, why: Impossible) -> Failure:
        """What it begins after did not go as it did before the listed order."""
        after = self._script.scenario.after
        place = self._catalogue.place("scenarios", self._script.id, "after")
        return Failure(
            kind="given",
            message=f"it begins after {after}, which does not go the same way every time: {why}",
            expected=f"{after} as it went before the listed order",
            observed=str(why),
            place=f"{place.path}:{place.line}",
        )

    def _lay(self) -> Situation | None:
        """Make the ground as new; put there what is given and look at it, where one round trip does all that."""
        self._stores.clear()
        given, ground = self._script.given, self._ground
        if given.sql is not None or self._catalogue.settings.clock == "wall":
            ground.renew(as_new=False, any_shape=not self.careful)
            return None
        put(self._stores, given)
        look = ground.probe.request(now=self._start, inventory=self._stores.inventory(), previous=None)
        try:
            answers = ground.renew(*self._rows, [look], as_new=False, any_shape=not self.careful)
        except ServerError:
            answers = [None]
        found = answers[-1]
        if isinstance(found, Result) and not any(isinstance(answer, ServerError) for answer in answers):
            return ground.probe.read(found)
        ground.renew()  # it will fail again, and be told
        self._stores.clear()
        return None

    def _take(self, order: Order, play: Play, otherwise: Otherwise) -> tuple[End, Order]:
        """How it ended, and what an order must begin with to end so too."""
        taken = 0
        while taken < len(order):
            try:
                play.play(self._steps[order[taken]])
            except Impossible:
                play.entries.pop()  # nothing has been done
                beginning = order[: taken + 1]
                other = otherwise(beginning) if self.alike else None
                if other is None:
                    return End.IMPOSSIBLE, beginning
                order = other
            except Stop:
                end = End.BROKE if self._as_declared(play.entries[-1]) else End.FAILED
                return end, order[: taken + 1]
            else:
                taken += 1
        return End.WAITING if play.still_waiting() else End.HELD, order

    def _as_declared(self, last: Entry) -> bool:
        """Whether what broke is just what the scenario says, and nothing else went wrong."""
        breaches = len(last.failures) > 0 and all(failure.kind in _BREACHES for failure in last.failures)
        return breaches and sorted(last.breaks) == sorted(self._script.scenario.breaks)
