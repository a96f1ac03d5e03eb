"""Rules about steps: what one step can say, and what it can say only together with something else."""

from __future__ import annotations

from collections.abc import Iterator

from failure_matrix.catalogue.findings import Finding
from failure_matrix.catalogue.model import ABSENT, VERBS, Expected, Step
from failure_matrix.catalogue.reading import KEY, Trail, say
from failure_matrix.catalogue.rules.look import Look

# a statement that is an event, the death that is one, and the clock with the event that it brings
_TOGETHER = ({"sql", "event"}, {"kill", "event"}, {"at", "event"})
_ANSWERS = ("rows", "returns", "results", "error", "notice", "waits", "keep")


def verbs(look: Look) -> Iterator[Finding]:
    """Find steps with no verb, or with two that do not go together."""
    for trail, step in look.steps():
        said = [verb for verb in VERBS if getattr(step, verb) is not None]
        if not said:
            yield look.found("step-verb", trail, f"{say(trail)} does nothing", f"add one of: {', '.join(VERBS)}")
        elif len(said) > 1 and set(said) not in _TOGETHER:
            words = " and ".join(f"'{verb}'" for verb in said)
            yield look.found("step-verb", trail, f"{say(trail)} has {words}", "make a step of each")


def sessions_of_steps(look: Look) -> Iterator[Finding]:
    """Find steps that need a session and have none, and those that have one and can't use it."""
    for trail, step in look.steps():
        asks = step.do is not None or step.sql is not None
        if asks and step.in_ is None:
            verb = "do" if step.do is not None else "sql"
            yield look.found("step-session", (*trail, verb), f"{say(trail)} runs in no session", "add in: A, say")
        if step.in_ is not None and not asks and (step.at is not None or step.kill is not None):
            message = f"{say(trail)} is of the world and runs in no session"
            yield look.found("step-session", (*trail, "in"), message, "take 'in' out")


def words_that_need_another(look: Look) -> Iterator[Finding]:
    """Find keys that mean nothing beside this step's verb."""
    for trail, step in look.steps():
        for key, why, hint in (*_misplaced(step), *_impossible(step)):
            yield look.found("step-word", (*trail, key), f"{say(trail)} has '{key}', but {why}", hint)


def _misplaced(step: Step) -> Iterator[tuple[str, str, str]]:
    if step.as_ is not None and step.do is None:
        yield "as", "it does no action", "write do: the action, or take 'as' out"
    if step.carries_out is not None and step.sql is None:
        yield "carries_out", "it has no sql", "write do: the action, or sql: the statement"
    if step.carries_out is not None and step.event is not None:
        yield "carries_out", "it is an event", "keep one of the two"
    silent = step.do is None and step.sql is None and step.event is None
    if silent and (step.kill is not None or step.at is not None):
        verb = "kill" if step.kill is not None else "at"
        for word in ("with", *_ANSWERS):
            if getattr(step, "with_" if word == "with" else word) not in (None, {}, ()):
                yield word, f"'{verb}' gives no answer", f"take '{word}' out, or move it to the step that it is about"
    if step.seen_by and step.waits is not None:
        yield "seen_by", "its session waits and can see nothing", "move it to a step after the release"
    if step.returns is not None and step.results is not None:
        yield "results", "it has 'returns' too", "keep 'results' for several statements, 'returns' for one"


def _impossible(step: Step) -> Iterator[tuple[str, str, str]]:
    if step.in_ is not None and step.in_ in (step.waits or ()):
        yield "waits", f"session '{step.in_}' cannot wait for itself", "name the session that holds it up"
    if step.limit is not None and step.limit <= 0:
        yield "limit", f"nothing is done within {step.limit} s", "write seconds, more than 0"


