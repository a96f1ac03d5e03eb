"""Exit codes: what happened decides them, in one place."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from failure_matrix import cli
from failure_matrix.catalogue import rulebook
from failure_matrix.catalogue.findings import CatalogueInvalid, CouldNot, Finding, Severity
from failure_matrix.catalogue.model import Place
from failure_matrix.cli import main as module
from failure_matrix.cli.main import main

FINDING = Finding(
    place=Place(path="matrix/states.yaml", line=41, column=12),
    rule="unknown-state",
    severity=Severity.ERROR,
    message="action 'claim' moves to 'runing', which no state defines",
    hint="did you mean 'running'?",
)


def _stop(monkeypatch: pytest.MonkeyPatch, exc: BaseException) -> int:
    def ids() -> tuple[str, ...]:
        raise exc

    monkeypatch.setattr(rulebook, "rule_ids", ids)
    return main(["rule"])


def test_could_not_is_2_and_gives_no_verdict(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _stop(monkeypatch, CouldNot("start PostgreSQL", "its log: \x1b[2J", "Pass --dsn.")) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == "could not start PostgreSQL\n  its log: \\x1b[2J\n  Pass --dsn.\n  No verdict.\n"


def test_an_invalid_catalogue_is_1_and_says_every_finding(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _stop(monkeypatch, CatalogueInvalid((FINDING,))) == 1
    out, err = capsys.readouterr()
    assert err == ""
    assert out.splitlines() == [
        "matrix/states.yaml:41:12: unknown-state: action 'claim' moves to 'runing', which no state defines",
        "  did you mean 'running'?",
        "1 error, 0 warnings.",
    ]


def test_anything_else_is_3_and_ours(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert _stop(monkeypatch, ZeroDivisionError("a \x1b]0;value")) == 3
    out, err = capsys.readouterr()
    assert out == ""
    assert "Traceback (most recent call last):" in err
    assert "ZeroDivisionError: a \\x1b]0;value" in err
    assert err.splitlines()[-2].startswith("matrix has a bug: ZeroDivisionError is above")
    assert err.endswith("No verdict.\n")


def test_interrupted_is_130(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    assert _stop(monkeypatch, KeyboardInterrupt()) == 130
    assert capsys.readouterr() == ("", "interrupted. No verdict.\n")


def test_interrupted_where_nothing_catches_it_is_130_all_the_same(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def run() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(module, "run", run)
    with pytest.raises(SystemExit) as stopped:
        cli.run()
    assert stopped.value.code == 130
    assert capsys.readouterr() == ("", "interrupted. No verdict.\n")


def test_interrupted_while_it_loads_is_130(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt\n", encoding="utf-8")
    program = "import sys; from failure_matrix.cli import run; run()"
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "interrupted. No verdict.\n")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_a_closed_stream_is_nobody(closed: str) -> None:
    command = Path(sys.executable).with_name("matrix")
    done = subprocess.run(["sh", "-c", f"'{command}' rule trap {closed}"], capture_output=True, text=True, check=False)
    assert done.returncode == 0
    assert done.stderr == ""
    assert done.stdout.startswith("# trap") == (" >" not in f" {closed}")


def test_a_working_directory_that_is_gone_is_2(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "gone").mkdir()
    monkeypatch.chdir(tmp_path / "gone")
    (tmp_path / "gone").rmdir()
    assert main(["check"]) == 2
    assert capsys.readouterr().err.startswith("could not begin: the working directory is gone")
    assert main(["--help"]) == 0


def test_a_result_that_cannot_be_printed_is_2(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("matrix")
    (tmp_path / "out").touch()
    with (tmp_path / "out").open(encoding="utf-8") as unwritable:
        done = subprocess.run(
            [command, "rule", "trap"], stdout=unwritable, stderr=subprocess.PIPE, text=True, check=False
        )
    assert done.returncode == 2
    assert done.stderr == (
        "could not print the result: Bad file descriptor\n  Print it somewhere else.\n  No verdict.\n"
    )


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["chek"], "No such command 'chek'"),
        (["check", "--nope"], "No such option: --nope"),
        (["check", "--format", "xml"], "'xml' is not one of 'text', 'json', 'github', 'junit'"),
        (["check", "extra"], "extra"),
    ],
)
def test_usage_is_2(arguments: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("could not understand the command line: ")
    assert said in err
    assert err.endswith("--help.\nNo verdict.\n")


@pytest.mark.parametrize("arguments", [[], ["--help"], ["verify", "--help"], ["--version"]])
def test_help_is_0_and_on_stdout(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert main(arguments) == 0
    out, err = capsys.readouterr()
    assert out
    assert err == ""


def test_help_loads_nothing_that_works() -> None:
    heavy = ("pydantic", "yaml", "psycopg", "jinja2", "markdown_it", "rich", "junitparser", "failure_matrix.catalogue")
    program = "\n".join(
        (
            "import sys",
            "from failure_matrix.cli.main import main",
            "main(['--help'])",
            f"print(sorted(set({heavy}) & set(sys.modules)))",
        )
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "[]"


def test_the_installed_command_leaves_with_its_code(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("matrix")
    done = subprocess.run([command, "check", "--nope"], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("could not")


def test_the_environment_names_options(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("MATRIX_CATALOGUE", str(tmp_path / "elsewhere"))
    assert main(["init"]) == 0
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["queue.yaml"]
    assert f"matrix verify --catalogue {tmp_path / 'elsewhere'}" in capsys.readouterr().out
