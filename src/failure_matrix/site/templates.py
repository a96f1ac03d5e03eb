"""Where templates come from, and what is said when one is wrong."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import jinja2
from jinja2.bccache import Bucket

import failure_matrix
from failure_matrix.catalogue.findings import CouldNot


def builtin() -> Path:
    """The templates that came with the package: inside it when installed, beside ``src`` in a checkout."""
    package = Path(failure_matrix.__file__).parent
    inside = package / "templates"
    return inside if inside.is_dir() else package.parent.parent / "templates"


class _Compiled(jinja2.BytecodeCache):
    """Compiled templates for as long as the process lives: a second build compiles none."""

    def __init__(self) -> None:
        self._code: dict[str, bytes] = {}

    def load_bytecode(self, bucket: Bucket) -> None:
        if bucket.key in self._code:
            bucket.bytecode_from_string(self._code[bucket.key])

    def dump_bytecode(self, bucket: Bucket) -> None:
        self._code[bucket.key] = bucket.bytecode_to_string()


_COMPILED = _Compiled()


def environment(own: Path | None, finalize: Callable[[object], object]) -> jinja2.Environment:
    """A strict environment; a template in ``own`` replaces the built-in one of the same name. Raises CouldNot."""
    places = [builtin()]
    if own is not None:
        if not own.is_dir():
            raise CouldNot(
                f"use the templates in '{own}': it is not a directory", "Name the directory that holds them."
            )
        places.insert(0, own)
    return jinja2.Environment(
        loader=jinja2.FileSystemLoader(places),
        undefined=jinja2.StrictUndefined,
        autoescape=True,
        trim_blocks=True,
        lstrip_blocks=True,
        auto_reload=False,
        cache_size=-1,
        bytecode_cache=_COMPILED,
        finalize=finalize,
    )


def compile_all(environment: jinja2.Environment, kind: str) -> None:
    """Compile every template of one kind. Raises jinja2.TemplateError."""
    for name in environment.list_templates(extensions=["j2"]):
        if name.startswith(f"{kind}/"):
            environment.get_template(name)


@contextmanager
def told() -> Iterator[None]:
    """Turn what a template does wrong into CouldNot, with template and line."""
    try:
        yield
    except jinja2.TemplateSyntaxError as exc:
        raise CouldNot(f"read template '{exc.filename or exc.name}', line {exc.lineno}: {exc.message}", _MEND) from exc
    except jinja2.TemplateNotFound as exc:
        raise CouldNot(f"find template '{exc.name}'", _MEND) from exc
    except jinja2.TemplateError as exc:
        frames = [
            frame
            for frame in traceback.extract_tb(exc.__traceback__)
            if frame.filename.endswith((".j2", ".css", ".js"))
        ]
        where = f"'{frames[-1].filename}', line {frames[-1].lineno}" if frames else "a template"
        raise CouldNot(f"render {where}: {exc.message}", _MEND) from exc


_MEND = "Mend the template; the ones that came with the package are always there to compare."
