"""What a verdict rests on, as digests made from the catalogue alone, so that a change needs no server to be noticed.

The digest of a relation covers every statement of the schema that names it, and, through these, the relations
that they name in turn: a foreign key, a trigger's function. White space and comments do not count.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from functools import cached_property

from failure_matrix.catalogue.model import ABSENT, Catalogue, Scenario, Sql, StoreEffect
from failure_matrix.catalogue.sql import identifiers, normal
from failure_matrix.evidence.schema import EVERYTHING, Objects, objects


def digest(*parts: str) -> str:
    """Sixteen hex digits over the parts, in order."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]


class Fingerprints:
    """The digests of one catalogue on one major version of PostgreSQL; names are ``kind/id``."""

    def __init__(self, catalogue: Catalogue, major: int) -> None:
        self._catalogue = catalogue
        self._major = major
        self._known: dict[str, str] = {}

    @cached_property
    def _objects(self) -> Objects:
        return objects(tuple(sql.text for sql in self._catalogue.settings.schema_))

    @cached_property
    def _nouns(self) -> Mapping[str, Mapping[str, object]]:
        """What a name's ``kind`` stands for; observations go by their state."""
        catalogue = self._catalogue
        return {
            "subject": catalogue.subjects,
            "state": catalogue.states,
            "observations": catalogue.states,
            "action": catalogue.actions,
            "event": catalogue.events,
            "caller": catalogue.callers,
            "scenario": catalogue.scenarios,
            "invariant": catalogue.invariants,
        }

    def digests(self, names: Iterable[str]) -> dict[str, str]:
        """``kind/id`` -> digest, for names as ``rests_on`` gives them."""
        ordered = sorted(set(names))
        for name in ordered:
            if name not in self._known:
                self._known[name] = self._digest(*name.split("/", 1))
        return {name: self._known[name] for name in ordered}

    def _digest(self, kind: str, id: str) -> str:
        catalogue = self._catalogue
        match kind:
            case "schema":
                return digest(*self._objects.definition(id))
            case "state":
                state = catalogue.states[id]
                subject = catalogue.subjects[state.subject]
                facts = json.dumps([subject.key, list(subject.show), state.illegal, state.uncommitted, state.final])
                return digest(facts, normal(subject.from_.text), normal(state.when.text))
            case "observations":
                state = catalogue.states[id]
                asked = [[each.sql, each.also_in] for each in state.observe if each.sql is not None]
                return digest(_plain([asked, state.retention.cost if state.retention is not None else None]))
            case "action" | "event" | "caller" | "subject":
                return digest(_plain(self._nouns[kind][id]))
            case "invariant":
                return digest(normal(catalogue.invariants[id].sql.text))
            case "scenario":
                chain = self._chain(id)
                used = {step.in_ for scenario in chain for step in scenario.steps}
                setups = {name: setup for name, setup in catalogue.sessions.items() if name in used}
                return digest(catalogue.settings.clock, _plain(setups), *(_plain(each) for each in chain))
            case "postgresql":
                return str(self._major)
        raise AssertionError(kind)

    def _chain(self, id: str) -> list[Scenario]:
        """A scenario and those that it begins after, first things first."""
        chain: list[Scenario] = []
        at: str | None = id
        while at is not None and self._catalogue.scenarios[at] not in chain:
            chain.insert(0, self._catalogue.scenarios[at])
            at = self._catalogue.scenarios[at].after
        return chain

    def scenario_rests_on(self, id: str) -> frozenset[str]:
        """What a scenario's verdict rests on: the SQL that ran, every predicate asked, the relations these name."""
        deeds = self._deeds(id)
        names = {f"scenario/{id}", *deeds}
        names |= {f"state/{state}" for state in self._states_of(id, deeds)}
        reached = self._objects.reached(self._named(names)) - {EVERYTHING}
        for invariant, body in self._catalogue.invariants.items():
            if not reached.isdisjoint(identifiers(body.sql.text)):
                names.add(f"invariant/{invariant}")
        return self._with_schema(names)

    def _deeds(self, scenario: str) -> frozenset[str]:
        """What a scenario does or lets happen: actions, events, and callers."""
        found: set[str] = set()
        for step in (step for each in self._chain(scenario) for step in each.steps):
            found |= {f"action/{name}" for name in (step.do, step.carries_out) if name}
            found |= {f"caller/{step.as_}"} if step.as_ else set()
            for id, event in self._catalogue.events.items():
                by_itself = (event.at and step.at) or (event.kill and step.kill) or id in ("commit", "rollback")
                found |= {f"event/{id}"} if id == step.event or by_itself else set()
        return frozenset(found)

    def _states_of(self, scenario: str, deeds: Iterable[str]) -> frozenset[str]:
        """The states that a scenario expects, or that what happens in it moves from or to."""
        found: set[str] = set()
        for step in (step for each in self._chain(scenario) for step in each.steps):
            for expected in (step.then, *step.seen_by.values()):
                found |= {state for keys in expected.values() for state in keys.values()}
        for kind, id in (name.split("/", 1) for name in deeds):
            if kind == "action":
                found |= _ends(self._catalogue.actions[id].moves) | _ends(self._catalogue.actions[id].also)
            elif kind == "event":
                found |= _ends(self._catalogue.events[id].moves)
        return frozenset(found & self._catalogue.states.keys())

    def _named(self, names: Iterable[str]) -> frozenset[str]:
        """Every identifier in the SQL behind these names."""
        found: set[str] = set()
        for name in names:
            kind, id = name.split("/", 1)
            match kind:
                case "action" | "event":
                    sql = self._catalogue.actions[id].sql if kind == "action" else self._catalogue.events[id].sql
                    found |= identifiers(sql.text) if sql else frozenset()
                case "state":
                    state = self._catalogue.states[id]
                    found |= identifiers(state.when.text)
                    found |= identifiers(self._catalogue.subjects[state.subject].from_.text)
                case "caller":
                    caller = self._catalogue.callers[id]
                    found |= identifiers(caller.sql.text) if caller.sql is not None else frozenset()
                case "invariant":
                    found |= identifiers(self._catalogue.invariants[id].sql.text)
                case "subject":
                    found |= identifiers(self._catalogue.subjects[id].from_.text)
                case "scenario":
                    for scenario in self._chain(id):
                        found |= {table.rsplit(".", 1)[-1] for table in scenario.given.tables}
                        found |= identifiers(scenario.given.sql.text) if scenario.given.sql else frozenset()
                        for step in scenario.steps:
                            found |= identifiers(step.sql.text) if step.sql else frozenset()
        return frozenset(found)

    @cached_property
    def _movers(self) -> Mapping[str, set[str]]:
        """The actions and events that leave or reach each state."""
        found: dict[str, set[str]] = {}
        ends = {f"action/{id}": _ends(each.moves) | _ends(each.also) for id, each in self._catalogue.actions.items()}
        ends |= {f"event/{id}": _ends(each.moves) for id, each in self._catalogue.events.items()}
        for name, states in ends.items():
            for state in states:
                found.setdefault(state, set()).add(name)
        return found

    def state_rests_on(self, id: str, scenarios: Iterable[str]) -> frozenset[str]:
        """What a state's verdict rests on: predicate, observations, what leaves or reaches it, its witnesses."""
        names = {f"state/{id}", f"observations/{id}"}
        names |= self._movers.get(id, frozenset())
        return self._with_schema(names).union(*map(self.shown_by, scenarios))

    def shown_by(self, scenario: str) -> frozenset[str]:
        """What a scenario shows rests on: its steps, and what it does and lets happen."""
        return frozenset({f"scenario/{scenario}", *self._deeds(scenario)})

    def move_rests_on(self, source: str, by: str, target: str, scenarios: Iterable[str]) -> frozenset[str]:
        """What a move's verdict rests on: who makes it, the two predicates, its witnesses."""
        kind = "action" if by in self._catalogue.actions else "event"
        names = {f"{kind}/{by}", *(f"state/{id}" for id in (source, target) if id != ABSENT)}
        return self._with_schema(names).union(*map(self.shown_by, scenarios))

    def cell_rests_on(self, state: str, action: str, caller: str | None) -> frozenset[str]:
        """What a cell's verdict rests on: the predicate, the action, the caller, the relation of the row."""
        names = {f"action/{action}", *([f"state/{state}"] if state != ABSENT else [])}
        names |= {f"caller/{caller}"} if caller is not None else set()
        return self._with_schema(names, asked=self._catalogue.actions[action].subject)

    def guard_rests_on(self, action: str, shown_by: Iterable[str] = ()) -> frozenset[str]:
        """What the verdict on an action's guard rests on: its statement, and who noticed; else all that might have."""
        doing = {
            f"scenario/{id}"
            for id, scenario in self._catalogue.scenarios.items()
            if any(action in (step.do, step.carries_out) for step in scenario.steps)
        }
        return self._with_schema({f"action/{action}"}) | (set(shown_by) or doing)

    def population_rests_on(self, subject: str) -> frozenset[str]:
        """What the population probe rests on: the subject with its values, and every predicate of it."""
        return self._with_schema({f"subject/{subject}", *(f"state/{id}" for id in self._catalogue.states_of(subject))})

    def invariant_rests_on(self, id: str) -> frozenset[str]:
        """What an invariant rests on: its SQL."""
        return self._with_schema({f"invariant/{id}"})

    def observation_rests_on(self, state: str) -> frozenset[str]:
        """What an observation rests on: its SQL, and the state that it is made in."""
        return self._with_schema({f"state/{state}", f"observations/{state}"})

    def everything(self) -> dict[str, str]:
        """The digest of every name that anything of this catalogue can rest on."""
        names = {f"{kind}/{id}" for kind, nouns in self._nouns.items() for id in nouns}
        names |= {f"schema/{name}" for name in self._objects.names}
        return self.digests({*names, "postgresql/major"})

    def _with_schema(self, names: Iterable[str], *, asked: str | None = None) -> frozenset[str]:
        """These names, the objects of the schema that their SQL reaches, and the server's major version.

        asked: the subject whose relation was asked as well.
        """
        named = self._named(names) | (self._named([f"subject/{asked}"]) if asked is not None else frozenset())
        schema = {f"schema/{name}" for name in self._objects.reached(named)}
        return frozenset({*names, *schema, "postgresql/major"})

    def fingerprint(self, names: Iterable[str]) -> str:
        """One digest over everything named."""
        return digest(*(f"{name}={value}" for name, value in self.digests(names).items()))

    def catalogue(self) -> str:
        """The digest of the whole catalogue, prose included."""
        return digest(_plain(self._catalogue))


