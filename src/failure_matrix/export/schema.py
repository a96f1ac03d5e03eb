"""A JSON Schema of a catalogue's files, so that an editor completes keys and underlines what cannot be.

It is made from the same shapes that read the files. It cannot know which names exist; ``matrix check`` does.
"""

from __future__ import annotations

from typing import Any

from failure_matrix.catalogue import scalars, shapes, special
from failure_matrix.catalogue.model import Catalogue
from failure_matrix.catalogue.plan import fields
from failure_matrix.catalogue.scalars import Shape
from failure_matrix.catalogue.sources import STYLES, WORDS

Schema = dict[str, Any]

_SCALAR: Schema = {"type": ["string", "number", "boolean", "null"]}
_SQL: Schema = {"$ref": "#/$defs/sql"}
_SINGLE = {
    id(scalars.FLAG): {"type": "boolean"},
    id(scalars.WHOLE): {"type": "integer"},
    id(scalars.NUMBER): {"type": "number"},
    id(scalars.NOTHING): {"type": "null"},
}


def schema() -> Schema:
    """The schema of one file, which may hold any of the top-level keys."""
    body = _noun(fields(Catalogue))
    del body["required"]
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A file of a failure matrix catalogue",
        **body,
        "$defs": {"sql": _sql()},
    }


def _sql() -> Schema:
    texts: Schema = {"type": "string", "minLength": 1}
    styles = {"enum": list(STYLES)}
    names = {name: texts for name in WORDS if name != "params"}
    return {
        "anyOf": [
            {"type": ["string", "number"]},
            {"type": "object", "properties": {**names, "params": styles}, "additionalProperties": False},
        ]
    }


def _noun(known: Any) -> Schema:
    return {
        "type": "object",
        "properties": {name: _of(field.shape) for name, field in known.items()},
        "required": [name for name, field in known.items() if field.required],
        "additionalProperties": False,
    }


def _of(shape: Shape) -> Schema:
    match shape:
        case scalars.TextShape():
            return _text(shape)
        case scalars.WordShape():
            return dict(_SINGLE[id(shape)])
        case scalars.ScalarShape():
            return _SCALAR
        case scalars.ChoiceShape():
            return {"enum": list(shape.words)}
        case shapes.ListShape():
            item = _of(shape.item)
            several: Schema = {"type": "array", "items": item}
            return {"anyOf": [item, several]} if shape.alone else several
        case shapes.MapShape():
            return _map(shape)
        case shapes.NounShape():
            return _noun(shape.fields())
        case shapes.EitherShape():
            return {"anyOf": [_of(each) for each in shape.shapes]}
        case _:
            return _special(shape)


def _special(shape: Shape) -> Schema:
    match shape:
        case special.SqlShape():
            return _SQL
        case special.ErrorShape():
            return {"anyOf": [{"type": ["string", "number"]}, _of(shape.whole)]}
        case special.CallerShape():
            return {"anyOf": [_SQL, _of(shape.whole), {"type": "object", "additionalProperties": _SCALAR}]}
        case special.MeansShape():
            return {"anyOf": [{"type": "string", "minLength": 1}, _map(shape.by_state)]}
        case special.GivenShape():
            rows = {"type": "array", "items": {"type": "object", "additionalProperties": _SCALAR}}
            files = {"type": "object", "additionalProperties": {"type": "string"}}
            return {"anyOf": [_SQL, {"type": "object", "additionalProperties": {"anyOf": [rows, files]}}]}
        case _:
            raise TypeError(f"no schema for {type(shape).__name__}")


def _text(shape: scalars.TextShape) -> Schema:
    found: Schema = {"type": ["string", "number", "boolean"] if shape.written else "string"}
    if shape.at_least:
        found["minLength"] = shape.at_least
    if shape.pattern and not shape.written:
        found["pattern"] = shape.pattern
    return found


def _map(shape: shapes.MapShape) -> Schema:
    found: Schema = {"type": "object", "additionalProperties": _of(shape.value)}
    if isinstance(shape.key, scalars.NameShape) and shape.key.pattern:
        found["propertyNames"] = {"pattern": shape.key.pattern}
    return found
