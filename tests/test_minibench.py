"""The invariants of the benchmark that ships, data/minibench."""

from __future__ import annotations

import gzip
import importlib.util
import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pandas as pd
import pytest

from factaudit import tables

ERROR_TYPES = {"entity", "number", "negation", "relation", "outside", "merged", "overstatement", "coreference"}
SYSTEMS = {"magpie", "starling", "weaver", "jackdaw", "peacock", "cuckoo"}
TASKS = {"summarization", "long-form QA", "response verification", "data-to-text"}


@pytest.fixture(scope="module")
def folder(root: Path) -> Path:
    return root / "data" / "minibench"


@pytest.fixture(scope="module")
def claims(folder: Path) -> pd.DataFrame:
    return tables.read_claims(folder / "claims.jsonl.gz")


@pytest.fixture(scope="module")
def responses(folder: Path) -> list[dict[str, Any]]:
    paths = sorted((folder / "source").glob("responses-*.jsonl"))
    return [json.loads(line) for path in paths for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture(scope="module")
def build(folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("minibench_build", folder / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_size(claims: pd.DataFrame) -> None:
    documents = claims.drop_duplicates("doc_id")
    assert len(documents) >= 40
    assert (words(documents["doc"]) > 1000).sum() >= 10
    assert claims["response_id"].nunique() >= 160
    assert len(claims) >= 480
    assert set(claims["task"]) == TASKS
    assert set(claims["system"]) == SYSTEMS
    assert set(claims["split"]) == {"dev"}


def test_one_dataset_is_one_task(claims: pd.DataFrame) -> None:
    assert claims["dataset"].nunique() == 4
    assert (claims.groupby("dataset")["task"].nunique() == 1).all()
    assert (claims.groupby("dataset")["doc_id"].nunique() >= 10).all()


def test_ids_join_one_to_one(claims: pd.DataFrame) -> None:
    assert claims["claim_id"].is_unique
    assert (claims["claim_id"].str.rsplit("-", n=1).str[0] == claims["response_id"]).all()
    assert (claims["response_id"] == claims["doc_id"] + "-" + claims["system"]).all()
    assert (claims.groupby("doc_id")["doc"].nunique() == 1).all()
    assert claims.drop_duplicates("doc_id")["doc"].is_unique
    assert (claims.groupby("doc_id")["response_id"].nunique() == 4).all()


def test_both_labels_in_every_dataset_and_system(claims: pd.DataFrame) -> None:
    groups = claims.groupby(["dataset", "system"])
    assert len(groups) == 4 * len(SYSTEMS)
    assert (groups["label"].nunique() == 2).all()
    assert (groups["response_id"].nunique() >= 6).all()
    assert 0.60 <= (claims["label"] == 1).mean() <= 0.68


def test_error_type_exactly_where_unattributable(claims: pd.DataFrame) -> None:
    assert claims["label"].notna().all()
    assert (claims["error_type"].notna() == (claims["label"] == 0)).all()
    assert set(claims["error_type"].dropna()) == ERROR_TYPES


def test_every_unattributable_claim_has_a_reason(responses: list[dict[str, Any]]) -> None:
    for response in responses:
        for claim in response["claims"]:
            assert bool(claim["why"]) == (claim["label"] == 0), claim["claim"]


def test_claims_are_distinct_single_statements(claims: pd.DataFrame) -> None:
    assert not claims["claim"].str.casefold().duplicated().any()
    assert words(claims["claim"]).between(4, 60).all()
    assert claims["claim"].str.strip().eq(claims["claim"]).all()
    assert claims.groupby("response_id").size().between(2, 5).all()


def test_the_systems_keep_their_habits(claims: pd.DataFrame) -> None:
    error_rate = 1 - claims.groupby("system")["label"].mean()
    assert error_rate[["magpie", "starling"]].max() < error_rate["weaver"]
    assert error_rate["weaver"] < error_rate[["jackdaw", "peacock", "cuckoo"]].min()
    typical = claims[claims["label"] == 0].groupby("system")["error_type"].agg(lambda errors: errors.mode().iloc[0])
    assert (typical["cuckoo"], typical["peacock"], typical["weaver"]) == ("merged", "outside", "relation")


def test_rebuilding_gives_the_same_file(build: ModuleType, folder: Path, tmp_path: Path) -> None:
    build.write(build.join(), tmp_path / "first.gz")
    build.write(build.join(), tmp_path / "again.gz")
    assert (tmp_path / "first.gz").read_bytes() == (tmp_path / "again.gz").read_bytes()
    # Against the file that ships the text is compared: other zlib builds may pack the same text differently.
    shipped = gzip.decompress((folder / "claims.jsonl.gz").read_bytes())
    assert gzip.decompress((tmp_path / "first.gz").read_bytes()) == shipped


def test_readme_counts_agree(folder: Path, claims: pd.DataFrame) -> None:
    text = (folder / "README.md").read_text(encoding="utf-8")
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in text.splitlines() if line[:2] == "| "]
    counted = [row for row in cells if len(row) == 7 and row[1] != "documents"]
    groups = [*claims.groupby("dataset"), ("all", claims), *claims.groupby("system"), ("all", claims)]
    assert counted == [[str(name), *summary(group)] for name, group in groups]

    header, *rows = [row for row in cells if len(row) == 6]
    assert {row[0] for row in rows} == ERROR_TYPES
    for error, *numbers in rows:
        by_dataset = claims[claims["error_type"] == error].groupby("dataset").size()
        expected = [by_dataset.get(dataset, 0) for dataset in header[1:-1]]
        assert [int(number) for number in numbers] == [*expected, by_dataset.sum()], error

    claim_count, response_count = len(claims), claims["response_id"].nunique()
    assert f"{claim_count} claims in {response_count} responses to {claims['doc_id'].nunique()} documents" in text


def words(texts: pd.Series) -> pd.Series:
    return texts.map(lambda text: len(text.split()))


def summary(group: pd.DataFrame) -> list[str]:
    """The cells of a row of the README's counts, worked out apart from build.py."""
    documents = group.drop_duplicates("doc_id")
    long = (words(documents["doc"]) > 1000).sum()
    wrong = (group["label"] == 0).sum()
    sizes = [len(documents), long, group["response_id"].nunique(), len(group), wrong]
    return [*map(str, sizes), f"{wrong / len(group):.1%}"]
