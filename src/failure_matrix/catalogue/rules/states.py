"""Rules about states: what leads to each and out of it, and what a reader needs to find there."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from failure_matrix.catalogue.findings import Finding
from failure_matrix.catalogue.model import ABSENT, State
from failure_matrix.catalogue.reading import KEY, Trail, say
from failure_matrix.catalogue.rules.look import OTHERWISE, Look
from failure_matrix.catalogue.sql import parameters


def reserved_words(look: Look) -> Iterator[Finding]:
    """Find states that have the name of something else."""
    for name in look.catalogue.states:
        if name in (ABSENT, OTHERWISE):
            means = "that there is no row" if name == ABSENT else "every other state"
            yield look.found(
                "reserved-word", ("states", name, KEY), f"a state is named '{name}', which means {means}", "rename it"
            )


def moves_between_subjects(look: Look) -> Iterator[Finding]:
    """Find moves from a state of one subject to a state of another."""
    subjects = {name: state.subject for name, state in look.catalogue.states.items()}
    for trail, source, target in look.edges():
        one, other = subjects.get(source), subjects.get(target)
        if one != other and one in look.catalogue.subjects and other in look.catalogue.subjects:
            message = f"{say(trail[:2])} moves from '{source}' of {one} to '{target}' of {other}"
            hint = f"a {one} stays a {one}: give the move of each subject for itself"
            yield look.found("moves-between-subjects", trail, message, hint)


def unreachable_states(look: Look) -> Iterator[Finding]:
    """Find states that no declared move leads to from where anything begins."""
    if not any(moves for _, moves in look.moves()):
        return
    reached = _reached(_beginnings(look), _ways(look))
    for name, state in look.catalogue.states.items():
        if name not in reached and not state.illegal:
            message = f"no move leads to state '{name}' from absent, or from a state in which a scenario begins"
            hint = "add the move of the action or event that leads there, or a scenario that begins there"
            yield look.found("unreachable-state", ("states", name, KEY), message, hint)


def _ways(look: Look) -> dict[str, set[str]]:
    """Give where each state leads; a move to a ``$parameter`` may lead anywhere."""
    ways: dict[str, set[str]] = {}
    for _, moves in look.moves():
        for source, targets in moves.items():
            anywhere = any(target.startswith("$") for target in targets)
            ways.setdefault(source, set()).update(look.catalogue.states if anywhere else targets)
    return ways


def _beginnings(look: Look) -> set[str]:
    """Give absent, what steps expect, and where the deeds of scenarios that are given rows start from."""
    begins = {ABSENT}
    for trail, step in look.steps():
        first = look.catalogue.scenarios[look.chains[trail[1]][-1]]
        for expected in (step.then, *step.seen_by.values()):
            begins.update(state for keys in expected.values() for state in keys.values())
        if first.given.tables or first.given.files or first.given.sql:
            for deeds, name in (("actions", step.do or step.carries_out), ("events", step.event)):
                deed = getattr(look.catalogue, deeds).get(name)
                begins.update(deed.moves if deed else ())
    return begins


def _reached(begins: set[str], ways: dict[str, set[str]]) -> set[str]:
    reached, ahead = set(begins), list(begins)
    while ahead:
        new = ways.get(ahead.pop(), set()) - reached
        reached |= new
        ahead += new
    return reached


def traps(look: Look) -> Iterator[Finding]:
    """Find states that nothing leaves and that are not final."""
    ways = _ways(look)
    if not ways:
        return
    for name, state in look.catalogue.states.items():
        if not (state.final or state.illegal or ways.get(name, set()) - {name}):
            message = f"state '{name}' has no way out and is not final"
            yield look.found("trap", ("states", name, KEY), message, "add a move that leaves it, or final: true")


def reverses(look: Look) -> Iterator[Finding]:
    """Find reverse criteria whose action or event has no move out of the state."""
    moves = {trail[1]: moves for trail, moves in look.moves() if trail[2] == "moves"}
    for name, state in look.catalogue.states.items():
        for deed in state.reverse:
            if deed in moves and name not in moves[deed]:
                message = f"state '{name}' is reversed by '{deed}', which has no move from it"
                hint = f"add '{name}' to the moves of '{deed}', or take it out here"
                yield look.found("reverse-without-move", ("states", name, "reverse", deed, KEY), message, hint)


def seen_elsewhere(look: Look) -> Iterator[Finding]:
    """Find ``also_in`` that means nothing: no SQL, SQL that names no row, a state where it is never run."""
    for name, state in look.catalogue.states.items():
        subject = look.catalogue.subjects.get(state.subject)
        for number, observation in enumerate(state.observe):
            trail: Trail = ("states", name, "observe", number, "also_in")
            said = f"observation {number + 1} of state '{name}'"
            if not observation.also_in:
                continue
            if observation.sql is None:
                yield look.found("also-in", trail, f"{said} has also_in and no SQL", "take it out, or add sql")
            elif subject and not set(subject.key) <= set(parameters(observation.sql)):
                keys = ", ".join(f":{key}" for key in subject.key)
                message = f"{said} has also_in, and its SQL does not name the row by {keys}"
                yield look.found("also-in", trail, message, f"compare the key with {keys}, or take also_in out")
            else:
                yield from _elsewhere(look, name, state, trail, observation.also_in)


def _elsewhere(look: Look, name: str, state: State, trail: Trail, also: Sequence[str]) -> Iterator[Finding]:
    for at, other in enumerate(also):
        body = look.catalogue.states.get(other)
        if other in (ABSENT, name) or (body and (body.subject != state.subject or body.uncommitted)):
            message = f"state '{name}' is observed also in '{other}', where the observation is never run"
            yield look.found("also-in", (*trail, at), message, f"name another committed state of {state.subject}")


def missing_for_readers(look: Look) -> Iterator[Finding]:
    """Find what a person in front of a state would miss."""
    for name, state in look.catalogue.states.items():
        for rule, message, hint in _missing(state):
            yield look.found(rule, ("states", name, KEY), f"state '{name}' {message}", hint)


def _missing(state: State) -> Iterator[tuple[str, str, str]]:
    if state.owner is None:
        yield "no-owner", "has no owner", "add owner: the role that answers"
    if not state.observe:
        yield "no-observation", "has no observation", "add observe: [{see: …, does_not_prove: …}]"
    elif state.observe[0].does_not_prove is None:
        yield "no-does-not-prove", "does not say what its first observation does not prove", "add does_not_prove to it"
    if state.illegal:
        return
    if not (state.reverse or state.final):
        yield "no-reverse", "does not say what ends it", "add reverse: {action or event: criterion}, or final: true"
    if state.retention is None:
        yield "no-retention", "does not say how long it is kept", "add retention: {keep: …}"


LONGEST_CELL = 60  # characters, in the matrix


def long_cells(look: Look) -> Iterator[Finding]:
    """Find texts that are longer than a cell of the matrix shows."""
    for trail, text in _cells(look):
        if len(text) > LONGEST_CELL:
            message = f"{say(trail)} has {len(text)} characters, and a cell of the matrix shows {LONGEST_CELL}"
            yield look.found("long-cell", trail, message, "say it shorter; what is left over may stand in 'about'")


def _cells(look: Look) -> Iterable[tuple[Trail, str]]:
    for name, owner in look.catalogue.owners.items():
        yield ("owners", name, "title"), owner.title
    for name, action in look.catalogue.actions.items():
        yield ("actions", name, "title"), action.title
    for name, event in look.catalogue.events.items():
        yield ("events", name, "title"), event.title
    for name, state in look.catalogue.states.items():
        trail: Trail = ("states", name)
        yield (*trail, "title"), state.title
        for observation in state.observe[:1]:
            yield (*trail, "observe", 0, "see"), observation.see
            yield (*trail, "observe", 0, "does_not_prove"), observation.does_not_prove or ""
        for number, text in enumerate(state.do_not):
            yield (*trail, "do_not", number), text
        for deed, text in state.reverse.items():
            yield (*trail, "reverse", deed), text
