"""The invariants of the benchmark that ships, data/minibench."""

from __future__ import annotations

import gzip
import importlib.util
from pathlib import Path
from types import ModuleType

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


def test_rebuilding_gives_the_same_file(build: ModuleType, folder: Path, tmp_path: Path) -> None:
    build.write(build.join(), tmp_path / "first.gz")
    build.write(build.join(), tmp_path / "again.gz")
    assert (tmp_path / "first.gz").read_bytes() == (tmp_path / "again.gz").read_bytes()
    # Against the file that ships the text is compared: other zlib builds may pack the same text differently.
    shipped = gzip.decompress((folder / "claims.jsonl.gz").read_bytes())
    assert gzip.decompress((tmp_path / "first.gz").read_bytes()) == shipped


def words(texts: pd.Series) -> pd.Series:
    return texts.map(lambda text: len(text.split()))
