"""Interleavings are counted and named without being enumerated; here they are enumerated, to see."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failure_matrix.verify.interleavings import Gaps, Interleavings

SHAPES = [[], [1], [3], [1, 1], [2, 1], [2, 2], [3, 1, 1], [2, 2, 1], [1, 1, 1, 1]]


def _sessions(lengths: Sequence[int]) -> list[list[int]]:
    """Sessions of these lengths, their items numbered from 1 as a scenario lists steps."""
    numbers = iter(range(1, sum(lengths) + 1))
    return [[next(numbers) for _ in range(length)] for length in lengths]


def _all(sessions: Sequence[Sequence[int]]) -> list[tuple[int, ...]]:
    items = [item for session in sessions for item in session]
    orders = [
        order
        for order in permutations(items)
        if all([item for item in order if item in session] == list(session) for session in sessions)
    ]
    return sorted(orders)


@pytest.mark.parametrize("lengths", SHAPES, ids=str)
def test_every_interleaving_has_a_rank_and_every_rank_an_interleaving(lengths: list[int]) -> None:
    sessions = _sessions(lengths)
    interleavings = Interleavings(sessions)
    expected = _all(sessions)
    assert interleavings.total == len(expected)
    assert [interleavings.order(rank) for rank in range(interleavings.total)] == expected


@pytest.mark.parametrize("lengths", SHAPES, ids=str)
def test_a_block_is_what_begins_alike(lengths: list[int]) -> None:
    interleavings = Interleavings(_sessions(lengths))
    orders = [interleavings.order(rank) for rank in range(interleavings.total)]
    for order in orders:
        for length in range(len(order) + 1):
            block = interleavings.block(order[:length])
            assert [orders[rank] for rank in block] == [each for each in orders if each[:length] == order[:length]]


def test_many_are_counted_at_once() -> None:
    lengths = [20, 20, 20]
    interleavings = Interleavings(_sessions(lengths))
    assert interleavings.total == 577831214478475823831865900
    last = interleavings.total - 1
    assert interleavings.block(interleavings.order(last)) == range(last, last + 1)
    assert interleavings.order(0) == tuple(range(1, 61))


@given(st.integers(0, 40), st.lists(st.tuples(st.integers(-3, 45), st.integers(0, 9)), max_size=12))
def test_gaps_are_what_is_not_covered(total: int, covers: list[tuple[int, int]]) -> None:
    gaps, left = Gaps(total), set(range(total))
    for first, width in covers:
        ranks = range(first, first + width)
        assert gaps.cover(ranks) == len(left & set(ranks))
        left -= set(ranks)
        for wanted in (ranks, range(first - 5, first + width + 5)):
            assert gaps.first(wanted) == min(left & set(wanted), default=None)
    while (rank := gaps.next()) is not None:
        assert rank in left
        assert gaps.cover(range(rank, rank + 1)) == 1
        left.remove(rank)
    assert left == set()


def test_a_search_that_is_cut_short_has_looked_everywhere_alike() -> None:
    gaps = Gaps(1000)
    seen = []
    for _ in range(15):
        rank = gaps.next()
        assert rank is not None
        seen.append(rank)
        gaps.cover(range(rank, rank + 1))
    seen.sort()
    widths = [after - before for before, after in zip([-1, *seen], [*seen, 1000], strict=True)]
    assert max(widths) <= 2 * min(widths)
