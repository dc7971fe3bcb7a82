"""Columns that teams add to tools' logs and to published sets, and names that tools give to what
all logs have."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from audit_tables import load_input_tables
from town_tables import CLAIMS, DOCS, FIRST_SCORES, SECOND_SCORES, L, N, labelled, make_csv, spell

from factaudit.tables.table_loading import LoadedTables

LOGS = Path(__file__).parents[1] / "logs"
SYSTEMS = ["support-bot", "search-bot"] * (N // 2)
RAGAS: dict[str, Any] = {
    "user_input": [f"Who wrote it, the {k}th?" for k in range(N)],
    "retrieved_contexts": [str([one]) for one in DOCS],
    "response": CLAIMS,
}


def load_csv(folder: Path, columns: dict[str, Any]) -> LoadedTables:
    path = folder / "log.csv"
    path.write_bytes(make_csv(columns))
    return load_input_tables([path])


def list_labels(loaded: LoadedTables) -> str:
    assert loaded.claims is not None
    return "".join(map(str, loaded.claims["label"]))


def list_evaluators(loaded: LoadedTables) -> list[str]:
    assert loaded.verdicts is not None
    return sorted(loaded.verdicts["evaluator"].unique())


def test_an_app_of_ragas_is_the_system(tmp_path: Path) -> None:
    labels = [*map(int, L)]
    loaded = load_csv(
        tmp_path, {"app": SYSTEMS, **RAGAS, "faithfulness": FIRST_SCORES, "human": labels}
    )
    assert loaded.claims is not None
    assert [*loaded.claims["system"]] == SYSTEMS
    assert (list_labels(loaded), list_evaluators(loaded)) == (L, ["faithfulness"])


def test_a_mode_behind_a_measure_of_ragas_leaves_it_a_measure(tmp_path: Path) -> None:
    """It was taken for an answer key of the metrics, or asked about."""
    measured = {"factual_correctness(mode=f1)": SECOND_SCORES, "faithfulness": FIRST_SCORES}
    loaded = load_csv(
        tmp_path, {**RAGAS, **measured, "annotator_verdict": spell(L, "pass", "fail")}
    )
    assert (list_labels(loaded), list_evaluators(loaded)) == (
        L,
        ["factual_correctness(mode=f1)", "faithfulness"],
    )


@pytest.mark.parametrize("name", ["human_groundedness", "annotator_1", "gold"])
def test_a_column_of_people_beside_a_metric_is_the_label(name: str, tmp_path: Path) -> None:
    loaded = load_csv(tmp_path, {**RAGAS, "faithfulness": FIRST_SCORES, name: [*map(int, L)]})
    assert (list_labels(loaded), list_evaluators(loaded)) == (L, ["faithfulness"])


@pytest.mark.parametrize(
    ("ours", "theirs"),
    [("dataset", "source_ds"), ("system", "model_id"), ("system", "generation_model_name")],
)
def test_names_of_data_sets_and_systems(ours: str, theirs: str, tmp_path: Path) -> None:
    loaded = load_csv(tmp_path, {**labelled, theirs: SYSTEMS, "gpt4_score": FIRST_SCORES})
    assert loaded.claims is not None
    assert [*loaded.claims[ours]] == SYSTEMS
    assert list_labels(loaded) == L
