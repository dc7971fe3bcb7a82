"""Files as tools, spreadsheets and people write them (shapes.jsonl): each is read rightly, asked about with a command
that reads it rightly, or refused with the reason; none is read wrongly.

A line is a file, its content (``<claim 3>`` and ``<doc 3>`` stand for those of `town_tables`), what people and the
judges say of its claims (a digit or ``-`` each), and how it ends where it is not read: ``asked``, or what the refusal
says. ``offered``: false where none of the readings offered is the right one, which the user has to say. ``doc``: the
first document, where it matters.
"""

from __future__ import annotations

import base64
import json
import re
from pathlib import Path
from typing import Any

import pytest
from table_readings import describe_tables
from town_tables import CLAIMS, DOCS

from factaudit.errors import FactauditError
from factaudit.input_tables import load_input_tables
from factaudit.tables.questions import AmbiguousReadingError

SHAPES = [json.loads(line) for line in Path(__file__).with_name("shapes.jsonl").read_text("utf-8").strip().split("\n")]


def write_shape(shape: dict[str, Any], folder: Path) -> Path:
    path = folder / shape["file"]
    if "base64" in shape:
        path.write_bytes(base64.b64decode(shape["base64"]))
        return path
    texts = {"claim": CLAIMS, "doc": DOCS}
    text = re.sub(r"<(claim|doc) (\d)>", lambda found: texts[found[1]][int(found[2])], shape["text"])
    path.write_bytes(text.encode())
    return path


def has_right_reading(path: Path, shape: dict[str, Any], mapping: object = None) -> bool:
    found = describe_tables(load_input_tables([path], mapping))
    expected = {
        "claims": len(shape["labels"]),
        "labels": shape["labels"],
        "people": shape.get("people", 0),
        "evaluators": shape.get("judges", {}),
        "doc": shape.get("doc", found["doc"]),
    }
    return {key: found[key] for key in expected} == expected


def is_offered_rightly(path: Path, shape: dict[str, Any], error: AmbiguousReadingError) -> bool:
    """Whether one of the readings that are offered is the right one; to offer them, all were read."""
    return any(has_right_reading(path, shape, one.mapping) for one in error.readings)


@pytest.mark.parametrize(
    "shape",
    [pytest.param(one, marks=[pytest.mark.slow] if at % 8 else [], id=one["file"]) for at, one in enumerate(SHAPES)],
)
def test_a_shape_is_read_asked_about_or_refused(shape: dict[str, Any], tmp_path: Path) -> None:
    if shape["file"].endswith(".xlsx"):
        pytest.importorskip("openpyxl", reason="needs the [excel] extra")
    path = write_shape(shape, tmp_path)
    ends = shape.get("ends", "right")
    if ends == "right":
        assert has_right_reading(path, shape)
    elif ends == "asked":
        with pytest.raises(AmbiguousReadingError) as asked:
            load_input_tables([path])
        assert is_offered_rightly(path, shape, asked.value) == shape.get("offered", True), asked.value
    else:
        with pytest.raises(FactauditError, match=ends):
            load_input_tables([path])
