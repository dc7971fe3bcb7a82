"""Whether evaluators point the way that the labels do, once tables are read."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from factaudit.intake.column_mapping import ColumnMapping
from factaudit.intake.open_questions import OpenQuestion, PossibleColumnReading
from factaudit.tables import find_claim_positions_in_table

#: A direction contradicts the labels where chance would do so less often than this.
_LEVEL = 0.025
#: An evaluator with a larger AUC is a bad one, not one that was read the wrong way round.
_LARGEST_REVERSED_AUC = 0.4


def ask_about_directions(
    claims: pd.DataFrame, verdicts: pd.DataFrame, mapping: ColumnMapping, chosen: ColumnMapping
) -> tuple[list[OpenQuestion], list[str]]:
    """Questions about evaluators that say the opposite of the labels, and lines about what is no question.

    chosen: what the user said, which is not asked again.
    """
    labels = claims["label"].astype("float64").to_numpy()
    questions, lines = [], []
    for name in map(str, verdicts["evaluator"].unique()):
        rows = verdicts[verdicts["evaluator"] == name]
        truth = labels[find_claim_positions_in_table(claims, rows["claim_id"])]
        auc, p = _test_auc_below_half(rows, truth)
        key = _find_scale_key(name, mapping)
        if auc is not None and p < _LEVEL:
            text = f"{name!r} is high where the labels say not attributable (AUC {auc:.2f})"
            if key is None or key in chosen.scales or chosen.scale is not None or auc > _LARGEST_REVERSED_AUC:
                lines.append(f"note  {text}: --scale {key or name}=1:0 turns it round")
            else:
                questions.append(_ask_score_direction(text, name, key, mapping))
        if (line := _check_predictions_follow_from_scores(name, rows)) is not None:
            lines.append(line)
    return questions, lines


def _find_scale_key(name: str, mapping: ColumnMapping) -> str | None:
    """What ``--scale`` calls an evaluator; None where its direction is no matter of a scale."""
    own = mapping.evaluators.get(name)
    if own is not None:
        return name if own.score is not None else own.prediction
    columns = mapping.columns
    return None if "prediction" in columns and "score" not in columns else name if mapping.evaluators else None


def _ask_score_direction(text: str, name: str, key: str, mapping: ColumnMapping) -> OpenQuestion:
    own = mapping.evaluators[name]
    if isinstance(own.scale, str):
        ways = [
            (one, "logits of hallucination" if one == "-logit" else "logits of support") for one in ("-logit", "logit")
        ]
        ways = ways if own.scale == "logit" else ways[::-1]
        return OpenQuestion(
            text, [PossibleColumnReading(f"{name} has {said}", {"scales": {key: one}}) for one, said in ways]
        )
    low, high = own.scale or (0.0, 1.0)
    if own.score is None:
        low, high = (1.0, 0.0) if key in mapping.words else (0.0, 1.0)
    readings = [
        PossibleColumnReading(f"{name} runs from {a:g} (not supported) to {b:g} (supported)", {"scales": {key: [a, b]}})
        for a, b in ((high, low), (low, high))
    ]
    return OpenQuestion(text, readings)


def _test_auc_below_half(rows: pd.DataFrame, truth: np.ndarray) -> tuple[float | None, float]:
    """The AUC of an evaluator, and the probability of one so small by chance."""
    from scipy.stats import fisher_exact, mannwhitneyu

    values: Any = rows["score"].astype("float64").to_numpy()
    has_scores = bool(np.isfinite(values).any())
    if not has_scores:
        values = rows["prediction"].astype("float64").to_numpy()
    known = np.isfinite(values) & np.isfinite(truth)
    ones, zeros = values[known & (truth == 1)], values[known & (truth == 0)]
    if not len(ones) or not len(zeros):
        return None, 1.0
    if has_scores:
        test = mannwhitneyu(ones, zeros, alternative="less")
        return float(mannwhitneyu(ones, zeros).statistic / (len(ones) * len(zeros))), float(test.pvalue)
    table = np.array([[ones.sum(), len(ones) - ones.sum()], [zeros.sum(), len(zeros) - zeros.sum()]])
    return float(0.5 + (ones.mean() - zeros.mean()) / 2), float(fisher_exact(table, alternative="less").pvalue)


def _check_predictions_follow_from_scores(name: str, rows: pd.DataFrame) -> str | None:
    """Says where an evaluator's predictions do not follow from its scores by any threshold."""
    scores, said = rows["score"].astype("float64"), rows["prediction"].astype("float64")
    ones, zeros = scores[said == 1].dropna(), scores[said == 0].dropna()
    if not len(ones) or not len(zeros) or ones.min() >= zeros.max():
        return None
    if ones.max() <= zeros.min():
        return (
            f"note  {name!r} predicts attributable where its scores are low: --scale {name}=1:0 turns the scores round"
        )
    return f"note  {name!r}: its predictions do not follow from its scores by any threshold; both are read as they are"
