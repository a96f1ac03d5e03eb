"""Each guard removed alone, and what uses it run again: somebody must notice.

First the scenarios that do the action, as listed, the ones with fewest steps first; then the sweep of the action alone,
in every situation that is known; then the scenarios in all their orders. The first that notices ends the search.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from failure_matrix.catalogue.guards import Guard, Part, compares, guards, without
from failure_matrix.catalogue.model import ABSENT, Action, Catalogue, Sql
from failure_matrix.catalogue.sql import statement
from failure_matrix.database.answers import ServerError, Value
from failure_matrix.database.connection import Connection
from failure_matrix.evidence.records import Failure, GuardOutcome, GuardPart, GuardRecord, ScenarioRecord, Verdict
from failure_matrix.verify.fit import samples
from failure_matrix.verify.functions import definitions
from failure_matrix.verify.ground import Ground
from failure_matrix.verify.sweep import Sweep

_INSUFFICIENT_PRIVILEGE = "42501"  # of class 42, and yet a refusal: of this row or this role, not of the text


class Run(Protocol):
    """Plays one scenario of a catalogue on the ground."""

    def __call__(
        self, catalogue: Catalogue, id: str, sweep: Sweep | None = None, *, orders: bool = True
    ) -> ScenarioRecord: ...


@dataclass(frozen=True, kw_only=True)
class Removal:
    """A guard with what it takes to remove it: another statement, or another database."""

    action: str
    text: str
    part: GuardPart
    guard: Guard | None = None
    function: str | None = None
    instead: Action | None = None  # the action without the guard
    change: str | None = None  # SQL for the database
    binds_key: bool = False


@dataclass(frozen=True, kw_only=True)
class _Notice:
    """What came of running everything without a guard."""

    by: str | None = None  # who noticed first, in words
    shown_by: tuple[str, ...] = ()  # and by name
    rejected: str | None = None  # what the server said where it rejected the SQL only as it ran
    more_rows: bool = False  # a try took more rows than any did with the guard


class GuardTrials:
    """Tries every guard of a catalogue whose scenarios have been verified."""

    def __init__(
        self,
        catalogue: Catalogue,
        ground: Ground,
        run: Run,
        verified: Sequence[str],
        swept: Sweep,
    ) -> None:
        self._catalogue = catalogue
        self._ground = ground
        self._run = run
        self._verified = verified  # ids of scenarios; one that is broken already notices nothing
        # Scenarios that between them rest in every situation, and what came of the tries with all guards there.
        self._situations = [id for id in swept.situations if id in verified]
        self._most_rows = swept.most_rows()
        self._broken = frozenset(cell for cell, _ in swept.broken)

    def removals(self) -> list[Removal]:
        """Every guard of every action that takes part, in the catalogue's order."""
        return [
            removal
            for id, action in self._catalogue.actions.items()
            if action.instead_of is None
            for removal in (*self._in_statement(id, action), *self._in_functions(id, action), *self._drops(id, action))
        ]

    def _in_statement(self, id: str, action: Action) -> Iterator[Removal]:
        if action.sql is None:
            return
        for guard in guards(action.sql):
            yield Removal(
                action=id,
                text=guard.text,
                part=guard.part.value,
                guard=guard,
                instead=action.model_copy(update={"sql": without(action.sql, guard)}),
                binds_key=self._binds_key(action, guard, Sql(text=guard.text, params=action.sql.params)),
            )

    def _binds_key(self, action: Action, guard: Guard, condition: Sql, *, by_any_name: bool = False) -> bool:
        """Whether it says which row: a key column is a parameter, or in a function's body any one name."""
        subject = self._catalogue.subjects[action.subject]
        columns = (*subject.key.items(), *subject.offers.items())
        return guard.part is Part.CONDITION and any(
            compares(condition, key, None if by_any_name else {name for name, column in columns if column == key})
            for key in subject.key.values()
        )

    def _in_functions(self, id: str, action: Action) -> Iterator[Removal]:
        for name in action.guards.in_:
            for definition, begins, text in definitions(self._ground.admin, name):
                for guard in guards(Sql(text=text, params="none")):
                    condition = Sql(text=guard.text, params="none")
                    yield Removal(
                        action=id,
                        text=guard.text,
                        part=guard.part.value,
                        guard=guard,
                        function=name,
                        change=definition[:begins] + guard.cut(text) + definition[begins + len(text) :],
                        binds_key=self._binds_key(action, guard, condition, by_any_name=True),
                    )

    def _drops(self, id: str, action: Action) -> Iterator[Removal]:
        for name, sql in action.guards.drop.items():
            yield Removal(action=id, text=name, part="drop", change=sql.text)

    def try_one(self, removal: Removal) -> GuardRecord:
        """Remove one guard, and see who notices."""
        if removal.instead is not None:
            if (why := self._rejected(removal.instead, removal.action)) is not None:
                return _record(removal, "not removable", None, f"PostgreSQL rejects the statement without it: {why}")
            return self._judged(removal, self._notice(removal))
        assert removal.change is not None
        try:
            self._ground.change(removal.change)
        except ServerError as error:
            return _unchanged(removal, error)
        try:
            return self._judged(removal, self._notice(removal))
        finally:
            self._ground.undo_change()

    def _rejected(self, action: Action, id: str) -> str | None:
        assert action.sql is not None
        return rejected(self._ground.admin, action.sql, samples(self._catalogue)[id])

    def _judged(self, removal: Removal, notice: _Notice) -> GuardRecord:
        if notice.rejected is not None:
            return _record(removal, "not removable", None, f"PostgreSQL rejects the SQL without it: {notice.rejected}")
        if notice.by is not None:
            return _record(removal, "noticed", Verdict.VERIFIED, None, notice)
        if not self._situations:
            because = "no scenario is verified, so nothing could notice"
            return _record(removal, "not tried", None, because)
        if removal.binds_key and not notice.more_rows:
            because = "no situation has a second row that passes the other guards: give a scenario two such rows"
            return _record(removal, "not tried", None, because)
        because, mend = "nothing notices that it is gone", "add a scenario that goes wrong without it, or take it out"
        if notice.more_rows:
            because, mend = f"{because}, though it then touches more rows", f"show a column that changes, {mend}"
        if removal.part == "assignment":
            return _record(removal, "missed", None, because)
        because = f"{because}{self._beside(removal.action)}: {mend}"
        return _record(removal, "missed", Verdict.BROKEN, because)

    def _beside(self, action: str) -> str:
        """Scenarios that might have noticed, were they not broken by themselves."""
        others = [id for id in self._catalogue.scenarios if id not in self._verified and self._length(id, action)]
        return f" (not asked, not being verified: {', '.join(others)})" if others else ""

    def _notice(self, removal: Removal) -> _Notice:
        """Who notices first."""
        catalogue = self._catalogue
        if removal.instead is not None:
            actions = {**catalogue.actions, removal.action: removal.instead}
            catalogue = catalogue.model_copy(update={"actions": actions})
        users = self._users(removal.action)
        in_all_orders = [id for id in users if self._catalogue.scenarios[id].orders == "all"]
        if found := self._seen_by(catalogue, users, orders=False):
            return found
        swept = self._swept(catalogue, removal)
        if swept.by is not None or swept.rejected is not None or removal.part == "assignment":
            return swept  # an assignment that nobody misses is no fault, and not worth every order
        return self._seen_by(catalogue, in_all_orders, orders=True) or swept

    def _seen_by(self, catalogue: Catalogue, ids: Iterable[str], *, orders: bool) -> _Notice | None:
        """The first scenario that notices."""
        records = (self._run(catalogue, id, orders=orders) for id in ids)
        return next((_noticed(record) for record in records if record.verdict is Verdict.BROKEN), None)

    def _swept(self, catalogue: Catalogue, removal: Removal) -> _Notice:
        """The first cell that notices, and whether a try took more rows than any did with the guard."""
        instead = {} if removal.instead is None else {removal.action: removal.instead}
        sweep = Sweep(self._catalogue, actions=[removal.action], instead=instead)
        for id in self._situations:
            self._run(catalogue, id, sweep, orders=False)
            for cell, assessment in sweep.broken:
                if cell in self._broken:  # with all guards too
                    continue
                state, _, caller = cell
                if _is_rejection(assessment.sqlstate):
                    return _Notice(rejected=assessment.wrong)
                who = f" as {caller}" if caller else ""
                by = f"cell {state}, {removal.action}{who}: {assessment.wrong}"
                names = (*([f"state/{state}"] if state != ABSENT else []), *([f"caller/{caller}"] if caller else []))
                return _Notice(by=by, shown_by=names)
        most = max((tally.most_rows for tally in sweep.tallies.values()), default=0)
        return _Notice(more_rows=most > self._most_rows.get(removal.action, 0))

    def _users(self, action: str) -> list[str]:
        """The verified scenarios that do the action; short ones first."""
        lengths = {id: self._length(id, action) for id in self._verified}
        return sorted((id for id, length in lengths.items() if length), key=lambda id: lengths[id])

    def _length(self, id: str, action: str) -> int:
        """How many steps a scenario has with what it begins after; 0 where none of them does the action."""
        steps, at, uses = 0, id, False
        while True:
            scenario = self._catalogue.scenarios[at]
            steps += len(scenario.steps)
            uses |= any(action in (step.do, step.carries_out) for step in scenario.steps)
            if scenario.after is None:
                return steps if uses else 0
            at = scenario.after


