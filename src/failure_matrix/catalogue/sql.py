"""SQL as PostgreSQL's own scanner sees it: tokens, parameters and names.

Nothing here knows YAML or a database. Tokens tile their text: joined, they give it back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import cache, lru_cache
from typing import NamedTuple

from failure_matrix.catalogue.model import ParameterStyle, Sql


class Kind(StrEnum):
    SPACE = "space"
    COMMENT = "comment"
    STRING = "string"  # '', E'', U&'', B'', X'', N'', with the pieces that continue it on later lines
    BODY = "body"  # $tag$ ... $tag$
    WORD = "word"  # an unquoted identifier or a keyword
    QUOTED = "quoted"  # "identifier" or U&"identifier"
    NUMBER = "number"
    POSITION = "position"  # $1
    PARAMETER = "parameter"  # :name or %(name)s, as the style says
    OPERATOR = "operator"
    MARK = "mark"  # , ; . ( ) [ ] : :: := ..
    UNFINISHED = "unfinished"  # a string, body, quoted name or comment that nothing ends
    OTHER = "other"  # a character that PostgreSQL does not know


MOST_PARAMETERS = 65535  # of one statement, in PostgreSQL's protocol
SILENT = frozenset((Kind.SPACE, Kind.COMMENT))


class Token(NamedTuple):
    """One token; ``start`` and ``end`` count characters of the whole text."""

    kind: Kind
    text: str
    start: int
    end: int

    @property
    def name(self) -> str:
        """The parameter's name, or the identifier as PostgreSQL folds it."""
        match self.kind:
            case Kind.PARAMETER:
                return self.text[2:-2] if self.text.startswith("%") else self.text[1:]
            case Kind.QUOTED:
                return self.text[self.text.index('"') + 1 : -1].replace('""', '"')
            case _:
                return self.text.translate(_FOLD)


@dataclass(frozen=True, slots=True)
class Statement:
    """SQL as it is sent: ``parameters[i]`` is the name of ``$i+1``."""

    text: str
    parameters: tuple[str, ...]


_UPPER = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_FOLD = str.maketrans(_UPPER, _UPPER.lower())  # PostgreSQL folds only ASCII letters in UTF-8

# Letters, and every character beyond ASCII: said by what is left of ASCII, which compiles fifty times as fast.
_START = r"[^\x00-@\[-^`{-\x7f]"
_WORD = rf"{_START}[^\x00-#%-/:-@\[-^`{{-\x7f]*"
_TAG = rf"(?:{_START}[^\x00-/:-@\[-^`{{-\x7f]*)?"
# No possessive quantifiers: Python 3.11 before 3.11.5 loses its place where one fails half-way. So a repeat that
# must not give anything back is written out, ends in a look-ahead, or stands last.
_LINE = r"--[^\n\r]*(?=[\n\r]|\Z)"
# a string goes on after white space that holds a line end; comments may stand there too
_GAP = rf"(?:[ \t\f\v]|{_LINE})*[\n\r](?:[ \t\n\r\f\v]|{_LINE}[\n\r])*'"
_DIGITS = r"[0-9](?:_?[0-9])*"
_OPERATOR = r"~!@#^&|`?+\-*/%<>="
_LOOSE = frozenset("~!@#^&|`?%")  # an operator with one of these may end in + or -


def _string(prefix: str, plain: str, pairs: str = "''") -> str:
    """A quoted string with its continuations; a quote that begins a pair does not end it."""
    inside = rf"{plain}*(?:(?:{pairs}){plain}*)*'(?!')"
    return rf"{prefix}'{inside}(?:{_GAP}{inside})*"


@cache
def _table(style: ParameterStyle) -> re.Pattern[str]:
    """Build the scanner of one parameter style: the first alternative that matches wins."""
    operator = rf"(?:(?!/\*|--)[{_OPERATOR}])+"
    parameter = r"(?!)"
    if style == "named":
        parameter = rf":{_WORD}"
    elif style == "pyformat":
        parameter = r"%\([^()]+\)s"
        operator = rf"(?:%%|(?!/\*|--|%\()[{_OPERATOR}])+"
    alternatives = (
        (Kind.SPACE, r"[ \t\n\r\f\v]+"),
        (Kind.COMMENT, rf"{_LINE}|/\*"),  # the end of /* is looked for by hand: such comments nest
        (
            Kind.STRING,
            "|".join(
                (
                    _string("[eE]", r"[^\\']", r"\\.|''"),
                    _string("[bBxX]", r"[^']"),
                    _string("(?:[uU]&|[nN])?", r"[^']"),
                )
            ),
        ),
        (Kind.BODY, rf"\$(?P<tag>{_TAG})\$.*?\$(?P=tag)\$"),
        (Kind.QUOTED, r'(?:[uU]&)?"[^"]*(?:""[^"]*)*"(?!")'),
        (Kind.UNFINISHED, rf"(?:(?:[eEbBxXnN]|[uU]&)?'|(?:[uU]&)?\"|\${_TAG}\$).*"),
        (Kind.WORD, _WORD),
        (Kind.NUMBER, r"0[xX](?:_?[0-9a-fA-F])+|0[oO](?:_?[0-7])+|0[bB](?:_?[01])+"),
        (
            Kind.NUMBER,
            rf"(?:{_DIGITS}(?:\.(?!\.)(?:{_DIGITS})?)?|\.{_DIGITS})(?:[eE][-+]?{_DIGITS})?",
        ),
        (Kind.POSITION, r"\$[0-9]+"),
        (Kind.MARK, r"::|:="),
        (Kind.PARAMETER, parameter),
        (Kind.OPERATOR, operator),
        (Kind.MARK, r"\.\.|[,;.()\[\]:]"),
        (Kind.OTHER, r"."),
    )
    return re.compile("|".join(f"(?P<{kind}_{i}>{regex})" for i, (kind, regex) in enumerate(alternatives)), re.DOTALL)


