"""Actions tried at rest, each in a transaction of its own that is rolled back; many of them in one round trip.

What a rollback keeps is put back: advisory locks here, sequences by whoever visits the situation. Store effects
change the inventory that the probe is given, never a file.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice

from failure_matrix.catalogue.model import Action, Catalogue, Scalar, Sql
from failure_matrix.database.answers import Request, Result, ServerError, Value
from failure_matrix.database.classify import Situation
from failure_matrix.database.connection import Connection
from failure_matrix.database.relations import Inventory, store_values
from failure_matrix.evidence.schema import split_statements
from failure_matrix.verify.assess import Try
from failure_matrix.verify.demands import needed, takes_advisory_locks
from failure_matrix.verify.ground import Ground
from failure_matrix.verify.rows import bound, with_stores
from failure_matrix.verify.situations import Rest
from failure_matrix.verify.stores import EffectRefused, simulate
from failure_matrix.verify.tables import has_deferrable

Sources = Mapping[str, Scalar]  # what a try's parameters are bound to
Found = Result | ServerError | None

_AT_ONCE = 16  # tries in one round trip
_BEGIN, _READ_ONLY = Request(text="BEGIN"), Request(text="BEGIN READ ONLY")
_HURRY = Request(text="SET LOCAL lock_timeout = '50ms'")  # a session at rest can hold an advisory lock for ever
_IMMEDIATE = Request(text="SET CONSTRAINTS ALL IMMEDIATE")  # what the commit would refuse is refused
_NO_DUTY = Request(text="SELECT true")
_ROLLBACK = Request(text="ROLLBACK")
_UNLOCK = Request(text="SELECT pg_advisory_unlock_all()")


class NoAnswer(Exception):
    """A try that tells nothing, because the server could not evaluate SQL of the catalogue. ``str()`` says which."""


@dataclass(frozen=True, kw_only=True)
class _Plan:
    """A try in which nothing hangs on an answer: what is sent, and what of it is the action's."""

    requests: Sequence[Request]
    acts: slice
    answer: Result | None  # of an action that has only a store effect


