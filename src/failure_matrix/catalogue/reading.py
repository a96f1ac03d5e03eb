"""One reading of a catalogue: what is found on the way, and how a value is called in a message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from failure_matrix.catalogue.findings import Finding
from failure_matrix.catalogue.model import Place
from failure_matrix.catalogue.nodes import Items, Node, Pairs, Word
from failure_matrix.catalogue.rulebook import finding
from failure_matrix.catalogue.sources import Sources

Trail = tuple[Any, ...]

INVALID: Any = object()  # instead of a value that could not be read; its finding is noted
KEY = "<key>"  # after a path: where the key stands, not the value

SINGULAR = {
    "owners": "owner",
    "roles": "role",
    "stores": "store",
    "subjects": "subject",
    "states": "state",
    "callers": "caller",
    "actions": "action",
    "events": "event",
    "sessions": "session",
    "scenarios": "scenario",
    "mechanisms": "mechanism",
    "invariants": "invariant",
    "exercises": "exercise",
    "waivers": "waiver",
}


class Places(Mapping[Trail, Place]):
    """Where values stand. Few are ever asked for, so each place is made when it is."""

    def __init__(self) -> None:
        self.nodes: dict[Trail, Node] = {}

    def __getitem__(self, trail: Trail) -> Place:
        return self.nodes[trail].place

    def __contains__(self, trail: object) -> bool:
        return trail in self.nodes

    def __iter__(self) -> Iterator[Trail]:
        return iter(self.nodes)

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass(kw_only=True)
class Reading:
    """Collects findings and places while nodes become values."""

    sources: Sources
    texts: Mapping[str, str]  # path of a YAML file -> its text
    stores: frozenset[str] = frozenset()  # ids
    findings: list[Finding] = field(default_factory=list)
    places: Places = field(default_factory=Places)

    def note(self, rule: str, place: Place, message: str, hint: str) -> Any:
        """Note a finding and give INVALID."""
        self.findings.append(finding(rule, place, message, hint))
        return INVALID

    def keep(self, found: Finding | None) -> bool:
        """Note a finding that may be there; tell whether it is."""
        if found is not None:
            self.findings.append(found)
        return found is not None

    def wrong(self, node: Node, path: Trail, expected: str, hint: str = "") -> Any:
        """Note a value of the wrong kind, and give INVALID."""
        if not hint:
            hint = f"write {_SPELT.get(expected, expected)}"
            if isinstance(node, Word) and expected in _TEXTS and quotable(node):
                hint = f'quote it: "{node.text}"'
        return self.note("wrong-type", node.place, f"{say(path)} is {describe(node)}, where {expected} belongs", hint)

    def text_of(self, node: Node) -> str:
        """Give the whole text of the file that a node stands in."""
        return self.texts[node.path]


_SPELT = {  # what is expected -> how it is written
    "a mapping": "it as {key: value}",
    "a list": "it as a list: [one, two]",
    "a mapping or a list": "a row as {column: value} or [value, value]",
    "SQL": "SQL as text, {file: …} or {package: …, path: …}",
    "SQL or constants": "SQL that gives one row, or {column: value}",
    "SQL, rows or files": "{table: [{column: value}]}, {store: {name: content}} or SQL",
    "text or a mapping": "one text, or {state: text}",
    "a SQLSTATE or a mapping": "error: 23505, or error: {sqlstate: 23505, constraint: …}",
}


_TEXTS = ("text", "SQL", "text or a mapping")  # what a word in quotes would be


def quotable(node: Word) -> bool:
    """Tell whether the text may stand in double quotes as it is."""
    return not node.empty and '"' not in node.text and "\\" not in node.text


def describe(node: Node) -> str:
    """Say what a node is, with its value."""
    match node:
        case Pairs():
            return "a mapping"
        case Items():
            return "a list"
        case Word(empty=True):
            return "empty"
        case Word():
            return _describe_word(node)
        case _:
            raise TypeError(node)


def _describe_word(node: Word) -> str:
    shown = " ".join(node.text.split())
    shown = shown if len(shown) <= 60 else shown[:59] + "…"
    match node.value:
        case None:
            return "null"
        case bool():
            return f"the word {shown}"
        case str():
            return f"the text '{shown}'"
        case _:
            return f"the number {shown}"


def say(path: Trail) -> str:
    """Call a value by name: ``'rows' of step 3 of scenario 'late'``."""
    match path:
        case ():
            return "the catalogue"
        case ("catalogue", *rest):
            return _within("the catalogue", rest)
        case ("scenarios", id, "steps", int(number), *rest):
            return _within(f"step {number + 1} of scenario '{id}'", rest)
        case (section, id, *rest) if section in SINGULAR:
            return _within(f"{SINGULAR[section]} '{id}'", rest)
        case _:
            return f"'{path[-1]}'"


def _within(owner: str, rest: list[Any]) -> str:
    names = [part for part in rest if isinstance(part, str)]
    return f"'{names[-1]}' of {owner}" if names else owner
