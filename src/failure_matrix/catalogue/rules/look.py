"""A catalogue as the rules look at it: its ids, its scenarios in their chains, where things stand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from failure_matrix.catalogue.findings import Finding
from failure_matrix.catalogue.model import Catalogue, Moves, Scenario, Step
from failure_matrix.catalogue.reading import Trail
from failure_matrix.catalogue.rulebook import finding

ENDINGS = ("commit", "rollback")  # events that are there without being declared
VERDICTS = ("illegal-state", "ambiguous", "unclassified", "undeclared-move")  # what a step may break beside invariants
OTHERWISE = "otherwise"
MAYBE = "maybe"
NOW = "now"  # the clock, as parameter and as $name


@dataclass(frozen=True, kw_only=True)
class Look:
    """``ids`` are those that the YAML defines, also where a definition could not be read."""

    catalogue: Catalogue
    ids: Mapping[str, frozenset[str]] = field(default_factory=dict)

    def found(self, rule: str, trail: Trail, message: str, hint: str) -> Finding:
        """Make a finding at the place of ``trail``, or of what encloses it."""
        return finding(rule, self.catalogue.place(*trail), message, hint)

    def known(self, section: str) -> list[str]:
        """Give the ids of one top-level key, in the author's order."""
        read = dict.fromkeys(getattr(self.catalogue, section))
        return list(read | dict.fromkeys(sorted(self.ids.get(section, frozenset()))))

    @cached_property
    def chains(self) -> Mapping[str, tuple[str, ...]]:
        """Give each scenario with those it comes after, itself first; a cycle ends where it closes."""
        chains = {}
        for name in self.catalogue.scenarios:
            chain: dict[str, None] = {}
            at: str | None = name
            while at is not None and at in self.catalogue.scenarios and at not in chain:
                chain[at] = None
                at = self.catalogue.scenarios[at].after
            chains[name] = tuple(chain)
        return chains

    def steps(self) -> Iterator[tuple[Trail, Step]]:
        """Give every step with its trail."""
        for name, scenario in self.catalogue.scenarios.items():
            for number, step in enumerate(scenario.steps):
                yield ("scenarios", name, "steps", number), step

    def before(self, name: str) -> Iterator[Scenario]:
        """Give the scenarios that ran before one, first the one it comes after."""
        for other in self.chains[name][1:]:
            yield self.catalogue.scenarios[other]

    @cached_property
    def sessions(self) -> Mapping[str, tuple[str, ...]]:
        """Give the sessions that have steps in each scenario or in what ran before it."""
        return {
            name: tuple(
                dict.fromkeys(
                    step.in_
                    for other in self.chains[name]
                    for step in self.catalogue.scenarios[other].steps
                    if step.in_ is not None
                )
            )
            for name in self.catalogue.scenarios
        }

    def moves(self) -> Iterator[tuple[Trail, Moves]]:
        """Give every ``moves`` and ``also`` with its trail: what may happen."""
        for name, action in self.catalogue.actions.items():
            yield ("actions", name, "moves"), action.moves
            yield ("actions", name, "also"), action.also
        for name, event in self.catalogue.events.items():
            yield ("events", name, "moves"), event.moves

    def every_move(self) -> Iterator[tuple[Trail, Moves]]:
        """Give the moves of hazards too, which happen and should not."""
        yield from self.moves()
        for name, action in self.catalogue.actions.items():
            for number, hazard in enumerate(action.hazards):
                yield ("actions", name, "hazards", number, "moves"), hazard.moves

    def edges(self) -> Iterator[tuple[Trail, str, str]]:
        """Give every declared move: where it stands, from, to; those to a ``$parameter`` left out."""
        for trail, moves in self.every_move():
            for source, targets in moves.items():
                for number, target in enumerate(targets):
                    if not target.startswith("$"):
                        yield (*trail, source, number), source, target
