"""What a catalogue declares and a verification must show: its moves, its cells, its observations."""

from __future__ import annotations

from collections.abc import Iterator

from failure_matrix.catalogue.model import ABSENT, Action, Catalogue, Event, Hazard, Sql
from failure_matrix.evidence.records import Outcome

MoveKey = tuple[str, str, str]  # from, by, to
Cell = tuple[str, str, str | None]  # state, action, caller; None: the catalogue declares no callers
COST = -1  # instead of an observation's number


def moves(catalogue: Catalogue) -> Iterator[MoveKey]:
    """Every declared move, a ``$parameter`` as target left out, once."""
    found: dict[MoveKey, None] = {}
    nouns: dict[str, Action | Event] = {**catalogue.actions, **catalogue.events}
    for by, noun in nouns.items():
        for source, targets in noun.moves.items():
            found.update(((source, by, target), None) for target in targets if not target.startswith("$"))
    yield from (key for key in found if key[0] == ABSENT or key[0] in catalogue.states)


def cells(catalogue: Catalogue) -> Iterator[Cell]:
    """Every cell, in the catalogue's order; illegal states and the wrong ways have none."""
    callers: tuple[str | None, ...] = tuple(catalogue.callers) or (None,)
    for id, action in catalogue.actions.items():
        if action.instead_of is None:
            states = [state for state, body in catalogue.states_of(action.subject).items() if not body.illegal]
            yield from ((state, id, caller) for state in (ABSENT, *states) for caller in callers)


def observations(catalogue: Catalogue, state: str) -> Iterator[tuple[int, Sql]]:
    """The SQL of a state's observations with their numbers, and of its cost."""
    body = catalogue.states[state]
    for number, observation in enumerate(body.observe):
        if observation.sql is not None:
            yield number, observation.sql
    if body.retention is not None and body.retention.cost is not None:
        yield COST, body.retention.cost


def expected(action: Action, caller: str | None, state: str) -> Outcome:
    """What must come of a try."""
    if permits(action, caller) and state in action.moves:
        return Outcome.MOVED
    return Outcome.UNSAFE if hazard_of(action, caller, state) is not None else Outcome.REFUSED


def permits(action: Action, caller: str | None) -> bool:
    """Whether the caller is permitted; without ``permits`` everyone is."""
    return action.permits is None or caller in action.permits


def hazard_of(action: Action, caller: str | None, state: str) -> Hazard | None:
    """The hazard that is declared for this caller in this state."""
    for hazard in action.hazards:
        if hazard.caller in (None, caller) and state in hazard.moves:
            return hazard
    return None
