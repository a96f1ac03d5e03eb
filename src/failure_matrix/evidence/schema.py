"""The objects that a schema defines, read from its text: which statements make each, and what they name in turn.

What is read too widely makes a verdict stale without need; too narrowly, it shows an old verdict as valid. So a
statement whose effect its text does not tell, such as ``SELECT make_queue('a')``, counts for every object.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache

from failure_matrix.catalogue.sql import SILENT, Kind, Token, normal, significant, tokens

EVERYTHING = "*"  # the object that every other rests on: what no single one of them can be held to

_BEFORE_KIND = frozenset(
    ("OR", "REPLACE", "TEMP", "TEMPORARY", "UNLOGGED", "GLOBAL", "LOCAL", "UNIQUE", "CONSTRAINT", "RECURSIVE",
     "MATERIALIZED", "FOREIGN", "DEFAULT", "EVENT", "TRUSTED", "PROCEDURAL")
)  # fmt: skip
_BEFORE_NAME = frozenset(("IF", "NOT", "EXISTS", "ONLY", "CONCURRENTLY"))
_OF_A_TABLE = frozenset(("INDEX", "TRIGGER", "POLICY", "RULE"))  # made ON a table, and part of its definition
_OPAQUE = frozenset(("SELECT", "DO", "CALL", "EXECUTE", "SET", "WITH", "VALUES"))  # may do anything, by a function
_NESTING = frozenset(("SCHEMA",))  # CREATE SCHEMA may hold the CREATE of other objects


class Objects:
    """Tables, views, functions, types and sequences of a schema, by unqualified name."""

    def __init__(self, texts: Iterable[str]) -> None:
        statements = [statement for text in texts for statement in split_statements(text)]
        statements = [statement for statement in statements if _words(statement)[0].text.upper() != "COMMENT"]
        created = frozenset(name for statement in statements if (name := _created(statement)) is not None)
        self._indexes = dict(index for statement in statements for index in _indexes(statement, created))
        self._definitions: dict[str, list[str]] = {name: [] for name in created}
        self._named: dict[str, set[str]] = {name: set() for name in created}
        for statement in statements:
            names = self._made_by(statement, created)
            for name in names or (EVERYTHING,):
                self._add(name, normal(statement), _names_in(statement) & created)
            for name, clause in _elsewhere(statement):
                if name in created and name not in names:
                    self._add(name, clause, frozenset())
        self.names = frozenset(self._definitions)

    def _add(self, name: str, text: str, named: frozenset[str]) -> None:
        self._definitions.setdefault(name, []).append(text)
        self._named.setdefault(name, set()).update(named)

    def _made_by(self, statement: str, created: frozenset[str]) -> frozenset[str]:
        """The objects that a statement is part of; one of unknown form is part of all that it names."""
        first = _words(statement)[0].text.upper()
        if first in _OPAQUE:
            return frozenset()
        name = _created(statement) or _altered(statement)
        if name is not None:
            name = self._indexes.get(name, name)
            return frozenset((name,)) & created
        return frozenset(self._indexes.get(each, each) for each in _names_in(statement)) & created

    def definition(self, name: str) -> tuple[str, ...]:
        """Every statement that makes or changes the object, comments and white space dropped."""
        return tuple(self._definitions.get(name, ()))

    def reached(self, names: Iterable[str]) -> frozenset[str]:
        """The objects among ``names`` and all that their definitions name, however far."""
        reached: set[str] = set()
        todo = list({*names, EVERYTHING} & self.names)
        while todo:
            name = todo.pop()
            if name not in reached:
                reached.add(name)
                todo.extend(self._named[name])
        return frozenset(reached)


@lru_cache(maxsize=16)
def objects(texts: tuple[str, ...]) -> Objects:
    """The objects of a schema; read once, for a run and for the pages about it."""
    return Objects(texts)


def _created(statement: str) -> str | None:
    """The object that CREATE makes; None for other statements and for what is part of a table."""
    kind, rest = _create(statement)
    if kind is None or kind in _OF_A_TABLE:
        return None
    name = _name(rest)
    return None if kind in _NESTING and len(rest) > 1 and rest[1].text.upper() == "CREATE" else name


def _create(statement: str) -> tuple[str | None, Sequence[Token]]:
    """The kind of object that CREATE makes, None for other statements, and the words from its name on."""
    words = _words(statement)
    if words[0].text.upper() != "CREATE":
        return None, words
    at = 1
    while at < len(words) and words[at].text.upper() in _BEFORE_KIND:
        at += 1
    return (words[at].text.upper(), _from_name(words[at + 1 :])) if at < len(words) else (None, words)


def _altered(statement: str) -> str | None:
    """The object that a statement changes or fills, where its form says so."""
    words = _words(statement)
    kind, _ = _create(statement)
    if kind in _OF_A_TABLE:
        after = {"TO"} if kind == "RULE" else {"ON"}
        at = next((i for i, word in enumerate(words) if word.text.upper() in after), None)
        return None if at is None else _name(_from_name(words[at + 1 :]))
    match [word.text.upper() for word in words[:2]]:
        case ["ALTER", "DEFAULT"]:
            return None
        case ["ALTER", kind] if kind in _OF_A_TABLE - {"INDEX"}:
            at = next((i for i, word in enumerate(words) if word.text.upper() == "ON"), None)
            return None if at is None else _name(words[at + 1 :])
        case ["ALTER", _] | ["INSERT", "INTO"]:
            at = 2 + (words[1].text.upper() in ("MATERIALIZED", "FOREIGN", "EVENT"))
            return _name(_from_name(words[at:]))
        case _:
            return None


def _indexes(statement: str, created: frozenset[str]) -> Iterator[tuple[str, str]]:
    """The name of an index with its table: ALTER and DROP name the index alone."""
    kind, rest = _create(statement)
    table = _altered(statement)
    if kind == "INDEX" and table in created and rest and rest[0].text.upper() != "ON" and (name := _name(rest)):
        yield name, table


def _elsewhere(statement: str) -> Iterator[tuple[str, str]]:
    """Other objects whose behaviour this statement changes, with what it says of them: REFERENCES, PARTITION OF."""
    words = _words(statement)
    for at, word in enumerate(words):
        said = word.text.upper()
        begins = said == "REFERENCES" or (said == "OF" and words[at - 1].text.upper() == "PARTITION")
        if word.kind is Kind.WORD and (begins or said == "INHERITS"):
            clause = list(_clause(words[at:]))
            names = [token.name for token in clause if token.kind in (Kind.WORD, Kind.QUOTED)]
            text = " ".join(token.text for token in clause)
            for name in names[1:]:
                yield name, f"{_name(_create(statement)[1]) or _altered(statement)}: {text}"


def _clause(words: Sequence[Token]) -> Iterator[Token]:
    """The words up to the end of this column or of this statement."""
    depth = 0
    for word in words:
        depth += {"(": 1, ")": -1}.get(word.text, 0)
        if depth < 0 or (depth == 0 and word.text in (",", ";")):
            return
        yield word


@lru_cache(maxsize=1024)
def _words(statement: str) -> tuple[Token, ...]:
    return significant(statement, "none")


def _from_name(words: Sequence[Token]) -> Sequence[Token]:
    at = 0
    while at < len(words) and words[at].kind is Kind.WORD and words[at].text.upper() in _BEFORE_NAME:
        at += 1
    return words[at:]


def _name(words: Sequence[Token]) -> str | None:
    """The last part of the dotted name that these tokens begin with."""
    name = None
    for at in range(0, len(words), 2):
        if words[at].kind not in (Kind.WORD, Kind.QUOTED):
            break
        name = words[at].name
        if at + 1 >= len(words) or words[at + 1].text != ".":
            break
    return name


@lru_cache(maxsize=1024)
def _names_in(statement: str) -> frozenset[str]:
    """Every identifier of a statement, also in dollar quotes and strings: a body, a sequence, dynamic SQL."""
    names: set[str] = set()
    texts = [statement]
    while texts:
        for token in significant(texts.pop(), "none"):
            match token.kind:
                case Kind.WORD | Kind.QUOTED:
                    names.add(token.name)
                case Kind.STRING:
                    texts.append(token.text[token.text.index("'") + 1 : -1].replace("''", "'"))
                case Kind.BODY:
                    tag = token.text.index("$", 1) + 1
                    texts.append(token.text[tag:-tag])
    return frozenset(names)


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
