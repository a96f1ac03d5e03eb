"""All interleavings of several sessions' steps: counted and named by rank, never enumerated.

An interleaving keeps each session's own order. Ranks number them from 0 as a dictionary would, by session, so
that those which begin alike are neighbours.
"""

from __future__ import annotations

import heapq
from collections.abc import Sequence
from math import factorial, prod


class Interleavings:
    """The interleavings of these sessions; an item is named by anything that is unique."""

    def __init__(self, sessions: Sequence[Sequence[int]]) -> None:
        self._sessions = tuple(tuple(session) for session in sessions)
        self._of = {item: number for number, session in enumerate(self._sessions) for item in session}
        self.total = self._count([len(session) for session in self._sessions])

    @staticmethod
    def _count(lengths: Sequence[int]) -> int:
        return factorial(sum(lengths)) // prod(map(factorial, lengths))

    def order(self, rank: int) -> tuple[int, ...]:
        """The interleaving of this rank, ``0 <= rank < total``."""
        left = [len(session) for session in self._sessions]
        order: list[int] = []
        while any(left):
            for number, session in enumerate(self._sessions):
                if not left[number]:
                    continue
                left[number] -= 1
                size = self._count(left)
                if rank < size:
                    order.append(session[len(session) - left[number] - 1])
                    break
                rank -= size
                left[number] += 1
        return tuple(order)

    def block(self, beginning: Sequence[int]) -> range:
        """The ranks of all interleavings that begin so."""
        left = [len(session) for session in self._sessions]
        first = 0
        for item in beginning:
            for number in range(self._of[item]):
                if left[number]:
                    left[number] -= 1
                    first += self._count(left)
                    left[number] += 1
            left[self._of[item]] -= 1
        return range(first, first + self._count(left))


class Gaps:
    """The ranks that nothing has covered yet. The next is always in the middle of the widest gap.

    So a search that is cut short has looked everywhere alike.
    """

    def __init__(self, total: int, covered: int) -> None:
        self._heap: list[tuple[int, int]] = []  # minus the width, first rank
        self._gap = (0, total)
        self.cover(range(covered, covered + 1))

    def __copy__(self) -> Gaps:
        other = Gaps(0, 0)
        other._heap = self._heap.copy()
        return other

    def next(self) -> int | None:
        """A rank that nothing has covered, to be covered next; None where there is none."""
        if not self._heap:
            return None
        width, first = heapq.heappop(self._heap)
        self._gap = (first, first - width)
        return first + (-width - 1) // 2

    def cover(self, ranks: range) -> int:
        """Cover these around the rank given last; how many were new."""
        first, end = self._gap
        start, stop = max(first, ranks.start), min(end, ranks.stop)
        for begin, finish in ((first, start), (stop, end)):
            if begin < finish:
                heapq.heappush(self._heap, (begin - finish, begin))
        return stop - start
