"""Rules ``unknown-…``: whatever one part of a catalogue names, another part defines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from failure_matrix.catalogue.findings import Finding
from failure_matrix.catalogue.model import ABSENT, Expected, Scenario, Step, StoreEffect
from failure_matrix.catalogue.reading import KEY, Trail, say
from failure_matrix.catalogue.rulebook import nearest
from failure_matrix.catalogue.rules.look import ENDINGS, MAYBE, OTHERWISE, VERDICTS, Look


@dataclass(frozen=True, kw_only=True)
class Reference:
    """``owner`` and ``does`` begin the sentence that ends in the name: action 'claim' moves to 'runing'."""

    trail: Trail
    name: str
    kind: str  # state, action, ...
    does: str
    known: Iterable[str]
    called: str = ""  # what should define it, when that is more than the kind

    @property
    def owner(self) -> Trail:
        """Give the trail of the noun, or of the step, that names something."""
        return self.trail[:4] if "steps" in self.trail else self.trail[:2]


def unknown_references(look: Look) -> Iterator[Finding]:
    """Find every name that nothing defines."""
    for reference in references_of(look):
        if reference.name not in reference.known:
            yield unknown(look, reference)


def unknown(look: Look, reference: Reference) -> Finding:
    """Say that nothing defines what a reference names."""
    called = reference.called or f"no {reference.kind} defines"
    message = f"{say(reference.owner)} {reference.does} '{reference.name}', which {called}"
    hint = nearest(reference.name, reference.known, f"define it, or take the name out: there is no {reference.kind}")
    return look.found(f"unknown-{reference.kind}", reference.trail, message, hint)


def references_of(look: Look) -> Iterator[Reference]:
    """Give every name that one part of the catalogue takes from another."""
    names = _Names(look)
    yield from _of_states(look, names)
    yield from _of_actions(look, names)
    yield from _of_moves(look, names)
    for name, scenario in look.catalogue.scenarios.items():
        yield from _of_scenario(look, names, name, scenario)
    for trail, step in look.steps():
        yield from _of_step(look, names, trail, step)
    yield from _of_the_rest(look, names)


class _Names:
    """Makes references to one kind of noun each."""

    def __init__(self, look: Look) -> None:
        self._known = {section: dict.fromkeys(look.known(section)) for section in _SECTIONS.values()}
        self._states = self._known["states"] | {ABSENT: None}
        self._deeds = self._known["actions"] | self._known["events"] | dict.fromkeys(ENDINGS)
        self._means = self._states | {OTHERWISE: None}

    def to(self, kind: str, trail: Trail, name: str | None, does: str) -> Iterator[Reference]:
        if name is not None:
            known: Iterable[str] = self._known[_SECTIONS[kind]]
            yield Reference(trail=trail, name=name, kind=kind, does=does, known=known)

    def to_event(self, trail: Trail, name: str | None, does: str) -> Iterator[Reference]:
        if name is not None:
            known = self._known["events"] | dict.fromkeys(ENDINGS)
            yield Reference(trail=trail, name=name, kind="event", does=does, known=known)

    def to_state(self, trail: Trail, name: str, does: str) -> Iterator[Reference]:
        if not name.startswith("$"):
            yield Reference(trail=trail, name=name, kind="state", does=does, known=self._states)

    def to_deed(self, trail: Trail, name: str, does: str) -> Iterator[Reference]:
        yield Reference(
            trail=trail, name=name, kind="action", does=does, known=self._deeds, called="no action or event defines"
        )

    def to_meaning(self, trail: Trail, name: str) -> Iterator[Reference]:
        yield Reference(trail=trail, name=name, kind="state", does="is refused in", known=self._means)


_SECTIONS = {
    "state": "states",
    "action": "actions",
    "event": "events",
    "owner": "owners",
    "caller": "callers",
    "subject": "subjects",
    "scenario": "scenarios",
    "invariant": "invariants",
    "store": "stores",
}


def _of_states(look: Look, names: _Names) -> Iterator[Reference]:
    for name, state in look.catalogue.states.items():
        trail: Trail = ("states", name)
        yield from names.to("subject", (*trail, "subject"), state.subject, "belongs to")
        yield from names.to("owner", (*trail, "owner"), state.owner, "is owned by")
        for other in state.mistaken_for:
            yield from names.to_state((*trail, "mistaken_for", other, KEY), other, "is mistaken for")
        for number, observation in enumerate(state.observe):
            for at, other in enumerate(observation.also_in):
                yield from names.to_state((*trail, "observe", number, "also_in", at), other, "is observed also in")
        for deed in state.reverse:
            yield from names.to_deed((*trail, "reverse", deed, KEY), deed, "is reversed by")


def _of_actions(look: Look, names: _Names) -> Iterator[Reference]:
    for name, action in look.catalogue.actions.items():
        trail: Trail = ("actions", name)
        yield from names.to("subject", (*trail, "subject"), action.subject, "belongs to")
        yield from names.to("owner", (*trail, "owner"), action.owner, "is owned by")
        yield from names.to("action", (*trail, "instead_of"), action.instead_of, "stands instead of")
        for number, caller in enumerate(action.permits or ()):
            yield from names.to("caller", (*trail, "permits", number), caller, "permits")
        for number, hazard in enumerate(action.hazards):
            yield from names.to("caller", (*trail, "hazards", number, "caller"), hazard.caller, "has a hazard by")
        for state in action.refusal.means:
            yield from names.to_meaning((*trail, "refusal", "means", state, KEY), state)
        yield from _of_effect(names, (*trail, "store"), action.store)
    for name, event in look.catalogue.events.items():
        yield from _of_effect(names, ("events", name, "store"), event.store)


def _of_effect(names: _Names, trail: Trail, effect: StoreEffect | None) -> Iterator[Reference]:
    for verb, target in _targets(effect):
        store = target.split("/", 1)[0]
        if "$" not in store:
            yield from names.to("store", (*trail, verb), store, f"has a file to {verb} in")


def _targets(effect: StoreEffect | None) -> Iterator[tuple[str, str]]:
    if effect is not None:
        for verb in ("create", "write", "remove", "truncate", "corrupt"):
            if (target := getattr(effect, verb)) is not None:
                yield verb, target


def _of_moves(look: Look, names: _Names) -> Iterator[Reference]:
    for trail, moves in look.every_move():
        for source, targets in moves.items():
            yield from names.to_state((*trail, source, KEY), source, "moves from")
            for number, target in enumerate(targets):
                yield from names.to_state((*trail, source, number), target, "moves to")


def _of_scenario(look: Look, names: _Names, name: str, scenario: Scenario) -> Iterator[Reference]:
    trail: Trail = ("scenarios", name)
    yield from names.to("scenario", (*trail, "after"), scenario.after, "comes after")
    for number, broken in enumerate(scenario.breaks):
        if broken not in VERDICTS:
            yield from names.to("invariant", (*trail, "breaks", number), broken, "breaks")
    sessions = look.sessions[name]
    for session in scenario.sessions:
        yield _session((*trail, "sessions", session, KEY), session, "sets up", sessions)


def _session(trail: Trail, name: str, does: str, known: Iterable[str]) -> Reference:
    return Reference(
        trail=trail, name=name, kind="session", does=does, known=known, called="has no step in this scenario"
    )


def _of_step(look: Look, names: _Names, trail: Trail, step: Step) -> Iterator[Reference]:
    yield from names.to("action", (*trail, "do"), step.do, "does")
    yield from names.to("action", (*trail, "carries_out"), step.carries_out, "carries out")
    yield from names.to_event((*trail, "event"), step.event, "brings about")
    yield from names.to("caller", (*trail, "as"), step.as_, "is called by")
    for number, broken in enumerate(step.breaks):
        if broken not in VERDICTS:
            yield from names.to("invariant", (*trail, "breaks", number), broken, "breaks")
    yield from _expected(names, (*trail, "then"), step.then)
    for session, expected in step.seen_by.items():
        yield from _expected(names, (*trail, "seen_by", session), expected)
    yield from _sessions_of_step(look, trail, step)


def _expected(names: _Names, trail: Trail, expected: Expected) -> Iterator[Reference]:
    for subject, keys in expected.items():
        yield from names.to("subject", (*trail, subject, KEY), subject, "expects a")
        for key, state in keys.items():
            yield from names.to_state((*trail, subject, key), state, "expects")


def _sessions_of_step(look: Look, trail: Trail, step: Step) -> Iterator[Reference]:
    sessions = look.sessions[trail[1]]
    if step.kill is not None:
        yield _session((*trail, "kill"), step.kill, "kills", sessions)
    for number, session in enumerate(step.waits or ()):
        if session != MAYBE:
            yield _session((*trail, "waits", number), session, "waits for", sessions)
    for number, session in enumerate(step.releases):
        yield _session((*trail, "releases", number), session, "releases", sessions)
    for session in step.seen_by:
        yield _session((*trail, "seen_by", session, KEY), session, "is seen by", sessions)


def _of_the_rest(look: Look, names: _Names) -> Iterator[Reference]:
    for name, mechanism in look.catalogue.mechanisms.items():
        for number, scenario in enumerate(mechanism.scenarios):
            yield from names.to("scenario", ("mechanisms", name, "scenarios", number), scenario, "is shown by")
    for name, exercise in look.catalogue.exercises.items():
        yield from names.to("owner", ("exercises", name, "owner"), exercise.owner, "is owned by")
        yield from names.to("scenario", ("exercises", name, "scenario"), exercise.scenario, "is answered by")
    for name, waiver in look.catalogue.waivers.items():
        yield from names.to("owner", ("waivers", name, "owner"), waiver.owner, "is owned by")
    for name, subject in look.catalogue.subjects.items():
        for number, column in enumerate(subject.hide):
            yield Reference(
                trail=("subjects", name, "hide", number),
                name=column,
                kind="column",
                does="hides",
                known=subject.show,
                called="it does not show",
            )
