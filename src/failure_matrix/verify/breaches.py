"""What must hold after every step whatever the step says: one state each, legal, declared, no invariant broken."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from failure_matrix.catalogue.model import ABSENT, Catalogue, Place
from failure_matrix.database.classify import Misfit, Row, Situation
from failure_matrix.evidence.records import Failure, FailureKind
from failure_matrix.verify.judge import Standing
from failure_matrix.verify.ledger import Undeclared


@dataclass(frozen=True, kw_only=True)
class Breach:
    """One thing that must not be. ``kind_id`` is the word for it in a step's ``breaks``."""

    kind_id: str
    kind: FailureKind
    message: str
    expected: str
    observed: str
    states: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()
    invariants: tuple[str, ...] = ()

    def failure(self, where: str, place: Place | str) -> Failure:
        at = place if isinstance(place, str) else f"{place.path}:{place.line}"
        return Failure(
            kind=self.kind,
            message=f"{where}: {self.message}",
            expected=self.expected,
            observed=self.observed,
            place=at,
            states=self.states,
            subjects=self.subjects,
            invariants=self.invariants,
        )


def misfits(catalogue: Catalogue, situation: Situation, standing: Standing, before: Standing) -> list[Breach]:
    """Keys in no state, in several, twice in the relation, or newly in a state that must be empty."""
    found = []
    for (subject, key), state in standing.items():
        name = f"{subject} {', '.join(key)}"
        if isinstance(state, Misfit):
            found.append(_misfit(catalogue, subject, name, state))
        elif catalogue.states[state].illegal and before.get((subject, key)) != state:
            row = _shown(catalogue, situation.of(subject)[key][0])
            found.append(
                Breach(
                    kind_id="illegal-state",
                    kind="illegal-state",
                    message=f"{name} is {state}, which must be empty",
                    expected=f"no {subject} is {state}",
                    observed=f"{name} is {state}: {row}",
                    states=(state,),
                )
            )
    return found


def _misfit(catalogue: Catalogue, subject: str, name: str, misfit: Misfit) -> Breach:
    row = "; ".join(_shown(catalogue, row) for row in misfit.rows)
    match misfit.kind:
        case "unclassified":
            what = "is in no state"
        case "ambiguous":
            what = f"is in {len(misfit.states)} states at once: {', '.join(misfit.states)}"
        case "duplicate-key":
            what = f"stands {len(misfit.rows)} times in the relation"
    return Breach(
        kind_id=misfit.kind,
        kind=misfit.kind,
        message=f"{misfit.kind}: {name} {what}",
        expected=f"every {subject} is in exactly one state",
        observed=f"{name} {what}: {row}",
        states=misfit.states,
        subjects=() if misfit.states else (subject,),
    )


def undeclared(catalogue: Catalogue, changes: Iterable[Undeclared], situation: Situation) -> list[Breach]:
    """Changes of state that no declared path leads to."""
    found = []
    for change in changes:
        subject, key = change.where
        old, new = change.edge
        name = f"{subject} {', '.join(key)}"
        by = f"{', '.join(dict.fromkeys(change.deeds))} declares no such move" if change.deeds else "no action did it"
        rows = situation.of(subject).get(key)
        row = f": {_shown(catalogue, rows[0])}" if rows else ""
        found.append(
            Breach(
                kind_id="undeclared-move",
                kind="undeclared-move",
                message=f"undeclared: {name} went {old} -> {new}; {by}",
                expected=f"{name} stays {old}, or a declared move",
                observed=f"{name} is {new}{row}",
                states=tuple(state for state in (old, new) if state != ABSENT),
            )
        )
    return found


def invariants(catalogue: Catalogue, situation: Situation) -> list[Breach]:
    """Invariants that returned a row."""
    found = []
    for id, rows in situation.offending.items():
        more = f" and {len(rows) - 3} more" if len(rows) > 3 else ""
        found.append(
            Breach(
                kind_id=id,
                kind="invariant",
                message=f"invariant {id} is broken: {catalogue.invariants[id].title}",
                expected="no offending row",
                observed="; ".join(rows[:3]) + more,
                invariants=(id,),
            )
        )
    return found


def _shown(catalogue: Catalogue, row: Row) -> str:
    subject = catalogue.subjects[row.subject]
    columns = (
        (column, value) for column, value in zip(subject.show, row.shown, strict=True) if column not in subject.hide
    )
    return ", ".join(f"{column.rsplit('.', 1)[-1]} {'null' if value is None else value}" for column, value in columns)
