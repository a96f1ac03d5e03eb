"""Values of hidden columns, kept out of what is told: by the column's name, and by equality where they got elsewhere.

A value that an answer gives under another name, in JSON or in an error, is known by what hidden columns have held.
Short numbers are not looked for: too many other things are 1.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from failure_matrix.catalogue.model import Catalogue, Scalar
from failure_matrix.database.answers import Answer
from failure_matrix.database.classify import Situation
from failure_matrix.verify.values import as_text

HIDDEN = "(hidden)"
_TELLING = 4  # characters from which on a value is looked for inside of text


class Secrets:
    """What hidden columns have held in one play."""

    def __init__(self, catalogue: Catalogue) -> None:
        self._catalogue = catalogue
        self.names = catalogue.hidden
        self._values: set[str] = set()

    def saw(self, situation: Situation) -> None:
        """Remember what the hidden columns of every row hold."""
        for row in situation.rows if self.names else ():
            subject = self._catalogue.subjects[row.subject]
            self._add(value for column, value in zip(subject.show, row.shown, strict=True) if column in subject.hide)

    def answered(self, answer: Answer) -> None:
        """Remember what an answer gives under a hidden column's name."""
        for result in answer.results if self.names else ():
            places = [place for place, column in enumerate(result.columns) if column in self.names]
            self._add(row[place] for row in result.rows for place in places)

    def bound(self, parameters: Mapping[str, Scalar]) -> None:
        """Remember parameters that have a hidden column's name."""
        self._add(as_text(value) for name, value in parameters.items() if name in self.names)

    def _add(self, values: Iterable[str | None]) -> None:
        self._values.update(value for value in values if value and (len(value) >= _TELLING or not value.isdigit()))

    def row(self, columns: Sequence[str], row: Sequence[str | None]) -> tuple[str | None, ...]:
        """A row without what is hidden."""
        return tuple(
            HIDDEN if column in self.names else None if value is None else self.cell(value)
            for column, value in zip(columns, row, strict=True)
        )

    def cell(self, value: str) -> str:
        """One value: hidden where a hidden column held the same."""
        return HIDDEN if value in self._values else self.text(value)

    def text(self, text: str) -> str:
        """A text without the values that are long enough to be told in it."""
        for value in sorted(self._values, key=lambda value: (-len(value), value)):
            if len(value) >= _TELLING:
                text = text.replace(value, HIDDEN)
        return text
