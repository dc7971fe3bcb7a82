"""Data frames are read as files of the same rows are: objects in cells, maps, names of classes."""

from __future__ import annotations

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from audit_tables import load_input_tables
from table_readings import describe_tables
from test_shapes import HOSTILE
from town_tables import (
    FIRST_SCORES,
    A,
    B,
    L,
    by_name,
    labelled,
    maps,
    scores_by_name,
)

replies = [{"score": score, "reason": "as it says"} for score in FIRST_SCORES]


@pytest.mark.parametrize("make_frame", [pd.DataFrame, pl.DataFrame, pa.table])
@pytest.mark.parametrize(
    ("column", "cells", "judges"),
    [("judge", replies, {"judge": A}), ("scores", scores_by_name, by_name)],
)
def test_objects_in_the_cells_of_a_frame_are_columns(make_frame, column, cells, judges):
    found = describe_tables(load_input_tables([make_frame({**labelled, column: cells})]))
    assert (found["labels"], found["evaluators"]) == (L, judges)


def test_a_map_of_arrow_is_a_column_for_each_key():
    found = describe_tables(load_input_tables([pa.table({**labelled, "scores": maps})]))
    assert found["evaluators"] == {"scores.gpt4": A, "scores.claude": B}


@pytest.mark.parametrize("name", ["class_names.parquet", "class_names_own.parquet"])
def test_classes_of_an_arrow_table_have_their_names(name, tmp_path):
    case = next(one for one in HOSTILE.values() if name in one.files)
    table = pq.read_table(case.write(tmp_path)[0])
    assert describe_tables(load_input_tables([table]))["labels"] == L
