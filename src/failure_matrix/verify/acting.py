"""Doing what a step says: bind it, send it, let things settle, and tell the ledger what came of it."""

from __future__ import annotations

from collections.abc import Sequence

from failure_matrix.catalogue.model import ABSENT, Catalogue, Scalar, Step
from failure_matrix.database.answers import Answer
from failure_matrix.database.waiting import PREPARED
from failure_matrix.verify import clock
from failure_matrix.verify.bind import Bindings, Bound, event_deed
from failure_matrix.verify.callers import call
from failure_matrix.verify.endings import End, Ending, endings
from failure_matrix.verify.entry import Entry
from failure_matrix.verify.judge import Blame, Standing
from failure_matrix.verify.ledger import Ledger
from failure_matrix.verify.scripts import effect_alone, plain, with_effect
from failure_matrix.verify.stores import EffectRefused
from failure_matrix.verify.values import substitute
from failure_matrix.verify.world import WORLD, Ended, World

_COMMITTING = (End.COMMIT, End.PREPARE, End.COMMIT_PREPARED, End.ROLLBACK_PREPARED)
_CLOSING = (End.COMMIT, End.ROLLBACK, End.PREPARE)
SHORTEST_LIMIT = 0.001  # seconds; none at all would cancel what is not sent yet
DEFAULT_LIMIT = 10.0  # seconds a step may run without waiting for another session


class Impossible(Exception):
    """The step cannot be taken here: its session still waits, or nothing has kept a value that it needs."""


class Trouble(Exception):
    """The step asks for what can't be. ``str()`` says what happened."""

    def __init__(self, message: str, expected: str, observed: str) -> None:
        super().__init__(message)
        self.expected = expected
        self.observed = observed


