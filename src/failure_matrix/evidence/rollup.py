"""What its parts say of a state: it is as bad as the worst of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from failure_matrix.catalogue.model import Catalogue
from failure_matrix.evidence.records import (
    CellRecord,
    GuardRecord,
    MechanismRecord,
    MoveRecord,
    ObservationRecord,
    ScenarioRecord,
    Verdict,
)

Judged = tuple[Verdict, str | None]


def by_state(
    catalogue: Catalogue,
    *,
    moves: Iterable[MoveRecord] = (),
    cells: Iterable[CellRecord] = (),
    guards: Iterable[GuardRecord] = (),
    observations: Iterable[ObservationRecord] = (),
) -> dict[str, list[Judged]]:
    """What is said of each state's moves, cells, guards of the actions that leave it, and observations."""
    found: dict[str, list[Judged]] = {}
    parts = (*_moves(catalogue, moves), *_cells(cells), *_guards(catalogue, guards), *_observations(observations))
    for state, verdict, because in parts:
        if verdict is not None:
            found.setdefault(state, []).append((verdict, because))
    return found


def mechanisms(catalogue: Catalogue, scenarios: Iterable[ScenarioRecord]) -> Iterator[MechanismRecord]:
    """Each mechanism with the worst of its scenarios."""
    found = {record.id: record for record in scenarios}
    for id, mechanism in catalogue.mechanisms.items():
        ran = [found[each] for each in mechanism.scenarios if each in found]
        said = [(each.verdict, f"{each.id}: {each.because}" if each.because else None) for each in ran]
        if len(ran) < len(mechanism.scenarios):
            said.append((Verdict.INCOMPLETE, f"only {len(ran)} of its {len(mechanism.scenarios)} scenarios ran"))
        verdict, because = worst_of(said) if said else (Verdict.UNREACHED, "no scenario shows it")
        yield MechanismRecord(id=id, verdict=verdict, because=because, scenarios=mechanism.scenarios)


def worst_of(said: Sequence[Judged]) -> Judged:
    """The first of the worst."""
    return max(said, key=lambda each: each[0].badness)


_Part = tuple[str, Verdict | None, str]  # of a state


def _moves(catalogue: Catalogue, moves: Iterable[MoveRecord]) -> Iterator[_Part]:
    pitfalls = {name for name, action in catalogue.actions.items() if action.instead_of is not None}
    for move in moves:
        if move.by not in pitfalls:
            yield move.from_, move.verdict, f"the move by {move.by} to {move.to}: {move.because}"


def _cells(cells: Iterable[CellRecord]) -> Iterator[_Part]:
    for cell in cells:
        yield cell.state, cell.verdict, f"{who(cell.action, cell.caller)}: {cell.because}"


def _guards(catalogue: Catalogue, guards: Iterable[GuardRecord]) -> Iterator[_Part]:
    for guard in guards:
        for state in catalogue.actions[guard.action].moves:
            yield state, guard.verdict, f"{guard.action}, guard {guard.guard}: {guard.because}"


def _observations(observations: Iterable[ObservationRecord]) -> Iterator[_Part]:
    for each in observations:
        yield each.state, each.verdict, f"{numbered(each)}: {each.because}"


def who(action: str, caller: str | None) -> str:
    """An action with its caller: ``publish as current``."""
    return f"{action} as {caller}" if caller else action


def numbered(record: ObservationRecord) -> str:
    """An observation by its number, counted from 1, or the cost."""
    return "cost" if record.observation is None else f"observation {record.observation + 1}"
