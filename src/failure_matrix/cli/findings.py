"""Findings as text and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence

from failure_matrix.catalogue.findings import Finding, Severity
from failure_matrix.cli import github, junit
from failure_matrix.cli.options import Format
from failure_matrix.cli.terminal import harmless

FORMAT = "failure-matrix/findings/1"


def render(findings: Sequence[Finding], form: Format) -> Iterator[str]:
    """Give the lines to print, in the order of the findings."""
    match form:
        case Format.TEXT:
            yield from as_text(findings)
        case Format.JSON:
            yield _as_json(findings)
        case Format.GITHUB:
            yield from github.findings(findings)
        case Format.JUNIT:
            yield junit.findings(findings)


def as_text(findings: Sequence[Finding]) -> Iterator[str]:
    """Give each finding with what to do about it, then their count."""
    for finding in findings:
        kind = f"{finding.severity}: " if finding.severity is Severity.WARNING else ""
        yield harmless(f"{finding.place}: {kind}{finding.rule}: {finding.message}")
        yield harmless(f"  {finding.hint}")
    yield f"{count(findings)}."


def count(findings: Sequence[Finding]) -> str:
    """Say how many errors and warnings there are."""
    errors = len(errors_of(findings))
    return f"{_number(errors, 'error')}, {_number(len(findings) - errors, 'warning')}"


def errors_of(findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """Give the findings that stop the catalogue from meaning anything."""
    return tuple(finding for finding in findings if finding.severity is Severity.ERROR)


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


def _as_json(findings: Sequence[Finding]) -> str:
    errors = len(errors_of(findings))
    told = [
        {
            "path": finding.place.path,
            "line": finding.place.line,
            "column": finding.place.column,
            "rule": finding.rule,
            "severity": str(finding.severity),
            "message": finding.message,
            "hint": finding.hint,
        }
        for finding in findings
    ]
    whole = {"format": FORMAT, "errors": errors, "warnings": len(findings) - errors, "findings": told}
    return json.dumps(whole, indent=2, ensure_ascii=False)
