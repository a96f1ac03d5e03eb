"""Findings and evidence for machines: JSON, a pull request's annotations, JUnit XML."""

from __future__ import annotations

import json
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from failure_matrix.catalogue.findings import Finding, Severity
from failure_matrix.catalogue.model import Place
from failure_matrix.cli import findings, github, junit
from failure_matrix.cli.items import items
from failure_matrix.cli.options import Format
from failure_matrix.cli.report import render
from failure_matrix.evidence import files
from failure_matrix.evidence.records import Evidence

ERROR = Finding(
    place=Place(path="matrix/a, b:c.yaml", line=3, column=7),
    rule="unknown-state",
    severity=Severity.ERROR,
    message="100% of 'x'\x1b[2J",
    hint="did you mean 'y'?",
)
WARNING = replace(ERROR, severity=Severity.WARNING, rule="no-owner", message="state 'x' has no owner")


def test_text_counts_at_the_end() -> None:
    assert list(findings.render([ERROR, WARNING, WARNING], Format.TEXT)) == [
        "matrix/a, b:c.yaml:3:7: unknown-state: 100% of 'x'\\x1b[2J",
        "  did you mean 'y'?",
        *["matrix/a, b:c.yaml:3:7: warning: no-owner: state 'x' has no owner", "  did you mean 'y'?"] * 2,
        "1 error, 2 warnings.",
    ]


def test_json_says_it_all() -> None:
    told = json.loads("\n".join(findings.render([ERROR, WARNING], Format.JSON)))
    assert (told["format"], told["errors"], told["warnings"]) == ("failure-matrix/findings/1", 1, 1)
    assert told["findings"][0] == {
        "path": "matrix/a, b:c.yaml",
        "line": 3,
        "column": 7,
        "rule": "unknown-state",
        "severity": "error",
        "message": "100% of 'x'\x1b[2J",
        "hint": "did you mean 'y'?",
    }


def test_an_annotation_is_escaped() -> None:
    where = "file=matrix/a%2C b%3Ac.yaml,line=3,col=7,title=unknown-state"
    text = "100%25 of 'x'\\x1b[2J%0Adid you mean 'y'?"
    assert list(findings.render([ERROR], Format.GITHUB)) == [f"::error {where}::{text}"]


@pytest.mark.parametrize(("count", "shown", "last"), [(1, 1, ""), (10, 10, ""), (24, 10, "%0Aand 14 more")])
def test_ten_of_a_level_at_most_and_the_last_says_how_many_more(count: int, shown: int, last: str) -> None:
    lines = list(github.findings([WARNING] * count + [ERROR]))
    assert lines[0].startswith("::error ")
    assert len(lines) == shown + 1
    assert all(line.startswith("::warning ") for line in lines[1:])
    assert [line for line in lines if "more" in line] == ([lines[-1]] if last else [])
    assert lines[-1].endswith(last)


def test_evidence_is_annotated_worst_first(broken: Evidence) -> None:
    lines = list(github.evidence(items(broken)))
    assert [line.split()[0] for line in lines] == ["::error"] * 2 + ["::warning"] * 3 + ["::notice"]
    assert lines[0] == (
        "::error file=matrix/scenarios.yaml,line=88,"
        "title=broken%3A scenario stale-publication%2C step 6"
        "::A did publish: 1 row, expected 0%0Aexpected 0 rows%0Aobserved 1 row"
    )


def test_junit_of_findings() -> None:
    [suite] = ElementTree.fromstring(junit.findings([ERROR, WARNING]))  # noqa: S314 - our own text
    assert [(case.get("classname"), case[0].tag) for case in suite] == [
        ("unknown-state", "failure"),
        ("no-owner", "skipped"),
    ]
    [suite] = ElementTree.fromstring(junit.findings([]))  # noqa: S314 - our own text
    assert [len(case) for case in suite] == [0]


def test_junit_of_evidence(broken: Evidence) -> None:
    [suite] = ElementTree.fromstring(junit.evidence(items(broken)))  # noqa: S314 - our own text
    told = {f"{case.get('classname')} {case.get('name')}": [child.tag for child in case] for case in suite}
    assert told == {
        "scenario finish-once": [],
        "scenario stale-publication": ["failure"],
        "state ready": [],
        "state orphan-candidate": ["failure"],
        "state expired": ["failure"],
        "state cancelled": ["skipped"],
        "move ready -> leased by acquire": ["failure"],
        "invariant epoch-never-falls": [],
    }


def test_json_of_evidence_is_the_file(broken: Evidence) -> None:
    assert "\n".join(render(broken, Format.JSON, 80)) + "\n" == files.text(broken)
