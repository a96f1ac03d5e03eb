"""The manifest of a site: which files are ours, by name and digest. What is not as it says is somebody else's."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path

NAME = "manifest.json"
FORMAT = "failure-matrix/site/1"


def made(files: Mapping[str, bytes]) -> bytes:
    """Write the manifest of these files."""
    digests = {path: hashlib.sha256(data).hexdigest() for path, data in sorted(files.items())}
    return (json.dumps({"format": FORMAT, "files": digests}, indent=1) + "\n").encode()


def read(directory: Path) -> dict[str, str] | None:
    """Path -> sha256 as the directory's manifest names them; None where it carries none of ours."""
    try:
        found = json.loads((directory / NAME).read_bytes())
    except (OSError, ValueError, RecursionError):
        return None
    if not isinstance(found, dict) or found.get("format") != FORMAT or not isinstance(found.get("files"), dict):
        return None
    return {str(path): str(digest) for path, digest in found["files"].items()}


def held(directory: Path) -> Iterator[str]:
    """Every file below a directory, as relative paths; symbolic links count as files and are not followed."""
    for top, directories, files in os.walk(directory):
        here = Path(top)
        directories.sort()
        links = [name for name in directories if (here / name).is_symlink()]
        for name in sorted((*files, *links)):
            yield (here / name).relative_to(directory).as_posix()


def strangers(directory: Path, named: Mapping[str, str]) -> Iterator[str]:
    """The files that a manifest does not name."""
    return (path for path in held(directory) if path not in named and path != NAME)


def empty(directory: Path, named: Mapping[str, str]) -> Iterator[str]:
    """The directories that hold nothing, and that no file of ours would be in."""
    ours = {parent.as_posix() for path in named for parent in Path(path).parents}
    for top, directories, files in os.walk(directory):
        path = Path(top).relative_to(directory).as_posix()
        if not (directories or files or path in ours or path == "."):
            yield f"{path}/"


def changed(directory: Path, named: Mapping[str, str]) -> Iterator[str]:
    """The files that a manifest names and that are not as it says: somebody has changed them, or put them there."""
    return (path for path in held(directory) if path in named and not _is(directory / path, named[path]))


def _is(path: Path, digest: str) -> bool:
    """Whether a file has this digest; of one that is gone nothing can be lost."""
    try:
        return not path.is_symlink() and hashlib.sha256(path.read_bytes()).hexdigest() == digest
    except FileNotFoundError:
        return True


def remove(directory: Path, named: Mapping[str, str], *, unfinished: bool = False) -> bool:
    """Delete what is as the manifest says, then directories that are empty; False where something else was there.

    unfinished: a build died while it wrote these files, so their names must do.
    """
    for path in list(held(directory)):
        if path in named and (unfinished or _is(directory / path, named[path])):
            (directory / path).unlink(missing_ok=True)
    if any(strangers(directory, {})):
        return False
    (directory / NAME).unlink(missing_ok=True)
    for top, _, _ in os.walk(directory, topdown=False):
        try:
            Path(top).rmdir()
        except OSError:
            return False  # something came in while we were at it: it stays
    return True
