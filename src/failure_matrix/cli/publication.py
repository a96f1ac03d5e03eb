"""What ``matrix build`` says: what was published, or what differs, and the verdict last."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from failure_matrix.cli import report
from failure_matrix.cli.items import counts, items
from failure_matrix.cli.terminal import harmless, say
from failure_matrix.evidence.records import Evidence
from failure_matrix.site import Difference, Published

MOST = 20  # differences that are listed; the count says how many there are


def told(published: Published, evidence: Evidence, site: Path) -> Iterator[str]:
    """Say what was put where."""
    yield from published.notes
    what = "published" if published.changed else "unchanged"
    yield harmless(f"{site}: {what}, {published.files} files; begin with {site / 'index.html'}")
    yield _verdict(evidence)


def compared(differences: Sequence[Difference], evidence: Evidence, site: Path) -> Iterator[str]:
    """Say what differs from the site that is there, and how to mend it."""
    for difference in differences[:MOST]:
        yield harmless(f"{site / str(difference)}", keep="\n")
    if len(differences) > MOST:
        yield f"and {len(differences) - MOST} more"
    if differences:
        yield harmless(f"{site} is not what the catalogue gives: run matrix build and commit what it writes.")
    else:
        yield harmless(f"{site} is what the catalogue gives.")
    yield _verdict(evidence)


def code(evidence: Evidence, differences: Sequence[Difference] = ()) -> int:
    """Give the exit code: a bad verdict is 1, and so is a committed site that differs."""
    return 1 if differences else report.code(evidence.verdict)


def waiting() -> None:
    """Say that another build is at work."""
    say("another build is at work there; this one waits for its end")


def _verdict(evidence: Evidence) -> str:
    return f"{evidence.verdict}: {counts(items(evidence))}."
