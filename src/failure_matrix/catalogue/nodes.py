"""YAML text as a tree in which everything knows where it stands. The only module that knows PyYAML.

The tree is built from the parser's events, not by recursion, so that neither depth nor aliases can hurt.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any

import yaml

from failure_matrix.catalogue.findings import Finding
from failure_matrix.catalogue.model import Place, Scalar
from failure_matrix.catalogue.rulebook import finding

DEEPEST = 64  # collections in one another; a catalogue needs ten
MOST_REPEATED = 100_000  # nodes that aliases may add to a file

_Parser: Any = getattr(yaml, "CBaseLoader", yaml.BaseLoader)  # libyaml where PyYAML was built with it


@dataclass(slots=True)
class Node:
    """``start`` and ``end`` count characters of the text, ``line`` and ``column`` from 0."""

    path: str
    line: int
    column: int
    start: int
    end: int
    flow: bool  # it is, or stands in, a flow collection

    @property
    def place(self) -> Place:
        return Place(path=self.path, line=self.line + 1, column=self.column + 1)


@dataclass(slots=True)
class Word(Node):
    """A scalar as written; a plain one may mean something else than text."""

    text: str
    style: str  # "" when plain, else ' " | > or the tag !

    @property
    def plain(self) -> bool:
        return not self.style

    @property
    def value(self) -> Scalar:
        return core(self.text) if self.plain else self.text

    @property
    def empty(self) -> bool:
        """Nothing stands there at all."""
        return self.plain and not self.text


@dataclass(slots=True)
class Items(Node):
    items: list[Node] = field(default_factory=list)


@dataclass(slots=True)
class Pairs(Node):
    pairs: list[tuple[Node, Node]] = field(default_factory=list)


_NULL = frozenset(("", "~", "null", "Null", "NULL"))
_TRUE = frozenset(("true", "True", "TRUE"))
_FALSE = frozenset(("false", "False", "FALSE"))
_MAY_BE_MORE = frozenset("~nNtTfF+-.0123456789")  # how a plain scalar that is not text begins
_INTEGER = re.compile(r"[-+]?[0-9]{1,4000}")
_HEXADECIMAL = re.compile(r"0x[0-9a-fA-F]+")
_DECIMAL = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]{1,9})?")
_INFINITE = re.compile(r"([-+]?)\.(?:inf|Inf|INF)")
_NAN = frozenset((".nan", ".NaN", ".NAN"))


def core(text: str) -> Scalar:
    """Read a plain scalar by the YAML 1.2 core schema, less its octal numbers; a decimal keeps its digits."""
    if not text:
        return None
    if text[0] not in _MAY_BE_MORE:
        return text
    if text in _NULL:
        return None
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    if _INTEGER.fullmatch(text):
        return int(text)
    if _HEXADECIMAL.fullmatch(text):
        return int(text, 16)
    if _DECIMAL.fullmatch(text):
        return Decimal(text)
    if infinite := _INFINITE.fullmatch(text):
        return Decimal(infinite[1] + "Infinity")
    return Decimal("NaN") if text in _NAN else text


class NotYamlError(Exception):
    """A file that cannot be read as YAML; carries the finding."""

    def __init__(self, found: Finding) -> None:
        super().__init__(found.message)
        self.finding = found


def compose(text: str, path: str) -> Node | None:
    """Build the tree of the one document in ``text``; None when there is none. Raises NotYamlError."""
    _refuse_characters(text, path)
    return _Composer(text, path).run()


# what YAML lets stand in a file; NUL is out, and PostgreSQL could not hold it either
_FORBIDDEN = re.compile("[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufefe\uff00-\ufffd\U00010000-\U0010ffff]")
_UNSENDABLE = re.compile("[\x00\ud800-\udfff]")  # what escapes can still bring in


def _refuse_characters(text: str, path: str) -> None:
    if found := _FORBIDDEN.search(text):
        before = text[: found.start()]
        place = Place(path=path, line=before.count("\n") + 1, column=found.start() - before.rfind("\n"))
        message = f"the character U+{ord(found.group()):04X} may not stand in YAML"
        raise NotYamlError(
            finding("yaml-syntax", place, message, "remove it, or write it as an escape in double quotes")
        )


@dataclass(slots=True)
class _Open:
    """A collection that has not ended: a mapping waits for a value when ``key`` is there."""

    node: Items | Pairs
    anchor: str | None
    weight: int = 1  # nodes in it, with all that aliases repeat
    key: Node | None = None

    def take(self, node: Node, weight: int) -> None:
        self.weight += weight
        if isinstance(self.node, Items):
            self.node.items.append(node)
        elif self.key is None:
            self.key = node
        else:
            self.node.pairs.append((self.key, node))
            self.key = None


class _Composer:
    def __init__(self, text: str, path: str) -> None:
        self._text = text
        self._path = path
        self._stack: list[_Open] = []
        self._anchors: dict[str, tuple[Node, int]] = {}
        self._root: Node | None = None
        self._documents = 0
        self._repeated = 0

    def run(self) -> Node | None:
        does: dict[type, Callable[[Any], None]] = {
            yaml.ScalarEvent: lambda event: self._add(self._word(event), event.anchor),
            yaml.MappingStartEvent: self._begin,
            yaml.MappingEndEvent: self._finish,
            yaml.SequenceStartEvent: self._begin,
            yaml.SequenceEndEvent: self._finish,
            yaml.AliasEvent: self._alias,
            yaml.DocumentStartEvent: self._document,
        }
        for event in self._events():
            if (act := does.get(type(event))) is not None:
                act(event)
        return self._root

    def _events(self) -> Iterator[Any]:
        try:
            parser = _Parser(self._text)
            while (event := parser.get_event()) is not None:
                yield event
        except yaml.MarkedYAMLError as error:
            raise NotYamlError(self._syntax(error)) from error
        except yaml.YAMLError as error:  # the reader's, without a mark; _refuse_characters leaves it little to find
            place = Place(path=self._path, line=1, column=1)
            raise NotYamlError(
                finding("yaml-syntax", place, "this is not YAML", "save the file as UTF-8 text")
            ) from error

    def _place(self, mark: Any) -> Place:
        return Place(path=self._path, line=mark.line + 1, column=mark.column + 1)

    def _syntax(self, error: Any) -> Finding:
        mark = error.problem_mark or error.context_mark
        place = self._place(mark) if mark else Place(path=self._path, line=1, column=1)
        line = self._text.splitlines()[place.line - 1 : place.line]
        problem = str(error.problem or error.context).rstrip(".")
        if line and "\t" in line[0][: len(line[0]) - len(line[0].lstrip())]:
            return finding("yaml-syntax", place, "a tab indents this line", "indent with spaces")
        for said, message, hint in _PROBLEMS:
            if said in problem:
                return finding("yaml-syntax", place, message, hint)
        return finding("yaml-syntax", place, f"this is not YAML: {problem}", "look at this line and the one before it")

    def _refuse(self, rule: str, event: Any, message: str, hint: str) -> NotYamlError:
        return NotYamlError(finding(rule, self._place(event.start_mark), message, hint))

    def _document(self, event: Any) -> None:
        self._documents += 1
        if self._documents > 1:
            raise self._refuse(
                "yaml-feature", event, "a second document begins here", "keep one document a file: make two files"
            )

    def _word(self, event: Any) -> Word:
        if event.tag is not None and event.tag != "!":
            raise self._tagged(event)
        if event.style == '"' and _UNSENDABLE.search(event.value):
            raise self._refuse(
                "yaml-syntax", event, "an escape stands for a character that text cannot hold", "leave it out"
            )
        mark = event.start_mark
        return Word(
            self._path,
            mark.line,
            mark.column,
            mark.index,
            event.end_mark.index,
            bool(self._stack) and self._stack[-1].node.flow,
            event.value,
            event.style or ("!" if event.tag else ""),
        )

    def _tagged(self, event: Any) -> NotYamlError:
        return self._refuse("yaml-feature", event, f"the tag '{event.tag}' says nothing here", "leave the tag out")

    def _begin(self, event: Any) -> None:
        if event.tag is not None:
            raise self._tagged(event)
        if len(self._stack) >= DEEPEST:
            raise self._refuse("yaml-feature", event, f"nested deeper than {DEEPEST}", "a catalogue needs ten levels")
        kind = Items if isinstance(event, yaml.SequenceStartEvent) else Pairs
        flow = bool(event.flow_style)
        mark = event.start_mark
        node = kind(self._path, mark.line, mark.column, mark.index, event.end_mark.index, flow)
        if event.anchor is not None:
            self._anchors.pop(event.anchor, None)
        self._stack.append(_Open(node, event.anchor))

    def _finish(self, event: Any) -> None:
        ended = self._stack.pop()
        ended.node.end = event.end_mark.index
        self._add(ended.node, ended.anchor, ended.weight)

    def _add(self, node: Node, anchor: str | None, weight: int = 1) -> None:
        if anchor is not None:
            self._anchors[anchor] = (node, weight)
        if self._stack:
            self._stack[-1].take(node, weight)
        else:
            self._root = node

    def _alias(self, event: Any) -> None:
        if event.anchor not in self._anchors:
            inside = any(event.anchor == began.anchor for began in self._stack)
            why = "stands inside its own anchor" if inside else "has no anchor before it"
            raise self._refuse("yaml-feature", event, f"the alias '*{event.anchor}' {why}", "write the value out")
        node, weight = self._anchors[event.anchor]
        self._repeated += weight
        if self._repeated > MOST_REPEATED:
            message = f"aliases repeat more than {MOST_REPEATED} values"
            raise self._refuse("yaml-feature", event, message, "write the values out, or repeat less")
        self._add(node, None, weight)


_QUOTE = "quote the value, or use a block: a | after the colon and the text indented below"
_PROBLEMS = (  # what the parser says, what it means, what to do
    ("mapping values are not allowed", "a ': ' stands inside a plain value", _QUOTE),
    ("cannot start any token", "a plain value cannot begin like this", _QUOTE),
    ("expected ',' or '}'", "a plain value ends before this inside { }", _QUOTE),
    ("expected ',' or ']'", "a plain value ends before this inside [ ]", _QUOTE),
    ("could not find expected ':'", "a key without ':', or a value that a comment has cut", _QUOTE),
    ("unexpected end of stream", "a quote that nothing closes", "close the quote"),
    ("expected key", "this line is not at the depth of the keys above it", "indent it like its neighbours"),
    ("<block end>", "this line is not at the depth of the lines above it", "indent it like its neighbours"),
)
