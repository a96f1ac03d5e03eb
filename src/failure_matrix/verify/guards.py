"""Each guard removed alone, and what uses it run again: somebody must notice.

First the scenarios that do the action, the ones with fewest steps first; then the sweep of the action alone, in
every situation that is known. The first that notices ends the search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from failure_matrix.catalogue.guards import Guard, Part, body_of, guards, without
from failure_matrix.catalogue.model import Action, Catalogue, Sql
from failure_matrix.catalogue.sql import parameters, statement
from failure_matrix.database.connection import Connection, ServerError, Value
from failure_matrix.evidence.records import Failure, GuardOutcome, GuardPart, GuardRecord, ScenarioRecord, Verdict
from failure_matrix.verify.fit import samples
from failure_matrix.verify.ground import Ground
from failure_matrix.verify.sweep import Sweep

Run = Callable[[Catalogue, str, Sweep | None], ScenarioRecord]  # plays one scenario of a catalogue on the ground

_FUNCTIONS = "SELECT pg_get_functiondef(oid) FROM pg_proc WHERE proname = $1 AND prokind IN ('f', 'p') ORDER BY oid"


@dataclass(frozen=True, kw_only=True)
class Removal:
    """A guard with what it takes to remove it: another catalogue, or another database."""

    action: str
    text: str
    part: GuardPart
    guard: Guard | None = None
    function: str | None = None
    catalogue: Catalogue
    change: str | None = None  # SQL for the database
    binds_key: bool = False


class GuardTrials:
    """Tries every guard of a catalogue whose scenarios have been verified."""

    def __init__(
        self, catalogue: Catalogue, ground: Ground, run: Run, verified: Sequence[str], situations: Sequence[str]
    ) -> None:
        self._catalogue = catalogue
        self._ground = ground
        self._run = run
        self._verified = verified  # ids of scenarios; one that is broken already notices nothing
        self._situations = situations  # ids of scenarios that between them rest in every situation

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
            changed = action.model_copy(update={"sql": without(action.sql, guard)})
            actions = {**self._catalogue.actions, id: changed}
            yield Removal(
                action=id,
                text=guard.text,
                part=guard.part.value,
                guard=guard,
                catalogue=self._catalogue.model_copy(update={"actions": actions}),
                binds_key=guard.part is Part.CONDITION and self._binds_key(action, guard),
            )

    def _binds_key(self, action: Action, guard: Guard) -> bool:
        subject = self._catalogue.subjects[action.subject]
        columns = set(subject.key.values())
        names = set(subject.key) | {name for name, column in subject.offers.items() if column in columns}
        return bool(names & set(parameters(Sql(text=guard.text, params=action.sql.params if action.sql else "named"))))

    def _in_functions(self, id: str, action: Action) -> Iterator[Removal]:
        for name in action.guards.in_:
            for (definition,) in self._ground.admin.query(_FUNCTIONS, [name]).rows:
                body = body_of(definition or "")
                if definition is None or body is None:
                    continue
                begins, text = body
                for guard in guards(Sql(text=text, params="none")):
                    changed = definition[:begins] + guard.cut(text) + definition[begins + len(text) :]
                    yield Removal(
                        action=id, text=guard.text, part=guard.part.value, guard=guard, function=name,
                        catalogue=self._catalogue, change=changed,
                    )  # fmt: skip

    def _drops(self, id: str, action: Action) -> Iterator[Removal]:
        for name, sql in action.guards.drop.items():
            yield Removal(action=id, text=name, part="drop", catalogue=self._catalogue, change=sql.text)

    def try_one(self, removal: Removal) -> GuardRecord:
        """Remove one guard, and see who notices."""
        if removal.change is None:
            if (why := self._rejected(removal)) is not None:
                return _record(removal, "not removable", None, f"PostgreSQL rejects the statement without it: {why}")
            return self._judged(removal, self._notice(removal))
        try:
            self._ground.change(removal.change)
        except ServerError as error:
            return _record(removal, "not removable", None, f"PostgreSQL rejects its removal: {error}")
        try:
            return self._judged(removal, self._notice(removal))
        finally:
            self._ground.undo_change()

    def _rejected(self, removal: Removal) -> str | None:
        sql = removal.catalogue.actions[removal.action].sql
        assert sql is not None
        return rejected(self._ground.admin, sql, samples(removal.catalogue)[removal.action])

    def _judged(self, removal: Removal, noticed: str | None) -> GuardRecord:
        if noticed is not None and noticed.startswith("42"):
            return _record(removal, "not removable", None, f"PostgreSQL rejects the body without it: {noticed}")
        if noticed is not None:
            return _record(removal, "noticed", Verdict.VERIFIED, None, noticed)
        if removal.binds_key:
            because = "in no situation does another row pass the other guards, so nothing can notice"
            return _record(removal, "not tried", None, because)
        verdict = None if removal.part == "assignment" else Verdict.BROKEN
        return _record(removal, "missed", verdict, "without it every scenario and every cell is as before")

    def _notice(self, removal: Removal) -> str | None:
        """Who notices first, in words; an SQLSTATE of class 42 first where the server rejected it as it ran."""
        for id in self._users(removal.action):
            record = self._run(removal.catalogue, id, None)
            if record.verdict is not Verdict.VERIFIED:
                return _words(record)
        sweep = Sweep(removal.catalogue, actions=[removal.action])
        for id in self._situations:
            self._run(removal.catalogue, id, sweep)
            for (state, _, caller), assessment in sweep.broken:
                if assessment.sqlstate is not None and assessment.sqlstate.startswith("42"):
                    return f"{assessment.sqlstate}: {assessment.wrong}"
                who = f" as {caller}" if caller else ""
                return f"cell {state}, {removal.action}{who}: {assessment.wrong}"
        return None

    def _users(self, action: str) -> list[str]:
        """The verified scenarios that do the action, by themselves or in what they begin after; short ones first."""
        lengths = {}
        for id in self._verified:
            steps, at = 0, id
            uses = False
            while True:
                scenario = self._catalogue.scenarios[at]
                steps += len(scenario.steps)
                uses |= any(action in (step.do, step.carries_out) for step in scenario.steps)
                if scenario.after is None:
                    break
                at = scenario.after
            if uses:
                lengths[id] = steps
        return sorted(lengths, key=lambda id: lengths[id])


def rejected(connection: Connection, sql: Sql, values: Mapping[str, Value]) -> str | None:
    """Why the server rejects a statement with an error of class 42; None where it takes it."""
    prepared = statement(sql)
    if not prepared.parameters:
        return None
    try:
        connection.prepare("", prepared.text, [values.get(name, "") for name in prepared.parameters])
    except ServerError as error:
        if error.sqlstate.startswith("42"):
            return str(error)
    return None


def _words(record: ScenarioRecord) -> str:
    failures = [(step.number, failure) for step in record.steps for failure in step.failures]
    if not failures:
        return f"scenario {record.id}: {record.because}"
    number, failure = failures[0]
    if _rejected_as_it_ran(failure):
        return failure.observed
    return f"scenario {record.id}, step {number}: {failure.message}"


def _rejected_as_it_ran(failure: Failure) -> bool:
    return failure.kind == "error" and failure.observed.startswith("42")


def _record(
    removal: Removal,
    outcome: GuardOutcome,
    verdict: Verdict | None,
    because: str | None,
    noticed_by: str | None = None,
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
        noticed_by=(noticed_by,) if noticed_by else (),
    )
