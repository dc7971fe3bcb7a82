"""A judge's development: splits by document, a test whose openings are counted across processes, what a report says."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from conftest import Call
from estimate_data import World, tables

from factaudit.arrays.paired_changes import compute_paired_changes
from factaudit.audit.audit_options import divide_audit_alpha_over_looks
from factaudit.errors import InputError, UsageError
from factaudit.estimate.sealed_split import (
    assign_claim_splits,
    count_test_looks,
    find_seal_folder,
    open_sealed_test_split,
    write_sealed_split,
)
from factaudit.tables import read_claims, write_table

CLAIMS = World(rates=(-1.5, -0.5), size=300, skill=(2.0,), documents=60, cluster=1.0)


@pytest.fixture
def split_file(tmp_path: Path) -> Path:
    claims, verdicts = tables(CLAIMS)
    write_sealed_split(claims, tmp_path / "split.parquet")
    write_table(verdicts, tmp_path / "verdicts.parquet")
    return tmp_path / "split.parquet"


def test_no_document_or_response_is_in_two_splits_and_each_has_its_share_of_every_kind():
    claims, _ = tables(CLAIMS)
    claims["response_id"] = [f"r{at // 2}" for at in range(len(claims))]  # two documents a response
    split = assign_claim_splits(claims, (0.2, 0.4, 0.4), seed=3)
    for column in ("doc_id", "response_id"):
        assert split.groupby(claims[column]).nunique().max() == 1
    share = pd.crosstab([claims["system"], claims["label"]], split, normalize="index")
    for name, wanted in (("train", 0.2), ("dev", 0.4), ("test", 0.4)):
        assert (share[name] - wanted).abs().max() < 0.12
    assert split.value_counts(normalize=True)["train"] == pytest.approx(0.2, abs=0.03)
    again = assign_claim_splits(claims, (0.2, 0.4, 0.4), seed=3)
    assert split.equals(again)
    assert not split.equals(assign_claim_splits(claims, (0.2, 0.4, 0.4), seed=4))


def test_claims_without_a_system_or_a_label_are_split_too():
    claims, _ = tables(CLAIMS)
    claims["dataset"] = np.where(claims["system"] == "s00", "plain", "sim")
    claims.loc[claims["system"] == "s00", "system"] = pd.NA
    claims.loc[np.random.default_rng(0).random(len(claims)) < 0.5, "label"] = pd.NA
    split = assign_claim_splits(claims)
    for kind in (claims["dataset"] == "plain", claims["dataset"] == "sim", claims["label"].isna()):
        assert (
            split[kind].value_counts(normalize=True) - pd.Series({"train": 0.2, "dev": 0.4, "test": 0.4})
        ).abs().max() < 0.1


def test_texts_hold_claims_together_where_documents_have_no_name():
    claims, _ = tables(CLAIMS)
    claims = claims.assign(doc=claims["doc_id"] + " says so", doc_id=pd.NA)
    assert assign_claim_splits(claims).groupby(claims["doc"]).nunique().max() == 1


def test_the_written_claims_do_not_have_the_labels_of_the_test(split_file: Path):
    claims, _ = tables(CLAIMS)
    written = read_claims(split_file)
    assert written["label"].isna().equals((written["split"] == "test").fillna(False))
    test, looks = open_sealed_test_split(written, split_file, {})
    assert looks == 1
    truth = claims.set_index("claim_id")["label"]
    assert (test["label"].to_numpy() == truth[test["claim_id"]].to_numpy()).all()
    with pytest.raises(UsageError, match="has a sealed test already"):
        write_sealed_split(claims, split_file, seed=1)
    write_sealed_split(claims, split_file)  # the same once more: the look stays counted
    assert open_sealed_test_split(written, split_file, {})[1] == 2


def test_openings_are_counted_across_processes(split_file: Path):
    code = (
        "import sys; from factaudit.tables import read_claims; "
        "from factaudit.estimate.sealed_split import open_sealed_test_split; "
        "claims = read_claims(sys.argv[1]); [open_sealed_test_split(claims, sys.argv[1], {}) for _ in range(5)]"
    )
    running = [subprocess.Popen([sys.executable, "-c", code, str(split_file)]) for _ in range(3)]
    assert [one.wait() for one in running] == [0, 0, 0]
    assert count_test_looks(split_file) == 15
    _, *looks = map(json.loads, (find_seal_folder(split_file) / "ledger.jsonl").read_text().splitlines())
    assert [row["look"] for row in looks] == list(range(1, 16))


def test_a_seal_that_was_changed_is_refused(split_file: Path):
    claims, folder = read_claims(split_file), find_seal_folder(split_file)
    with pytest.raises(InputError, match="its test has other claims than were sealed"):
        open_sealed_test_split(claims.iloc[1:].assign(split="test"), split_file, {})
    labels = pd.read_parquet(folder / "labels.parquet")
    labels.assign(label=1 - labels["label"]).to_parquet(folder / "labels.parquet")
    with pytest.raises(InputError, match="the labels are not those that were sealed"):
        open_sealed_test_split(claims, split_file, {})
    assert count_test_looks(split_file) == 0
    (folder / "ledger.jsonl").unlink()
    with pytest.raises(InputError, match="nobody can say how often"):
        open_sealed_test_split(claims, split_file, {})


def test_a_torn_line_is_no_look_and_a_damaged_one_is(split_file: Path):
    claims, ledger = read_claims(split_file), find_seal_folder(split_file) / "ledger.jsonl"
    open_sealed_test_split(claims, split_file, {})
    with ledger.open("a") as file:
        file.write('damaged\n{"look": 3')
    assert count_test_looks(split_file) == 2
    assert open_sealed_test_split(claims, split_file, {})[1] == 3


def test_the_commands_split_audit_and_open(
    split_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: Call
):
    monkeypatch.chdir(tmp_path)
    write_table(tables(CLAIMS)[0], "labelled.parquet")
    code, out, err = call("sample", "labelled.parquet", "--split", "--shares", "1/2/2", "--out", "mine.parquet")
    assert code == 0, err
    assert "the test's labels are sealed in mine.parquet.sealed" in out
    code, _, err = call("audit", "split.parquet", "verdicts.parquet", "--split", "dev", "--out", "runs/dev")
    assert code == 0, err
    claims = pd.read_parquet("runs/dev/claims.parquet")
    assert set(claims["split"]) == {"dev"}
    assert claims["label"].notna().all()
    assert count_test_looks(split_file) == 0
    code, _, err = call("audit", "split.parquet", "verdicts.parquet", "--split", "test", "--out", "runs/t")
    assert code == 2
    assert "its test is sealed" in err
    widths = []
    for look in (1, 2):
        code, out, err = call("audit", "split.parquet", "verdicts.parquet", "--open-test", "--out", "runs/test")
        assert code == 0, err
        results = json.loads(Path("runs/test/results.json").read_text())
        assert results["about"]["looks"] == look
        assert results["about"]["confidence"] == pytest.approx(1 - 0.05 / look)
        (row,) = (row for row in results["audits"]["triage"] if row["dataset"] == "sim")
        assert row["confidence"] == pytest.approx(1 - 0.1 / look)
        rates = next(row for row in results["audits"]["rates"] if row["dataset"] == "sim")
        widths.append(rates["bacc_high"] - rates["bacc_low"])
        assert ("the sealed test was opened 2 times: intervals are at 97.5 %" in " ".join(out.split())) == (look == 2)
        assert ("opened once, for this report" in Path("runs/test/report.md").read_text()) == (look == 1)
    assert widths[1] > 1.1 * widths[0]
    assert "Reports of earlier looks claim more than they may" in Path("runs/test/report.md").read_text()
    code, _, err = call("audit", "labelled.parquet", "verdicts.parquet", "--open-test", "--out", "runs/none")
    assert code == 2
    assert "no claim is of the split 'test'" in err


def test_levels_of_audits_are_shared_over_looks():
    shared = divide_audit_alpha_over_looks({"triage": {"confidence": 0.8}, "transfer": {}, "rates": {}}, 4)
    assert shared["triage"] == {"confidence": pytest.approx(0.95)}
    assert shared["transfer"]["alpha"] == pytest.approx(0.0125)
    assert shared["rates"] == {}


@pytest.mark.slow
def test_the_best_of_ten_looks_is_covered_only_by_the_shared_level():
    """Ten equally good judges, the best on the test reported: its interval holds its true balanced accuracy of 0.8."""
    random, held = np.random.default_rng(0), []
    for _ in range(300):
        label = (np.arange(400) % 2).astype(np.int64)
        right = random.random((10, 400)) < 0.8
        best = right[right.mean(axis=1).argmax()]
        said, truth = np.where(best, label, 1 - label).astype(float), label.astype(float)
        own = []
        for confidence in (0.95, 1 - 0.05 / 10):
            found = compute_paired_changes(
                label, truth, said, np.zeros(400, dtype=np.int64), 1, np.arange(400), confidence
            )["bacc"]
            own.append(found[3][0] <= -0.2 <= found[4][0])
        held.append(own)
    alone, shared = np.mean(held, axis=0)
    assert alone < 0.8 < 0.94 < shared
