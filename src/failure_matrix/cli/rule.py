"""``matrix rule``: what a rule asks, why, and how to mend what it found."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from typing import Annotated

import typer

from failure_matrix.cli import terminal
from failure_matrix.cli.layout import beside


def rule(
    name: Annotated[str | None, typer.Argument(metavar="ID", help="The rule; without it, all of them.")] = None,
) -> int:
    """Say what a rule asks, why, and how to mend it."""
    from failure_matrix.catalogue import rulebook
    from failure_matrix.catalogue.findings import CouldNot

    ids = rulebook.rule_ids()
    if name is None:
        widest = max(map(len, ids), default=0)
        rules = map(rulebook.rule, ids)
        terminal.write(f"{rule.id:<{widest}}  {rule.severity:<7}  {rule.asks}" for rule in rules)
        return 0
    if name not in ids:
        raise CouldNot(f"explain '{name}': there is no such rule", rulebook.nearest(name, ids))
    page = rulebook.rule(name).page.splitlines()
    terminal.write(fitted(page, terminal.width()) if sys.stdout.isatty() else page)
    return 0


def fitted(page: Iterable[str], columns: int) -> Iterator[str]:
    """Break the lines of a page between words; what stands in a block of code, a table or a heading stays."""
    code = False
    for line in page:
        code ^= line.startswith("```")
        if not line or code or line.startswith(("```", "    ", "|", "#")):
            yield line
        else:
            mark = "- " if line.startswith("- ") else ""
            yield from beside(mark, line.removeprefix(mark), columns)
