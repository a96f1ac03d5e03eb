"""`matrix verify`: evidence is written once and whole, the verdict is the exit code."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

import pytest

from failure_matrix.cli.main import main
from failure_matrix.database import cluster
from failure_matrix.database.answers import ServerError
from failure_matrix.evidence import files

GUARD = " AND state = 'ready'\n"


@pytest.fixture
def catalogue(here: Path, capsys: pytest.CaptureFixture[str]) -> Path:
    assert main(["init"]) == 0
    capsys.readouterr()
    return here / "matrix" / "queue.yaml"


def _break(catalogue: Path) -> None:
    whole = catalogue.read_text(encoding="utf-8")
    assert GUARD in whole
    catalogue.write_text(whole.replace(GUARD, "\n"), encoding="utf-8")


@pytest.mark.usefixtures("catalogue")
def test_a_good_catalogue(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify"]) == 0
    out, err = capsys.readouterr()
    assert out.splitlines()[-2].startswith("Evidence: .matrix/evidence.json, ")
    assert out.splitlines()[-1].startswith("verified: ")
    assert out.splitlines()[-1].endswith("exit 0")
    assert err == ""
    assert "\x1b" not in out
    assert files.read(Path(".matrix/evidence.json")).catalogue.title == "A small queue"
    assert [path.name for path in Path(".matrix").iterdir()] == ["evidence.json"]


def test_a_broken_one_names_scenario_step_expected_and_observed(
    catalogue: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    _break(catalogue)
    assert main(["verify"]) == 1
    out = capsys.readouterr().out
    assert "broken      finish-once " in out
    assert "step 2: B did finish: 1 row, expected 0" in out
    assert "expected  0 rows" in out
    assert "observed  1 row" in out
    assert "rerun     matrix verify finish-once" in out
    assert out.splitlines()[-1].endswith("exit 1")


@pytest.mark.usefixtures("catalogue")
def test_output_names_a_fresh_file_and_nothing_is_overwritten(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert main(["verify", "--output", "e.json"]) == 0
    before = Path("e.json").read_bytes()
    assert not Path(".matrix").exists()
    capsys.readouterr()

    def started(_: object) -> NoReturn:
        raise AssertionError("a server was started for nothing")

    monkeypatch.setattr(cluster, "serve", started)
    assert main(["verify", "--output", "e.json"]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("could not write evidence to 'e.json': it exists already")
    assert err.endswith("No verdict. Earlier evidence is untouched.\n")
    assert Path("e.json").read_bytes() == before


def test_one_scenario_speaks_for_itself_only(catalogue: Path, capsys: pytest.CaptureFixture[str]) -> None:
    text = catalogue.read_text(encoding="utf-8")
    before, scenario = text.split("  finish-once:\n")
    other = scenario.replace("do: finish, with: {id: 1}, rows: 1", "do: finish, with: {id: 1}, rows: 7")
    catalogue.write_text(f"{before}  finish-once:\n{scenario}  finish-wrong:\n{other}", encoding="utf-8")
    assert main(["verify"]) == 1
    capsys.readouterr()
    assert main(["verify", "finish-once"]) == 0
    out = capsys.readouterr().out
    assert "Only 1 of 2 scenarios ran: this says nothing of what they do not reach." in out
    assert main(["verify", "finish-wrong"]) == 1


@pytest.mark.usefixtures("catalogue")
def test_an_unknown_scenario_is_answered_with_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "finish-onse"]) == 2
    err = capsys.readouterr().err
    assert err.startswith("could not verify 'finish-onse'")
    assert "did you mean 'finish-once'?" in err


@pytest.mark.usefixtures("catalogue")
def test_json_is_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--format", "json"]) == 0
    out = capsys.readouterr().out
    assert out == Path(".matrix/evidence.json").read_text(encoding="utf-8")
    assert json.loads(out)["verdict"] == "verified"


def test_annotations_stand_on_yaml_lines(catalogue: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _break(catalogue)
    assert main(["verify", "--format", "github"]) == 1
    lines = catalogue.read_text(encoding="utf-8").splitlines()
    out = capsys.readouterr().out.splitlines()
    told = [int(line.split("line=")[1].split(",")[0]) for line in out]
    assert "rows: 0" in lines[told[0] - 1]
    assert lines[told[1] - 1] == "  done:"


def test_a_catalogue_with_errors_is_not_run(
    catalogue: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    catalogue.write_text(catalogue.read_text(encoding="utf-8").replace("moves: {ready: done}", "moves: {ready: dome}"))
    monkeypatch.setattr(cluster, "serve", None)
    assert main(["verify"]) == 1
    out = capsys.readouterr().out
    assert "'dome'" in out
    assert "did you mean 'done'?" in out
    assert out.endswith(" warnings.\n")
    assert not Path(".matrix").exists()


@pytest.mark.usefixtures("catalogue")
def test_two_servers_are_one_too_many(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["verify", "--dsn", "dbname=x", "--postgres-prefix", "/opt/pg"]) == 2
    assert capsys.readouterr().err.startswith("could not choose a server: --dsn and --postgres-prefix are both given")


def test_a_password_appears_nowhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["init"]) == 0
    assert main(["verify", "--dsn", "postgresql://someone:s3cret-w0rd@127.0.0.1:1/nowhere?connect_timeout=2"]) == 2
    out, err = capsys.readouterr()
    assert "s3cret-w0rd" not in out + err
    assert err.startswith("could not ")
    assert "No verdict." in err


@pytest.mark.usefixtures("catalogue")
@pytest.mark.parametrize(("sqlstate", "code"), [("57P01", 2), ("08006", 2), ("22012", 3)])
def test_a_server_that_goes_is_no_bug_of_ours(
    sqlstate: str, code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stopped(*_: object, **__: object) -> NoReturn:
        raise ServerError(severity="FATAL", sqlstate=sqlstate, message="the server says so")

    monkeypatch.setattr("failure_matrix.verify.verify", stopped)
    assert main(["verify"]) == code
    out, err = capsys.readouterr()
    assert out == ""
    assert ("Traceback" in err) == (code == 3)
    assert f"FATAL {sqlstate}: the server says so" in err
    assert "No verdict." in err.splitlines()[-1]
    assert not Path(".matrix").exists()


def test_interrupted_on_a_terminal_it_says_so_and_writes_nothing(tmp_path: Path) -> None:
    command = Path(sys.executable).with_name("matrix")
    subprocess.run([command, "init"], cwd=tmp_path, check=True, capture_output=True)
    ours, its = os.openpty()
    with subprocess.Popen([command, "verify"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=its) as process:
        os.close(its)
        shown = b""
        while b"PostgreSQL" not in shown:  # its progress: a server is being started
            shown += os.read(ours, 4096)
        process.send_signal(signal.SIGINT)
        shown += b"".join(iter(lambda: _until_closed(ours), b""))
        assert process.stdout
        assert process.stdout.read() == b""
    os.close(ours)
    assert process.returncode == 130
    assert b"interrupted. No verdict." in shown
    assert not (tmp_path / ".matrix").exists()


def _until_closed(terminal: int) -> bytes:
    try:
        return os.read(terminal, 4096)
    except OSError:  # how Linux says that the other end of a terminal has gone
        return b""