def _ends(moves: dict[str, tuple[str, ...]]) -> frozenset[str]:
    return frozenset(moves) | frozenset(target for targets in moves.values() for target in targets)


_PROSE = {"title", "about", "shows", "does_not_show", "means", "because", "owner", "origin"}


def _plain(noun: object) -> str:
    """A noun as canonical JSON, SQL normalized; of actions, events and scenarios without their prose."""
    prose = frozenset() if isinstance(noun, Catalogue) else frozenset(_PROSE)
    return json.dumps(_value(noun, prose), sort_keys=True, default=str)


def _value(noun: object, without: frozenset[str]) -> object:
    match noun:
        case Sql():
            return [normal(noun.text), noun.params]
        case StoreEffect():
            return [noun.verb, noun.target, noun.content]
        case dict():
            return [[_value(key, without), _value(value, without)] for key, value in noun.items()]
        case tuple() | list():
            return [_value(value, without) for value in noun]
        case None | str() | int():
            return noun
        case _ if hasattr(type(noun), "model_fields"):
            fields = type(noun).model_fields  # type: ignore[attr-defined]
            kept = (name for name, info in fields.items() if name not in without and not info.exclude)
            return {
                name: _value(getattr(noun, name), without) for name in kept if getattr(noun, name) not in ((), {}, None)
            }
        case _:
            return str(noun)
