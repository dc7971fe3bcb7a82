"""Agreement of annotators against scikit-learn and by hand, and the run that shows it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.metrics import cohen_kappa_score

import factaudit as fa
from factaudit.tables.annotations import find_disputed_claims, list_annotator_judgements


def make_tables(
    labels: dict[str, list[int | None]], claims_in_document: int = 1
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Claims and annotations; labels: of each annotator, a label for each claim."""
    n = len(next(iter(labels.values())))
    claims = pd.DataFrame(
        {
            "claim_id": [f"c{at}" for at in range(n)],
            "dataset": "d",
            "claim": [f"claim {at}" for at in range(n)],
            "doc": [f"text {at // claims_in_document}" for at in range(n)],
        }
    )
    rows = [
        (f"c{at}", name, label) for name, given in labels.items() for at, label in enumerate(given)
    ]
    annotations = pd.DataFrame(rows, columns=["claim_id", "annotator", "label"])
    return fa.validate_claims(claims), annotations.astype({"label": "Int8"})


def measure(labels, claims_in_document=1):
    claims, annotations = make_tables(labels, claims_in_document)
    return list(fa.compare(claims, annotations=annotations).audits["agreement"])


def test_kappa_is_scikit_learns():
    random = np.random.default_rng(0)
    a = (random.random(80) < 0.6).astype(int)
    b = np.where(random.random(80) < 0.8, a, 1 - a)
    (row,) = measure({"a": a.tolist(), "b": b.tolist()})
    assert (row["annotator_a"], row["annotator_b"]) == ("a", "b")
    assert row["kappa"] == pytest.approx(cohen_kappa_score(a, b))
    assert row["agree"] == pytest.approx((a == b).mean())
    for key in ("agree", "kappa", "alpha"):
        assert row[f"{key}_low"] < row[key] < row[f"{key}_high"]
    assert row["alpha"] == pytest.approx(row["kappa"], abs=0.02)


def test_alpha_with_labels_missing_is_the_coincidence_matrix():
    columns = {
        "a": [1, 0, None, 1, 1, 0],
        "b": [1, 1, 0, 1, None, 0],
        "c": [None, 0, 0, 1, None, 1],
    }
    rows = measure(columns)
    assert [(row["annotator_a"], row["annotator_b"]) for row in rows] == [
        ("__all__", "__all__"),
        *(("a", "b"), ("a", "c"), ("b", "c")),
    ]
    table = np.array(
        [[np.nan if v is None else v for v in column] for column in columns.values()]
    ).T
    matrix = np.zeros((2, 2))
    for labels in table:
        known = labels[~np.isnan(labels)].astype(int)
        for i in range(len(known)):
            for j in range(len(known)):
                if i != j:
                    matrix[known[i], known[j]] += 1 / (len(known) - 1)
    n, n0, n1 = matrix.sum(), matrix[0].sum(), matrix[1].sum()
    expected = 1 - (n - 1) * matrix[0, 1] / (n0 * n1)
    assert rows[0]["alpha"] == pytest.approx(expected)
    # A claim counts once, however many people labelled it: (1 + 1/3 + 1 + 1 + 1/3) / 5.
    assert (rows[0]["n"], rows[0]["n_split"]) == (5, 2)
    assert rows[0]["agree"] == pytest.approx(11 / 15)


def test_annotators_of_different_claims_and_crowds():
    rows = measure({"a": [1, 0, None, None], "b": [1, 1, None, 0], "c": [None, None, 1, 1]})
    apart = next(row for row in rows if row["annotator_b"] == "c" and row["annotator_a"] == "a")
    assert (apart["n"], apart["agree"], apart["alpha"], apart["kappa"]) == (0, None, None, None)
    assert apart["reason"] == "no claim has two labels"
    (crowd,) = measure({f"p{at}": [1, 0, at % 2] for at in range(11)})  # too many to list pairs
    assert (crowd["n"], crowd["n_split"], crowd["kappa"]) == (3, 1, None)


def test_claims_of_one_document_are_resampled_together():
    """Ten claims of a document on which annotators agree or not as one are one observation, not
    ten."""
    random = np.random.default_rng(3)
    agree = np.repeat(random.random(20) < 0.7, 10)
    a = (random.random(200) < 0.6).astype(int)
    labels = {"a": a.tolist(), "b": np.where(agree, a, 1 - a).tolist()}
    (alone,), (together,) = (measure(labels, size) for size in (1, 10))
    widths = [row["agree_high"] - row["agree_low"] for row in (alone, together)]
    assert widths[1] > 2 * widths[0]
    assert alone["agree"] == together["agree"]


def test_labels_without_an_evaluator(tmp_path, call):
    labels = {"ann": [1, 0, 1, 1, 0, 0], "ben": [1, 1, 1, 0, 0, 0]}
    claims, annotations = make_tables(labels)
    fa.write_table(claims.drop(columns="label"), tmp_path / "claims.csv")
    for name, mine in annotations.groupby("annotator"):
        fa.write_table(mine[["claim_id", "label"]], tmp_path / f"{name}.csv")
    files = [tmp_path / f"{name}.csv" for name in ("claims", "ann", "ben")]
    folder = tmp_path / "run"
    code, out, err = call("audit", *files, "--out", folder)
    assert code == 0, err
    assert ["ann", "and", "ben", "6", "2", "66.7"] in [
        line.split()[:6] for line in out.splitlines()
    ]
    assert "6 claims in 1 data set, 4 labelled, 2 of them as errors." in out
    disputed = (folder / "disputed.html").read_text()
    assert [f'"c{at}"' in disputed for at in range(5)] == [False, True, False, True, False]
    assert call("view", folder, "--no-open")[0] == 0
    assert call("run", folder / "experiment.yaml", "--out", tmp_path / "again")[0] == 0
    code, _, err = call("audit", *files[:2], "--out", tmp_path / "one")
    assert (code, "in which two annotators labelled the same claims" in err) == (2, True)
    with pytest.raises(fa.UsageError, match="audit 'rates' needs verdicts"):
        fa.compare(claims, annotations=annotations, audits=["rates"])


def test_disagreements():
    _, annotations = make_tables({"a": [1, 0, 1], "b": [1, 1, None], "c": [1, 0, 0]})
    assert [*find_disputed_claims(list_annotator_judgements(annotations.assign(grade=None)))] == [
        "c1",
        "c2",
    ]
