"""From the sweep's tallies to a record for each (state, action, caller): expected, observed, and why not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from failure_matrix.catalogue.model import ABSENT, Action, Catalogue
from failure_matrix.evidence.records import CellRecord, Outcome, Verdict, Witness
from failure_matrix.verify.assess import Assessment, binds_key, hazard_of, permits
from failure_matrix.verify.sweep import Cell, Tally

_TELLING = (  # the outcome that a cell shows, where its tries gave several
    Outcome.UNSAFE, Outcome.HELD_BACK, Outcome.MOVED, Outcome.REFUSED, Outcome.TOOK_ANOTHER, Outcome.CANNOT_CALL,
    Outcome.NO_SUCH_CALLER,
)  # fmt: skip

Moved = Mapping[tuple[str, str, str], Sequence[Witness]]  # (from, by, to) -> where a scenario's own step made the move


def cells(
    catalogue: Catalogue, tallies: Mapping[Cell, Tally], moved: Moved, reached: Mapping[str, Sequence[Witness]]
) -> Iterator[CellRecord]:
    """Every cell of the catalogue, in its order; illegal states and the wrong ways have none."""
    callers: tuple[str | None, ...] = tuple(catalogue.callers) or (None,)
    for id, action in catalogue.actions.items():
        if action.instead_of is not None:
            continue
        states = [state for state, body in catalogue.states_of(action.subject).items() if not body.illegal]
        for state in (ABSENT, *states):
            for caller in callers:
                tally = tallies.get((state, id, caller))
                if tally is None:
                    yield _untried(catalogue, (state, id, caller), reached)
                else:
                    yield _tried(catalogue, (state, id, caller), tally, moved)


def _expected(action: Action, caller: str | None, state: str) -> Outcome:
    if permits(action, caller) and state in action.moves:
        return Outcome.MOVED
    return Outcome.UNSAFE if hazard_of(action, caller, state) is not None else Outcome.REFUSED


def _untried(catalogue: Catalogue, cell: Cell, reached: Mapping[str, Sequence[Witness]]) -> CellRecord:
    state, id, caller = cell
    action = catalogue.actions[id]
    verdict: Verdict | None = None
    if state == ABSENT:
        because = f"{action.subject} has no spare key to try it with"
    elif catalogue.states[state].uncommitted:
        because = "open transaction: nobody but its own session can see this state"
    elif reached.get(state):
        verdict, because = Verdict.UNREACHED, "reached only while a transaction was open"
    else:
        verdict, because = Verdict.UNREACHED, "no scenario gets there"
    return CellRecord(
        state=state,
        action=id,
        caller=caller,
        expected=_expected(action, caller, state),
        observed=Outcome.NOT_TRIED,
        verdict=verdict,
        because=because,
    )


def _tried(catalogue: Catalogue, cell: Cell, tally: Tally, moved: Moved) -> CellRecord:
    state, id, caller = cell
    action = catalogue.actions[id]
    expected = _expected(action, caller, state)
    if tally.bad is not None:
        assessment, witness = tally.bad
        return _record(cell, expected, assessment, tally, Verdict.BROKEN, assessment.wrong, (witness,))
    shown = next(outcome for outcome in _TELLING if outcome in tally.first)
    assessment, witness = tally.first[shown]
    if expected == Outcome.MOVED and shown != Outcome.MOVED:
        return _permitted(catalogue, cell, tally, assessment, witness, moved)
    if expected == Outcome.UNSAFE and shown != Outcome.UNSAFE:
        because = "the hazard that is declared here did not happen"
        return _record(cell, expected, assessment, tally, Verdict.BROKEN, because, (witness,))
    return _record(cell, expected, assessment, tally, Verdict.VERIFIED, assessment.note, (witness,))


def _permitted(
    catalogue: Catalogue, cell: Cell, tally: Tally, assessment: Assessment, witness: Witness, moved: Moved
) -> CellRecord:
    """A permitted cell that no try moved: the caller's duty never held, or the row was never the one taken."""
    state, id, _ = cell
    own = [(to, found) for (source, by, to), found in moved.items() if (source, by) == (state, id) and found]
    if own:
        to, found = own[0]
        made = Assessment(outcome=Outcome.MOVED, to=to)
        return _record(cell, Outcome.MOVED, made, tally, Verdict.VERIFIED, "by a scenario's own step", (found[0],))
    if assessment.outcome in (Outcome.NO_SUCH_CALLER, Outcome.CANNOT_CALL):
        return _record(cell, Outcome.MOVED, assessment, tally, Verdict.VERIFIED, assessment.note, (witness,))
    because = "permitted, and never shown" if binds_key(catalogue, catalogue.actions[id]) else "its row was never taken"
    return _record(cell, Outcome.MOVED, assessment, tally, Verdict.UNREACHED, because, (witness,))


def _record(
    cell: Cell,
    expected: Outcome,
    assessment: Assessment,
    tally: Tally,
    verdict: Verdict,
    because: str | None,
    witnesses: tuple[Witness, ...],
) -> CellRecord:
    state, id, caller = cell
    reached = [found.to for found, _ in tally.first.values() if found.outcome == assessment.outcome and found.to]
    return CellRecord(
        state=state,
        action=id,
        caller=caller,
        expected=expected,
        observed=assessment.outcome,
        to=tuple(dict.fromkeys([*([assessment.to] if assessment.to else []), *reached])),
        rows=assessment.rows,
        sqlstate=assessment.sqlstate,
        tries=tally.tries,
        verdict=verdict,
        because=because,
        witnesses=witnesses,
    )
