"""Shapes of single values and of keys: each reads a node into plain data, or notes in our own words why it can't."""

from __future__ import annotations

import datetime
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Protocol

from failure_matrix.catalogue.cuts import cut_empty, cut_prose
from failure_matrix.catalogue.nodes import Items, Node, Word
from failure_matrix.catalogue.reading import INVALID, Reading, Trail, describe, say
from failure_matrix.catalogue.rulebook import nearest


class Shape(Protocol):
    @property
    def expects(self) -> str:
        """Say in a few words what belongs here."""
        ...

    def takes(self, node: Node) -> bool:
        """Tell whether a node is of the right kind, whatever is in it."""
        ...

    def read(self, reading: Reading, node: Node, path: Trail) -> Any:
        """Give the value, or note findings and give INVALID."""
        ...


@dataclass(frozen=True, slots=True)
class TextShape:
    """Text; ``written`` takes numbers and words as they stand."""

    pattern: str | None = None
    written: bool = False
    at_least: int = 0
    expects: str = "text"

    def takes(self, node: Node) -> bool:
        return isinstance(node, Word) and (isinstance(node.value, str) or (self.written and node.value is not None))

    def read(self, reading: Reading, node: Node, path: Trail) -> Any:
        if isinstance(node, Word) and reading.keep(cut_empty(node, reading.text_of(node))):
            return INVALID
        if not self.takes(node):
            return reading.wrong(node, path, self.expects)
        assert isinstance(node, Word)
        if node.plain and reading.keep(cut_prose(node, reading.text_of(node))):
            return INVALID
        return self.check(reading, node, path)

    def check(self, reading: Reading, node: Word, path: Trail) -> Any:
        """Give the text when it has the length and the form that are asked for."""
        if len(node.text.strip()) < self.at_least:
            hint = "write something, or leave the key out"
            return reading.note("wrong-value", node.place, f"{say(path)} is empty", hint)
        if self.pattern and not has_form(self.pattern, node.text):
            form, hint = FORMS.get(self.pattern, (f"of the form {self.pattern}", "write it in that form"))
            return reading.note("wrong-value", node.place, f"{say(path)} is '{node.text}', which is not {form}", hint)
        return node.text


_DATE = r"^\d{4}-\d\d-\d\d$"
FORMS = {  # pattern -> what it means, what to do
    r"^[a-z0-9]+(-[a-z0-9]+)*$": ("an id", "an id is lower-case letters and digits, parted by single hyphens"),
    r"^[0-9A-Z]{5}$": ("a SQLSTATE", "a SQLSTATE has five characters, capitals and digits: 23505"),
    _DATE: ("a date", "write a day of the calendar as 2027-01-31"),
}


def has_form(pattern: str, text: str) -> bool:
    """Tell whether text matches one of the model's patterns to its very end; a date must be in the calendar too."""
    if "\n" in text or not re.search(pattern, text):
        return False
    if pattern == _DATE:
        try:
            datetime.date.fromisoformat(text)
        except ValueError:
            return False
    return True


@dataclass(frozen=True, slots=True)
class WordShape:
    """A scalar whose value ``accepts`` takes and ``convert`` turns into what the model wants."""

    expects: str
    accepts: Callable[[Any], bool]
    convert: Callable[[Any], Any] = lambda value: value

    def takes(self, node: Node) -> bool:
        return isinstance(node, Word) and self.accepts(node.value)

    def read(self, reading: Reading, node: Node, path: Trail) -> Any:
        if not self.takes(node):
            return reading.wrong(node, path, self.expects)
        assert isinstance(node, Word)
        return self.convert(node.value)


def _is_number(value: Any) -> bool:
    return not isinstance(value, bool) and isinstance(value, int | Decimal) and Decimal(value).is_finite()


FLAG = WordShape("true or false", lambda value: isinstance(value, bool))
WHOLE = WordShape("a whole number", lambda value: isinstance(value, int) and not isinstance(value, bool))
NUMBER = WordShape("a number", _is_number, Decimal)
NOTHING = WordShape("null", lambda value: value is None)


@dataclass(frozen=True, slots=True)
class ScalarShape:
    """Any scalar: text, a number, true, false or null."""

    expects: str = "a single value"

    def takes(self, node: Node) -> bool:
        return isinstance(node, Word)

    def read(self, reading: Reading, node: Node, path: Trail) -> Any:
        if not isinstance(node, Word):
            return reading.wrong(node, path, self.expects, "write PostgreSQL's text for it, in quotes: '{1,2}'")
        text = reading.text_of(node)
        cut = node.plain and (reading.keep(cut_empty(node, text)) or reading.keep(cut_prose(node, text)))
        return INVALID if cut else node.value


@dataclass(frozen=True, slots=True)
class ChoiceShape:
    """One of a few words."""

    words: tuple[str, ...]

    @property
    def expects(self) -> str:
        return " or ".join(f"'{word}'" for word in self.words)

    def takes(self, node: Node) -> bool:
        return isinstance(node, Word) and isinstance(node.value, str)

    def read(self, reading: Reading, node: Node, path: Trail) -> Any:
        if not self.takes(node):
            return reading.wrong(node, path, self.expects)
        assert isinstance(node, Word)
        if node.text in self.words:
            return node.text
        message = f"{say(path)} is '{node.text}', where {self.expects} belongs"
        return reading.note("wrong-value", node.place, message, nearest(node.text, self.words))


@dataclass(frozen=True, slots=True)
class KeyShape:
    """A key of ``then``: one value, or a list of them for a composite key."""

    expects: str = "a key: one value, or a list of them in key order"

    def takes(self, node: Node) -> bool:
        several = isinstance(node, Items) and all(isinstance(item, Word) for item in node.items)
        return several or isinstance(node, Word)

    def read(self, reading: Reading, node: Node, path: Trail) -> Any:
        match node:
            case Word():
                return node.value
            case Items() if self.takes(node):
                return tuple(item.value for item in node.items if isinstance(item, Word))
            case _:
                message = f"a key of {say(path)} is {describe(node)}"
                return reading.note("wrong-type", node.place, message, f"write {self.expects}")


@dataclass(frozen=True, slots=True)
class NameShape:
    """A key that is a name: text as written, of the form that is asked for."""

    pattern: str | None = None
    expects: str = "a name"

    def takes(self, node: Node) -> bool:
        return isinstance(node, Word)

    def read(self, reading: Reading, node: Node, path: Trail) -> Any:
        if not isinstance(node, Word):
            return reading.note("wrong-type", node.place, f"a key of {say(path)} is {describe(node)}", "write a name")
        if node.plain and node.text == "<<":
            return reading.note("yaml-feature", node.place, "'<<' merges nothing here", "write the keys out")
        if not node.text:
            message = f"a key of {say(path)} is empty"
            return reading.note("wrong-value", node.place, message, "write a name before the ':'")
        if self.pattern and not has_form(self.pattern, node.text):
            form, hint = FORMS.get(self.pattern, (f"of the form {self.pattern}", "write it in that form"))
            return reading.note("wrong-value", node.place, f"the key '{node.text}' is not {form}", hint)
        return node.text
