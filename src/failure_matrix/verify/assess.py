"""What a try of the sweep means: which outcome it is, and whether it is one that must not be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from failure_matrix.catalogue.model import ABSENT, Action, Catalogue, Hazard, Looks, Moves, Scalar
from failure_matrix.catalogue.sql import parameters
from failure_matrix.database.classify import KeyText, Misfit, Situation, state_of
from failure_matrix.database.connection import Result, ServerError
from failure_matrix.evidence.records import Outcome
from failure_matrix.verify.bind import edges, event_deed
from failure_matrix.verify.judge import Standing
from failure_matrix.verify.moves import Edge, find_path
from failure_matrix.verify.values import as_text, references

Where = tuple[str, KeyText]


@dataclass(frozen=True, kw_only=True)
class Try:
    """One try, rolled back: whether the caller's duty was done, what the server answered, what would be committed."""

    duty: bool
    answer: Result | None
    error: ServerError | None
    after: Situation | None


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """What a try means for one cell. ``wrong`` says why it must not be, where it must not."""

    outcome: Outcome
    to: str | None = None
    rows: int | None = None
    sqlstate: str | None = None
    wrong: str | None = None
    note: str | None = None


@dataclass(frozen=True, kw_only=True)
class _Change:
    where: Where
    old: str
    new: str | Misfit


class Assessor:
    """Assesses the tries of one situation."""

    def __init__(self, catalogue: Catalogue, before: Situation, standing: Standing) -> None:
        self._catalogue = catalogue
        self._standing = standing
        self._shown = {(row.subject, row.key): row.shown for row in before.rows}
        self._offending = before.offending
        self._committed = frozenset(id for id, state in catalogue.states.items() if not state.uncommitted)
        commit = catalogue.events.get("commit")
        self._commit = [("commit", event_deed("commit", commit, {}).edges)] if commit is not None else []

    def assess(
        self, id: str, caller: str | None, state: str, key: KeyText, sources: Mapping[str, Scalar], tried: Try
    ) -> Assessment:
        """What this try means for (state, action, caller)."""
        action = self._catalogue.actions[id]
        changes = list(self._changes(tried.after)) if tried.after is not None else []
        own = self._own(action, key, changes)
        rows = tried.answer.affected if tried.answer is not None else None
        found = self._outcome(action, caller, state, sources, tried, own, bool(changes))
        wrong = (
            found.wrong
            or self._elsewhere(action, sources, changes, own)
            or self._ruin(action, caller, sources, tried, changes)
        )
        return Assessment(
            outcome=found.outcome,
            to=found.to,
            rows=rows,
            sqlstate=tried.error.sqlstate if tried.error is not None else None,
            wrong=wrong,
            note=found.note,
        )

    def _changes(self, after: Situation) -> Iterator[_Change]:
        """Every key whose state or shown columns changed, as it would be committed."""
        rows = {subject: after.of(subject) for subject in self._catalogue.subjects}
        now = {(subject, key): found for subject, keys in rows.items() for key, found in keys.items()}
        for where in sorted({*now, *self._standing}):
            old, found = self._standing.get(where, ABSENT), now.get(where)
            new = ABSENT if found is None else state_of(found, self._committed)
            if isinstance(old, Misfit):
                continue
            if new != old or (found is not None and found[0].shown != self._shown.get(where)):
                yield _Change(where=where, old=old, new=new)

    def _own(self, action: Action, key: KeyText, changes: list[_Change]) -> _Change | None:
        """The cell's own change: of its row, or a new row where the key is generated."""
        where = (action.subject, key)
        own = next((change for change in changes if change.where == where), None)
        if own is None and where not in self._standing and not binds_key(self._catalogue, action):
            new = (each for each in changes if each.where[0] == action.subject and each.old == ABSENT)
            own = next(new, None)
        return own

    def _outcome(
        self,
        action: Action,
        caller: str | None,
        state: str,
        sources: Mapping[str, Scalar],
        tried: Try,
        own: _Change | None,
        anything: bool,
    ) -> Assessment:
        permitted = permits(action, caller) and state in action.moves
        hazard = hazard_of(action, caller, state)
        refused = own is None and _looks_refused(action, tried, changed=anything)
        if own is None and refused:
            return self._refused(action, permitted, hazard, tried)
        if own is None and anything and not binds_key(self._catalogue, action):
            return Assessment(outcome=Outcome.TOOK_ANOTHER)
        new = state if own is None else own.new
        if tried.error is not None or (own is None and not self._leads(action.moves, sources, state, state)):
            if hazard is not None and tried.error is None and self._leads(hazard.moves, sources, state, state):
                return Assessment(outcome=Outcome.UNSAFE, to=state)
            return self._odd(action, tried, permitted)
        if isinstance(new, Misfit):
            return Assessment(outcome=Outcome.MOVED, wrong=f"it leads to {new.kind} {' and '.join(new.states)}".strip())
        return self._moved(action, sources, state, new, permitted, hazard, tried.duty)

    def _refused(self, action: Action, permitted: bool, hazard: Hazard | None, tried: Try) -> Assessment:
        if not tried.duty:
            return Assessment(outcome=Outcome.REFUSED, note="its requirement did not hold")
        if permitted and binds_key(self._catalogue, action):
            return Assessment(outcome=Outcome.REFUSED, wrong="it is permitted here, and was refused")
        if hazard is not None:
            return Assessment(outcome=Outcome.REFUSED, wrong="the hazard that is declared here no longer happens")
        return Assessment(outcome=Outcome.REFUSED)

    def _odd(self, action: Action, tried: Try, permitted: bool) -> Assessment:
        """Nothing happened, and it does not look as a refusal should."""
        if not tried.duty:
            return Assessment(outcome=Outcome.REFUSED, note="its requirement did not hold")
        got = str(tried.error) if tried.error else f"{tried.answer.affected if tried.answer else 0} rows"
        if permitted:
            return Assessment(outcome=Outcome.REFUSED, wrong=f"it is permitted here, and changed nothing: {got}")
        looks = " or ".join(map(_described, action.refusal.looks))
        return Assessment(outcome=Outcome.REFUSED, wrong=f"refused, and it looks like {got}; declared is {looks}")

    def _moved(
        self,
        action: Action,
        sources: Mapping[str, Scalar],
        state: str,
        new: str,
        permitted: bool,
        hazard: Hazard | None,
        duty: bool,
    ) -> Assessment:
        if not duty:
            return Assessment(outcome=Outcome.HELD_BACK, to=new)
        if permitted and self._leads(action.moves, sources, state, new):
            return Assessment(outcome=Outcome.MOVED, to=new)
        if hazard is not None and self._leads(hazard.moves, sources, state, new):
            return Assessment(outcome=Outcome.UNSAFE, to=new)
        expected = f"declared is {', '.join(action.moves[state])}" if permitted else "it must be refused"
        did = f"it moved to {new}" if new != state else "it changed the row"
        return Assessment(outcome=Outcome.MOVED, to=new, wrong=f"{did}; {expected}")

    def _leads(self, moves: Moves, sources: Mapping[str, Scalar], old: str, new: str) -> bool:
        found = edges(moves, sources)
        return (old, new) in found or self._path(found, old, new)

    def _path(self, found: frozenset[Edge], old: str, new: str) -> bool:
        path = find_path([old], new, deeds=[found], names=[""], meanwhile=(), since=self._commit)
        return path is not None

    def _elsewhere(
        self, action: Action, sources: Mapping[str, Scalar], changes: list[_Change], own: _Change | None
    ) -> str | None:
        """A change of another row that nothing declares."""
        chooses = not binds_key(self._catalogue, action)
        for change in changes:
            if change is own or isinstance(change.new, Misfit):
                continue
            same = change.where[0] == action.subject
            allowed = dict(action.also) if same and not chooses else {**action.also, **action.moves}
            if change.old == change.new and not same:
                continue
            if not self._leads(allowed, sources, change.old, change.new):
                name = f"{change.where[0]} {', '.join(change.where[1])}"
                return f"it also changed {name}: {change.old} -> {change.new}"
        return None

    def _ruin(
        self, action: Action, caller: str | None, sources: Mapping[str, Scalar], tried: Try, changes: list[_Change]
    ) -> str | None:
        """What must never be: no single state, an illegal one, a broken invariant."""
        for change in changes:
            name = f"{change.where[0]} {', '.join(change.where[1])}"
            if isinstance(change.new, Misfit):
                return f"{name} is {change.new.kind} {' and '.join(change.new.states)}".strip()
            if change.new == ABSENT or not self._catalogue.states[change.new].illegal:
                continue
            hazard = hazard_of(action, caller, change.old)
            if hazard is None or not self._leads(hazard.moves, sources, change.old, change.new):
                return f"{name} is {change.new}, which must be empty"
        if tried.after is not None:
            for id, rows in tried.after.offending.items():
                if self._offending.get(id) != rows:
                    return f"invariant {id} is broken: {rows[0]}"
        return None


