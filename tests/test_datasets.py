"""The converters on small files of each format: what they make of them, and what they say of bad
ones."""

from __future__ import annotations

import csv
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pandas as pd
import pytest

from factaudit import FactauditError, InputError, convert
from factaudit.datasets import FORMATS, aggrefact, aggrefact_subsets


def fails(format: str, sources: Sequence[Path], **options: Any) -> str:
    with pytest.raises(InputError) as caught:
        convert(format, sources, **options)
    return str(caught.value)


# ---- the registry


def test_every_format_has_a_module_an_example_and_the_options_its_function_takes() -> None:
    import inspect

    for name, entry in FORMATS.items():
        parameters = inspect.signature(entry.converter).parameters
        assert next(iter(parameters)) == "sources"
        assert set(list(parameters)[1:]) == set(entry.options), name
        assert entry.example.startswith(f"factaudit convert {name} ")
        assert entry.summary
        assert entry.converter.__doc__


def test_listing_the_formats_is_light() -> None:
    heavy = ("nltk", "huggingface_hub", "datasets")
    code = (
        f"import sys; from factaudit.datasets import FORMATS; print([m for m in {heavy} if m in"
        " sys.modules])"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


@pytest.mark.parametrize("name", FORMATS)
def test_a_missing_file_and_an_empty_folder_are_named(name: str, tmp_path: Path) -> None:
    options = {"dataset": "d"} if name == "score-csv" else {}
    assert f"{tmp_path / 'none.csv'}: no such file" == fails(
        name, [tmp_path / "none.csv"], **options
    )
    assert f"{tmp_path}: the folder holds no file named " in fails(name, [tmp_path], **options)


@pytest.fixture(scope="module")
def subsets() -> dict[str, dict[str, str]]:
    """The rows of the table of LLM-AggreFact's datasets, by name."""
    path = Path(aggrefact_subsets.__file__).with_suffix(".csv")
    with path.open(encoding="utf-8") as file:
        return {row["dataset"]: row for row in csv.DictReader(file)}


def test_the_subsets_are_the_benchmarks_datasets(subsets: dict[str, dict[str, str]]) -> None:
    whole = [row for row in subsets.values() if not row["part_of"]]
    assert len(whole) == 11
    assert sum(int(row["test_claims"] or 0) for row in whole) == 29320
    assert {name for name, row in subsets.items() if row["part_of"]} == {
        f"RAGTruth-{part}"
        for part in ("Summary", "QA", "Data2txt", "CNN/DM", "News", "MARCO", "Yelp")
    }
    for name, row in subsets.items():
        for alias in (name, *filter(None, row["aliases"].split(";"))):
            found = aggrefact_subsets.find_aggrefact_subset(alias.upper())
            assert found is not None
            assert found.dataset == name
        assert row["source"], name
        assert bool(row["systems"]) == bool(row["systems_source"]), name
        assert (row["task"] == "") == (name == "RAGTruth"), "as a whole it has three"
    assert len({row["label"] for row in subsets.values()}) == len(subsets)


def find_dataset_name(name: str) -> str | None:
    found = aggrefact_subsets.find_aggrefact_subset(name)
    return None if found is None else found.dataset


def test_a_subset_is_part_of_a_whole() -> None:
    assert find_dataset_name("unheard of") is None
    assert aggrefact_subsets.find_dataset_task("RAGTruth") is None
    assert aggrefact_subsets.find_whole_aggrefact_dataset("RAGTruth-Data2txt") == "RAGTruth"
    assert aggrefact_subsets.find_whole_aggrefact_dataset("mine") == "mine"


# The Hugging Face hub
# ------------------------------------------------------------


def claim(dataset: str, text: str, label: int = 1) -> dict[str, Any]:
    return {
        "dataset": dataset,
        "doc": "D.",
        "claim": text,
        "label": label,
        "contamination_identifier": "x" * 64,
    }


COMMIT = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SimpleNamespace:
    """The hub's client, with a repository in a folder in the network's stead."""
    huggingface_hub = pytest.importorskip("huggingface_hub", reason="needs the [hub] extra")
    state = SimpleNamespace(downloads=[], fail=None, folder=tmp_path / COMMIT)
    (state.folder / "data").mkdir(parents=True)
    rows = [claim("AggreFact-CNN", "A."), claim("Wice", "B.", 0)]
    pd.DataFrame(rows).to_parquet(state.folder / "data" / "test-00000-of-00001.parquet")

    def snapshot(repo: str, *, repo_type: str, allow_patterns: str) -> str:
        state.downloads.append((repo, repo_type, allow_patterns))
        if state.fail:
            raise state.fail
        return str(state.folder)

    monkeypatch.setattr(huggingface_hub, "snapshot_download", snapshot)
    return state


def test_aggrefact_from_the_hub_pins_the_revision(hub: SimpleNamespace) -> None:
    converted = convert("aggrefact", ["lytang/LLM-AggreFact"])
    assert converted.claims["claim"].tolist() == ["A.", "B."]
    assert converted.claims["split"].eq("test").all()
    assert converted.provenance == {
        "repository": aggrefact.HUB_REPOSITORY,
        "split": "test",
        "revision": COMMIT,
    }
    assert hub.downloads == [(aggrefact.HUB_REPOSITORY, "dataset", "data/test-*.parquet")]
    with pytest.raises(FactauditError, match="has no split 'train'; it has dev and test"):
        convert("aggrefact", [aggrefact.HUB_REPOSITORY], split="train")


def test_aggrefact_hub_errors_say_what_to_do(
    hub: SimpleNamespace, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The client lets its HTTP library's own errors through.
    hub.fail = type("ConnectError", (Exception,), {})("connection refused")
    with pytest.raises(
        FactauditError,
        match=r"could not be read from the hub \(connection refused\)\. It is gated: accept its ",
    ):
        convert("aggrefact", [aggrefact.HUB_REPOSITORY])
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(
        FactauditError, match=r"needs the extra \[hub\]: pip install 'factaudit\[hub\]'"
    ):
        convert("aggrefact", [aggrefact.HUB_REPOSITORY])
