"""Which changes of state are declared, and by whom: the path rule.

A change is declared if a path leads to it: from the state when the transaction's first action ran, through
the moves of the actions that take effect now and the changes that others committed meanwhile, then through
the moves of events since.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from failure_matrix.database.classify import KeyText

Edge = tuple[str, str]  # from state, to state


@dataclass(frozen=True, kw_only=True)
class Deed:
    """One action or event with its moves, ``$parameters`` bound."""

    name: str
    edges: frozenset[Edge]
    others: frozenset[Edge] = frozenset()  # ``also``: of other rows of the subject
    subject: str | None = None  # the action's own
    own: KeyText | None = None  # the key its parameters bind, where they do
    took: bool = True  # it surely did something, where what it answered tells

    def edges_for(self, subject: str, key: KeyText) -> frozenset[Edge]:
        """What this deed may do to one key."""
        if subject != self.subject or self.own is None:
            return self.edges | self.others
        return self.edges if key == self.own else self.others


@dataclass(frozen=True, kw_only=True)
class Hop:
    """One move on a path: who made it, from where, to where."""

    by: str | None  # None: a change that another session committed meanwhile
    edge: Edge


Path = tuple[Hop, ...]


def find_path(
    starts: Iterable[str],
    goal: str,
    *,
    deeds: Sequence[frozenset[Edge]],
    names: Sequence[str],
    meanwhile: Iterable[Edge],
    since: Sequence[tuple[str, frozenset[Edge]]],
) -> Path | None:
    """The shortest declared path to ``goal``, or None.

    ``deeds[i]`` are the moves of the i-th action that takes effect, ``names[i]`` is its name; each is used
    once at most and in order. ``since`` are the events, used freely, after all deeds.
    """
    queue: deque[tuple[str, int, Path]] = deque((start, 0, ()) for start in dict.fromkeys(starts))
    seen: set[tuple[str, int]] = set()  # by a move: a path may lead back to where it began
    while queue:
        state, done, path = queue.popleft()
        if state == goal and path:
            return path
        for hop, then in _hops(state, done, deeds, names, tuple(meanwhile), since):
            if (hop.edge[1], then) not in seen:
                seen.add((hop.edge[1], then))
                queue.append((hop.edge[1], then, (*path, hop)))
    return None


def _hops(
    state: str,
    done: int,
    deeds: Sequence[frozenset[Edge]],
    names: Sequence[str],
    meanwhile: Sequence[Edge],
    since: Sequence[tuple[str, frozenset[Edge]]],
) -> Iterator[tuple[Hop, int]]:
    events = len(deeds) + 1  # where a path is once it goes through events
    for index in range(done, len(deeds)):
        for edge in sorted(deeds[index]):
            if edge[0] == state:
                yield Hop(by=names[index], edge=edge), index + 1
    if done < events:
        for edge in meanwhile:
            if edge[0] == state:
                yield Hop(by=None, edge=edge), done
    for name, edges in since:
        for edge in sorted(edges):
            if edge[0] == state:
                yield Hop(by=name, edge=edge), events
