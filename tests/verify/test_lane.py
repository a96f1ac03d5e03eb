"""Work parted among several workers, and work that goes on beside other work."""

from __future__ import annotations

from collections.abc import Callable
from threading import Barrier, Event

import pytest

from failure_matrix.verify.lane import beside, parted


def test_what_was_found_has_the_order_of_the_works() -> None:
    met = Barrier(2)

    def do(worker: str, work: int) -> tuple[str, int]:
        met.wait()  # both workers are at work at once
        return worker, work

    found = parted(["a", "b"], range(4), do)
    assert [work for _, work in found] == [0, 1, 2, 3]
    assert {worker for worker, _ in found} == {"a", "b"}


def test_the_first_exception_ends_the_rest() -> None:
    done = []

    def do(_: str, work: int) -> None:
        done.append(work)
        raise LookupError(f"work {work}")

    with pytest.raises(LookupError, match="work 0"):
        parted(["a"], range(4), do)
    assert done == [0]


def test_work_goes_on_beside_the_block_which_waits_for_it() -> None:
    begun, ended = Event(), Event()
    came: list[bool] = []

    def work(stopped: Callable[[], bool]) -> None:
        begun.set()
        assert ended.wait(30)
        came.append(stopped())

    with beside(work):
        assert begun.wait(30)
        ended.set()
    assert came == [False]


def test_work_is_told_that_the_block_has_failed() -> None:
    def work(stopped: Callable[[], bool]) -> None:
        while not stopped():
            pass

    with pytest.raises(LookupError, match="the block"), beside(work):
        raise LookupError("the block")


def test_what_work_raises_is_raised() -> None:
    def work(_: Callable[[], bool]) -> None:
        raise LookupError("the work")

    with pytest.raises(LookupError, match="the work"), beside(work):
        pass
