"""The sweep: wherever a scenario rests, each action tried by each caller on each row, and rolled back.

A situation is swept when no session holds a transaction open, so that nothing can wait. Every try is a
transaction of its own; what a rollback keeps, sequences and advisory locks, is put back. Store effects change
the inventory that the probe is given, never a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from types import MappingProxyType

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.catalogue.model import ABSENT, Action, Catalogue, Scalar, Sql, Subject
from failure_matrix.catalogue.sql import parameters
from failure_matrix.database.answers import Answer, Request, Result, ServerError, Value
from failure_matrix.database.classify import KeyText, Situation
from failure_matrix.database.relations import Inventory, store_values
from failure_matrix.evidence.records import Outcome, Witness
from failure_matrix.evidence.schema import split_statements
from failure_matrix.verify.assess import Assessment, Assessor, Try
from failure_matrix.verify.demands import ends_transaction, needed, takes_advisory_locks
from failure_matrix.verify.ground import Ground
from failure_matrix.verify.hiding import Secrets
from failure_matrix.verify.judge import Standing
from failure_matrix.verify.naming import Names
from failure_matrix.verify.play import LOCK_NOT_AVAILABLE
from failure_matrix.verify.refusal import looks_refused
from failure_matrix.verify.rows import bound, rows_of, with_stores
from failure_matrix.verify.situations import Rest, held_locks, signature
from failure_matrix.verify.stores import EffectRefused, simulate
from failure_matrix.verify.tables import has_deferrable
from failure_matrix.verify.tally import Cell, Tally
from failure_matrix.verify.values import key_part
from failure_matrix.verify.world import World

_BEGIN = Request(text="BEGIN")
_HURRY = Request(text="SET LOCAL lock_timeout = '50ms'")  # a session at rest can hold an advisory lock for ever
_IMMEDIATE = Request(text="SET CONSTRAINTS ALL IMMEDIATE")  # what the commit would refuse is refused
_NO_DUTY = Request(text="SELECT true")
_ROLLBACK = Request(text="ROLLBACK")
_UNLOCK = Request(text="SELECT pg_advisory_unlock_all()")


class NoAnswer(Exception):
    """A try that tells nothing, because the server could not evaluate SQL of the catalogue. ``str()`` says which."""


class Sweep:
    """Visits situations and keeps a tally of each cell.

    ``actions`` restricts it, for a guard's sake. ``instead`` are actions whose SQL runs in place of the catalogue's;
    what they are held to stays as the catalogue says.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        *,
        actions: Sequence[str] | None = None,
        instead: Mapping[str, Action] = MappingProxyType({}),
    ) -> None:
        self._catalogue = catalogue
        self._instead = instead
        self._locks = takes_advisory_locks(catalogue)
        swept = (id for id, action in catalogue.actions.items() if action.instead_of is None)
        self._actions = tuple(id for id in swept if actions is None or id in actions)
        self._callers: tuple[str | None, ...] = tuple(catalogue.callers) or (None,)
        self._seen: set[str] = set()
        self.tallies: dict[Cell, Tally] = {}
        self.situations: dict[str, list[int]] = {}  # scenario -> steps after which a situation was new

    @property
    def broken(self) -> Iterator[tuple[Cell, Assessment]]:
        """The cells that a try has shown to be wrong."""
        for cell, tally in self.tallies.items():
            if tally.bad is not None:
                yield cell, tally.bad[0]

    def most_rows(self) -> dict[str, int]:
        """The rows that one try of each action touched at most."""
        most: dict[str, int] = {}
        for (_, action, _), tally in self.tallies.items():
            most[action] = max(most.get(action, 0), tally.most_rows)
        return most

    def visit(self, ground: Ground, world: World, situation: Situation, standing: Standing, witness: Witness) -> None:
        """Sweep one situation, unless one like it was swept before."""
        locks = held_locks(ground.admin) if self._locks else None
        rest = Rest(
            now=world.now, inventory=world.stores.inventory(), locks=locks, situation=situation, standing=standing
        )
        alike = signature(ground.admin, rest)
        if alike in self._seen:
            return
        self._seen.add(alike)
        self.situations.setdefault(witness.scenario, []).append(witness.step)
        sequences = ground.sequences()
        try:
            visit = _Visit(self._catalogue, self._instead, ground, rest)
            for cell, assessment in visit.tries(self._actions, self._callers):
                self.tallies.setdefault(cell, Tally()).add(assessment, witness)
        finally:
            ground.restore(sequences)


