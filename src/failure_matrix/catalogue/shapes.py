"""Shapes of collections: lists, mappings, nouns with known keys, and one of several shapes.

What can be read is given even where something in it could not: findings tell that it is not the whole.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from failure_matrix.catalogue.cuts import cut_empty, cut_item, cut_pair, rest_of
from failure_matrix.catalogue.nodes import Items, Node, Pairs, Word
from failure_matrix.catalogue.reading import INVALID, KEY, Reading, Trail, say
from failure_matrix.catalogue.rulebook import close_to, nearest
from failure_matrix.catalogue.scalars import NOTHING, NameShape, Shape


@dataclass(frozen=True, slots=True)
class ListShape:
    """A list; where ``alone`` is set one value may stand without its list."""

    item: Shape
    alone: bool = False
    expects: str = "a list"

    def takes(self, node: Node) -> bool:
        return isinstance(node, Items) or (self.alone and self.item.takes(node))

    def read(self, reading: Reading, node: Node, path: Trail) -> Any:
        if not isinstance(node, Items):
            if not self.alone:
                return reading.wrong(node, path, self.expects)
            value = self.item.read(reading, node, path)
            return INVALID if value is INVALID else [value]
        values = []
        for number, item in enumerate(node.items):
            reading.places.nodes[*path, number] = item
            before = len(reading.findings)
            if node.flow:
                reading.keep(cut_item(item, node.items[number - 1] if number else None))
            values.append(self.item.read(reading, item, (*path, number)))
            if node.flow and any(found.rule == "cut-scalar" for found in reading.findings[before:]):
                return INVALID  # what follows is its rest
        return INVALID if any(value is INVALID for value in values) else values


@dataclass(frozen=True, slots=True)
class MapShape:
    """A mapping from keys to values of one shape."""

    key: Shape
    value: Shape

    @property
    def expects(self) -> str:
        return "a mapping"

    def takes(self, node: Node) -> bool:
        return isinstance(node, Pairs)

    def read(self, reading: Reading, node: Node, path: Trail) -> Any:
        if not isinstance(node, Pairs):
            return reading.wrong(node, path, self.expects)
        values: dict[Any, Any] = {}
        for key, value in without_cuts(reading, node):
            name = self.key.read(reading, key, path)
            if name is INVALID or twice(reading, name, key, path, values):
                continue
            remember(reading, (*path, name), key, value)
            values[name] = self.value.read(reading, value, (*path, name))
        return valid(values)


def valid(values: dict[Any, Any]) -> dict[Any, Any]:
    """Drop what could not be read."""
    return {name: value for name, value in values.items() if value is not INVALID}


def without_cuts(reading: Reading, node: Pairs) -> list[tuple[Node, Node]]:
    """Give the pairs up to the first that is the rest of a cut value, which is noted."""
    if not node.flow:
        return node.pairs
    before: Node | None = None
    for number, (key, value) in enumerate(node.pairs):
        if reading.keep(cut_pair(key, value, before)):
            return node.pairs[:number]
        before = value
    return node.pairs


def twice(reading: Reading, name: Any, key: Node, path: Trail, values: Mapping[Any, Any]) -> bool:
    """Note a key that stood in the same mapping before."""
    if name not in values:
        return False
    first = reading.places[*path, name, KEY]
    hint = f"the first is at {first}: keep one"
    reading.note("duplicate-key", key.place, f"'{_shown(name)}' stands twice in {say(path)}", hint)
    return True


def _shown(name: Any) -> str:
    return ", ".join(str(part) for part in name) if isinstance(name, tuple) else str(name)


def remember(reading: Reading, path: Trail, key: Node, value: Node) -> None:
    """Keep where a value stands, and its key: a collection stands where its key does."""
    reading.places.nodes[path] = value if isinstance(value, Word) else key
    reading.places.nodes[*path, KEY] = key


@dataclass(frozen=True, slots=True)
class Field:
    shape: Shape
    required: bool


_NAME = NameShape()


@dataclass(frozen=True, slots=True)
class NounShape:
    """A mapping with known keys. ``fields`` is asked late, for nouns may hold one another."""

    fields: Callable[[], Mapping[str, Field]]
    expects: str = "a mapping"

    def takes(self, node: Node) -> bool:
        return isinstance(node, Pairs)

    def read(self, reading: Reading, node: Node, path: Trail) -> Any:
        if not isinstance(node, Pairs):
            return reading.wrong(node, path, self.expects)
        known = self.fields()
        values: dict[str, Any] = {}
        excused: set[str | None] = set()  # required keys that may be there, misspelt
        before: Node | None = None
        for key, value in without_cuts(reading, node):
            name = _NAME.read(reading, key, path)
            if name is INVALID or twice(reading, name, key, path, values):
                continue
            if name not in known:
                values[name] = INVALID
                reading.places.nodes[*path, name, KEY] = key
                _unknown(reading, key, name, path, known, before)
                excused.add(close_to(name, known))
            else:
                remember(reading, (*path, name), key, value)
                values[name] = known[name].shape.read(reading, value, (*path, name))
            before = value
        if len(values) < len(node.pairs):
            excused |= known.keys()  # some may stand in what was cut off
        required = [name for name, field in known.items() if field.required]
        self._miss(reading, node, path, [name for name in required if name not in values and name not in excused])
        whole = not any(values.get(name, INVALID) is INVALID for name in required)
        return valid(values) if whole else INVALID

    @staticmethod
    def _miss(reading: Reading, node: Pairs, path: Trail, missing: list[str]) -> None:
        if missing:
            words = " and ".join(f"'{name}'" for name in missing)
            place = reading.places.get((*path, KEY)) or node.place
            reading.note("missing-key", place, f"{say(path)} has no {words}", f"add {words}")


def _unknown(
    reading: Reading, key: Node, name: str, path: Trail, known: Mapping[str, Field], before: Node | None
) -> None:
    if key.flow and " " in name and isinstance(key, Word) and isinstance(before, Word) and before.plain:
        reading.keep(rest_of(key, before))
    else:
        reading.note("unknown-key", key.place, f"{say(path)} knows no '{name}'", nearest(name, known))


@dataclass(frozen=True, slots=True)
class EitherShape:
    """One of several shapes, told apart by what stands there."""

    shapes: tuple[Shape, ...]

    @property
    def expects(self) -> str:
        return " or ".join(dict.fromkeys(shape.expects for shape in self.shapes if shape is not NOTHING))

    def takes(self, node: Node) -> bool:
        return any(shape.takes(node) for shape in self.shapes)

    def read(self, reading: Reading, node: Node, path: Trail) -> Any:
        if isinstance(node, Word) and reading.keep(cut_empty(node, reading.text_of(node))):
            return INVALID
        for shape in self.shapes:
            if shape.takes(node):
                return shape.read(reading, node, path)
        return reading.wrong(node, path, self.expects)
