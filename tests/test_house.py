"""The house rules that no linter knows: sizes, names, and nothing that sleeps."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
MODULES = sorted((ROOT / "src").rglob("*.py"))
FUNCTION, MODULE = 40, 300  # lines: a screen, a sitting
LONGER = {  # a vocabulary is read as one page
    "src/failure_matrix/catalogue/model.py": 400,
    "src/failure_matrix/evidence/records.py": 400,
}
NAMELESS = {"utils", "util", "helpers", "helper", "common", "misc", "manager"}


def _name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


def _functions(path: Path) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    return (node for node in ast.walk(_tree(path)) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))


@pytest.mark.parametrize("path", MODULES, ids=_name)
def test_a_function_fits_on_a_screen_and_a_module_in_a_sitting(path: Path) -> None:
    long = {
        function.name: lines
        for function in _functions(path)
        if (lines := (function.end_lineno or 0) - function.lineno + 1) > FUNCTION
    }
    assert long == {}
    lines = len(path.read_text(encoding="utf-8").splitlines())
    assert lines <= LONGER.get(_name(path), MODULE)
    assert path.stem not in NAMELESS


@pytest.mark.parametrize("path", [*MODULES, *sorted((ROOT / "tests").rglob("*.py"))], ids=_name)
def test_nothing_sleeps(path: Path) -> None:
    names = {node.attr for node in ast.walk(_tree(path)) if isinstance(node, ast.Attribute)}
    names |= {alias.name for node in ast.walk(_tree(path)) if isinstance(node, ast.ImportFrom) for alias in node.names}
    assert "sleep" not in names
