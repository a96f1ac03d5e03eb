"""Whatever stands in the files, reading them gives a catalogue or findings, never a traceback."""

from __future__ import annotations

import copy
import random
import tempfile
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from failure_matrix.catalogue.findings import CatalogueInvalid, Finding
from failure_matrix.catalogue.load import load
from failure_matrix.catalogue.rules import check

ROOT = Path(__file__).parents[2]
WHOLE = [*sorted((ROOT / "matrix").rglob("*.yaml")), ROOT / "examples" / "smallest" / "matrix.yaml"]
TEXTS = [path.read_text(encoding="utf-8") for path in WHOLE]
BITS = [
    "", " ", "#", " #x", "\t", "\n", ":", ": ", "- ", ",", "{", "}", "[", "]", "'", '"', "|", ">", "&a ", "*a", "!",
    "%", "@", "?", "<<: ", "~", "null", "true", "1", "-1", "0x", "1e999", ".nan", "$x", "$", ":x", ";", "(", "--", "/*",
    "\\", "absent", "otherwise", "now", "é", "\u2028", "\x85", "\ufeff", "\x00", "'\\ud800'", "9" * 5000, "x/../y",
    "command",
]  # fmt: skip


def read(*files: str | bytes) -> tuple[Finding, ...]:
    with tempfile.TemporaryDirectory() as directory:
        for number, text in enumerate(files):
            data = text if isinstance(text, bytes) else text.encode("utf-8", "surrogatepass")
            (Path(directory) / f"{number}.yaml").write_bytes(data)
        try:
            found = check(load(Path(directory)))
        except CatalogueInvalid as invalid:
            found = invalid.findings
            assert found
        assert all("\n" not in one.message + one.hint and one.place.line > 0 and one.place.column > 0 for one in found)
        return found


@given(st.binary())
def test_any_bytes(data: bytes) -> None:
    read(data)


@given(st.sampled_from(TEXTS), st.randoms(use_true_random=False), st.integers(1, 4))
@settings(max_examples=80, deadline=None)
def test_mangled_text(text: str, chance: random.Random, times: int) -> None:
    for _ in range(times):
        text = _mangled(text, chance)
    read(text, "catalogue: {title: A test}\n")


def _mangled(text: str, chance: random.Random) -> str:
    lines = text.split("\n")
    one, other = chance.randrange(len(lines)), chance.randrange(len(lines))
    match chance.randrange(6):
        case 0:
            del lines[one]
        case 1:
            lines.insert(other, lines[one])
        case 2:
            lines[one], lines[other] = lines[other], lines[one]
        case 3:
            lines[one] = " " * chance.randrange(9) + lines[one].lstrip()
        case 4:
            at = chance.randrange(len(lines[one]) + 1)
            lines[one] = lines[one][:at] + chance.choice(BITS) + lines[one][at + chance.randrange(3) :]
        case _:
            at = chance.randrange(len(text) + 1)
            return text[:at] + chance.choice(BITS) + text[at + chance.randrange(9) :]
    return "\n".join(lines)


VALUES: st.SearchStrategy[Any] = st.sampled_from(
    [None, True, 0, -1, 10**30, 1.5, float("nan"), "", "x", "absent", "ready", "job", "A", "$x", ":x", [], {}, [[]],
     [{}], {"file": "x"}, {"file": "../.."}, {"text": "SELECT :x", "params": "named"}, {"package": "os", "path": "."},
     {"job": {1: "ready"}}, {"job": {(1, 2): "ready"}}, {"id": 1}, ["x", "y"], {"x": None}, {"candidate/x": 1}]
)  # fmt: skip


@given(st.sampled_from(TEXTS), st.randoms(use_true_random=False), st.lists(VALUES, min_size=1, max_size=4))
@settings(max_examples=80, deadline=None)
def test_mangled_structure(text: str, chance: random.Random, values: list[Any]) -> None:
    data = yaml.load(text, Loader=yaml.CSafeLoader)
    for value in values:
        _replace(data, copy.deepcopy(value), chance)
    read(yaml.dump(data, Dumper=yaml.Dumper, allow_unicode=True), "catalogue: {title: A test}\n")


def _replace(data: Any, value: Any, chance: random.Random) -> None:
    """Put a value, or one from elsewhere, somewhere into a tree: over another, or under another's key."""
    places = list(_places(data))
    if not places:
        return
    where, key = chance.choice(places)
    match chance.randrange(4):
        case 0:
            where[key] = value
        case 1:
            there, other = chance.choice(places)
            if isinstance(where, dict):
                where[other if isinstance(other, str) else key] = copy.deepcopy(there[other])
        case 2:
            del where[key]
        case _:
            if isinstance(where, dict):
                where["absent" if isinstance(value, list | dict | type(None)) else value] = where[key]


def _places(data: Any) -> list[tuple[Any, Any]]:
    keys = list(data) if isinstance(data, dict) else list(range(len(data)))
    inner = [place for key in keys if isinstance(data[key], dict | list) for place in _places(data[key])]
    return [(data, key) for key in keys] + inner


@pytest.mark.parametrize("template", ["{}", "a: {}", "catalogue: {{title: {}}}", "states: {{{}: {{}}}}"])
def test_every_bit_in_small_places(template: str) -> None:
    for bit in BITS:
        read(template.format(bit))
