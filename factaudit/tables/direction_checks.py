"""The net below the names: do an evaluator's scores point the way that the labels, or its own predictions, do?"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from factaudit.tables import find_claim_positions_in_table
from factaudit.tables.column_mapping import ColumnMapping
from factaudit.tables.meanings import Scale
from factaudit.tables.questions import OpenQuestion, merge_mapping_data
from factaudit.tables.vocabulary import has_vocabulary_word_in_column_name

#: A direction contradicts the labels where chance would do so less often than this.
_LEVEL = 0.025
#: An evaluator with a larger AUC is a bad one, not one that was read the wrong way round.
_LARGEST_REVERSED_AUC = 0.4
#: Scores of which a threshold gives so many of an evaluator's own predictions are those that it predicts by.
_CLOSE_AUC = 0.9
#: With fewer labels of either kind a pattern in scores may be chance.
_MIN_OF_EITHER = 3


def ask_about_directions(
    claims: pd.DataFrame, verdicts: pd.DataFrame, mapping: ColumnMapping, chosen: ColumnMapping
) -> tuple[list[OpenQuestion], list[str]]:
    """Questions about evaluators that say the opposite of the labels, or whose words the labels may be; and lines about
    what is no question.

    chosen: what the user said, which is not asked again. Where no evaluator agrees with the labels, these may say the
    opposite.
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
        truth = labels[find_claim_positions_in_table(claims, rows["claim_id"])]
        if len(names) == 1 and not mapping.evaluators and not has_vocabulary_word_in_column_name("people", str(label)):
            questions += _ask_whether_label_is_of_judge(rows, truth, mapping, chosen)
        key, scale = _find_scale_option(name, mapping, len(names), bool(rows["score"].notna().any()))
        own = mapping.evaluators.get(name)
        score, prediction = (mapping.columns.get(ours) for ours in ("score", "prediction"))
        if own is not None:
            score, prediction = own.score, own.prediction
        called = {name, key, score, prediction}
        is_told = bool(called & {*chosen.scale, *chosen.high_is_error})
        is_both = isinstance(score, str) and prediction is not None and "evaluator" not in mapping.columns
        if is_both and not is_told and (unsure := _ask_whether_scores_are_of_support(rows, name, str(score), scale)):
            questions += unsure
            continue
        auc, p = _test_auc_below_half(rows, truth)
        if p >= _LEVEL:
            continue
        text = f"{name!r} is high where the labels say not attributable (AUC {auc:.2f})"
        if key is None or is_told or auc > _LARGEST_REVERSED_AUC:
            lines.append(f"note  {text}: --scale {key or name}=1:0 turns it round")
        else:
            said.append(text)
            kept = merge_mapping_data(kept, {"scale": {key: [*scale] if isinstance(scale, tuple) else scale}})
            turned = merge_mapping_data(turned, _turn(key, scale))
    answers: list[Mapping[str, Any]] = [turned, kept]
    if len(said) == len(names) and isinstance(label, str) and label not in chosen.high_is_error:
        labels_turned = {"high_is_error": [label]}
        answers = [labels_turned, turned, kept] if len(names) > 1 else [turned, labels_turned, kept]
    return [*([OpenQuestion("; ".join(said), answers)] if said else []), *questions], lines


def _find_scale_option(
    name: str, mapping: ColumnMapping, n_evaluators: int, has_scores: bool
) -> tuple[str | None, Scale]:
    """What ``--scale`` calls an evaluator, and its scale; None where unknown."""
    upright: Scale = (0.0, 1.0)
    own = mapping.evaluators.get(name)
    if own is not None and own.score is not None:
        return name, own.scale or upright
    if own is not None:
        return own.prediction, (1.0, 0.0) if own.prediction in mapping.words else upright
    column = mapping.columns.get("score", "score")
    if mapping.evaluators or not isinstance(column, str) or not has_scores:
        return None, upright
    key = column if n_evaluators == 1 else name
    return key, mapping.scale.get(key, upright)


