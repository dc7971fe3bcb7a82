"""Whether a judge is lenient with systems of its own family: with the claims of GPT models, where it is one itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from factaudit.arrays import confusion_counts
from factaudit.arrays.claim_groups import encode_claim_group_column
from factaudit.arrays.judgements import Judgements
from factaudit.audit.core.audit_declaration import Audit, AuditedRun, Check, Column, Finding, pick_shared_columns
from factaudit.audit.core.finding_parts import (
    format_how_many_datasets,
    group_finding_rows_by_evaluator,
    make_row_finding,
)
from factaudit.audit.core.interval_methods import DISCORDANT
from factaudit.audit.core.plot_specs import ForestPlotSpec
from factaudit.audit.core.result_rows import FEW_CLUSTERS, Row, explain_missing_row_intervals
from factaudit.audit.core.significance import p_above_limit, select_significant_rows
from factaudit.audit.core.statements import Statement, make_statement
from factaudit.errors import UsageError
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import count_codes_by_cluster
from factaudit.stats.standardised_difference import standardised_difference
from factaudit.stats.undefined_values import divide_or_undefined, none_if_undefined
from factaudit.text.display_text import join_reasons

#: Families by what is in the name of a model. A name of several families (a distilled model) is of none.
MODEL_FAMILIES = {
    "GPT": r"gpt(?!-?(j(?![a-z])|neo))|davinci|openai|(?<![a-z0-9])o[134](?![a-z0-9])",
    "Claude": r"claude|anthropic",
    "Gemini": r"gemini|palm-?2|(?<![a-z])bard(?![a-z])",
    "Gemma": r"gemma",
    "Llama": r"llama(?!-?index|\.?cpp)",
    "Mistral": r"mistral|mixtral|ministral|magistral",
    "Qwen": r"qwen|qwq",
    "DeepSeek": r"deepseek",
    "Command": r"command-?(a|r|light|xlarge|nightly)(?![a-z])|cohere",
    "Phi": r"(?<![a-z])phi-?[1-9]",
    "Grok": r"grok-?[1-9]",
    "Falcon": r"falcon",
    "OLMo": r"olmo",
    "Granite": r"granite",
    "GLM": r"(?<![a-z])(chat)?glm-?[1-9]",
    "Yi": r"(?<![a-z])yi-?(1\.5|6b|9b|34b|large|lightning)",
}


def find_model_family(name: str, families: Mapping[str, str] | None = None) -> str | None:
    """The family of a model by its name; None where the name is of no family that is known, or of several.

    families: what is known of some names already.

    >>> [find_model_family(name) for name in ("gpt-4o-mini", "llm:model=o3", "deepseek-r1-distill-llama-8b")]
    ['GPT', 'GPT', None]
    """
    if families is not None and name in families:
        return families[name]
    found = [family for family, pattern in MODEL_FAMILIES.items() if re.search(pattern, name.casefold())]
    return found[0] if len(found) == 1 else None


def compute_self_preference(
    judgements: Judgements,
    *,
    families: Mapping[str, str] | None = None,
    column: str | None = None,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """How many more claims of its own family's systems a judge passes than of others', among claims with equal labels.

    families: names of evaluators and systems to their families, before what names tell. column: of the claims, the
    family of each one's system. Systems of no known family are left out, for they may be relatives.

    A row per dataset and evaluator with a family that some system of the dataset has, and some has not: dataset,
    evaluator, family, n (labelled and scored claims of its family), n_others (of other families), n_unscored (labelled
    ones of both without a prediction), n_systems, n_other_systems, bias_own and bias_others (predicted - labelled error
    rate over n, over n_others), preference, n_judges (evaluators of other families that the dataset has systems of or
    not) and excess. Preference is the difference of the shares that pass, own - others, of attributable and of
    unattributable claims apart, weighted by the classes' shares of all n + n_others: so a family with fewer errors is
    not taken for one that is favoured. Excess: the same of the judge's predictions less the mean of the other judges'
    on the same claims, which finds these claims easier or harder for all. Both with ``_min`` and ``_max`` and, with
    intervals, ``_low`` and ``_high``.
    """
    kin = _find_column_model_families(judgements, families, column)
    judges = [(at, family) for at, family in enumerate(kin.of_evaluators) if family is not None]
    names = judgements.dataset_names
    rows = []
    for place, dataset in enumerate(names):
        inside = np.flatnonzero((judgements.dataset_codes == place) & (judgements.label >= 0) & (kin.of_claims >= 0))
        present = {kin.names[code] for code in np.unique(kin.of_claims[inside])}
        for at, family in judges:
            if family in present and len(present) > 1:
                others = [other for other, its in judges if its != family]
                row: Row = {"dataset": dataset, "evaluator": judgements.evaluators[at]}
                rows.append(row | _build_self_preference_row(judgements, kin, inside, at, family, others, intervals))
    return rows


@dataclass(frozen=True)
class _KnownModelFamilies:
    """names: the families; of_claims: int64 (n,), the family of each claim's system, -1 for none known; of_evaluators:
    the family of each evaluator."""

    names: list[str]
    of_claims: np.ndarray
    of_evaluators: list[str | None]


def _find_column_model_families(
    judgements: Judgements, families: Mapping[str, str] | None = None, column: str | None = None
) -> _KnownModelFamilies:
    codes, values = encode_claim_group_column(judgements.claims, "system" if column is None else column)
    if column is None:
        found = [None if name is None else find_model_family(str(name), families) for name in values]
    else:
        found = [None if name is None else str(name) for name in values]
    of_evaluators = [find_model_family(name, families) for name in judgements.evaluators]
    names = sorted({family for family in found if family is not None})
    if families is not None:
        unknown = set(families) - {*judgements.evaluators, *(str(name) for name in values)}
        if unknown:
            raise UsageError(f"self_preference: no evaluator or system {', '.join(sorted(map(repr, unknown)))}")
    places = np.array([-1 if family is None else names.index(family) for family in found], dtype=np.int64)
    return _KnownModelFamilies(names, places[codes] if len(places) else codes, of_evaluators)


def _build_self_preference_row(
    judgements: Judgements,
    kin: _KnownModelFamilies,
    rows: np.ndarray,
    evaluator: int,
    family: str,
    others: Sequence[int],
    intervals: ClusterBootstrap | None,
) -> Row:
    label, is_own = judgements.label[rows], kin.of_claims[rows] == kin.names.index(family)
    said, system = judgements.prediction[evaluator][rows], judgements.claims["system"].to_numpy(dtype=object)[rows]
    scored, clusters = said >= 0, judgements.cluster_codes[rows]
    row: Row = {
        "family": family,
        "n": int((scored & is_own).sum()),
        "n_others": int((scored & ~is_own).sum()),
        "n_unscored": int((~scored).sum()),
        "n_systems": len(set(system[is_own])),
        "n_other_systems": len(set(system[~is_own])),
    }
    row |= _compute_own_and_other_family_biases(judgements, evaluator, rows, is_own, intervals)
    passes = _bound_passes(judgements, evaluator, rows)
    row |= _compare_pass_rates_with_own_family("preference", passes, label, is_own, clusters, intervals)
    judges = [_bound_passes(judgements, other, rows) for other in others]
    judges = [each for each in judges if not np.isnan(each[0]).all()]
    row["n_judges"] = len(judges)
    value, least, most = np.array(judges or [passes]).swapaxes(0, 1)
    known = ~np.isnan(value) & bool(judges)
    mean = divide_or_undefined(np.where(known, value, 0).sum(0), known.sum(0))
    beyond = (passes[0] - mean, passes[1] - most.mean(0), passes[2] - least.mean(0))
    row |= _compare_pass_rates_with_own_family("excess", beyond, label, is_own, clusters, intervals)
    return row | {"reason": _explain_self_preference_row(row, label, is_own, said)}


def _compute_own_and_other_family_biases(
    judgements: Judgements, evaluator: int, rows: np.ndarray, is_own: np.ndarray, intervals: ClusterBootstrap | None
) -> Row:
    """bias_own and bias_others, as the audit `quantification` has it of a system."""
    codes, over_all, label = is_own.astype(np.int64), np.zeros(2, dtype=bool), judgements.label[rows]
    said, certain = (each[evaluator][rows] for each in (judgements.prediction, judgements.stated_prediction))
    limits = None
    if intervals is not None:
        nines = confusion_counts.encode_label_prediction_cells(label, said)
        clusters = count_codes_by_cluster(
            judgements.cluster_codes[rows], codes, 2, nines, confusion_counts.N_CONFUSION_CELLS
        )
        limits = confusion_counts.confusion_error_rate_intervals(clusters, over_all, intervals.confidence)
    figures = confusion_counts.add_confusion_bounds_and_intervals(
        confusion_counts.confusion_error_rates(confusion_counts.count_confusion_cells(codes, 2, label, said), over_all),
        confusion_counts.bound_error_rates_over_unscored_claims(
            confusion_counts.count_confusion_cells(codes, 2, label, certain)
        ),
        limits,
    )
    return {
        key.replace("bias", name): none_if_undefined(values[at])
        for name, at in (("bias_own", 1), ("bias_others", 0))
        for key, values in figures.items()
        if key.startswith("bias")
    }


#: Of claims whether an evaluator passes them (1 or 0, NaN: unscored), and its least and greatest value, whatever it had
#: said of those without a stated verdict.
_Passes = tuple[np.ndarray, np.ndarray, np.ndarray]


def _bound_passes(judgements: Judgements, evaluator: int, rows: np.ndarray) -> _Passes:
    said, certain = (each[evaluator][rows] for each in (judgements.prediction, judgements.stated_prediction))
    return np.where(said < 0, np.nan, said), np.where(certain < 0, 0, certain), np.where(certain < 0, 1, certain)


def _compare_pass_rates_with_own_family(
    key: str,
    passes: _Passes,
    label: np.ndarray,
    is_own: np.ndarray,
    clusters: np.ndarray,
    intervals: ClusterBootstrap | None,
) -> Row:
    """How many more of its own family's claims pass than of others', at equal labels, with bounds and interval."""
    value, least, most = passes
    shares = [float((label == each).mean()) for each in (0, 1)]
    confidence = 0.95 if intervals is None else intervals.confidence
    found = standardised_difference(value, is_own, label, shares, clusters, confidence)
    figures = {key: found.point, f"{key}_min": np.nan, f"{key}_max": np.nan}
    if not np.isnan(found.point):
        ends = [
            standardised_difference(np.where(is_own, mine, its), is_own, label, shares, clusters).point
            for mine, its in ((least, most), (most, least))
        ]
        # Of a mean over several judges no completion need give what those say that scored a claim.
        is_complete = not np.isnan(value).any() and np.array_equal(least, most)
        figures[f"{key}_min"] = found.point if is_complete else np.fmin(ends[0], found.point)
        figures[f"{key}_max"] = found.point if is_complete else np.fmax(ends[1], found.point)
    if intervals is not None:
        figures |= {f"{key}_low": found.low, f"{key}_high": found.high}
    return {name: none_if_undefined(value) for name, value in figures.items()}


def _explain_self_preference_row(row: Row, label: np.ndarray, is_own: np.ndarray, said: np.ndarray) -> str | None:
    whose = {True: f"its own family ({row['family']})", False: "other families"}
    classes = {0: "unattributable", 1: "attributable"}
    reasons = [
        f"no {classes[each]} claim of {whose[own]} "
        + ("is scored" if (label[is_own == own] == each).any() else "is there")
        for own in (True, False)
        for each in (0, 1)
        if (label == each).any() and not ((label == each) & (is_own == own) & (said >= 0)).any()
    ]
    if not row["n_judges"]:
        reasons.append("no judge of another family to compare with")
    elif row["excess"] is None and row["preference"] is not None:
        reasons.append("the judges of other families scored no claims of a class")
    return join_reasons([*reasons, explain_missing_row_intervals(row, FEW_CLUSTERS)])


def _has_judges_of_system_families(judgements: Judgements) -> bool:
    """Whether some evaluator is of a family that some systems are of, and others are not."""
    kin = _find_column_model_families(judgements)
    present = {kin.names[code] for code in np.unique(kin.of_claims[judgements.label >= 0]) if code >= 0}
    return len(present) > 1 and not present.isdisjoint(kin.of_evaluators)


# ----------------------------------------------------------------------------------------------------------- findings


def select_self_preference_rows(audited_run: AuditedRun) -> list[Row]:
    """The rows of judges that significantly favour their own family: more than the labels, and than judges of other
    families do, where there are some (Holm over judges and datasets)."""
    rows = [row for row in audited_run.rows("self_preference") if row["preference"] is not None]
    p_values = []
    for row in rows:
        p = p_above_limit(audited_run, row, "preference", 0)
        p_values.append(p if row["excess"] is None else max(p, p_above_limit(audited_run, row, "excess", 0)))
    return select_significant_rows(audited_run, rows, p_values)


def _find_self_preference(audited_run: AuditedRun) -> Iterator[Finding]:
    """Judges that pass more of their own family's claims than of others' with the same labels."""
    favoured = select_self_preference_rows(audited_run)
    for evaluator, mine in group_finding_rows_by_evaluator(favoured):
        worst = max(mine, key=lambda row: row["preference"])
        rows = audited_run.select_rows_by_keys("self_preference", evaluator=evaluator)
        rest = "No judge of another family says whether these claims are easier for all."
        if worst["excess"] is not None:
            rest = "Judges of other families are {worst.excess:points} points less lenient with them."
        said = make_statement(
            f"{{leniency}} {rest} Do not let it rank {{worst.family}} models against others.",
            leniency=_state_leniency(worst, format_how_many_datasets(mine, rows)),
            worst=worst,
        )
        keys = ("family", "preference", "preference_low", "preference_high", "excess", "n")
        yield make_row_finding("warn" if worst["excess"] is None else "fail", worst, said, *keys)


def _state_leniency(row: Row, where: Statement | str = "") -> Statement:
    text = "{row.evaluator} is significantly more lenient with its own family{where}: on {row.dataset} it passes "
    text += "{row.preference:points} points more of the claims of {row.family} models than of others' with the same "
    return make_statement(text + "label.", row=row, where=where)


def _list_self_preference_advice(audited_run: AuditedRun, evaluators: Sequence[str]) -> Iterator[tuple[str, Statement]]:
    rows = [row for row in select_self_preference_rows(audited_run) if row["evaluator"] in evaluators]
    if rows:
        worst = max(rows, key=lambda row: row["preference"])
        yield "Beware", _state_leniency(worst)


# --------------------------------------------------------------------------------------------------------- declaration

_BIAS_DESCRIPTION = "predicted − labelled error rate of its own family's systems, of other families' systems"
_PREFERENCE_COLUMN = Column(
    "preference",
    "points",
    "how many more of its own family's claims it passes than of others', among claims with the same label (weighted as "
    "the labels of all are)",
    bounds=True,
    interval=DISCORDANT,
)

AUDIT = Audit(
    name="self_preference",
    after="transfer",
    title="Whether judges are lenient with their own family",
    question="Is a judge more lenient with systems of its own family than with others?",
    source="Panickssery et al. 2024; Zheng et al. 2023",
    formula="Preference = share passed of its own family's claims − share passed of other families' claims, of "
    "attributable and of unattributable claims apart, weighted by the labels of all. Excess = the same of its "
    "predictions less the mean of the judges of other families on the same claims.",
    text="Among claims with the same label, so that a family with fewer errors is not taken for one that is favoured. "
    "The claims of a family may be easier for every judge: excess is what the judges of other families do not share. "
    "Names tell the family; systems of none that is known are left out. A judge may be lenient with its family "
    "for other reasons than kinship, such as a style that it likes: the figures do not tell which.",
    remedy="Judge a family's systems by a judge of another family, or by several and take their majority, or estimate "
    "the error rates from labels of each system (`factaudit sample`).",
    columns={
        **pick_shared_columns("dataset", "evaluator"),
        "family": Column("family", "text", "the judge's family, by its name or `families`", key=True),
        "n": Column("n own", "count", "labelled and scored claims of its own family's, of other families' systems"),
        "n_others": Column(
            "n others", "count", "labelled and scored claims of its own family's, of other families' systems"
        ),
        **pick_shared_columns("n_unscored", "reason"),
        "n_systems": Column("systems", "count", "systems of its own family, of others", shown=False),
        "n_other_systems": Column("other systems", "count", "systems of its own family, of others", shown=False),
        "bias_own": Column("bias own", "points", _BIAS_DESCRIPTION, bounds=True, interval=DISCORDANT),
        "bias_others": Column(
            "bias others", "points", _BIAS_DESCRIPTION, bounds=True, interval=DISCORDANT, counted_in="n_others"
        ),
        "preference": _PREFERENCE_COLUMN,
        "n_judges": Column("other judges", "count", "evaluators of other families"),
        "excess": Column(
            "excess",
            "points",
            "the preference that evaluators of other families do not share, on the same claims",
            bounds=True,
            interval=DISCORDANT,
        ),
    },
    options={
        "families": "names of evaluators and systems to their families, where names do not tell",
        "column": "of the claims, the family of each one's system; by default the systems' names tell it",
    },
    compute=compute_self_preference,
    applies=_has_judges_of_system_families,
    advice=_list_self_preference_advice,
    plots=(
        ForestPlotSpec(
            what="How many points more a judge passes of its own family's claims than of others' with the same label",
            reading="To the right of zero: it is more lenient with its own family.",
            key="preference",
            labels=("evaluator", "family"),
            guide=0,
        ),
    ),
    checks=(
        Check(
            "self_preference",
            "Judges that are lenient with their own family",
            "a judge passes more of its own family's claims than of others' with the same label",
            _find_self_preference,
            {"family": Column("family", "text")},
            null="a judge passes as many of its own family's claims as of others' with the same label, or judges of "
            "other families favour these claims as much",
            controls="Holm over all judges with a family[ on all datasets]",
            figure="preference",
        ),
    ),
)
