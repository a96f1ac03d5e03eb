"""Rules about scenarios as a whole: their chains, their clock, their sessions' names."""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Decimal

from failure_matrix.catalogue.findings import Finding
from failure_matrix.catalogue.model import Scenario
from failure_matrix.catalogue.reading import Trail, say
from failure_matrix.catalogue.rules.look import MAYBE, VERDICTS, Look


def after_cycles(look: Look) -> Iterator[Finding]:
    """Find scenarios that come after themselves: each cycle once, at its first scenario."""
    told: set[str] = set()
    for name in look.catalogue.scenarios:
        chain = look.chains[name]
        if look.catalogue.scenarios[chain[-1]].after == name and name not in told:
            told.update(chain)
            way = " after ".join(f"'{other}'" for other in (*chain, name))
            message = f"scenario {way}"
            yield look.found("after-cycle", ("scenarios", name, "after"), message, "let one of them begin with 'given'")


def given_and_after(look: Look) -> Iterator[Finding]:
    """Find scenarios that begin where another ended and have rows of their own as well."""
    for name, scenario in look.catalogue.scenarios.items():
        given = scenario.given
        if scenario.after is not None and (given.tables or given.files or given.sql):
            message = f"scenario '{name}' begins where '{scenario.after}' ended, and has 'given' as well"
            hint = "keep one; what the other should add may be a step"
            yield look.found("given-and-after", ("scenarios", name, "given"), message, hint)


def clock_steps(look: Look) -> Iterator[Finding]:
    """Find steps that set the clock back, or a clock that cannot be set."""
    for name, scenario in look.catalogue.scenarios.items():
        now = _ends_at(look, name)
        for number, step in enumerate(scenario.steps):
            if step.at is None:
                continue
            trail: Trail = ("scenarios", name, "steps", number, "at")
            if look.catalogue.settings.clock == "wall":
                message = f"{say(trail)} sets a clock that follows the wall"
                yield look.found("clock-step", trail, message, "set catalogue.clock to logical, or take the step out")
            at = _logical(step.at)
            if at is not None and now is not None and at < now:
                message = f"{say(trail)} is {step.at}, and the clock is at {now} already"
                yield look.found("clock-step", trail, message, "the clock never goes back: order the steps")
            now = at if at is not None else now


def _ends_at(look: Look, name: str) -> Decimal | None:
    """Give the logical clock when a scenario begins: where those before it left it."""
    for scenario in look.before(name):
        if (latest := _latest(scenario)) is not None:
            return latest
    return Decimal(0)


def _latest(scenario: Scenario) -> Decimal | None:
    times = [at for step in scenario.steps if step.at is not None and (at := _logical(step.at)) is not None]
    return times[-1] if times else None


def _logical(written: str) -> Decimal | None:
    """Read a logical time; other clocks write times that only they can order."""
    return Decimal(written) if written.strip().removeprefix("-").isdecimal() and written.isascii() else None


def reserved_names(look: Look) -> Iterator[Finding]:
    """Find sessions, invariants and kept values that have the name of something else."""
    for trail, step in look.steps():
        if step.in_ == MAYBE:
            message = f"{say(trail)} runs in '{MAYBE}', which 'waits' uses for: time decides"
            yield look.found("reserved-word", (*trail, "in"), message, "rename the session")
    for name in look.catalogue.invariants:
        if name in VERDICTS:
            message = f"an invariant is named '{name}', which 'breaks' uses for a verdict"
            yield look.found("reserved-word", ("invariants", name), message, "rename it")
