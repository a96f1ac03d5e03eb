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
from functools import partial
from itertools import pairwise

from failure_matrix.catalogue.model import Catalogue, Step
from failure_matrix.evidence.records import Failure, OrderRecord, Orders, Verdict, of_failures
from failure_matrix.verify.entry import Numbered
from failure_matrix.verify.ground import Ground
from failure_matrix.verify.interleavings import Gaps, Interleavings
from failure_matrix.verify.order import End, Order, Outcome, Player
from failure_matrix.verify.script import Script
from failure_matrix.verify.stores import Stores
from failure_matrix.verify.values import references

BATCH = 64  # orders that are played before the schema is compared
TRIES = 50  # for each order that is played, so many may be found impossible without


class Table:
    """The orders of one scenario, and what is known of them."""

    def __init__(
        self, catalogue: Catalogue, unfolded: Script, ground: Ground, stores: Stores, started: datetime
    ) -> None:
        self._catalogue = catalogue
        self._ground = ground
        self.player = Player(catalogue, unfolded, ground, stores, started)
        self._steps = {numbered.number: numbered.step for numbered in unfolded.own}
        self.listed: Order = tuple(self._steps)
        sessions = tuple(_sessions(unfolded.own).values())
        self._interleavings = Interleavings(sessions)
        self._kept = frozenset(name for numbered in unfolded.before for name in numbered.step.keep) | {"now"}
        self._uses = {number: used for number, step in self._steps.items() if (used := _uses(step))}
        self._following = {  # the step that a session takes next, where it takes the session to take it
            before: after
            for steps in sessions
            for before, after in pairwise(steps)
            if self._is_sent(self._steps[after])
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
        gaps.cover(self._interleavings.block(self.listed))
        left = most
        while left > 0:
            before = deepcopy(gaps)
            batch = list(self._batch(gaps, min(left, BATCH)))
            if not (self.player.careful or self._ground.same_shape()):
                gaps, self.player.careful = before, True  # one of these changed the schema: play each for itself
                continue
            yield from batch
            played = sum(outcome.played for outcome in batch)
            left = left - played if played else 0

    def _batch(self, gaps: Gaps, size: int) -> Iterator[Outcome]:
        played = 0
        for _ in range(size * TRIES):
            rank = gaps.next()
            if rank is None or played == size:
                return
            order = self._interleavings.order(rank)
            elsewhere: list[Outcome] = []
            outcome = self._known(order) or self.player.play(order, partial(self._otherwise, gaps, elsewhere))
            played += outcome.played
            yield from elsewhere
            yield replace(outcome, alike=gaps.cover(self._interleavings.block(outcome.beginning)))
            for beginning in self._impossible_beside(outcome) if self.player.alike else ():
                if alike := gaps.cover(self._interleavings.block(beginning)):
                    yield Outcome(end=End.IMPOSSIBLE, beginning=beginning, alike=alike, played=False)

    def _otherwise(self, gaps: Gaps, found: list[Outcome], beginning: Order) -> Order | None:
        """Count what begins so as impossible; another order to go on with that is not known yet."""
        alike = gaps.cover(self._interleavings.block(beginning))
        found.append(Outcome(end=End.IMPOSSIBLE, beginning=beginning, alike=alike, played=False))
        rank = gaps.first(self._interleavings.block(beginning[:-1]))
        return None if rank is None else self._interleavings.order(rank)

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
            kept.update(self._steps[number].keep)
        return None


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


def _length(record: OrderRecord) -> tuple[bool, int, Order]:
    """What shows something before what only could not look; then the shortest."""
    failures = [*record.failures, *(failure for step in record.steps for failure in step.failures)]
    return of_failures(failures) is Verdict.INCOMPLETE, len(record.steps), record.order


def exist(unfolded: Script) -> int:
    """How many orders a scenario's own steps have."""
    return Interleavings(tuple(_sessions(unfolded.own).values())).total


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
