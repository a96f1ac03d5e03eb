"""The manifest of a site: which files are ours, with their digests. What it does not name is somebody else's."""

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


def remove(directory: Path, named: Mapping[str, str]) -> bool:
    """Delete what the manifest names, then directories that are empty; False where something else was there."""
    for path in list(held(directory)):
        if path in named:
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
