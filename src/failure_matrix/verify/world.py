"""A database with its observer, sessions, stores and clock: what a scenario acts on."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace

from failure_matrix.catalogue.model import Given, SessionSetup
from failure_matrix.database.answers import Answer, ServerError, Value
from failure_matrix.database.classify import Situation
from failure_matrix.database.connection import Connection
from failure_matrix.database.waiting import Settled, settle, wait_for_end
from failure_matrix.verify.ground import Ground
from failure_matrix.verify.prepare import give
from failure_matrix.verify.scripts import Outcome, Script
from failure_matrix.verify.stores import Stores

WORLD = "the world"  # the session of steps that are in none
SET_UP_LIMIT = 10.0  # seconds


class Blind(Exception):
    """A session cannot be asked what it sees. ``str()`` says why, in words about it."""


@dataclass(frozen=True, kw_only=True)
class Ended:
    """One step that has ended: in which session, how, and whether it ended a transaction."""

    session: str
    outcome: Outcome


class World:
    """Everything that a scenario can act on or look at, in one database."""

    def __init__(self, ground: Ground, stores: Stores, setups: Mapping[str, SessionSetup]) -> None:
        self._ground = ground
        self._setups = setups
        self.stores = stores
        self.now: Value = 0
        self.sessions: dict[str, Connection] = {}
        self.backends = [(ground.admin.pid, "the observer")]  # every backend there was, with its session's name
        self._scripts: dict[str, Script] = {}
        self.admin = ground.admin

    def close(self) -> None:
        """Give the sessions back; what they had open is rolled back."""
        self._ground.give_back(self.sessions.values())

    def session(self, name: str) -> Connection:
        """The session's connection, made or made again where there is none. Raises ServerError."""
        found = self.sessions.get(name)
        if found is not None and not found.lost:
            return found
        connection = self._ground.connection(name)
        self.sessions[name] = connection
        self.backends.append((connection.pid, name))
        if name in self._setups:
            self._set_up(connection, self._setups[name])
        return connection

    def _set_up(self, connection: Connection, setup: SessionSetup) -> None:
        try:
            if setup.isolation is not None:
                connection.query(f"SET default_transaction_isolation = '{setup.isolation}'")
            if setup.setup is not None:
                connection.query(setup.setup.text, limit=SET_UP_LIMIT)
        except ServerError as error:
            raise replace(error, message=f"{error.message} (in the set-up of session {connection.name})") from error

    def given(self, given: Given) -> None:
        """Put there what is given. Raises ServerError, NotGiven, EffectRefused."""
        if given.sql is None:
            give(self.admin, self.stores, given)
            return
        connection = self._ground.connection("given")  # what its SQL sets and holds must not stay
        try:
            give(connection, self.stores, given)
        finally:
            self._ground.give_back([connection])

    @property
    def at_rest(self) -> bool:
        """No session holds a transaction open or waits."""
        return not any(session.busy or session.in_transaction for session in self.sessions.values())

    def start(self, name: str, script: Script) -> None:
        """Start a script in a session that is free."""
        self._scripts[name] = script
        request = next(script)
        self.sessions[name].send(request.text, request.values)

    def settle(self, ended: Callable[[Ended], None], *, limit: float, until: Collection[str] = ()) -> Settled:
        """Let things settle; ``ended`` is told of each script that ends, as it ends. See ``waiting.settle``."""

        def proceed(name: str, answer: Answer) -> None:
            try:
                request = self._scripts[name].send(answer)
            except StopIteration as stop:
                del self._scripts[name]
                ended(Ended(session=name, outcome=stop.value))
            else:
                self.sessions[name].send(request.text, request.values)

        return settle(self._ground.observer, self.sessions, proceed, limit=limit, until=until)

    def kill(self, name: str) -> None:
        """End the session's backend. An idle one is gone when this returns, a busy one when it has settled."""
        connection = self.session(name)
        self.admin.query("SELECT pg_terminate_backend($1::int)", [connection.pid])
        if not connection.busy:
            wait_for_end(connection)

    def look(self, previous: Situation | None) -> Situation:
        """Classify what is committed. Raises ServerError."""
        return self._ground.probe.look(self.admin, now=self.now, inventory=self.stores.inventory(), previous=previous)

    def culprit(self, previous: Situation | None) -> tuple[str, ...] | None:
        """Find what the server could not evaluate, as a path in the catalogue."""
        probe, inventory = self._ground.probe, self.stores.inventory()
        return probe.culprit(self.admin, now=self.now, inventory=inventory, previous=previous)

    def look_from(self, name: str) -> Situation:
        """Classify what a session sees. Raises ServerError; Blind where it waits, or its transaction has failed."""
        connection = self.session(name)
        if connection.busy:
            raise Blind("it waits for an answer")
        if connection.in_failed_transaction:
            raise Blind("its transaction has failed, and answers nothing until it is rolled back")
        return self._ground.probe.look_from_session(connection, now=self.now, inventory=self.stores.inventory())
