"""From the model's annotations to shapes: ``model.py`` alone says what a catalogue can say."""

from __future__ import annotations

import types
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

from pydantic import BeforeValidator, StringConstraints

from failure_matrix.catalogue.model import Caller, ErrorPattern, Given, Key, Noun, Refusal, Scalar, Sql
from failure_matrix.catalogue.scalars import (
    FLAG,
    NOTHING,
    NUMBER,
    WHOLE,
    ChoiceShape,
    KeyShape,
    NameShape,
    ScalarShape,
    Shape,
    TextShape,
)
from failure_matrix.catalogue.shapes import EitherShape, Field, ListShape, MapShape, NounShape
from failure_matrix.catalogue.special import CallerShape, ErrorShape, GivenShape, MeansShape, SqlShape

_AS_WRITTEN = ("error", "at", "sqlstate")  # keys whose values are taken as they stand
_SCALAR, _KEY = (frozenset(get_args(union)) for union in (Scalar, Key))


@cache
def fields(noun: type[Noun]) -> Mapping[str, Field]:
    """Give the keys that a noun knows in YAML, each with its shape."""
    hints = get_type_hints(noun, include_extras=True)
    known = {}
    for name, info in noun.model_fields.items():
        if not info.exclude:
            key = info.alias or name
            shape = _special(noun, key) or shape_of(hints[name], written=key in _AS_WRITTEN)
            known[key] = Field(shape, info.is_required())
    return known


def _special(noun: type[Noun], key: str) -> Shape | None:
    if noun is Refusal and key == "means":
        return MeansShape(MapShape(NameShape(), TextShape(at_least=1)))
    return None


def shape_of(annotation: Any, *, written: bool = False) -> Shape:
    """Give the shape of one annotation of the model. Raises TypeError for a kind the model did not have before."""
    if annotation in _PLAIN and not written:
        return _PLAIN[annotation]
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _annotated(arguments[0], arguments[1:], written)
    if origin in (Union, types.UnionType):
        return _either(arguments, written)
    if origin is tuple:
        return ListShape(shape_of(arguments[0], written=written))
    if origin is dict:
        return MapShape(_key_shape(arguments[0]), shape_of(arguments[1]))
    if origin is Literal:
        return ChoiceShape(arguments)
    return _noun(annotation, written)


_PLAIN: dict[Any, Shape] = {
    str: TextShape(),
    bool: FLAG,
    int: WHOLE,
    Decimal: NUMBER,
    type(None): NOTHING,
}


def _noun(annotation: Any, written: bool) -> Shape:
    if annotation is Sql:
        return SqlShape(written=written)
    if annotation is Caller:
        return CallerShape(NounShape(lambda: fields(Caller)))
    if annotation is Given:
        return GivenShape()
    if annotation is str:
        return TextShape(written=written)
    if isinstance(annotation, type) and issubclass(annotation, Noun):
        return NounShape(lambda: fields(annotation))
    if annotation in _PLAIN:
        return _PLAIN[annotation]
    raise TypeError(f"no shape for {annotation}")


def _annotated(base: Any, extras: tuple[Any, ...], written: bool) -> Shape:
    if base is ErrorPattern:
        known = fields(ErrorPattern)
        return ErrorShape(NounShape(lambda: known), known["sqlstate"].shape)
    for extra in extras:
        if isinstance(extra, StringConstraints):
            return TextShape(pattern=_pattern(extra), at_least=extra.min_length or 0, written=written)
        if isinstance(extra, BeforeValidator):
            shape = shape_of(base, written=written)
            assert isinstance(shape, ListShape)  # the model's other validator is ErrorPattern's
            return ListShape(shape.item, alone=True)
    return shape_of(base, written=written)


def _pattern(constraints: StringConstraints) -> str | None:
    return constraints.pattern if isinstance(constraints.pattern, str) else None


def _either(branches: tuple[Any, ...], written: bool) -> Shape:
    some = frozenset(branches)
    if some == _SCALAR:
        return ScalarShape()
    if some == _KEY:
        return KeyShape()
    rest = [branch for branch in branches if branch is not type(None)]
    shapes = [shape_of(branch, written=written) for branch in rest]
    nothing = [NOTHING] if len(rest) < len(branches) else []
    return EitherShape((*nothing, *shapes))  # null first: a text as written would take it


def _key_shape(annotation: Any) -> Shape:
    if get_origin(annotation) is Annotated:
        constraints = [extra for extra in get_args(annotation) if isinstance(extra, StringConstraints)]
        return NameShape(_pattern(constraints[0]) if constraints else None)
    if annotation is str:
        return NameShape()
    return KeyShape()
