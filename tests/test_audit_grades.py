"""Grades: figures against other libraries' and published ones, scales, annotators, order, words,
and what is read."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from audit_tables import compute
from scipy.stats import spearmanr
from sklearn.metrics import cohen_kappa_score

from factaudit import Judgements, UsageError, compare, validate_claims, validate_verdicts
from factaudit.audit import load_all_audits
from factaudit.tables.annotations import list_annotator_judgements, validate_annotations
from factaudit.tables.column_mapping import ColumnMapping
from factaudit.tables.table_loading import load_tables

NONE = float("nan")


def draw_graded(
    seed: int, shift: float = 0.0, noise: float = 0.7, n: int = 300
) -> tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame]:
    """Claims without labels, three annotators' grades 1 to 5, and two judges: one with grades, one
    with scores."""
    random = np.random.default_rng(seed)
    doc = np.arange(n) // 5
    quality = 0.6 * random.normal(size=n)[doc] + 0.8 * random.normal(size=n)

    def grade(size: float, moved: float = 0.0) -> np.ndarray:
        return (
            np.searchsorted([-1, -0.4, 0.3, 1], quality + moved + size * random.normal(size=n)) + 1
        )

    ids = [f"c{at}" for at in range(n)]
    claims = pd.DataFrame(
        {"claim_id": ids, "dataset": "d", "claim": "a claim", "doc_id": [f"d{at}" for at in doc]}
    )
    people = [
        pd.DataFrame({"claim_id": ids, "annotator": who, "grade": grade(0.5).astype(str)})
        for who in "abc"
    ]
    given = grade(noise, shift)
    judges = [
        pd.DataFrame(
            {"claim_id": ids, "evaluator": "judge", "grade": given, "score": (given - 1) / 4}
        )
    ]
    judges += [pd.DataFrame({"claim_id": ids, "evaluator": "scorer", "score": random.random(n)})]
    return claims, pd.concat(judges), pd.concat(people)


def join(
    claims: pd.DataFrame, verdicts: pd.DataFrame, people: pd.DataFrame | None = None
) -> Judgements:
    said = None if people is None else list_annotator_judgements(validate_annotations(people))
    return Judgements.join(validate_claims(claims), validate_verdicts(verdicts), said)


def lower_median(grades: pd.Series) -> float:
    return float(sorted(map(float, grades))[(len(grades) - 1) // 2])


def test_figures_are_those_of_other_libraries():
    claims, verdicts, people = draw_graded(1)
    row, scored = compute("grades", join(claims, verdicts, people), replicates=20)
    median = (
        people.groupby("claim_id")["grade"].agg(lower_median).reindex(claims["claim_id"]).to_numpy()
    )
    judge = (
        verdicts[verdicts["evaluator"] == "judge"]
        .set_index("claim_id")["grade"]
        .reindex(claims["claim_id"])
    )
    grades = judge.to_numpy(dtype=float)
    assert row["rho"] == pytest.approx(spearmanr(grades, median)[0])
    kappa = cohen_kappa_score(
        grades.astype(int), median.astype(int), weights="quadratic", labels=range(1, 6)
    )
    assert row["kappa"] == pytest.approx(kappa)
    assert row["difference"] == pytest.approx((grades - median).mean())
    for key in ("rho", "kappa", "difference"):
        assert row[f"{key}_low"] < row[key] < row[f"{key}_high"]
    assert (row["measure"], row["lowest"], row["highest"]) == ("grade", 1, 5)
    assert (scored["measure"], scored["kappa"]) == ("score", None)
    assert "different scales" in scored["reason"]


def test_scales_are_certain_or_asked_for():
    claims, verdicts, _ = draw_graded(4)
    claims["grade"] = [2 + at % 4 for at in range(len(claims))]  # nobody gave 1
    judge = verdicts[verdicts["evaluator"] == "judge"]
    (row,) = compute("grades", join(claims, judge), replicates=20)
    assert row["kappa"] is row["difference"] is None
    assert "say it (option scale)" in row["reason"]
    assert row["rho"] is not None
    (known,) = compute("grades", join(claims, judge), scale=(1, 5), replicates=20)
    assert (known["kappa"] is not None, known["lowest"], known["highest"]) == (True, 1, 5)
    with pytest.raises(UsageError, match="expected people's grades from 3 to 5, found 2 to 5 on d"):
        compute("grades", join(claims, judge), scale=(3, 5))


def test_words_are_refused():
    claims, verdicts, people = draw_graded(5)
    table = join(claims, verdicts, people.assign(grade="good"))
    assert load_all_audits()["grades"].applies(table) is False
    with pytest.raises(UsageError, match="expected people's grades as numbers, found 'good'"):
        compute("grades", table)


def test_what_is_undefined_is_null_with_its_reason():
    claims, verdicts, _ = draw_graded(6)
    same = claims.assign(grade=3)
    for row in compute("grades", join(same, verdicts), replicates=20):
        assert row["rho"] is row["kappa"] is None
        assert row["reason"]
    few = claims.assign(grade=[1 + at % 5 for at in range(len(claims))])
    few["doc_id"] = [f"d{at % 19}" for at in range(len(few))]
    row = compute("grades", join(few, verdicts), replicates=20)[0]
    assert (row["rho"] is None, row["rho_low"], row["difference_low"] is None) == (
        False,
        None,
        False,
    )
    assert (
        "no interval for rho, kappa: fewer than 20 clusters (of a difference: 2), or grades agree"
        " wholly" in row["reason"]
    )
    silent = verdicts.assign(score=NONE, grade=NONE, prediction=1)
    for row in compute("grades", join(few, silent)):
        assert (row["n"], row["n_unscored"], row["rho"]) == (0, 300, None)
        assert row["reason"] == "no claim that people graded has a grade by the evaluator"
    assert compute("grades", join(claims, verdicts)) == []


def test_grades_are_read_beside_the_labels_made_of_them(tmp_path):
    _, verdicts, _ = draw_graded(9, n=40)
    grades = verdicts[verdicts["evaluator"] == "judge"]["grade"].to_numpy()
    table = pd.DataFrame(
        {"claim": [f"claim {at}" for at in range(40)], "geval": grades[::-1], "human": grades}
    )
    (tmp_path / "t.csv").write_text(table.to_csv(index=False))
    mapping = ColumnMapping.from_source(
        {"columns": {"claim": "claim", "label": "human"}, "threshold": {"human": 2.0}}
        | {"evaluators": {"geval": {"score": "geval", "scale": [1, 5]}}}
    )
    loaded = load_tables([tmp_path / "t.csv"], mapping)
    assert loaded.claims["grade"].tolist() == grades.tolist()
    assert loaded.claims["label"].tolist() == (grades > 2).astype(int).tolist()
    assert loaded.verdicts["grade"].tolist() == grades[::-1].tolist()
    assert loaded.verdicts["score"].tolist() == ((grades[::-1] - 1) / 4).tolist()
    results = compare(loaded.claims, loaded.verdicts, replicates=20)
    assert results.rows("grades")[0]["rho"] == pytest.approx(spearmanr(grades, grades[::-1])[0])
