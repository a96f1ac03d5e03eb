"""Where the clock starts, and that it goes one way."""

from __future__ import annotations

import pytest

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.verify import clock


def catalogue(*times: str, kind: str = "logical") -> Catalogue:
    steps = [{"at": time} for time in times]
    scenarios = {"s": {"title": "S", "steps": [{"in": "A", "sql": {"text": "SELECT 1"}}, *steps]}}
    return Catalogue.model_validate({"catalogue": {"title": "T", "clock": kind}, "scenarios": scenarios})


@pytest.mark.parametrize(
    ("times", "start"),
    [
        ((), 0),
        (("5", "9"), 0),
        (("-5",), 0),
        (("2030-01-01", "2030-01-02"), "2030-01-01"),
        (("$then",), 0),
        (("5", "2030-01-01"), 0),
    ],
)
def test_it_starts_at_zero_or_at_the_first_time(times: tuple[str, ...], start: int | str) -> None:
    assert clock.start(catalogue(*times)) == start


def test_a_time_is_a_whole_number_or_text() -> None:
    assert clock.read("10") == 10
    assert clock.read("-3") == -3
    assert [clock.read(text) for text in ("1.5", "²", "٣", "--3", "2030-01-01", " 3")] == [
        "1.5", "²", "٣", "--3", "2030-01-01", " 3",
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("now", "written", "then"),
    [
        (0, "0", 0),
        (0, "10", 10),
        (9, "10", 10),  # not as text
        (-2, "-1", -1),
        ("2030-01-01", "2030-01-01", "2030-01-01"),
        ("2030-01-01 00:00:00+00", "2030-01-01 01:30:00+01", "2030-01-01 01:30:00+01"),
        ("2030-01-01", "2029-01-01 00:00:00+00", "2029-01-01 00:00:00+00"),  # one has a zone: who knows
        ("monday", "friday", "friday"),
        (5, "friday", "friday"),
    ],
)
def test_it_moves_on(now: int | str, written: str, then: int | str) -> None:
    assert clock.moved(now, written) == then


@pytest.mark.parametrize(
    ("now", "written"),
    [(1, "0"), (10, "9"), ("2030-01-01", "2029-12-31"), ("2030-01-01 00:00:00+00", "2030-01-01 00:30:00+01")],
)
def test_it_never_goes_back(now: int | str, written: str) -> None:
    with pytest.raises(clock.Backwards, match=f"^the clock is at .*, and does not go back to {written[:4]}"):
        clock.moved(now, written)


def test_a_wall_clock_has_no_sample_but_text() -> None:
    assert clock.sample(catalogue(kind="wall")) == ""
    assert clock.sample(catalogue("7")) == 0
