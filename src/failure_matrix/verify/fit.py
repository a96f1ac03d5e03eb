"""The server rules: does each SQL of the catalogue fit the schema? Asked by preparing it, so nothing runs."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from failure_matrix.catalogue.findings import Finding, Severity
from failure_matrix.catalogue.model import Action, Catalogue, Event, Invariant, Scalar, Sql, Subject
from failure_matrix.catalogue.sql import Statement, statement
from failure_matrix.database.answers import ServerError, Value
from failure_matrix.database.classify import Probe
from failure_matrix.database.connection import Connection
from failure_matrix.database.relations import store_relations, store_values
from failure_matrix.evidence.schema import split_statements
from failure_matrix.verify import clock
from failure_matrix.verify.functions import definitions
from failure_matrix.verify.prepare import insertion

_RULES = {  # SQLSTATE -> rule, what to do
    "42601": ("sql-syntax", "mend the statement; psql shows the same error"),
    "42P01": (
        "unknown-relation",
        "is it in the schema, and on the search path? stores are seen by predicates, not by actions",
    ),
    "42703": ("unknown-column", "is the column in the schema, and its table in the subject's 'from'?"),
    "42883": ("unknown-function", "is it in the schema? a cast may be missing: write ':name::type'"),
    "42P18": ("untyped-parameter", "PostgreSQL can't tell the parameter's type: write ':name::text', say"),
    "42725": ("untyped-parameter", "PostgreSQL can't tell the parameter's type: write ':name::text', say"),
    "42P08": ("untyped-parameter", "PostgreSQL can't tell its type, or finds two: write ':name::text' each time, say"),
}
_POSITION = re.compile(r"\$[0-9]+")
_OTHER = ("sql-rejected", "mend this SQL: it does not fit the schema, or what is asked of it here")


@dataclass(frozen=True, kw_only=True)
class Trial:
    """One SQL to prepare: where it stands, what to prepare, and sample values that give parameters their types."""

    path: tuple[str | int, ...]
    statement: Statement
    samples: Mapping[str, Value]


def findings(catalogue: Catalogue, connection: Connection) -> tuple[Finding, ...]:
    """Every SQL that the server rejects, in the catalogue's order."""
    tried = (_try(catalogue, connection, trial) for trial in _trials(catalogue))
    return (*(found for found in tried if found is not None), *_functions(catalogue, connection))


def _functions(catalogue: Catalogue, connection: Connection) -> Iterator[Finding]:
    """Functions that hold guards, and are not there."""
    for id, action in catalogue.actions.items():
        for name in action.guards.in_:
            if not definitions(connection, name):
                yield Finding(
                    place=catalogue.place("actions", id, "guards", "in"),
                    rule="unknown-function",
                    severity=Severity.ERROR,
                    message=f"guards of action '{id}' are in '{name}', and the schema has no such function with a body",
                    hint="name a PL/pgSQL function of the schema, without its arguments",
                )


def findings_of_probe(catalogue: Catalogue, connection: Connection, probe: Probe) -> tuple[Finding, ...]:
    """What the server rejects of the probe although it takes its parts: invariants of previous rows, or the whole."""
    values = {**_samples_of_looks(catalogue), **probe.values_without_rows()}
    invariants = [
        Trial(path=("invariants", id, "sql"), statement=probe.invariant(id), samples=values)
        for id, invariant in catalogue.invariants.items()
        if _asks_before(invariant)
    ]
    whole = Trial(path=("states",), statement=probe.statement, samples=values)
    tried = (_try(catalogue, connection, trial) for trial in invariants)
    found = tuple(finding for finding in tried if finding is not None)
    return found or tuple(filter(None, [_try(catalogue, connection, whole)]))


def _asks_before(invariant: Invariant) -> bool:
    return "previous_" in invariant.sql.text


def _try(catalogue: Catalogue, connection: Connection, trial: Trial) -> Finding | None:
    values = [trial.samples.get(name, "") for name in trial.statement.parameters]
    try:
        connection.prepare("", trial.statement.text, values)
    except ServerError as error:
        rule, hint = _RULES.get(error.sqlstate, _OTHER)
        if error.sqlstate == "42601" and len(split_statements(trial.statement.text)) > 1:
            hint = "SQL with parameters is one statement: make it several steps, or a function"
        said = f"{error}{_near(trial.statement.text, error.position)}"
        return Finding(
            place=catalogue.place(*trial.path),
            rule=rule,
            severity=Severity.ERROR,
            message=f"{' '.join(map(str, trial.path))}: PostgreSQL says {_by_name(said, trial.statement.parameters)}",
            hint=hint,
        )
    return None


def _by_name(text: str, parameters: Sequence[str]) -> str:
    """What the server says of ``$1``, said of the parameter as the catalogue names it."""
    names = {f"${number}": f":{name}" for number, name in enumerate(parameters, 1)}
    return _POSITION.sub(lambda position: names.get(position[0], position[0]), text)


