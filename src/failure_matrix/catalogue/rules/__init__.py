"""What must fit together in a catalogue: the static rules, one generator each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from failure_matrix.catalogue.findings import Finding, Severity
from failure_matrix.catalogue.model import Catalogue

RULES = ()


def check(catalogue: Catalogue) -> tuple[Finding, ...]:
    """Give every static finding, sorted by place; ``strict`` makes warnings errors."""
    found = [*catalogue.notes, *(finding for rule in RULES for finding in rule(catalogue))]
    return sharpened(found, strict=catalogue.settings.strict)


def check_references(catalogue: Catalogue, ids: Mapping[str, frozenset[str]]) -> list[Finding]:
    """Give the unknown references of a catalogue that could be read in part; ``ids`` are those it defines."""
    return []


def sharpened(findings: Iterable[Finding], *, strict: bool) -> tuple[Finding, ...]:
    """Sort findings by place, each once; ``strict`` makes warnings errors."""
    every = dict.fromkeys(replace(found, severity=Severity.ERROR) if strict else found for found in findings)
    return tuple(sorted(every, key=lambda found: (found.place, found.rule, found.message)))
