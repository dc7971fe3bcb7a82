"""Tables that are valid in our own schema are read by it alone: everyday further columns change no
figure."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
import yaml
from audit_tables import load_input_tables

import factaudit as fa
from factaudit import InputError
from factaudit.tables.mapping_options import parse_column_mapping_options
from factaudit.tables.table_loading import load_tables

N = 48
IDS = [f"c{i:02}" for i in range(N)]
LABELS = [int(i % 3 > 0) for i in range(N)]
PREDICTIONS = [int(i % 4 > 0) for i in range(N)]


def repeat_values(*values: Any) -> list[Any]:
    return [values[i % len(values)] for i in range(N)]


#: Columns that people's tables have beside ours, with the values that they have there.
EVERYDAY_COLUMNS = {
    name: repeat_values(*values)
    for name, values in yaml.safe_load(
        (Path(__file__).parent / "everyday_columns.yaml").read_text("utf-8")
    ).items()
}

CLAIMS = {
    "claim_id": IDS,
    "dataset": ["d"] * N,
    "system": repeat_values("s", "y"),
    "doc": [f"Report {i // 2}: the river runs past the old town." for i in range(N)],
    "claim": [f"The river {i} runs past a town." for i in range(N)],
    "label": LABELS,
}
VERDICTS = {
    "claim_id": IDS,
    "evaluator": ["judge"] * N,
    "prediction": PREDICTIONS,
}


def read_own_columns(claims, verdicts):
    """What is read of our columns: all that audits compute is computed from them."""
    loaded = load_tables([claims, verdicts])
    assert loaded.annotations is None
    return loaded.claims[[*CLAIMS]], loaded.verdicts


def write_tables(
    folder: Path, suffix: str, claims: pd.DataFrame, verdicts: pd.DataFrame
) -> list[Path]:
    paths = [folder / f"claims{suffix}", folder / f"verdicts{suffix}"]
    for path, table in zip(paths, (claims, verdicts), strict=True):
        if suffix == ".parquet":
            table.to_parquet(path)
        elif suffix == ".jsonl":
            table.to_json(path, orient="records", lines=True)
        else:
            table.to_csv(path, index=False, sep="\t" if suffix == ".tsv" else ",")
    return paths


@pytest.mark.parametrize("column", [*EVERYDAY_COLUMNS, "all of them"])
def test_a_further_column_changes_nothing_of_ours(column, capsys):
    further = EVERYDAY_COLUMNS if column == "all of them" else {column: EVERYDAY_COLUMNS[column]}
    claims, verdicts = pd.DataFrame(CLAIMS), pd.DataFrame(VERDICTS)
    own = ("status", "raw", "repeat", "score", *VERDICTS)
    beside = {name: values for name, values in further.items() if name not in own}
    plain = read_own_columns(claims, verdicts)
    given = [
        (claims.assign(**further), verdicts),
        (pa.Table.from_pandas(claims.assign(**further)), verdicts),
        (claims, pa.Table.from_pandas(verdicts.assign(**beside))),
    ]
    for tables in given:
        for found, expected in zip(read_own_columns(*tables), plain, strict=True):
            pd.testing.assert_frame_equal(found[expected.columns], expected)
    results = [
        fa.compare(*tables, audits=["rates"], replicates=0).audits
        for tables in [(claims, verdicts), *given]
        if column == "all of them"
    ]
    assert all(one == results[0] for one in results)
    told = capsys.readouterr().err
    assert all(line.startswith("ignored   ") for line in told.splitlines())


@pytest.mark.parametrize("without", [["claim_id"], []])
def test_rows_of_several_annotators_are_no_claims_each(without):
    one = pd.DataFrame(CLAIMS).drop(columns=without)
    both = pd.concat([one.assign(annotator=name) for name in ("ann", "ben")], ignore_index=True)
    loaded = load_tables([both])
    assert loaded.claims is not None
    assert len(loaded.claims) == N
    assert loaded.annotations is not None
    assert len(loaded.annotations) == 2 * N


def test_further_judgements_are_told_and_change_nothing(tmp_path):
    """An evaluator and people beside our labels were lost unsaid; a label that the user named was
    not taken."""
    claims, verdicts = pd.DataFrame(CLAIMS), pd.DataFrame(VERDICTS)
    paths = write_tables(tmp_path, ".csv", claims, verdicts)
    alone = load_tables(paths)
    people = [1 - one if i % 9 == 0 else one for i, one in enumerate(LABELS)]
    for column, told in (
        ("minicheck", "--evaluator or --people reads it"),
        ("human_label", "--evaluator or --people reads it"),
    ):
        said = []
        paths = write_tables(tmp_path, ".csv", claims.assign(**{column: people}), verdicts)
        loaded = load_tables(paths, report_line=said.append)
        assert said == [f"ignored   {column}: {told}"]
        assert alone.claims is not None
        assert loaded.claims is not None
        pd.testing.assert_frame_equal(loaded.claims[alone.claims.columns], alone.claims)
        pd.testing.assert_frame_equal(loaded.verdicts, alone.verdicts)
        wide = load_tables(paths, parse_column_mapping_options(evaluator=(column,))).verdicts
        assert wide is not None
        assert {*wide["evaluator"]} == {column.removesuffix("_label")}
        named = load_tables(paths, parse_column_mapping_options(label=column)).claims
        assert named is not None
        assert named["label"].tolist() == people


def test_a_judge_beside_the_columns_of_a_published_format_is_told(tmp_path):
    """AggreFact's file has verdicts of its own; a column that a user added was lost unsaid."""
    names = {"claim": "summary", "system": "model_name"}
    table = pd.DataFrame(CLAIMS).rename(columns=names).drop(columns="claim_id", errors="ignore")
    table = table.assign(model_name="m", cut="test", doc="a text", DAE_score=0.2, mine_judge="yes")
    table.loc[::2, "mine_judge"] = "no"
    table.to_csv(tmp_path / "aggre_fact_sota.csv", index=False)
    for given, told, evaluators in (
        ({}, ["ignored   mine_judge: --evaluator or --people reads it"], {"DAE"}),
        ({"ignore": ["mine_judge"]}, [], {"DAE"}),
        ({"evaluator": ["mine_judge"]}, [], {"mine_judge"}),
    ):
        said = []
        loaded = load_input_tables([tmp_path / "aggre_fact_sota.csv"], given, said.append)
        assert [line for line in said if "mine_judge: " in line] == told
        assert loaded.verdicts is not None
        assert {*loaded.verdicts["evaluator"]} == evaluators


@pytest.mark.parametrize("mapping", [{}, {"columns": {"claim_id": "claim_id"}}])
def test_a_repeated_claim_id_is_refused(mapping):
    """In a table with other names too; a mere ``id`` may be the documents'."""
    table = pd.DataFrame(CLAIMS).drop(columns=["dataset", "label"])
    table = table.assign(human_label=LABELS, gpt4=PREDICTIONS, claim_id=["c01", *IDS[1:]])
    with pytest.raises(InputError, match="expected unique ids, but 'c01' is also in row 1"):
        load_tables([table], mapping)
    documents = table.rename(columns={"claim_id": "id"})
    assert load_tables([documents]).claims["doc_id"].tolist() == ["c01", *IDS[1:]]
    said = load_tables([table], {"columns": {"doc_id": "claim_id"}}).claims
    assert said["doc_id"].tolist() == ["c01", *IDS[1:]]