class _Visit:
    """One situation: every row of it by every action and caller."""

    def __init__(self, catalogue: Catalogue, instead: Mapping[str, Action], ground: Ground, rest: Rest) -> None:
        self._catalogue = catalogue
        self._instead = instead
        self._ground = ground
        self._connection = ground.watcher("sweep")
        self._now = rest.now
        self._inventory = rest.inventory
        self._standing = rest.standing
        self._situation = rest.situation
        self._locked = rest.locks is not None
        self._assessor = Assessor(catalogue, rest.situation, rest.standing)
        self._sources = {"now": rest.now, **store_values(rest.inventory)}
        self._rows = {id: list(self._rows_of(id, subject)) for id, subject in catalogue.subjects.items()}
        self._called: dict[tuple[str, KeyText], Mapping[str, Scalar] | Assessment] = {}
        self._tried: dict[tuple[object, ...], Try] = {}
        self._read: dict[object, Situation] = {}
        self._begin = [_BEGIN, *([_HURRY] if self._locked else [])]
        self._end = [_IMMEDIATE] if has_deferrable(self._connection) else []
        self._afterwards = [_ROLLBACK, *([_UNLOCK] if takes_advisory_locks(catalogue) else [])]

    def _rows_of(self, id: str, subject: Subject) -> Iterator[tuple[KeyText, dict[str, Scalar]]]:
        """Each key with the parameters that its row gives; the spare key last. Raises CouldNot."""
        try:
            yield from rows_of(self._catalogue, id, self._connection, self._sources)
        except ServerError as error:
            raise CouldNot(
                f"ask the keys and offers of {id} for the sweep: {error}", f"mend 'key' and 'offers' of subject {id}."
            ) from error
        if subject.spare:
            offered = {
                name: key for name, column in subject.offers.items() for key, of in subject.key.items() if of == column
            }
            spare = {**{name: subject.spare[key] for name, key in offered.items()}, **subject.spare}
            yield tuple(key_part(spare[name]) for name in subject.key), spare

    def tries(self, actions: Sequence[str], callers: Sequence[str | None]) -> Iterator[tuple[Cell, Assessment]]:
        for id in actions:
            action = self._catalogue.actions[id]
            for caller in callers:
                for key, given in self._rows[action.subject]:
                    state = self._standing.get((action.subject, key), ABSENT)
                    if isinstance(state, str):
                        yield (state, id, caller), self._cell(id, action, caller, state, key, given)

    def _cell(
        self, id: str, action: Action, caller: str | None, state: str, key: KeyText, given: Mapping[str, Scalar]
    ) -> Assessment:
        columns = {} if caller is None else self._call(caller, action.subject, key, given)
        if isinstance(columns, Assessment):
            return columns
        sources: dict[str, Scalar] = {**action.with_, **columns, **given}
        missing = sorted(needed(action) - sources.keys())
        if missing:
            return Assessment(outcome=Outcome.CANNOT_CALL, note=f"binds no {', '.join(missing)}")
        if ends_transaction(action):
            wrong = "its SQL begins or ends a transaction, so it cannot be tried and rolled back"
            return Assessment(outcome=Outcome.NOT_TRIED, wrong=f"{wrong}: leave that to the session")
        try:
            tried = self._try(id, action, sources)
        except EffectRefused as why:
            return Assessment(outcome=Outcome.CANNOT_CALL, note=str(why))
        except NoAnswer as why:
            return Assessment(outcome=Outcome.NOT_TRIED, wrong=str(why))
        if self._locked and _waited(action, tried):
            return Assessment(outcome=Outcome.NOT_TRIED, note="it waits for a lock that a session holds")
        found = self._assessor.assess(id, caller, state, key, sources, tried)
        return found if found.wrong is None else replace(found, wrong=self._told(found.wrong, sources, tried))

    def _told(self, wrong: str, sources: Mapping[str, Scalar], tried: Try) -> str:
        """What is wrong without what is hidden, and the same words in every run."""
        secrets = Secrets(self._catalogue)
        secrets.bound(sources)
        for situation in (self._situation, tried.after):
            if situation is not None:
                secrets.saw(situation)
        if tried.answer is not None:
            secrets.answered(Answer(results=(tried.answer,)))
        return Names(datetime.now(UTC)).text(secrets.text(wrong))

    def _call(
        self, caller: str, subject: str, key: KeyText, given: Mapping[str, Scalar]
    ) -> Mapping[str, Scalar] | Assessment:
        if (caller, (subject, *key)) not in self._called:
            self._called[caller, (subject, *key)] = self._ask_caller(caller, given)
        return self._called[caller, (subject, *key)]

    def _ask_caller(self, caller: str, given: Mapping[str, Scalar]) -> Mapping[str, Scalar] | Assessment:
        sql = self._catalogue.callers[caller]
        if not isinstance(sql, Sql):
            return sql
        sources = {**self._sources, **given}
        if missing := sorted(set(parameters(sql)) - sources.keys()):
            return Assessment(outcome=Outcome.CANNOT_CALL, note=f"its row gives no {', '.join(missing)}")
        asked = with_stores(self._catalogue, f"SELECT * FROM (\n{sql.text}\n) AS caller")
        try:
            result = self._connection.execute(replace(_request(asked, sources), prepared=f"caller {caller}"))
        except ServerError as error:
            return Assessment(outcome=Outcome.CANNOT_CALL, wrong=f"the caller {caller} cannot be asked: {error}")
        if not result.rows:
            return Assessment(outcome=Outcome.NO_SUCH_CALLER)
        if len(result.rows) > 1:
            many = f"its SQL gives {len(result.rows)} rows, and a caller is one"
            return Assessment(outcome=Outcome.CANNOT_CALL, wrong=f"the caller {caller} cannot be asked: {many}")
        return dict(zip(result.columns, result.rows[0], strict=True))

    def _try(self, id: str, action: Action, sources: Mapping[str, Scalar]) -> Try:
        values = tuple(sources[name] for name in sorted(needed(action)))
        if (id, values) not in self._tried:
            try:
                self._tried[id, values] = self._run(self._instead.get(id, action), {"now": self._now, **sources})
            except ServerError as error:  # the connection is lost
                self._connection = self._ground.watcher("sweep")
                raise NoAnswer("it ends the backend that runs it, so it cannot be tried and rolled back") from error
        return self._tried[id, values]

    def _run(self, action: Action, sources: Mapping[str, Value]) -> Try:
        """One try in a transaction that is rolled back: all in one round trip where nothing hangs on an answer."""
        requests = [*self._begin, self._duty(action.requires, sources)]
        asked = len(requests)
        if action.sql is not None and (action.store is not None or len(split_statements(action.sql.text)) > 1):
            return self._run_stepwise(action, action.sql, sources, requests)
        inventory, answer = self._inventory, None
        if action.sql is not None:
            requests += [_request(action.sql, sources), *self._end]
        elif action.store is not None:
            inventory, answer = simulate(inventory, action.store, sources)
        requests.append(self._probe(inventory))
        answers = self._connection.together(requests, self._afterwards)
        duty, acted, found = _held(answers[asked - 1]), answers[asked : len(requests) - 1], answers[len(requests) - 1]
        for error in acted:
            if isinstance(error, ServerError):
                return Try(duty=duty, answer=None, error=error, after=None)
        if acted and isinstance(acted[0], Result):
            answer = acted[0]
        return Try(duty=duty, answer=answer, error=None, after=self._situation_of(found))

    def _run_stepwise(self, action: Action, sql: Sql, sources: Mapping[str, Value], requests: Sequence[Request]) -> Try:
        """SQL that may be several statements, or whose answer decides about a store effect."""
        *_, duty = self._connection.together(requests)
        try:
            answer = self._connection.query(*bound(sql, sources))
            for request in self._end:
                self._connection.query(request.text)
            inventory = self._inventory
            if action.store is not None and answer.affected:
                inventory, answer = simulate(inventory, action.store, sources)
            (found,) = self._connection.together([self._probe(inventory)])
            return Try(duty=_held(duty), answer=answer, error=None, after=self._situation_of(found))
        except ServerError as error:
            return Try(duty=_held(duty), answer=None, error=error, after=None)
        finally:
            self._connection.together(self._afterwards)

    def _probe(self, inventory: Inventory) -> Request:
        return self._ground.probe.request(now=self._now, inventory=inventory, previous=self._situation)

    def _situation_of(self, found: Result | ServerError | None) -> Situation:
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
        return _request(asked, {**self._sources, **sources})


def _waited(action: Action, tried: Try) -> bool:
    """Whether it ran into our own limit, and not into a refusal that looks so."""
    error = tried.error
    return error is not None and error.sqlstate == LOCK_NOT_AVAILABLE and not looks_refused(action, None, error)


def _request(sql: Sql, sources: Mapping[str, Value]) -> Request:
    text, values = bound(sql, sources)
    return Request(text=text, values=values)


def _held(duty: Result | ServerError | None) -> bool:
    """The answer about the duty; an error in asking is an error of the catalogue. Raises NoAnswer."""
    if not isinstance(duty, Result):
        raise NoAnswer(f"its requirement cannot be asked: {duty or 'it was not reached'}")
    return duty.rows[0][0] == "t"
