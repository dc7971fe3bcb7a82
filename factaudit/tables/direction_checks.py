"""Whether evaluators point the way that the labels do, once tables are read."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from factaudit.tables import find_claim_positions_in_table
from factaudit.tables.cell_values import parse_judgement_numbers
from factaudit.tables.column_mapping import ColumnMapping
from factaudit.tables.column_profiles import ColumnProfile
from factaudit.tables.meanings import Scale, describe_scale
from factaudit.tables.questions import OpenQuestion, PossibleReading, ignore_columns
from factaudit.tables.vocabulary import (
    has_vocabulary_word_in_column_name,
    normalise_vocabulary_words,
)

#: A direction contradicts the labels where chance would do so less often than this.
_LEVEL = 0.025
#: An evaluator with a larger AUC is a bad one, not one that was read the wrong way round.
_LARGEST_REVERSED_AUC = 0.4
#: Scores of which a threshold gives so many of an evaluator's own predictions are those that it predicts by.
_CLOSE_AUC = 0.9
#: With fewer labels of either kind a pattern in scores may be chance.
_MIN_OF_EITHER = 3


def ask_about_directions(
    claims: pd.DataFrame,
    verdicts: pd.DataFrame,
    mapping: ColumnMapping,
    chosen: ColumnMapping,
) -> tuple[list[OpenQuestion], list[str]]:
    """Questions about evaluators that say the opposite of the labels, or whose words the labels may be; and lines about
    what is no question.

    chosen: what the user said, which is not asked again. Where no evaluator agrees with the labels, these may say the
    opposite, and that is offered first.
    """
    labels = claims["label"].astype("float64").to_numpy()
    names = [*map(str, verdicts["evaluator"].unique())]
    questions, lines = [], []
    directions: list[tuple[str, list[PossibleReading]]] = []
    for name in names:
        rows = verdicts[verdicts["evaluator"] == name]
        truth = labels[find_claim_positions_in_table(claims, rows["claim_id"])]
        key, scale = _find_scale_option(name, mapping, len(names), bool(rows["score"].notna().any()))
        own = mapping.evaluators.get(name)
        called = {name, key} | (set() if own is None else {own.score, own.prediction})
        is_said = bool(called & {*chosen.scale, *chosen.high_is_error})
        auc, p = _test_auc_below_half(rows, truth)
        if auc is not None and p < _LEVEL:
            text = f"{name!r} is high where the labels say not attributable (AUC {auc:.2f})"
            if key is None or is_said or auc > _LARGEST_REVERSED_AUC:
                lines.append(f"note  {text}: --scale {key or name}=1:0 turns it round")
            else:
                directions.append((text, _list_score_scale_directions(name, key, scale)[::-1]))
                continue
        if len(names) == 1 and not mapping.evaluators:
            questions += _ask_whether_label_is_of_judge(rows, truth, mapping, chosen)
    label = mapping.columns.get("label", "label")
    if directions and len(directions) == len(names) and isinstance(label, str) and label not in chosen.high_is_error:
        turned = PossibleReading(f"1 and yes in {label} mean an error", {"high_is_error": [label]})
        kept, opposite = (_join_readings([ways[at] for _, ways in directions]) for at in (1, 0))
        ways = [turned, opposite] if len(names) > 1 else [opposite, turned]
        return [OpenQuestion("; ".join(text for text, _ in directions), [*ways, kept]), *questions], lines
    return [*(OpenQuestion(text, ways) for text, ways in directions), *questions], lines


def _join_readings(readings: Sequence[PossibleReading]) -> PossibleReading:
    scales = {name: scale for one in readings for name, scale in one.mapping["scale"].items()}
    return PossibleReading("; ".join(one.description for one in readings), {"scale": scales})


def _find_scale_option(
    name: str, mapping: ColumnMapping, n_evaluators: int, has_scores: bool
) -> tuple[str | None, Scale | None]:
    """What ``--scale`` calls an evaluator, and its scale; None where unknown."""
    own = mapping.evaluators.get(name)
    if own is not None and own.score is not None:
        return name, own.scale
    if own is not None:
        return own.prediction, (1.0, 0.0) if own.prediction in mapping.words else None
    column = mapping.columns.get("score", "score")
    if mapping.evaluators or not isinstance(column, str) or not has_scores:
        return None, None
    key = column if n_evaluators == 1 else name
    return key, mapping.scale.get(key)


def _list_score_scale_directions(name: str, key: str, scale: Scale | None) -> list[PossibleReading]:
    """The way in which scores are read, and the opposite."""
    ways: list[Scale] = [scale or (0.0, 1.0)]
    if isinstance(scale, str) and "logit" in scale:
        ways.append("logit" if scale == "-logit" else "-logit")
    elif not isinstance(ways[0], str):
        ways.append(ways[0][::-1])
    kept = [
        PossibleReading(f"{name} {describe_scale(one)}", {"scale": {key: one if isinstance(one, str) else [*one]}})
        for one in ways
    ]
    return [*kept, *([ignore_columns([key])] if len(ways) < 2 else [])]


def _test_auc_below_half(rows: pd.DataFrame, truth: np.ndarray) -> tuple[float | None, float]:
    """The AUC of an evaluator, and the probability of one so small by chance; 1 for one that is not below one half."""
    values: Any = rows["score"].astype("float64").to_numpy()
    has_scores = bool(np.isfinite(values).any())
    if not has_scores:
        values = rows["prediction"].astype("float64").to_numpy()
    known = np.isfinite(values) & np.isfinite(truth)
    ones, zeros = values[known & (truth == 1)], values[known & (truth == 0)]
    if not len(ones) or not len(zeros):
        return None, 1.0
    auc = _compute_auc(ones, zeros)
    if auc >= 0.5:
        return auc, 1.0
    from scipy.stats import fisher_exact, mannwhitneyu

    if has_scores:
        return auc, float(mannwhitneyu(ones, zeros, alternative="less").pvalue)
    table = np.array([[ones.sum(), len(ones) - ones.sum()], [zeros.sum(), len(zeros) - zeros.sum()]])
    return auc, float(fisher_exact(table, alternative="less").pvalue)


def _compute_auc(ones: np.ndarray, zeros: np.ndarray) -> float:
    """The share of pairs of a 1 and a 0 in which the 1 has the higher score, ties counting one half."""
    ranks = pd.Series(np.concatenate([ones, zeros])).rank().to_numpy()[: len(ones)]
    return float((ranks.sum() - len(ones) * (len(ones) + 1) / 2) / (len(ones) * len(zeros)))


def ask_whether_scores_are_of_support(
    name: str,
    columns: Mapping[str, ColumnProfile],
    rows: pd.DataFrame,
    words: Mapping[str, int | None],
    scale: Scale | None,
) -> list[OpenQuestion]:
    """Asks, where an evaluator's predictions do not follow from its scores, whether these say how sure it is, or run
    the other way.

    columns: ``score`` and ``prediction``. words: what those of predictions mean. scale: of the scores.
    """
    score, predicted = columns["score"].name, rows[columns["prediction"].name].astype("str")
    meanings = {normalise_vocabulary_words(word): value for word, value in words.items()}
    said = predicted.map({one: meanings.get(normalise_vocabulary_words(one)) for one in predicted.unique()})
    numbers = parse_judgement_numbers(rows[score])
    ones, zeros = numbers[said == 1].dropna().to_numpy(), numbers[said == 0].dropna().to_numpy()
    if not len(ones) or not len(zeros):
        return []
    auc = _compute_auc(ones, zeros)
    auc = 1 - auc if scale in ("-logit", "-log") or (isinstance(scale, tuple) and scale[0] > scale[1]) else auc
    if auc > _CLOSE_AUC:
        return []
    directions = _list_score_scale_directions(name, score, scale)
    sure = PossibleReading(f"{score} says how sure {name} is: only what it predicts is read", {"ignore": [score]})
    if auc == 0:
        text = f"{name!r} predicts attributable where its scores, {score!r}, say the opposite"
        return [OpenQuestion(text, [*directions[::-1], sure])]
    text = f"{name!r}: what it predicts does not follow from its scores, {score!r}, by any threshold"
    return [OpenQuestion(text, [sure, *directions])]


def _ask_whether_label_is_of_judge(
    rows: pd.DataFrame, truth: np.ndarray, mapping: ColumnMapping, chosen: ColumnMapping
) -> list[OpenQuestion]:
    """Asks where ``label`` and ``score`` may be one classifier's word and how sure it is: a score above 0.5 beside
    either word, or one that a threshold turns into the label."""
    label, score = (mapping.columns.get(ours, ours) for ours in ("label", "score"))
    scores: Any = rows["score"].astype("float64").to_numpy()
    is_own = {"label", "score", "prediction", "evaluator"} & {*chosen.columns} or "evaluator" in mapping.columns
    if is_own or not isinstance(label, str) or not isinstance(score, str) or np.isnan(scores).any():
        return []
    ones, zeros = scores[truth == 1], scores[truth == 0]
    follows_from_score = (rows["prediction"].astype("float64").to_numpy() == (scores > 0.5)).all()
    if min(len(ones), len(zeros)) < _MIN_OF_EITHER or has_vocabulary_word_in_column_name("people", label):
        return []
    if not follows_from_score or not (scores.min() >= 0.5 or ones.min() > zeros.max()):
        return []
    own = {"columns": {"prediction": label}, "ignore": [score]}
    own = own if scores.min() >= 0.5 else {"columns": {"prediction": label, "score": score}}
    readings = [
        PossibleReading(f"{label} is people's", {"columns": {"label": label, "score": score}}),
        PossibleReading(f"{label} is the evaluator's: no labels of people", own),
        PossibleReading(f"{label} is people's; ignore {score}", {"columns": {"label": label}, "ignore": [score]}),
    ]
    return [OpenQuestion(f"{label!r} may be people's, or what the evaluator of {score!r} says", readings)]
