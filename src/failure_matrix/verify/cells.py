"""From the sweep's tallies to a record for each (state, action, caller): expected, observed, and why not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from failure_matrix.catalogue.model import ABSENT, Action, Catalogue
from failure_matrix.evidence import declared
from failure_matrix.evidence.declared import Cell, hazard_of
from failure_matrix.evidence.declared import expected as expected_of
from failure_matrix.evidence.records import CellRecord, Outcome, Verdict, Witness
from failure_matrix.verify.assess import NO_DUTY, Assessment, binds_key
from failure_matrix.verify.tally import Tally

_TELLING = (  # the outcome that a cell shows, where its tries gave several and none is the expected one
    Outcome.UNSAFE, Outcome.HELD_BACK, Outcome.MOVED, Outcome.TOOK_ANOTHER, Outcome.REFUSED, Outcome.CANNOT_CALL,
    Outcome.NO_SUCH_CALLER, Outcome.NOT_TRIED,
)  # fmt: skip
_NOBODY = (Outcome.NO_SUCH_CALLER, Outcome.CANNOT_CALL)

Moved = Mapping[tuple[str, str, str], Sequence[Witness]]  # (from, by, to) -> where a scenario's own step made the move


def cells(
    catalogue: Catalogue, tallies: Mapping[Cell, Tally], moved: Moved, reached: Mapping[str, Sequence[Witness]]
) -> Iterator[CellRecord]:
    """A record for every cell of the catalogue."""
    for cell in declared.cells(catalogue):
        tally = tallies.get(cell)
        yield _untried(catalogue, cell, reached) if tally is None else _tried(catalogue, cell, tally, moved)


def _untried(catalogue: Catalogue, cell: Cell, reached: Mapping[str, Sequence[Witness]]) -> CellRecord:
    state, id, caller = cell
    subject = catalogue.actions[id].subject
    verdict: Verdict | None = None
    if state == ABSENT and not catalogue.subjects[subject].spare:
        because = f"{subject} has no spare key to try it with"
    elif state == ABSENT:
        verdict, because = Verdict.UNREACHED, f"wherever a scenario rests, a row has the spare key of {subject}"
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
        expected=expected_of(catalogue.actions[id], caller, state),
        observed=Outcome.NOT_TRIED,
        verdict=verdict,
        because=because,
    )


def _tried(catalogue: Catalogue, cell: Cell, tally: Tally, moved: Moved) -> CellRecord:
    """A cell that the sweep came to; its verdict is None where nobody could make the call."""
    state, id, caller = cell
    action = catalogue.actions[id]
    expected = expected_of(action, caller, state)
    if tally.bad is not None:
        assessment, witness = tally.bad
        return _record(cell, expected, assessment, tally, Verdict.BROKEN, assessment.wrong, (witness,))
    looked_for = Outcome.HELD_BACK if expected is Outcome.REFUSED else expected
    shown = next(outcome for outcome in (looked_for, *_TELLING) if outcome in tally.first)
    assessment, witness = tally.first[shown]
    if shown is Outcome.NOT_TRIED:
        waited = f"wherever it was tried, {assessment.note}"
        return _record(cell, expected, assessment, tally, Verdict.UNREACHED, waited, (witness,))
    if shown is expected is Outcome.MOVED and Outcome.HELD_BACK in tally.first:
        besides = "where its requirement does not hold, only the caller's duty holds it back"
        witnesses = (witness, tally.first[Outcome.HELD_BACK][1])
        return _record(cell, expected, assessment, tally, Verdict.VERIFIED, besides, witnesses)
    if expected is Outcome.MOVED and shown is not Outcome.MOVED:
        return _permitted(catalogue, cell, tally, assessment, witness, moved)
    if expected is Outcome.UNSAFE and shown is not Outcome.UNSAFE:
        verdict, because = _never_unsafe(action, cell, assessment)
        return _record(cell, expected, assessment, tally, verdict, because, (witness,))
    if shown in _NOBODY:
        return _record(cell, expected, assessment, tally, None, _why_nobody(assessment), (witness,))
    return _record(cell, expected, assessment, tally, Verdict.VERIFIED, assessment.note, (witness,))


def _why_nobody(assessment: Assessment) -> str:
    return f"{assessment.outcome}: {assessment.note}" if assessment.note else str(assessment.outcome)


def _never_unsafe(action: Action, cell: Cell, assessment: Assessment) -> tuple[Verdict | None, str | None]:
    """What to say of a hazard that no try showed. One that is declared for everyone needs not every caller."""
    state, _, caller = cell
    hazard = hazard_of(action, caller, state)
    if assessment.outcome in _NOBODY and hazard is not None and hazard.caller is None:
        return None, _why_nobody(assessment)
    if assessment.outcome in _NOBODY:
        return Verdict.UNREACHED, "a hazard is declared here, and no try had such a caller"
    if assessment.outcome is Outcome.HELD_BACK or assessment.note == NO_DUTY:
        return Verdict.UNREACHED, "a hazard is declared here, and its requirement never held"
    return Verdict.BROKEN, "the hazard that is declared here did not happen"


def _permitted(
    catalogue: Catalogue, cell: Cell, tally: Tally, assessment: Assessment, witness: Witness, moved: Moved
) -> CellRecord:
    """A permitted cell that no try moved: the caller's duty never held, or the row was never the one taken."""
    state, id, caller = cell
    own = [(to, found) for (source, by, to), found in moved.items() if (source, by) == (state, id) and found]
    if assessment.outcome in _NOBODY and (caller is not None or not own):
        return _record(cell, Outcome.MOVED, assessment, tally, None, _why_nobody(assessment), (witness,))
    if own:
        to, found = own[0]
        made = Assessment(outcome=Outcome.MOVED, to=to)
        because = f"by a scenario's own step; in the sweep {assessment.note or 'its row was never the one taken'}"
        return _record(cell, Outcome.MOVED, made, tally, Verdict.VERIFIED, because, (found[0],))
    binds = binds_key(catalogue, catalogue.actions[id])
    because = (
        f"permitted, and never shown: {assessment.note or assessment.outcome}" if binds else "its row was never taken"
    )
    return _record(cell, Outcome.MOVED, assessment, tally, Verdict.UNREACHED, because, (witness,))


def _record(
    cell: Cell,
    expected: Outcome,
    assessment: Assessment,
    tally: Tally,
    verdict: Verdict | None,
    because: str | None,
    witnesses: tuple[Witness, ...],
) -> CellRecord:
    state, id, caller = cell
    own = [assessment.to] if assessment.to else []
    return CellRecord(
        state=state,
        action=id,
        caller=caller,
        expected=expected,
        observed=assessment.outcome,
        to=tuple(dict.fromkeys([*own, *tally.to.get(assessment.outcome, ())])),
        rows=assessment.rows,
        sqlstate=assessment.sqlstate,
        answers=tuple(tally.said),
        tries=tally.tries,
        verdict=verdict,
        because=because,
        witnesses=witnesses,
    )
