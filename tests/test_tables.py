"""The two tables: what loads, what is refused and how it is said, and that writing then reading changes nothing."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factaudit.errors import InputError
from factaudit.tables import (
    CLAIM_COLUMNS,
    VERDICT_COLUMNS,
    has_column,
    make_claim_ids,
    read_claims,
    read_verdicts,
    records,
    validate_claims,
    validate_verdicts,
    write_table,
)

SUFFIXES = [".parquet", ".jsonl", ".jsonl.gz", ".csv", ".csv.gz"]


def jsonl(path: Path, *rows: dict) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


def message(call, *arguments, **named) -> str:
    with pytest.raises(InputError) as caught:
        call(*arguments, **named)
    return str(caught.value)


@pytest.fixture
def claims() -> pd.DataFrame:
    return validate_claims(
        pd.DataFrame(
            {
                "claim_id": ["a", "b", "c"],
                "dataset": ["D", "D", "E"],
                "claim": ["One, two.", 'She said "no".\nThen left.', "Ünïcode ✓"],
                "doc": ["A text.", None, "B"],
                "label": [1, 0, None],
                "doc_id": [1, 2, None],
                "extra": ["x", None, "z"],
            }
        )
    )


# ---------------------------------------------------------------------------------------------------- loading


def test_llm_aggrefact_columns_load_as_they_are(tmp_path):
    row = {"dataset": "Reveal", "doc": "d", "claim": "c", "label": 1, "contamination_identifier": "k"}
    table = read_claims(jsonl(tmp_path / "c.jsonl", row, row))
    assert list(table.columns) == [*CLAIM_COLUMNS, "contamination_identifier"]
    assert table["label"].tolist() == [1, 1]
    assert table["claim_id"].is_unique  # equal rows are told apart by their position among equals


def test_made_ids_do_not_depend_on_other_rows():
    rows = pd.DataFrame({"dataset": "D", "claim": ["x", "y", "z"], "doc": ["1", "2", "3"]})
    whole = validate_claims(rows)
    part = validate_claims(rows.iloc[1:])
    assert whole["claim_id"].tolist()[1:] == part["claim_id"].tolist()


def test_ids_tell_a_missing_document_from_an_empty_one():
    table = validate_claims(pd.DataFrame({"dataset": "D", "claim": "x", "doc": ["", None]}))
    assert make_claim_ids(table).is_unique


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_claims_survive_writing_and_reading(claims, tmp_path, suffix):
    path = tmp_path / f"claims{suffix}"
    write_table(claims, path)
    pd.testing.assert_frame_equal(read_claims(path), claims)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_verdicts_survive_writing_and_reading(claims, tmp_path, suffix):
    verdicts = validate_verdicts(
        pd.DataFrame(
            {
                "claim_id": ["a", "b", "c"],
                "evaluator": "e",
                "score": [0.1 + 0.2, 1.0, None],
                "status": ["ok", "ok", "unparsed"],
                "raw": ["yes", None, "hmm, no idea"],
                "chunk_scores": [[0.1, 0.3], None, None],
            }
        ),
        claims,
    )
    path = tmp_path / f"verdicts{suffix}"
    write_table(verdicts, path)
    again = read_verdicts(path, claims=claims)
    assert records(again) == records(verdicts)
    assert list(again.columns) == list(VERDICT_COLUMNS)


@pytest.mark.parametrize("suffix", [".jsonl.gz", ".csv.gz", ".parquet"])
def test_the_same_table_gives_the_same_bytes(claims, tmp_path, suffix):
    write_table(claims, tmp_path / f"1{suffix}")
    write_table(claims, tmp_path / f"2{suffix}")
    assert (tmp_path / f"1{suffix}").read_bytes() == (tmp_path / f"2{suffix}").read_bytes()


def test_numbers_as_ids_keep_their_digits(tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("claim_id,dataset,claim,doc_id,system\n007,D,x,15596,7\n008,D,y,,70\n", encoding="utf-8")
    table = read_claims(path)
    assert table["claim_id"].tolist() == ["007", "008"]
    assert table["doc_id"].iloc[0] == "15596"
    parquet = tmp_path / "c.parquet"
    pd.DataFrame({"dataset": "D", "claim": ["x", "y"], "doc_id": [15596, np.nan]}).to_parquet(parquet)
    assert read_claims(parquet)["doc_id"].iloc[0] == "15596"


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path):
    path = tmp_path / "c.csv"
    path.write_bytes("dataset,claim\nD,x\n".encode("utf-8-sig"))
    assert read_claims(path)["dataset"].tolist() == ["D"]


def test_several_files_are_one_table(claims, tmp_path):
    write_table(claims.iloc[:2], tmp_path / "1.csv")
    write_table(claims.iloc[2:], tmp_path / "2.jsonl")
    assert read_claims(tmp_path / "1.csv", tmp_path / "2.jsonl")["claim_id"].tolist() == ["a", "b", "c"]
    text = message(read_claims, tmp_path / "1.csv", tmp_path / "1.csv")
    assert "expected ids that are unique over all the files, but 'a' is also in row 1" in text


def test_has_column(claims, tmp_path):
    write_table(claims, tmp_path / "c.csv")
    assert has_column(tmp_path / "c.csv", "claim")
    assert not has_column(tmp_path / "c.csv", "evaluator")


# ------------------------------------------------------------------------------------------- what is refused


def test_duplicate_ids(tmp_path):
    rows = [{"claim_id": i, "dataset": "D", "claim": "x"} for i in ("a", "b", "a")]
    text = message(read_claims, jsonl(tmp_path / "c.jsonl", *rows))
    assert text == f"{tmp_path / 'c.jsonl'}: line 3, column 'claim_id': expected unique ids, but 'a' is also in line 1"


def test_a_label_of_yes(tmp_path):
    path = tmp_path / "c.csv"
    path.write_text("dataset,claim,label\nD,x,1\nD,y,yes\nD,z,0.5\n", encoding="utf-8")
    text = message(read_claims, path)
    assert "2 problems" in text
    assert "row 2, column 'label': expected 1 (attributable), 0 (unattributable) or nothing, found 'yes'" in text
    assert "row 3, column 'label'" in text
    assert "found '0.5'" in text


def test_a_score_of_1_7(tmp_path):
    row = {"claim_id": "a", "evaluator": "e", "score": 1.7}
    text = message(read_verdicts, jsonl(tmp_path / "v.jsonl", row))
    assert text.endswith("v.jsonl: line 1, column 'score': expected a number from 0 to 1, or nothing, found 1.7")


@pytest.mark.parametrize("score", ["NaN", "Infinity", "-Infinity", '"high"', "[0.5]", "{}"])
def test_scores_that_are_no_number_in_range(tmp_path, score):
    path = tmp_path / "v.jsonl"
    path.write_text(f'{{"claim_id": "a", "evaluator": "e", "score": {score}, "prediction": 1}}\n', encoding="utf-8")
    if score == "NaN":  # Python's JSON writes a missing number so
        assert read_verdicts(path)["score"].isna().all()
    else:
        assert "line 1, column 'score'" in message(read_verdicts, path)


def test_verdicts_of_unknown_claims(claims, tmp_path):
    rows = [{"claim_id": i, "evaluator": "e", "prediction": 1} for i in ("a", "q")]
    text = message(read_verdicts, jsonl(tmp_path / "v.jsonl", *rows), claims=claims)
    expected = "line 2, column 'claim_id': expected the id of a claim, but no claim has it, found 'q'"
    assert text.endswith(expected)


def test_two_verdicts_of_one_evaluator_on_one_claim(tmp_path):
    row = {"claim_id": "a", "evaluator": "e", "prediction": 1}
    text = message(read_verdicts, jsonl(tmp_path / "v.jsonl", row, row))
    assert "line 2, column 'claim_id': expected one verdict per claim and evaluator, but 'e' has another on 'a'" in text


def test_a_truncated_last_line(tmp_path):
    path = jsonl(tmp_path / "c.jsonl", {"dataset": "D", "claim": "x"}, {"dataset": "D", "claim": "y"})
    path.write_bytes(path.read_bytes()[:-9])
    text = message(read_claims, path)
    assert "line 2: the last line is cut off (the file was not written to its end)" in text


def test_a_line_that_is_not_an_object(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_text('{"dataset": "D", "claim": "x"}\n\n[1, 2]\n{oops}\n', encoding="utf-8")
    text = message(read_claims, path)
    assert "line 3: expected a JSON object, found list" in text
    assert "line 4: not JSON" in text


def test_a_wrong_encoding(tmp_path):
    path = tmp_path / "c.csv"
    path.write_bytes("dataset,claim\nD,plain\nD,café\n".encode("latin-1"))
    assert message(read_claims, path) == f"{path}: line 3: byte 0xe9 is not UTF-8 text; save the file as UTF-8"
    path = tmp_path / "c.jsonl"
    path.write_bytes('{"dataset": "D", "claim": "café"}\n'.encode("latin-1"))
    assert "line 1: not UTF-8 text" in message(read_claims, path)


def test_an_empty_file(tmp_path):
    for suffix in SUFFIXES:
        path = tmp_path / f"c{suffix}"
        path.write_bytes(b"")
        assert message(read_claims, path) == f"{path}: the file is empty"
    path = tmp_path / "head.csv"
    path.write_text("dataset,claim\n", encoding="utf-8")
    assert message(read_claims, path) == f"{path}: the file has no rows"


def test_files_that_are_not_what_their_name_says(tmp_path):
    for name, said in [("c.parquet", "not a readable Parquet file"), ("c.jsonl.gz", "not a whole gzip file")]:
        (tmp_path / name).write_bytes(b"<html>Not found</html>")
        assert said in message(read_claims, tmp_path / name)
    whole = gzip.compress(b'{"dataset": "D", "claim": "x"}\n' * 50)
    (tmp_path / "cut.jsonl.gz").write_bytes(whole[:-12])
    assert "not a whole gzip file" in message(read_claims, tmp_path / "cut.jsonl.gz")
    assert "no such file" in message(read_claims, tmp_path / "absent.csv")
    assert "this is a folder" in message(read_claims, _folder(tmp_path / "x.csv"))
    assert "expected a name that ends in .parquet" in message(read_claims, tmp_path / "c.xlsx")


def _folder(path: Path) -> Path:
    path.mkdir()
    return path


def test_missing_columns_are_named_with_what_was_found(tmp_path):
    text = message(read_claims, jsonl(tmp_path / "c.jsonl", {"text": "x", "label": 1}))
    assert "column 'dataset': the column is missing (columns found: text, label)" in text
    assert "column 'claim': the column is missing" in text
    text = message(read_verdicts, jsonl(tmp_path / "v.jsonl", {"claim_id": "a", "evaluator": "e"}))
    assert "expected a column 'score' or a column 'prediction'" in text


def test_a_missing_prediction_needs_a_status(tmp_path):
    rows = [
        {"claim_id": "a", "evaluator": "e", "score": None},
        {"claim_id": "b", "evaluator": "e", "score": None, "status": "error"},
        {"claim_id": "c", "evaluator": "e", "score": 0.9, "status": "tired"},
    ]
    text = message(read_verdicts, jsonl(tmp_path / "v.jsonl", *rows[:2]))
    assert "line 1, column 'prediction': no score and no prediction" in text
    text = message(read_verdicts, jsonl(tmp_path / "v.jsonl", *rows[1:]))
    assert "line 2, column 'status': expected one of ok, unparsed, refused, error, skipped, found 'tired'" in text


def test_all_problems_are_reported_together_the_first_twenty_and_a_count(tmp_path):
    rows = [{"dataset": "D", "claim": "x", "label": "yes"} for _ in range(30)]
    text = message(read_claims, jsonl(tmp_path / "c.jsonl", *rows))
    lines = text.splitlines()
    assert lines[0].endswith("30 problems")
    assert len(lines) == 22
    assert lines[-1].strip() == "... and 10 more"


def test_blank_lines_do_not_shift_the_line_numbers(tmp_path):
    path = tmp_path / "c.jsonl"
    path.write_text('\n{"dataset": "D", "claim": "x"}\n\n{"dataset": "D", "claim": ""}\n', encoding="utf-8")
    assert "line 4, column 'claim': expected text, found none" in message(read_claims, path)


def test_text_columns_hold_text(tmp_path):
    row = {"dataset": "D", "claim": "x", "doc": ["a", "list"]}
    assert "column 'doc': expected text, found ['a', 'list']" in message(read_claims, jsonl(tmp_path / "c.jsonl", row))


# ------------------------------------------------------------------------------------------------ predictions


def test_the_default_prediction_is_strictly_above_one_half():
    verdicts = validate_verdicts(
        pd.DataFrame({"claim_id": list("abc"), "evaluator": "e", "score": [0.5, np.nextafter(0.5, 1), 0.0]})
    )
    assert verdicts["prediction"].tolist() == [0, 1, 0]


def test_a_given_prediction_stands_whatever_the_score():
    rows = {"claim_id": ["a"], "evaluator": "e", "score": [0.9], "prediction": [0]}
    assert validate_verdicts(pd.DataFrame(rows))["prediction"].tolist() == [0]


texts = (
    st.text(min_size=1)
    .filter(lambda t: t.strip() and "\x00" not in t)
    .map(lambda t: t.encode("utf-8", "ignore").decode() or "x")
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(texts, st.none() | texts, st.sampled_from([0, 1, None])).filter(lambda r: r[0].strip()),
        min_size=1,
        max_size=8,
    )
)
def test_any_text_survives_parquet_and_jsonl(tmp_path_factory, rows):
    folder = tmp_path_factory.mktemp("any")
    table = validate_claims(
        pd.DataFrame(
            {
                "dataset": "D",
                "claim": [claim for claim, _, _ in rows],
                "doc": pd.Series([doc for _, doc, _ in rows], dtype="object"),
                "label": pd.array([label for _, _, label in rows], dtype="Int8"),
            }
        )
    )
    for suffix in (".parquet", ".jsonl"):
        write_table(table, folder / f"c{suffix}")
        assert records(read_claims(folder / f"c{suffix}")) == records(table)
