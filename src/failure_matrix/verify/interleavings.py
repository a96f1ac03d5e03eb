"""All interleavings of several sessions' steps: counted and named by rank, never enumerated.

An interleaving keeps each session's own order. Ranks number them from 0 as a dictionary would, by session, so
that those which begin alike are neighbours.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections.abc import Sequence
from math import factorial, prod


class Interleavings:
    """The interleavings of these sessions; an item is named by anything that is unique."""

    def __init__(self, sessions: Sequence[Sequence[int]]) -> None:
        self._sessions = tuple(tuple(session) for session in sessions)
        self._of = {item: number for number, session in enumerate(self._sessions) for item in session}
        lengths = [len(session) for session in self._sessions]
        self.total = factorial(sum(lengths)) // prod(map(factorial, lengths))

    def order(self, rank: int) -> tuple[int, ...]:
        """The interleaving of this rank, ``0 <= rank < total``."""
        left = [len(session) for session in self._sessions]
        order: list[int] = []
        many = self.total  # that begin like ``order``
        for steps in range(sum(left), 0, -1):
            for number, session in enumerate(self._sessions):
                size = many * left[number] // steps  # of these, those that go on in this session
                if rank < size:
                    order.append(session[len(session) - left[number]])
                    left[number] -= 1
                    many = size
                    break
                rank -= size
        return tuple(order)

    def block(self, beginning: Sequence[int]) -> range:
        """The ranks of all interleavings that begin so."""
        left = [len(session) for session in self._sessions]
        first, many = 0, self.total
        for steps, item in zip(range(sum(left), 0, -1), beginning, strict=False):
            chosen = self._of[item]
            first += sum(many * each // steps for each in left[:chosen])
            many = many * left[chosen] // steps
            left[chosen] -= 1
        return range(first, first + many)


class Gaps:
    """The ranks that nothing has covered yet. The next is always in the middle of the widest gap.

    So a search that is cut short has looked everywhere alike.
    """

    def __init__(self, total: int) -> None:
        self._firsts: list[int] = []  # of the gaps, in order
        self._ends: dict[int, int] = {}  # first rank of a gap -> the rank after its last
        self._widest: list[tuple[int, int]] = []  # a heap: minus the width, first rank; some are gaps no more
        self._open(0, 0, total)

    def _open(self, at: int, first: int, end: int) -> int:
        if first >= end:
            return 0
        self._firsts.insert(at, first)
        self._ends[first] = end
        heapq.heappush(self._widest, (first - end, first))
        return 1

    def next(self) -> int | None:
        """A rank that nothing has covered; None where there is none."""
        while self._widest:
            width, first = self._widest[0]
            if self._ends.get(first) == first - width:
                return first + (-width - 1) // 2
            heapq.heappop(self._widest)
        return None

    def first(self, ranks: range) -> int | None:
        """The first of these that nothing has covered."""
        at = max(bisect_right(self._firsts, ranks.start) - 1, 0)
        for first in self._firsts[at : at + 2]:
            found = max(first, ranks.start)
            if found < min(self._ends[first], ranks.stop):
                return found
        return None

    def cover(self, ranks: range) -> int:
        """Cover these; how many were new."""
        new = 0
        at = max(bisect_right(self._firsts, ranks.start) - 1, 0)
        while at < len(self._firsts) and self._firsts[at] < ranks.stop:
            first = self._firsts[at]
            end = self._ends[first]
            start, stop = max(first, ranks.start), min(end, ranks.stop)
            if start >= stop:
                at += 1
                continue
            new += stop - start
            del self._firsts[at], self._ends[first]
            at += self._open(at, first, start)
            at += self._open(at, stop, end)
        return new
