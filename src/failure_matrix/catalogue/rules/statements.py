"""Rules about SQL that its tokens alone can break."""

from __future__ import annotations

import itertools
from collections.abc import Iterator

from failure_matrix.catalogue.cuts import unfinished
from failure_matrix.catalogue.findings import Finding
from failure_matrix.catalogue.model import Sql
from failure_matrix.catalogue.reading import Trail, say
from failure_matrix.catalogue.rules.look import Look
from failure_matrix.catalogue.sql import Kind, significant, tokens


def sql_values(look: Look) -> Iterator[tuple[Trail, Sql]]:
    """Give every SQL value of the catalogue with its trail."""
    catalogue = look.catalogue
    for number, sql in enumerate(catalogue.settings.schema_):
        yield ("catalogue", "schema", number), sql
    for name, caller in catalogue.callers.items():
        if caller.sql is not None:
            yield ("callers", name, "sql"), caller.sql
    yield from predicates(look)
    yield from _of_nouns(look)
    yield from _of_scenarios(look)
    for trail, step in look.steps():
        if step.sql is not None:
            yield (*trail, "sql"), step.sql


def _of_nouns(look: Look) -> Iterator[tuple[Trail, Sql]]:
    catalogue = look.catalogue
    for section in ("actions", "events", "invariants"):
        for name, noun in getattr(catalogue, section).items():
            if noun.sql is not None:
                yield (section, name, "sql"), noun.sql
    for name, action in catalogue.actions.items():
        for guard, sql in action.guards.drop.items():
            yield ("actions", name, "guards", "drop", guard), sql
    for name, state in catalogue.states.items():
        for number, observation in enumerate(state.observe):
            if observation.sql is not None:
                yield ("states", name, "observe", number, "sql"), observation.sql
        if state.retention is not None and state.retention.cost is not None:
            yield ("states", name, "retention", "cost"), state.retention.cost


def _of_scenarios(look: Look) -> Iterator[tuple[Trail, Sql]]:
    for name, setup in look.catalogue.sessions.items():
        if setup.setup is not None:
            yield ("sessions", name, "setup"), setup.setup
    for name, scenario in look.catalogue.scenarios.items():
        if scenario.given.sql is not None:
            yield ("scenarios", name, "given"), scenario.given.sql
        for session, setup in scenario.sessions.items():
            if setup.setup is not None:
                yield ("scenarios", name, "sessions", session, "setup"), setup.setup


def predicates(look: Look) -> Iterator[tuple[Trail, Sql]]:
    """Give the SQL that becomes part of a larger statement: predicates, expressions and relations."""
    catalogue = look.catalogue
    for name, subject in catalogue.subjects.items():
        yield ("subjects", name, "from"), subject.from_
    for name, state in catalogue.states.items():
        yield ("states", name, "when"), state.when
    for name, action in catalogue.actions.items():
        if action.requires is not None:
            yield ("actions", name, "requires"), action.requires
        if action.refusal.ask is not None:
            yield ("actions", name, "refusal", "ask"), action.refusal.ask
    for name, event in catalogue.events.items():
        if event.at is not None:
            yield ("events", name, "at"), event.at


def unfinished_sql(look: Look) -> Iterator[Finding]:
    """Find SQL with a string, a comment or a bracket that nothing closes."""
    for trail, sql in sql_values(look):
        if unfinished(sql.text):
            what = next(
                (_opening(token.text) for token in tokens(sql.text) if token.kind is Kind.UNFINISHED), "a bracket"
            )
            message = f"{say(trail)} does not close {what}"
            yield look.found("unfinished-sql", trail, message, "close it, or take out the one too many")


def _opening(text: str) -> str:
    return f"what begins with {text[:12]!r}" if len(text) > 12 else repr(text)


def predicates_with_ends(look: Look) -> Iterator[Finding]:
    """Find predicates that hold a whole statement's end."""
    for trail, sql in predicates(look):
        if any(token.text == ";" for token in significant(sql.text, sql.params)):
            message = f"{say(trail)} holds a ';', and it is only a part of a statement"
            yield look.found("predicate-end", trail, message, "take the ';' out: write a condition, not a statement")


def null_comparisons(look: Look) -> Iterator[Finding]:
    """Find predicates that compare with NULL by an operator, which is never true."""
    for trail, sql in predicates(look):
        found = significant(sql.text, sql.params)
        for before, after in itertools.pairwise(found):
            if before.text in ("=", "<>", "!=") and after.kind is Kind.WORD and after.name == "null":
                operator = "IS NULL" if before.text == "=" else "IS NOT NULL"
                message = f"{say(trail)} says '{before.text} {after.text}', which is never true"
                yield look.found("null-comparison", trail, message, f"write {operator}")
                break
