"""What a row shows to somebody who looks at it: the conditions of its predicate, as column facts."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise

from failure_matrix.catalogue.model import Sql
from failure_matrix.catalogue.sql import SILENT, Kind, Token, tokens
from failure_matrix.site.book import Book

MOST = 3  # lines of a cell
LONGEST = 34  # characters of a fact

_OPENING = ("in", "and", "or", "not", "any", "all")  # words before a parenthesis that is no call
_SIGNS = {">=": "≥", "<=": "≤", "<>": "≠", "!=": "≠"}


@dataclass(frozen=True, kw_only=True)
class Fact:
    """One condition; ``tells`` when a look-alike's predicate does not ask the same."""

    text: str
    tells: bool


def facts(book: Book, id: str) -> tuple[Fact, ...]:
    """The conditions of a state's predicate, or none where they do not fit a cell."""
    found = _conditions(book, id)
    if book.catalogue.states[id].uncommitted or not _own_columns(book, id):
        return ()
    if not 0 < len(found) <= MOST or any(len(text) > LONGEST for text in found):
        return ()
    others = [set(_conditions(book, other)) for other in look_alikes(book, id)]
    return tuple(Fact(text=text, tells=any(text not in other for other in others)) for text in found)


def look_alikes(book: Book, id: str) -> tuple[str, ...]:
    """The states that this one is mistaken for, said on either side, in the author's order."""
    found = {*book.catalogue.states[id].mistaken_for, *book.mistaken_by.get(id, ())} - {id}
    return tuple(sorted(found & book.catalogue.states.keys(), key=book.places.__getitem__))


def _own_columns(book: Book, id: str) -> bool:
    """Tell whether a predicate asks of the subject's own relation only: the rest is seen elsewhere."""
    state = book.catalogue.states[id]
    first = _first_relation(book.catalogue.subjects[state.subject].from_)
    found = [token for token in tokens(state.when.text, state.when.params) if token.kind not in SILENT]
    calls = any(
        two.text == "(" and one.kind in (Kind.WORD, Kind.QUOTED) and one.name not in _OPENING
        for one, two in pairwise(found)
    )
    if calls:
        return False
    dotted = (one for one, two in pairwise(found) if two.text == ".")
    return all(token.text == first for token in dotted)


def _conditions(book: Book, id: str) -> tuple[str, ...]:
    state = book.catalogue.states[id]
    first = _first_relation(book.catalogue.subjects[state.subject].from_)
    parts = split(state.when)
    return tuple(_shown(part, first) for part in parts)


def split(sql: Sql) -> tuple[tuple[Token, ...], ...]:
    """Split a predicate at its outer ANDs; one part where it is anything else."""
    found = [token for token in tokens(sql.text, sql.params) if token.kind not in SILENT]
    words = list(_outer_words(found))
    if any(word in ("or", "case", "not") for _, word in words):
        return (tuple(found),)
    parts: list[tuple[Token, ...]] = []
    start, between = 0, False
    for place, word in words:
        if word == "between":
            between = True
        elif word == "and" and between:
            between = False
        elif word == "and":
            parts.append(tuple(found[start:place]))
            start = place + 1
    return (*parts, tuple(found[start:]))


def _outer_words(found: list[Token]) -> Iterator[tuple[int, str]]:
    depth = 0
    for place, token in enumerate(found):
        if token.text in ("(", "["):
            depth += 1
        elif token.text in (")", "]"):
            depth -= 1
        elif depth == 0 and token.kind is Kind.WORD:
            before = found[place - 1].name if place else ""
            if not (token.name == "not" and before == "is"):  # IS NOT NULL is one condition
                yield place, token.name


def _first_relation(sql: Sql) -> str:
    return next((token.text for token in tokens(sql.text, sql.params) if token.kind in (Kind.WORD, Kind.QUOTED)), "")


def _shown(part: tuple[Token, ...], relation: str) -> str:
    """A condition as a person writes it: the subject's own relation left out, one blank where there was any."""
    pieces: list[str] = []
    end = part[0].start if part else 0
    skip = 0
    for place, token in enumerate(part):
        if skip:
            skip -= 1
        else:
            qualifies = token.text == relation and place + 1 < len(part) and part[place + 1].text == "."
            if token.start > end and pieces and pieces[-1] != " ":
                pieces.append(" ")
            if qualifies:
                skip = 1
            else:
                pieces.append(_word(token))
        end = token.end
    return "".join(pieces).strip()


def _word(token: Token) -> str:
    if token.kind is Kind.PARAMETER:
        return token.name
    return _SIGNS.get(token.text, token.text) if token.kind is Kind.OPERATOR else token.text
