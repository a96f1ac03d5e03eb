"""One step of a scenario in words: what it does, what it shows, what is committed after it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from failure_matrix.catalogue.model import ABSENT
from failure_matrix.catalogue.sql import Kind, tokens
from failure_matrix.evidence.records import Change, Failure, Seen, StepRecord
from failure_matrix.site.book import Book, to_state
from failure_matrix.site.words import (
    Cell,
    Code,
    Phrase,
    Quiet,
    Strong,
    clip,
    count,
    enumerated,
    fitting,
    join,
    line,
    prose,
    say,
    value,
    visible,
)

MOST_KEYS = 6  # lines of the committed column
MOST_OF_A_ROW = 140  # characters of one row that a step returned


def joined(does: Phrase, shows: Iterable[Phrase]) -> Cell:
    found = join(shows, ", ")
    return (say(does, " → ", found) if found else does,)


def does(step: StepRecord, clock: str, file: str = "") -> Phrase:
    """What a step does; SQL that stands in a file goes by the file's name."""
    match step.verb:
        case "do" | "event":
            effect = (
                f" {clip(value(step.text, 60), 60)}"
                if step.verb == "event" and step.text and "\n" not in step.text
                else ""
            )
            return say(f"{step.verb} ", Code(step.name or ""), Quiet(effect) if effect else "")
        case "sql":
            return say("sql ", Code(clip(prose(file), 80) if file else clip(_uncommented(step.text) or "nothing", 80)))
        case "at":
            by = list(dict.fromkeys(by for change in step.moves for by in change.by))
            events = f", event {enumerated(by)}" if by else ""
            return say(Strong(f"clock {value(clock, 30) or '?'} → {value(step.at, 30)}"), events)
        case _:
            return say(f"{step.verb} ", clip(value(step.text or step.name or "", 60), 60))


def _uncommented(sql: str) -> str:
    """SQL on one line, without its comments."""
    kept = ("" if token.kind is Kind.COMMENT else token.text for token in tokens(sql, "numeric"))
    return visible(" ".join("".join(kept).split()))


def given_values(step: StepRecord) -> Cell:
    pairs = [f"{name} {value(given, 24)}" for name, given in sorted(step.with_.items())]
    return line(Quiet(fitting(pairs, 90, "value"))) if pairs and step.verb in ("do", "sql") else ()


def shows(step: StepRecord) -> Iterable[Phrase]:
    if step.waits:
        released = f", step {step.released_by} releases it" if step.released_by else ""
        yield say(Strong(f"waits for {enumerated(step.waits)}"), released)
    if step.in_ is not None and not (step.waits and step.released_by is None):
        yield from answer(step)
    if step.releases:
        yield say(f"releases {enumerated(f'step {number}' for number in step.releases)}")
    if step.breaks:
        yield say(Strong(f"breaks as declared: {enumerated(step.breaks)}"))


def answer(step: StepRecord) -> Iterable[Phrase]:
    if step.error:
        yield say(Strong(f"error {step.error.sqlstate}"), f" {clip(prose(step.error.message), 120)}")
    elif step.rows is None:
        yield say(Strong("ok"))
    else:
        yield say(Strong(count(step.rows, "row")), Quiet(_rows(step)))
    for notice in step.notices:
        yield say(f"notice: {clip(prose(notice), 80)}")


def _rows(step: StepRecord) -> str:
    """The first rows of an answer, as text."""
    if not step.returns or not step.returns.rows or not step.returns.columns:
        return ""
    width = max(40, MOST_OF_A_ROW // len(step.returns.columns))
    rows = [
        ", ".join(f"{column} {value(each, width)}" for column, each in zip(step.returns.columns, row, strict=False))
        for row in step.returns.rows[:2]
    ]
    more = f"; and {len(step.returns.rows) - 2} more" if len(step.returns.rows) > 2 else ""
    return f": {clip('; '.join(rows), 160)}{more}"


def alone(book: Book, step: StepRecord) -> Iterable[Phrase]:
    """What only one session sees: after the step, in its own transaction."""
    for session, seen in sorted(step.seen_by.items()):
        for each in seen:
            if each.state == ABSENT:
                yield say(Quiet(f"{session} sees no {_key(each.subject, each.key)}"))
            else:
                yield say(Quiet(f"{session} sees {_key(each.subject, each.key)} "), to_state(book, each.state))
    for change in step.moves:
        if change.session is not None and change.session not in step.seen_by:
            yield say(
                Quiet(f"only {change.session} sees {_key(change.subject, change.key)} "), to_state(book, change.to)
            )


def committed(book: Book, step: StepRecord) -> Cell:
    changes = [change for change in step.moves if change.session is None]
    if not changes:
        wrote = step.verb in ("do", "sql") and bool(step.rows) and step.in_transaction and not step.error
        own = wrote and (step.verb == "do" or not (step.returns and step.returns.rows))
        return line(Quiet("same: not committed yet" if own else "same"))
    shown = [_change(book, change) for change in changes[:MOST_KEYS]]
    more = (say(f"and {len(changes) - MOST_KEYS} more"),) if len(changes) > MOST_KEYS else ()
    return (*shown, *more)


def _change(book: Book, change: Change) -> Phrase:
    key = Quiet(f"{_key(change.subject, change.key)} ")
    if change.from_ == change.to:
        return say(key, "stays ", to_state(book, change.to))
    late = Quiet(f" (late, by {enumerated(change.by)})") if change.late else ""
    return say(key, to_state(book, change.from_), " → ", to_state(book, change.to), late)


def states(book: Book, seen: tuple[Seen, ...]) -> Cell:
    if not seen:
        return line(Quiet("no row"))
    if len(seen) <= MOST_KEYS:
        return tuple(say(Quiet(f"{_key(each.subject, each.key)} "), to_state(book, each.state)) for each in seen)
    numbers = Counter(each.state for each in seen)
    return tuple(say(f"{number:,} × ", to_state(book, state)) for state, number in numbers.items())


def _key(subject: str, key: tuple[str, ...]) -> str:
    return f"{subject} {', '.join(value(part, 40) for part in key)}"


def failure_words(failure: Failure) -> Phrase:
    """A failure as one line: what happened, expected against seen, where it is written."""
    message = prose(failure.message).rstrip(".")
    expected = f"; expected {clip(prose(failure.expected), 120)}" if failure.expected else ""
    observed = f", seen {clip(prose(failure.observed), 120)}" if failure.observed else ""
    place = f" ({prose(failure.place)})" if failure.place else ""
    return say(clip(message, 200), Strong(f"{expected}{observed}"), Quiet(place))


def not_run(numbers: tuple[int, ...]) -> str:
    if not numbers:
        return ""
    span = str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]} to {numbers[-1]}"
    return f"{'Step' if len(numbers) == 1 else 'Steps'} {span} did not run: the scenario ended before."
