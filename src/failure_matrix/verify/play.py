"""One order of a scenario, played on a live database: act, let things settle, classify, judge."""

from __future__ import annotations

from collections.abc import Sequence

from failure_matrix.catalogue.model import ABSENT, Catalogue, Scalar, Step
from failure_matrix.database.classify import KeyText, Misfit, Situation, state_of
from failure_matrix.database.connection import Answer, ServerError
from failure_matrix.evidence.records import Failure, FailureKind
from failure_matrix.verify import breaches, clock
from failure_matrix.verify.bind import Bound, bind_step, event_deed
from failure_matrix.verify.callers import call
from failure_matrix.verify.entry import Entry, Numbered, describe
from failure_matrix.verify.judge import Blame, Court, Standing
from failure_matrix.verify.ledger import Ledger
from failure_matrix.verify.scripts import Outcome, effect_alone, plain, with_effect
from failure_matrix.verify.stores import EffectRefused
from failure_matrix.verify.values import NotKept, substitute
from failure_matrix.verify.world import Ended, World

DEFAULT_LIMIT = 10.0  # seconds a step may run without waiting for another session
LOCK_NOT_AVAILABLE = "55P03"


class Stop(Exception):
    """The order ends here: a step failed, or broke what it was declared to break."""


class Impossible(Exception):
    """The step cannot be taken here: its session still waits, or nothing has kept a value that it needs."""


