"""A catalogue as a command takes it: read, and checked before anything runs."""

from __future__ import annotations

from pathlib import Path

from failure_matrix.catalogue import load, rules
from failure_matrix.catalogue.findings import CatalogueInvalid, Finding
from failure_matrix.catalogue.model import Catalogue
from failure_matrix.cli.findings import count, errors_of
from failure_matrix.cli.terminal import say


def findings(directory: Path) -> tuple[Finding, ...]:
    """Give every finding, sorted by place; what cannot be read is a finding too."""
    try:
        return rules.check(load.load(directory))
    except CatalogueInvalid as exc:
        return exc.findings


def sound(directory: Path) -> Catalogue:
    """Read a catalogue to work with; raise CatalogueInvalid with every finding where one is an error."""
    catalogue = load.load(directory)
    found = rules.check(catalogue)
    if errors_of(found):
        raise CatalogueInvalid(found)
    if found:
        say(f"{count(found)}: matrix check names them.")
    return catalogue
