"""Keeps a temporary server for one owner, and takes it away when the owner is gone.

Runs as a process of its own, ``python -I -S guardian.py``, with nothing but the standard library. Standard input is
the owner's: its first line says what to do, later lines name files to remove at the end, and its end, whatever the
reason, is the end of everything here. Answers are JSON lines on standard output.
"""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

READY = "database system is ready to accept connections"
PORT = 5432  # only the name of the socket
STOP_LIMIT = 10.0  # seconds that a program has to go by itself
PR_SET_PDEATHSIG = 1


class StartError(Exception):
    """What could not be done, and the last lines that the program wrote."""

    def __init__(self, what: str, log: Sequence[str] = ()) -> None:
        super().__init__(what)
        self.what = what
        self.log = tuple(log)


class Watch:
    """One loop over the owner's pipe, signals, and what a child writes."""

    def __init__(self) -> None:
        self.gone = False  # the owner closed its end or died, or a signal asks us to go
        self.orders: dict[str, Any] | None = None  # the first line
        self.promised: set[str] = set()  # files to remove at the end
        self._heard = b""
        self._selector = selectors.DefaultSelector()
        self.listen(sys.stdin.fileno(), self._hear_owner)
        self._signals, writing = os.pipe()
        os.set_blocking(self._signals, False)
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: None)
        self.listen(self._signals, self._hear_signals)

    def listen(self, descriptor: int, hear: Callable[[], None]) -> None:
        self._selector.register(descriptor, selectors.EVENT_READ, hear)

    def ignore(self, descriptor: int) -> None:
        self._selector.unregister(descriptor)

    def until(self, done: Callable[[], bool], seconds: float | None = None) -> bool:
        """Handle what comes until ``done``; false when the time is up first."""
        deadline = None if seconds is None else time.monotonic() + seconds
        while not done():
            left = None if deadline is None else deadline - time.monotonic()
            if left is not None and left <= 0:
                return False
            for key, _ in self._selector.select(left):
                key.data()
        return True

    def report(self, **answer: Any) -> None:
        """Answer the owner; one that cannot hear is gone, and then standard error may know somebody who can."""
        try:
            os.write(sys.stdout.fileno(), json.dumps(answer).encode() + b"\n")
        except OSError:
            self.gone = True
            sys.stderr.write("".join(f"{line}\n" for line in answer.get("left", ())))

    def remove(self, directory: str | None, *left: str) -> None:
        """Remove a directory and every promised file; report what stays, and what else was ``left``."""
        stays = list(left)
        for path in self.promised:
            try:
                Path(path).unlink(missing_ok=True)
            except OSError as exc:
                stays.append(str(exc))
        if directory is not None:
            shutil.rmtree(directory, ignore_errors=True)
            stays += [f"{directory} is not empty"] if Path(directory).exists() else []
        if stays:
            self.report(left=stays)

    def _hear_owner(self) -> None:
        heard = os.read(sys.stdin.fileno(), 65536)
        if not heard:  # a last line without its end was never sent in full
            self.gone = True
            self.ignore(sys.stdin.fileno())
        *lines, self._heard = (self._heard + heard).split(b"\n")
        for line in lines:
            message = json.loads(line)
            if self.orders is None:
                self.orders = message
            elif "remove" in message:
                self.promised.add(message["remove"])
            else:
                self.promised.discard(message["keep"])

    def _hear_signals(self) -> None:
        heard = os.read(self._signals, 4096)
        self.gone = self.gone or any(number != signal.SIGCHLD for number in heard)


class Child:
    """One program, its last words, and whether it and all that it started are gone."""

    def __init__(self, watch: Watch, argv: Sequence[str], orders: Mapping[str, Any], directory: Path) -> None:
        self.argv = argv
        self.words: deque[str] = deque(maxlen=40)
        self.ready = False
        self._watch = watch
        self._silent = False  # nobody is left who could write
        self._said = b""
        try:
            self._process = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                bufsize=0,
                cwd=directory,
                env=orders["environment"],
                start_new_session=True,
                preexec_fn=_die_with_us(),  # noqa: PLW1509 - this process has one thread
                **(orders["user"] or {}),
            )
        except (OSError, subprocess.SubprocessError) as exc:
            raise StartError(f"{argv[0]} could not be run: {exc}") from exc
        assert self._process.stderr is not None
        self._reading = self._process.stderr.fileno()
        watch.listen(self._reading, self._hear)

    @property
    def status(self) -> int | None:
        return self._process.poll()

    @property
    def gone(self) -> bool:
        return self.status is not None and self._silent

    def stop(self, number: signal.Signals) -> None:
        """Ask it to go, and see that it does."""
        if self.status is None:
            self._process.send_signal(number)
        if self._watch.until(lambda: self.gone, STOP_LIMIT):
            return
        try:
            os.killpg(self._process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):  # only what left its group still writes
            return
        self._watch.until(lambda: self.gone, STOP_LIMIT)

    def complaint(self, limit: float) -> StartError:
        """Tell how it went wrong; still running means that it took too long."""
        name = " ".join(self.argv[:3])
        status = self.status
        if status is None:
            return StartError(f"it did not start within {limit:g} s ({name} …)", self.words)
        how = f"signal {signal.Signals(-status).name}" if status < 0 else f"status {status}"
        return StartError(f"{name} … ended with {how}", self.words)

    def _hear(self) -> None:
        said = os.read(self._reading, 65536)
        if not said:
            self._silent = True
            self._watch.ignore(self._reading)
        *lines, self._said = (self._said + said).split(b"\n")
        for line in (line.decode(errors="replace") for line in lines if line.strip()):
            self.words.append(line)
            self.ready = self.ready or READY in line


