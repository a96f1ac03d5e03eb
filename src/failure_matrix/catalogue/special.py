"""Shapes that the language gives their own spelling: SQL, errors, callers, what is given, what a refusal means."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from failure_matrix.catalogue.cuts import cut_empty, cut_sql
from failure_matrix.catalogue.model import Sql
from failure_matrix.catalogue.nodes import Items, Node, Pairs, Word
from failure_matrix.catalogue.reading import INVALID, Reading, Trail, say
from failure_matrix.catalogue.scalars import ChoiceShape, NameShape, ScalarShape, Shape, TextShape
from failure_matrix.catalogue.shapes import Field, ListShape, MapShape, NounShape
from failure_matrix.catalogue.sources import STYLES, WORDS, NoSourceError
from failure_matrix.catalogue.sql import significant

_TEXT = TextShape(at_least=1)
_SOURCE = NounShape(
    lambda: {
        "text": Field(SqlText(), False),
        "file": Field(_TEXT, False),
        "package": Field(_TEXT, False),
        "path": Field(_TEXT, False),
        "command": Field(_TEXT, False),
        "section": Field(_TEXT, False),
        "params": Field(ChoiceShape(STYLES), False),
    }
)


@dataclass(frozen=True, slots=True)
class SqlText:
    """SQL written as it stands; ``written`` takes numbers and words too."""

    written: bool = False
    expects: str = "SQL"

    def takes(self, node: Node) -> bool:
        return TextShape(written=self.written).takes(node)

    def read(self, reading: Reading, node: Node, path: Trail) -> Any:
        if isinstance(node, Word):
            text = reading.text_of(node)
            if reading.keep(cut_empty(node, text)) or reading.keep(cut_sql(node, text)):
                return INVALID
        if not self.takes(node):
            return reading.wrong(node, path, self.expects)
        assert isinstance(node, Word)
        return node.text


@dataclass(frozen=True, slots=True)
class SqlShape:
    """SQL: text, or a mapping that says where its text is."""

    written: bool = False
    expects: str = "SQL"

    def takes(self, node: Node) -> bool:
        return isinstance(node, Pairs) or SqlText(self.written).takes(node)

    def read(self, reading: Reading, node: Node, path: Trail) -> Any:
        if not isinstance(node, Word | Pairs):
            return reading.wrong(node, path, self.expects)
        if isinstance(node, Word):
            text = SqlText(self.written).read(reading, node, path)
            sql = INVALID if text is INVALID else Sql(text=text or " ")
        else:
            sql = self._sourced(reading, node, path)
        if sql is not INVALID and not significant(sql.text, sql.params):
            hint = "write a statement, or leave the key out"
            return reading.note("empty-sql", node.place, f"{say(path)} holds no SQL", hint)
        return sql

    def _sourced(self, reading: Reading, node: Pairs, path: Trail) -> Any:
        before = len(reading.findings)
        values = _SOURCE.read(reading, node, path)
        if len(reading.findings) > before:
            return INVALID
        try:
            text, origin = _text_of(reading, values)
        except NoSourceError as missing:
            return reading.note("sql-source", node.place, f"{say(path)}: {missing.message}", missing.hint)
        return Sql(text=text or " ", params=values.get("params", "named"), origin=origin)


def _text_of(reading: Reading, values: dict[str, str]) -> tuple[str, str | None]:
    """Find the one text that a mapping names. Raises NoSourceError."""
    if "command" in values:
        raise NoSourceError("SQL from a command is not there yet", "write the SQL to a file and name it: {file: …}")
    section = values.get("section")
    match {word for word in values if word in ("text", "file", "package", "path")}:
        case one if one == {"text"} and section is None:
            return values["text"], None
        case one if one == {"file"}:
            return reading.sources.file(values["file"], section)
        case two if two == {"package", "path"}:
            return reading.sources.package(values["package"], values["path"], section)
    raise NoSourceError("this does not name one text", "write {file: …}, {package: …, path: …} or {text: …, params: …}")


def _names_sql(node: Pairs) -> bool:
    """Tell whether a mapping that could be something else says where SQL is."""
    for key, value in node.pairs:
        named = isinstance(key, Word) and key.text in ("file", "package", "command")
        if named and isinstance(value, Word):
            return True
    words = {key.text for key, _ in node.pairs if isinstance(key, Word)}
    return {"text", "params"} <= words <= set(WORDS)


@dataclass(frozen=True, slots=True)
class ErrorShape:
    """An error: a SQLSTATE as written, or a mapping."""

    whole: NounShape
    code: Shape
    expects: str = "a SQLSTATE or a mapping"

    def takes(self, node: Node) -> bool:
        return isinstance(node, Word | Pairs)

    def read(self, reading: Reading, node: Node, path: Trail) -> Any:
        if isinstance(node, Pairs):
            return self.whole.read(reading, node, path)
        code = self.code.read(reading, node, path)
        return INVALID if code is INVALID else {"sqlstate": code}


_CONSTANTS = MapShape(NameShape(), ScalarShape())


@dataclass(frozen=True, slots=True)
class CallerShape:
    """A caller: SQL that gives one row, or constants; with a title where it is written out."""

    whole: NounShape
    expects: str = "SQL or constants"

    def takes(self, node: Node) -> bool:
        return isinstance(node, Pairs) or SqlText().takes(node)

    def read(self, reading: Reading, node: Node, path: Trail) -> Any:
        if isinstance(node, Pairs) and any(isinstance(key, Word) and key.text in _WRITTEN_OUT for key, _ in node.pairs):
            return self.whole.read(reading, node, path)
        if isinstance(node, Pairs) and not _names_sql(node):
            constants = _CONSTANTS.read(reading, node, path)
            return INVALID if constants is INVALID else {"gives": constants}
        if isinstance(node, Items):
            return reading.wrong(node, path, self.expects)
        sql = SqlShape().read(reading, node, path)
        return INVALID if sql is INVALID else {"sql": sql}


_WRITTEN_OUT = ("sql", "gives")  # a mapping with one of these keys is a caller and not its constants


@dataclass(frozen=True, slots=True)
class MeansShape:
    """What a refusal means: by state, or one text for every state."""

    by_state: MapShape
    expects: str = "text or a mapping"

    def takes(self, node: Node) -> bool:
        return isinstance(node, Pairs) or _TEXT.takes(node)

    def read(self, reading: Reading, node: Node, path: Trail) -> Any:
        if isinstance(node, Pairs):
            return self.by_state.read(reading, node, path)
        text = _TEXT.read(reading, node, path)
        return INVALID if text is INVALID else {"otherwise": text}


_ROWS = ListShape(MapShape(NameShape(), ScalarShape()))
_FILES = MapShape(NameShape(), TextShape())


@dataclass(frozen=True, slots=True)
class GivenShape:
    """What is there at first: rows of tables and files of stores, or SQL."""

    expects: str = "SQL, rows or files"

    def takes(self, node: Node) -> bool:
        return isinstance(node, Pairs) or SqlText().takes(node)

    def read(self, reading: Reading, node: Node, path: Trail) -> Any:
        if isinstance(node, Items):
            return reading.wrong(node, path, self.expects)
        if not isinstance(node, Pairs) or _names_sql(node):
            sql = SqlShape().read(reading, node, path)
            return INVALID if sql is INVALID else {"sql": sql}
        both = MapShape(NameShape(), _RowsOrFiles()).read(reading, node, path)
        files = {name: value for name, value in both.items() if name in reading.stores}
        return {"files": files, "tables": {name: value for name, value in both.items() if name not in files}}


@dataclass(frozen=True, slots=True)
class _RowsOrFiles:
    expects: str = "a list of rows, or the files of a store"

    def takes(self, node: Node) -> bool:
        return isinstance(node, Items | Pairs)

    def read(self, reading: Reading, node: Node, path: Trail) -> Any:
        name = path[-1]
        if name in reading.stores:
            return _FILES.read(reading, node, path)
        if isinstance(node, Pairs):
            hint = f"write the rows of a table as a list; stores are: {', '.join(sorted(reading.stores)) or 'none'}"
            return reading.note("unknown-store", node.place, f"'{name}' has files and is no store", hint)
        return _ROWS.read(reading, node, path)
