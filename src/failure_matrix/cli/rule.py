"""``matrix rule``: what a rule asks, why, and how to mend what it found."""

from __future__ import annotations

from typing import Annotated

import typer

from failure_matrix.cli import terminal


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
    terminal.write(rulebook.rule(name).page.splitlines())
    return 0
