"""Rules about names that stand for values: ``:name`` needs a source, ``$name`` needs a step that kept it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Set
from typing import Any

from failure_matrix.catalogue.findings import Finding
from failure_matrix.catalogue.model import Action, Caller, Event, Expected, Step, StoreEffect
from failure_matrix.catalogue.reading import KEY, Trail, say
from failure_matrix.catalogue.rulebook import close_to, nearest
from failure_matrix.catalogue.rules.columns import selected
from failure_matrix.catalogue.rules.look import NOW, Look
from failure_matrix.catalogue.rules.statements import sql_values
from failure_matrix.catalogue.sql import parameters

_REFERENCE = re.compile(r"\$(\$|[A-Za-z_][A-Za-z0-9_]*)")


def references(value: Any) -> list[str]:
    """Give the names of the ``$name`` in a value of the YAML, in order."""
    return [name for name in _REFERENCE.findall(value) if name != "$"] if isinstance(value, str) else []


def kept_values(look: Look) -> Iterator[Finding]:
    """Find ``$name`` that no earlier step keeps."""
    for name, scenario in look.catalogue.scenarios.items():
        kept = {NOW, *(value for before in look.before(name) for step in before.steps for value in step.keep)}
        later = {value: number for number, step in reversed(list(enumerate(scenario.steps, 1))) for value in step.keep}
        for number, step in enumerate(scenario.steps):
            trail: Trail = ("scenarios", name, "steps", number)
            for where, used in dict.fromkeys(_uses(trail, step)):
                if used not in kept:
                    message = f"{say(trail)} uses '${used}', which no earlier step keeps"
                    yield look.found("not-kept", where, message, _where_kept(used, kept, later))
            kept.update(step.keep)


def _where_kept(used: str, kept: Set[str], later: dict[str, int]) -> str:
    if used in later:
        return f"step {later[used]} keeps it: use it after that step"
    hint = nearest(used, sorted(kept - {NOW}))
    return (
        hint if hint.startswith("did") else f"add keep: {{{used}: column}} to the step that gives it; '$$' is a dollar"
    )


def _uses(trail: Trail, step: Step) -> Iterator[tuple[Trail, str]]:
    """Give each ``$name`` of a step's values, keys and texts with its place."""
    for name, value in step.with_.items():
        for used in references(value):
            yield (*trail, "with", name), used
    for key in ("at", "returns", "results", "notice"):
        for used in _within(getattr(step, key)):
            yield (*trail, key), used
    yield from _expected((*trail, "then"), step.then)
    for session, expected in step.seen_by.items():
        yield from _expected((*trail, "seen_by", session), expected)


def _within(value: Any) -> Iterator[str]:
    """Give each ``$name`` anywhere in a value."""
    if isinstance(value, dict):
        value = (*value.keys(), *value.values())
    if isinstance(value, list | tuple):
        for part in value:
            yield from _within(part)
    else:
        yield from references(value)


def _expected(trail: Trail, expected: Expected) -> Iterator[tuple[Trail, str]]:
    for subject, keys in expected.items():
        for key, state in keys.items():
            for used in _within(key):
                yield (*trail, subject, key, KEY), used
            for used in references(state):
                yield (*trail, subject, key), used


def sources_of_steps(look: Look) -> Iterator[Finding]:
    """Find parameters of what a step runs that neither step, caller nor action gives a value."""
    for trail, step in look.steps():
        for owner, name in _missing(look, trail, step):
            message = f"{say(trail)} gives no value for ':{name}', which {owner} needs"
            hint = f"add it to the step: with: {{{name}: …}}"
            if close := close_to(name, step.with_):
                hint = f"write '{name}' for '{close}', or add it to the step"
            yield look.found("missing-source", (*trail, "with"), message, hint)


def _missing(look: Look, trail: Trail, step: Step) -> Iterator[tuple[str, str]]:
    """Give what needs a parameter, and its name."""
    catalogue = look.catalogue
    action = catalogue.actions.get(step.do) if step.do is not None else None
    event = catalogue.events.get(step.event) if step.event is not None else None
    given = {NOW, *step.with_}
    if action is not None:
        yield from _missing_for_action(look, trail, step, action, given)
    elif step.sql is not None:
        yield from _without(f"{say((*trail, 'sql'))}", parameters(step.sql), given)
        if event is not None:
            yield from _missing_for_files(look, trail, f"event '{step.event}'", event.store, given)
    elif event is not None:
        sources = given | event.with_.keys()
        if event.sql is not None:
            yield from _without(f"event '{step.event}'", parameters(event.sql), sources)
        yield from _missing_for_files(look, trail, f"event '{step.event}'", event.store, sources)