def permits(action: Action, caller: str | None) -> bool:
    """Whether the caller is permitted; without ``permits`` everyone is."""
    return action.permits is None or caller in action.permits


def hazard_of(action: Action, caller: str | None, state: str) -> Hazard | None:
    """The hazard that is declared for this caller in this state."""
    for hazard in action.hazards:
        if hazard.caller in (None, caller) and state in hazard.moves:
            return hazard
    return None


def binds_key(catalogue: Catalogue, action: Action) -> bool:
    """Whether the action names its row: every key column, or an offer of the same column, is a parameter of it."""
    used = set(parameters(action.sql)) if action.sql is not None else set()
    if action.store is not None:
        used |= references(action.store.target)
    subject = catalogue.subjects[action.subject]
    names: dict[str, set[str]] = {}
    for name, column in (*subject.key.items(), *subject.offers.items()):
        names.setdefault(column, set()).add(name)
    return all(names[column] & used for column in subject.key.values())


def _looks_refused(action: Action, tried: Try, *, changed: bool) -> bool:
    return not changed and any(_matches(looks, tried) for looks in action.refusal.looks)


def _matches(looks: Looks, tried: Try) -> bool:
    error, answer = tried.error, tried.answer
    if looks.error is not None:
        if error is None or error.sqlstate != looks.error.sqlstate:
            return False
        return looks.error.constraint in (None, error.constraint)
    if error is not None:
        return False
    rows = answer.affected if answer is not None else 0
    if looks.rows is not None and rows != looks.rows:
        return False
    if looks.returns is not None:
        found = [tuple(row) for row in (answer.rows if answer is not None else ())]
        wanted = [tuple(as_text(v) for v in (row if isinstance(row, tuple) else row.values())) for row in looks.returns]
        return found == wanted
    return True


def _described(looks: Looks) -> str:
    if looks.error is not None:
        return f"error {looks.error.sqlstate}"
    if looks.returns is not None:
        return "the rows of refusal.looks"
    return "a row that changes nothing" if looks.silent else f"{looks.rows} rows"
