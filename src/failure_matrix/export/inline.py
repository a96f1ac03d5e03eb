"""SQL with its parameters written in, as literals, in a form that a ``.spec`` file can hold.

isolationtester ends a block of SQL at the first brace that closes, also inside a string. So none may be left.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from failure_matrix.catalogue.model import Scalar, Sql
from failure_matrix.catalogue.sql import Kind, Token, tokens


class CannotExport(Exception):
    """This SQL has no like in a ``.spec`` file; ``str()`` says why."""


def literal(value: Scalar) -> str:
    """The value as a literal of the type that it is bound with: numbers as such, text untyped."""
    match value:
        case None:
            return "NULL"
        case bool():
            return "true" if value else "false"
        case int():
            return str(value) if value >= 0 else f"({value})"
        case _:
            return text_literal(str(value))


def text_literal(text: str) -> str:
    """A string, quoted whatever it holds and however the session reads backslashes."""
    if "\\" not in text and "}" not in text:
        return "'" + text.replace("'", "''") + "'"
    return "E'" + text.replace("\\", "\\\\").replace("'", "''").replace("}", "\\x7D") + "'"


def inline(sql: Sql, values: Mapping[str, Scalar]) -> str:
    """The statement with every parameter replaced by its value. Raises CannotExport."""
    pieces: list[str] = []
    for token in tokens(sql.text, sql.params):
        piece = _piece(token, sql, values)
        if pieces and piece and _would_join(pieces[-1], piece):
            pieces.append(" ")
        pieces.append(piece)
    return "".join(pieces).strip()


def _would_join(before: str, after: str) -> bool:
    """Whether two pieces would be read as one: a value now stands where a parameter stood."""
    return bool(re.search(r"[\w$'\"]\Z", before) and re.match(r"[\w$'\"]", after))


def _piece(token: Token, sql: Sql, values: Mapping[str, Scalar]) -> str:
    match token.kind:
        case Kind.PARAMETER:
            return literal(_value(token.name, values))
        case Kind.POSITION if sql.params == "numeric":
            return literal(_value(token.text[1:], values))
        case Kind.COMMENT:
            return " " if token.text.startswith("/*") else ""  # a line end follows the other kind
        case Kind.STRING | Kind.BODY | Kind.QUOTED:
            return braceless(token)
        case Kind.OPERATOR if sql.params == "pyformat":
            return token.text.replace("%%", "%")
        case _ if "}" in token.text:
            raise CannotExport("a brace that closes would end the block of SQL")
        case _:
            return token.text


def _value(name: str, values: Mapping[str, Scalar]) -> Scalar:
    if name not in values:
        raise CannotExport(f"':{name}' has no value here")
    return values[name]


_PIECE = re.compile(r"'((?:[^']|'')*)'")


def braceless(token: Token) -> str:
    """A string or a name without a brace that closes. Raises CannotExport."""
    text = token.text
    if "}" not in text:
        return text
    match token.kind, text[:1].upper():
        case Kind.BODY, _:
            tag = text.index("$", 1) + 1
            return text_literal(text[tag:-tag])
        case Kind.QUOTED, '"':
            return 'U&"' + text[1:-1].replace("\\", "\\\\").replace("}", "\\007D") + '"'
        case Kind.STRING, "'":
            return text_literal("".join(_PIECE.findall(text)).replace("''", "'"))
        case Kind.STRING, "E":
            return re.sub(r"\\(.)|\}", _escaped, text, flags=re.DOTALL)
        case _:
            raise CannotExport(f"a brace that closes, in {text[:20]}, would end the block of SQL")


def _escaped(match: re.Match[str]) -> str:
    return "\\x7D" if match[0] in ("}", "\\}") else match[0]
