"""Publication, fenced: written beside the site, then swapped in. A crash leaves the old site or the new one, whole.

Everything happens under a lock, and under it every name beside the site has one meaning:

``.site.lock``       held by the builder at work; left behind by one that died, it names the site that it was making
``.site.candidate``  before the swap the site to come, after it the one that was; ours as far as its manifest says so
``.site.previous``   where the system can't exchange two directories: the old site between two renames
"""

from __future__ import annotations

import fcntl
import hashlib
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.site import manifest
from failure_matrix.site.swap import exchange, flush, flush_one

MOST_LISTED = 10
_MOVE = "Move them away, or name another --site."
_CHANGED = "Keep what you wrote elsewhere and remove them, or name another --site."


@dataclass(frozen=True, kw_only=True)
class Published:
    """What a publication did. ``notes`` tell what it found of an earlier one that was cut short."""

    files: int
    changed: bool
    notes: tuple[str, ...]


def publish(files: Mapping[str, bytes], site: Path, *, waiting: Callable[[], None] = lambda: None) -> Published:
    """Put these files, and nothing else, at ``site`` in one instant.

    waiting: called once when another build is at work there, before waiting for its end. Raises CouldNot where the
    path is not free for us: a file, a symbolic link, a directory that holds what no manifest of ours names.
    """
    site = Path(os.path.abspath(site))  # noqa: PTH100 - resolve() would follow a symbolic link at its end
    refuse(site)
    try:
        site.parent.mkdir(parents=True, exist_ok=True)
        with _lock(site, waiting) as lock:
            return _publish(files, site, lock)
    except OSError as exc:
        raise CouldNot(f"publish to '{site}': {exc.strerror} ({exc.filename})", "The site there is as it was.") from exc


def _publish(files: Mapping[str, bytes], site: Path, lock: int) -> Published:
    candidate, previous = _beside(site, "candidate"), _beside(site, "previous")
    notes = _recover(site, candidate, previous, lock)
    refuse(site)
    data = manifest.made(files)
    if _stands(site, data):
        return Published(files=len(files), changed=False, notes=notes)
    _intend(lock, data)
    try:
        _write(candidate, files, data)
    except OSError:
        _clear(candidate, _digest_of(data))  # a full disk, say: nothing of it stays
        raise
    _swap(site, candidate, previous)
    return Published(files=len(files), changed=True, notes=notes)


def _beside(site: Path, what: str) -> Path:
    return site.with_name(f".{site.name}.{what}")


def refuse(site: Path) -> None:
    """Raise CouldNot where something is at the path that is not a site of ours; asked before long work too."""
    if not site.absolute().name:
        raise CouldNot(f"publish to '{site}': that is no directory of its own", "Name another --site.")
    if site.is_symlink():
        raise CouldNot(f"publish to '{site}': it is a symbolic link", "Name the directory itself, or remove the link.")
    if not site.exists():
        return
    if not site.is_dir():
        raise CouldNot(f"publish to '{site}': it is a file", "Name another --site, or remove it.")
    try:
        for why, paths, mend in _foreign(site, manifest.read(site)):
            if foreign := _listed(paths):
                raise CouldNot(f"publish to '{site}': {why}", *foreign, mend)
    except OSError as exc:
        raise CouldNot(f"publish to '{site}': {exc.strerror} ({exc.filename})", "Make it readable.") from exc


def _foreign(site: Path, named: Mapping[str, str] | None) -> Iterator[tuple[str, Iterator[str], str]]:
    """What may be there that is not ours: why, which files, what to do."""
    if named is None:
        yield "it holds files and no manifest of ours", manifest.held(site), _MOVE
        return
    yield "it holds files that its manifest does not name", manifest.strangers(site, named), _MOVE
    yield "it holds directories that are not ours", manifest.empty(site, named), _MOVE
    changed = list(manifest.changed(site, named))
    if changed and manifest.read(site) == named:  # else another build has put its site there meanwhile
        yield "files in it were changed since they were built", iter(changed), _CHANGED


