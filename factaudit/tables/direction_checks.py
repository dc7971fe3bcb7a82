"""A safety net under the names: checks that an evaluator's scores point in the same direction as
the labels, and as its own predictions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from factaudit.tables.column_mapping import ColumnMapping
from factaudit.tables.meanings import Scale, is_column_reversed
from factaudit.tables.questions import OpenQuestion, merge_mapping_data
from factaudit.tables.validation import find_claim_positions
from factaudit.tables.vocabulary import name_has_word

#: An evaluator contradicts the labels if chance would do so less often than this.
_LEVEL = 0.025
#: An evaluator with a larger AUC is bad, but was not read the wrong way round.
_LARGEST_REVERSED_AUC = 0.4
#: If a threshold on scores separates an evaluator's own predictions with this AUC, its predictions
#: come from these scores.
_CLOSE_AUC = 0.9
#: With fewer labels of either kind, a pattern in scores may be chance.
_MIN_OF_EITHER = 3


def ask_about_directions(
    claims: pd.DataFrame, verdicts: pd.DataFrame, mapping: ColumnMapping, chosen: ColumnMapping
) -> tuple[list[OpenQuestion], list[str]]:
    """Ask about evaluators that contradict the labels, and about words that may be labels or an
    evaluator's verdicts.

    Returns the questions, and lines about evaluators that need no question. chosen: what the user
    said, which is not asked again. If all evaluators contradict the labels, the labels may be
    upside down.
    """
    labels = claims["label"].astype("float64").to_numpy()
    names = [*map(str, verdicts["evaluator"].unique())]
    label = mapping.columns.get("label", "label")
    said, lines = [], []
    turned: dict[str, Any] = {}
    kept: dict[str, Any] = {}
    questions = []
    for name in names:
        rows = verdicts[verdicts["evaluator"] == name]
        truth = labels[find_claim_positions(claims, rows["claim_id"])]
        if len(names) == 1 and not mapping.evaluators and not name_has_word("people", str(label)):
            questions += _ask_whether_label_is_of_judge(rows, truth, mapping, chosen)
        key, scale, columns = _find_scale_option(
            name, mapping, names, bool(rows["score"].notna().any())
        )
        is_told = bool({name, key, *columns} & {*chosen.scale, *chosen.high_is_error})
        if len(columns) == 2 and not is_told and not _scores_follow_predictions(rows):
            text = (
                f"{name!r}: what it predicts does not follow from its scores, {columns[0]!r}, by"
                " any threshold"
            )
            answers = [{"ignore": [columns[0]]}, _turn(columns[0], scale), _keep(columns[0], scale)]
            questions.append(OpenQuestion(text, answers))
            continue
        auc, p = _test_auc_below_half(rows, truth)
        if p >= _LEVEL:
            continue
        text = f"{name!r} is high where the labels say not attributable (AUC {auc:.2f})"
        if key is None or is_told or auc > _LARGEST_REVERSED_AUC:
            lines.append(f"note  {text}: --scale {key or name}=1:0 turns it round")
        else:
            said.append(text)
            kept = merge_mapping_data(kept, _keep(key, scale))
            turned = merge_mapping_data(turned, _turn(key, scale))
    answers = [turned, kept]
    if len(said) == len(names) and isinstance(label, str) and label not in chosen.high_is_error:
        answers.insert(len(names) == 1, {"high_is_error": [label]})
    return [*([OpenQuestion("; ".join(said), answers)] if said else []), *questions], lines


def _find_scale_option(
    name: str, mapping: ColumnMapping, names: Sequence[str], has_scores: bool
) -> tuple[str | None, Scale, list[str]]:
    """The name of an evaluator in ``--scale`` (None if unknown), its scale, and its columns."""
    upright: Scale = (0.0, 1.0)
    if (own := mapping.evaluators.get(name)) is not None:
        if own.score is not None:
            return name, own.scale or upright, own.columns
        return (
            own.prediction,
            (1.0, 0.0) if is_column_reversed(str(own.prediction), mapping) else upright,
            own.columns,
        )
    columns = [mapping.columns.get(ours, ours) for ours in ("score", "prediction")]
    known = [one for one in columns if isinstance(one, str)]
    if mapping.evaluators or len(known) < 2 or not has_scores:
        return None, upright, []
    key = known[0] if len(names) == 1 else name
    is_both = "evaluator" not in mapping.columns and "prediction" in mapping.columns
    return key, mapping.scale.get(key, upright), known if is_both else []


def _keep(key: str, scale: Scale) -> dict[str, Any]:
    """The part of a mapping that says that scores are the right way round."""
    return {"scale": {key: [*scale] if isinstance(scale, tuple) else scale}}


def _turn(key: str, scale: Scale) -> dict[str, Any]:
    """The part of a mapping that turns scores round."""
    if isinstance(scale, str):
        opposite = scale.removeprefix("-") if scale.startswith("-") else f"-{scale}"
        return {"scale": {key: opposite}} if "logit" in scale else {"ignore": [key]}
    return {"scale": {key: [*scale[::-1]]}}


def _test_auc_below_half(rows: pd.DataFrame, truth: np.ndarray) -> tuple[float, float]:
    """The AUC of an evaluator, and the probability of so small an AUC by chance (1 if it is not
    below one half)."""
    has_scores = bool(rows["score"].notna().any())
    values: Any = rows["score" if has_scores else "prediction"].astype("float64").to_numpy()
    known = np.isfinite(values) & np.isfinite(truth)
    ones, zeros = values[known & (truth == 1)], values[known & (truth == 0)]
    auc = compute_auc(ones, zeros) if len(ones) and len(zeros) else 1.0
    if auc >= 0.5:
        return auc, 1.0
    from scipy.stats import fisher_exact, mannwhitneyu

    if has_scores:
        return auc, float(mannwhitneyu(ones, zeros, alternative="less").pvalue)
    table = np.array(
        [[ones.sum(), len(ones) - ones.sum()], [zeros.sum(), len(zeros) - zeros.sum()]]
    )
    return auc, float(fisher_exact(table, alternative="less").pvalue)


def compute_auc(ones: np.ndarray, zeros: np.ndarray) -> float:
    """The share of pairs of a 1 and a 0 in which the 1 has the higher score; ties count one
    half."""
    ranks = pd.Series(np.concatenate([ones, zeros])).rank().to_numpy()[: len(ones)]
    return float((ranks.sum() - len(ones) * (len(ones) + 1) / 2) / (len(ones) * len(zeros)))


def _scores_follow_predictions(rows: pd.DataFrame) -> bool:
    """Whether a threshold on an evaluator's scores gives nearly all of its predictions. Otherwise
    the scores may be confidences, or point the other way."""
    scores = rows["score"].astype("float64")
    ones, zeros = (scores[rows["prediction"] == value].dropna().to_numpy() for value in (1, 0))
    return not len(ones) or not len(zeros) or compute_auc(ones, zeros) > _CLOSE_AUC


def _ask_whether_label_is_of_judge(
    rows: pd.DataFrame, truth: np.ndarray, mapping: ColumnMapping, chosen: ColumnMapping
) -> list[OpenQuestion]:
    """Ask if ``label`` and ``score`` may be the verdict and the confidence of one classifier: the
    score is above 0.5 beside both labels, or a threshold turns it into the label."""
    label, score = (mapping.columns.get(ours, ours) for ours in ("label", "score"))
    scores: Any = rows["score"].astype("float64").to_numpy()
    is_said = {"label", "score", "prediction", "evaluator"} & {
        *chosen.columns
    } or "evaluator" in mapping.columns
    if (
        is_said
        or not isinstance(label, str)
        or not isinstance(score, str)
        or np.isnan(scores).any()
    ):
        return []
    ones, zeros = scores[truth == 1], scores[truth == 0]
    follows_from_score = (rows["prediction"].astype("float64").to_numpy() == (scores > 0.5)).all()
    if min(len(ones), len(zeros)) < _MIN_OF_EITHER or not follows_from_score:
        return []
    if scores.min() < 0.5 and ones.min() <= zeros.max():
        return []
    unread: Mapping[str, Any] = {"columns": {"prediction": label}, "ignore": [score]}
    own = unread if scores.min() >= 0.5 else {"columns": {"prediction": label, "score": score}}
    people = {"columns": {"label": label, "score": score}}
    text = f"{label!r} may be people's, or what the evaluator of {score!r} says"
    return [OpenQuestion(text, [people, own, {"columns": {"label": label}, "ignore": [score]}])]
