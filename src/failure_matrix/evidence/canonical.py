"""A noun as canonical text, for a digest: SQL without comments and white space, prose left out."""

from __future__ import annotations

import json

from failure_matrix.catalogue.model import Catalogue, Sql, StoreEffect
from failure_matrix.catalogue.sql import normal

_PROSE = {"title", "about", "shows", "does_not_show", "means", "because", "owner", "origin"}


def plain(noun: object) -> str:
    """A noun as canonical JSON, SQL normalized; of actions, events and scenarios without their prose."""
    prose = frozenset() if isinstance(noun, Catalogue) else frozenset(_PROSE)
    return json.dumps(_value(noun, prose), sort_keys=True, default=str)


def _value(noun: object, without: frozenset[str]) -> object:
    match noun:
        case Sql():
            return [normal(noun.text), noun.params]
        case StoreEffect():
            return [noun.verb, noun.target, noun.content]
        case dict():
            return [[_value(key, without), _value(value, without)] for key, value in noun.items()]
        case tuple() | list():
            return [_value(value, without) for value in noun]
        case None | str() | int():
            return noun
        case _ if hasattr(type(noun), "model_fields"):
            fields = type(noun).model_fields  # type: ignore[attr-defined]
            kept = (name for name, info in fields.items() if name not in without and not info.exclude)
            return {
                name: _value(getattr(noun, name), without) for name in kept if getattr(noun, name) not in ((), {}, None)
            }
        case _:
            return str(noun)
