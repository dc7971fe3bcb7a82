"""The third table: annotations checked, and labels made of them by rule."""

from __future__ import annotations

import pandas as pd
import pytest
from estimate_data import World, tables

from factaudit import InputError, UsageError, read_annotations, write_table
from factaudit.tables.annotations import (
    ANNOTATION_COLUMNS,
    label_claims_by_annotations,
    list_annotator_judgements,
    validate_annotations,
)


def table(*rows: tuple[str, str, int | None]) -> pd.DataFrame:
    return pd.DataFrame(rows, columns=["claim_id", "annotator", "label"])


def test_the_standard_form():
    found = validate_annotations(
        pd.DataFrame({"claim_id": [1, 2], "label": ["1", None], "seconds": ["2.5", "3"]})
    )
    assert tuple(found.columns) == ANNOTATION_COLUMNS
    assert found["claim_id"].tolist() == ["1", "2"]
    assert found["annotator"].tolist() == ["annotator"] * 2
    assert found["label"].isna().tolist() == [False, True]
    assert found["seconds"].tolist() == [2.5, 3.0]


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.jsonl"])
def test_round_trip(tmp_path, name):
    claims, _ = tables(World(size=3))
    rows = table(("c000000", "ann", 1), ("c000001", "ann", 0), ("c000002", "ann", None))
    rows = rows.assign(
        start=[None, 2, None],
        end=[None, 5, None],
        note=["", "a; b", None],
        seconds=[1.25, 2.0, 3.0],
    )
    found = validate_annotations(rows, claims)
    write_table(found, tmp_path / name)
    again = read_annotations(tmp_path / name, claims=claims)
    pd.testing.assert_frame_equal(again.fillna({"note": ""}), found.fillna({"note": ""}))


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (
            table(("c", "ann", 0), ("d", "ann", 1), ("c", "ann", 1)),
            "row 3, column 'label': expected one label per claim",
        ),
        (table(("c", "ann", 2)), "row 1, column 'label': expected 1"),
        (table(("", "ann", 1)), "row 1, column 'claim_id': expected an id"),
        (pd.DataFrame({"claim_id": ["c"]}), "expected a column 'label' or a column 'grade'"),
        (pd.DataFrame({"label": [1]}), "column 'claim_id': the column is missing"),
        (table(), "no rows"),
        (table(("c", "ann", 1)).assign(start=3, end=3), "an end behind the start"),
        (table(("c", "ann", 1)).assign(start=3), "both start and end"),
        (table(("c", "ann", 1)).assign(seconds=-1), "expected seconds"),
        (table(("c", "ann", 1)).assign(start="x", end=4), "a character's position"),
    ],
)
def test_bad_annotations_are_named_by_row_and_column(rows, message):
    with pytest.raises(InputError, match=message):
        validate_annotations(rows)


def test_an_unknown_claim_and_a_contradiction_between_files(tmp_path):
    claims, _ = tables(World(size=3))
    with pytest.raises(InputError, match="no claim has it, found 'nowhere'"):
        validate_annotations(table(("nowhere", "ann", 1)), claims)
    for at, label in enumerate((1, 0)):
        write_table(table(("c000000", "ann", label)), tmp_path / f"{at}.csv")
    with pytest.raises(InputError, match=r"1\.csv, row 1.*'ann' has another on 'c000000'"):
        read_annotations(tmp_path / "0.csv", tmp_path / "1.csv")
    assert len(read_annotations(tmp_path / "0.csv", tmp_path / "0.csv")) == 1, (
        "the same twice is once"
    )


def test_files_without_annotators_are_named_after_their_annotators(tmp_path):
    for name, second in (("ann", 1), ("ben", 0)):
        (tmp_path / f"{name}.csv").write_text(f"claim_id,label\na,1\nb,{second}\n")
    found = read_annotations(tmp_path / "ann.csv", tmp_path / "ben.csv")
    assert found["annotator"].tolist() == ["ann", "ann", "ben", "ben"]
    assert read_annotations(tmp_path / "ann.csv")["annotator"].unique().tolist() == ["annotator"]


def test_rules():
    rows = validate_annotations(
        table(
            *(("all", a, 1) for a in "xyz"),
            *(("most", a, label) for a, label in zip("xyz", (1, 1, 0), strict=True)),
            *(("tie", a, label) for a, label in zip("xy", (1, 0), strict=True)),
            *(("unsure", a, label) for a, label in zip("xyz", (1, 1, None), strict=True)),
            ("none", "x", None),
        )
    )
    judged = list_annotator_judgements(rows)

    def by(rule):
        return {
            claim: None if pd.isna(label) else label
            for claim, label in label_claims_by_annotations(rule, judged).items()
        }

    assert by("majority") == {"all": 1, "most": 1, "tie": None, "unsure": 1, "none": None}
    assert by("any_unattributable") == {"all": 1, "most": 0, "tie": 0, "unsure": 1, "none": None}
    assert by("all_attributable") == {"all": 1, "most": 0, "tie": 0, "unsure": None, "none": None}
    assert by("z") == {"all": 1, "most": 0, "unsure": None}
    with pytest.raises(UsageError, match="did you mean 'majority'"):
        label_claims_by_annotations("majorty", judged)


def test_grades():
    rows = pd.DataFrame(
        {"claim_id": list("abc"), "grade": ["supported", "partially", "contradicted"]}
    )
    judged = list_annotator_judgements(
        validate_annotations(rows), {"supported": 1, "partially": None, "contradicted": 0}
    )
    assert judged["label"].tolist() == [1, pd.NA, 0]
    with pytest.raises(UsageError, match="grade 'partially'"):
        list_annotator_judgements(validate_annotations(rows), {"supported": 1})
