"""Annotations: scores by people, agreement against known values, and people beside the machine."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from factaudit import InputError
from factaudit.audit.dfactscore_people import (
    compare_human_and_machine_dfactscores,
    compute_human_dfactscores,
)
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
    return compute_human_dfactscores(notes).to_dict("records")


def test_scores_by_people() -> None:
    (row,) = score_by_people(
        [note("a", "S", "A"), note("b", "S", "B"), note("c", "NS"), note("d", "IR"), note("e", "S")]
    )
    # a and e are of the entity's page, b of another; c is not supported, d irrelevant.
    assert (row["factscore"], row["dfactscore"]) == (0.75, 0.5)
    assert (row["n_biographies"], row["n_entities"]) == (1, 2)
    # Not supported by the linked page but by another person's (Fig. 3, step 4).
    (row,) = score_by_people([note("a", "S", "A"), note("b", "NS", "B"), note("c", "NS", "A")])
    assert (row["factscore"], row["dfactscore"], row["n_entities"]) == (
        pytest.approx(2 / 3),
        pytest.approx(1 / 3),
        2,
    )
    (row,) = score_by_people([note("a", "S"), note("b", "NS", "B")])
    assert (row["factscore"], row["dfactscore"], row["n_entities"]) == (1, 0.5, 2)
    (empty,) = score_by_people([note("d", "IR")])
    assert np.isnan(empty["factscore"])


def test_annotations_are_read_and_checked(tmp_path: Path) -> None:
    file = tmp_path / "a.csv"
    file.write_text(
        "system,response_id,annotator,biography,entity,fact,label,page\ns,1,x,1,A,He sang.,S,A\n"
    )
    (one,) = read_biography_fact_annotations(file)
    assert (one["response_id"], one["label"], one["page"]) == ("1", "S", "A")
    file.write_text("system,response_id,biography,fact,label\ns,1,1,He sang.,yes\n")
    with pytest.raises(InputError, match="row 1, column 'label'"):
        read_biography_fact_annotations(file)


def test_people_beside_the_machine() -> None:
    random = np.random.default_rng(0)
    people, machine = [], []
    for system, level in (("a", 0.9), ("b", 0.6)):
        for n in range(30):
            true = float(np.clip(level + random.normal(0, 0.1), 0, 1))
            key = {"system": system, "response_id": str(n)}
            counts = {"n_biographies": 1 + n % 3, "n_entities": 2}
            people.append(
                {**key, "annotator": "1", "factscore": true, "dfactscore": true - 0.1, **counts}
            )
            scores = {
                "init_factscore": true + 0.02,
                "init_dfactscore": true - 0.1 + random.normal(0, 0.02),
            }
            machine.append(
                {**key, **scores, "n_biographies": 1 + n % 3 + (n == 4), "n_entities": 2 + n % 2}
            )
    machine.pop()
    rows = {
        row["system"]: row
        for row in compare_human_and_machine_dfactscores(
            pd.DataFrame(people), machine, intervals=ClusterBootstrap(500)
        )
    }
    assert (rows["__all__"]["n"], rows["__all__"]["n_unmatched"]) == (59, 1)
    own = [
        (p["dfactscore"], m["init_dfactscore"])
        for p, m in zip(people[:30], machine[:30], strict=True)
    ]
    expected = stats.pearsonr(*zip(*own, strict=True)).statistic
    a = rows["a"]
    assert a["dfactscore_pearson_r"] == pytest.approx(expected)
    assert a["dfactscore_pearson_r_low"] < expected < a["dfactscore_pearson_r_high"]
    assert a["human_gap"] == pytest.approx(0.1)
    assert a["gap_low"] < a["gap"] < a["gap_high"]
    assert (a["human_n_biographies"], a["n_biographies"]) == (2.0, pytest.approx(2 + 1 / 30))
    assert (a["human_n_entities"], a["n_entities"], a["n_entities_pearson_r"]) == (2, 2.5, None)
