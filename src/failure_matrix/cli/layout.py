"""How text is laid out in lines of so many columns."""

from __future__ import annotations

from collections.abc import Iterator

from failure_matrix.cli.terminal import cells, harmless, wrap


def beside(before: str, value: str, columns: int, *, aside: str = "") -> Iterator[str]:
    """A value that begins behind ``before`` and stays there; ``aside`` at the right margin, or below."""
    first, *more = wrap(value, columns - len(before))
    aside = harmless(aside)
    free = columns - len(before) - cells(first) - cells(aside)
    if aside and free < 2:
        more += wrap(aside, columns - len(before))
        aside = ""
    yield f"{before}{first}{' ' * free if aside else ''}{aside}"
    for line in more:
        yield " " * len(before) + line
