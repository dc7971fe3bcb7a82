"""Annotations: scores by people, agreement against known values, and people beside the machine."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from factaudit import InputError
from factaudit.audit.human_scores import compare_biography_scores, score_human_biographies
from factaudit.datasets.biography_annotations import (
    BiographyFactAnnotation,
    read_biography_fact_annotations,
)
from factaudit.stats.cluster_bootstrap import ClusterBootstrap

Row = dict[str, Any]


def note(fact: str, label: str, page: str | None = None, entity: str = "A", **more: Any) -> Row:
    one = BiographyFactAnnotation.model_validate(
        {
            "system": "s",
            "response_id": "r",
            "fact": fact,
            "biography": "1",
            "label": label,
            "page": page,
            "entity": entity,
        }
        | more
    )
    return one.model_dump()


def score_by_people(notes: list[Row]) -> list[Row]:
    return score_human_biographies(notes).to_dict("records")


def test_scores_by_people():
    (row,) = score_by_people(
        [note("a", "S", "A"), note("b", "S", "B"), note("c", "NS"), note("d", "IR"), note("e", "S")]
    )
    # a and e are of the entity's page, b of another; c is not supported, d irrelevant.
    assert (row["init_factscore"], row["init_dfactscore"]) == (0.75, 0.5)
    # Not supported by the linked page but by another person's (Fig. 3, step 4).
    (row,) = score_by_people([note("a", "S", "A"), note("b", "NS", "B"), note("c", "NS", "A")])
    assert (row["init_factscore"], row["init_dfactscore"]) == (
        pytest.approx(2 / 3),
        pytest.approx(1 / 3),
    )
    (row,) = score_by_people([note("a", "S"), note("b", "NS", "B")])
    assert (row["init_factscore"], row["init_dfactscore"]) == (1, 0.5)
    assert score_by_people([note("d", "IR")]) == []
    # Of two annotators the mean counts, whatever number of facts each of them judged.
    (row,) = score_by_people(
        [note(fact, "S", annotator="x") for fact in "ab"] + [note("a", "NS", annotator="y")]
    )
    assert row["init_dfactscore"] == 0.5


def test_annotations_are_read_and_checked(tmp_path):
    file = tmp_path / "a.csv"
    file.write_text(
        "system,response_id,annotator,biography,entity,fact,label,page\ns,1,x,1,A,He sang.,S,A\n"
    )
    (one,) = read_biography_fact_annotations(file)
    assert (one["response_id"], one["label"], one["page"]) == ("1", "S", "A")
    file.write_text("system,response_id,biography,fact,label\ns,1,1,He sang.,yes\n")
    with pytest.raises(InputError, match="row 1, column 'label'"):
        read_biography_fact_annotations(file)


def test_people_beside_the_machine():
    random = np.random.default_rng(0)
    people, machine = [], []
    for system, level in (("a", 0.9), ("b", 0.6)):
        for n in range(30):
            true = float(np.clip(level + random.normal(0, 0.1), 0, 1))
            key = {"system": system, "response_id": str(n)}
            people.append({**key, "init_factscore": true, "init_dfactscore": true - 0.1})
            scores = {
                "init_factscore": true + 0.02,
                "init_dfactscore": true - 0.1 + random.normal(0, 0.02),
            }
            machine.append(key | scores)
    machine.pop()
    rows = compare_biography_scores(pd.DataFrame(people), machine, "e", ClusterBootstrap(500))
    found = {(row["system"], row["figure"]): row for row in rows}
    assert {system for system, _ in found} == {"__all__", "a", "b"}
    everything = found["__all__", "init_dfactscore"]
    assert (everything["n"], everything["n_missing"]) == (59, 1)
    own = [
        (p["init_dfactscore"], m["init_dfactscore"])
        for p, m in zip(people[:30], machine[:30], strict=True)
    ]
    expected = stats.pearsonr(*zip(*own, strict=True)).statistic
    row = found["a", "init_dfactscore"]
    assert row["pearson_r"] == pytest.approx(expected)
    assert row["pearson_r_low"] < expected < row["pearson_r_high"]
    assert found["a", "init_factscore"]["bias"] == pytest.approx(0.02)
