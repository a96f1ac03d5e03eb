"""One order of a scenario, played on a live database: act, let things settle, classify, judge."""

from __future__ import annotations

from collections.abc import Sequence

from failure_matrix.catalogue.model import ABSENT, Catalogue, Place, Scalar
from failure_matrix.database.answers import Answer, ServerError
from failure_matrix.database.classify import Situation
from failure_matrix.evidence.records import Failure, FailureKind
from failure_matrix.verify import breaches, clock
from failure_matrix.verify.acting import Acting, Impossible, Trouble
from failure_matrix.verify.bind import Bindings
from failure_matrix.verify.entry import Entry, Numbered
from failure_matrix.verify.hiding import Secrets
from failure_matrix.verify.judge import Court, Standing
from failure_matrix.verify.ledger import Ledger
from failure_matrix.verify.looking import Looker
from failure_matrix.verify.values import NotKept, references
from failure_matrix.verify.world import Blind, World

LOCK_NOT_AVAILABLE, QUERY_CANCELED = "55P03", "57014"

__all__ = ["Impossible", "Play", "Stop"]


class Stop(Exception):
    """The order ends here: a step failed, or broke what it was declared to break."""


class Play:
    """Plays steps one after another; ``entries`` hold what was seen, also after a ``Stop``.

    Without ``expects`` it drops what the steps expect: what must hold after every step still must. With ``steady``
    it does not look again after a step that can have committed nothing.
    """

    def __init__(
        self,
        catalogue: Catalogue,
        world: World,
        *,
        expects: bool = True,
        steady: bool = False,
        bindings: Bindings | None = None,
    ) -> None:
        self._catalogue = catalogue
        self._world = world
        self._expects = expects
        self._steady = steady
        self._ledger = Ledger(catalogue)
        self._looker = Looker(catalogue)
        self._acting = Acting(catalogue, world, self._ledger, bindings or Bindings(catalogue), expects=expects)
        self.secrets = Secrets(catalogue)
        self._tainted: set[str] = set()  # names under which values of hidden columns are kept
        self.situation: Situation | None = None
        self._looked = False  # nothing has been committed since the last look
        self.entries: list[Entry] = []
        self.given: Standing = {}  # as committed before the first step
        self.standing: Standing = {}  # as committed now

    @property
    def kept(self) -> dict[str, Scalar]:
        """What the steps have kept so far."""
        return self._acting.kept

    def begin(self, place: Place, situation: Situation | None = None) -> list[Failure]:
        """Classify what was given, which stands at ``place``, unless a look has. Raises ServerError where it cannot."""
        if situation is None:
            self._world.now = clock.start(self._catalogue)
            self._acting.follow_wall()
            situation = self._world.look(None)
        self.situation, self._looked = situation, True
        self.secrets.saw(situation)
        self.given = self.standing = self._looker.committed(situation)
        found = breaches.misfits(self._catalogue, situation, self.standing, {})
        found += breaches.invariants(self._catalogue, situation)
        return [breach.failure("what is given", place) for breach in found]

    def play(self, numbered: Numbered) -> Entry:
        """Play one step. Raises Stop after the step that ends the order; without expectations, Impossible."""
        entry = Entry(numbered=numbered)
        self.entries.append(entry)
        try:
            released = self._acting.act(entry, self.standing)
            self._judge(entry, released)
            self._classify(entry)
        except (NotKept, Impossible, Trouble, ServerError) as why:
            self._give_up(entry, why)
        if entry.failures or entry.breaks or any(other.failures for other in released):
            raise Stop
        return entry

    def _give_up(self, entry: Entry, why: Exception) -> None:
        """The step could not be taken, or not be judged. Raises Stop, without expectations Impossible."""
        kind: FailureKind = "error"
        expected, observed = "no error", str(why)
        match why:
            case NotKept():
                kind, expected, observed = "keep", why.expected, "none"
            case Impossible():
                kind, expected, observed = "waits", "a step that sets it free before this one", "none"
            case Trouble():
                expected, observed = why.expected, why.observed
            case ServerError() if self._world.admin.lost:
                kind = "could-not-look"
                observed = "our own connection, whose application_name is 'observer', was ended"
        locked = isinstance(why, ServerError) and why.sqlstate == LOCK_NOT_AVAILABLE  # what a caller is asked of
        if (locked or isinstance(why, NotKept | Impossible)) and not self._expects:
            raise Impossible(str(why)) from why
        self._fail(entry, kind, str(why), expected, observed)
        raise Stop from why

    def _judge(self, entry: Entry, released: Sequence[Entry]) -> None:
        self.secrets.bound(entry.parameters)
        if self._tainted:
            entry.secret = frozenset(
                name for name, value in entry.step.with_.items() if not references(value).isdisjoint(self._tainted)
            )
        for other in (entry, *released):
            if other.answer is not None:
                self.secrets.answered(other.answer)
            if other.late is not None:
                limit = f"{other.late:g} s"
                observed = "it ran on, waiting for no session of the scenario, and was cancelled"
                self._fail(other, "time-limit", f"no answer within {limit}", f"an answer within {limit}", observed)
        if self._expects:
            court = self._court(entry)
            if entry.step.waits is not None or entry.waits:
                entry.failures += court.waits(entry.waits)
            expected = [other for other in released if other.step.waits != ("maybe",)]
            entry.failures += court.releases([other.session for other in expected if other.session is not None])
        for other in (entry, *released):
            if other.answer is not None and other.late is None:
                if self._expects:
                    other.failures += self._court(other).answer(other.answer)
                self._keep(other, other.answer)

    def _keep(self, entry: Entry, answer: Answer) -> None:
        result = answer.last if answer.error is None else None
        for name, column in entry.step.keep.items():
            if result is None or not result.rows or column not in result.columns:
                self.kept.pop(name, None)
                if not self._expects:
                    continue
                found = "no row" if result is None or not result.rows else "columns " + ", ".join(result.columns)
                self._fail(entry, "keep", f"nothing to keep as '{name}'", f"a row with {column}", found)
            else:
                self.kept[name] = result.rows[0][result.columns.index(column)]
                (self._tainted.add if column in self.secrets.names else self._tainted.discard)(name)

    def _classify(self, entry: Entry) -> None:
        found = self._look(entry)
        if found is None or not (found or self._expects):
            return
        court = self._court(entry)
        occurred = tuple(dict.fromkeys(breach.kind_id for breach in found))
        expected = entry.step.breaks if self._expects else ()
        if self._expects:
            entry.failures += court.then(self.standing)
            self._look_from_sessions(entry, court)
        else:
            entry.breaks = occurred
        if expected and sorted(occurred) == sorted(expected):
            entry.breaks = occurred
            return
        if self._expects:
            entry.failures += court.broke(occurred)
        entry.failures += [
            breach.failure(court.where, court.place()) for breach in found if breach.kind_id not in expected
        ]

    def _look(self, entry: Entry) -> list[breaches.Breach] | None:
        """Look at what is committed: what must not be, or None where it could not look."""
        if self._steady and self._acting.committed_nothing and self._looked:
            entry.standing = self.standing
            return []
        self._looked = False
        try:
            self._acting.follow_wall()
            situation = self._world.look(self.situation)
        except ServerError as error:
            self._could_not_look(entry, error)
            return None
        before = self.standing
        if situation is not self.situation:
            self.standing = self._looker.committed(situation)
        entry.standing = self.standing
        found = breaches.misfits(self._catalogue, situation, self.standing, before)
        found += breaches.invariants(self._catalogue, situation)
        self.situation, self._looked = situation, True
        self.secrets.saw(situation)
        changes, undeclared = self._ledger.settle(before, self.standing)
        entry.changes += changes
        return found + breaches.undeclared(self._catalogue, undeclared, situation)

    def _could_not_look(self, entry: Entry, error: ServerError) -> None:
        """Behind an ACCESS EXCLUSIVE lock it may look later, where the step expects nothing of a look."""
        step = entry.step
        asks = self._expects and (step.then or step.seen_by or step.breaks)
        if error.sqlstate == LOCK_NOT_AVAILABLE and not asks:
            return
        if error.sqlstate == LOCK_NOT_AVAILABLE:
            observed = "could not look: a session holds an ACCESS EXCLUSIVE lock on what is looked at"
        elif self._world.admin.lost:
            observed = "could not look: our own connection, whose application_name is 'observer', was ended"
        elif error.sqlstate == QUERY_CANCELED:
            observed = "could not look: the server gave up what was asked of it"
        else:
            culprit = self._world.culprit(self.situation)
            where = f" in {' '.join(culprit)}" if culprit else ""
            observed = f"cannot be classified: {error}{where}"
            self._fail(entry, "error", observed, "predicates that the server can evaluate", observed)
            return
        self._fail(entry, "could-not-look", observed, "a look at what is committed", observed)

    def _look_from_sessions(self, entry: Entry, court: Court) -> None:
        for session in entry.step.seen_by:
            try:
                situation = self._world.look_from(session)
            except (Blind, ServerError) as why:
                observed = f"{session} could not look: {why}"
                self._fail(entry, "could-not-look", observed, f"a look by {session}", observed)
                continue
            view = self._looker.seen(situation, self.standing)
            entry.seen_by[session] = {**dict.fromkeys(court.seen_absent(session), ABSENT), **view}
            entry.changes += self._ledger.saw(session, self._looker.unseen(view), self.standing)
            entry.failures += court.seen_by(session, view)

    def _court(self, entry: Entry) -> Court:
        numbered = entry.numbered

        def place(*path: str | int) -> str:
            found = self._catalogue.place(*numbered.path, *path)
            return f"{found.path}:{found.line}"

        return Court(
            step=entry.step,
            where=entry.where,
            place=place,
            kept=self.kept,
            hidden=self.secrets.names,
            blame=entry.blame,
        )

    def _fail(self, entry: Entry, kind: FailureKind, message: str, expected: str, observed: str) -> None:
        entry.failures.append(self._court(entry).failure(kind, message, expected, observed))

    def still_waiting(self) -> list[Entry]:
        """The steps that nothing has set free."""
        return self._acting.still_waiting()
