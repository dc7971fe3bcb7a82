"""Citation recall and precision from tables, and ALCE's published judgements."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from audit_tables import compute, find

from factaudit import InputError, Judgements, convert, validate_claims, validate_verdicts

Row = dict[str, Any]


def judged(
    sentences: dict[str, dict[str, int | str]], malformed: dict[str, str] | None = None
) -> Judgements:
    """Of each sentence the verdicts (or failures) by cited documents, "1,3"; none: it cites
    nothing."""
    claims = []
    verdicts = []
    for name, by_set in sentences.items():
        key = {"dataset": "d", "system": "s", "response_id": "r", "fact_id": name, "claim": name}
        for cited, value in (by_set or {None: None}).items():
            claims.append(
                key
                | {
                    "claim_id": f"{name}{cited}",
                    "cited": cited,
                    "malformed": (malformed or {}).get(name),
                }
            )
            if cited is not None:
                known = isinstance(value, int)
                told = {"prediction": value if known else None, "status": "ok" if known else value}
                verdicts.append({"claim_id": claims[-1]["claim_id"], "evaluator": "e"} | told)
    return Judgements.join(
        validate_claims(pd.DataFrame(claims)), validate_verdicts(pd.DataFrame(verdicts))
    )


def test_a_failed_judgement_never_raises_recall_and_widens_the_bounds():
    (row,) = compute("citations", judged({"a": {"1": 1}, "b": {"2": "error"}}))
    assert (row["recall"], row["recall_min"], row["recall_max"], row["n_unscored"]) == (
        0.5,
        0.5,
        1.0,
        1,
    )
    # Whether 2 suffices is not known, but without it the others don't: needed in any case.
    three = {"1,2,3": 1, "1": 1, "3": 0, "2": "error", "1,2": 0}
    (row,) = compute("citations", judged({"a": three | {"1,3": 0}}))
    assert (row["precision"], row["precision_max"]) == (1.0, 1.0)
    (row,) = compute("citations", judged({"a": three | {"1,3": 1}}))
    assert (row["precision"], row["precision_max"]) == (pytest.approx(2 / 3), 1.0)


# ---- published judgements


def test_recall_is_that_of_the_published_files(shared):
    found = convert("alce-citations", [shared / "dfactscore" / "citation"])
    rows = compute("citations", Judgements.join(found.claims, found.verdicts), replicates=100)
    for path in (shared / "dfactscore" / "citation").glob("*.score"):
        total = json.loads(path.read_text())
        row = find(rows, recall=pytest.approx(total["citation_rec"] / 100, abs=1e-9))
        assert (row["n_responses"], row["n_empty"]) == (500, 0)
        assert row["precision_min"] < total["citation_prec"] / 100 < row["precision_max"]
        assert row["recall_low"] < row["recall"] < row["recall_high"]
    assert round(100 * find(rows, system="vicuna-7b-v1.5-16k")["recall"], 2) == 55.44  # MF Table 7


def scores_file(folder: Path, recall: float, n: int = 4) -> Path:
    """Response 0: one of two sentences recalled; response n - 1: its only sentence."""
    log = [
        {
            "qid": 0,
            "output": "He sang [1]. He died.",
            "claim": "He sang [1].",
            "passage": ["Title: A\nHe sang."],
        },
        {
            "qid": n - 1,
            "output": "He ran [1][2].",
            "claim": "He ran [1][2].",
            "passage": ["Title: A\nx\nTitle: B\ny"],
        },
    ]
    path = folder / "bioqa-x-gtr-shot2.json.score"
    judgements = [one | {"model_output": 1} for one in log]
    path.write_text(
        json.dumps({"citation_rec": recall, "citation_prec": 50.0, "autoais_log": judgements})
    )
    return path


def test_empty_outputs_are_left_out_as_in_alce_and_told(tmp_path):
    # 1.5 over 4 responses; or over 3, where one is empty.
    for recall, empty in ((37.5, 0), (50.0, 1), (75.0, 2)):
        found = convert("alce-citations", [scores_file(tmp_path, recall)])
        (row,) = compute("citations", Judgements.join(found.claims, found.verdicts))
        assert (100 * row["recall"], row["n_empty"], row["n_responses"]) == (
            recall,
            empty,
            4 - empty,
        )
    with pytest.raises(InputError, match="do not give this recall: 60"):
        convert("alce-citations", [scores_file(tmp_path, 60.0)])
    claims = convert("alce-citations", [scores_file(tmp_path, 37.5)]).claims
    assert claims["cited"].fillna("").tolist() == ["1", "", "1,2", "", ""]
