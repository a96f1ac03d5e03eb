"""`matrix rule`: one page, or a line for each."""

from __future__ import annotations

import pytest

from failure_matrix.catalogue import rulebook
from failure_matrix.cli.main import main
from failure_matrix.cli.rule import fitted


def test_without_an_id_every_rule_has_a_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rule"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in lines] == list(rulebook.rule_ids())
    assert all(line.split()[1] in ("error", "warning") for line in lines)


def test_a_rule_is_its_page(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rule", "cut-scalar"]) == 0
    assert capsys.readouterr().out.rstrip("\n") == rulebook.rule("cut-scalar").page.rstrip("\n")


@pytest.mark.parametrize("id", rulebook.rule_ids())
def test_on_a_terminal_a_page_is_fitted_between_words(id: str) -> None:
    page = rulebook.rule(id).page.splitlines()
    lines = list(fitted(page, 40))
    assert " ".join(" ".join(lines).split()) == " ".join(" ".join(page).split())
    assert [line for line in lines if len(line) > 40 and line not in page] == []


def test_code_is_not_broken() -> None:
    page = ["- one two", "```yaml", "a: long line of code", "```", "three four"]
    assert list(fitted(page, 7)) == ["- one", "  two", "```yaml", "a: long line of code", "```", "three", "four"]


def test_an_unknown_rule_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["rule", "cut-scaler"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("could not explain 'cut-scaler'")
    assert "did you mean 'cut-scalar'?" in err
