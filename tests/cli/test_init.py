"""`matrix init`: a catalogue that has nothing to mend, and never over another."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from failure_matrix.cli.main import main


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def test_it_has_no_finding(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["init"]) == 0
    assert capsys.readouterr().out.splitlines()[1:] == ["  matrix verify", "  matrix build"]
    assert main(["check"]) == 0
    assert capsys.readouterr().out == "0 errors, 0 warnings.\n"


def test_a_directory_that_holds_something_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("matrix").mkdir()
    Path("matrix", "mine.yaml").write_text("mine")
    assert main(["init"]) == 2
    assert capsys.readouterr().err.startswith("could not begin a catalogue in 'matrix': it is not empty")
    assert [path.name for path in Path("matrix").iterdir()] == ["mine.yaml"]


def test_a_file_in_the_way_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    Path("matrix").write_text("mine")
    assert main(["init"]) == 2
    assert capsys.readouterr().err.startswith("could not write 'matrix/queue.yaml'")
    assert Path("matrix").read_text() == "mine"


def test_where_it_finds_no_room_it_leaves_nothing() -> None:
    command = Path(sys.executable).with_name("matrix")
    done = subprocess.run(["sh", "-c", f"ulimit -f 0; '{command}' init"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("could not write 'matrix/queue.yaml': ")
    assert list(Path("matrix").iterdir()) == []
