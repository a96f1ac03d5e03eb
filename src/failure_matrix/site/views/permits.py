"""What a row permits, and to whom, with how well each permission is proven."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from failure_matrix.catalogue.model import Action
from failure_matrix.site.book import Book, state_page, to_state
from failure_matrix.site.standing import Standing, of_moves
from failure_matrix.site.words import (
    Badge,
    Cell,
    Link,
    Phrase,
    Quiet,
    Strong,
    Target,
    clip,
    enumerated,
    fitting,
    join,
    prose,
    say,
)

WIDTH = 60  # characters of a cell


@dataclass(frozen=True, kw_only=True)
class Permit:
    """One action that a state's declared moves allow."""

    action: str
    title: str
    who: str
    whom: str  # who they are, "" where the catalogue does not say
    anchor: str
    standing: Standing
    to: Phrase  # the states it leads to, linked
    line: Phrase  # as a cell shows it


def permits(book: Book, id: str, row: Standing) -> tuple[Permit, ...]:
    """The permitted actions of a state; one less proven than its row says so on its own line."""
    return tuple(_permit(book, id, action, row) for action in book.actions_from.get(id, ()))


def _permit(book: Book, id: str, action_id: str, row: Standing) -> Permit:
    action = book.catalogue.actions[action_id]
    moves = [move for move in book.moves_from.get(id, ()) if move.by == action_id]
    standing = of_moves(book, moves)
    anchor = f"{id}--{action_id}"
    who = enumerated(action.permits, "or") if action.permits else "nobody" if action.permits == () else "anyone"
    state = book.catalogue.states.get(id)
    elsewhere = f", on the {action.subject}" if state is not None and action.subject != state.subject else ""
    title = clip(prose(action.title), WIDTH)
    link = Link(title, Target(state_page(id), anchor))
    own = standing.verdict is not row.verdict and not standing.verified
    said: Iterable[Phrase | str | Badge | Quiet | Strong] = ()
    if standing.broken and own:
        said = (" ", Badge(standing.verdict, ""), Strong(" do not"))
    elif own:
        said = (" ", Badge(standing.verdict, standing.note))
    return Permit(
        action=action_id,
        title=title,
        who=who,
        whom=_whom(book, action),
        anchor=anchor,
        standing=standing,
        to=join((to_state(book, move.to) for move in moves), " or "),
        line=say(link, " ", Quiet(clip(who + elsewhere, WIDTH)), *said),
    )


def _whom(book: Book, action: Action) -> str:
    """Who the permitted callers are, in the catalogue's words."""
    titles = {id: book.catalogue.callers[id].title for id in action.permits or () if id in book.catalogue.callers}
    told = [(id, prose(title)) for id, title in titles.items() if title]
    return told[0][1] if len(titles) == 1 and told else "; ".join(f"{id}: {title}" for id, title in told)


@dataclass(frozen=True, kw_only=True)
class May:
    """The cell "You may": the reason comes first wherever the row is not verified.

    act: False on a broken row, whose permits are folded away.
    """

    lead: str
    brief: str  # the lead in 27 characters
    act: bool
    nothing: str  # said where there is no permit
    permits: tuple[Permit, ...]

    @property
    def cell(self) -> Cell:
        if not self.act:
            return (say(Strong(self.lead)),)
        lead = (say(Strong(self.lead)),) if self.lead and self.permits else ()
        return (*lead, *(permit.line for permit in self.permits)) or (say(self.nothing),)

    def short(self, width: int) -> str:
        """The cell in ``width`` characters, reason first."""
        if not self.act:
            return self.lead
        if not self.permits:
            return self.nothing
        names = [
            f"{permit.title} ({_why(permit)})" if _own(permit, self.lead) else permit.title for permit in self.permits
        ]
        lead = f"{self.brief}: " if self.brief else ""
        return lead + fitting(names, width - len(lead), "action")


def _own(permit: Permit, lead: str) -> bool:
    return not lead and not permit.standing.verified


def _why(permit: Permit) -> str:
    return "do not: broken" if permit.standing.broken else str(permit.standing.verdict)


def may(book: Book, id: str, standing: Standing) -> May:
    state = book.catalogue.states[id]
    if state.illegal:
        nothing = "nothing: no row may be like this"
    elif state.final:
        nothing = "nothing: it is final"
    else:
        nothing = "nothing: wait, or call its owner"
    return May(
        lead=standing.lead,
        brief=standing.brief,
        act=not standing.broken,
        nothing=nothing,
        permits=permits(book, id, standing),
    )
