"""All orders of a scenario's steps besides the listed one: played without expectations, judged all the same.

What a step expects belongs to the listed order. That every key is in one state, that every change is declared
and that invariants hold must be true of any order. Orders that begin alike are played alike: where one turns out
impossible, or ends because something broke, so do all that begin as it did.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from datetime import datetime
from enum import Enum
from itertools import pairwise

from failure_matrix.catalogue.model import Catalogue, Step
from failure_matrix.database.answers import Result, ServerError
from failure_matrix.database.classify import Situation
from failure_matrix.evidence.records import Failure, OrderRecord, Orders
from failure_matrix.verify import clock
from failure_matrix.verify.bind import Bindings
from failure_matrix.verify.entry import Entry, Numbered
from failure_matrix.verify.ground import Ground
from failure_matrix.verify.interleavings import Gaps, Interleavings
from failure_matrix.verify.naming import Names
from failure_matrix.verify.play import Impossible, Play, Stop
from failure_matrix.verify.prepare import insertions, put
from failure_matrix.verify.script import Script, begin
from failure_matrix.verify.steady import only_commits_tell
from failure_matrix.verify.stores import Stores
from failure_matrix.verify.transcript import Transcript
from failure_matrix.verify.values import references
from failure_matrix.verify.world import World

Order = tuple[int, ...]  # numbers of steps
BATCH = 64  # orders that are played before the schema is compared


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


class Table:
    """The orders of one scenario on one ground, which is as new before each of them."""

    def __init__(
        self,
        catalogue: Catalogue,
        unfolded: Script,
        ground: Ground,
        stores: Stores,
        started: datetime,
        *,
        every_step: bool = False,
    ) -> None:
        """``every_step`` looks also after steps that can have committed nothing."""
        self._catalogue = catalogue
        self._script = unfolded
        self._ground = ground
        self._stores = stores
        self._started = started
        self._steps = {numbered.number: numbered for numbered in unfolded.own}
        self._interleavings = Interleavings(tuple(_sessions(unfolded.own).values()))
        self._listed = tuple(self._steps)
        timed = any(numbered.step.waits == ("maybe",) for numbered in (*unfolded.before, *unfolded.own))
        self._alike = not timed  # where time decides, orders that begin alike may part
        self._steady = not every_step and only_commits_tell(catalogue, ground.probe.statement.text, ground.admin)
        self._careful = False  # compare the schema before each order, not once for many
        self._kept = frozenset(name for numbered in unfolded.before for name in numbered.step.keep) | {"now"}
        self._uses = {number: used for number, numbered in self._steps.items() if (used := _uses(numbered.step))}
        self._bindings = Bindings(catalogue)
        self._following = {  # the step that a session takes next, where it takes the session to take it
            before: after
            for steps in _sessions(unfolded.own).values()
            for before, after in pairwise(steps)
            if self._is_sent(self._steps[after].step)
        }

    def _is_sent(self, step: Step) -> bool:
        event = self._catalogue.events.get(step.event) if step.event is not None else None
        return step.verb in ("do", "sql", "event") and not (event is not None and event.kill)

    @property
    def exist(self) -> int:
        return self._interleavings.total

    def outcomes(self, most: int) -> Iterator[Outcome]:
        """Play orders until all are known, or ``most`` were played; the listed one is known from the start."""
        gaps = Gaps(self.exist)
        gaps.cover(self._interleavings.block(self._listed))
        left = most
        while left > 0:
            before = deepcopy(gaps)
            batch = list(self._batch(gaps, min(left, BATCH)))
            if not (self._careful or self._ground.same_shape()):
                gaps, self._careful = before, True  # one of these changed the schema: play them again, each for itself
                continue
            yield from batch
            played = sum(outcome.played for outcome in batch)
            left = left - played if played else 0

    def _batch(self, gaps: Gaps, size: int) -> Iterator[Outcome]:
        played = 0
        while played < size and (rank := gaps.next()) is not None:
            order = self._interleavings.order(rank)
            outcome = self._known(order) or self.play(order)
            played += outcome.played
            yield replace(outcome, alike=gaps.cover(self._interleavings.block(outcome.beginning)))
            for beginning in self._impossible_beside(outcome) if self._alike else ():
                if alike := gaps.cover(self._interleavings.block(beginning)):
                    yield Outcome(end=End.IMPOSSIBLE, beginning=beginning, alike=alike, played=False)

    def _impossible_beside(self, outcome: Outcome) -> Iterator[Order]:
        """Beginnings that go on, where this one did not, with a session that was waiting just then."""
        order = tuple(entry.numbered.number for entry in outcome.entries)
        for index, entry in enumerate(outcome.entries):
            following = self._following.get(entry.numbered.number)
            if entry.waits and following is not None:
                freed = entry.released_by
                until = order.index(freed) if freed in order else len(order)
                for waiting in range(index, until):
                    yield (*order[: waiting + 1], following)

    def _known(self, order: Order) -> Outcome | None:
        """The outcome of an order that no server is needed for: a value is used before any step could keep it."""
        if not self._uses:
            return None
        kept = set(self._kept)
        for index, number in enumerate(order):
            if not self._uses.get(number, kept) <= kept:
                return Outcome(end=End.IMPOSSIBLE, beginning=order[: index + 1], played=False)
            kept.update(self._steps[number].step.keep)
        return None

    def play(self, order: Order) -> Outcome:
        """Play one order on ground that is made as new."""
        given = self._lay()
        world = World(self._ground, self._stores, self._script.setups)
        play = Play(self._catalogue, world, expects=False, steady=self._steady, bindings=self._bindings)
        names = Names(self._started)
        try:
            failures = begin(self._catalogue, self._script, world, play, given=given)
            end = End.FAILED if failures else self._take(order, play)
        finally:
            for pid, session in world.backends:
                names.backend(pid, session)
            world.close()
        entries = tuple(entry for entry in play.entries if entry.numbered.number)
        record = None
        if end in (End.FAILED, End.BROKE):
            transcript = Transcript(self._catalogue, play, names)
            steps = transcript.steps()
            record = OrderRecord(steps=steps, failures=transcript.told(failures))
        whole = not self._alike or end in (End.HELD, End.WAITING)
        return Outcome(end=end, beginning=order if whole else order[: len(entries)], entries=entries, record=record)

    def _lay(self) -> Situation | None:
        """Make the ground as new; put there what is given and look at it, where one round trip does all that."""
        self._stores.clear()
        given, ground = self._script.given, self._ground
        if given.sql is not None or self._catalogue.settings.clock == "wall":
            ground.renew(as_new=False, any_shape=not self._careful)
            return None
        put(self._stores, given)
        now, inventory = clock.start(self._catalogue), self._stores.inventory()
        look = ground.probe.request(now=now, inventory=inventory, previous=None)
        answers = ground.renew(*insertions(given), [look], as_new=False, any_shape=not self._careful)
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


_BREACHES = {"invariant", "illegal-state", "ambiguous", "unclassified", "duplicate-key", "undeclared-move"}


def _uses(step: Step) -> frozenset[str]:
    """The kept values that a step takes."""
    return frozenset[str]().union(*(references(value) for value in (*step.with_.values(), step.at)))


def _sessions(steps: Sequence[Numbered]) -> dict[str | None, list[int]]:
    """The numbers of each session's steps; those of no session are the world's."""
    found: dict[str | None, list[int]] = {}
    for numbered in steps:
        found.setdefault(numbered.step.in_, []).append(numbered.number)
    return found


@dataclass(kw_only=True)
class Tally:
    """The outcomes of many orders, counted."""

    exist: int
    counts: dict[End, int]
    shortest: dict[End, OrderRecord]

    def add(self, outcome: Outcome) -> None:
        self.counts[outcome.end] += outcome.alike
        record = outcome.record
        if record is not None:
            best = self.shortest.get(outcome.end)
            if best is None or _length(record) < _length(best):
                self.shortest[outcome.end] = record

    def record(self) -> Orders:
        impossible = self.counts[End.IMPOSSIBLE]
        ran = 1 + sum(count for end, count in self.counts.items() if end is not End.IMPOSSIBLE)
        return Orders(
            exist=self.exist,
            ran=ran,
            impossible=impossible,
            skipped=self.exist - ran - impossible,
            waiting=self.counts[End.WAITING],
            broke=self.counts[End.BROKE],
            failed=self.counts[End.FAILED],
            failing=self.shortest.get(End.FAILED),
            breaking=self.shortest.get(End.BROKE),
        )


def _length(record: OrderRecord) -> tuple[int, Order]:
    return len(record.steps), record.order


def play_orders(table: Table, most: int) -> Orders:
    """Play the orders besides the listed one, ``most`` at most, and count what came of them."""
    tally = Tally(exist=table.exist, counts=dict.fromkeys(End, 0), shortest={})
    for outcome in table.outcomes(most):
        tally.add(outcome)
    return tally.record()


def failures(catalogue: Catalogue, unfolded: Script, orders: Orders, *, listed_broke: bool) -> list[Failure]:
    """What is wrong with the orders: the shortest that failed, or that none breaks what the scenario declares."""
    if orders.failing is not None:
        found = (*orders.failing.failures, *(failure for step in orders.failing.steps for failure in step.failures))
        told = "in order " + ", ".join(map(str, orders.failing.order))
        return [failure.model_copy(update={"message": f"{told}: {failure.message}"}) for failure in found]
    declared = unfolded.scenario.breaks
    if not declared or orders.broke or listed_broke or orders.skipped:
        return []
    place = catalogue.place("scenarios", unfolded.id, "breaks")
    wanted = ", ".join(declared)
    return [
        Failure(
            kind="breaks",
            message=f"no order breaks {wanted}",
            expected=f"an order that breaks {wanted}",
            observed=f"{orders.ran} orders ran, {orders.impossible} were impossible, none broke anything",
            place=f"{place.path}:{place.line}",
        )
    ]