class Play:
    """Plays steps one after another; ``entries`` hold what was seen, also after a ``Stop``.

    Without ``expects`` it drops what the steps expect: what must hold after every step still must.
    """

    def __init__(self, catalogue: Catalogue, world: World, *, expects: bool = True) -> None:
        self._catalogue = catalogue
        self._world = world
        self._expects = expects
        self._ledger = Ledger(catalogue)
        self._committed = frozenset(id for id, state in catalogue.states.items() if not state.uncommitted)
        self._uncommitted = frozenset(catalogue.states) - self._committed
        self._waiting: dict[str, Entry] = {}
        self.situation: Situation | None = None
        self.kept: dict[str, Scalar] = {}
        self.entries: list[Entry] = []
        self.given: Standing = {}  # as committed before the first step
        self.standing: Standing = {}  # as committed now

    def begin(self) -> list[Failure]:
        """Classify what was given. Raises ServerError where the server cannot."""
        self._world.now = clock.start(self._catalogue)
        self._follow_wall()
        situation = self._world.look(None)
        self.situation = situation
        self.given = self.standing = self._standing(situation)
        found = breaches.misfits(self._catalogue, situation, self.standing, {})
        found += breaches.invariants(self._catalogue, situation)
        return [breach.failure("what is given", self._catalogue.place("scenarios")) for breach in found]

    def play(self, numbered: Numbered) -> Entry:
        """Play one step. Raises Stop after the step that ends the order; without expectations, Impossible."""
        entry = Entry(numbered=numbered)
        self.entries.append(entry)
        try:
            released = self._act(entry)
        except NotKept as why:
            if not self._expects:
                raise Impossible from why
            self._fail(entry, "keep", str(why), "a value for each name", "none")
            raise Stop from why
        except Impossible as waits:
            if not self._expects:
                raise
            self._fail(entry, "waits", str(waits), "a step that sets it free before this one", "none")
            raise Stop from waits
        except EffectRefused as why:
            self._fail(entry, "error", str(why), "a store and a file name", str(why))
            raise Stop from why
        except ServerError as error:  # of a session's set-up, or of a caller
            self._fail(entry, "error", str(error), "no error", str(error))
            raise Stop from error
        self._judge(entry, released)
        self._classify(entry)
        if entry.failures or entry.breaks or any(other.failures for other in released):
            raise Stop
        return entry

    def _act(self, entry: Entry) -> list[Entry]:
        """Do what the step says and let things settle; the earlier steps that it set free."""
        step, world = entry.step, self._world
        if step.at is not None:
            self._move_clock(entry)
        self._follow_wall()
        entry.at = None if self._catalogue.settings.clock == "wall" else world.now
        free: list[Entry] = []
        before = set(self._waiting)
        if step.kill is not None:
            self._kill(entry, step.kill)
        elif step.do is not None or step.sql is not None or step.event is not None:
            self._launch(entry, free)
        settled = world.settle(lambda ended: self._ended(ended, entry, free), limit=self._limit(step))
        for session, on in settled.waiting.items():
            if session not in before:
                entry.waits = on
        if entry.session in settled.cancelled:
            limit = f"{self._limit(step):g} s"
            self._fail(entry, "time-limit", f"no answer within {limit}", f"an answer within {limit}", "cancelled")
        released = sorted(free, key=self.entries.index)
        entry.releases = [other.numbered.number for other in released]
        return released

    def _limit(self, step: Step) -> float:
        return float(step.limit) if step.limit is not None else DEFAULT_LIMIT

    def _move_clock(self, entry: Entry) -> None:
        written = str(substitute(entry.step.at, self.kept))
        entry.text = f"clock {written}"
        try:
            self._world.now = clock.moved(self._world.now, written)
        except clock.Backwards as why:
            self._fail(entry, "error", str(why), "a time that is not before the clock's", written)
            raise Stop from why
        for id, event in self._catalogue.events.items():
            if event.at is not None:
                self._ledger.event(event_deed(id, event, {}))

    def _follow_wall(self) -> None:
        if self._catalogue.settings.clock == "wall":
            self._world.now = clock.wall(self._world.admin)

    def _kill(self, entry: Entry, session: str) -> None:
        entry.text = f"end the backend of {session}"
        named = entry.step.event
        deeds = tuple(
            event_deed(id, event, {})
            for id, event in self._catalogue.events.items()
            if (id == named if named is not None else event.kill)
        )
        for deed in deeds:
            self._ledger.event(deed)
        self._world.kill(session)
        self._ledger.end(session, committed=False, by=deeds)

    def _launch(self, entry: Entry, free: list[Entry]) -> None:
        step, world = entry.step, self._world
        if step.in_ is not None and world.session(step.in_).busy:
            self._await(step.in_, entry, free)
        called_by = call(self._catalogue, step, world, self.kept) if step.as_ is not None else {}
        bound = bind_step(self._catalogue, step, self.kept, now=world.now, called_by=called_by)
        entry.bound, entry.parameters = bound, dict(bound.parameters)
        entry.text = " · ".join(part for part in (bound.text, str(bound.effect or "")) if part)
        entry.blame = self._blame(step, bound)
        if bound.text is not None and step.in_ is not None:
            self._send(entry, bound, step.in_)
            return
        if bound.text is not None:
            entry.answer = _by_the_world(world, bound).answer
            error = entry.answer.error
            if error is not None and error.sqlstate == LOCK_NOT_AVAILABLE and not self._expects:
                raise Impossible("a session holds what this step needs")
        elif bound.effect is not None:
            entry.answer = effect_alone(bound.effect, world.stores).answer
            entry.in_transaction = step.in_ is not None and world.session(step.in_).in_transaction
        if bound.deed is not None:
            self._ledger.event(bound.deed)

    def _await(self, session: str, entry: Entry, free: list[Entry]) -> None:
        """Wait for the answer of a step that time sets free. Raises Impossible where one of ours holds it."""
        earlier = self._waiting[session]
        if earlier.step.waits == ("maybe",):
            limit = self._limit(earlier.step)
            self._world.settle(lambda ended: self._ended(ended, entry, free), limit=limit, until=session)
        if self._world.session(session).busy:
            raise Impossible(f"{session} cannot take another step: step {earlier.numbered.number} still waits")

    def _send(self, entry: Entry, bound: Bound, session: str) -> None:
        assert bound.text is not None
        connection = self._world.session(session)
        if bound.deed is not None:
            self._ledger.act(session, self.standing)
        if bound.effect is None:
            script = plain(bound.text, bound.values)
        else:
            script = with_effect(
                bound.text, bound.values, bound.effect, self._world.stores, in_transaction=connection.in_transaction
            )
        self._waiting[session] = entry
        self._world.start(session, script)

    def _ended(self, ended: Ended, current: Entry, free: list[Entry]) -> None:
        entry = self._waiting.pop(ended.session)
        if entry is not current:
            entry.released_by = current.numbered.number
            free.append(entry)
        entry.answer = ended.outcome.answer
        connection = self._world.sessions[ended.session]
        entry.in_transaction = connection.in_transaction
        deed = entry.bound.deed if entry.bound else None
        self._ledger.done(ended.session, deed if ended.outcome.changed_something else None)
        if connection.in_transaction:
            return
        answer = ended.outcome.answer
        tag = answer.last.tag if answer.last else ""
        self._ledger.end(ended.session, committed=not answer.lost and answer.error is None and tag != "ROLLBACK")

    def _judge(self, entry: Entry, released: Sequence[Entry]) -> None:
        if not self._expects:
            for other in (entry, *released):
                if other.answer is not None:
                    self._keep(other, other.answer)
            return
        court = self._court(entry)
        if entry.step.waits is not None or entry.waits:
            entry.failures += court.waits(entry.waits)
        expected = [other for other in released if other.step.waits != ("maybe",)]
        entry.failures += court.releases([other.session or "" for other in expected])
        for other in (entry, *released):
            if other.answer is not None:
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

    def _classify(self, entry: Entry) -> None:
        try:
            self._follow_wall()
            situation = self._world.look(self.situation)
        except ServerError as error:
            self._could_not_look(entry, error)
            return
        before, self.standing = self.standing, self._standing(situation)
        entry.standing = self.standing
        found = breaches.misfits(self._catalogue, situation, self.standing, before)
        found += breaches.invariants(self._catalogue, situation)
        self.situation = situation
        changes, undeclared = self._ledger.settle(before, self.standing)
        entry.changes += changes
        found += breaches.undeclared(self._catalogue, undeclared, situation)
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

    def _could_not_look(self, entry: Entry, error: ServerError) -> None:
        if error.sqlstate == LOCK_NOT_AVAILABLE and not (
            self._expects and entry.step.then
        ):  # behind an ACCESS EXCLUSIVE lock: looked at later
            return
        observed = f"could not look: {error}"
        self._fail(entry, "could-not-look", observed, "a look at what is committed", observed)

    def _look_from_sessions(self, entry: Entry, court: Court) -> None:
        for session in entry.step.seen_by:
            try:
                situation = self._world.look_from(session)
            except ServerError as error:
                observed = f"{session} could not look: {error}"
                self._fail(entry, "could-not-look", observed, f"a look by {session}", observed)
                continue
            view = self._view(situation)
            entry.seen_by[session] = view
            unseen = {w: state for w, state in view.items() if isinstance(state, str) and state in self._uncommitted}
            entry.changes += self._ledger.saw(session, unseen, self.standing)
            entry.failures += court.seen_by(session, view)

    def _standing(self, situation: Situation) -> Standing:
        return {
            (subject, key): state_of(rows, self._committed)
            for subject in self._catalogue.subjects
            for key, rows in situation.of(subject).items()
        }

    def _view(self, situation: Situation) -> dict[tuple[str, KeyText], str | Misfit]:
        """A session's view: a row whose key the observer does not have is in an uncommitted state."""
        view: dict[tuple[str, KeyText], str | Misfit] = {}
        for subject in self._catalogue.subjects:
            states = frozenset(self._catalogue.states_of(subject))
            for key, rows in situation.of(subject).items():
                known = (subject, key) in self.standing or not states & self._uncommitted
                view[subject, key] = state_of(rows, self._committed if known else self._uncommitted)
        return view

    def _blame(self, step: Step, bound: Bound) -> Blame:
        action = step.do or step.carries_out
        if action is None or bound.deed is None:
            return Blame()
        own = bound.deed.own
        if own is None:  # it chooses its row: every state that it claims to leave is in doubt
            states = tuple(dict.fromkeys(source for source, _ in sorted(bound.deed.edges) if source != ABSENT))
        else:
            state = self.standing.get((bound.deed.subject or "", own), ABSENT)
            states = (state,) if isinstance(state, str) and state != ABSENT else ()
        return Blame(states=states, actions=(action,))

    def _court(self, entry: Entry) -> Court:
        numbered = entry.numbered

        def place(*path: str | int) -> str:
            found = self._catalogue.place(*numbered.path, *path)
            return f"{found.path}:{found.line}"

        return Court(step=entry.step, where=describe(entry.step), place=place, kept=self.kept, blame=entry.blame)

    def _fail(self, entry: Entry, kind: FailureKind, message: str, expected: str, observed: str) -> None:
        entry.failures.append(self._court(entry).failure(kind, message, expected, observed))

    def still_waiting(self) -> list[Entry]:
        """The steps that nothing has set free."""
        return list(self._waiting.values())


def _by_the_world(world: World, bound: Bound) -> Outcome:
    assert bound.text is not None
    try:
        result = world.admin.query(bound.text, bound.values)
    except ServerError as error:
        return Outcome(answer=Answer(error=error))
    effect = effect_alone(bound.effect, world.stores) if bound.effect and result.affected else None
    return effect or Outcome(answer=Answer(results=(result,)))
