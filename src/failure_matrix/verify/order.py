"""One order of a scenario's steps, played without expectations on ground that is made as new."""

from __future__ import annotations

from collections.abc import Mapping
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
        self._steady = only_commits_tell(catalogue, ground.probe.statement.text, ground.admin)
        self._bindings = Bindings(catalogue)

    def play(self, order: Order) -> Outcome:
        """Play one order on ground that is made as new."""
        given = self._lay()
        world = World(self._ground, self._stores, self._script.setups)
        play = Play(self._catalogue, world, expects=False, steady=self._steady, bindings=self._bindings)
        names = Names(self._started)
        failures: list[Failure] = []
        try:
            failures += begin(self._catalogue, self._script, world, play, given=given)
            end = End.FAILED if failures else self._take(order, play)
        except Impossible as why:
            failures.append(self._other_beginning(why))
            end = End.FAILED
        finally:
            for pid, session in world.backends:
                names.backend(pid, session)
            world.close()
        entries = tuple(entry for entry in play.entries if entry.numbered.number)
        record = None
        transcript = Transcript(self._catalogue, play, names)
        if end in (End.HELD, End.WAITING) and entries and entries[-1].standing is None:
            failures += [failure for failure in transcript.unsettled() if failure.kind == "could-not-look"]
            end = End.FAILED
        if end in (End.FAILED, End.BROKE):
            steps = transcript.steps()
            record = OrderRecord(steps=steps, failures=transcript.told(failures))
        whole = not self.alike or end in (End.HELD, End.WAITING)
        return Outcome(end=end, beginning=order if whole else order[: len(entries)], entries=entries, record=record)

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
        now, inventory = clock.start(self._catalogue), self._stores.inventory()
        look = ground.probe.request(now=now, inventory=inventory, previous=None)
        answers = ground.renew(*insertions(given), [look], as_new=False, any_shape=not self.careful)
        found = answers[-1]
        if isinstance(found, Result) and not any(isinstance(answer, ServerError) for answer in answers):
            return ground.probe.read(found)
        ground.renew()  # it will fail again, and be told
        self._stores.clear()
        return None

    def _take(self, order: Order, play: Play) -> End:
        for number in order:
            try:
                play.play(self._steps[number])
            except Impossible:
                return End.IMPOSSIBLE
            except Stop:
                return End.BROKE if self._as_declared(play.entries[-1]) else End.FAILED
        return End.WAITING if play.still_waiting() else End.HELD

    def _as_declared(self, last: Entry) -> bool:
        """Whether what broke is just what the scenario says, and nothing else went wrong."""
        breaches = len(last.failures) > 0 and all(failure.kind in _BREACHES for failure in last.failures)
        return breaches and sorted(last.breaks) == sorted(self._script.scenario.breaks)
