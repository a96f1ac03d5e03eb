"""What a step must show against what it showed. Each judgement yields failures; none has an effect."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from failure_matrix.catalogue.model import ABSENT, Expected, Row, Step
from failure_matrix.database.answers import Answer, Result
from failure_matrix.database.classify import KeyText, Misfit
from failure_matrix.evidence.records import Failure, FailureKind
from failure_matrix.verify.hiding import HIDDEN
from failure_matrix.verify.values import Kept, as_text, key_text, substitute

Answered = tuple[str | None, ...]  # a row as the server wrote it
Standing = Mapping[tuple[str, KeyText], str | Misfit]  # (subject, key) -> state, as one observer sees it


@dataclass(frozen=True, kw_only=True)
class Blame:
    """What a failure of this step puts in doubt."""

    states: tuple[str, ...] = ()
    actions: tuple[str, ...] = ()


@dataclass(frozen=True, kw_only=True)
class Court:
    """Judges one step: where its expectations stand, what was kept so far, and whom a failure blames."""

    step: Step
    where: str  # "A did publish"
    place: Callable[..., str]  # path below the step -> file:line
    kept: Kept
    hidden: frozenset[str] = frozenset()  # columns whose values are not told
    blame: Blame = field(default_factory=Blame)

    def failure(self, kind: FailureKind, message: str, expected: str, observed: str, *path: object) -> Failure:
        return Failure(
            kind=kind,
            message=f"{self.where}: {message}",
            expected=expected,
            observed=observed,
            place=self.place(*path),
            states=self.blame.states,
            actions=self.blame.actions,
        )

    def answer(self, answer: Answer) -> Iterator[Failure]:
        """Rows, returns, results, error and notices."""
        yield from self._error(answer)
        step, last = self.step, answer.last
        notices = tuple(as_text(substitute(text, self.kept)) or "" for text in step.notice or ())
        if step.notice is not None and notices != answer.notices:
            found = "; ".join(answer.notices) or "no notice"
            yield self.failure(
                "notice", "other notices than expected", "; ".join(notices) or "no notice", found, "notice"
            )
        if answer.error is not None:
            return
        affected = last.affected if last else None
        if step.rows is not None and affected != step.rows:
            yield self.failure(
                "rows", f"{_rows(affected)}, expected {step.rows}", _rows(step.rows), _rows(affected), "rows"
            )
        if step.returns is not None:
            yield from self._returns(step.returns, last, "returns")
        if step.results is not None:
            yield from self._results(answer.results)

    def _error(self, answer: Answer) -> Iterator[Failure]:
        expected, error = self.step.error, answer.error
        wanted = "no error" if expected is None else _pattern(expected.sqlstate, expected.constraint)
        if error is None:
            if answer.lost and expected is None:
                yield self.failure("error", "the connection was lost", wanted, "the connection was lost")
            elif expected is not None:
                observed = "no error, " + _rows(answer.last.affected if answer.last else None)
                yield self.failure("error", f"no error, expected {wanted}", wanted, observed, "error")
            return
        observed = f"{_pattern(error.sqlstate, error.constraint)}: {error.message}"
        if expected is None:
            yield self.failure("error", f"error {observed}", wanted, observed)
        elif error.sqlstate != expected.sqlstate or expected.constraint not in (None, error.constraint):
            yield self.failure("error", f"error {observed}, expected {wanted}", wanted, observed, "error")

    def _returns(self, expected: Sequence[Row], result: Result | None, *path: str | int) -> Iterator[Failure]:
        columns = result.columns if result else ()
        rows = result.rows if result else ()
        wanted = [self._row(row, columns) for row in expected]
        if list(rows) != wanted:
            message = self._difference(expected, wanted, columns, rows)
            yield self.failure("returns", message, self._expected(expected, columns), self._found(columns, rows), *path)

    def _row(self, row: Row, columns: Sequence[str]) -> tuple[str | None, ...] | None:
        """The expected row in the result's column order, or None where it has other columns."""
        if isinstance(row, tuple):
            return tuple(as_text(substitute(value, self.kept)) for value in row) if len(row) == len(columns) else None
        if sorted(row) != sorted(columns):
            return None
        return tuple(as_text(substitute(row[column], self.kept)) for column in columns)

    def _difference(
        self,
        expected: Sequence[Row],
        wanted: Sequence[Answered | None],
        columns: Sequence[str],
        rows: Sequence[Answered],
    ) -> str:
        """The first thing that differs, in a few words."""
        for row, cells in zip(expected, wanted, strict=True):
            if cells is None:
                names = f"{len(row)} columns" if isinstance(row, tuple) else f"columns {', '.join(row)}"
                return f"other columns: {', '.join(columns) or 'none'}; expected {names}"
        if len(rows) != len(wanted):
            return f"{_rows(len(rows))}, expected {len(wanted)}"
        for number, (found, cells) in enumerate(zip(rows, wanted, strict=True), 1):
            for column, value, cell in zip(columns, found, cells or (), strict=True):
                if value != cell:
                    return f"row {number}: {column} is {self._cell(column, value)}, expected {self._cell(column, cell)}"
        raise AssertionError("nothing differs")

    def _expected(self, rows: Sequence[Row], columns: Sequence[str]) -> str:
        told = []
        for row in rows:
            named = isinstance(row, dict)
            names = tuple(row) if isinstance(row, dict) else columns if len(columns) == len(row) else ("",) * len(row)
            values = row.values() if isinstance(row, dict) else row
            cells = (
                self._cell(name, as_text(substitute(value, self.kept)))
                for name, value in zip(names, values, strict=True)
            )
            told.append(", ".join(f"{name} {cell}" if named else cell for name, cell in zip(names, cells, strict=True)))
        return "; ".join(told) or "no row"

    def _found(self, columns: Sequence[str], rows: Sequence[Answered]) -> str:
        told = (
            ", ".join(f"{column} {self._cell(column, value)}" for column, value in zip(columns, row, strict=True))
            for row in rows
        )
        return "; ".join(told) or "no row"

    def _cell(self, column: str, value: str | None) -> str:
        return HIDDEN if column in self.hidden else "null" if value is None else value or "''"

    def _results(self, results: Sequence[Result]) -> Iterator[Failure]:
        expected = self.step.results or ()
        if len(expected) != len(results):
            count = f"{len(results)} results, expected {len(expected)}"
            yield self.failure("returns", count, f"{len(expected)} results", f"{len(results)} results", "results")
            return
        for index, (wanted, result) in enumerate(zip(expected, results, strict=True)):
            if isinstance(wanted, int) and result.affected != wanted:
                message = f"result {index + 1}: {_rows(result.affected)}, expected {wanted}"
                yield self.failure("rows", message, _rows(wanted), _rows(result.affected), "results", index)
            elif isinstance(wanted, tuple):
                yield from self._returns(wanted, result, "results", index)

    def waits(self, observed: Sequence[str]) -> Iterator[Failure]:
        """Whether it waits for just those that it should."""
        expected = self.step.waits or ()
        if expected == ("maybe",) or sorted(expected) == sorted(observed):
            return
        wanted = "waits for " + ", ".join(expected) if expected else "does not wait"
        found = "waits for " + ", ".join(observed) if observed else "does not wait"
        yield self.failure("waits", f"{found}, expected: {wanted}", wanted, found, "waits")

    def releases(self, observed: Sequence[str]) -> Iterator[Failure]:
        """Whether it set just those sessions free that it names."""
        if sorted(self.step.releases) == sorted(observed):
            return
        wanted, found = ", ".join(self.step.releases) or "nobody", ", ".join(observed) or "nobody"
        message = f"released {found}, expected {wanted}"
        yield self.failure("releases", message, f"releases {wanted}", f"released {found}", "releases")

    def then(self, standing: Standing) -> Iterator[Failure]:
        """The expected states as committed."""
        yield from self._standing(self.step.then, standing, "then", "then")

    def seen_by(self, session: str, standing: Standing) -> Iterator[Failure]:
        """The expected states as one session sees them."""
        yield from self._standing(self.step.seen_by[session], standing, "seen-by", "seen_by", session)

    def seen_absent(self, session: str) -> Iterator[tuple[str, KeyText]]:
        """The keys that a session is expected not to see."""
        for subject, keys in self.step.seen_by[session].items():
            for key, state in keys.items():
                if substitute(state, self.kept) == ABSENT:
                    yield subject, key_text(key, self.kept)

    def _standing(self, expected: Expected, standing: Standing, kind: FailureKind, *path: str) -> Iterator[Failure]:
        for subject, keys in expected.items():
            for key, state in keys.items():
                wanted = as_text(substitute(state, self.kept))
                text = key_text(key, self.kept)
                found = standing.get((subject, text), ABSENT)
                if found == wanted or isinstance(found, Misfit):  # a misfit is told once, by itself
                    continue
                name = f"{subject} {', '.join(text)}"
                failure = self.failure(
                    kind, f"{name} is {found}, expected {wanted}", f"{name} is {wanted}", f"{name} is {found}",
                    *path, subject, key,
                )  # fmt: skip
                states = tuple(state for state in (wanted, found) if state and state != ABSENT)
                yield failure.model_copy(update={"states": tuple(dict.fromkeys((*failure.states, *states)))})

    def broke(self, occurred: Sequence[str]) -> Iterator[Failure]:
        """A step with ``breaks`` must break exactly so."""
        if self.step.breaks and sorted(self.step.breaks) != sorted(occurred):
            wanted, found = ", ".join(self.step.breaks), ", ".join(occurred) or "nothing"
            message = f"broke {found}, expected it to break {wanted}"
            yield self.failure("breaks", message, f"breaks {wanted}", f"broke {found}", "breaks")


def _rows(count: int | None) -> str:
    if count is None:
        return "no row count"
    return "1 row" if count == 1 else f"{count} rows"


def _pattern(sqlstate: str, constraint: str | None) -> str:
    return f"{sqlstate} ({constraint})" if constraint else sqlstate
