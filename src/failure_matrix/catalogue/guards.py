"""The guards of a statement, found by token position: what can be cut out of it alone, and the text without it.

A guard is one condition of a WHERE, a lock clause, or its SKIP LOCKED or NOWAIT. A condition becomes ``true``, a
lock clause goes, and nothing else of the text changes. Assignments (SET items) are found as well, as a second list.
Conditions of a join, of ON CONFLICT, of FILTER and of MERGE's WHEN are no guards.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from failure_matrix.catalogue.model import ParameterStyle, Sql
from failure_matrix.catalogue.sql import SILENT, Kind, Token, significant, tokens

_ENDS = {
    "GROUP", "HAVING", "WINDOW", "ORDER", "LIMIT", "OFFSET", "FETCH", "FOR", "UNION", "INTERSECT", "EXCEPT",
    "RETURNING", "WHERE", "ON", "INTO", "THEN", "LOOP", ";",
}  # fmt: skip
_OPENING, _CLOSING = ("(", "["), (")", "]")
_STRENGTHS = (("UPDATE",), ("NO", "KEY", "UPDATE"), ("SHARE",), ("KEY", "SHARE"))
_NAMES = (Kind.WORD, Kind.QUOTED)
_GLUED = (*_NAMES, Kind.NUMBER, Kind.POSITION, Kind.PARAMETER)  # would run into a word that stands beside them


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
    found = [*_conditions(sql, words), *_locks(sql, words), *_assignments(sql, words)]
    return tuple(sorted(found, key=lambda guard: (guard.start, -guard.end)))


def without(sql: Sql, guard: Guard) -> Sql:
    """The SQL without one guard. A parameter that went with it is asked for no more."""
    cut = sql.model_copy(update={"text": guard.cut(sql.text)})
    return _named(cut) if sql.params == "numeric" else cut


def _named(sql: Sql) -> Sql:
    """``$2`` as ``%(2)s``: a position that nothing names any more would be a parameter of no type."""
    pieces = (
        f"%({token.text[1:]})s" if token.kind is Kind.POSITION else token.text.replace("%", "%%")
        for token in tokens(sql.text, sql.params)
    )
    return sql.model_copy(update={"text": "".join(pieces), "params": "pyformat"})


def body_of(text: str, style: ParameterStyle = "none") -> tuple[int, str] | None:
    """Where the dollar-quoted body of a CREATE FUNCTION begins, and the body; None where it has none."""
    for token in tokens(text, style):
        if token.kind is Kind.BODY:
            tag = token.text.index("$", 1) + 1
            return token.start + tag, token.text[tag:-tag]
    return None


def compares(sql: Sql, column: str, values: Collection[str] | None) -> bool:
    """Whether a condition says that a column equals one of these parameters, be it through a subquery.

    ``values`` are names of parameters; None stands for any single name, as of a function's argument.
    """
    words = _bared(significant(sql.text, sql.params))
    sides = _sides(words)
    if sides is None:
        return False
    return any(_is_column(one, column) and _has_value(other, values) for one, other in (sides, sides[::-1]))


def _bared(words: Sequence[Token]) -> Sequence[Token]:
    """The words inside of parentheses that stand around all."""
    while len(words) > 2 and words[0].text == "(" and _closing(words, 0) == len(words) - 1:
        words = words[1:-1]
    return words


def _sides(words: Sequence[Token]) -> tuple[Sequence[Token], Sequence[Token]] | None:
    """What stands on both sides of the first = or IN outside of parentheses."""
    depth = 0
    for index, token in enumerate(words):
        depth += (token.text in _OPENING) - (token.text in _CLOSING)
        if depth == 0 and (token.text == "=" or _keyword(words, index) == "IN"):
            return words[:index], words[index + 1 :]
    return None


def _is_column(words: Sequence[Token], column: str) -> bool:
    """Whether it names a column, perhaps with a cast, perhaps as one of a row."""
    words, last = _bared(words), significant(column)[-1].name
    names = [at for at, _ in _top_level(words, 0, len(words)) if words[at].kind in _NAMES and words[at].name == last]
    return any(at + 1 == len(words) or words[at + 1].text not in ("(", ".") for at in names)


def _has_value(words: Sequence[Token], values: Collection[str] | None) -> bool:
    if values is not None:
        return any(token.kind is Kind.PARAMETER and token.name in values for token in words) or any(
            token.kind is Kind.POSITION and token.text[1:] in values for token in words
        )
    words = _bared(words)
    single = len(words) == 1 or (len(words) > 1 and words[1].text in (".", "::"))
    return single and words[0].kind in (*_NAMES, Kind.POSITION)


def _keyword(words: Sequence[Token], index: int) -> str:
    """The word in capitals, or the mark; nothing for a name: in quotes, after a dot, or after AS."""
    if not 0 <= index < len(words) or words[index].kind is Kind.QUOTED:
        return ""
    named = words[index].kind is Kind.WORD and index > 0 and words[index - 1].text.upper() in (".", "AS")
    return "" if named else words[index].text.upper()


def _conditions(sql: Sql, words: Sequence[Token]) -> Iterator[Guard]:
    for index in range(len(words)):
        if _keyword(words, index) == "WHERE" and not _not_a_guard(words, index):
            yield from _split(sql, words, index + 1, _clause_end(words, index + 1))


def _not_a_guard(words: Sequence[Token], where: int) -> bool:
    """FILTER (WHERE ...), ON CONFLICT (...) WHERE ..., and DO UPDATE ... WHERE of an ON CONFLICT."""
    if _keyword(words, where - 1) == "(" and _keyword(words, where - 2) == "FILTER":
        return True
    depth = 0
    for index in range(where - 1, 0, -1):
        depth += {")": 1, "(": -1}.get(words[index].text, 0)
        if depth < 0 or words[index].text == ";":
            return False
        if depth == 0 and _keyword(words, index) == "CONFLICT" and _keyword(words, index - 1) == "ON":
            return True
    return False


def _top_level(words: Sequence[Token], start: int, end: int) -> Iterator[tuple[int, str]]:
    """The words outside of parentheses, brackets and CASE, up to what closes the first of them from without."""
    depth = cases = 0
    for index in range(start, end):
        word = _keyword(words, index)
        depth += (word in _OPENING) - (word in _CLOSING)
        if depth < 0:
            yield index, ")"
            return
        if depth == 0:
            cases += (word == "CASE") - (word == "END")
            if cases <= 0 and word not in (*_CLOSING, "END"):
                yield index, word


def _clause_end(words: Sequence[Token], start: int) -> int:
    """The index after the last word of the clause that begins at ``start``."""
    ends = (index for index, word in _top_level(words, start, len(words)) if word == ")" or word in _ENDS)
    return next(ends, len(words))


def _split(sql: Sql, words: Sequence[Token], start: int, end: int) -> Iterator[Guard]:
    """The conditions between two words, parted at AND; with an OR among them it is one."""
    pieces, seen_or, between = [start], False, 0
    for index, word in _top_level(words, start, end):
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
            yield from _piece(sql, words, first, after)


def _piece(sql: Sql, words: Sequence[Token], first: int, after: int) -> Iterator[Guard]:
    """One condition; one that is a parenthesis around several is these."""
    enclosed = words[first].text == "(" and _closing(words, first) == after - 1
    if enclosed and _keyword(words, first + 1) not in ("SELECT", "WITH"):
        inner = list(_split(sql, words, first + 1, after - 1))
        if len(inner) > 1:
            yield from inner
            return
    start, end = words[first].start, words[after - 1].end
    before = " " if words[first - 1].end == start and words[first - 1].kind in _GLUED else ""  # as in WHERE(a)AND(b)
    behind = " " if after < len(words) and words[after].start == end and words[after].kind in _GLUED else ""
    yield _guard(sql, Part.CONDITION, start, end, f"{before}true{behind}")


def _closing(words: Sequence[Token], opening: int) -> int:
    depth = 0
    for index in range(opening, len(words)):
        depth += {"(": 1, ")": -1}.get(words[index].text, 0)
        if depth == 0:
            return index
    return len(words)


def _locks(sql: Sql, words: Sequence[Token]) -> Iterator[Guard]:
    for index in range(len(words)):
        strength = _strength(words, index)
        if not strength:
            continue
        end = index + 1 + strength
        if _keyword(words, end) == "OF":
            end += 2
            while _keyword(words, end) in (",", "."):
                end += 2
        wait = 1 if _keyword(words, end) == "NOWAIT" else 2 if _keyword(words, end) == "SKIP" else 0
        if wait:
            yield _guard(sql, Part.LOCK, words[end].start, words[end + wait - 1].end, "")
        yield _guard(sql, Part.LOCK, words[index].start, words[end + wait - 1].end, "")


def _strength(words: Sequence[Token], index: int) -> int:
    """How many words after FOR name a row lock; 0 where it is another FOR, as in substring(a FROM 1 FOR share)."""
    if _keyword(words, index) != "FOR" or not _in_a_query(words, index):
        return 0
    for strength in _STRENGTHS:
        if tuple(_keyword(words, index + 1 + at) for at in range(len(strength))) == strength:
            return len(strength)
    return 0


def _in_a_query(words: Sequence[Token], index: int) -> bool:
    """Whether the innermost parenthesis around a word, if there is one, is that of a query."""
    depth = 0
    for at in range(index - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(words[at].text, 0)
        if depth < 0:
            return _keyword(words, at + 1) in ("SELECT", "WITH", "TABLE", "(")
    return True


def _assignments(sql: Sql, words: Sequence[Token]) -> Iterator[Guard]:
    for index in range(len(words)):
        if _keyword(words, index) == "SET" and _of_an_update(words, index):
            yield from _items(sql, words, index + 1)


def _of_an_update(words: Sequence[Token], index: int) -> bool:
    """UPDATE [ONLY] name [*] [[AS] alias] SET, or DO UPDATE SET; not the command SET, nor ON UPDATE SET NULL."""
    at = index - 1
    while at > 0 and _keyword(words, at) != "UPDATE" and (words[at].kind in _NAMES or words[at].text in (".", "*")):
        at -= 1
    return _keyword(words, at) == "UPDATE" and _keyword(words, at - 1) not in ("FOR", "KEY", "ON")


def _items(sql: Sql, words: Sequence[Token], start: int) -> Iterator[Guard]:
    """SET items, each with the comma that parts it; a single one can't go."""
    bounds, end = [start], len(words)
    for index, word in _top_level(words, start, len(words)):
        if word in ("WHERE", "FROM", "RETURNING", "WHEN", ";", ")") and _keyword(words, index - 1) != "DISTINCT":
            end = index
            break
        if word == ",":
            bounds.append(index + 1)
    items = list(zip(bounds, [*(bound - 1 for bound in bounds[1:]), end], strict=True))
    if len(items) < 2:
        return
    for number, (first, after) in enumerate(items):
        if number + 1 < len(items):  # with the comma behind it
            begins, ends = words[first].start, words[items[number + 1][0]].start
        else:  # with the comma before it
            begins, ends = words[first - 1].start, words[after - 1].end
        shown = _folded(sql, words[first].start, words[after - 1].end)
        yield Guard(part=Part.ASSIGNMENT, start=begins, end=ends, text=shown, instead="")


def _guard(sql: Sql, part: Part, start: int, end: int, instead: str) -> Guard:
    return Guard(part=part, start=start, end=end, text=_folded(sql, start, end), instead=instead)


def _folded(sql: Sql, start: int, end: int) -> str:
    """A piece of the text on one line, comments dropped."""
    inside = (token for token in tokens(sql.text, sql.params) if start <= token.start < end)
    return " ".join("".join(" " if token.kind in SILENT else token.text for token in inside).split())
