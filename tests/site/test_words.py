"""Text that is shown: cut, counted, and with nothing in it that hides or reorders."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from failure_matrix.evidence.records import Verdict
from failure_matrix.site.words import (
    Badge,
    Link,
    Target,
    clip,
    count,
    enumerated,
    fitting,
    prose,
    say,
    shortened,
    value,
    visible,
)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("\x1b[31mred", "␛[31mred"),
        ("nul\0", "nul␀"),
        ("del\x7f", "del␡"),
        ("\u202eright to left", "[U+202E]right to left"),
        ("zero\u200bwidth", "zero[U+200B]width"),
        ("half \ud800", "half [U+D800]"),
        ("next line \x85", "next line [U+0085]"),
        ("tag \U000e0041", "tag [U+E0041]"),
        ("שלום", "שלום"),
        ("two\r\nlines\n", "two\nlines\n"),
    ],
)
def test_what_can_not_be_seen_is_shown(text: str, shown: str) -> None:
    assert visible(text) == shown


@given(st.text())
def test_what_is_shown_can_be_written_anywhere(text: str) -> None:
    shown = visible(text)
    shown.encode()
    assert all(character in "\n\t" or character.isprintable() or ord(character) >= 0xA0 for character in shown)
    assert visible(shown) == shown


def test_prose_is_one_line() -> None:
    assert prose("folded\n  text\twith\u00a0blanks ") == "folded text with blanks"


@pytest.mark.parametrize(
    ("found", "shown"),
    [
        (None, "NULL"),
        ("NULL", "'NULL'"),
        ("", "''"),
        ("  ", "'  '"),
        ("a\nb\tc", "a⏎b⇥c"),
        ("x" * 10_000, "x" * 199 + "… (10,000 characters)"),
    ],
)
def test_values_are_told_apart(found: str | None, shown: str) -> None:
    assert value(found) == shown


@given(st.text(), st.integers(2, 80))
def test_a_cut_text_is_never_longer(text: str, width: int) -> None:
    assert len(clip(text, width)) <= width
    assert len(shortened(say(Link(text, Target("x")), " ", text), width).text) <= width


def test_a_cut_phrase_keeps_its_link_and_its_verdict() -> None:
    phrase = say(Link("A rather long title", Target("states/a")), " and what follows")
    assert shortened(phrase, 12).parts == (Link("A rather lo…", Target("states/a")),)
    badge = Badge(Verdict.BROKEN, "some thing that was seen")
    assert shortened(say(badge), 5).parts == (Badge(Verdict.BROKEN, ""),)
    assert shortened(say(badge), 20).parts == (Badge(Verdict.BROKEN, "some thing…"),)


def test_words_are_listed_and_counted() -> None:
    assert enumerated(["a"]) == "a"
    assert enumerated(["a", "b", "c"], "or") == "a, b or c"
    assert count(1, "row") == "1 row"
    assert count(1200, "row") == "1,200 rows"


@pytest.mark.parametrize(
    ("width", "shown"),
    [(40, "publish, cancel, heartbeat"), (24, "publish and 2 more"), (15, "3 actions")],
)
def test_as_many_words_as_fit(width: int, shown: str) -> None:
    assert fitting(["publish", "cancel", "heartbeat"], width, "action") == shown
