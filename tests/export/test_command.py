"""``matrix export``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from failure_matrix.cli.main import COULD_NOT, main

ROOT = Path(__file__).parents[2]
SMALLEST = str(ROOT / "examples" / "smallest")
DESIGN = str(ROOT / "matrix")


@pytest.fixture(autouse=True)
def _in_an_empty_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_specs_are_files_and_their_names_are_the_output(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "spec", "--catalogue", SMALLEST]) == 0
    said = capsys.readouterr()
    assert said.out == "specs/finish-once.spec\n"
    assert "finish-once: left out: what steps expect: 1, 2; isolationtester prints what they gave\n" in said.err
    assert [path.name for path in Path("specs").iterdir()] == ["finish-once.spec"]
    assert "permutation s1_finish s2_finish" in Path("specs/finish-once.spec").read_text()


def test_only_the_scenarios_that_are_named(capsys: pytest.CaptureFixture[str]) -> None:
    names = ["first-lease", "cancellation"]
    assert main(["export", "spec", *names, "--catalogue", DESIGN, "--into", "here/deep"]) == 0
    assert capsys.readouterr().out.splitlines() == [f"here/deep/{name}.spec" for name in names]
    assert sorted(path.stem for path in Path("here/deep").iterdir()) == sorted(names)


def test_what_cannot_be_said_is_said_on_stderr_and_in_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "spec", "requester-dies", "--catalogue", DESIGN]) == 0
    told = [line for line in capsys.readouterr().err.splitlines() if line.startswith("requester-dies: left out: step ")]
    written = Path("specs/requester-dies.spec").read_text().splitlines()
    assert told
    for line in told:
        assert f"# {line.removeprefix('requester-dies: left out: ')}" in written


def test_a_file_of_before_is_replaced(capsys: pytest.CaptureFixture[str]) -> None:
    Path("specs").mkdir()
    Path("specs/finish-once.spec").write_text("old")
    assert main(["export", "spec", "--catalogue", SMALLEST]) == 0
    assert "old" not in Path("specs/finish-once.spec").read_text()
    capsys.readouterr()


def test_a_scenario_that_is_not_there(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "spec", "nope", "--catalogue", SMALLEST]) == COULD_NOT
    said = capsys.readouterr()
    assert "the catalogue has no scenario 'nope'" in said.err
    assert said.out == ""
    assert not Path("specs").exists()


def test_a_place_that_takes_no_files(capsys: pytest.CaptureFixture[str]) -> None:
    Path("specs").write_text("a file")
    assert main(["export", "spec", "--catalogue", SMALLEST]) == COULD_NOT
    assert "could not write 'specs/finish-once.spec': " in capsys.readouterr().err


def test_the_schema_needs_no_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "schema"]) == 0
    assert json.loads(capsys.readouterr().out)["properties"]["scenarios"]["type"] == "object"


@pytest.mark.parametrize(("kind", "begins"), [("dot", 'digraph "A small queue" {'), ("mermaid", "stateDiagram-v2")])
def test_diagrams_are_printed(kind: str, begins: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", kind, "--catalogue", SMALLEST]) == 0
    assert capsys.readouterr().out.splitlines()[0] == begins


def test_another_kind_is_a_matter_of_usage(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", "pdf"]) == COULD_NOT
    assert "'spec', 'schema', 'dot', 'mermaid'" in capsys.readouterr().err
