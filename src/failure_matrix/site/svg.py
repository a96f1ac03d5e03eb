"""Graphviz's SVG, made to stand in a page and in a file of its own."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True, kw_only=True)
class Drawing:
    """A laid-out picture: its size in pixels, and what is drawn, without the svg element around it."""

    width: int
    height: int
    body: str


_PICTURE = re.compile(r'<svg width="(\d+)pt" height="(\d+)pt".*?>\n(.*?)</svg>', re.DOTALL)
_NOISE = re.compile(
    r'<!--.*?-->\n|<title>.*?</title>\n| id="[^"]*"| xml:space="preserve"| font-family="[^"]*"| xlink:title="[^"]*"',
    re.DOTALL,
)
_LINK = re.compile(r'<g><a xlink:href="#n(\d+)">\n(.*?)</a>\n</g>\n', re.DOTALL)


def read(output: str) -> list[Drawing]:
    """Part what one run of the engine gave into pictures."""
    return [
        Drawing(width=int(width), height=int(height), body=_NOISE.sub("", body).replace("&#45;", "-"))
        for width, height, body in _PICTURE.findall(output)
    ]


def inline(drawing: Drawing, label: str, href: Callable[[int], str | None]) -> str:
    """The picture for an HTML page: nodes are links, colours come from the page."""

    def link(match: re.Match[str]) -> str:
        to = href(int(match[1]))
        return f'<a href="{escape(to)}">\n{match[2]}</a>\n' if to else match[2]

    return _svg(drawing, label, "group", _LINK.sub(link, drawing.body))


def alone(drawing: Drawing, label: str, style: str) -> str:
    """The picture as a file: opaque, with its colours inside, no links."""
    ground = f'<rect class="ground" width="{drawing.width}" height="{drawing.height}"/>\n'
    body = _LINK.sub(lambda match: match[2], drawing.body)
    return _svg(drawing, label, "img", f"<style>\n{style}</style>\n{ground}{body}") + "\n"


def _svg(drawing: Drawing, label: str, role: str, body: str) -> str:
    size = f'width="{drawing.width}" height="{drawing.height}" viewBox="0 0 {drawing.width} {drawing.height}"'
    name = f'class="diagram" role="{role}" aria-label="{escape(label)}"'
    return f'<svg xmlns="http://www.w3.org/2000/svg" {size} {name}>\n{body}</svg>'
