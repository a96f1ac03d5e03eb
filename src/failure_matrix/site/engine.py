"""Graphviz, run over many pictures at once: a process a processor, not a process a picture."""

from __future__ import annotations

import os
import shutil
import subprocess
import sysconfig
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import graphviz
from graphviz.backend import dot_command

from failure_matrix.catalogue.findings import CouldNot
from failure_matrix.site.diagrams import Direction, Graph, dot
from failure_matrix.site.svg import Drawing, read

ENGINE = "graphviz-pure"
WIDEST = 1000  # pixels that a page shows side by side; what is wider is drawn from top to bottom
FEWEST = 16  # pictures that are worth another process


def bundled() -> Path:
    """Find the engine that the package brings along. Raises CouldNot."""
    schemes = (sysconfig.get_default_scheme(), sysconfig.get_preferred_scheme("user"))
    for place in (*(sysconfig.get_path("scripts", scheme) for scheme in schemes), os.environ.get("PATH", "")):
        if found := shutil.which(ENGINE, path=place):
            return Path(found)
    raise CouldNot("draw the diagrams: there is no command 'graphviz-pure'", "Run: python -m pip install graphviz-pure")


@dataclass(frozen=True, kw_only=True)
class Engine:
    """A command that is Graphviz's ``dot``."""

    command: Path

    def find(self) -> None:
        """Make sure that there is such a command. Raises CouldNot."""
        if shutil.which(self.command) is None:
            raise self._missing()

    def draw(self, graphs: Sequence[Graph]) -> dict[str, Drawing]:
        """Lay out each picture from left to right, or from top to bottom where that is too wide. By name."""
        drawn = self._run(graphs, "LR")
        wide = [graph for graph in graphs if drawn[graph.name].width > WIDEST]
        for name, drawing in self._run(wide, "TB").items():
            if drawing.width < drawn[name].width:
                drawn[name] = drawing
        return drawn

    def _run(self, graphs: Sequence[Graph], direction: Direction) -> dict[str, Drawing]:
        workers = min(os.cpu_count() or 1, -(-len(graphs) // FEWEST))
        if workers == 0:
            return {}
        chunks = [graphs[start::workers] for start in range(workers)]
        with ThreadPoolExecutor(workers) as pool:
            pieces = list(pool.map(lambda chunk: self._chunk(chunk, direction), chunks))
        return {
            graph.name: drawing
            for chunk, piece in zip(chunks, pieces, strict=True)
            for graph, drawing in zip(chunk, piece, strict=True)
        }

    def _chunk(self, graphs: Sequence[Graph], direction: Direction) -> list[Drawing]:
        source = "".join(dot(graph, direction) for graph in graphs)
        dot_command.DOT_BINARY = self.command
        try:
            output = graphviz.pipe("dot", "svg", source.encode(), quiet=True).decode()
        except (graphviz.ExecutableNotFound, OSError) as exc:
            raise self._missing() from exc
        except subprocess.CalledProcessError as exc:
            said = (exc.stderr or b"").decode(errors="replace").strip().splitlines()
            raise CouldNot(f"draw the diagrams: '{self.command}' exited with {exc.returncode}", *said[:3]) from exc
        drawings = read(output)
        if len(drawings) != len(graphs):
            raise CouldNot(f"draw the diagrams: '{self.command}' gave {len(drawings)} pictures for {len(graphs)}")
        return drawings

    def _missing(self) -> CouldNot:
        return CouldNot(f"draw the diagrams: '{self.command}' does not start", "Name another dot.")
