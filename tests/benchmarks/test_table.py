"""What was measured, as a table."""

from __future__ import annotations

from benchmarks.table import Measured, alternate, table


def test_a_row_says_what_against_what_and_whether_that_was_the_goal() -> None:
    rows = [
        Measured(work="a", against="b", ours=1.234, theirs=2, unit="s", times=5, goal="0.50", met=False),
        Measured(work="c", against="d", ours=1, theirs=4, unit="ms", goal="1 ms", met=True),
        Measured(work="e", against="f", ours=3, theirs=1, unit="s"),
    ]
    assert table(rows).splitlines()[2:] == [
        "| a | b | 1.23 s | 2.00 s | 5 | 0.62 | 0.50 ✗ |",
        "| c | d | 1.00 ms | 4.00 ms | 1 | 0.25 | 1 ms ✓ |",
        "| e | f | 3.00 s | 1.00 s | 1 | 3.00 |  |",
    ]


def test_both_are_timed_in_turn() -> None:
    called: list[str] = []
    rounds = alternate(3, lambda: called.append("ours"), lambda: called.append("theirs"))
    assert called == ["ours", "theirs"] * 3
    assert len(rounds.ours) == len(rounds.theirs) == 3
