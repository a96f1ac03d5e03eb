"""Every rule: its id, how severe it is, what it asks, why, and how to mend what breaks it.

The pages under ``rule_pages/`` are the one source; ``matrix rule ID`` prints them as they are.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources

from failure_matrix.catalogue.findings import Finding, Severity
from failure_matrix.catalogue.model import Place

_PAGES = resources.files(__package__) / "rule_pages"


@dataclass(frozen=True, kw_only=True)
class Rule:
    id: str
    severity: Severity
    found_by: str  # "static": without a database; "server": when SQL meets the schema
    asks: str  # one line
    page: str  # Markdown: why, and how to mend


@cache
def rule(rule_id: str) -> Rule:
    """Give one rule. Raises KeyError for an id that there is not."""
    if rule_id not in rule_ids():
        raise KeyError(rule_id)
    page = (_PAGES / f"{rule_id}.md").read_text(encoding="utf-8")
    title, kind, asks = (part.strip() for part in page.split("\n\n", 3)[:3])
    severity, found_by = kind.split(" · ")
    if title != f"# {rule_id}":
        raise ValueError(f"the page of rule {rule_id} has the title {title!r}")
    return Rule(id=rule_id, severity=Severity(severity), found_by=found_by, asks=" ".join(asks.split()), page=page)


@cache
def rule_ids() -> tuple[str, ...]:
    """Give the ids of all rules, sorted."""
    return tuple(sorted(page.name.removesuffix(".md") for page in _PAGES.iterdir() if page.name.endswith(".md")))


def finding(rule_id: str, place: Place, message: str, hint: str) -> Finding:
    """Make a finding of the severity that the rule has."""
    severity = rule(rule_id).severity
    return Finding(place=place, rule=rule_id, severity=severity, message=_line(message), hint=_line(hint))


LONGEST = 400  # characters of a message


def _line(text: str) -> str:
    """Keep a message to one line of bearable length, whatever values stand in it."""
    flat = "".join(one if one.isprintable() else repr(one)[1:-1] for one in text)
    return flat if len(flat) <= LONGEST else flat[: LONGEST - 1] + "…"


def close_to(word: str, known: Iterable[str]) -> str | None:
    """Give the known word that is probably meant. Of very many, only those are looked at that begin alike."""
    words = list(known)
    if len(words) > MOST_COMPARED:
        alike = [one for one in words if one[:1] == word[:1] and abs(len(one) - len(word)) < 3]
        words = alike[: MOST_COMPARED // 4]
    close = difflib.get_close_matches(word, words, n=1)
    return close[0] if close else None


MOST_COMPARED = 100  # a comparison takes 20 microseconds, and a large catalogue may have thousands of slips


def nearest(word: str, known: Iterable[str], otherwise: str = "") -> str:
    """Say which known word was probably meant, else what is known, else ``otherwise``."""
    words = list(dict.fromkeys(known))
    if close := close_to(word, words):
        return f"did you mean '{close}'?"
    if not words:
        return otherwise
    listed = ", ".join(words[:12]) + (", …" if len(words) > 12 else "")
    return f"known here: {listed}"
