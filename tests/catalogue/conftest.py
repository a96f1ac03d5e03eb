"""What these tests share: a catalogue written into a directory of its own, and what is found in it."""

from __future__ import annotations

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from failure_matrix.catalogue.findings import CatalogueInvalid, Finding
from failure_matrix.catalogue.load import load
from failure_matrix.catalogue.rules import check

Examine = Callable[..., tuple[Finding, ...]]

CATALOGUE = "catalogue: {title: A test}\n"


def findings(directory: Path) -> tuple[Finding, ...]:
    """Load and check: every finding, whether the catalogue could be read or not."""
    try:
        return check(load(directory))
    except CatalogueInvalid as invalid:
        return invalid.findings


@pytest.fixture
def examine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Examine:
    """Write YAML (with a title, unless it has one) and other files; give the findings, whose paths are file names."""
    monkeypatch.chdir(tmp_path)

    def written(yaml: str, **others: str) -> tuple[Finding, ...]:
        text = textwrap.dedent(yaml)
        (tmp_path / "a.yaml").write_text(text if "catalogue:" in text else CATALOGUE + text, encoding="utf-8")
        for name, other in others.items():
            (tmp_path / name.replace("_", ".")).write_text(textwrap.dedent(other), encoding="utf-8")
        return findings(Path())

    return written
