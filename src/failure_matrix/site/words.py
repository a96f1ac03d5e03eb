"""What a page says, before it is Markdown or HTML: text with a few marked parts, decided once for both.

Plain strings are text and never markup. Whatever is odd in them is made visible here, for every output alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache

from failure_matrix.evidence.records import Verdict


@dataclass(frozen=True, slots=True)
class Target:
    """A place in the site: a page without its ending, and an id on its HTML form."""

    page: str
    anchor: str = ""


@dataclass(frozen=True, slots=True)
class Code:
    text: str


@dataclass(frozen=True, slots=True)
class Strong:
    text: str


@dataclass(frozen=True, slots=True)
class Quiet:
    """Said in passing: smaller in HTML, plain in Markdown."""

    text: str


@dataclass(frozen=True, slots=True)
class Link:
    text: str
    to: Target


@dataclass(frozen=True, slots=True)
class Badge:
    """A verdict with its word, and a short note beside it."""

    verdict: Verdict
    note: str = ""


Part = str | Code | Strong | Quiet | Link | Badge


@dataclass(frozen=True, slots=True)
class Phrase:
    """A run of text, one line in every output."""

    parts: tuple[Part, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.parts)

    @property
    def text(self) -> str:
        """The words alone."""
        return "".join(_words(part) for part in self.parts)


Cell = tuple[Phrase, ...]  # lines of a table cell


def say(*parts: Part | Phrase) -> Phrase:
    """Join parts to a phrase."""
    flat: list[Part] = []
    for part in parts:
        if isinstance(part, Phrase):
            flat.extend(part.parts)
        elif part != "":
            flat.append(part)
    return Phrase(tuple(flat))


def line(*parts: Part | Phrase) -> Cell:
    """A cell of one line, or of none where there is nothing to say."""
    phrase = say(*parts)
    return (phrase,) if phrase else ()


def join(phrases: Iterable[Phrase | Part], between: str) -> Phrase:
    """Put text between phrases."""
    found: list[Phrase | Part] = []
    for phrase in phrases:
        found += [between, phrase] if found else [phrase]
    return say(*found)


def listed(phrases: Iterable[Phrase | Part], last: str = "and") -> Phrase:
    """Put commas between phrases, and a word before the last."""
    found = list(phrases)
    return join((join(found[:-1], ", "), *found[-1:]) if found[1:] else found, f" {last} ")


def _words(part: Part) -> str:
    match part:
        case str():
            return part
        case Badge():
            return f"* {part.verdict} {part.note}".rstrip()  # a shape, the word, the note
        case _:
            return part.text


def count(number: int, noun: str, many: str | None = None) -> str:
    """'1 row', '2 rows'."""
    return f"{number:,} {noun if number == 1 else many or noun + 's'}"


def enumerated(words: Iterable[str], last: str = "and") -> str:
    """'a', 'a and b', 'a, b and c'."""
    found = list(words)
    return f" {last} ".join(part for part in (", ".join(found[:-1]), *found[-1:]) if part)


def fitting(words: Iterable[str], width: int, noun: str) -> str:
    """As many words as fit ``width`` characters, then 'and n more'; only their number where none fits."""
    found = list(words)
    for shown in range(len(found), 0, -1):
        rest = len(found) - shown
        text = ", ".join(found[:shown]) + (f" and {rest} more" if rest else "")
        if len(text) <= width:
            return text
    return clip(found[0], width) if len(found) == 1 and width >= 12 else count(len(found), noun) if found else ""


def clip(text: str, width: int) -> str:
    """Cut text to ``width`` characters, at a word where one ends near, and show the cut."""
    if len(text) <= width:
        return text
    cut = text[: width - 1]
    space = cut.rfind(" ")
    return (cut[:space] if space > width * 2 // 3 else cut).rstrip(" ,;:") + "…"


def shortened(phrase: Phrase, width: int) -> Phrase:
    """Cut a phrase to ``width`` characters of text, its marks kept."""
    if len(phrase.text) <= width:
        return phrase
    kept: list[Part] = []
    left = width
    for part in phrase.parts:
        words = _words(part)
        if isinstance(part, Badge):
            room = left - len(part.verdict) - 3
            kept.append(Badge(part.verdict, clip(part.note, room) if room > 3 else ""))  # its word is never cut
            left -= len(words)
            continue
        if len(words) < left:
            kept.append(part)
            left -= len(words)
            continue
        if left > 1:
            cut = clip(words, left)
            match part:
                case Link():
                    kept.append(Link(cut, part.to))
                case str():
                    kept.append(cut)
                case _:
                    kept.append(type(part)(cut))
        break
    return Phrase(tuple(kept))


LONG = 100  # characters from which on a cut says how much there was

# C0 and C1 controls, marks that reorder or hide text, half surrogates, and what XML has no way to write
_ODD = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u2064\u2066-\u206f\ufeff\ufff9-\ufffb"
    "\ud800-\udfff\ufdd0-\ufdef\ufffe\uffff\U000e0000-\U000e0fff]"
)


def _picture(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "␡" if code == 0x7F else f"[U+{code:04X}]"


def visible(text: str) -> str:
    """Show each control character, and each one that would reorder or hide text, as a visible mark."""
    if text.isascii() and text.isprintable():
        return text
    return _ODD.sub(_picture, text.replace("\r\n", "\n"))


@lru_cache(maxsize=1 << 16)  # the same titles stand on many pages
def prose(text: str) -> str:
    """Text on one line, as YAML's folded and written prose is meant."""
    return visible(" ".join(text.split()))


def value(text: str | None, width: int = 200) -> str:
    """A value from the database on one line: NULL, line ends shown, very long ones cut and counted."""
    if text is None:
        return "NULL"
    shown = visible(text).replace("\n", "⏎").replace("\t", "⇥")
    if len(shown) > width:
        return f"{shown[: width - 1]}…" + (f" ({len(text):,} characters)" if width >= LONG else "")
    return f"'{shown}'" if shown == "NULL" or not shown.strip() else shown
