"""Files past memory: what DuckDB loads gives the rows that tables in memory give, and is refused
alike."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from audit_tables import join

from factaudit import InputError, UsageError, run, validate_claims, validate_verdicts
from factaudit.arrays import duckdb_tables
from factaudit.audit import list_computable_audits
from factaudit.experiment.run import Experiment
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.tables import STATUSES

duckdb = pytest.importorskip("duckdb", reason="needs the [duckdb] extra")


def messy(seed: int, n: int = 400) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Claims with and without documents, responses, systems and labels; verdicts with gaps, guesses
    and repeats."""
    random = np.random.default_rng(seed)

    def some(values: np.ndarray, share: float) -> np.ndarray:
        return np.where(random.random(n) < share, None, values.astype(object))

    response = random.integers(0, n // 4, n)
    claims = pd.DataFrame(
        {
            "claim_id": [f"c{i:04}" for i in random.permutation(n)],
            "dataset": np.array(["b", "a", "ä"])[response % 3],
            "system": [None if r % 11 == 0 else f"s{r % 4}" for r in response],
            "response_id": [None if r % 7 == 0 else str(r) for r in response],
            # Mostly one document to a response; some name several, some none.
            "doc_id": some(
                np.where(random.random(n) < 0.1, random.integers(0, 9, n), response // 3).astype(
                    str
                ),
                0.1,
            ),
            "task": some(np.array(["x", "y"])[random.integers(0, 2, n)], 0.2),
            "topic": [f"t{r % 5}" for r in response],
            "claim": "text",
            "label": some(random.integers(0, 2, n), 0.2),
            "abstained": None,
        }
    )
    lone = {
        "claim_id": "lone",
        "dataset": "a",
        "system": "s1",
        "response_id": "silent",
        "abstained": 1,
        "topic": "t0",
    }
    claims = pd.concat([claims, pd.DataFrame([lone])], ignore_index=True)
    parts = []
    for name in ("e2", "e1", "e3"):
        score = np.round(random.random(n), 2)
        status = np.array(STATUSES, dtype=object)[
            random.choice(5, n, p=[0.8, 0.08, 0.04, 0.04, 0.04])
        ]
        guessed = (status == "unparsed") & (random.random(n) < 0.5) & (name != "e3")
        parts.append(
            pd.DataFrame(
                {
                    "claim_id": claims["claim_id"][:n],
                    "evaluator": name,
                    "score": np.where(status == "ok", score, np.nan),
                    "prediction": np.where(guessed, 1.0, np.nan),
                    "status": status,
                    "repeat": 0,
                }
            ).sample(frac=0.95, random_state=seed)
        )
    parts.append(parts[0].head(50).assign(repeat=1, prediction=0, status="ok"))
    return claims, pd.concat(parts, ignore_index=True)


def written(
    folder: Path, claims: pd.DataFrame, verdicts: pd.DataFrame
) -> tuple[list[str], list[str]]:
    """The files of claims and of verdicts."""
    half = len(verdicts) // 2
    parts = {"claims": claims, "verdicts-1": verdicts[:half], "verdicts-2": verdicts[half:]}
    for name, table in parts.items():
        table.to_parquet(folder / f"{name}.parquet")
    first, *others = (str(folder / f"{name}.parquet") for name in parts)
    return [first], others


def as_numbers(claims: pd.DataFrame, verdicts: pd.DataFrame) -> None:
    """Whole numbers for ids, as text in one of the tables; no claim has a system."""
    number = {name: at * 37 % 1009 for at, name in enumerate(claims["claim_id"])}
    claims["claim_id"], verdicts["claim_id"] = (
        table["claim_id"].map(number) for table in (claims, verdicts)
    )
    verdicts["claim_id"] = verdicts["claim_id"].astype(str)
    claims["system"] = None


def by_text(claims: pd.DataFrame, verdicts: pd.DataFrame) -> None:
    """Documents by their texts alone, some of them lists of passages' worth of lines, blank or a
    placeholder."""
    texts = np.array(["Ä text.", "a\n\nb", " ", "(no text: row 3 of x)", "it's"], dtype=object)
    claims["doc"] = texts[np.arange(len(claims)) // 3 % 5]
    claims["doc_id"] = None


def by_passages(claims: pd.DataFrame, verdicts: pd.DataFrame) -> None:
    claims["doc"] = [[f"passage {at // 4 % 9}", "and another"] for at in range(len(claims))]
    claims["doc_id"] = None


def as_facts(claims: pd.DataFrame, verdicts: pd.DataFrame) -> None:
    """Each fact stands beside several people, so that a response is not wrong because one of them
    is 0."""
    claims["fact_id"] = [f"f{at // 3}" for at in range(len(claims))]
    claims["entity"] = [f"person {at % 3}" for at in range(len(claims))]


def without_labels(claims: pd.DataFrame, verdicts: pd.DataFrame) -> None:
    claims["label"] = pd.array([None] * len(claims), dtype="Int8")


def graded(claims: pd.DataFrame, verdicts: pd.DataFrame) -> None:
    verdicts["grade"] = np.round(verdicts["score"] * 4)
    claims["grade"] = np.arange(len(claims)) % 5


CHANGES = [None, as_numbers, by_text, by_passages, as_facts, without_labels, graded]


@pytest.mark.parametrize(
    "change", [pytest.param(one, marks=[pytest.mark.slow] if one else []) for one in CHANGES]
)
def test_loaded_tables_give_the_rows_of_tables_in_memory(tmp_path, monkeypatch, change):
    claims, verdicts = messy(len(str(change)) % 7)
    if change is not None:
        change(claims, verdicts)
    tables = written(tmp_path, claims, verdicts)
    known = validate_claims(claims)
    judged = join(known, validate_verdicts(verdicts, claims=known))
    monkeypatch.setattr(duckdb_tables, "ROWS_PER_BLOCK", 2048)
    loaded = duckdb_tables.load_duckdb_judgements(*tables, tmp_path)
    for name in (
        "label",
        "prediction",
        "score",
        "status",
        "repeat_predictions",
        "cluster_codes",
        "grade",
    ):
        np.testing.assert_array_equal(getattr(loaded, name), getattr(judged, name), name)
    np.testing.assert_array_equal(loaded.responses.cluster_codes, judged.responses.cluster_codes)
    intervals = ClusterBootstrap(50)
    texts = (
        {"surface_bias", "covariates", "chunking", "chunking_rates"} if "doc" in claims else set()
    )
    found = 0
    for name, audit in list_computable_audits().items():
        if name in texts or (audit.applies is not None and not audit.applies(judged)):
            continue
        expected = audit.compute(judged, intervals=intervals)
        assert audit.compute(loaded, intervals=intervals) == expected, name
        found += bool(expected)
    assert found >= 10


WRONG = [
    (
        "claims",
        {"label": 2},
        "row 3, column 'label': expected 1 (attributable), 0 (unattributable) or nothing",
    ),
    ("claims", {"claim_id": None}, "row 3, column 'claim_id': expected an id, found none"),
    ("claims", {"claim_id": "c1"}, "column 'claim_id': expected unique ids, but 'c1' is also in"),
    ("claims", {"dataset": "__macro__"}, "row 3, column 'dataset': expected another name"),
    (
        "claims",
        {"variant_of": "c1"},
        "column 'variant_of': expected nothing: variants are audited in memory alone",
    ),
    (
        "verdicts",
        {"claim_id": "c9"},
        "row 2, column 'claim_id': expected the id of a claim, but no claim has it",
    ),
    (
        "verdicts",
        {"claim_id": "c1"},
        "row 2, column 'claim_id': expected one verdict per claim and evaluator",
    ),
    (
        "verdicts",
        {"score": 1.5},
        "row 2, column 'score': expected a number from 0 to 1, or nothing, found 1.5",
    ),
    (
        "verdicts",
        {"prediction": 3},
        "row 2, column 'prediction': expected 1, 0 or nothing, found 3.0",
    ),
    (
        "verdicts",
        {"status": "fine"},
        "row 2, column 'status': expected one of ok, unparsed, refused, error, skipped",
    ),
    (
        "verdicts",
        {"score": None, "prediction": None},
        "row 2, column 'prediction': no score and no prediction",
    ),
    ("verdicts", {"evaluator": "__all__"}, "row 2, column 'evaluator': expected another name"),
    (
        "verdicts",
        {"repeat": 0.5},
        "row 2, column 'repeat': expected a whole number from 0 on, or nothing, found 0.5",
    ),
    (
        "verdicts",
        {"repeat": 2**31},
        "row 2, column 'repeat': expected a number below 2,147,483,648, found 2147483648",
    ),
]


@pytest.mark.parametrize(("table", "change", "message"), WRONG)
def test_what_is_wrong_is_said_with_file_row_and_column(tmp_path, table, change, message):
    tables = {
        "claims": pd.DataFrame(
            {"claim_id": ["c1", "c2", "c3"], "dataset": "d", "label": [1.0, 0.0, None]}
        ),
        "verdicts": pd.DataFrame(
            {"claim_id": ["c1", "c2", "c3"], "evaluator": "e", "score": [0.1, 0.9, 0.5]}
            | {"prediction": [np.nan, 1, 1], "status": "ok", "repeat": [0.0, 0.0, 0.0]}
        ),
    }
    for column, value in change.items():
        tables[table].loc[2, column] = value
    found = written(tmp_path, tables["claims"], tables["verdicts"])
    with pytest.raises(InputError) as raised:
        duckdb_tables.load_duckdb_judgements(*found, tmp_path)
    assert message in str(raised.value)
    if "unique" not in message:
        assert str(raised.value).startswith(
            str(tmp_path / ("claims" if table == "claims" else "verdicts-2"))
        )


@pytest.mark.slow
def test_an_experiment_loads_files_as_it_reads_them(tmp_path):
    written(tmp_path, *messy(2))
    found = []
    for where in ("memory", "duckdb"):
        (tmp_path / f"{where}.yaml").write_text(
            "replicates: 0\naudits: [quantification, {rates: {by: [topic]}}]\n"
            f"claims: claims.parquet\nverdicts: [verdicts-*.parquet]\nwhere: {where}\n"
        )
        found.append(run(tmp_path / f"{where}.yaml", tmp_path / where))
    assert found[0].audits == found[1].audits
    assert found[0].about["claims"] == found[1].about["claims"]
    assert not list((tmp_path / "duckdb").rglob("*.parquet"))  # the files are not copied


def test_an_evaluator_without_repeat_0_is_refused_as_in_memory(tmp_path):
    claims = pd.DataFrame({"claim_id": ["c1"], "dataset": "d", "claim": "A.", "label": 1})
    verdicts = pd.DataFrame(
        {"claim_id": "c1", "evaluator": ["a", "b"], "repeat": [0, 1], "score": 0.9}
    )
    files = written(tmp_path, claims, verdicts)
    with pytest.raises(UsageError, match="no verdict of b has repeat 0"):
        duckdb_tables.load_duckdb_judgements(*files, tmp_path)


def test_what_cannot_be_done_past_memory_is_refused_by_name(tmp_path):
    written(tmp_path, *messy(3, 40))
    claims, verdicts = str(tmp_path / "claims.parquet"), str(tmp_path / "verdicts-1.parquet")
    table = tmp_path / "claims.csv"
    table.write_text("claim_id,dataset\n")
    (tmp_path / "no.parquet").write_text("no table")
    pd.DataFrame({"claim_id": [], "dataset": []}).to_parquet(tmp_path / "empty.parquet")
    foreign = {"format": "aggrefact", "source": [claims]}
    for given, message in (
        ({"audits": ["rates", "surface_bias"]}, "'surface_bias' reads texts, which DuckDB does"),
        ({"claims": [claims, foreign]}, "reads Parquet files of claims and of verdicts, no other"),
        ({"verdicts": []}, "reads Parquet files of claims and of verdicts, no other"),
        ({"evaluators": ["tfidf"]}, "audits claims and verdicts as they are, found evaluators"),
        ({"estimate": {}}, "audits claims and verdicts as they are, found estimate"),
        ({"split": "dev"}, "audits claims and verdicts as they are, found split"),
        ({"claims": [str(table)]}, "expected Parquet: other files are read into memory"),
        ({"verdicts": [str(tmp_path / "no.parquet")]}, "no.parquet: cannot be read"),
        ({"claims": [str(tmp_path / "empty.parquet")]}, "the file has no rows"),
        ({"claims": [verdicts]}, "column 'dataset': the column is missing"),
    ):
        files = {"claims": [claims], "verdicts": [verdicts], "where": "duckdb"}
        with pytest.raises((UsageError, InputError, ValueError), match=message):
            run(Experiment(**files | given), tmp_path / "run")


def test_so_many_verdicts_that_duckdb_may_be_needed_are_told_before_they_are_read(
    tmp_path, monkeypatch
):
    written(tmp_path, *messy(3, 40))
    (tmp_path / "e.yaml").write_text(
        "replicates: 0\naudits: [rates]\nclaims: claims.parquet\nverdicts: [verdicts-*.parquet]\n"
    )
    said: list[str] = []
    run(tmp_path / "e.yaml", tmp_path / "few", say=said.append)
    assert not any("duckdb" in line for line in said)
    monkeypatch.setattr("factaudit.experiment.run.MANY_VERDICTS", 20)
    run(tmp_path / "e.yaml", tmp_path / "many", say=said.append)
    (note,) = [line for line in said if "--where duckdb" in line]
    assert "verdicts are read into memory" in note
