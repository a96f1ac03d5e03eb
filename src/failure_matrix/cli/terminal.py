"""The terminal: its width, its colours, and nothing that a value could do to it."""

from __future__ import annotations

import os
import re
import shutil
import sys
import unicodedata
from collections.abc import Iterable
from typing import TextIO

NARROWEST = 30  # columns; below this, wrapping would leave single letters
COLOURS = {"verified": 32, "waived": 35, "unreached": 36, "stale": 33, "incomplete": 33, "broken": 31, "error": 31}
_BOLD = {"broken", "error"}  # ink grows with badness
_LABEL = re.compile(rf"({'|'.join(COLOURS)})\b")


def harmless(value: str, *, keep: str = "") -> str:
    """Give the text with every character that could steer a terminal spelled out, except those in ``keep``.

    Control characters move the cursor and change colours, format characters hide text or turn its direction.
    """
    if value.isprintable():
        return value
    return "".join(letter if letter.isprintable() or letter in keep else _spelled(letter) for letter in value)


def _spelled(letter: str) -> str:
    if unicodedata.category(letter) == "Zs":
        return " "
    return letter.encode("unicode_escape").decode("ascii")


def cells(value: str) -> int:
    """Count the columns that a harmless text takes."""
    return sum(map(_columns, value)) if not value.isascii() else len(value)


def _columns(character: str) -> int:
    if unicodedata.category(character) in ("Mn", "Me"):
        return 0
    return 2 if unicodedata.east_asian_width(character) in "WF" else 1


def wrap(value: str, width: int) -> list[str]:
    """Break a text between words into lines of ``width`` columns at most, and a word that is longer inside it."""
    lines: list[str] = []
    line = ""
    for word in harmless(value, keep="\n\t").split():
        if line and cells(line) + 1 + cells(word) <= width:
            line += f" {word}"
            continue
        if line:
            lines.append(line)
        *full, line = _pieces(word, width)
        lines += full
    return [*lines, line]


def _pieces(word: str, width: int) -> list[str]:
    pieces = [""]
    for character in word:
        if cells(pieces[-1]) + _columns(character) > width:
            pieces.append("")
        pieces[-1] += character
    return pieces


def width(stream: TextIO | None = None) -> int:
    """Give the columns of the terminal behind ``stream`` (stdout); COLUMNS where it is none, else 80."""
    if (stream or sys.stdout).isatty() or os.environ.get("COLUMNS"):
        return max(shutil.get_terminal_size((80, 24)).columns, NARROWEST)
    return 80


def coloured(stream: TextIO) -> bool:
    """Tell whether ``stream`` is a terminal that wants colour."""
    return stream.isatty() and not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb"


def paint(line: str) -> str:
    """Colour the verdict that a line begins with; the word stays, so that colour is never alone."""
    found = _LABEL.match(line)
    if not found:
        return line
    weight = "1;" if found[0] in _BOLD else ""
    return f"\x1b[{weight}{COLOURS[found[0]]}m{found[0]}\x1b[0m{line[found.end() :]}"


def write(lines: Iterable[str], stream: TextIO | None = None) -> None:
    """Print lines, coloured where ``stream`` (stdout) is a terminal.

    A reader who has left, as ``head`` does, is no fault: what remains is dropped and the exit code stays what it was.
    Raises CouldNot where the text goes nowhere, as on a full disk.
    """
    stream = stream or sys.stdout
    colour = coloured(stream)
    try:
        for line in lines:
            stream.write(f"{paint(line) if colour else line}\n")
        stream.flush()
    except BrokenPipeError:
        _drop(stream)
    except OSError as exc:
        from failure_matrix.catalogue.findings import CouldNot

        _drop(stream)
        raise CouldNot(f"print the result: {exc.strerror}", "Print it somewhere else.") from exc


def _drop(stream: TextIO) -> None:
    """Let nobody have what the stream still holds, so that it cannot fail again when we leave."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def say(*lines: str) -> None:
    """Print talk, which goes to stderr, with nothing in it that steers the terminal."""
    write((harmless(line, keep="\n") for line in lines), sys.stderr)


class Progress:
    """One line on stderr that says what is going on, on a terminal only; gone when it is done."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._shown = self._stream.isatty()

    def __enter__(self) -> Progress:
        return self

    def __exit__(self, *_: object) -> None:
        if self._shown:
            self._stream.write("\r\x1b[K")
            self._stream.flush()

    def __call__(self, doing: str) -> None:
        if self._shown:
            columns = width(self._stream) - 1
            self._stream.write(f"\r\x1b[K{_pieces(harmless(doing), columns)[0]}")
            self._stream.flush()
