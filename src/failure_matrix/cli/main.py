"""The ``matrix`` command: which commands there are, and what an exception means to who ran it.

Exit codes: 0 good · 1 the catalogue, a verdict or a committed output is wrong · 2 could not run ·
3 a bug of ours · 130 ^C. A command is imported whole, but what it works with only when it runs,
so that ``matrix --help`` costs what typer costs.
"""

from __future__ import annotations

import gc
import io
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from typer.exceptions import TyperException

from failure_matrix.cli import build, check, export, init, rule, terminal, verify

WRONG, COULD_NOT, BUG, INTERRUPTED = 1, 2, 3, 130

app = typer.Typer(
    name="matrix",
    help="A failure matrix that is proved on a live PostgreSQL, and published.",
    rich_markup_mode=None,  # plain help: quick, and readable at any width
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command("init")(init.init)
app.command("check")(check.check)
app.command("verify")(verify.verify)
app.command("build")(build.build)
app.command("export")(export.export)
app.command("rule")(rule.rule)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version

        terminal.write([f"matrix {version('failure-matrix')}"])
        raise typer.Exit


@app.callback()
def _root(
    _: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version and exit.")
    ] = False,
) -> None:
    """A failure matrix that is proved on a live PostgreSQL, and published."""
    try:
        Path.cwd()
    except OSError as exc:
        from failure_matrix.catalogue.findings import CouldNot

        raise CouldNot(f"begin: the working directory is gone ({exc.strerror})", "Go to one that exists.") from exc


def run() -> None:
    """Run ``matrix`` with this process's arguments, and leave with its exit code."""
    gc.set_threshold(100_000, 50, 50)  # a command is over soon, and most of what it makes lives until then
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="backslashreplace")  # a terminal that lacks a letter still gets the message
    sys.exit(main(sys.argv[1:]))


def main(arguments: Sequence[str]) -> int:
    """Run one command and give its exit code; every exception ends here."""
    try:
        code: int = app(list(arguments) or ["--help"], prog_name="matrix", standalone_mode=False) or 0
    except TyperException as exc:
        return _say(*_usage(exc), "No verdict.", code=COULD_NOT)
    except Exception as exc:  # noqa: BLE001 - the one place where anything may end
        return _stopped(exc, untouched=arguments[:1] in (["verify"], ["build"]))
    if code == INTERRUPTED:  # typer makes this of ^C
        return _say("interrupted. No verdict.", code=INTERRUPTED)
    return code


def _usage(exc: TyperException) -> tuple[str, str]:
    context = getattr(exc, "ctx", None)
    command = context.command_path if context else "matrix"
    return f"could not understand the command line: {exc.format_message()}", f"  See {command} --help."


def _stopped(exc: Exception, *, untouched: bool) -> int:
    from failure_matrix.catalogue.findings import CatalogueInvalid, CouldNot

    match exc:
        case CouldNot():
            return _say(f"{exc}{' Earlier evidence is untouched.' if untouched else ''}", code=COULD_NOT)
        case CatalogueInvalid():
            from failure_matrix.cli import findings

            terminal.write(findings.as_text(exc.findings))
            return WRONG
        case _:
            return _bug(exc)


def _bug(exc: Exception) -> int:
    import traceback

    return _say(
        *"".join(traceback.format_exception(exc)).splitlines(),
        f"matrix has a bug: {type(exc).__name__} is above, with its traceback. It is our fault, not your catalogue's.",
        "  Please report it, with the catalogue if you may. No verdict.",
        code=BUG,
    )


def _say(*lines: str, code: int) -> int:
    terminal.say(*lines)
    return code