def _missing_for_action(
    look: Look, trail: Trail, step: Step, action: Action, given: set[str]
) -> Iterator[tuple[str, str]]:
    sources = given | action.with_.keys()
    if step.as_ is not None:
        caller = look.catalogue.callers.get(step.as_)
        row = look.catalogue.subjects.get(action.subject)
        offered = set(row.offers) | set(row.key) if row is not None and set(row.key) <= sources else set()
        if caller is not None and caller.sql is not None:
            yield from _without(f"caller '{step.as_}'", parameters(caller.sql), sources | offered)
        columns = columns_of(caller)
        if columns is None:
            return  # it may give anything
        sources |= columns | offered
    needs = {name for sql in (action.sql, action.requires) if sql is not None for name in parameters(sql)}
    yield from _without(f"action '{step.do}'", sorted(needs), sources)
    yield from _missing_for_files(look, trail, f"action '{step.do}'", action.store, sources)


def _missing_for_files(
    look: Look, trail: Trail, owner: str, effect: StoreEffect | None, given: Set[str]
) -> Iterator[tuple[str, str]]:
    """Names in a store effect are parameters, or values that an earlier step kept."""
    if effect is None:
        return
    texts = [getattr(effect, name) for name in type(effect).model_fields]
    kept = {name for scenario in look.before(trail[1]) for step in scenario.steps for name in step.keep}
    kept |= {name for step in look.catalogue.scenarios[trail[1]].steps[: trail[3]] for name in step.keep}
    used = dict.fromkeys(name for text in texts for name in references(text))
    yield from _without(owner, used, given | kept)


def _without(owner: str, names: Iterable[str], sources: Set[str]) -> Iterator[tuple[str, str]]:
    for name in names:
        if name not in sources:
            yield owner, name


def columns_of(caller: Caller | None) -> set[str] | None:
    """Give the columns of a caller; None where its SQL alone does not tell."""
    if caller is None:
        return None
    return selected(caller.sql.text) if caller.sql is not None else set(caller.gives)


def sources_elsewhere(look: Look) -> Iterator[Finding]:
    """Find parameters in SQL that no step runs: nothing but the clock, and a row's own names, has a value there."""
    for trail, sql in sql_values(look):
        known = _known_at(look, trail)
        if known is None:
            continue
        for name in parameters(sql):
            if name not in known:
                there = ", ".join(f":{one}" for one in sorted(known)) or "none"
                message = f"{say(trail)} uses ':{name}', which has no value there"
                hint = nearest(name, known) if len(known) > 1 else ""
                hint = hint if hint.startswith("did") else f"parameters that have one there: {there}"
                yield look.found("missing-source", trail, message, hint)


def _known_at(look: Look, trail: Trail) -> set[str] | None:
    """Give the parameters that have values in SQL of the catalogue; None where steps and callers say."""
    match trail:
        case ("catalogue" | "sessions", *_) | ("actions", _, "guards", *_) | ("scenarios", _, "given" | "sessions", *_):
            return set()  # sent as they stand
        case ("states", name, "observe", *_):
            subject = look.catalogue.subjects.get(look.catalogue.states[name].subject)
            return {NOW, *subject.key, *subject.offers} if subject else None
        case ("actions", name, "refusal", "ask", *_):
            return {NOW, *_names_of(look.catalogue.actions[name])}
        case ("subjects" | "states" | "invariants", *_) | ("events", _, "at"):
            return {NOW}
        case _:
            return None


def targets_by_parameter(look: Look) -> Iterator[Finding]:
    """Find moves to a ``$parameter`` that the action does not have."""
    nouns: dict[str, dict[str, Any]] = {"actions": look.catalogue.actions, "events": look.catalogue.events}
    for trail, moves in look.every_move():
        names = _names_of(nouns[trail[0]][trail[1]])
        for source, targets in moves.items():
            for number, target in enumerate(targets):
                for used in references(target):
                    if used not in names:
                        message = f"{say(trail[:2])} moves to '{target}', and has no parameter of that name"
                        hint = nearest(used, sorted(names), "name a state, or a parameter of the action")
                        yield look.found("missing-source", (*trail, source, number), message, hint)


def _names_of(noun: Action | Event) -> set[str]:
    own = set(parameters(noun.sql)) if noun.sql is not None else set()
    texts = [getattr(noun.store, name) for name in type(noun.store).model_fields] if noun.store else []
    return own | noun.with_.keys() | {name for text in texts for name in references(text)}


def reserved_parameters(look: Look) -> Iterator[Finding]:
    """Find values that are given or kept under the clock's name."""
    for trail, names in _given_names(look):
        if NOW in names:
            message = f"{say(trail)} gives a value to '{NOW}', which is the clock's name"
            yield look.found("reserved-word", (*trail, NOW, KEY), message, "rename the parameter")


def _given_names(look: Look) -> Iterator[tuple[Trail, Iterable[str]]]:
    for section in ("actions", "events"):
        for name, noun in getattr(look.catalogue, section).items():
            yield (section, name, "with"), noun.with_
    for name, subject in look.catalogue.subjects.items():
        yield ("subjects", name, "key"), subject.key
        yield ("subjects", name, "offers"), subject.offers
    for trail, step in look.steps():
        yield (*trail, "with"), step.with_
        yield (*trail, "keep"), step.keep