class Acting:
    """Takes the steps of one play. ``kept`` are the values that steps have kept so far."""

    def __init__(
        self, catalogue: Catalogue, world: World, ledger: Ledger, bindings: Bindings, *, expects: bool
    ) -> None:
        self._catalogue = catalogue
        self._world = world
        self._ledger = ledger
        self._bindings = bindings
        self._expects = expects
        self._waiting: dict[str, Entry] = {}  # in the order in which they were sent
        self._standing: Standing = {}
        self.kept: dict[str, Scalar] = {}
        self.committed_nothing = False  # at this step: every session that answered left its transaction open

    def still_waiting(self) -> list[Entry]:
        """The steps that nothing has set free."""
        return list(self._waiting.values())

    def follow_wall(self) -> None:
        """Let the clock say what the server's clock says, where it is to follow that."""
        if self._catalogue.settings.clock == "wall":
            self._world.now = clock.wall(self._world.admin)

    def act(self, entry: Entry, standing: Standing) -> list[Entry]:
        """Do what the step says and let things settle; the earlier steps that it set free, in their order.

        Raises NotKept, Impossible, Trouble, and ServerError of what is not the step's own SQL.
        """
        step, self._standing = entry.step, standing
        self.committed_nothing = step.at is None and self._killed(step) is None
        waited = dict(self._waiting)
        free: list[Entry] = []
        if step.at is not None:
            self._move_clock(entry, step.at)
        elif self._catalogue.settings.clock == "wall":
            self._time_passes()
        self.follow_wall()
        self.kept["now"] = self._world.now
        entry.at = None if self._catalogue.settings.clock == "wall" else self._world.now
        dies = self._killed(step)
        if dies is not None:
            self._kill(entry, dies)
        elif step.do is not None or step.sql is not None or step.event is not None:
            self._launch(entry, free)
        self._settle(entry, free, waited, dies)
        order = list(waited.values())
        released = sorted(free, key=order.index)
        entry.releases = [other.numbered.number for other in released]
        return released

    def _settle(self, entry: Entry, free: list[Entry], waited: dict[str, Entry], dies: str | None) -> None:
        step = entry.step
        until = {dies}
        if self._expects:  # time decides, or a cancel is on its way: evidence must not depend on who was faster
            until |= {*step.releases, step.in_ if step.waits == ("maybe",) else None}
        limit = _limit(step)
        sent = dict(self._waiting)
        settled = self._world.settle(
            lambda ended: self._ended(ended, entry, free), limit=limit, until=[name for name in until if name in sent]
        )
        for session, on in settled.waiting.items():
            if session not in waited:
                entry.waits = self._named(on)
        for session in settled.cancelled:
            sent[session].late = limit

    def _named(self, on: tuple[str, ...]) -> tuple[str, ...]:
        """The sessions that are waited for; a prepared transaction has the name of the session that prepared it."""
        by = self._ledger.prepared_by() if PREPARED in on else ()
        return tuple(sorted({name for name in on if name != PREPARED or not by} | set(by)))

    def _move_clock(self, entry: Entry, at: str) -> None:
        written = str(substitute(at, self.kept))
        entry.text = f"clock {written}"
        if self._catalogue.settings.clock == "wall":
            raise Trouble("a clock that follows the wall can't be set", "no 'at'", f"at {written}")
        try:
            self._world.now = clock.moved(self._world.now, written)
        except clock.Backwards as why:
            raise Trouble(str(why), "a time that is not before the clock's", written) from why
        self._time_passes()

    def _time_passes(self) -> None:
        for id, event in self._catalogue.events.items():
            if event.at is not None:
                self._ledger.event(event_deed(id, event, {}))

    def _killed(self, step: Step) -> str | None:
        """The session whose backend the step ends: ``kill`` says so, or an event that kills."""
        if step.kill is not None:
            return step.kill
        event = self._catalogue.events.get(step.event) if step.event is not None else None
        if event is None or not event.kill or event.sql is not None or step.sql is not None:
            return None
        if step.in_ is None:
            raise Trouble(f"'{step.event}' ends a session, and the step names none", "kill: A, or in: A", "neither")
        return step.in_

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
        session = step.in_ or WORLD
        if session in self._waiting:
            self._await(session, entry, free)
        called_by = call(self._catalogue, step, world, self.kept) if step.as_ is not None else {}
        try:
            bound = self._bindings.bind(entry.numbered.path, step, self.kept, now=world.now, called_by=called_by)
            self._take(entry, bound, session)
        except EffectRefused as why:
            raise Trouble(str(why), "a store and a file name", str(why)) from why

    def _take(self, entry: Entry, bound: Bound, session: str) -> None:
        entry.bound, entry.parameters = bound, dict(bound.parameters)
        entry.text, entry.effect = bound.text or "", str(bound.effect or "")
        entry.blame = self._blame(entry.step, bound)
        if bound.text is not None:
            self._send(entry, bound, session)
            return
        happened = True
        self.committed_nothing = False
        if bound.effect is not None:
            outcome = effect_alone(bound.effect, self._world.stores)
            entry.answer, happened = outcome.answer, outcome.effect is not None
            entry.in_transaction = entry.session is not None and self._world.session(session).in_transaction
        if bound.deed is not None and happened:
            self._ledger.event(bound.deed)

    def _await(self, session: str, entry: Entry, free: list[Entry]) -> None:
        """Wait for the answer of a step that time sets free. Raises Impossible where one of ours holds it."""
        earlier = self._waiting[session]
        if earlier.step.waits == ("maybe",):
            limit = _limit(earlier.step)
            self._world.settle(lambda ended: self._ended(ended, entry, free), limit=limit, until=[session])
        if session in self._waiting:
            raise Impossible(f"{session} cannot take another step: step {earlier.numbered.number} still waits")

    def _send(self, entry: Entry, bound: Bound, session: str) -> None:
        assert bound.text is not None
        connection = self._world.session(session)
        if bound.deed is not None and entry.session is not None:
            self._ledger.act(session, self._standing)
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
        outcome, bound = ended.outcome, entry.bound
        entry.answer = outcome.answer
        entry.in_transaction = self._world.sessions[ended.session].in_transaction
        found = list(endings(outcome.answer.results, bound.text or "")) if bound and not bound.values else []
        committed = any(ending.end is End.COMMIT for ending in found)
        if not _committed_nothing(found, entry.in_transaction, outcome.answer):
            self.committed_nothing = False
        deed = bound.deed if bound and (committed or not outcome.did_nothing) else None
        if deed is not None and (entry.session is None or (outcome.effect and entry.in_transaction)):
            self._ledger.event(deed)  # the world's, or a store's effect, which no transaction holds back
            self.committed_nothing = False
        self._ledger.done(ended.session, deed, took=outcome.took)
        for ending in found:
            self._end(ended.session, ending)
        if not entry.in_transaction and not (outcome.ran and found and found[-1].end in _CLOSING):
            self._ledger.end(ended.session, committed=outcome.ran and not outcome.rolled_back)

    def _end(self, session: str, ending: Ending) -> None:
        match ending.end:
            case End.COMMIT | End.ROLLBACK:
                self._ledger.end(session, committed=ending.end is End.COMMIT)
            case End.PREPARE:
                self._ledger.prepare(session, ending.name)
            case End.COMMIT_PREPARED | End.ROLLBACK_PREPARED:
                self._ledger.end_prepared(ending.name, committed=ending.end is End.COMMIT_PREPARED)
            case End.SAVEPOINT:
                self._ledger.savepoint(session, ending.name)
            case End.ROLLBACK_TO:
                self._ledger.rollback_to(session, ending.name)

    def _blame(self, step: Step, bound: Bound) -> Blame:
        action = step.do or step.carries_out
        if action is None or bound.deed is None:
            return Blame()
        own = bound.deed.own
        if own is None:  # it chooses its row: every state that it claims to leave is in doubt
            states = tuple(dict.fromkeys(source for source, _ in sorted(bound.deed.edges) if source != ABSENT))
        else:
            state = self._standing.get((bound.deed.subject or "", own), ABSENT)
            states = (state,) if isinstance(state, str) and state != ABSENT else ()
        return Blame(states=states, actions=(action,))


def _committed_nothing(found: Sequence[Ending], in_transaction: bool, answer: Answer) -> bool:
    """Whether all that the script did is still open, or was rolled back."""
    if any(ending.end in _COMMITTING for ending in found):
        return False
    return in_transaction or (answer.last is not None and answer.last.tag == End.ROLLBACK and answer.error is None)


def _limit(step: Step) -> float:
    return max(float(step.limit), SHORTEST_LIMIT) if step.limit is not None else DEFAULT_LIMIT
