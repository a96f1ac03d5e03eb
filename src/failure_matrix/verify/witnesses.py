"""Where scenarios showed what: the states that were entered and the declared moves that were made."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.evidence import declared
from failure_matrix.evidence.declared import MoveKey
from failure_matrix.evidence.records import ScenarioRecord, StepRecord, Verdict, Witness

Key = TypeVar("Key")


def good_steps(scenarios: Sequence[ScenarioRecord]) -> Iterator[tuple[ScenarioRecord, StepRecord]]:
    """The steps that showed what they should. A later failure does not undo them."""
    for scenario in scenarios:
        for step in scenario.steps:
            if step.verdict == Verdict.VERIFIED:
                yield scenario, step


def reached(catalogue: Catalogue, scenarios: Sequence[ScenarioRecord]) -> dict[str, list[Witness]]:
    """Where each state was entered: by a change, by what was given, or in a session's own view."""
    found: dict[str, list[Witness]] = {id: [] for id in catalogue.states}
    for scenario in scenarios:
        if not scenario.failures:
            _add(found, {seen.state for seen in scenario.given}, Witness(scenario=scenario.id, step=0))
    for scenario, step in good_steps(scenarios):
        entered = {change.to for change in step.moves if change.from_ != change.to}
        seen = {seen.state for view in step.seen_by.values() for seen in view}
        own = {id for id in seen if id in found and catalogue.states[id].uncommitted}
        broken = {seen.state for seen in step.then} if step.breaks else set()
        _add(found, entered | own | broken, Witness(scenario=scenario.id, step=step.number))
    return found


def reachable(catalogue: Catalogue, scenarios: Sequence[ScenarioRecord]) -> frozenset[str]:
    """The states that were entered anywhere."""
    return frozenset(id for id, found in reached(catalogue, scenarios).items() if found)


def moved(catalogue: Catalogue, scenarios: Sequence[ScenarioRecord]) -> dict[MoveKey, list[Witness]]:
    """Where each declared move was made; of a path longer than one move, nowhere: nobody saw what lay between."""
    found: dict[MoveKey, list[Witness]] = {key: [] for key in declared.moves(catalogue)}
    for scenario, step in good_steps(scenarios):
        made = {
            (hop.from_, hop.by, hop.to)
            for change in step.moves
            if not change.late
            for hop in change.path
            if hop.by is not None
        }
        _add(found, made, Witness(scenario=scenario.id, step=step.number))
    return found


def _add(into: dict[Key, list[Witness]], keys: Iterable[Key], witness: Witness) -> None:
    for key in keys:
        if key in into:
            into[key].append(witness)
