"""Who did what in which open transaction, and which changes of state are declared when it takes effect."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import TypeVar

from failure_matrix.catalogue.model import ABSENT, Catalogue
from failure_matrix.database.classify import KeyText, Misfit
from failure_matrix.evidence.records import Change, Hop
from failure_matrix.verify import moves
from failure_matrix.verify.bind import event_deed
from failure_matrix.verify.judge import Standing
from failure_matrix.verify.moves import Deed, Edge, find_path

Where = tuple[str, KeyText]  # subject and key
Thing = TypeVar("Thing")


@dataclass(kw_only=True)
class Transaction:
    """The actions of one session that have not taken effect yet, and what happened since the first."""

    starts: Standing  # as committed when the first action ran
    deeds: list[Deed] = field(default_factory=list)
    meanwhile: list[tuple[Where, Edge]] = field(default_factory=list)  # what others committed
    since: list[Deed] = field(default_factory=list)  # events
    savepoints: list[tuple[str | None, int]] = field(default_factory=list)  # each with the number of deeds before it


@dataclass(frozen=True, kw_only=True)
class Undeclared:
    """A change that no declared path leads to."""

    where: Where
    edge: Edge
    deeds: tuple[str, ...]


class Ledger:
    """The open transactions of all sessions, and what takes effect at the step that runs."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self._open: dict[str, Transaction] = {}
        self._now: list[Transaction] = []  # takes effect at this step
        self._events: list[Deed] = []  # of this step
        self._unseen: dict[str, dict[Where, str]] = {}  # session -> uncommitted states it saw
        self._rolled_back: list[tuple[str, list[Deed]]] = []
        self._prepared: dict[str | None, str] = {}  # name of a prepared transaction -> the session that prepared it

    def act(self, session: str, standing: Standing) -> None:
        """An action is sent: its transaction begins for us where it has not yet."""
        self._open.setdefault(session, Transaction(starts=standing))

    def done(self, session: str, deed: Deed | None, *, took: bool) -> None:
        """An action ended in its session and did something, or may have; with None, surely nothing."""
        if deed is not None and session in self._open:
            self._open[session].deeds.append(replace(deed, took=took))

    def savepoint(self, session: str, name: str | None) -> None:
        """The session set a savepoint."""
        if session in self._open:
            self._open[session].savepoints.append((name, len(self._open[session].deeds)))

    def rollback_to(self, session: str, name: str | None) -> None:
        """What the session did after the savepoint never happened; one that is not known is older than any deed."""
        transaction = self._open.get(session)
        if transaction is not None:
            while transaction.savepoints and transaction.savepoints[-1][0] != name:
                transaction.savepoints.pop()
            deeds = transaction.savepoints[-1][1] if transaction.savepoints else 0
            del transaction.deeds[deeds:]

    def prepare(self, session: str, name: str | None) -> None:
        """The session's transaction is prepared, to be ended by any session."""
        self._prepared[name] = session
        _rename(self._open, session, _prepared(name))
        _rename(self._unseen, session, _prepared(name))

    def end_prepared(self, name: str | None, *, committed: bool) -> None:
        """A prepared transaction ended at this step."""
        self._prepared.pop(name, None)
        self.end(_prepared(name), committed=committed)

    def prepared_by(self) -> tuple[str, ...]:
        """The sessions whose transactions are prepared."""
        return tuple(sorted(set(self._prepared.values())))

    def event(self, deed: Deed) -> None:
        """An event happens at this step."""
        self._events.append(deed)
        for transaction in self._open.values():
            transaction.since.append(deed)

    def end(self, session: str, *, committed: bool, by: tuple[Deed, ...] = ()) -> None:
        """The session's transaction ended at this step; ``by`` are the events that ended it."""
        transaction = self._open.pop(session, None)
        name = "commit" if committed else "rollback"
        ending = list(by)
        if name in self._catalogue.events:
            ending.append(event_deed(name, self._catalogue.events[name], {}))
        if committed:
            if transaction is not None:
                transaction.since.extend(ending)
                self._now.append(transaction)
            self._unseen.pop(session, None)
        else:
            self._rolled_back.append((session, ending))

    def settle(self, before: Standing, after: Standing) -> tuple[list[Change], list[Undeclared]]:
        """Account for every change between two looks; forgets what has taken effect."""
        if before is after and not self._now and not self._rolled_back:
            self._events = []
            return [], []
        changes: list[Change] = []
        undeclared: list[Undeclared] = []
        for where in sorted({*before, *after}):
            old, new = before.get(where, ABSENT), after.get(where, ABSENT)
            if isinstance(old, Misfit) or isinstance(new, Misfit):
                continue
            if old == new:
                changes += self._stayed(where, old)
            elif (path := self._path(where, old, new)) is None:
                names = tuple(deed.name for deed in self._deeds())
                undeclared.append(Undeclared(where=where, edge=(old, new), deeds=names))
            else:
                changes.append(self._change(where, old, new, path))
        changes += self._gone()
        for transaction in self._open.values():
            transaction.meanwhile += [((c.subject, c.key), (c.from_, c.to)) for c in changes if c.from_ != c.to]
        self._now, self._events, self._rolled_back = [], [], []
        return changes, undeclared

    def _deeds(self) -> list[Deed]:
        return [deed for transaction in self._now for deed in transaction.deeds]

    def _path(self, where: Where, old: str, new: str) -> moves.Path | None:
        """A path through what surely did something, else through all that may have."""
        deeds = self._deeds()
        return self._path_by([deed for deed in deeds if deed.took], where, old, new) or self._path_by(
            deeds, where, old, new
        )

    def _path_by(self, deeds: Sequence[Deed], where: Where, old: str, new: str) -> moves.Path | None:
        starts = [old, *(state for t in self._now if isinstance(state := t.starts.get(where, ABSENT), str))]
        events = [*self._events, *(deed for transaction in self._now for deed in transaction.since)]
        return find_path(
            starts,
            new,
            deeds=[deed.edges_for(*where) for deed in deeds],
            names=[deed.name for deed in deeds],
            meanwhile=[edge for t in self._now for changed, edge in t.meanwhile if changed == where],
            since=[(event.name, event.edges) for event in events],
        )

    def _stayed(self, where: Where, state: str) -> Iterable[Change]:
        """Moves from a state to itself: declared, and made by an action that took effect on this very key."""
        for deed in self._deeds():
            if deed.took and (deed.subject, deed.own) == where and (state, state) in deed.edges:
                yield self._change(where, state, state, (moves.Hop(by=deed.name, edge=(state, state)),))

    def saw(self, session: str, seen: Mapping[Where, str], committed: Standing) -> list[Change]:
        """A session sees states that only it can see; the changes that led there, as it sees them."""
        known = self._unseen.setdefault(session, {})
        deeds = self._open[session].deeds if session in self._open else []
        changes = []
        for where, state in seen.items():
            start = known.get(where, committed.get(where, ABSENT))
            known[where] = state
            if isinstance(start, Misfit) or start == state:
                continue
            path = find_path(
                [start], state, deeds=[deed.edges_for(*where) for deed in deeds], names=[d.name for d in deeds],
                meanwhile=(), since=(),
            )  # fmt: skip
            if path is not None:
                changes.append(self._change(where, start, state, path, session))
        return changes

    def _gone(self) -> Iterable[Change]:
        """What a session alone had seen, and its rollback took away."""
        for session, ending in self._rolled_back:
            for where, state in self._unseen.pop(session, {}).items():
                for deed in ending:
                    if (state, ABSENT) in deed.edges:
                        hop = moves.Hop(by=deed.name, edge=(state, ABSENT))
                        yield self._change(where, state, ABSENT, (hop,), session)

    def _change(self, where: Where, old: str, new: str, path: moves.Path, session: str | None = None) -> Change:
        between = [hop.edge[1] for hop in path[:-1]]
        visible = [state for state in between if state in self._catalogue.states and not self._uncommitted(state)]
        return _recorded(where, old, new, path, session, late=bool(visible))

    def _uncommitted(self, state: str) -> bool:
        return self._catalogue.states[state].uncommitted


@lru_cache(maxsize=4096)  # orders make the same changes again and again
def _recorded(where: Where, old: str, new: str, path: moves.Path, session: str | None, *, late: bool) -> Change:
    return Change(
        subject=where[0],
        key=where[1],
        from_=old,
        to=new,
        by=tuple(hop.by for hop in path if hop.by is not None),
        path=tuple(Hop(from_=hop.edge[0], by=hop.by, to=hop.edge[1]) for hop in path),
        late=late,
        session=session,
    )


def _prepared(name: str | None) -> str:
    return f"the prepared transaction {name}"


def _rename(things: dict[str, Thing], old: str, new: str) -> None:
    if old in things:
        things[new] = things.pop(old)
