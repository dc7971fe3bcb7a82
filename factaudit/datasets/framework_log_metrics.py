"""What the metrics of evaluation frameworks said of samples, on which scales, as verdicts."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from factaudit.errors import UsageError, suggest_known_name
from factaudit.tables.vocabulary import (
    BARE_WORDS,
    find_vocabulary_words_in_column_name,
    has_vocabulary_word_in_column_name,
    is_reversed_column_name,
    normalise_label_word,
    parse_label_word,
)

#: Not supported, and supported.
_UPRIGHT, _REVERSED = (0.0, 1.0), (1.0, 0.0)


@dataclass(frozen=True)
class FrameworkLogMetric:
    """What a metric said of a sample: a number, a truth value or a word; or why it said nothing.

    ``prediction``: what the metric itself concluded from its number. ``is_upright``: the log says that 1 is good,
    whatever the metric's name says. ``is_of_any_column``: of a table to which people may add columns of their own.
    """

    value: Any
    raw: str | None = None
    status: str = "ok"
    prediction: bool | None = None
    is_upright: bool = False
    is_of_any_column: bool = False


def has_metric_said_anything(metric_outputs: Sequence[FrameworkLogMetric]) -> bool:
    """Whether a metric has a value, a text or a conclusion anywhere: a column that is blank is none."""
    return any(one.value is not None or one.raw or one.prediction is not None for one in metric_outputs)


def is_metric_like_label(name: str, outputs: Sequence[FrameworkLogMetric]) -> bool:
    """Whether people may have said what a metric called ``is_supported`` or ``checked`` says, or one of 1 and 0 in a
    column of any name."""
    words = find_vocabulary_words_in_column_name("doubtful_labels", name)
    values = [one.value for one in outputs if one.value is not None]  # of a broken log also lists
    is_named = not has_vocabulary_word_in_column_name("judges", name)
    is_binary = all(value in (0, 1) for value in values)
    may_be_added = 0 in values and 1 in values and any(one.is_of_any_column for one in outputs)
    return name.lower().startswith("is_") or (is_binary and is_named and (bool(words) or may_be_added))


def parse_metric_scales(
    said_scales: Mapping[str, tuple[float, float]] | str | None, metric_names: Sequence[str]
) -> dict[str, tuple[float, float]]:
    """What the user says of metrics' scales: ``faithfulness=1:5,hallucination=1:0``. Raises `UsageError`."""
    if isinstance(said_scales, str):
        parts = [part.rpartition("=") for part in said_scales.split(",")]
        try:
            said_scales = {name: (float(ends.split(":")[0]), float(ends.split(":")[1])) for name, _, ends in parts}
        except (ValueError, IndexError):
            raise UsageError(f"option scales: expected NAME=LOW:HIGH, found {said_scales!r}") from None
    for name, (low, high) in (said_scales or {}).items():
        if name not in metric_names:
            raise UsageError(f"option scales: the log has no metric {name!r}{suggest_known_name(name, metric_names)}")
        if low == high:
            raise UsageError(f"option scales: the scale of {name!r} has no length")
    return dict(said_scales or {})


def find_metric_scale(
    metric_name: str, metric_outputs: Sequence[FrameworkLogMetric], said_scales: Mapping[str, tuple[float, float]]
) -> tuple[float, float]:
    """What a metric's numbers for not supported and for supported are: as the user says, else by its name."""
    if metric_name in said_scales:
        return said_scales[metric_name]
    is_upright = any(one.is_upright for one in metric_outputs)
    return _REVERSED if not is_upright and is_reversed_column_name(metric_name) else _UPRIGHT


def is_metric_off_scale(metric_outputs: Sequence[FrameworkLogMetric], scale: tuple[float, float]) -> bool:
    """Whether a metric has a number beyond its scale, so that none of its numbers is known to be a share."""
    values = [one.value for one in metric_outputs if _is_number(one.value) and not is_unscored_number(one.value)]
    return any(not min(scale) <= value <= max(scale) for value in values)


def is_unscored_number(value: Any) -> bool:
    """Whether a number is NaN or infinite, with which frameworks say that a metric failed on a sample."""
    return isinstance(value, float) and not math.isfinite(value)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def make_metric_verdict(
    metric_output: FrameworkLogMetric, scale: tuple[float, float], is_off_scale: bool
) -> dict[str, Any]:
    """A number of the scale is a score; a truth value, or a word for one, a prediction; anything else is unparsed.

    is_off_scale: the metric has other numbers too; only what it concluded from them is read.
    """
    value = metric_output.value
    row: dict[str, Any] = {"prediction": None, "raw": metric_output.raw, "status": metric_output.status}
    if metric_output.status != "ok":
        return row
    if is_unscored_number(value):  # what the run concluded from it (`success: false`) is no prediction
        return row | {"status": "unparsed"}
    is_number = _is_number(value)
    own = {} if metric_output.prediction is None else {"prediction": int(metric_output.prediction)}
    if is_number and is_off_scale and own:
        return row | own
    if is_number and not is_off_scale:
        low, high = scale
        return row | {"score": (float(value) - low) / (high - low)} | own
    meaning = None if is_number or value is None else parse_label_word(value)
    if meaning is not None:
        is_turned = scale[0] > scale[1] and normalise_label_word(value) in BARE_WORDS
        return row | {"prediction": 1 - meaning if is_turned else meaning}
    said = None if value is None else str(value)  # where a check has no value, there is nothing that it said
    return row | {"status": "unparsed", "raw": metric_output.raw or said}
