"""A guardian process as its owner sees it."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any

from failure_matrix.catalogue.findings import CouldNot


class Keeper:
    """A guardian process that lives until ``close``, or until we die."""

    def __init__(self, argv: Sequence[str], orders: Mapping[str, Any]) -> None:
        self._process = subprocess.Popen(
            argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
        )
        self.tell(orders)

    def tell(self, message: Mapping[str, Any]) -> None:
        """Send one line; it counts from now on, even if we die before the guardian has read it."""
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps(message).encode() + b"\n")
        except BrokenPipeError as exc:
            raise self._lost() from exc

    def answer(self) -> dict[str, Any]:
        """Wait for the next answer."""
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line.endswith(b"\n"):
            raise self._lost()
        answer: dict[str, Any] = json.loads(line)
        return answer

    def close(self) -> tuple[str, ...]:
        """End it, wait until it is gone, and return what it could not take away."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        with self._process.stdout as answers:
            left = [line for answer in answers for line in json.loads(answer).get("left", ())]
        status = self._process.wait()
        return (*left, *([f"what its guardian made: that process ended with status {status}"] if status else ()))

    def _lost(self) -> CouldNot:
        status = self._process.wait()
        return CouldNot(
            "go on: the process that guards the temporary server is gone",
            f"its status was {status}; what it wrote, if anything, stands above",
            "run it again.",
        )
