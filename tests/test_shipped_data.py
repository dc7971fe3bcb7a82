"""What ships as data: the invariants of data/minibench, and RAGTruth's numbers
(factaudit/start/demo) as published."""

from __future__ import annotations

import gzip
import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from factaudit import convert, read_annotations


@pytest.fixture(scope="module")
def folder(root: Path) -> Path:
    return root / "data" / "minibench"


@pytest.fixture(scope="module")
def build(folder: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("minibench_build", folder / "build.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_rebuilding_gives_the_same_file(build, folder, tmp_path):
    build.write(build.join(), tmp_path / "first.gz")
    build.write(build.join(), tmp_path / "again.gz")
    assert (tmp_path / "first.gz").read_bytes() == (tmp_path / "again.gz").read_bytes()
    # Against the file that ships the text is compared: other zlib builds may pack the same text
    # differently.
    shipped = gzip.decompress((folder / "claims.jsonl.gz").read_bytes())
    assert gzip.decompress((tmp_path / "first.gz").read_bytes()) == shipped


# RAGTruth's numbers (factaudit/start/demo)
# --------------------------------------------------------------------------

ROOT = Path(__file__).parents[1]
DATA = ROOT / "factaudit" / "start" / "demo"


def test_the_labels_that_ship_are_those_of_the_responses():
    claims = convert("ragtruth-scores", [DATA / "responses.jsonl.gz"]).claims
    annotations = read_annotations(DATA / "labels.jsonl", claims=claims)
    known = claims.set_index("claim_id")["label"][annotations["claim_id"]]
    assert annotations["label"].tolist() == known.tolist()
