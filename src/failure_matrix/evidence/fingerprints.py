"""What a verdict rests on, as digests made from the catalogue alone, so that a change needs no server to be noticed.

The digest of a relation covers every statement of the schema that names it, and, through these, the relations
that they name in turn: a foreign key, a trigger's function. White space and comments do not count.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property

from failure_matrix.catalogue.model import ABSENT, Action, Catalogue, Scenario, Sql
from failure_matrix.catalogue.sql import identifiers, normal
from failure_matrix.evidence.canonical import plain
from failure_matrix.evidence.declared import COST, observations
from failure_matrix.evidence.schema import EVERYTHING, Objects, objects


def digest(*parts: str) -> str:
    """Sixteen hex digits over the parts, in order."""
    return hashlib.sha256("\x1f".join(parts).encode()).hexdigest()[:16]


class Fingerprints:
    """The digests of one catalogue on one major version of PostgreSQL; names are ``kind/id``.

    ``before`` are objects of an older schema: what still names one that is gone rests on it all the same.
    """

    def __init__(self, catalogue: Catalogue, major: int, *, before: frozenset[str] = frozenset()) -> None:
        self._catalogue = catalogue
        self._before = before
        self._major = major
        self._known: dict[str, str] = {}

    @cached_property
    def _objects(self) -> Objects:
        return objects(tuple(sql.text for sql in self._catalogue.settings.schema_))

    @cached_property
    def _nouns(self) -> Mapping[str, Mapping[str, object]]:
        """What a name's ``kind`` stands for; observations go by state and number, rows by their subject."""
        catalogue = self._catalogue
        return {
            "subject": catalogue.subjects,
            "row": catalogue.subjects,
            "state": catalogue.states,
            "observation": self._observations,
            "action": {id: _without_ask(action) for id, action in catalogue.actions.items()},
            "ask": {
                id: action.refusal.ask for id, action in catalogue.actions.items() if action.refusal.ask is not None
            },
            "event": catalogue.events,
            "caller": catalogue.callers,
            "scenario": catalogue.scenarios,
            "invariant": catalogue.invariants,
        }

    @cached_property
    def _observations(self) -> Mapping[str, tuple[Sql, tuple[str, ...]]]:
        """The SQL of each observation and cost, with the other states that it says it gives a row in."""
        return {
            observation(state, number): (sql, () if number == COST else body.observe[number].also_in)
            for state, body in self._catalogue.states.items()
            for number, sql in observations(self._catalogue, state)
        }

    @cached_property
    def _observed(self) -> Mapping[str, list[str]]:
        """The names of each state's observations."""
        found: dict[str, list[str]] = {}
        for name in self._observations:
            found.setdefault(name.rsplit(" ", 1)[0], []).append(f"observation/{name}")
        return found

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
            case "observation":
                return digest(plain(list(self._observations[id])))
            case "row":
                row = catalogue.subjects[id]
                return digest(plain([row.key, row.from_, row.offers, row.spare]))
            case "catalogue":
                return digest(catalogue.settings.clock)
            case "action" | "ask" | "event" | "caller" | "subject":
                return digest(plain(self._nouns[kind][id]))
            case "invariant":
                return digest(normal(catalogue.invariants[id].sql.text))
            case "scenario":
                chain = self._chain(id)
                used = {step.in_ for scenario in chain for step in scenario.steps}
                setups = {name: setup for name, setup in catalogue.sessions.items() if name in used}
                return digest(catalogue.settings.clock, plain(setups), *(plain(each) for each in chain))
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
        """Every identifier in the SQL behind these names, and the tables that are filled."""
        found: set[str] = set()
        for name in names:
            kind, id = name.split("/", 1)
            for sql in self._sqls(kind, id):
                found |= identifiers(sql.text) if sql is not None else frozenset()
            for scenario in self._chain(id) if kind == "scenario" else ():
                found |= {table.rsplit(".", 1)[-1] for table in scenario.given.tables}
        return frozenset(found)

    def _sqls(self, kind: str, id: str) -> Iterator[Sql | None]:
        """The SQL behind a name."""
        catalogue = self._catalogue
        match kind:
            case "action" | "ask" | "event":
                yield from self._sqls_of_deeds(kind, id)
            case "observation":
                yield self._observations[id][0]
            case "state":
                yield from (catalogue.states[id].when, catalogue.subjects[catalogue.states[id].subject].from_)
            case "caller":
                yield catalogue.callers[id].sql
            case "invariant":
                yield catalogue.invariants[id].sql
            case "subject" | "row":
                yield catalogue.subjects[id].from_
            case "scenario":
                for scenario in self._chain(id):
                    yield from (scenario.given.sql, *(step.sql for step in scenario.steps))

    def _sqls_of_deeds(self, kind: str, id: str) -> Iterator[Sql | None]:
        if kind == "event":
            yield from (self._catalogue.events[id].sql, self._catalogue.events[id].at)
        elif kind == "ask":
            yield self._catalogue.actions[id].refusal.ask
        else:
            yield from (self._catalogue.actions[id].sql, self._catalogue.actions[id].requires)

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
        names = {f"state/{id}", *self._observed.get(id, ())}
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

    def cell_rests_on(self, state: str, action: str, caller: str | None, *, asked: bool = False) -> frozenset[str]:
        """What a cell's verdict rests on: the predicate, the action, the caller, the row and what it offers.

        asked: the record was asked after a refusal.
        """
        names = {f"action/{action}", f"row/{self._catalogue.actions[action].subject}"}
        names |= {f"state/{state}"} if state != ABSENT else set()
        names |= {f"ask/{action}"} if asked and self._catalogue.actions[action].refusal.ask is not None else set()
        names |= {f"caller/{caller}"} if caller is not None else set()
        return self._with_schema(names)

    def guard_rests_on(self, action: str, shown_by: Iterable[str] = ()) -> frozenset[str]:
        """What the verdict on an action's guard rests on: its statement, and who noticed; else all that might have."""
        names = {f"action/{action}", f"row/{self._catalogue.actions[action].subject}"}
        who = {*shown_by} or {f"scenario/{id}" for id in self._catalogue.scenarios if self._does(id, action)}
        scenarios = {name.removeprefix("scenario/") for name in who if name.startswith("scenario/")}
        known = scenarios & self._catalogue.scenarios.keys()
        return self._with_schema(names).union(who, *map(self.shown_by, known))

    def _does(self, scenario: str, action: str) -> bool:
        steps = self._catalogue.scenarios[scenario].steps
        return any(action in (step.do, step.carries_out) for step in steps)

    def population_rests_on(self, subject: str) -> frozenset[str]:
        """What the population probe rests on: the subject with its values, and every predicate of it."""
        return self._with_schema({f"subject/{subject}", *(f"state/{id}" for id in self._catalogue.states_of(subject))})

    def invariant_rests_on(self, id: str) -> frozenset[str]:
        """What an invariant rests on: its SQL."""
        return self._with_schema({f"invariant/{id}"})

    def observation_rests_on(self, state: str, number: int) -> frozenset[str]:
        """What an observation rests on: its SQL, the state that it is made in, and what the row gives it."""
        row = f"row/{self._catalogue.states[state].subject}"
        return self._with_schema({f"state/{state}", f"observation/{observation(state, number)}", row})

    def everything(self) -> dict[str, str]:
        """The digest of every name that anything of this catalogue can rest on."""
        names = {f"{kind}/{id}" for kind, nouns in self._nouns.items() for id in nouns}
        names |= {f"schema/{name}" for name in self._objects.names}
        return self.digests({*names, *_ALWAYS})

    def _with_schema(self, names: Iterable[str]) -> frozenset[str]:
        """These names, the objects of the schema that their SQL reaches, the clock and the server's major version."""
        named = self._named(names)
        gone = {name for name in self._before - self._objects.names if name in named or name == EVERYTHING}
        schema = {f"schema/{name}" for name in (*self._objects.reached(named), *gone)}
        return frozenset({*names, *schema, *_ALWAYS})

    def fingerprint(self, names: Iterable[str]) -> str:
        """One digest over everything named."""
        return digest(*(f"{name}={value}" for name, value in self.digests(names).items()))

    def catalogue(self) -> str:
        """The digest of the whole catalogue, prose included."""
        return digest(plain(self._catalogue))


_ALWAYS = ("catalogue/clock", "postgresql/major")  # everything rests on these


def observation(state: str, number: int) -> str:
    """The name of an observation: ``ready 1``, the cost ``ready cost``."""
    return f"{state} {'cost' if number == COST else number + 1}"


def _without_ask(action: Action) -> Action:
    """The action without its question to the record: on the answers, cells alone rest."""
    return action.model_copy(update={"refusal": action.refusal.model_copy(update={"ask": None})})


def _ends(moves: dict[str, tuple[str, ...]]) -> frozenset[str]:
    return frozenset(moves) | frozenset(target for targets in moves.values() for target in targets)
