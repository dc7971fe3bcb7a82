"""Shapes that nobody had tried: read rightly, asked about with a reading that is right, or refused with the reason."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml
from direction_shapes import DIRECTION_SHAPES
from generated_shapes import SHAPES, FileShape
from role_shapes import ROLE_SHAPES
from table_readings import describe_tables
from table_shapes import TABLE_SHAPES
from tool_shapes import TOOL_SHAPES
from value_shapes import VALUE_SHAPES

from factaudit.errors import FactauditError
from factaudit.input_tables import load_input_tables
from factaudit.tables.open_questions import AmbiguousReadingError, PossibleColumnReading

ALL_SHAPES = [*SHAPES, *TOOL_SHAPES, *DIRECTION_SHAPES, *TABLE_SHAPES, *VALUE_SHAPES, *ROLE_SHAPES]


def has_right_reading(path: Path, shape: FileShape, mapping: object = None) -> bool:
    found = describe_tables(load_input_tables([path], mapping))
    return {key: found[key] for key in shape.describe()} == shape.describe()


def list_right_readings(path: Path, shape: FileShape, readings: list[PossibleColumnReading]) -> Iterator[str]:
    for one in readings:
        try:
            if has_right_reading(path, shape, one.mapping):
                yield one.description
        except FactauditError:  # a reading that does not fit the file, or asks once more
            pass


@pytest.mark.parametrize("shape", ALL_SHAPES, ids=lambda shape: shape.name)
def test_a_shape_is_read_asked_about_or_refused(shape: FileShape, tmp_path: Path) -> None:
    if shape.name.endswith(".xlsx"):
        pytest.importorskip("openpyxl", reason="needs the [excel] extra")
    path = tmp_path / shape.name
    path.write_bytes(shape.content)
    if shape.ends == "right":
        assert has_right_reading(path, shape)
    elif shape.ends == "asked":
        with pytest.raises(AmbiguousReadingError) as asked:
            load_input_tables([path])
        assert [*list_right_readings(path, shape, asked.value.readings)], asked.value
    else:
        with pytest.raises(FactauditError, match=shape.ends):
            load_input_tables([path])


def test_the_readme_counts_all_files_that_are_tried() -> None:
    readings = yaml.safe_load(Path(__file__).with_name("gauntlet").joinpath("readings.yaml").read_text("utf-8"))
    readme = Path(__file__).parents[2].joinpath("README.md").read_text("utf-8")
    assert re.findall(r"of (\d+) files", readme) == [str(len(ALL_SHAPES) + len(readings))]
