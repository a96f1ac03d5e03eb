"""What a try of the sweep means: which outcome it is, and whether it is one that must not be."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from failure_matrix.catalogue.model import ABSENT, Action, Catalogue, Hazard, Moves, Scalar
from failure_matrix.catalogue.sql import parameters
from failure_matrix.database.answers import Result, ServerError
from failure_matrix.database.classify import KeyText, Misfit, Situation, state_of
from failure_matrix.evidence.declared import hazard_of, permits
from failure_matrix.evidence.records import Outcome
from failure_matrix.verify.bind import edges, event_deed
from failure_matrix.verify.judge import Standing
from failure_matrix.verify.moves import find_path
from failure_matrix.verify.refusal import answered, described, looks_refused
from failure_matrix.verify.values import references

Where = tuple[str, KeyText]

NO_DUTY = "its requirement did not hold"


@dataclass(frozen=True, kw_only=True)
class Try:
    """One try, rolled back: whether the caller's duty was done, what the server answered, what would be committed."""

    duty: bool
    answer: Result | None
    error: ServerError | None
    after: Situation | None

    @property
    def rows(self) -> int:
        """Rows affected or returned by the last statement."""
        return (self.answer.affected or 0) if self.answer is not None else 0


@dataclass(frozen=True, kw_only=True)
class Assessment:
    """What a try means for one cell. ``wrong`` says why it must not be, where it must not."""

    outcome: Outcome
    to: str | None = None
    rows: int | None = None
    sqlstate: str | None = None
    wrong: str | None = None
    note: str | None = None
    ruins: str | None = None  # "state id" that must be empty and would not be, or "invariant id"
    said: str | None = None  # what the record says of a refusal, where the action asks it


@dataclass(frozen=True, kw_only=True)
class _Change:
    where: Where
    old: str
    new: str | Misfit

    @property
    def name(self) -> str:
        return f"{self.where[0]} {', '.join(self.where[1])}"


