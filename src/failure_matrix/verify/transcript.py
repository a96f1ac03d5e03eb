"""What a play saw, as records: varying values named, hidden columns left out."""

from __future__ import annotations

from collections.abc import Iterable

from failure_matrix.catalogue.model import Catalogue, Scalar
from failure_matrix.database import answers
from failure_matrix.database.classify import Misfit
from failure_matrix.evidence.records import (
    Change,
    Failure,
    FailureKind,
    Row,
    Seen,
    ServerError,
    StepRecord,
    of_failures,
)
from failure_matrix.verify.entry import Entry, describe
from failure_matrix.verify.hiding import HIDDEN
from failure_matrix.verify.judge import Standing
from failure_matrix.verify.naming import Names
from failure_matrix.verify.play import Play
from failure_matrix.verify.values import as_text


class Transcript:
    """The records of one play."""

    def __init__(self, catalogue: Catalogue, play: Play, names: Names) -> None:
        self._catalogue = catalogue
        self._play = play
        self._names = names
        self._secrets = play.secrets

    def given(self) -> tuple[Seen, ...]:
        """Every key before the scenario's own first step."""
        before = [entry.standing for entry in self._play.entries if entry.numbered.number == 0]
        standing = next((each for each in reversed(before) if each is not None), self._play.given)
        return self._seen(standing)

    def steps(self) -> tuple[StepRecord, ...]:
        """The scenario's own steps that ran, in order."""
        return tuple(self._step(entry) for entry in self._play.entries if entry.numbered.number)

    def unsettled(self) -> list[Failure]:
        """What is open when the scenario ends: steps that still wait, a last step that nothing could look after."""
        entries = self._play.entries
        if not entries or any(entry.failures for entry in entries):
            return []
        found = [self._still_waiting(entry) for entry in self._play.still_waiting()]
        if entries[-1].standing is None:
            message = f"{describe(entries[-1].step)}: could not look afterwards, and the scenario is over"
            lock = "a session holds an ACCESS EXCLUSIVE lock on what is looked at"
            found.append(
                self._at_the_end(entries[-1], "could-not-look", message, "a step that ends its transaction", lock)
            )
        return found

    def _still_waiting(self, entry: Entry) -> Failure:
        what = f"step {entry.numbered.number} still waits for {', '.join(entry.waits)}"
        return self._at_the_end(
            entry, "still-waiting", f"{what} when the scenario ends", "a step that sets it free", what
        )

    def _at_the_end(self, entry: Entry, kind: FailureKind, message: str, expected: str, observed: str) -> Failure:
        place = self._catalogue.place(*entry.numbered.path)
        return Failure(
            kind=kind,
            message=message,
            expected=expected,
            observed=observed,
            place=f"{place.path}:{place.line}",
            states=entry.blame.states,
            actions=entry.blame.actions,
        )

    def told(self, failures: Iterable[Failure]) -> tuple[Failure, ...]:
        """Failures without what is hidden or varies."""
        return tuple(
            failure.model_copy(
                update={name: self._told(getattr(failure, name)) for name in ("message", "expected", "observed")}
            )
            for failure in failures
        )

    def _told(self, text: str) -> str:
        return self._names.told(self._secrets.text(text))

    def _said(self, text: str) -> str:
        return self._names.text(self._secrets.text(text))

    def _step(self, entry: Entry) -> StepRecord:
        step, answer = entry.step, entry.answer
        place = self._catalogue.place(*entry.numbered.path)
        last = answer.last if answer else None
        returned = last is not None and bool(last.columns)
        return StepRecord(
            number=entry.numbered.number,
            in_=step.in_,
            verb=step.verb,
            name=step.do or step.event or step.carries_out,
            text=" · ".join(part for part in (entry.text, self._said(entry.effect)) if part),
            with_={name: self._parameter(entry, name, value) for name, value in entry.parameters.items()},
            at=as_text(entry.at),
            in_transaction=entry.in_transaction,
            rows=last.affected if last and answer and answer.error is None else None,
            returns=self._row(last) if last is not None and returned else None,
            error=self._error(answer.error) if answer and answer.error else None,
            notices=tuple(map(self._said, answer.notices)) if answer else (),
            waits=entry.waits,
            releases=tuple(entry.releases),
            released_by=entry.released_by,
            then=self._seen(entry.standing) if entry.standing is not None else (),
            seen_by={session: self._seen(view) for session, view in entry.seen_by.items()},
            moves=tuple(self._change(change) for change in entry.changes),
            breaks=entry.breaks,
            failures=self.told(entry.failures),
            verdict=of_failures(entry.failures),
            place=f"{place.path}:{place.line}",
        )

    def _parameter(self, entry: Entry, name: str, value: Scalar) -> str | None:
        text = as_text(value)
        if text is None or name in self._secrets.names or name in entry.secret:
            return None if text is None else HIDDEN
        masked = self._secrets.cell(text)
        return self._names.kept(masked) if isinstance(value, str) else masked

    def _row(self, result: answers.Result) -> Row:
        return Row(columns=result.columns, rows=tuple(self._cells(result, row) for row in result.rows))

    def _cells(self, result: answers.Result, row: tuple[str | None, ...]) -> tuple[str | None, ...]:
        """The row with what varies named and what is hidden left out."""
        masked = self._secrets.row(result.columns, row)
        named = self._names.row(result.types or (0,) * len(row), row)
        return tuple(
            name if shown == value or shown is None else HIDDEN if shown == HIDDEN else self._names.text(shown)
            for value, shown, name in zip(row, masked, named, strict=True)
        )

    def _seen(self, standing: Standing) -> tuple[Seen, ...]:
        return tuple(
            Seen(subject=subject, key=self._key(key), state=state.kind if isinstance(state, Misfit) else state)
            for (subject, key), state in sorted(standing.items(), key=lambda each: each[0])
        )

    def _change(self, change: Change) -> Change:
        return change.model_copy(update={"key": self._key(change.key)})

    def _key(self, key: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self._names.text(value) for value in key)

    def _error(self, error: answers.ServerError) -> ServerError:
        return ServerError(
            severity=error.severity,
            sqlstate=error.sqlstate,
            message=self._said(error.message),
            constraint=error.constraint,
        )