def _listed(paths: Iterator[str]) -> list[str]:
    """The first few; a home directory is not read to its end."""
    few = [ascii(path) for path in islice(paths, MOST_LISTED)]
    return [*few, "and more"] if any(paths) else few


@contextmanager
def _lock(site: Path, waiting: Callable[[], None]) -> Iterator[int]:
    """Hold the site's lock; its file goes with it, so that no build leaves anything behind."""
    path = _beside(site, "lock")
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        try:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                waiting()
                fcntl.flock(descriptor, fcntl.LOCK_EX)
            # Whoever held it may have removed the file: then this is the lock of nothing.
            if path.exists() and os.path.samestat(os.fstat(descriptor), path.stat()):
                try:
                    yield descriptor
                finally:
                    path.unlink()
                return
        finally:
            os.close(descriptor)


def _intend(lock: int, data: bytes) -> None:
    """Write into the lock which site is being made, so that after a crash it can be told which one stands."""
    os.ftruncate(lock, 0)
    os.pwrite(lock, _digest_of(data).encode(), 0)
    os.fsync(lock)


def _recover(site: Path, candidate: Path, previous: Path, lock: int) -> tuple[str, ...]:
    """Clear away what a build that died has left, and say which site stands."""
    intended = os.pread(lock, 64, 0).decode("ascii", "replace")
    notes = []
    if not os.path.lexists(site) and manifest.read(previous) is not None:
        previous.rename(site)  # it died between its two renames
    for left in (candidate, previous):
        _clear(left, intended)
    if intended:
        stands = _digest_of(_bytes(site / manifest.NAME)) == intended
        notes.append(
            f"An earlier build was cut short; the site there was {'its new' if stands else 'still the old'} one, whole."
        )
    return tuple(notes)


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


def _digest_of(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _clear(left: Path, intended: str) -> None:
    """Remove a directory of an earlier build; CouldNot where it holds what is not ours.

    intended: the digest of the manifest that a build was to publish; its files may be half written.
    """
    if not os.path.lexists(left):
        return
    named = {} if left.is_symlink() else manifest.read(left) or {}
    unfinished = _digest_of(_bytes(left / manifest.NAME)) == intended
    if left.is_symlink() or not left.is_dir() or not manifest.remove(left, named, unfinished=unfinished):
        held = manifest.held(left) if left.is_dir() else iter(())
        raise CouldNot(
            f"clear '{left}', where builds put their candidate: it is not ours", *_listed(held), "Move it away."
        )


def _stands(site: Path, data: bytes) -> bool:
    """Tell whether this very site is there already, every file as its manifest says."""
    if _bytes(site / manifest.NAME) != data:
        return False
    named = manifest.read(site) or {}
    return all(_digest_of(_bytes(site / path)) == digest for path, digest in named.items())


def _write(candidate: Path, files: Mapping[str, bytes], data: bytes) -> None:
    """Write the whole site to come. The manifest is first: from then on every file can be told to be ours."""
    candidate.mkdir()
    (candidate / manifest.NAME).write_bytes(data)
    for directory in sorted({os.path.dirname(path) for path in files}):  # noqa: PTH120 - these are names, not files
        (candidate / directory).mkdir(parents=True, exist_ok=True)
    for path, content in files.items():
        (candidate / path).write_bytes(content)
    flush(candidate)


def _swap(site: Path, candidate: Path, previous: Path) -> None:
    """Put the candidate in the site's place, then delete what was there."""
    old = None
    if not os.path.lexists(site):
        candidate.rename(site)
    elif exchange(site, candidate):
        old = candidate
    else:
        site.rename(previous)
        candidate.rename(site)
        old = previous
    flush_one(site.parent)
    if old is not None:
        manifest.remove(old, manifest.read(old) or {})
