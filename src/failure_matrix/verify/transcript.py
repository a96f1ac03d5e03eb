"""What a play saw, as records: varying values named, hidden columns left out."""

from __future__ import annotations

from failure_matrix.catalogue.model import Catalogue, Scalar
from failure_matrix.database import connection
from failure_matrix.database.classify import Misfit
from failure_matrix.evidence.records import Change, Failure, Row, Seen, ServerError, StepRecord, Verdict
from failure_matrix.verify.entry import Entry
from failure_matrix.verify.judge import Standing
from failure_matrix.verify.naming import Names
from failure_matrix.verify.play import Play
from failure_matrix.verify.values import as_text

HIDDEN = "(hidden)"


class Transcript:
    """The records of one play."""

    def __init__(self, catalogue: Catalogue, play: Play, names: Names) -> None:
        self._catalogue = catalogue
        self._play = play
        self._names = names
        hidden = (column for subject in catalogue.subjects.values() for column in subject.hide)
        self._hidden = frozenset(column.rsplit(".", 1)[-1].strip('"') for column in hidden)

    def given(self) -> tuple[Seen, ...]:
        """Every key before the scenario's own first step."""
        before = [entry.standing for entry in self._play.entries if entry.numbered.number == 0]
        standing = next((each for each in reversed(before) if each is not None), self._play.given)
        return self._seen(standing)

    def steps(self) -> tuple[StepRecord, ...]:
        """The scenario's own steps that ran, in order."""
        return tuple(self._step(entry) for entry in self._play.entries if entry.numbered.number)

    def unsettled(self) -> list[Failure]:
        """Steps that still wait when the scenario has come to its end."""
        if any(entry.failures for entry in self._play.entries):
            return []
        found = []
        for entry in self._play.still_waiting():
            place = self._catalogue.place(*entry.numbered.path)
            what = f"step {entry.numbered.number} still waits for {', '.join(entry.waits)}"
            found.append(
                Failure(
                    kind="still-waiting",
                    message=f"{what} when the scenario ends",
                    expected="a step that sets it free",
                    observed=what,
                    place=f"{place.path}:{place.line}",
                    states=entry.blame.states,
                    actions=entry.blame.actions,
                )
            )
        return found

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
            text=entry.text,
            with_={name: self._parameter(name, value) for name, value in entry.parameters.items()},
            at=as_text(entry.at),
            in_transaction=entry.in_transaction,
            rows=last.affected if last and answer and answer.error is None else None,
            returns=self._row(last) if last is not None and returned else None,
            error=_error(answer.error) if answer and answer.error else None,
            notices=answer.notices if answer else (),
            waits=entry.waits,
            releases=tuple(entry.releases),
            released_by=entry.released_by,
            then=self._seen(entry.standing) if entry.standing is not None else (),
            seen_by={session: self._seen(view) for session, view in entry.seen_by.items()},
            moves=tuple(self._change(change) for change in entry.changes),
            breaks=entry.breaks,
            failures=tuple(entry.failures),
            verdict=Verdict.BROKEN if entry.failures else Verdict.VERIFIED,
            place=f"{place.path}:{place.line}",
        )

    def _parameter(self, name: str, value: Scalar) -> str | None:
        return HIDDEN if name in self._hidden else self._names.known(as_text(value))

    def _row(self, result: connection.Result) -> Row:
        rows = (self._names.row(result.types or (0,) * len(result.columns), row) for row in result.rows)
        return Row(columns=result.columns, rows=tuple(self._masked(result, row) for row in rows))

    def _masked(self, result: connection.Result, row: tuple[str | None, ...]) -> tuple[str | None, ...]:
        return tuple(
            HIDDEN if column in self._hidden else value for column, value in zip(result.columns, row, strict=True)
        )

    def _seen(self, standing: Standing) -> tuple[Seen, ...]:
        return tuple(
            Seen(subject=subject, key=self._key(key), state=state.kind if isinstance(state, Misfit) else state)
            for (subject, key), state in sorted(standing.items(), key=lambda each: each[0])
        )

    def _change(self, change: Change) -> Change:
        return change.model_copy(update={"key": self._key(change.key)})

    def _key(self, key: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(self._names.key(value) for value in key)


def _error(error: connection.ServerError) -> ServerError:
    return ServerError(
        severity=error.severity, sqlstate=error.sqlstate, message=error.message, constraint=error.constraint
    )
