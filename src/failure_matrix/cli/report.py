"""What ``matrix verify`` says at the end: worst first, the verdict last, at any width."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.cli import github, junit
from failure_matrix.cli.items import GOOD, Item, counts, not_verified, partial, shown, verdict
from failure_matrix.cli.layout import beside
from failure_matrix.cli.options import Format
from failure_matrix.cli.terminal import cells, wrap
from failure_matrix.evidence import files
from failure_matrix.evidence.coverage import below
from failure_matrix.evidence.records import Count, Evidence, Verdict

LABEL = 12  # columns; the longest verdict and two spaces
PAIR = 10  # columns; "expected" and two spaces
NARROW = 50  # columns; below this, text goes under its label and not beside it


def render(
    evidence: Evidence,
    form: Format,
    columns: int,
    *,
    catalogue: Catalogue | None = None,
    written: str = "",
    short: Sequence[str] = (),
) -> Iterator[str]:
    """Give what to print of evidence in the form that was asked for."""
    every = shown(evidence, catalogue)
    match form:
        case Format.TEXT:
            yield from report(evidence, columns, catalogue=catalogue, written=written, short=short)
        case Format.JSON:
            yield files.text(evidence).rstrip("\n")
        case Format.GITHUB:
            yield from github.evidence(every)
        case Format.JUNIT:
            yield junit.evidence(every)


def report(
    evidence: Evidence,
    columns: int,
    *,
    catalogue: Catalogue | None = None,
    written: str = "",
    short: Sequence[str] = (),
) -> Iterator[str]:
    """Give the lines for a terminal of so many columns, all of it text that steers nothing.

    written: where the evidence went, as said to the reader. short: where coverage is below what is required.
    """
    every = shown(evidence, catalogue)
    yield from wrap(_head(evidence), columns)
    apart = True  # an item with failures stands alone, others below one another
    for item in not_verified(every):
        if apart or item.faults:
            yield ""
        apart = bool(item.faults)
        yield from _item(item, columns)
    yield ""
    yield from _labelled("verified", _coverage(evidence), columns)
    for line in short:
        yield from _labelled("short", line, columns)
    yield ""
    if catalogue is not None and partial(evidence, catalogue):
        ran = f"{len(evidence.scenarios)} of {len(catalogue.scenarios)} scenarios ran"
        yield from wrap(f"Only {ran}: this says nothing of what they do not reach.", columns)
    if written:
        yield from wrap(f"Evidence: {written}, {evidence.run.seconds:.1f} s", columns)
    reached = verdict(evidence, catalogue)
    yield from _last(f"{reached}: {counts(every)}.", f"exit {code(reached, short)}", columns)


def code(reached: Verdict, short: Sequence[str] = ()) -> int:
    """Give the exit code that a verdict means, and coverage that falls short."""
    return 0 if reached in GOOD and not short else 1


def short(evidence: Evidence, catalogue: Catalogue, require: int | None) -> tuple[str, ...]:
    """Say where coverage is below what is required, by ``require`` or else by the catalogue; of a whole run only."""
    percent = catalogue.settings.require if require is None else require
    if percent is None or partial(evidence, catalogue):
        return ()
    return tuple(
        f"{kind}: {count.verified + count.waived} of {count.of} verified or waived, {percent} % required"
        for kind, count in below(evidence, percent).items()
    )


def _head(evidence: Evidence) -> str:
    told = {
        "scenario": len(evidence.scenarios),
        "mechanism": len(evidence.mechanisms),
        "state": len(evidence.states),
        "move": len(evidence.moves),
        "cell": len(evidence.cells),
        "guard": sum(guard.part != "assignment" for guard in evidence.guards),
    }
    numbers = ", ".join(f"{count} {noun}{'' if count == 1 else 's'}" for noun, count in told.items() if count)
    return f"PostgreSQL {evidence.run.postgresql} ({evidence.run.server}), {numbers or 'nothing to verify'}"


def _coverage(evidence: Evidence) -> str:
    return ", ".join(_counted(name, count) for name, count in evidence.coverage.items() if count.of)


def _counted(name: str, count: Count) -> str:
    rest = {"waived": count.waived, "not tried": count.not_tried}
    beside = ", ".join(f"{number} {word}" for word, number in rest.items() if number)
    return f"{count.verified} of {count.of} {name}{f' ({beside})' if beside else ''}"


def _last(told: str, exit_: str, columns: int) -> Iterator[str]:
    *lines, last = wrap(told, columns)
    yield from lines
    if cells(last) + 1 + len(exit_) > columns:
        yield last
        last = ""
    yield last + " " * (columns - cells(last) - len(exit_)) + exit_


def _item(item: Item, columns: int) -> Iterator[str]:
    name = item.name if item.kind == "scenario" else f"{item.kind} {item.name}"
    why = f": {item.because}" if item.because and not item.faults else ""
    yield from _labelled(item.verdict, name + why, columns, aside=item.place)
    for fault in item.faults:
        where = f"{fault.where}: " if fault.where else ""
        yield from _indented(f"{where}{fault.failure.message}", columns)
        yield from _pair("expected", fault.failure.expected, columns, aside=fault.failure.place)
        yield from _pair("observed", fault.failure.observed, columns)
    if item.faults:
        yield from _pair("rerun", f"matrix verify {item.name}", columns)


def _labelled(label: str, value: str, columns: int, *, aside: str = "") -> Iterator[str]:
    """A label at the left margin and a value beside it; on a narrow terminal below it."""
    if columns >= NARROW:
        yield from beside(f"{label:<{LABEL}}", value, columns, aside=aside)
    else:
        yield label
        yield from beside("  ", value, columns, aside=aside)


def _pair(label: str, value: str, columns: int, *, aside: str = "") -> Iterator[str]:
    yield from beside(f"{_indent(columns)}{label:<{PAIR}}", value, columns, aside=aside)


def _indented(value: str, columns: int) -> Iterator[str]:
    yield from beside(_indent(columns), value, columns)


def _indent(columns: int) -> str:
    return " " * (2 if columns < NARROW else LABEL)
