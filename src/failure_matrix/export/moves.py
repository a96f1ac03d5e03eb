"""The moves of a catalogue as arrows between states, for every kind of diagram."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from failure_matrix.catalogue.model import ABSENT, Action, Catalogue, Event


@dataclass(frozen=True, kw_only=True)
class Arrow:
    """All that leads from one state to another. ``start`` or ``end`` is None for no row."""

    subject: str
    start: str | None
    end: str | None
    by: tuple[str, ...]  # ids of actions and events, as listed


def arrows(catalogue: Catalogue) -> list[Arrow]:
    """The arrows by subject, in the order of its states; where a ``$parameter`` leads is not known here."""
    found: dict[tuple[str, str, str], dict[str, None]] = {}
    nouns: dict[str, Action | Event] = {**catalogue.actions, **catalogue.events}
    for by, noun in nouns.items():
        for start, ends in noun.moves.items():
            for subject, end in _ends(catalogue, noun, start, ends):
                found.setdefault((subject, start, end), {})[by] = None
    order = {state: number for number, state in enumerate((ABSENT, *catalogue.states))}
    subjects = {subject: number for number, subject in enumerate(catalogue.subjects)}
    return [
        Arrow(
            subject=subject,
            start=None if start == ABSENT else start,
            end=None if end == ABSENT else end,
            by=tuple(found[subject, start, end]),
        )
        for subject, start, end in sorted(found, key=lambda key: (subjects[key[0]], order[key[1]], order[key[2]]))
    ]


def _ends(catalogue: Catalogue, noun: Action | Event, start: str, ends: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    """The subject of each move, and where it ends."""
    for end in ends:
        states = [catalogue.states[state] for state in (start, end) if state in catalogue.states]
        if end in catalogue.states or end == ABSENT:
            subject = states[0].subject if states else noun.subject if isinstance(noun, Action) else None
            if subject is not None:
                yield subject, end
