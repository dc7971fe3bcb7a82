"""The rooms and what imports what, drawn from the source: ``python tests/import_map.py docs/architecture.svg``.

A room stands above all that it imports. Of the arrows those are drawn that no chain of others implies.
"""

from __future__ import annotations

import sys
from graphlib import TopologicalSorter
from itertools import combinations
from pathlib import Path

from test_architecture import PACKAGE, imported, room, sources

#: The rooms that are drawn (folders, or modules that stand alone): how far to the right, so that arrows pass boxes, and
#: what they hold. How high they stand follows from the imports.
ROOMS = {
    "cli": (0.3, "the commands"),
    "start": (0.62, "demo, init, schema"),
    "experiment": (0.45, "one run, from its YAML"),
    "engines": (0.91, "texts to claims: FActScore"),
    "estimate": (0.09, "error rates from few labels"),
    "sql": (0.68, "tables past memory"),
    "export": (0.09, "papers, other tools"),
    "run_folder": (0.68, "files, locks, cost"),
    "evaluators": (0.78, "claims to verdicts"),
    "results": (0.4, "all audits of one run"),
    "report": (0.28, "HTML, tables, figures"),
    "audit": (0.28, "arrays to rows and findings"),
    "llm": (0.72, "calls, cache, budget"),
    "knowledge": (0.91, "pages to look up"),
    "publications": (0.1, "published data, fetched once"),
    "input_tables": (0.55, "any file in"),
    "datasets": (0.52, "published formats to tables"),
    "perturb": (0.71, "claims with one thing changed"),
    "arrays": (0.28, "claims and verdicts as arrays"),
    "tables": (0.4, "any table to ours, checked"),
    "stats": (0.18, "arrays in, arrays out"),
    "text": (0.45, "tokens, sentences, chunks"),
}
#: Modules that are drawn as part of a room.
PARTS = {
    "run_reuse": "run_folder",
    "experiment_inputs": "experiment",
    "comparison_tables": "results",
    "python_input": "input_tables",
    "run_claims": "export",
    "run_diff": "export",
    "run_drift": "export",
    "run_matching": "export",
    "run_gate": "export",
    "run_system_orders": "export",
    "run_finding_changes": "export",
    "run_diff_markdown": "export",
    "run_versions": "export",
}
#: Small modules that rooms of all floors import, and the front doors: not drawn.
NOT_DRAWN = {
    *("__init__", "__main__", "version", "errors", "files", "signature", "spec_string", "yaml_file", "yaml_paths"),
    *("blas_threads", "garbage_collection", "python_errors"),
}
#: The rooms that a claim passes on its way from a file to a figure.
TRIP = ("cli", "experiment", "tables", "results", "arrays", "audit", "stats", "report")
WIDTH, BOX, FLOOR = 1160, (184, 44), 84

_HEAD = """\
<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" font-family="sans-serif">
<title>The rooms of factaudit: each imports only rooms that stand below it</title>
<style>
.room {{ fill: #f4f4f2; stroke: #555; }} .trip {{ fill: #dbe9f6; stroke: #1f5f99; stroke-width: 2; }}
.name {{ font-size: 15px; font-weight: bold; fill: #111; }} .what {{ font-size: 11px; fill: #333; }}
.arrow {{ fill: none; stroke: #888; }} .step {{ fill: #1f5f99; }} .number {{ font-size: 11px; fill: #fff; }}
</style>
<rect width="{width}" height="{height}" fill="#fff"/>
<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">
<path d="M0 0 8 4 0 8z" fill="#888"/></marker></defs>
"""


def read_imports(package: Path) -> dict[str, set[str]]:
    """Of each drawn room the drawn rooms that it imports. Raises `KeyError` for a room of which nothing is known."""
    graph: dict[str, set[str]] = {name: set() for name in ROOMS}
    for path, tree in sources(package):
        here = PARTS.get(room(path), room(path))
        if here in NOT_DRAWN:
            continue
        for name in imported(tree):
            top, _, inner = name.partition(".")
            there = PARTS.get(inner.partition(".")[0], inner.partition(".")[0])
            if top == package.name and there != here and there not in NOT_DRAWN:
                graph[here].add(there)
                graph[there]  # a room that is new has to be told of above
    return graph


def reduce_arrows(graph: dict[str, set[str]]) -> dict[str, set[str]]:
    """The arrows that no chain of others implies."""
    below: dict[str, set[str]] = {}
    for name in TopologicalSorter(graph).static_order():
        below[name] = graph[name].union(*(below[there] for there in graph[name]))
    return {
        name: {there for there in direct if not any(there in below[other] for other in direct)}
        for name, direct in graph.items()
    }


def place_rooms(graph: dict[str, set[str]]) -> dict[str, tuple[float, float]]:
    """The middle of each room's upper edge, a floor above the highest that it imports."""
    floors: dict[str, int] = {}
    for name in TopologicalSorter(graph).static_order():
        floors[name] = 1 + max((floors[there] for there in graph[name]), default=-1)
    top = max(floors.values())
    places = {name: (WIDTH * ROOMS[name][0], 30 + FLOOR * (top - floor)) for name, floor in floors.items()}
    for (one, (x, y)), (other, (x2, y2)) in combinations(places.items(), 2):
        assert y != y2 or abs(x - x2) > BOX[0], f"{one} and {other} overlap: place one elsewhere in ROOMS"
    return places


def draw_import_map(package: Path = PACKAGE) -> str:
    """The figure as SVG."""
    arrows = reduce_arrows(read_imports(package))
    places = place_rooms(arrows)
    height = round(max(y for _, y in places.values()) + BOX[1] + 30)
    parts = [_HEAD.format(width=WIDTH, height=height)]
    for name, direct in arrows.items():
        x, y = places[name]
        for there in sorted(direct):
            x2, y2 = places[there]
            bend = min(60, (y2 - y - BOX[1]) / 2)
            y1 = y + BOX[1]
            parts.append(
                f'<path class="arrow" marker-end="url(#tip)" d="M{x:.0f} {y1:.0f}C{x:.0f} {y1 + bend:.0f} '
                f'{x2:.0f} {y2 - bend:.0f} {x2:.0f} {y2:.0f}"/>\n'
            )
    for name, (_, what) in ROOMS.items():
        x, y = places[name]
        kind = "trip" if name in TRIP else "room"
        parts.append(
            f'<rect class="{kind}" rx="5" x="{x - BOX[0] / 2:.0f}" y="{y:.0f}" width="{BOX[0]}" height="{BOX[1]}"/>'
            f'<text class="name" text-anchor="middle" x="{x:.0f}" y="{y + 19:.0f}">{name}</text>'
            f'<text class="what" text-anchor="middle" x="{x:.0f}" y="{y + 36:.0f}">{what}</text>\n'
        )
        if name in TRIP:
            left = x - BOX[0] / 2
            parts.append(
                f'<circle class="step" cx="{left:.0f}" cy="{y:.0f}" r="10"/><text class="number" text-anchor="middle" '
                f'x="{left:.0f}" y="{y + 4:.0f}">{TRIP.index(name) + 1}</text>\n'
            )
    return "".join(parts) + "</svg>\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(draw_import_map(), encoding="utf-8")
