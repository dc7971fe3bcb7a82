"""Ten claims on the opening hours of ten towns, what people and two judges say of them, and tables
made of them."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

Columns = Mapping[str, Sequence[Any]]
N = 10
#: What people say of the claims, and what two judges do.
L, A, B = "1101011001", "1101111000", "1001010111"
FIRST_SCORES = [0.91, 0.83, 0.12, 0.77, 0.64, 0.95, 0.88, 0.22, 0.31, 0.45]
SECOND_SCORES = [0.88, 0.42, 0.35, 0.66, 0.13, 0.71, 0.09, 0.57, 0.93, 0.62]
TOWNS = ["Arle", "Brode", "Celm", "Dunt", "Erph", "Fosse", "Gand", "Hult", "Ivel", "Jarn"]
CLAIMS = [f"The market of {town} opens at nine on Saturdays." for town in TOWNS]
DOCS = [
    f"{town}, a town on the river. Its market is open on Saturdays from nine to one, on no other"
    " day."
    for town in TOWNS
]


def make_csv(
    columns: Columns, sep: str = ",", encoding: str = "utf-8", before: str = "", after: str = ""
) -> bytes:
    text = io.StringIO()
    writer = csv.writer(text, delimiter=sep, lineterminator="\n")
    writer.writerow(columns)
    writer.writerows(zip(*columns.values(), strict=True))
    return (before + text.getvalue() + after).encode(encoding)


labelled = {"claim": CLAIMS, "context": DOCS, "human_label": [int(digit) for digit in L]}
scores_by_name = [
    {"gpt4": a, "claude": b} for a, b in zip(FIRST_SCORES, SECOND_SCORES, strict=True)
]
maps = pa.array(
    [[*scores.items()] for scores in scores_by_name], pa.map_(pa.string(), pa.float64())
)
by_name = {"scores.gpt4": A, "scores.claude": B}