def _die_with_us() -> Callable[[], None] | None:
    """What makes a child go even when we are killed; Linux has a way."""
    if sys.platform != "linux":
        return None
    prctl, parent = ctypes.CDLL(None).prctl, os.getpid()

    def ask() -> None:  # runs in the child as its final user, since a change of user clears it
        prctl(PR_SET_PDEATHSIG, signal.SIGQUIT)
        if os.getppid() != parent:
            os._exit(1)

    return ask


def claim(root: str) -> int:
    """Lock the directory: who can take the lock later knows that it was left behind."""
    descriptor = os.open(f"{root}/new-lock", os.O_CREAT | os.O_RDWR, 0o600)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    Path(root, "new-lock").rename(Path(root, "lock"))  # so nobody sees it unlocked
    return descriptor


def _furnish(orders: Mapping[str, Any], root: Path) -> tuple[Path, Path]:
    """Make the owner's directory and the server's."""
    user = orders["user"]
    os.umask(0o022)  # what is copied must be readable for the server's user
    files, server = root / "files", root / "server"
    files.mkdir(mode=0o700)
    server.mkdir(mode=0o700)
    if user is not None:
        root.chmod(0o711)
        os.chown(server, user["user"], user["group"])
    for source, target in orders["copy"]:
        _copy(Path(source), root / target)
    return files, server


def _copy(source: Path, target: Path) -> None:
    """Copy what a running server needs, but not what is there to build others."""
    if source.is_dir():
        target.mkdir(parents=True)
        for inner in source.iterdir():
            if inner.suffix != ".a" and inner.name != "pgxs":
                _copy(inner, target / inner.name)
    else:
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(source, target)
        if os.access(source, os.X_OK):
            target.chmod(0o755)


def _prepare(watch: Watch, orders: Mapping[str, Any], root: Path, server: Path, deadline: float) -> None:
    argv = [str(root / orders["programs"] / "initdb"), "-D", str(server / "data"), *orders["initdb"]]
    child = Child(watch, argv, orders, server)
    watch.until(lambda: watch.gone or child.gone, deadline - time.monotonic())
    failed = None if child.status == 0 or watch.gone else child.complaint(orders["limit"])
    # only initdb itself is told: the servers it started then end by themselves and leave no shared memory
    child.stop(signal.SIGTERM)
    if failed is not None:
        raise failed


def _start(watch: Watch, orders: Mapping[str, Any], root: Path, server: Path, deadline: float) -> Child:
    socket = '"' + str(server).replace('"', '""') + '"'  # quoted, as it is read as a list
    settings = {**orders["settings"], "unix_socket_directories": socket, "port": str(PORT)}
    argv = [str(root / orders["programs"] / "postgres"), "-D", str(server / "data")]
    argv += [word for name, value in settings.items() for word in ("-c", f"{name}={value}")]
    child = Child(watch, argv, orders, server)
    watch.until(lambda: watch.gone or child.gone or child.ready, deadline - time.monotonic())
    if watch.gone or child.ready:
        return child
    failed = child.complaint(orders["limit"])
    child.stop(signal.SIGQUIT)
    raise failed


def _serve(watch: Watch, orders: Mapping[str, Any], root: Path) -> None:
    deadline = time.monotonic() + orders["limit"]
    files, server = _furnish(orders, root)
    _prepare(watch, orders, root, server, deadline)
    if watch.gone:
        return
    child = _start(watch, orders, root, server, deadline)
    try:
        watch.report(ready={"directory": str(files), "socket": str(server), "port": str(PORT)})
        watch.until(lambda: watch.gone)
    finally:
        child.stop(signal.SIGQUIT)


def main() -> None:
    watch = Watch()
    os.chdir("/")  # hold nobody's directory
    watch.until(lambda: watch.gone or watch.orders is not None)
    if watch.gone or watch.orders is None:
        return
    root = None
    try:
        root = tempfile.mkdtemp(prefix="matrix-", dir=watch.orders["parent"])
        claim(root)
        _serve(watch, watch.orders, Path(root))
    except StartError as failed:
        watch.report(failed={"what": failed.what, "log": failed.log})
    except OSError as exc:
        watch.report(failed={"what": str(exc), "log": []})
    finally:
        watch.remove(root)


if __name__ == "__main__":
    main()
