"""Stores of a verification: real files in a temporary directory, and effects on them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.catalogue.model import Scalar, StoreEffect
from failure_matrix.database.answers import Result
from failure_matrix.database.relations import Inventory
from failure_matrix.verify.values import Kept, as_text, substitute

_ADVICE = "look at the name, and at the room where TMPDIR points; then run it again."


class EffectRefused(Exception):
    """An effect that names no file of a store: the catalogue is wrong. ``str()`` says how."""


@dataclass(frozen=True, kw_only=True)
class Effect:
    """A store effect with its names and content bound."""

    verb: str
    store: str
    name: str
    content: bytes | None

    def __str__(self) -> str:
        return f"{self.verb} {self.store}/{self.name}"


def bind(effect: StoreEffect, values: Kept) -> Effect:
    """The effect with each ``$name`` replaced. Raises NotKept, EffectRefused."""
    store, slash, name = (as_text(substitute(effect.target, values)) or "").partition("/")
    if not slash:
        raise EffectRefused(f"'{effect.target}' gives '{store}', which is not a store and a file name")
    _checked(store, name)
    content = as_text(substitute(effect.content, values))
    return Effect(verb=effect.verb, store=store, name=name, content=None if content is None else content.encode())


def _checked(store: str, name: str) -> str:
    """A file's name that stays in its directory. Raises EffectRefused for any other."""
    if not name or "/" in name or name in (".", "..") or "\0" in name:
        raise EffectRefused(f"'{store}/{name}' is not a store and a file name: the name is one part, without '/'")
    return name


class Stores:
    """The files of all stores, each in a directory of its own under ``directory``."""

    def __init__(self, directory: Path, ids: Mapping[str, object]) -> None:
        self._directories = {id: directory / id for id in ids}
        for path in self._directories.values():
            path.mkdir(parents=True, exist_ok=True)

    def clear(self) -> None:
        for directory in self._directories.values():
            for path in directory.iterdir():
                path.unlink()

    def inventory(self) -> Inventory:
        """What is there, by name, with sizes in bytes and digests in hex."""
        return {id: tuple(_file(path) for path in sorted(found.iterdir())) for id, found in self._directories.items()}

    def put(self, store: str, name: str, content: bytes) -> None:
        """Write a file. Raises EffectRefused, and CouldNot where the file system does not do it."""
        path = self._path(store, name)
        try:
            path.write_bytes(content)
        except OSError as exc:
            raise CouldNot(f"write {store}/{name} in a temporary directory: {exc.strerror}", _ADVICE) from exc

    def _path(self, store: str, name: str) -> Path:
        if store not in self._directories:
            raise EffectRefused(f"'{store}/{name}': '{store}' is no store")
        return self._directories[store] / _checked(store, name)

    def apply(self, effect: Effect) -> Result:
        """Do it; one row (name, bytes, sha256) of the file as it is then, no row where nothing was done.

        Raises EffectRefused, and CouldNot where the file system does not do it.
        """
        path = self._path(effect.store, effect.name)
        try:
            done = _apply(effect, path)
        except OSError as exc:
            raise CouldNot(f"{effect} in a temporary directory: {exc.strerror}", _ADVICE) from exc
        columns = ("name", "bytes", "sha256")
        if not done:
            return Result(tag=effect.verb, affected=0, columns=columns)
        row = _file(path) if path.exists() else {"name": effect.name, "bytes": None, "sha256": None}
        return Result(
            tag=effect.verb, affected=1, columns=columns, rows=(tuple(as_text(row[column]) for column in columns),)
        )


def _apply(effect: Effect, path: Path) -> bool:
    content = effect.content or b""
    match effect.verb:
        case "create":
            try:
                descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            except FileExistsError:
                return False
            with os.fdopen(descriptor, "wb") as file:
                file.write(content)
            return True
        case "write":
            path.write_bytes(content)
            return True
    if not path.exists():
        return False
    match effect.verb:
        case "remove":
            path.unlink()
        case "truncate":
            os.truncate(path, path.stat().st_size // 2)
        case "corrupt":
            # Same length, other bytes: a size check alone must not notice.
            path.write_bytes(bytes(byte ^ 0xFF for byte in path.read_bytes()) or b"\xff")
        case _:
            raise AssertionError(effect.verb)
    return True


def _file(path: Path) -> dict[str, Scalar]:
    status = path.stat()
    return {
        "name": path.name,
        "bytes": status.st_size,
        "sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "modified": datetime.fromtimestamp(status.st_mtime, UTC).isoformat(),
    }


def simulate(inventory: Inventory, effect: StoreEffect, values: Kept) -> tuple[Inventory, Result]:
    """What ``Stores.apply`` would do, to an inventory alone. Raises NotKept, EffectRefused."""
    bound = bind(effect, values)
    if bound.store not in inventory:
        raise EffectRefused(f"'{bound.store}/{bound.name}': '{bound.store}' is no store")
    files = {str(file["name"]): file for file in inventory[bound.store]}
    before = files.get(bound.name)
    after = _simulated(bound, before)
    columns = ("name", "bytes", "sha256")
    if after is before:
        return inventory, Result(tag=bound.verb, affected=0, columns=columns)
    files.pop(bound.name, None)
    if after is not None:
        files[bound.name] = after
    shown = after or {"name": bound.name, "bytes": None, "sha256": None}
    row = tuple(as_text(shown[column]) for column in columns)
    changed = {**inventory, bound.store: tuple(files[name] for name in sorted(files))}
    return changed, Result(tag=bound.verb, affected=1, columns=columns, rows=(row,))


def _simulated(effect: Effect, before: Mapping[str, Scalar] | None) -> Mapping[str, Scalar] | None:
    """The file afterwards, None where there is none; ``before`` itself where nothing is done."""
    content = effect.content or b""
    written: Mapping[str, Scalar] = {
        "name": effect.name,
        "bytes": len(content),
        "sha256": hashlib.sha256(content).hexdigest(),
        "modified": None if before is None else before["modified"],
    }
    match effect.verb:
        case "create":
            return written if before is None else before
        case "write":
            return written
        case "remove":
            return None
    if before is None:
        return None
    other = hashlib.sha256(f"{effect.verb} {before['sha256']}".encode()).hexdigest()
    size = int(str(before["bytes"]))
    return {**before, "sha256": other, "bytes": size // 2 if effect.verb == "truncate" else size}
