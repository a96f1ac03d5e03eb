"""The sweep: wherever a scenario rests, each action tried by each caller on each row, and rolled back.

A situation is swept when no session holds a transaction open, so that nothing can wait.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from types import MappingProxyType

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.catalogue.model import ABSENT, Action, Catalogue, Scalar, Subject
from failure_matrix.catalogue.sql import parameters
from failure_matrix.database.answers import Answer, Request, Result, ServerError
from failure_matrix.database.classify import KeyText, Situation
from failure_matrix.database.relations import store_values
from failure_matrix.evidence.declared import Cell
from failure_matrix.evidence.records import Outcome, Witness
from failure_matrix.verify.assess import Assessment, Assessor, Try
from failure_matrix.verify.demands import ends_transaction, takes_advisory_locks
from failure_matrix.verify.ground import Ground
from failure_matrix.verify.hiding import Secrets
from failure_matrix.verify.judge import Standing
from failure_matrix.verify.naming import Names
from failure_matrix.verify.play import LOCK_NOT_AVAILABLE
from failure_matrix.verify.refusal import looks_refused
from failure_matrix.verify.rows import bound, rows_of, with_stores
from failure_matrix.verify.situations import Rest, held_locks, signature
from failure_matrix.verify.stores import EffectRefused
from failure_matrix.verify.tally import Tally
from failure_matrix.verify.tries import NoAnswer, Tries
from failure_matrix.verify.values import key_part
from failure_matrix.verify.world import World

Where = tuple[str, KeyText]  # subject and key
Call = tuple[str, Where]  # a caller, and the row for which it is asked


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


@dataclass(frozen=True, kw_only=True)
class _Asked:
    """An action to be tried on a row, and what the row gives."""

    action: str
    row: Where
    state: str
    given: Mapping[str, Scalar]


class _Visit:
    """One situation: every row of it by every action and caller."""

    def __init__(self, catalogue: Catalogue, instead: Mapping[str, Action], ground: Ground, rest: Rest) -> None:
        self._catalogue = catalogue
        self._ground = ground
        self._standing = rest.standing
        self._situation = rest.situation
        self._locked = rest.locks is not None
        self._assessor = Assessor(catalogue, rest.situation, rest.standing)
        self._sources = {"now": rest.now, **store_values(rest.inventory)}
        self._rows = {id: list(self._rows_of(id, subject)) for id, subject in catalogue.subjects.items()}
        self._called: dict[Call, Mapping[str, Scalar] | Assessment] = {}
        self._tries = Tries(catalogue, instead, ground, rest)

    def _rows_of(self, id: str, subject: Subject) -> Iterator[tuple[KeyText, dict[str, Scalar]]]:
        """Each key with the parameters that its row gives; the spare key last. Raises CouldNot."""
        try:
            yield from rows_of(self._catalogue, id, self._ground.watcher("sweep"), self._sources)
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
        """Every cell that this situation has a row for, and what a try of it means."""
        asked = list(self._asked(actions, callers))
        self._called = self._call({(caller, each.row): each.given for caller, each in asked if caller is not None})
        bound = [self._bound(self._catalogue.actions[each.action], caller, each) for caller, each in asked]
        wanted = zip(asked, bound, strict=True)
        self._tries.foresee(
            (each.action, sources) for (_, each), sources in wanted if not isinstance(sources, Assessment)
        )
        for (caller, each), sources in zip(asked, bound, strict=True):
            found = sources if isinstance(sources, Assessment) else self._assessed(caller, each, sources)
            yield (each.state, each.action, caller), found

    def _asked(self, actions: Sequence[str], callers: Sequence[str | None]) -> Iterator[tuple[str | None, _Asked]]:
        for id in actions:
            subject = self._catalogue.actions[id].subject
            for caller in callers:
                for key, given in self._rows[subject]:
                    state = self._standing.get((subject, key), ABSENT)
                    if isinstance(state, str) and not self._illegal(state):
                        yield caller, _Asked(action=id, row=(subject, key), state=state, given=given)

    def _illegal(self, state: str) -> bool:
        return state != ABSENT and self._catalogue.states[state].illegal

    def _bound(self, action: Action, caller: str | None, asked: _Asked) -> dict[str, Scalar] | Assessment:
        """What a try binds, or why there is none."""
        columns = {} if caller is None else self._called[caller, asked.row]
        if isinstance(columns, Assessment):
            return columns
        sources: dict[str, Scalar] = {**action.with_, **columns, **asked.given}
        if missing := [name for name in self._tries.needs(asked.action) if name not in sources]:
            return Assessment(outcome=Outcome.CANNOT_CALL, note=f"binds no {', '.join(missing)}")
        if ends_transaction(action):
            wrong = "its SQL begins or ends a transaction, so it cannot be tried and rolled back"
            return Assessment(outcome=Outcome.NOT_TRIED, wrong=f"{wrong}: leave that to the session")
        return sources

    def _assessed(self, caller: str | None, asked: _Asked, sources: Mapping[str, Scalar]) -> Assessment:
        try:
            tried = self._tries.one(asked.action, sources)
        except EffectRefused as why:
            return Assessment(outcome=Outcome.CANNOT_CALL, note=str(why))
        except NoAnswer as why:
            return Assessment(outcome=Outcome.NOT_TRIED, wrong=str(why))
        if self._locked and _waited(self._catalogue.actions[asked.action], tried):
            return Assessment(outcome=Outcome.NOT_TRIED, note="it waits for a lock that a session holds")
        found = self._assessor.assess(asked.action, caller, asked.state, asked.row[1], sources, tried)
        if found.outcome is Outcome.REFUSED and found.wrong is None:
            try:
                said = self._tries.said(asked.action, sources)
            except NoAnswer as why:
                return replace(found, wrong=self._told(str(why), sources, tried))
            return found if said is None else replace(found, said=self._said(said, sources, tried))
        return found if found.wrong is None else replace(found, wrong=self._told(found.wrong, sources, tried))

    def _said(self, answer: Result, sources: Mapping[str, Scalar], tried: Try) -> str:
        """What the record answers, without what is hidden, and the same words in every run."""
        if not answer.rows:
            return "no row"
        secrets = self._secrets(sources, tried)
        secrets.answered(Answer(results=(answer,)))
        row = secrets.row(answer.columns, answer.rows[0])
        return Names(datetime.now(UTC)).text(", ".join("null" if value is None else value for value in row))

    def _told(self, wrong: str, sources: Mapping[str, Scalar], tried: Try) -> str:
        """What is wrong without what is hidden, and the same words in every run."""
        return Names(datetime.now(UTC)).text(self._secrets(sources, tried).text(wrong))

    def _secrets(self, sources: Mapping[str, Scalar], tried: Try) -> Secrets:
        secrets = Secrets(self._catalogue)
        secrets.bound(sources)
        for situation in (self._situation, tried.after):
            if situation is not None:
                secrets.saw(situation)
        if tried.answer is not None:
            secrets.answered(Answer(results=(tried.answer,)))
        return secrets

    def _call(self, asked: Mapping[Call, Mapping[str, Scalar]]) -> dict[Call, Mapping[str, Scalar] | Assessment]:
        """What each caller brings to each row; all are asked in one round trip."""
        found: dict[Call, Mapping[str, Scalar] | Assessment] = {}
        requests: dict[Call, Request] = {}
        for call, given in asked.items():
            caller, sources = self._catalogue.callers[call[0]], {**self._sources, **given}
            sql = caller.sql
            if sql is None:
                found[call] = caller.gives
            elif missing := sorted(set(parameters(sql)) - sources.keys()):
                found[call] = Assessment(outcome=Outcome.CANNOT_CALL, note=f"its row gives no {', '.join(missing)}")
            else:
                text, values = bound(with_stores(self._catalogue, f"SELECT * FROM (\n{sql.text}\n) AS caller"), sources)
                requests[call] = Request(text=text, values=values)
        try:
            answers = self._ground.watcher("sweep").together(*([request] for request in requests.values()))
        except ServerError as error:
            answers = [error] * len(requests)
        return found | {call: _brought(call[0], answer) for call, answer in zip(requests, answers, strict=True)}


def _brought(caller: str, answer: Result | ServerError | None) -> Mapping[str, Scalar] | Assessment:
    if not isinstance(answer, Result):
        return Assessment(outcome=Outcome.CANNOT_CALL, wrong=f"the caller {caller} cannot be asked: {answer}")
    if not answer.rows:
        return Assessment(outcome=Outcome.NO_SUCH_CALLER)
    if len(answer.rows) > 1:
        many = f"its SQL gives {len(answer.rows)} rows, and a caller is one"
        return Assessment(outcome=Outcome.CANNOT_CALL, wrong=f"the caller {caller} cannot be asked: {many}")
    return dict(zip(answer.columns, answer.rows[0], strict=True))


def _waited(action: Action, tried: Try) -> bool:
    """Whether it ran into our own limit, and not into a refusal that looks so."""
    error = tried.error
    return error is not None and error.sqlstate == LOCK_NOT_AVAILABLE and not looks_refused(action, None, error)
