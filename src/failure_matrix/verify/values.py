"""``$name``: values kept by an earlier step or bound by the tool, put where the YAML names them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal

from failure_matrix.catalogue.model import Key, Scalar

_UUID = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}", re.ASCII | re.IGNORECASE)
_REFERENCE = re.compile(r"\$(\$|[A-Za-z_][A-Za-z0-9_]*)")

Kept = Mapping[str, Scalar]


class NotKept(Exception):
    """A name without a value: no step that ran kept it, or nothing gives it. ``str()`` says which and why."""

    def __init__(self, message: str, expected: str) -> None:
        super().__init__(message)
        self.expected = expected


def substitute(value: Scalar, kept: Kept) -> Scalar:
    """The value with each ``$name`` replaced; a value that is one ``$name`` keeps its type."""
    if not isinstance(value, str) or "$" not in value:
        return value
    whole = _REFERENCE.fullmatch(value)
    if whole and whole[1] != "$":
        return _find(whole[1], kept)

    def replace(match: re.Match[str]) -> str:
        return "$" if match[1] == "$" else as_text(_find(match[1], kept)) or ""

    return _REFERENCE.sub(replace, value)


def references(value: Scalar) -> frozenset[str]:
    """The names that a value refers to."""
    if not isinstance(value, str):
        return frozenset()
    return frozenset(name for name in _REFERENCE.findall(value) if name != "$")


def _find(name: str, kept: Kept) -> Scalar:
    if name not in kept:
        raise NotKept(f"'${name}' was kept by no step that ran", f"a step before this one that keeps {name}")
    return kept[name]


def as_text(value: Scalar) -> str | None:
    """The value as PostgreSQL writes it: ``t`` and ``f`` for booleans, None for NULL."""
    match value:
        case None:
            return None
        case bool():
            return "t" if value else "f"
        case int() | Decimal() | str():
            return str(value)


def key_text(key: Key, kept: Kept) -> tuple[str, ...]:
    """A key of ``then`` as the probe writes it: text, in key order."""
    parts = key if isinstance(key, tuple) else (key,)
    return tuple(key_part(substitute(part, kept)) for part in parts)


def key_part(value: Scalar) -> str:
    """One value of a key as the server writes it: a uuid in lower case, nothing for NULL."""
    text = as_text(value) or ""
    return text.lower() if _UUID.fullmatch(text) else text