class Tries:
    """The tries in one situation; the same action with the same values is tried once.

    ``instead`` are actions whose SQL runs in place of the catalogue's.
    """

    def __init__(self, catalogue: Catalogue, instead: Mapping[str, Action], ground: Ground, rest: Rest) -> None:
        self._catalogue = catalogue
        self._instead = instead
        self._ground = ground
        self._now = rest.now
        self._inventory = rest.inventory
        self._before = rest.situation
        self._stores = store_values(rest.inventory)
        self._look = self._probe(rest.inventory)
        self._needs: dict[str, tuple[str, ...]] = {}
        self._known: dict[tuple[object, ...], Try] = {}
        self._answers: dict[tuple[object, ...], Found] = {}
        self._read: dict[object, Situation] = {}
        self._begin = [_BEGIN, *([_HURRY] if rest.locks is not None else [])]
        self._end = [_IMMEDIATE] if has_deferrable(self._connection) else []
        self._afterwards = [_ROLLBACK, *([_UNLOCK] if takes_advisory_locks(catalogue) else [])]

    @property
    def _connection(self) -> Connection:
        return self._ground.watcher("sweep")  # a new one where a try has ended the last

    def needs(self, id: str) -> tuple[str, ...]:
        """The parameters that whoever tries the action must bring."""
        if id not in self._needs:
            self._needs[id] = tuple(sorted(needed(self._catalogue.actions[id])))
        return self._needs[id]

    def foresee(self, wanted: Iterable[tuple[str, Sources]]) -> None:
        """Try these actions, many in one round trip, as far as that can be; ``one`` then knows what came of them."""
        plans: dict[tuple[object, ...], _Plan] = {}
        for id, sources in wanted:
            key = self._key(id, sources)
            if key not in self._known and key not in plans:
                with suppress(EffectRefused):
                    plan = self._planned(id, sources)
                    plans |= {} if plan is None else {key: plan}
        todo = iter(plans.items())
        with suppress(ServerError):  # a try has ended the connection: ``one`` will find out which
            while some := list(islice(todo, _AT_ONCE)):
                self._run(some)

    def _run(self, some: Sequence[tuple[tuple[object, ...], _Plan]]) -> None:
        segments = [part for _, plan in some for part in (plan.requests, self._afterwards)]
        answers = iter(self._connection.together(*segments))
        for key, plan in some:
            found = list(islice(answers, len(plan.requests) + len(self._afterwards)))
            with suppress(NoAnswer):
                self._known[key] = self._told(plan, found)

    def one(self, id: str, sources: Sources) -> Try:
        """Try an action. Raises NoAnswer, EffectRefused."""
        key = self._key(id, sources)
        if key not in self._known:
            try:
                self._known[key] = self._alone(id, sources)
            except ServerError as error:  # the connection is lost
                raise NoAnswer("it ends the backend that runs it, so it cannot be tried and rolled back") from error
        return self._known[key]

    def said(self, id: str, sources: Sources) -> Result | None:
        """What the record says of a refusal, one row at most; None where the action does not ask it. Raises NoAnswer.

        A refusal changes nothing, so it is asked as things stand.
        """
        ask = self._catalogue.actions[id].refusal.ask
        if ask is None:
            return None
        asked = with_stores(self._catalogue, f"SELECT * FROM (\n{ask.text}\n) AS asked")
        request = _request(asked, {**self._stores, **self._sources(sources)})
        key = (request.text, *request.values)
        if key not in self._answers:
            try:
                *_, self._answers[key], _ = self._connection.together([_READ_ONLY, request], [_ROLLBACK])
            except ServerError as error:  # the connection is lost
                raise NoAnswer("asking the record after a refusal ends the backend that asks") from error
        found = self._answers[key]
        if not isinstance(found, Result):
            raise NoAnswer(f"the record cannot be asked after a refusal: {found or 'it was not reached'}")
        if len(found.rows) > 1:
            raise NoAnswer(f"asked after a refusal, the record gives {len(found.rows)} rows, and an answer is one")
        return found

    def _key(self, id: str, sources: Sources) -> tuple[object, ...]:
        return (id, *[sources[name] for name in self.needs(id)])

    def _alone(self, id: str, sources: Sources) -> Try:
        plan = self._planned(id, sources)
        if plan is not None:
            return self._told(plan, self._connection.together(plan.requests, self._afterwards))
        action = self._action(id)
        assert action.sql is not None
        return self._stepwise(action, action.sql, self._sources(sources))

    def _action(self, id: str) -> Action:
        return self._instead.get(id, self._catalogue.actions[id])

    def _sources(self, sources: Sources) -> dict[str, Value]:
        return {"now": self._now, **sources}

    def _planned(self, id: str, given: Sources) -> _Plan | None:
        """None where something hangs on an answer: several statements, SQL with an effect. Raises EffectRefused."""
        action, sources = self._action(id), self._sources(given)
        if action.sql is not None and (action.store is not None or len(split_statements(action.sql.text)) > 1):
            return None
        requests = [*self._begin, self._duty(action.requires, sources)]
        first = len(requests)
        inventory, answer = self._inventory, None
        if action.sql is not None:
            requests += [_request(action.sql, sources), *self._end]
        elif action.store is not None:
            inventory, answer = simulate(inventory, action.store, sources)
        acts = slice(first, len(requests))
        look = self._look if inventory is self._inventory else self._probe(inventory)
        return _Plan(requests=[*requests, look], acts=acts, answer=answer)

    def _told(self, plan: _Plan, answers: Sequence[Found]) -> Try:
        """What came of a try. Raises NoAnswer."""
        duty, acted, found = _held(answers[plan.acts.start - 1]), answers[plan.acts], answers[plan.acts.stop]
        for error in acted:
            if isinstance(error, ServerError):
                return Try(duty=duty, answer=None, error=error, after=None)
        answer = acted[0] if acted and isinstance(acted[0], Result) else plan.answer
        return Try(duty=duty, answer=answer, error=None, after=self._situation_of(found))

    def _stepwise(self, action: Action, sql: Sql, sources: Mapping[str, Value]) -> Try:
        """SQL that may be several statements, or whose answer decides about a store effect."""
        connection = self._connection
        *_, duty = connection.together([*self._begin, self._duty(action.requires, sources)])
        try:
            answer = connection.query(*bound(sql, sources))
            for request in self._end:
                connection.query(request.text)
            inventory = self._inventory
            if action.store is not None and answer.affected:
                inventory, answer = simulate(inventory, action.store, sources)
            (found,) = connection.together([self._probe(inventory)])
            return Try(duty=_held(duty), answer=answer, error=None, after=self._situation_of(found))
        except ServerError as error:
            return Try(duty=_held(duty), answer=None, error=error, after=None)
        finally:
            connection.together(self._afterwards)

    def _probe(self, inventory: Inventory) -> Request:
        return self._ground.probe.request(now=self._now, inventory=inventory, previous=self._before)

    def _situation_of(self, found: Found) -> Situation:
        """What the probe found; most tries change nothing, and are read once. Raises NoAnswer."""
        if not isinstance(found, Result):
            raise NoAnswer(f"what it leaves cannot be classified: {found or 'the probe did not run'}")
        if found.rows not in self._read:
            self._read[found.rows] = self._ground.probe.read(found)
        return self._read[found.rows]

    def _duty(self, requires: Sql | None, sources: Mapping[str, Value]) -> Request:
        """Ask whether the caller's duty is done; without one it is."""
        if requires is None:
            return _NO_DUTY
        asked = with_stores(self._catalogue, f"SELECT (\n{requires.text}\n) IS TRUE")
        return _request(asked, {**self._stores, **sources})


def _request(sql: Sql, sources: Mapping[str, Value]) -> Request:
    text, values = bound(sql, sources)
    return Request(text=text, values=values)


def _held(duty: Found) -> bool:
    """The answer about the duty; an error in asking is an error of the catalogue. Raises NoAnswer."""
    if not isinstance(duty, Result):
        raise NoAnswer(f"its requirement cannot be asked: {duty or 'it was not reached'}")
    return duty.rows[0][0] == "t"
