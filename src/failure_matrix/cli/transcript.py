"""What each step did, for ``matrix verify --verbose``: a line a step, and what it left behind."""

from __future__ import annotations

from collections.abc import Iterator

from failure_matrix.cli.layout import beside
from failure_matrix.evidence.records import Evidence, ScenarioRecord, Seen, StepRecord

NOBODY = "-"  # the session of a step on the world


def transcript(evidence: Evidence, columns: int) -> Iterator[str]:
    """Give the steps of every scenario that ran, as many lines as they need."""
    for record in evidence.scenarios:
        yield ""
        yield from beside("", f"{record.id}: {record.title}", columns)
        yield from _scenario(record, columns)


def _scenario(record: ScenarioRecord, columns: int) -> Iterator[str]:
    sessions = max((len(step.in_ or NOBODY) for step in record.steps), default=1)
    given = "; ".join(map(_seen, record.given)) or "nothing"
    yield from beside(f"{'':>5}{NOBODY:<{sessions}}  ", f"given: {given}", columns)
    for step in record.steps:
        yield from beside(f"{step.number:>3}  {step.in_ or NOBODY:<{sessions}}  ", _step(step), columns)
    if record.not_run:
        yield from beside("     ", f"not run: step {', '.join(map(str, record.not_run))}", columns)


def _step(step: StepRecord) -> str:
    bound = ", ".join(f"{name} {'null' if value is None else value}" for name, value in step.with_.items())
    did = f"{step.name or step.text}{f' ({bound})' if bound else ''}"
    return "; ".join((f"{did}: {_answer(step)}" if step.verb in ("do", "sql") else did, *_after(step)))


def _answer(step: StepRecord) -> str:
    if step.error is not None:
        return f"{step.error.severity} {step.error.sqlstate}: {step.error.message}"
    if step.rows is None:
        return "done"
    return "1 row" if step.rows == 1 else f"{step.rows} rows"


def _after(step: StepRecord) -> Iterator[str]:
    if step.waits:
        free = f" until step {step.released_by}" if step.released_by else ""
        yield f"waits for {', '.join(step.waits)}{free}"
    for change in step.moves:
        yield f"{change.subject} {', '.join(change.key)}: {change.from_} -> {change.to}"
    for name in step.breaks:
        yield f"breaks {name}, as declared"


def _seen(seen: Seen) -> str:
    return f"{seen.subject} {', '.join(seen.key)} is {seen.state}"