_NESTED = re.compile(r"/\*|\*/")


def _comment_end(text: str, start: int) -> int | None:
    depth = 0
    for mark in _NESTED.finditer(text, start):
        depth += 1 if mark.group() == "/*" else -1
        if depth == 0:
            return mark.end()
    return None


def _operator_end(text: str, start: int, end: int) -> int:
    """Give back a trailing + or - that PostgreSQL reads as an operator of its own (``a=-1``)."""
    while end - start > 1 and text[end - 1] in "+-" and _LOOSE.isdisjoint(text[start : end - 1]):
        end -= 1
    return end


def _scan(text: str, style: ParameterStyle) -> Iterator[Token]:
    brackets = _Brackets()
    table, at = _table("numeric" if style == "none" else style), 0
    while at < len(text):
        match = table.match(text, at)
        assert match is not None  # the last alternative takes any character
        group = match.lastgroup or ""
        kind, end = _KINDS[group], match.end()
        if kind is Kind.COMMENT and text.startswith("/*", at):
            kind, end = (kind, closed) if (closed := _comment_end(text, at)) else (Kind.UNFINISHED, len(text))
        elif kind is Kind.OPERATOR:
            end = _operator_end(text, at, end)
        elif kind is Kind.PARAMETER and style == "named" and brackets.subscript:
            kind, end = Kind.MARK, at + 1  # a slice: [1:n]
        token = Token(kind, text[at:end], at, end)
        if kind not in SILENT:
            brackets.see(token)
        yield token
        at = end


_KINDS = {f"{kind}_{i}": kind for kind in Kind for i in range(16)}


class _Brackets:
    """Which brackets are open, to tell a subscript, where ``:`` parts a slice, from ARRAY[...]."""

    def __init__(self) -> None:
        self._open: list[bool] = []  # is it a subscript?
        self._last: tuple[Token | None, Token | None] = (None, None)

    @property
    def subscript(self) -> bool:
        return bool(self._open) and self._open[-1]

    def see(self, token: Token) -> None:
        if token.kind is Kind.MARK:
            if token.text in "([":
                self._open.append(token.text == "[" and self._indexes())
            elif token.text in ")]" and self._open:
                self._open.pop()
        self._last = (self._last[1], token)

    def _indexes(self) -> bool:
        """Tell whether a [ that comes now follows a value."""
        before, last = self._last
        if last is None:
            return False
        if last.kind is Kind.WORD and last.name == "array":
            return before is not None and before.text == "."
        return last.kind in (Kind.WORD, Kind.QUOTED, Kind.POSITION, Kind.PARAMETER) or last.text in (")", "]")


@lru_cache(maxsize=16384)
def tokens(text: str, style: ParameterStyle = "named") -> tuple[Token, ...]:
    """Split SQL into the tokens that PostgreSQL 16 and later sees, parameters as ``style`` spells them."""
    return tuple(_scan(text, style))


def _position(token: Token) -> int:
    """Read the number of ``$n``; more than the protocol carries is cut, and the server says so."""
    return int(token.text[1:]) if len(token.text) < 6 else MOST_PARAMETERS


@lru_cache(maxsize=16384)
def statement(sql: Sql) -> Statement:
    """Number the parameters of ``sql``: the same name is the same ``$n``; text in style none stays as it is."""
    if sql.params == "none":
        return Statement(sql.text, ())
    found = tokens(sql.text, sql.params)
    if sql.params == "numeric":
        last = max((_position(token) for token in found if token.kind is Kind.POSITION), default=0)
        return Statement(sql.text, tuple(str(number) for number in range(1, last + 1)))
    numbers: dict[str, int] = {}
    pieces = []
    for token in found:
        if token.kind is Kind.PARAMETER:
            number = numbers.setdefault(token.name, len(numbers) + 1)
            pieces.append(f"${number}")
        else:
            pieces.append(token.text.replace("%%", "%") if sql.params == "pyformat" else token.text)
    return Statement("".join(pieces), tuple(numbers))


def parameters(sql: Sql) -> tuple[str, ...]:
    """Give the names of the parameters, in order of first use."""
    return statement(sql).parameters


def significant(text: str, style: ParameterStyle = "named") -> tuple[Token, ...]:
    """Give the tokens that are neither white space nor comment."""
    return tuple(token for token in tokens(text, style) if token.kind not in SILENT)


@lru_cache(maxsize=16384)
def identifiers(text: str) -> frozenset[str]:
    """Give every identifier and keyword of SQL, folded, those inside dollar-quoted bodies too."""
    names: set[str] = set()
    texts = [text]
    while texts:
        for token in tokens(texts.pop()):
            if token.kind in (Kind.WORD, Kind.QUOTED):
                names.add(token.name)
            elif token.kind is Kind.BODY:
                tag = token.text.index("$", 1) + 1
                texts.append(token.text[tag:-tag])
    return frozenset(names)


@lru_cache(maxsize=16384)
def normal(text: str) -> str:
    """Drop comments and white space, so that only a change of meaning changes a fingerprint."""
    return " ".join(token.text for token in significant(text))
