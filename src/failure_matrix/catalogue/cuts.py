"""Rule ``cut-scalar``: where YAML ends a value earlier than its author meant."""

from __future__ import annotations

import re

from failure_matrix.catalogue.findings import Finding
from failure_matrix.catalogue.model import Place
from failure_matrix.catalogue.nodes import Node, Word
from failure_matrix.catalogue.rulebook import finding
from failure_matrix.catalogue.sql import Kind, significant, tokens

_QUOTE = "quote it or use a block (a | after the colon, the text indented below); a comment has a space after its #"
_COMMA = "a comma ends a value inside { } and [ ]: quote it or use a block"
_BLANK = (" ", "\t")
_GOES_ON = re.compile(r"(and|or|but|nor)\s")
_COMMENT = re.compile(r"([ \t]+)#([^\r\n]*)")
_READS_ON = re.compile(r"\s*[\w.:$'\"]+\s*(=|<|>|!|\b(and|or|is|in|then)\b)", re.IGNORECASE)  # an operand, an operator


def cut_prose(node: Word, text: str) -> Finding | None:
    """Find prose that ` #` has cut; a comment that stands off, or has a space after its #, is honest."""
    if node.style or text[node.end : node.end + 1] not in _BLANK or not (comment := _COMMENT.match(text, node.end)):
        return None
    gap, said = comment.groups()
    begun = node.text.count('"') % 2 == 1 or node.text.count("(") > node.text.count(")")
    return _cut(node, text, comment) if begun or (gap == " " and _sticks(said)) else None


def cut_sql(node: Word, text: str) -> Finding | None:
    """Find SQL that ` #`, a comma of a flow collection, or a folded line has cut."""
    if node.style in ("|", "!"):
        return None
    if (node.plain or node.style == ">") and (hidden := _hidden_by_comment(node, text)):
        return hidden
    if not node.plain:
        return None
    if comment := _COMMENT.match(text, node.end):
        gap, said = comment.groups()
        if _sticks(said) or unfinished(node.text) or (gap == " " and _READS_ON.match(said)):
            return _cut(node, text, comment)
    if node.flow and unfinished(node.text):
        message = f"SQL ends early: '{_short(node.text)}'"
        return finding("cut-scalar", node.place, message, _COMMA)
    return None


def cut_empty(node: Word, text: str) -> Finding | None:
    """Find a value such as ``#export``, which YAML reads as null and a comment."""
    comment = _COMMENT.match(text, node.end) if node.empty else None
    return _cut(node, text, comment) if comment and _sticks(comment[2]) else None


def cut_pair(key: Node, value: Node, before: Node | None) -> Finding | None:
    """Find a key of a flow mapping without a value: most likely the rest of the value before it."""
    if not (isinstance(key, Word) and key.flow and isinstance(value, Word) and value.empty and value.start == key.end):
        return None
    if isinstance(before, Word) and before.plain:
        return rest_of(key, before)
    name = _short(key.text)
    return finding("cut-scalar", key.place, f"'{name}' has no value", f"write '{name}: null', or quote what it ends")


def cut_item(item: Node, before: Node | None) -> Finding | None:
    """Find an item of a flow list that goes on with the sentence of the one before it."""
    words = isinstance(item, Word) and item.plain and _GOES_ON.match(item.text)
    return rest_of(item, before) if words and isinstance(item, Word) and isinstance(before, Word) else None


def rest_of(key: Word, before: Word) -> Finding:
    """Say that a key looks like the rest of the value before it."""
    message = f"'{_short(key.text)}' looks like the rest of '{_short(before.text)}'"
    return finding("cut-scalar", key.place, message, _COMMA)


def unfinished(sql: str) -> bool:
    """Tell whether SQL leaves a string, a comment or a bracket open, or closes one too many."""
    depth = 0
    for token in significant(sql):
        if token.kind is Kind.UNFINISHED:
            return True
        if token.kind is Kind.MARK and token.text in "([])":
            depth += 1 if token.text in "([" else -1
            if depth < 0:
                return True
    return depth != 0


def _sticks(said: str) -> bool:
    """Tell whether something stands right behind the #, as in ``#export`` or ``#>>``."""
    return bool(said) and not said[0].isspace() and not said.startswith("#")


def _hidden_by_comment(node: Word, text: str) -> Finding | None:
    """Find a ``--`` comment in text whose line ends were folded into spaces: it hides what follows."""
    if "--" not in node.text or "\n" not in text[node.start : node.end].rstrip():
        return None
    for token in tokens(node.text):
        if token.kind is Kind.COMMENT and token.text.startswith("--") and token.text not in text:
            message = f"a '--' comment in folded text hides what follows: '{_short(token.text)}'"
            return finding("cut-scalar", node.place, message, "keep the line ends: use a block with | instead")
    return None


def _cut(node: Word, text: str, comment: re.Match[str]) -> Finding:
    at = comment.end(1)
    line = node.line + 1 + text.count("\n", node.start, at)
    place = Place(path=node.path, line=line, column=at - text.rfind("\n", 0, at))
    said = _short(comment[0].strip())
    message = f"'{said}' is a comment" + (f" and cuts '{_short(node.text)}'" if node.text else ", the value is null")
    return finding("cut-scalar", place, message, _QUOTE)


def _short(text: str, length: int = 40) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= length else flat[: length - 1] + "…"
