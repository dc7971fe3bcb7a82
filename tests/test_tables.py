"""The two tables: what loads, what is refused and how it is said, and that writing then reading
changes nothing."""

from __future__ import annotations

import base64
import csv
import gzip
import json
from decimal import Decimal
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from factaudit import InputError, judge, validate_claims, validate_verdicts, write_table
from factaudit.tables import (
    CLAIM_COLUMNS,
    VERDICT_COLUMNS,
    list_plain_rows,
    make_claim_ids,
    read_claims,
    read_verdicts,
)

REFUSED = yaml.safe_load(
    (Path(__file__).parent / "golden/refused_tables.yaml").read_text(encoding="utf-8")
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


# ---- loading


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


FORMULAS = [
    "=1+1",
    "=cmd|' /C calc'!A0",
    "+A1",
    "-2+3",
    "@SUM(A1)",
    "\t=1",
    "\r=1",
    "'=1",
    "''@x",
    "'plain",
    "-5",
    "'-5",
    "=",
]


@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
def test_no_cell_is_a_formula_and_every_cell_comes_back(tmp_path, suffix):
    rows = {"dataset": "D", "claim": FORMULAS, "doc": FORMULAS[::-1], "=note": FORMULAS}
    claims = validate_claims(pd.DataFrame({"claim_id": FORMULAS, **rows}))
    path = tmp_path / f"claims{suffix}"
    write_table(claims, path)
    with (
        gzip.open(path, "rt", newline="") if suffix == ".csv.gz" else path.open(newline="") as file
    ):
        cells = [cell for row in csv.reader(file) for cell in row]
    assert [
        cell for cell in cells if cell[:1] in tuple("=+-@\t\r") and len(cell) > 1 and cell != "-5"
    ] == []
    pd.testing.assert_frame_equal(read_claims(path), claims)


def test_an_extra_column_of_texts_has_the_type_of_ours():
    texts = pd.Series(["x", None, "y"], dtype=object)
    rows = {"dataset": "D", "claim": list("abc"), "texts": texts}
    claims = validate_claims(pd.DataFrame(rows))
    assert claims["texts"].dtype == claims["claim"].dtype


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_null_is_never_the_text_of_one(claims, tmp_path, suffix):
    """pandas 2 and 3 differ in what ``"str"`` means; a claim without a document got a score on one
    of them."""
    objects = claims.astype({"doc": object, "system": object})
    objects.loc[1, "doc"] = None
    for table in (objects, objects.convert_dtypes(), claims):
        path = tmp_path / f"claims{suffix}"
        write_table(validate_claims(table), path)
        again = read_claims(path)
        assert again["doc"].isna().tolist() == [False, True, False]
        assert again["system"].isna().all()
        assert not (again.astype(object) == "None").any().any()
        assert judge(again, ["rouge2"])["status"].tolist() == ["ok", "skipped", "ok"]


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
    assert list_plain_rows(again) == list_plain_rows(verdicts)
    assert list(again.columns) == list(VERDICT_COLUMNS)


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_repeats_are_part_of_a_verdicts_key(claims, tmp_path, suffix):
    rows = {"claim_id": ["a", "a", "b"], "evaluator": "e", "score": 0.7}
    table = validate_verdicts(pd.DataFrame({**rows, "repeat": [None, 2, "0"]}), claims)
    assert table["repeat"].tolist() == [0, 2, 0]
    write_table(table, tmp_path / f"v{suffix}")
    assert list_plain_rows(
        read_verdicts(tmp_path / f"v{suffix}", claims=claims)
    ) == list_plain_rows(table)
    # Files of one evaluator go together where their repeats differ.
    write_table(table.iloc[:1], tmp_path / f"1{suffix}")
    write_table(table.iloc[1:], tmp_path / f"2{suffix}")
    assert read_verdicts(tmp_path / f"1{suffix}", tmp_path / f"2{suffix}")["repeat"].tolist() == [
        0,
        2,
        0,
    ]
    with pytest.raises(InputError, match="another on 'a' of repeat 2"):
        read_verdicts(tmp_path / f"v{suffix}", tmp_path / f"2{suffix}")


@pytest.mark.parametrize("wrong", [-1, 0.5, "twice"])
def test_a_repeat_is_a_whole_number(wrong):
    table = pd.DataFrame(
        {"claim_id": "a", "evaluator": "e", "score": [0.7], "repeat": [wrong]}, dtype=object
    )
    assert "row 1, column 'repeat': expected a whole number" in message(validate_verdicts, table)


def test_without_repeats_a_file_has_no_such_column(claims, tmp_path):
    verdicts = validate_verdicts(
        pd.DataFrame({"claim_id": ["a", "b"], "evaluator": "e", "score": 0.7})
    )
    write_table(verdicts, tmp_path / "v.csv")
    assert "repeat" not in (tmp_path / "v.csv").read_text()


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_a_row_can_stand_for_a_response_without_claims(tmp_path, suffix):
    rows = pd.DataFrame(
        {
            "claim_id": ["a", "b", "c"],
            "dataset": "D",
            "response_id": ["1", "2", "3"],
            "fact_id": ["f", None, None],
            "claim": ["x", None, None],
            "abstained": [None, 1, 0],
        }
    )
    table = validate_claims(rows)
    assert table["abstained"].tolist() == [pd.NA, 1, 0]
    write_table(table, tmp_path / f"c{suffix}")
    pd.testing.assert_frame_equal(read_claims(tmp_path / f"c{suffix}"), table)
    verdict = pd.DataFrame({"claim_id": ["b"], "evaluator": "e", "score": 0.7})
    assert "'claim_id': expected the id of a claim, but it is a response" in message(
        validate_verdicts, verdict, table
    )
    said = message(validate_claims, rows.assign(claim="x", label=1, response_id=["1", None, "3"]))
    for problem in (
        "row 2, column 'claim': expected nothing where abstained is set, found 'x'",
        "row 3, column 'label': expected nothing where abstained is set, found 1",
        "row 2, column 'response_id': expected text where abstained is set",
    ):
        assert problem in said


def test_numbers_as_ids_keep_their_digits(tmp_path):
    path = tmp_path / "c.csv"
    path.write_text(
        "claim_id,dataset,claim,doc_id,system\n007,D,x,15596,7\n008,D,y,,70\n", encoding="utf-8"
    )
    table = read_claims(path)
    assert table["claim_id"].tolist() == ["007", "008"]
    assert table["doc_id"].iloc[0] == "15596"
    parquet = tmp_path / "c.parquet"
    pd.DataFrame({"dataset": "D", "claim": ["x", "y"], "doc_id": [15596, np.nan]}).to_parquet(
        parquet
    )
    assert read_claims(parquet)["doc_id"].iloc[0] == "15596"


def test_a_byte_order_mark_is_no_part_of_the_first_name(tmp_path):
    path = tmp_path / "c.csv"
    path.write_bytes("dataset,claim\nD,x\n".encode("utf-8-sig"))
    assert read_claims(path)["dataset"].tolist() == ["D"]


def test_several_files_are_one_table(claims, tmp_path):
    write_table(claims.iloc[:2], tmp_path / "1.csv")
    write_table(claims.iloc[2:], tmp_path / "2.jsonl")
    assert read_claims(tmp_path / "1.csv", tmp_path / "2.jsonl")["claim_id"].tolist() == [
        "a",
        "b",
        "c",
    ]
    text = message(read_claims, tmp_path / "1.csv", tmp_path / "1.csv")
    where = f"{tmp_path / '1.csv'}, row 1"
    assert f"{where}, column 'claim_id': expected ids that are unique over all the sources" in text
    assert f"but 'a' is also in {where}" in text


# ---- what is refused


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_is_said_whole(name, tmp_path):
    case = REFUSED[name]
    path = tmp_path / case["file"]
    path.write_bytes(case["text"].encode() if "text" in case else base64.b64decode(case["base64"]))
    read = read_claims if case["reads"] == "claims" else read_verdicts
    assert message(read, path).replace(str(path), "FILE") == case["says"].rstrip("\n")


def test_what_is_no_file_is_refused(tmp_path):
    assert "no such file" in message(read_claims, tmp_path / "absent.csv")
    (tmp_path / "x.csv").mkdir()
    assert "this is a folder" in message(read_claims, tmp_path / "x.csv")


def test_nan_is_no_score(tmp_path):
    """Python's JSON writes a missing number so."""
    row = {"claim_id": "a", "evaluator": "e", "score": float("nan"), "prediction": 1}
    assert read_verdicts(jsonl(tmp_path / "v.jsonl", row))["score"].isna().all()


def test_verdicts_of_unknown_claims(claims, tmp_path):
    rows = [{"claim_id": i, "evaluator": "e", "prediction": 1} for i in ("a", "q")]
    text = message(read_verdicts, jsonl(tmp_path / "v.jsonl", *rows), claims=claims)
    expected = (
        "line 2, column 'claim_id': expected the id of a claim, but no claim has it, found 'q'"
    )
    assert text.endswith(expected)


def test_csv_from_pandas_and_spreadsheets(tmp_path):
    path = tmp_path / "C.CSV"
    document = "A long page. " * 20_000  # longer than the field that Python's csv allows
    path.write_bytes(
        f',dataset,claim,doc,label,\r\n0,D,x,{document},True,\r\n\r\n1,D,"y\r\nz",,False,\r\n'.encode()
    )
    table = read_claims(path)
    assert table["label"].tolist() == [1, 0]
    assert table["claim"].tolist() == ["x", "y\r\nz"]
    assert table["doc"].iloc[0] == document
    assert list(table.columns) == [*CLAIM_COLUMNS, "Unnamed: 0"]


def test_parquet_of_any_types(tmp_path):
    table = pa.table(
        {
            "claim_id": pa.array([2**63, 1], pa.uint64()),
            "dataset": pa.array(["D", "E"]).dictionary_encode(),
            "claim": ["x", "y"],
            "doc_id": pa.array([7.0, None]),
            "topic": pa.array([Decimal(5), None]),
            "label": pa.array([Decimal(1), Decimal(0)]),
        }
    )
    pq.write_table(table, tmp_path / "c.parquet")
    claims = read_claims(tmp_path / "c.parquet")
    assert claims["claim_id"].tolist() == [str(2**63), "1"]
    assert claims["label"].tolist() == [1, 0]
    assert [claims[column].iloc[0] for column in ("dataset", "doc_id", "topic")] == ["D", "7", "5"]
    pq.write_table(table.append_column("label", pa.array([1, 0])), tmp_path / "twice.parquet")
    assert "column 'label': the column is there twice" in message(
        read_claims, tmp_path / "twice.parquet"
    )


@pytest.mark.parametrize(
    "value", [float("inf"), 1e300, 2.5, b"x", [1], True, pd.Timestamp("2024-05-01")]
)
def test_ids_that_are_no_text(value):
    table = pd.DataFrame({"dataset": "D", "claim": "x", "doc_id": pd.Series([value])})
    assert "row 1, column 'doc_id': expected text, found" in message(validate_claims, table)
    # Said once: a claim of the wrong type is not also a claim that is missing.
    assert (
        message(validate_claims, pd.DataFrame({"dataset": ["D"], "claim": [b"x"]})).count("row 1")
        == 1
    )


def test_an_index_of_claim_ids_is_the_column(tmp_path):
    table = pd.DataFrame({"claim_id": ["a", "b"], "dataset": "D", "claim": ["x", "y"]}).set_index(
        "claim_id"
    )
    assert validate_claims(table)["claim_id"].tolist() == ["a", "b"]
    table.to_parquet(tmp_path / "c.parquet")
    assert read_claims(tmp_path / "c.parquet")["claim_id"].tolist() == ["a", "b"]


def test_equal_rows_of_two_files_without_ids_get_two_ids(tmp_path):
    for name in ("1.csv", "2.csv"):
        (tmp_path / name).write_text("dataset,claim\nD,x\n", encoding="utf-8")
    assert read_claims(tmp_path / "1.csv", tmp_path / "2.csv")["claim_id"].is_unique


@pytest.mark.parametrize("suffix", SUFFIXES)
def test_any_extra_column_can_be_written(tmp_path, suffix):
    table = pd.DataFrame(
        {
            "claim_id": ["a", "b"],
            "dataset": "D",
            "claim": ["a\rlone return", "b\r\nc"],
            "mixed": [1, "x"],
            "object": [{"k": np.float32(0.5)}, {}],
            "list": [[1, 2], []],
            "when": pd.to_datetime(["2024-05-01", None]),
            "number": [Decimal("0.5"), None],
            7: [1, 2],
        }
    )
    write_table(validate_claims(table), tmp_path / f"c{suffix}")
    again = read_claims(tmp_path / f"c{suffix}")
    assert again["claim"].tolist() == table["claim"].tolist()
    assert {"mixed", "object", "list", "when", "number", "7"} <= set(again.columns)
    assert str(again["mixed"].iloc[1]) in ("x", '"x"')
    if not suffix.startswith(".csv"):
        assert [[*one] for one in again["list"]] == [[1, 2], []]


def test_a_document_may_be_a_list_of_passages(tmp_path):
    rows = [{"dataset": "D", "claim": "x", "doc": doc} for doc in (["a", "b"], "a\n\nb")]
    assert read_claims(jsonl(tmp_path / "c.jsonl", *rows))["doc"].tolist() == ["a\n\nb"] * 2


# ---- predictions


def test_the_default_prediction_is_strictly_above_one_half():
    verdicts = validate_verdicts(
        pd.DataFrame(
            {"claim_id": list("abc"), "evaluator": "e", "score": [0.5, np.nextafter(0.5, 1), 0.0]}
        )
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


@settings(max_examples=60)
@given(
    st.lists(
        st.tuples(texts, st.none() | texts, st.sampled_from([0, 1, None])).filter(
            lambda r: r[0].strip()
        ),
        min_size=1,
        max_size=8,
    )
)
@pytest.mark.slow
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
        assert list_plain_rows(read_claims(folder / f"c{suffix}")) == list_plain_rows(table)