def effects(look: Look) -> Iterator[Finding]:
    """Find actions that do nothing, and store effects that are none or several."""
    for name, action in look.catalogue.actions.items():
        if action.sql is None and action.store is None:
            message = f"action '{name}' has neither sql nor store"
            yield look.found("no-effect", ("actions", name, KEY), message, "add sql: what the action runs")
    for section in ("actions", "events"):
        for name, noun in getattr(look.catalogue, section).items():
            if noun.store is None:
                continue
            trail: Trail = (section, name, "store")
            said = [verb for verb in _STORE_VERBS if getattr(noun.store, verb) is not None]
            if len(said) != 1:
                message = f"{say(trail)} has {' and '.join(said) or 'none'} of {', '.join(_STORE_VERBS)}"
                yield look.found("store-effect", trail, message, "write exactly one: create: store/name")
            elif "/" not in getattr(noun.store, said[0]).strip("/"):
                message = f"{say((*trail, said[0]))} names no file: '{getattr(noun.store, said[0])}'"
                yield look.found("store-effect", (*trail, said[0]), message, "write store/name, as in candidate/$name")


_STORE_VERBS = ("create", "write", "remove", "truncate", "corrupt")


def expectations(look: Look) -> Iterator[Finding]:
    """Find expected states that the subject does not have, and keys that it cannot have."""
    for trail, step in look.steps():
        yield from _expected(look, (*trail, "then"), step.then)
        for session, expected in step.seen_by.items():
            yield from _expected(look, (*trail, "seen_by", session), expected)
        yield from _illegal(look, trail, step)


def spare_keys(look: Look) -> Iterator[Finding]:
    """Find spare keys that are no key of their subject; what the subject offers may stand beside the key."""
    for name, subject in look.catalogue.subjects.items():
        beside = set(subject.spare) - set(subject.offers)
        if subject.spare and (beside | (set(subject.spare) & set(subject.key))) != set(subject.key):
            message = (
                f"'spare' of subject '{name}' has {', '.join(subject.spare)}, and its key {', '.join(subject.key)}"
            )
            yield look.found("key-shape", ("subjects", name, "spare"), message, "write a value for every key parameter")


def _expected(look: Look, trail: Trail, expected: Expected) -> Iterator[Finding]:
    catalogue = look.catalogue
    for subject, keys in expected.items():
        if subject not in catalogue.subjects:
            continue  # unknown-subject says so
        columns = catalogue.subjects[subject].key
        for key, state in keys.items():
            here = (*trail, subject, key)
            length = len(key) if isinstance(key, tuple) else 1
            if length != len(columns):
                message = f"{say(trail)} has a key of {length}, and {subject} has {len(columns)}: {', '.join(columns)}"
                yield look.found("key-shape", (*here, KEY), message, "write every key column, in order: [1, a]")
            if state in catalogue.states and catalogue.states[state].subject != subject:
                other = catalogue.states[state].subject
                message = f"{say(trail)} expects '{state}' of a {subject}, and it is a state of {other}"
                hint = f"states of {subject} are: {', '.join((*catalogue.states_of(subject), ABSENT))}"
                yield look.found("wrong-subject", here, message, hint)


def _illegal(look: Look, trail: Trail, step: Step) -> Iterator[Finding]:
    """An illegal state is seen as committed only where the step breaks something by it."""
    if "illegal-state" in step.breaks:
        return
    for subject, keys in step.then.items():
        for key, state in keys.items():
            if state in look.catalogue.states and look.catalogue.states[state].illegal:
                message = f"{say(trail)} expects the illegal state '{state}'"
                hint = "add breaks: illegal-state, or expect another state"
                yield look.found("illegal-expected", (*trail, "then", subject, key), message, hint)


def after_the_break(look: Look) -> Iterator[Finding]:
    """Find steps that never run, for a step before them breaks something and ends the scenario."""
    for name, scenario in look.catalogue.scenarios.items():
        for number, step in enumerate(scenario.steps[:-1]):
            if step.breaks:
                trail: Trail = ("scenarios", name, "steps", number + 1)
                message = f"{say(trail)} never runs: step {number + 1} has 'breaks' and ends the scenario"
                yield look.found("after-the-break", trail, message, "take the later steps out, or the 'breaks'")
                break
        before = look.catalogue.scenarios.get(scenario.after) if scenario.after is not None else None
        if scenario.orders == "all" and before is not None and any(step.breaks for step in before.steps):
            message = f"scenario '{name}' asks for all orders, and '{scenario.after}' breaks something where it begins"
            hint = "orders drop what steps expect, so none can begin there: take 'orders' out"
            yield look.found("after-the-break", ("scenarios", name, "orders"), message, hint)