@dataclass(frozen=True, kw_only=True)
class _Case:
    """One try in one cell, and what it would change."""

    action: Action
    state: str
    sources: Mapping[str, Scalar]
    tried: Try
    permitted: bool  # this caller, in this state
    hazard: Hazard | None
    binds: bool  # the action names its row; otherwise it chooses one
    changes: list[_Change]
    own: _Change | None  # the cell's own change


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
        case = _Case(
            action=action,
            state=state,
            sources=sources,
            tried=tried,
            permitted=permits(action, caller) and state in action.moves,
            hazard=hazard_of(action, caller, state),
            binds=binds_key(self._catalogue, action),
            changes=changes,
            own=self._own(action, key, sources, changes),
        )
        found = self._outcome(case)
        elsewhere = self._elsewhere(case)
        ruin, ruins = self._ruin(case, caller)
        wrong = (elsewhere if case.own is None else None) or found.wrong or elsewhere or ruin
        sqlstate = tried.error.sqlstate if tried.error is not None else None
        rows = tried.answer.affected if tried.answer is not None else None
        return replace(found, rows=rows, sqlstate=sqlstate, wrong=wrong, ruins=ruins)

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

    def _own(
        self, action: Action, key: KeyText, sources: Mapping[str, Scalar], changes: list[_Change]
    ) -> _Change | None:
        """The cell's own change: of its row, or a new row where the key is generated; not what ``also`` declares."""
        where = (action.subject, key)
        own = next((change for change in changes if change.where == where), None)
        if binds_key(self._catalogue, action):
            return own
        if own is not None and isinstance(own.new, str) and not self._leads(action.moves, sources, own.old, own.new):
            return None if self._leads(action.also, sources, own.old, own.new) else own
        if own is None and where not in self._standing:
            own = next((each for each in changes if each.where[0] == action.subject and each.old == ABSENT), None)
        return own

    def _outcome(self, case: _Case) -> Assessment:
        if case.own is None and (refused := self._unmoved(case)) is not None:
            return refused
        new = case.state if case.own is None else case.own.new
        if isinstance(new, Misfit):
            return Assessment(outcome=Outcome.MOVED, wrong=f"{case.own.name if case.own else 'it'} {misfit(new)}")
        return self._moved(case, new)

    def _unmoved(self, case: _Case) -> Assessment | None:
        """What it means that the cell's own row is as before; None for a declared move to the same state."""
        action, tried = case.action, case.tried
        looks = looks_refused(action, tried.answer, tried.error)
        stays = tried.error is None and self._stays(case, action.moves)
        if looks and not case.changes and not (case.permitted and stays and all(each.silent for each in looks)):
            return self._refused(case)
        if not case.binds and (case.changes or (tried.rows and self._takes_unseen(case))):
            return None if not case.changes and stays else Assessment(outcome=Outcome.TOOK_ANOTHER)
        if stays or (case.hazard is not None and tried.error is None and self._stays(case, case.hazard.moves)):
            return None
        return self._odd(case)

    def _stays(self, case: _Case, moves: Moves) -> bool:
        return self._leads(moves, case.sources, case.state, case.state)

    def _takes_unseen(self, case: _Case) -> bool:
        """Whether the action may take a row that looks as before."""
        return any(old == new for old, new in edges(case.action.moves, case.sources))

    def _refused(self, case: _Case) -> Assessment:
        if not case.tried.duty:
            return Assessment(outcome=Outcome.REFUSED, note=NO_DUTY)
        if case.permitted and case.binds:
            got = answered(case.tried.answer, case.tried.error)
            return Assessment(outcome=Outcome.REFUSED, wrong=f"it is permitted here, and was refused: {got}")
        if case.hazard is not None and case.binds and not case.permitted:
            return Assessment(outcome=Outcome.REFUSED, wrong=_healed(case.hazard))
        return Assessment(outcome=Outcome.REFUSED)

    def _odd(self, case: _Case) -> Assessment:
        """Nothing happened, and it does not look as a refusal should."""
        if not case.tried.duty:
            return Assessment(outcome=Outcome.REFUSED, note=NO_DUTY)
        got = answered(case.tried.answer, case.tried.error)
        if case.permitted:
            return Assessment(outcome=Outcome.REFUSED, wrong=f"it is permitted here, and nothing changed: {got}")
        wrong = f"it changed nothing, and its answer is {got}; a refusal looks like {described(case.action)}"
        return Assessment(outcome=Outcome.REFUSED, wrong=wrong)

    def _moved(self, case: _Case, new: str) -> Assessment:
        if not case.tried.duty:
            return Assessment(outcome=Outcome.HELD_BACK, to=new, note=NO_DUTY)
        if case.permitted and self._leads(case.action.moves, case.sources, case.state, new):
            return Assessment(outcome=Outcome.MOVED, to=new)
        if case.hazard is not None and self._leads(case.hazard.moves, case.sources, case.state, new):
            return Assessment(outcome=Outcome.UNSAFE, to=new)
        expected = f"declared is {', '.join(case.action.moves[case.state])}" if case.permitted else "it must be refused"
        stayed = "it was accepted" if case.own is None else "it changed the row"
        did = f"it moved to {new}" if new != case.state else stayed
        return Assessment(outcome=Outcome.MOVED, to=new, wrong=f"{did}; {expected}")

    def _leads(self, moves: Moves, sources: Mapping[str, Scalar], old: str, new: str) -> bool:
        """Whether a declared move goes from one state to the other, be it through the commit."""
        found = edges(moves, sources)
        path = find_path([old], new, deeds=[found], names=[""], meanwhile=(), since=self._commit)
        return path is not None

    def _elsewhere(self, case: _Case) -> str | None:
        """A change of another row that nothing declares."""
        for change in case.changes:
            if change is case.own or isinstance(change.new, Misfit):
                continue
            same = change.where[0] == case.action.subject
            if change.old == change.new and not same:
                continue
            allowed = [case.action.also] if same and case.binds else [case.action.also, case.action.moves]
            allowed += [case.hazard.moves] if case.hazard is not None and not same else []
            if not any(self._leads(moves, case.sources, change.old, change.new) for moves in allowed):
                if change.old == change.new:
                    return f"it also changed {change.name}, which stays {change.old}"
                return f"it also changed {change.name}: {change.old} -> {change.new}"
        return None

    def _ruin(self, case: _Case, caller: str | None) -> tuple[str | None, str | None]:
        """What must never be, in words and by name: no single state, an illegal one, a broken invariant."""
        for change in case.changes:
            if isinstance(change.new, Misfit):
                return f"{change.name} {misfit(change.new)}", None
            if change.new == ABSENT or not self._catalogue.states[change.new].illegal:
                continue
            hazard = hazard_of(case.action, caller, change.old)
            if hazard is None or not self._leads(hazard.moves, case.sources, change.old, change.new):
                return f"{change.name} is {change.new}, which must be empty", f"state {change.new}"
        if case.tried.after is not None:
            for id, rows in case.tried.after.offending.items():
                if self._offending.get(id) != rows:
                    return f"invariant {id} is broken: {rows[0]}", f"invariant {id}"
        return None, None


def _healed(hazard: Hazard) -> str:
    return f"the hazard that is declared here no longer happens ({hazard.because}): take it out of the catalogue"


def misfit(found: Misfit) -> str:
    """Why a key is in no single state, in words that follow its name."""
    match found.kind:
        case "unclassified":
            return "is in no state"
        case "ambiguous":
            return f"is in {len(found.states)} states at once: {', '.join(found.states)}"
        case "duplicate-key":
            return f"stands {len(found.rows)} times in the relation"


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
