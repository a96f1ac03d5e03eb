"""One measured comparison, and many of them as a Markdown table."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import median
from time import perf_counter


@dataclass(frozen=True, kw_only=True)
class Measured:
    """What our work took and what the other took, in the same unit."""

    work: str
    against: str
    ours: float
    theirs: float
    unit: str
    times: int = 1  # that each was measured; the two are medians
    goal: str | None = None
    met: bool | None = None

    @property
    def ratio(self) -> float:
        return self.ours / self.theirs


@dataclass(frozen=True, kw_only=True)
class Rounds:
    """How long each of two things took, round by round: one after the other, so that both see the same machine."""

    ours: tuple[float, ...]
    theirs: tuple[float, ...]

    @property
    def medians(self) -> tuple[float, float]:
        return median(self.ours), median(self.theirs)


def alternate(rounds: int, ours: Callable[[], object], theirs: Callable[[], object]) -> Rounds:
    """Time two things in turn. Seconds."""
    times: tuple[list[float], list[float]] = ([], [])
    for _ in range(rounds):
        for kept, work in zip(times, (ours, theirs), strict=True):
            began = perf_counter()
            work()
            kept.append(perf_counter() - began)
    return Rounds(ours=tuple(times[0]), theirs=tuple(times[1]))


def table(rows: Sequence[Measured]) -> str:
    """The rows as Markdown."""
    lines = [
        "| work | against | ours | theirs | times | ratio | goal |",
        "| --- | --- | ---: | ---: | ---: | ---: | ---: |",
    ]
    for row in rows:
        mark = "" if row.met is None else " ✓" if row.met else " ✗"
        both = (_number(row.ours, row.unit), _number(row.theirs, row.unit))
        cells = (row.work, row.against, *both, f"{row.times}", f"{row.ratio:.2f}")
        lines.append(f"| {' | '.join(cells)} | {row.goal or ''}{mark} |")
    return "\n".join(lines)


def _number(value: float, unit: str) -> str:
    return f"{value:.2f} {unit}"