def rejected(connection: Connection, sql: Sql, values: Mapping[str, Value]) -> str | None:
    """Why the server rejects a statement with an error of class 42; None where it takes it."""
    prepared = statement(sql)
    if not prepared.parameters:
        return None
    try:
        connection.prepare("", prepared.text, [values.get(name, "") for name in prepared.parameters])
    except ServerError as error:
        if _is_rejection(error.sqlstate):
            return str(error)
    return None


def _is_rejection(sqlstate: str | None) -> bool:
    """Whether the server could make nothing of the SQL: class 42, but for privileges and row-level security."""
    return sqlstate is not None and sqlstate.startswith("42") and sqlstate != _INSUFFICIENT_PRIVILEGE


def _unchanged(removal: Removal, error: ServerError) -> GuardRecord:
    """The server would not change the database. SQL to drop something is the author's own, and must work."""
    if removal.part == "drop":
        because = f"the SQL to drop it fails, so nothing was tried: {error}"
        return _record(removal, "not removable", Verdict.BROKEN, because)
    return _record(removal, "not removable", None, f"PostgreSQL rejects the function without it: {error}")


def _noticed(record: ScenarioRecord) -> _Notice:
    failures = [(step.number, failure) for step in record.steps for failure in step.failures]
    if not failures:
        return _Notice(by=f"scenario {record.id}: {record.because}", shown_by=(f"scenario/{record.id}",))
    number, failure = failures[0]
    if _rejected_as_it_ran(failure):
        return _Notice(rejected=failure.observed)
    by = f"scenario {record.id}, step {number}: {failure.message}"
    return _Notice(by=by, shown_by=(f"scenario/{record.id}",))


def _rejected_as_it_ran(failure: Failure) -> bool:
    return failure.kind == "error" and _is_rejection(failure.observed[:5])


def _record(
    removal: Removal,
    outcome: GuardOutcome,
    verdict: Verdict | None,
    because: str | None,
    notice: _Notice = _Notice(),
) -> GuardRecord:
    guard = removal.guard
    return GuardRecord(
        action=removal.action,
        guard=removal.text,
        part=removal.part,
        function=removal.function,
        start=guard.start if guard else None,
        end=guard.end if guard else None,
        outcome=outcome,
        verdict=verdict,
        because=because,
        noticed_by=(notice.by,) if notice.by else (),
        shown_by=notice.shown_by,
    )
