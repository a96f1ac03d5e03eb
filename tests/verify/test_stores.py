"""Effects on real files: what each does, and that the sweep's simulation tells the same."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.catalogue.model import StoreEffect
from failure_matrix.verify.stores import EffectRefused, Stores, bind, simulate
from failure_matrix.verify.values import NotKept


@pytest.fixture
def stores(tmp_path: Path) -> Stores:
    return Stores(tmp_path, {"candidate": None, "other": None})


def effect(verb: str, target: str = "candidate/$name", content: str | None = None) -> StoreEffect:
    return StoreEffect.model_validate({verb: target, "content": content})


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.mark.parametrize(
    ("verb", "before", "after", "rows"),
    [
        ("create", None, b"new", 1),
        ("create", b"old", b"old", 0),
        ("write", None, b"new", 1),
        ("write", b"old", b"new", 1),
        ("remove", b"old", None, 1),
        ("remove", None, None, 0),
        ("truncate", b"abcd", b"ab", 1),
        ("truncate", b"a", b"", 1),
        ("truncate", None, None, 0),
        ("corrupt", b"\x00a", b"\xff\x9e", 1),
        ("corrupt", None, None, 0),
    ],
)
def test_an_effect(stores: Stores, verb: str, before: bytes | None, after: bytes | None, rows: int) -> None:
    if before is not None:
        stores.put("candidate", "a b.csv", before)
    noun = effect(verb, content="new" if verb in ("create", "write") else None)
    simulated, answer = simulate(stores.inventory(), noun, {"name": "a b.csv"})
    result = stores.apply(bind(noun, {"name": "a b.csv"}))
    assert (result.affected, len(result.rows)) == (rows, rows)
    assert (answer.affected, len(answer.rows)) == (rows, rows)
    found = [{**file, "modified": None} for file in stores.inventory()["candidate"]]
    assert found == (
        [] if after is None else [{"name": "a b.csv", "bytes": len(after), "sha256": digest(after), "modified": None}]
    )
    if verb in ("create", "write", "remove"):  # of the others it knows no bytes
        assert [{**file, "modified": None} for file in simulated["candidate"]] == found
    if rows and after is not None:
        assert result.rows == (("a b.csv", str(len(after)), digest(after)),)
    assert stores.inventory()["other"] == ()


@pytest.mark.parametrize("name", ["", ".", "..", "../x", "a/b", "/etc/passwd", "a\0b"])
def test_a_name_stays_in_its_store(stores: Stores, name: str) -> None:
    with pytest.raises(EffectRefused, match="is not a store and a file name"):
        bind(effect("write", content="x"), {"name": name})
    with pytest.raises(EffectRefused):
        stores.put("candidate", name, b"x")


def test_a_store_that_is_none(stores: Stores) -> None:
    for target in ("nowhere/x", "x"):
        with pytest.raises(EffectRefused):
            stores.apply(bind(effect("write", target, "x"), {}))
        with pytest.raises(EffectRefused):
            simulate(stores.inventory(), effect("write", target, "x"), {})


def test_names_and_content_are_bound() -> None:
    bound = bind(effect("write", "candidate/$name.$$", "of $who"), {"name": "x", "who": "A"})
    assert str(bound) == "write candidate/x.$"
    assert bound.content == b"of A"
    with pytest.raises(NotKept):
        bind(effect("write", content="$who"), {"name": "x"})


def test_what_the_file_system_refuses_is_no_verdict(stores: Stores) -> None:
    with pytest.raises(CouldNot, match="File name too long"):
        stores.apply(bind(effect("write", content="x"), {"name": "n" * 300}))
    with pytest.raises(CouldNot, match="File name too long"):
        stores.put("candidate", "n" * 300, b"x")


def test_clearing_leaves_nothing(stores: Stores) -> None:
    stores.put("candidate", "x", b"x")
    stores.put("other", "y", b"y")
    stores.clear()
    assert stores.inventory() == {"candidate": (), "other": ()}
