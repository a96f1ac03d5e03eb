"""The terminal: widths, colours, and a reader who leaves."""

from __future__ import annotations

import io
import os
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failure_matrix.cli import terminal


class Screen(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def _plain_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("TERM", "xterm")


@given(st.text())
def test_harmless_text_is_printable_and_stays_so(value: str) -> None:
    safe = terminal.harmless(value)
    assert safe.isprintable()
    assert terminal.harmless(safe) == safe
    safe.encode()  # no lone surrogate is left


@given(st.text(), st.integers(1, 60))
def test_wrapping_loses_nothing_and_keeps_the_width(value: str, columns: int) -> None:
    lines = terminal.wrap(value, columns)
    assert "".join("".join(lines).split()) == "".join(terminal.harmless(value, keep="\n\t").split())
    assert all(terminal.cells(line) <= max(columns, 2) for line in lines)


@pytest.mark.parametrize(("text", "columns"), [("job", 3), ("作業", 4), ("é", 1), ("e\u0301", 1), ("", 0)])
def test_cells(text: str, columns: int) -> None:
    assert terminal.cells(text) == columns


def test_the_verdict_is_coloured_on_a_terminal_only() -> None:
    screen, pipe = Screen(), io.StringIO()
    for stream in (screen, pipe):
        terminal.write(["broken      x", "  broken", "brokenly"], stream)
    assert screen.getvalue() == "\x1b[1;31mbroken\x1b[0m      x\n  broken\nbrokenly\n"
    assert pipe.getvalue() == "broken      x\n  broken\nbrokenly\n"


@pytest.mark.parametrize(("name", "value"), [("NO_COLOR", "1"), ("TERM", "dumb")])
def test_colour_can_be_refused(name: str, value: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, value)
    screen = Screen()
    terminal.write(["broken: 1 broken."], screen)
    assert screen.getvalue() == "broken: 1 broken.\n"


def test_every_verdict_has_a_colour() -> None:
    from failure_matrix.evidence.records import Verdict  # noqa: PLC0415 - only here

    assert {str(verdict) for verdict in Verdict} <= set(terminal.COLOURS)


def test_the_width_of_a_pipe_is_80_and_of_a_terminal_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    assert terminal.width(io.StringIO()) == 80
    monkeypatch.setenv("COLUMNS", "52")
    assert terminal.width(Screen()) == 52
    monkeypatch.setenv("COLUMNS", "3")
    assert terminal.width(Screen()) == terminal.NARROWEST


def test_progress_is_for_a_terminal_and_goes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "40")
    screen, pipe = Screen(), io.StringIO()
    for stream in (screen, pipe):
        with terminal.Progress(stream) as progress:
            progress("scenario \x1b[2Jfinish-once " + "x" * 100)
    assert pipe.getvalue() == ""
    shown, cleared = screen.getvalue().split("\r\x1b[K")[1:]
    assert shown.startswith("scenario \\x1b[2Jfinish-once")
    assert len(shown) == 39
    assert cleared == ""


def test_a_reader_who_leaves_is_no_fault() -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as stream:
        terminal.write(["line"] * 100_000, stream)
        terminal.write(["more"], stream)


def test_talk_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    terminal.say("could not \x1b[31m")
    assert capsys.readouterr() == ("", "could not \\x1b[31m\n")
    assert sys.stdout is not sys.stderr
