"""Where SQL is read from: a file beside the catalogue, or a file of an installed package."""

from __future__ import annotations

import importlib.machinery
import importlib.util
import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath

from failure_matrix.catalogue.rulebook import nearest
from failure_matrix.catalogue.sql import Kind, tokens

WORDS = ("text", "file", "package", "path", "command", "section", "params")
STYLES = ("named", "pyformat", "numeric", "none")


class NoSourceError(Exception):
    """SQL that cannot be read: what is wrong, and what to do."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Sources:
    """Reads each file once. Paths are relative to the catalogue's directory."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._texts: dict[Path, str] = {}

    def file(self, name: str, section: str | None) -> tuple[str, str]:
        """Give the text and its origin. Raises NoSourceError."""
        if PurePosixPath(name).is_absolute() or Path(name).is_absolute():
            raise NoSourceError(f"the file '{name}' is named by an absolute path", "name it relative to the catalogue")
        path = self._directory / name
        if not os.path.lexists(path):
            there = [found.relative_to(self._directory).as_posix() for found in sorted(self._directory.rglob("*.sql"))]
            hint = nearest(name, there, "paths start at the catalogue's directory")
            raise NoSourceError(f"there is no file '{name}'", hint)
        return self._part(path, name, section)

    def package(self, package: str, name: str, section: str | None) -> tuple[str, str]:
        """Give the text and its origin, without importing the package. Raises NoSourceError."""
        top, *below = package.split(".")
        spec = _spec(top)
        if spec is None or not spec.submodule_search_locations:
            raise NoSourceError(
                f"there is no package '{top}' here", f"install it beside this command: pip install {top}"
            )
        for location in spec.submodule_search_locations:
            path = Path(location, *below, name)
            if path.is_file():
                return self._part(path, f"{package}:{name}", section)
        raise NoSourceError(
            f"the package '{package}' has no file '{name}'", "name it relative to the package's directory"
        )

    def _part(self, path: Path, origin: str, section: str | None) -> tuple[str, str]:
        text = self._read(path, origin)
        if section is None:
            return text, origin
        parts = sections(text)
        if section not in parts:
            hint = nearest(section, parts, "a section begins with a line '-- name --' or '-- name: name'")
            raise NoSourceError(f"'{origin}' has no section '{section}'", hint)
        return parts[section], f"{origin}#{section}"

    def _read(self, path: Path, origin: str) -> str:
        if path not in self._texts:
            try:
                if not path.is_file():
                    raise NoSourceError(f"'{origin}' is no file", "name a text file of SQL")
                self._texts[path] = path.read_text(encoding="utf-8-sig")
            except UnicodeDecodeError as error:
                raise NoSourceError(f"'{origin}' is not UTF-8: byte {error.start + 1}", "save it as UTF-8") from error
            except OSError as error:
                raise NoSourceError(f"'{origin}' cannot be read: {error.strerror}", "make it readable") from error
        return self._texts[path]


def _spec(name: str) -> importlib.machinery.ModuleSpec | None:
    try:
        return importlib.util.find_spec(name) if name.isidentifier() else None
    except (ImportError, ValueError):  # ValueError: a module without a spec, such as __main__
        return None


_HEADING = re.compile(r"--[ \t]*(?:name:[ \t]*(?P<named>[\w.-]+).*|(?P<ruled>[\w.-]+)[ \t]+--+[ \t]*)$")


def sections(text: str) -> Mapping[str, str]:
    """Part a file at its ``-- name --`` and ``-- name: name`` headings; the first of two equal names wins."""
    headings = []
    for token in tokens(text, "none"):
        if token.kind is Kind.COMMENT and (found := _HEADING.match(token.text)):
            line = text.rfind("\n", 0, token.start) + 1
            if not text[line : token.start].strip():
                headings.append((found["named"] or found["ruled"], line, token.end))
    ends = [line for _, line, _ in headings[1:]] + [len(text)]
    parts: dict[str, str] = {}
    for (name, _, start), end in zip(headings, ends, strict=True):
        parts.setdefault(name, text[start:end].strip())
    return parts
