"""What is wrong with a catalogue, as values. ``rule`` is an id that ``matrix rule`` explains."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from failure_matrix.catalogue.model import Place


class Severity(StrEnum):
    ERROR = "error"
    WARNING = "warning"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One finding: where, which rule, what was found (the value in quotes), and what to do next."""

    place: Place
    rule: str
    severity: Severity
    message: str
    hint: str

    def __str__(self) -> str:
        return f"{self.place}: {self.rule}: {self.message}\n  {self.hint}"


class CatalogueInvalid(Exception):
    """A catalogue that cannot be read; carries every finding."""

    def __init__(self, findings: tuple[Finding, ...]) -> None:
        super().__init__(f"{len(findings)} findings")
        self.findings = findings


class CouldNot(Exception):
    """Something could not be run at all: exit 2, "could not ...", "No verdict."

    ``what`` completes "could not"; ``details`` are further lines, the last of which says what to do.
    """

    def __init__(self, what: str, *details: str) -> None:
        super().__init__(what)
        self.what = what
        self.details = details

    def __str__(self) -> str:
        return "\n  ".join((f"could not {self.what}", *self.details, "No verdict."))