def _turn(key: str, scale: Scale) -> dict[str, Any]:
    """The part of a mapping that reads scores the other way round."""
    if isinstance(scale, str):
        opposite = scale.removeprefix("-") if scale.startswith("-") else f"-{scale}"
        return {"scale": {key: opposite}} if "logit" in scale else {"ignore": [key]}
    return {"scale": {key: [*scale[::-1]]}}


def _test_auc_below_half(rows: pd.DataFrame, truth: np.ndarray) -> tuple[float, float]:
    """The AUC of an evaluator, and the probability of one so small by chance; 1 for one that is not below one half."""
    values: Any = rows["score"].astype("float64").to_numpy()
    has_scores = bool(np.isfinite(values).any())
    if not has_scores:
        values = rows["prediction"].astype("float64").to_numpy()
    known = np.isfinite(values) & np.isfinite(truth)
    ones, zeros = values[known & (truth == 1)], values[known & (truth == 0)]
    auc = compute_auc(ones, zeros) if len(ones) and len(zeros) else 1.0
    if auc >= 0.5:
        return auc, 1.0
    from scipy.stats import fisher_exact, mannwhitneyu

    if has_scores:
        return auc, float(mannwhitneyu(ones, zeros, alternative="less").pvalue)
    table = np.array([[ones.sum(), len(ones) - ones.sum()], [zeros.sum(), len(zeros) - zeros.sum()]])
    return auc, float(fisher_exact(table, alternative="less").pvalue)


def compute_auc(ones: np.ndarray, zeros: np.ndarray) -> float:
    """The share of pairs of a 1 and a 0 in which the 1 has the higher score, ties counting one half."""
    ranks = pd.Series(np.concatenate([ones, zeros])).rank().to_numpy()[: len(ones)]
    return float((ranks.sum() - len(ones) * (len(ones) + 1) / 2) / (len(ones) * len(zeros)))


def _ask_whether_scores_are_of_support(rows: pd.DataFrame, name: str, column: str, scale: Scale) -> list[OpenQuestion]:
    """Asks, where an evaluator's predictions do not follow from its scores, whether these say how sure it is, or run
    the other way."""
    scores = rows["score"].astype("float64")
    ones, zeros = (scores[rows["prediction"] == value].dropna().to_numpy() for value in (1, 0))
    if not len(ones) or not len(zeros) or (auc := compute_auc(ones, zeros)) > _CLOSE_AUC:
        return []
    kept: dict[str, Any] = {"scale": {column: [*scale] if isinstance(scale, tuple) else scale}}
    answers: list[Mapping[str, Any]] = [{"ignore": [column]}, kept, _turn(column, scale)]
    text = f"{name!r}: what it predicts does not follow from its scores, {column!r}, by any threshold"
    return [OpenQuestion(text, answers[::-1] if auc == 0 else answers)]


def _ask_whether_label_is_of_judge(
    rows: pd.DataFrame, truth: np.ndarray, mapping: ColumnMapping, chosen: ColumnMapping
) -> list[OpenQuestion]:
    """Asks where ``label`` and ``score`` may be one classifier's word and how sure it is: a score above 0.5 beside
    either word, or one that a threshold turns into the label."""
    label, score = (mapping.columns.get(ours, ours) for ours in ("label", "score"))
    scores: Any = rows["score"].astype("float64").to_numpy()
    is_said = {"label", "score", "prediction", "evaluator"} & {*chosen.columns} or "evaluator" in mapping.columns
    if is_said or not isinstance(label, str) or not isinstance(score, str) or np.isnan(scores).any():
        return []
    ones, zeros = scores[truth == 1], scores[truth == 0]
    follows_from_score = (rows["prediction"].astype("float64").to_numpy() == (scores > 0.5)).all()
    if min(len(ones), len(zeros)) < _MIN_OF_EITHER or not follows_from_score:
        return []
    if scores.min() < 0.5 and ones.min() <= zeros.max():
        return []
    own: dict[str, Any] = {"columns": {"prediction": label, "score": score}}
    if scores.min() >= 0.5:
        own = {"columns": {"prediction": label}, "ignore": [score]}
    people = {"columns": {"label": label, "score": score}}
    text = f"{label!r} may be people's, or what the evaluator of {score!r} says"
    return [OpenQuestion(text, [people, own, {"columns": {"label": label}, "ignore": [score]}])]
