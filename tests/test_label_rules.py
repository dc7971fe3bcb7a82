"""Several annotators: labels by a rule, and their agreement as the ceiling."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import yaml
from audit_tables import compute, join

import factaudit as fa
from factaudit import UsageError, read_claims, run, write_table
from factaudit.tables.annotations import list_annotator_judgements

AUDITS = ("agreement", "ceiling", "rates")


def by_hand() -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Four claims, three annotators: 111, 110, 100, 000; evaluator m says the majority, u what all
    agree to."""
    said = {"a": "111", "b": "110", "c": "100", "d": "000"}
    claims = fa.validate_claims(
        pd.DataFrame({"claim_id": [*said], "dataset": "d", "claim": "x", "doc": "y"})
    )
    rows = [
        (claim, f"p{at}", int(label))
        for claim, labels in said.items()
        for at, label in enumerate(labels)
    ]
    annotations = pd.DataFrame(rows, columns=["claim_id", "annotator", "label"])
    verdicts = [("m", "1100"), ("u", "1000")]
    told = [
        (claim, name, float(score))
        for name, scores in verdicts
        for claim, score in zip(said, scores, strict=True)
    ]
    made = fa.validate_verdicts(
        pd.DataFrame(told, columns=["claim_id", "evaluator", "score"]), claims=claims
    )
    return claims, made, annotations


def many(n: int = 450, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Annotators who object to a tenth of what is right and three quarters of what is wrong; an
    evaluator that says what most of them say, one that objects where any of them does, both wrong
    now and then."""
    random = np.random.default_rng(seed)
    truth = random.random(n) < 0.6
    objects = random.random((3, n)) < np.where(truth, 0.12, 0.75)
    ids = [f"c{at}" for at in range(n)]
    claims = fa.validate_claims(
        pd.DataFrame(
            {
                "claim_id": ids,
                "dataset": "d",
                "claim": "x",
                "doc": "y",
                "doc_id": [f"d{at // 3}" for at in range(n)],
            }
        )
    )
    annotations = pd.concat(
        [
            pd.DataFrame({"claim_id": ids, "annotator": f"p{at}", "label": 1 - objects[at]})
            for at in range(3)
        ]
    )
    parts = []
    for name, wrong in (
        ("most", objects.sum(0) > 1),
        ("any", objects.any(0)),
        ("always-no", np.ones(n, dtype=bool)),
    ):
        slips = random.random(n) < (0.0 if name == "always-no" else 0.1)
        parts.append(
            pd.DataFrame(
                {"claim_id": ids, "evaluator": name, "score": np.where(wrong ^ slips, 0.2, 0.8)}
            )
        )
    return (
        claims,
        fa.validate_verdicts(pd.concat(parts, ignore_index=True), claims=claims),
        annotations,
    )


def test_unknown_rules_are_refused():
    claims, verdicts, annotations = by_hand()
    with pytest.raises(UsageError, match="did you mean 'majority'"):
        fa.compare(claims, verdicts, annotations=annotations, label_rule="majorty")
    with pytest.raises(UsageError, match="no annotations"):
        fa.compare(claims, verdicts, label_rule="majority")


def test_the_ceiling_by_hand():
    claims, verdicts, annotations = by_hand()
    rows = {
        row["evaluator"]: row
        for row in compute(
            "ceiling", join(claims, verdicts, list_annotator_judgements(annotations))
        )
    }
    # Left out in turn: 111 and 000 give three agreeing judgements each; 110 one that is wrong (the
    # others are split on
    # the other two: no majority), 100 likewise.
    assert {name: row["n"] for name, row in rows.items()} == {"m": 8, "u": 8}
    assert rows["m"]["ceiling"] == pytest.approx((3 / 4 + 3 / 4) / 2)
    assert rows["m"]["bacc"] == 1
    assert rows["u"]["bacc"] == pytest.approx((3 / 4 + 1) / 2)
    assert [row["evaluator"] for row in rows.values()] == ["m", "u"]  # people are no evaluator


def test_annotations_from_a_yaml_with_their_rules(tmp_path):
    claims, verdicts, annotations = many(90)
    for name, table in (("claims", claims), ("verdicts", verdicts), ("people", annotations)):
        write_table(table, tmp_path / f"{name}.parquet")
    given = {
        "claims": "claims.parquet",
        "verdicts": "verdicts.parquet",
        "annotations": "people.parquet",
    }
    given |= {
        "label_rule": "any_unattributable",
        "audits": [*AUDITS],
        "replicates": 0,
    }
    (tmp_path / "e.yaml").write_text(yaml.safe_dump(given))
    run(tmp_path / "e.yaml", tmp_path / "out")
    objections = annotations.groupby("claim_id")["label"].min()
    written = read_claims(tmp_path / "out/claims.parquet")
    assert written["label"].tolist() == [objections[claim] for claim in written["claim_id"]]
    assert (tmp_path / "out/annotations.parquet").is_file()
    page = (tmp_path / "out/report.html").read_text()
    assert "the ceiling of any evaluator" in page
