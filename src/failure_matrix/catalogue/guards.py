"""The guards of a statement, found by token position: what can be cut out of it alone, and the text without it.

A guard is one condition of a WHERE, a lock clause, or its SKIP LOCKED or NOWAIT. A condition becomes ``true``, a
lock clause goes, and nothing else of the text changes. Assignments (SET items) are found as well, as a second list.
Conditions of a join, of ON CONFLICT and of FILTER are no guards.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from failure_matrix.catalogue.model import ParameterStyle, Sql
from failure_matrix.catalogue.sql import SILENT, Kind, Token, significant, tokens

_ENDS = {
    "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR", "UNION", "INTERSECT", "EXCEPT",
    "RETURNING", "WHERE", "ON",
}  # fmt: skip
_STRENGTHS = (("UPDATE",), ("NO", "KEY", "UPDATE"), ("SHARE",), ("KEY", "SHARE"))


class Part(StrEnum):
    """What kind of piece a guard is."""

    CONDITION = "condition"
    LOCK = "lock"
    ASSIGNMENT = "assignment"


@dataclass(frozen=True, kw_only=True)
class Guard:
    """One piece of a statement: where it stands in the text, and what stands there without it."""

    part: Part
    start: int  # characters of the statement's text
    end: int
    text: str  # as written, white space folded
    instead: str  # what a cut leaves in its place

    def cut(self, text: str) -> str:
        """The text without this guard."""
        return text[: self.start] + self.instead + text[self.end :]


def guards(sql: Sql) -> tuple[Guard, ...]:
    """Every condition, lock clause and assignment of a statement, in the order of the text."""
    words = significant(sql.text, sql.params)
    found = [*_conditions(sql.text, words), *_locks(sql.text, words), *_assignments(sql.text, words)]
    return tuple(sorted(found, key=lambda guard: (guard.start, -guard.end)))


def without(sql: Sql, guard: Guard) -> Sql:
    """The SQL without one guard."""
    return sql.model_copy(update={"text": guard.cut(sql.text)})


def body_of(text: str, style: ParameterStyle = "none") -> tuple[int, str] | None:
    """Where the dollar-quoted body of a CREATE FUNCTION begins, and the body; None where it has none."""
    for token in tokens(text, style):
        if token.kind is Kind.BODY:
            tag = token.text.index("$", 1) + 1
            return token.start + tag, token.text[tag:-tag]
    return None


def _upper(words: Sequence[Token], index: int) -> str:
    return words[index].text.upper() if 0 <= index < len(words) else ""


def _conditions(text: str, words: Sequence[Token]) -> Iterator[Guard]:
    for index in range(len(words)):
        if _upper(words, index) == "WHERE" and not _not_a_guard(words, index):
            yield from _split(text, words, index + 1, _clause_end(words, index + 1))


def _not_a_guard(words: Sequence[Token], where: int) -> bool:
    """FILTER (WHERE ...), ON CONFLICT (...) WHERE ..., and DO UPDATE ... WHERE of an ON CONFLICT; CREATE ... WHERE."""
    if _upper(words, where - 1) == "(" and _upper(words, where - 2) == "FILTER":
        return True
    depth = 0
    for index in range(where - 1, 0, -1):
        depth += {")": 1, "(": -1}.get(words[index].text, 0)
        if depth < 0 or words[index].text == ";":
            return False
        if depth == 0 and _upper(words, index) == "CONFLICT" and _upper(words, index - 1) == "ON":
            return True
    return False


def _clause_end(words: Sequence[Token], start: int) -> int:
    """The index after the last word of the clause that begins at ``start``."""
    depth = cases = 0
    for index in range(start, len(words)):
        word = _upper(words, index)
        if word in "([" and word:
            depth += 1
        elif word in (")", "]"):
            depth -= 1
            if depth < 0:
                return index
        elif depth == 0:
            if word == ";" or (word in _ENDS and cases == 0 and not _continues(words, index)):
                return index
            if word in ("THEN", "LOOP") and cases == 0:  # of a PL/pgSQL body
                return index
            cases += {"CASE": 1, "END": -1}.get(word, 0)
    return len(words)


def _continues(words: Sequence[Token], index: int) -> bool:
    """IS DISTINCT FROM and its like are no end; nor is a column of such a name after a dot."""
    return _upper(words, index - 1) == "."


def _split(text: str, words: Sequence[Token], start: int, end: int) -> Iterator[Guard]:
    """The conditions between two words, parted at AND; with an OR among them it is one."""
    pieces, seen_or = [start], False
    depth = cases = between = 0
    for index in range(start, end):
        word = _upper(words, index)
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(word, 0)
        cases += {"CASE": 1, "END": -1}.get(word, 0)
        if depth or cases:
            continue
        between += word == "BETWEEN"
        if word == "AND" and between:
            between -= 1
        elif word == "AND":
            pieces.append(index + 1)
        seen_or |= word == "OR"
    if seen_or:
        pieces = [start]
    for first, after in zip(pieces, [*(piece - 1 for piece in pieces[1:]), end], strict=True):
        if first < after:
            yield from _piece(text, words, first, after)


def _piece(text: str, words: Sequence[Token], first: int, after: int) -> Iterator[Guard]:
    """One condition; one that is a parenthesis around several is these."""
    if (
        words[first].text == "("
        and _closing(words, first) == after - 1
        and _upper(words, first + 1) not in ("SELECT", "WITH")
    ):
        inner = list(_split(text, words, first + 1, after - 1))
        if len(inner) > 1:
            yield from inner
            return
    yield _guard(Part.CONDITION, text, words[first].start, words[after - 1].end, "true")


def _closing(words: Sequence[Token], opening: int) -> int:
    depth = 0
    for index in range(opening, len(words)):
        depth += {"(": 1, ")": -1}.get(words[index].text, 0)
        if depth == 0:
            return index
    return len(words)


def _locks(text: str, words: Sequence[Token]) -> Iterator[Guard]:
    for index in range(len(words)):
        strength = _strength(words, index)
        if not strength:
            continue
        end = index + 1 + strength
        if _upper(words, end) == "OF":
            end += 2
            while _upper(words, end) in (",", "."):
                end += 2
        wait = 1 if _upper(words, end) == "NOWAIT" else 2 if _upper(words, end) == "SKIP" else 0
        if wait:
            yield _guard(Part.LOCK, text, words[end].start, words[end + wait - 1].end, "")
        yield _guard(Part.LOCK, text, words[index].start, words[end + wait - 1].end, "")


def _strength(words: Sequence[Token], index: int) -> int:
    """How many words after FOR name a row lock; 0 where it is another FOR."""
    if _upper(words, index) != "FOR":
        return 0
    for strength in _STRENGTHS:
        if tuple(_upper(words, index + 1 + at) for at in range(len(strength))) == strength:
            return len(strength)
    return 0


def _assignments(text: str, words: Sequence[Token]) -> Iterator[Guard]:
    for index in range(len(words)):
        if _upper(words, index) == "SET" and _of_an_update(words, index):
            yield from _items(text, words, index + 1)


def _of_an_update(words: Sequence[Token], index: int) -> bool:
    """UPDATE name [[AS] alias] SET, or DO UPDATE SET; not the command SET."""
    return any(_upper(words, before) == "UPDATE" for before in range(max(0, index - 6), index))


def _items(text: str, words: Sequence[Token], start: int) -> Iterator[Guard]:
    """SET items, each with the comma that parts it; a single one can't go."""
    bounds, depth, end = [start], 0, len(words)
    for index in range(start, len(words)):
        word = _upper(words, index)
        depth += {"(": 1, ")": -1}.get(word, 0)
        if depth < 0 or (depth == 0 and word in ("WHERE", "FROM", "RETURNING", ";") and not _distinct(words, index)):
            end = index
            break
        if depth == 0 and word == ",":
            bounds.append(index + 1)
    items = list(zip(bounds, [*(bound - 1 for bound in bounds[1:]), end], strict=True))
    if len(items) < 2:
        return
    for number, (first, after) in enumerate(items):
        if number + 1 < len(items):  # with the comma behind it
            begins, ends = words[first].start, words[items[number + 1][0]].start
        else:  # with the comma before it
            begins, ends = words[first - 1].start, words[after - 1].end
        shown = _folded(text[words[first].start : words[after - 1].end])
        yield Guard(part=Part.ASSIGNMENT, start=begins, end=ends, text=shown, instead="")


def _distinct(words: Sequence[Token], index: int) -> bool:
    return _upper(words, index) == "FROM" and _upper(words, index - 1) == "DISTINCT"


def _guard(part: Part, text: str, start: int, end: int, instead: str) -> Guard:
    return Guard(part=part, start=start, end=end, text=_folded(text[start:end]), instead=instead)


def _folded(text: str) -> str:
    """On one line, comments dropped."""
    return " ".join("".join(" " if token.kind in SILENT else token.text for token in tokens(text)).split())