def _near(text: str, position: int | None) -> str:
    if position is None:
        return ""
    line = text[position - 1 :].split("\n", 1)[0].strip()
    return f", at '{line[:40]}'"


def _trials(catalogue: Catalogue) -> Iterator[Trial]:
    yield from _subject_trials(catalogue)
    for id, state in catalogue.states.items():
        for number, observation in enumerate(state.observe):
            if observation.sql is not None:
                yield _selecting(catalogue, ("states", id, "observe", number, "sql"), observation.sql)
        if state.retention is not None and state.retention.cost is not None:
            yield _selecting(catalogue, ("states", id, "retention", "cost"), state.retention.cost)
    for id, caller in catalogue.callers.items():
        if caller.sql is not None:
            yield _selecting(catalogue, ("callers", id, "sql"), caller.sql)
    yield from _trials_of_deeds(catalogue)
    yield from _invariant_trials(catalogue)


def _trials_of_deeds(catalogue: Catalogue) -> Iterator[Trial]:
    brought = samples(catalogue)
    kinds: dict[str, Mapping[str, Action | Event]] = {"actions": catalogue.actions, "events": catalogue.events}
    for kind, nouns in kinds.items():
        for id, noun in nouns.items():
            if noun.sql is not None and statement(noun.sql).parameters:
                yield Trial(path=(kind, id, "sql"), statement=statement(noun.sql), samples=brought[id])
    for id, action in catalogue.actions.items():
        if action.requires is not None:
            asked = statement(Sql(text=f"{_head(catalogue)}SELECT (\n{action.requires.text}\n) IS TRUE"))
            values = {**_samples_of_looks(catalogue), **brought[id]}
            yield Trial(path=("actions", id, "requires"), statement=asked, samples=values)
        if action.refusal.ask is not None:
            asked = statement(Sql(text=f"{_head(catalogue)}SELECT * FROM (\n{action.refusal.ask.text}\n) AS asked"))
            values = {**_samples_of_looks(catalogue), **brought[id]}
            yield Trial(path=("actions", id, "refusal", "ask"), statement=asked, samples=values)


def _invariant_trials(catalogue: Catalogue) -> Iterator[Trial]:
    for id, invariant in catalogue.invariants.items():
        if not _asks_before(invariant):
            yield _selecting(catalogue, ("invariants", id, "sql"), invariant.sql)


def _subject_trials(catalogue: Catalogue) -> Iterator[Trial]:
    stores = _samples_of_looks(catalogue)
    head = _head(catalogue)
    for id, subject in catalogue.subjects.items():
        columns = ", ".join((*subject.key.values(), *subject.offers.values(), *subject.show)) or "1"
        whole = statement(Sql(text=f"{head}SELECT {columns} FROM {subject.from_.text}"))
        yield Trial(path=("subjects", id), statement=whole, samples=stores)
        yield from _trials_of_values(catalogue, id, subject)
        for state, body in catalogue.states_of(id).items():
            asked = statement(Sql(text=f"{head}SELECT (\n{body.when.text}\n) IS TRUE FROM {subject.from_.text}"))
            yield Trial(path=("states", state, "when"), statement=asked, samples=stores)


def _trials_of_values(catalogue: Catalogue, id: str, subject: Subject) -> Iterator[Trial]:
    """A row of each table that the population probe fills."""
    tables: dict[str, dict[str, Scalar]] = {}
    for column in subject.values:
        table, _, name = column.rpartition(".")
        if table and table not in catalogue.stores:
            tables.setdefault(table, {})[name] = None
    for table, row in tables.items():
        asked = Statement(insertion(table, row).text, tuple(row))
        yield Trial(path=("subjects", id, "values"), statement=asked, samples={})


def _head(catalogue: Catalogue) -> str:
    items = store_relations(catalogue.stores)
    return f"WITH {', '.join(items)}\n" if items else ""


def _selecting(catalogue: Catalogue, path: Sequence[str | int], sql: Sql) -> Trial:
    """SQL that asks, with the stores as relations."""
    asked = statement(Sql(text=f"{_head(catalogue)}SELECT * FROM (\n{sql.text}\n) AS asked"))
    return Trial(path=tuple(path), statement=asked, samples=_samples_of_looks(catalogue))


def _samples_of_looks(catalogue: Catalogue) -> dict[str, Value]:
    return {**store_values(dict.fromkeys(catalogue.stores, ())), "now": clock.sample(catalogue)}


def samples(catalogue: Catalogue) -> dict[str, dict[str, Scalar]]:
    """Values that actions and events are called with: their own, and a step's where there is one."""
    found: dict[str, dict[str, Scalar]] = {}
    nouns: dict[str, Action | Event] = {**catalogue.actions, **catalogue.events}
    for id, noun in nouns.items():
        found[id] = {"now": clock.sample(catalogue), **noun.with_}
    for scenario in catalogue.scenarios.values():
        for step in scenario.steps:
            named = step.do or step.event
            if named in found:
                found[named] = {**step.with_, **found[named]}
    return found
