"""Tables that are valid in our own schema are read by it alone: everyday further columns change no
figure."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pytest
import yaml

import factaudit as fa
from factaudit import InputError
from factaudit.datasets.input_tables import load_input_tables
from factaudit.tables.mapping_options import parse_column_mapping_options
from factaudit.tables.table_loading import load_tables

N = 48
IDS = [f"c{i:02}" for i in range(N)]
LABELS = [int(i % 3 > 0) for i in range(N)]
PREDICTIONS = [int(i % 4 > 0) for i in range(N)]


def repeat_values(*values: Any) -> list[Any]:
    return [values[i % len(values)] for i in range(N)]


#: Columns that people's tables have beside ours, with the values that they have there.
EVERYDAY_COLUMNS: dict[str, list[Any]] = {
    name: repeat_values(*values)
    for name, values in yaml.safe_load(
        (Path(__file__).parent / "everyday_columns.yaml").read_text("utf-8")
    ).items()
}

CLAIMS: dict[str, list[Any]] = {
    "claim_id": IDS,
    "dataset": ["d"] * N,
    "system": repeat_values("s", "y"),
    "doc": [f"Report {i // 2}: the river runs past the old town." for i in range(N)],
    "claim": [f"The river {i} runs past a town." for i in range(N)],
    "label": LABELS,
}
VERDICTS: dict[str, list[Any]] = {
    "claim_id": IDS,
    "evaluator": ["judge"] * N,
    "prediction": PREDICTIONS,
}


def compute_figures(claims: Any, verdicts: Any) -> Any:
    return fa.compare(
        claims, verdicts, audits=["rates", "quantification", "differences"], replicates=0
    ).audits


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


def test_there_are_at_least_sixty_everyday_columns() -> None:
    assert len(EVERYDAY_COLUMNS) >= 60


@pytest.fixture(scope="module")
def plain() -> Any:
    """The figures without a further column."""
    return compute_figures(pd.DataFrame(CLAIMS), pd.DataFrame(VERDICTS))


@pytest.mark.parametrize("column", [*EVERYDAY_COLUMNS, "all of them"])
def test_a_further_column_changes_no_figure_of_frames(
    column: str, plain: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    further = EVERYDAY_COLUMNS if column == "all of them" else {column: EVERYDAY_COLUMNS[column]}
    claims, verdicts = pd.DataFrame(CLAIMS), pd.DataFrame(VERDICTS)
    own = ("status", "raw", "repeat", "score", *VERDICTS)
    beside = {name: values for name, values in further.items() if name not in own}
    assert compute_figures(claims.assign(**further), verdicts) == plain
    if column == "all of them":
        assert compute_figures(pa.Table.from_pandas(claims.assign(**further)), verdicts) == plain
    if beside:
        assert compute_figures(claims, pa.Table.from_pandas(verdicts.assign(**beside))) == plain
    told = capsys.readouterr().err
    assert all(line.startswith("ignored   ") for line in told.splitlines())


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".jsonl", ".tsv"])
def test_further_columns_change_no_cell_of_files(suffix: str, tmp_path: Path, plain: Any) -> None:
    claims, verdicts = pd.DataFrame(CLAIMS), pd.DataFrame(VERDICTS)
    alone = load_tables(write_tables(tmp_path, suffix, claims, verdicts))
    assert alone.claims is not None
    assert alone.claims["label"].tolist() == LABELS
    assert alone.verdicts is not None
    assert alone.verdicts["prediction"].tolist() == PREDICTIONS
    assert compute_figures(alone.claims, alone.verdicts) == plain
    for column, values in EVERYDAY_COLUMNS.items():
        said: list[str] = []
        paths = write_tables(tmp_path, suffix, claims.assign(**{column: values}), verdicts)
        loaded = load_tables(paths, report_line=said.append)
        assert all(line.startswith("ignored   ") for line in said)
        assert loaded.annotations is None, column
        assert loaded.claims is not None
        assert column in loaded.claims
        pd.testing.assert_frame_equal(loaded.claims[alone.claims.columns], alone.claims, obj=column)
        pd.testing.assert_frame_equal(loaded.verdicts, alone.verdicts, obj=column)


def test_words_for_labels_make_no_evaluator_of_a_further_column(
    capsys: pytest.CaptureFixture[str],
) -> None:
    claims = pd.DataFrame(
        CLAIMS | {"label": ["supported" if x else "refuted" for x in LABELS]} | EVERYDAY_COLUMNS
    )
    plain = compute_figures(pd.DataFrame(CLAIMS), pd.DataFrame(VERDICTS))
    claims = claims.drop(columns="annotator")
    assert compute_figures(claims, pd.DataFrame(VERDICTS | {"status": ["ok"] * N})) == plain
    said = capsys.readouterr().err
    assert "supported = 1" in said
    assert "ok = 1" not in said


def test_an_option_makes_no_evaluator_of_a_further_column(tmp_path: Path) -> None:
    verdicts = {
        "claim_id": IDS,
        "evaluator": ["judge"] * N,
        "score": [0.4 if x else 0.2 for x in PREDICTIONS],
    }
    paths = write_tables(
        tmp_path, ".csv", pd.DataFrame(CLAIMS | EVERYDAY_COLUMNS), pd.DataFrame(verdicts)
    )
    loaded = load_tables(paths, parse_column_mapping_options(threshold=("score=0.3",)))
    assert loaded.claims is not None
    assert loaded.claims["label"].tolist() == LABELS
    assert loaded.claims["system"].tolist() == CLAIMS["system"]
    assert loaded.verdicts is not None
    assert loaded.verdicts["evaluator"].unique().tolist() == ["judge"]
    assert loaded.verdicts["prediction"].tolist() == PREDICTIONS


def test_rows_of_several_annotators_are_no_claims_each() -> None:
    one = pd.DataFrame(CLAIMS).drop(columns=["claim_id"])
    both = pd.concat([one.assign(annotator=name) for name in ("ann", "ben")], ignore_index=True)
    loaded = load_tables([both])
    assert loaded.claims is not None
    assert len(loaded.claims) == N
    assert loaded.annotations is not None
    assert len(loaded.annotations) == 2 * N


@pytest.mark.slow
@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_further_columns_change_no_figure_of_the_command(
    suffix: str, tmp_path: Path, call: Any
) -> None:
    """All that an audit computes of each claim; only what is told by columns to group by may be
    more."""
    claims, verdicts = pd.DataFrame(CLAIMS), pd.DataFrame(VERDICTS)
    figures = []
    for name, further in (("plain", {}), ("further", EVERYDAY_COLUMNS)):
        folder = tmp_path / name
        folder.mkdir()
        paths = write_tables(folder, suffix, claims.assign(**further), verdicts)
        code, out, err = call("audit", *paths, "--out", folder / "run", "--replicates", 0)
        assert code == 0, err
        assert "columns   " not in out, "a reading is told, where none was needed"
        results = json.loads((folder / "run/results.json").read_text(encoding="utf-8"))
        figures.append(
            {
                audit: results["audits"][audit]
                for audit in ("rates", "quantification", "differences")
            }
        )
    assert figures[0] == figures[1]


def test_a_further_column_that_the_user_names_is_an_evaluator(tmp_path, call):
    """It was ignored, and there was nothing to audit. Where an audit has no verdicts else, it needs
    no option."""
    table = pd.DataFrame(
        {"dataset": "d", "doc": "The text.", "claim": [f"Claim {i}." for i in range(N)]}
    )
    table = table.assign(
        label=LABELS,
        summac_conv=[0.9 if one else 0.1 for one in PREDICTIONS],
        batch=[0, 1] * (N // 2),
    )
    table["claude-3.5"] = ["Yes" if one else "No" for one in PREDICTIONS]
    path = tmp_path / "claims.csv"
    table.to_csv(path, index=False)
    verdicts = load_tables(
        [path], parse_column_mapping_options(evaluator=("summac_conv",))
    ).verdicts
    assert verdicts is not None
    assert [*verdicts["evaluator"].unique()] == ["summac_conv"]
    assert verdicts["prediction"].tolist() == PREDICTIONS
    rates = fa.compare(table, evaluators=["summac_conv"], audits=["rates"], replicates=0).table(
        "rates"
    )
    assert [*rates["evaluator"].unique()] == ["summac_conv"]
    code, out, err = call("audit", path, "--out", tmp_path / "run", "--replicates", 0)
    assert code == 0, err
    assert "evaluator summac_conv, evaluator claude-3.5" in out
    assert "ignored   batch" in out


def test_an_annotator_may_be_called_0():
    """Worker 0's votes were given to the first place of the list, where worker 1's replaced
    them."""
    rows = [
        {
            "doc": "The text.",
            "claim": f"Claim {i}.",
            "votes": [{"worker": k, "label": one} for k in (1, 0)],
        }
        for i, one in enumerate(LABELS)
    ]
    mapping = {"columns": {"label": "votes[].label", "annotator": "votes[].worker"}}
    for table in (pd.DataFrame(rows), pa.Table.from_pylist(rows)):
        people = load_input_tables([table], mapping).annotations
        assert people is not None
        assert people.groupby("annotator").size().to_dict() == {"0": N, "1": N}


def test_further_judgements_are_told_and_change_nothing(tmp_path: Path) -> None:
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
        said: list[str] = []
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


@pytest.mark.parametrize("mapping", [{}, {"columns": {"claim_id": "claim_id"}}])
def test_a_repeated_claim_id_is_refused(mapping: dict[str, Any]) -> None:
    """In a table with other names too; a mere ``id`` may be the documents'."""
    table = pd.DataFrame(CLAIMS).drop(columns=["dataset", "label"])
    table = table.assign(human_label=LABELS, gpt4=PREDICTIONS, claim_id=["c01", *IDS[1:]])
    with pytest.raises(InputError, match="expected unique ids, but 'c01' is also in row 1"):
        load_tables([table], mapping)
    documents = table.rename(columns={"claim_id": "id"})
    assert load_tables([documents]).claims["doc_id"].tolist() == ["c01", *IDS[1:]]
    said = load_tables([table], {"columns": {"doc_id": "claim_id"}}).claims
    assert said["doc_id"].tolist() == ["c01", *IDS[1:]]
