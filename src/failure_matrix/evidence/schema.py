"""The objects that a schema defines, read from its text: which statements make each, and what they name in turn."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from failure_matrix.catalogue.sql import SILENT, Kind, Token, identifiers, normal, significant, tokens

_MODIFIERS = {
    "OR", "REPLACE", "TEMP", "TEMPORARY", "UNLOGGED", "GLOBAL", "LOCAL", "UNIQUE", "CONSTRAINT", "RECURSIVE", "ONLY",
    "MATERIALIZED", "FOREIGN", "IF", "NOT", "EXISTS", "CONCURRENTLY",
}  # fmt: skip
_OF_A_TABLE = {"INDEX", "TRIGGER", "POLICY", "RULE"}  # made ON a table, and part of its definition


class Objects:
    """Tables, views, functions, types and sequences of a schema, by unqualified name."""

    def __init__(self, texts: Iterable[str]) -> None:
        statements = [statement for text in texts for statement in split_statements(text)]
        self.names = frozenset(name for statement in statements if (name := _created(statement)) is not None)
        self._definitions: dict[str, list[str]] = {name: [] for name in self.names}
        self._named: dict[str, set[str]] = {name: set() for name in self.names}
        for statement in statements:
            for name in self._made_by(statement):
                self._definitions[name].append(normal(statement))
                self._named[name] |= identifiers(statement) & self.names

    def _made_by(self, statement: str) -> frozenset[str]:
        """The objects that a statement is part of; a statement of unknown form is part of all that it names."""
        name = _created(statement) or _altered(statement)
        return frozenset((name,)) & self.names if name else identifiers(statement) & self.names

    def definition(self, name: str) -> tuple[str, ...]:
        """Every statement that makes or changes the object, comments and white space dropped."""
        return tuple(self._definitions.get(name, ()))

    def reached(self, names: Iterable[str]) -> frozenset[str]:
        """The objects among ``names`` and all that their definitions name, however far."""
        reached: set[str] = set()
        todo = list(set(names) & self.names)
        while todo:
            name = todo.pop()
            if name not in reached:
                reached.add(name)
                todo.extend(self._named[name])
        return frozenset(reached)


def _created(statement: str) -> str | None:
    """The object that CREATE makes; None for other statements and for what is part of a table."""
    words = _words(statement)
    if len(words) < 3 or words[0].name != "create" or words[1].text.upper() in _OF_A_TABLE:
        return None
    return _name(words[2:])


def _altered(statement: str) -> str | None:
    """The object that a statement changes or fills, where its form says so."""
    words = _words(statement)
    match [word.text.upper() for word in words[:2]]:
        case ["CREATE", kind] if kind in _OF_A_TABLE:
            after = {"TO"} if kind == "RULE" else {"ON"}
            at = next((i for i, word in enumerate(words) if word.text.upper() in after), None)
            return None if at is None else _name(words[at + 1 :])
        case ["ALTER", _] | ["INSERT", "INTO"]:
            return _name(words[2:])
        case ["COMMENT", "ON"]:
            return _name(words[3:])
        case _:
            return None


def _words(statement: str) -> list[Token]:
    return [token for token in significant(statement, "none") if token.text.upper() not in _MODIFIERS]


def _name(words: Sequence[Token]) -> str | None:
    """The last part of the dotted name that these tokens begin with."""
    name = None
    for index, word in enumerate(words):
        if word.kind not in (Kind.WORD, Kind.QUOTED):
            break
        name = word.name
        if index + 1 >= len(words) or words[index + 1].text != ".":
            break
        return _name(words[index + 2 :])
    return name


@lru_cache(maxsize=256)
def split_statements(text: str) -> tuple[str, ...]:
    """The statements of a script, cut at the semicolons outside of parentheses and BEGIN ATOMIC bodies."""
    statements: list[str] = []
    start, depth, atomic = 0, 0, 0
    previous = ""
    for token in tokens(text, "none"):
        if token.kind in SILENT:
            continue
        word = token.text.upper()
        depth += {"(": 1, "[": 1, ")": -1, "]": -1}.get(word, 0)
        if (word == "ATOMIC" and previous == "BEGIN") or (word == "CASE" and atomic):
            atomic += 1
        elif word == "END" and atomic:
            atomic -= 1
        elif word == ";" and depth == 0 and atomic == 0:
            statements.append(text[start : token.end])
            start = token.end
        previous = word
    statements.append(text[start:])
    return tuple(statement for statement in statements if normal(statement).strip(" ;"))
