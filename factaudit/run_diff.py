"""What changed between two run folders: verdicts on the same claims, rates, systems, findings and costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from factaudit.arrays.judgements import Judgements
from factaudit.arrays.paired_changes import (
    average_repeated_predictions,
    compute_paired_changes,
    compute_paired_flip_shares,
)
from factaudit.audit.core.result_rows import MACRO_MEAN
from factaudit.errors import InputError, Problem, UsageError
from factaudit.results import Results, Row
from factaudit.run_claims import compare_claims_of_runs
from factaudit.run_folder import sum_run_call_costs
from factaudit.run_gate import RunGateVerdict, judge_run_gate_changes
from factaudit.run_matching import (
    check_runs_share_evaluators,
    compare_findings_of_runs,
    list_floor_names,
    match_evaluators_of_runs,
    parse_run_matching_pairs,
)
from factaudit.stats.mover import mover_weighted_sum
from factaudit.stats.undefined_values import none_if_undefined
from factaudit.tables import read_claims, read_verdicts

#: The figures of which a row has the change with its interval.
_FIGURES = ("bacc", "tpr", "tnr", "ppr", "bias", "abs_bias")
_ENDS = ("_before", "_after", "", "_low", "_high")
#: So many claims that changed are shown.
_N_EXAMPLES = 3


@dataclass(frozen=True)
class RunDiff:
    """Two runs on the claims that they share.

    pairs: which evaluators are compared ({before, after, by}; by ``name``, ``option`` or ``left over``). changes: a row
    per evaluator (by its name after; ``evaluator_before``) and dataset (``__macro__``: the mean over datasets): n
    claims, n_both (judged in both runs), n_flips and flips (those of n_both whose prediction differs, and their share),
    lost and gained (claims judged before only, and after only), to_right and to_wrong (labelled claims whose prediction
    went from wrong to right, and from right to wrong), unlabelled_flips (those of n_flips without a label), and per
    figure ``KEY_before``, ``KEY_after`` and ``KEY`` (= after - before) with ``KEY_low`` and ``KEY_high``, of the paired
    difference; abs_bias: the mean of |bias|. All but unscored are of the claims judged in both runs, rates of the
    labelled ones. Rates are means over repeats, counts are of the first one (n_repeats says how many there are).
    findings: those that are new, gone, changed in severity, at another place, or restated (with another statement or
    other figures). findings_not_compared: how many findings are of an audit or an evaluator without a partner in the
    other run (findings_not_compared_before: of the run before).
    costs: US dollars of the calls, where known. only_evaluators_before, only_evaluators_after: those without a
    partner. n_labelled: shared claims with a label before; where a data set has none, PPR is of all.
    n_labels_changed: shared claims whose label differs, with those that have one only after (n_labels_added) or
    before (n_labels_removed); rates use those before, findings those of each run. n_texts_changed: shared claims
    with another text or document. only_datasets_before, only_datasets_after: data sets of one run alone. examples:
    some claims whose prediction changed, those that became wrong first.
    """

    before: str
    after: str
    n_claims: int
    only_before: int
    only_after: int
    changes: list[Row]
    findings: list[Row]
    costs: Row
    pairs: list[Row] = field(default_factory=list)
    only_evaluators_before: list[str] = field(default_factory=list)
    only_evaluators_after: list[str] = field(default_factory=list)
    findings_not_compared: int = 0
    findings_not_compared_before: int = 0
    n_labelled: int = 0
    n_labels_changed: int = 0
    n_labels_added: int = 0
    n_labels_removed: int = 0
    n_texts_changed: int = 0
    only_datasets_before: list[str] = field(default_factory=list)
    only_datasets_after: list[str] = field(default_factory=list)
    n_repeats: Row = field(default_factory=dict)
    examples: list[Row] = field(default_factory=list)

    def judge(self, fail_on: Sequence[str] = (), warn_on: Sequence[str] = ()) -> RunGateVerdict:
        """Whether a gate fails: ``fail_on=["bacc<-0.02"]`` where the whole interval is below, ``warn_on`` where the
        point is. Raises `UsageError` for a condition that is none.
        """
        lone = (self.only_evaluators_before, self.only_evaluators_after)
        told = [f"not compared: {', '.join(lone[0])} before, {', '.join(lone[1])} after; name their pairs with --pair "]
        told = [f"{told[0]}OLD=NEW"] if all(lone) else []
        return judge_run_gate_changes(self.changes, fail_on, warn_on, told)


def diff_runs(before: str | Path, after: str | Path, *, pairs: Mapping[str, str] | Sequence[str] = ()) -> RunDiff:
    """Compare two run folders on the claims that both have (by claim_id).

    pairs: from an evaluator's name before to its name after, where it changed, or texts ``OLD=NEW``. Others
    are paired by name; where one evaluator is left on either side, these two are a pair. Raises `InputError`, and
    `UsageError` where there is no evaluator to compare.
    """
    first, second = Results.load(before), Results.load(after)
    claims, other = (read_claims(Path(folder) / "claims.parquet") for folder in (before, after))
    shared = claims[claims["claim_id"].isin(other["claim_id"])].reset_index(drop=True)
    if shared.empty:
        raise InputError(
            f"{before}, {after}", [Problem("the two runs have no claim_id in common; compare runs on the same claims")]
        )
    named = pairs if isinstance(pairs, Mapping) else parse_run_matching_pairs(pairs, first, second)
    matched = match_evaluators_of_runs(first, second, named)
    check_runs_share_evaluators(first, second, matched)
    new_names = {pair["before"]: pair["after"] for pair in matched}
    tables = [read_verdicts(Path(folder) / "verdicts.parquet") for folder in (before, after)]
    tables = [
        table[table["evaluator"].isin(list(names))]
        for table, names in zip(tables, (new_names, new_names.values()), strict=True)
    ]
    tables[0] = tables[0].assign(evaluator=tables[0]["evaluator"].map(new_names))
    names = list(new_names.values())
    judged = [Judgements.join(shared, table) for table in tables]
    changes = _diff_verdicts_and_rates(judged, names)
    if not any(row["n_both"] for row in changes):
        derived = not any(len(table) for table in tables)
        why = "no claim is judged in both runs"
        if derived:
            why = "they are made of a verifier's verdicts (compare the scores in the two reports)"
        raise UsageError(f"nothing to compare of {', '.join(names)}: {why}")
    old_names = {new: old for old, new in new_names.items()}
    for row in changes:
        row["evaluator_before"] = old_names[row["evaluator"]]
    of_claims = compare_claims_of_runs(claims, other)
    findings, not_compared = compare_findings_of_runs(first, second, new_names)
    return RunDiff(
        before=str(before),
        after=str(after),
        **of_claims,
        changes=changes,
        findings=findings,
        costs={
            name: sum_run_call_costs(run.calls) if run.calls else None
            for name, run in (("before", first), ("after", second))
        },
        pairs=matched,
        only_evaluators_before=_list_lone_evaluators(first, new_names),
        only_evaluators_after=_list_lone_evaluators(second, old_names),
        findings_not_compared=sum(not_compared),
        findings_not_compared_before=not_compared[0],
        n_repeats={
            side: 1 if one.repeat_predictions is None else len(one.repeat_predictions)
            for side, one in zip(("before", "after"), judged, strict=True)
        },
        examples=_list_run_diff_changed_claims(
            judged, [row["evaluator"] for row in changes if row["dataset"] == MACRO_MEAN]
        ),
    )


def _list_lone_evaluators(results: Results, paired: Mapping[str, str]) -> list[str]:
    return [name for name in results.evaluators if name not in paired and name not in list_floor_names(results)]


def _diff_verdicts_and_rates(judgements_of_runs: Sequence[Judgements], names: Sequence[str]) -> list[Row]:
    first = judgements_of_runs[0]
    n_datasets = len(first.dataset_names)
    all_together = np.zeros(len(first.label), dtype=np.int64)
    rows = []
    for name in names:
        if not all(name in one.evaluators for one in judgements_of_runs):
            continue
        before, after = (one.prediction[one.evaluators.index(name)] for one in judgements_of_runs)
        shares = [average_repeated_predictions(one, name) for one in judgements_of_runs]
        mine: list[Row] = []
        for groups, places in ((first.dataset_codes, first.dataset_names), (all_together, [MACRO_MEAN])):
            size = len(places)
            changes = compute_paired_changes(first.label, shares[0], shares[1], groups, size, first.cluster_codes)
            flips = compute_paired_flip_shares(before, after, groups, size, first.cluster_codes)
            for at, place in enumerate(places):
                row: Row = {"dataset": place, "evaluator": name}
                row |= _count_changed_predictions_of_runs(first.label, before, after, groups == at)
                row |= {f"flips{end}": none_if_undefined(one[at]) for end, one in zip(_ENDS[2:], flips, strict=True)}
                for key, figures in changes.items():
                    row |= {f"{key}{end}": none_if_undefined(one[at]) for end, one in zip(_ENDS, figures, strict=True)}
                mine.append(row)
        rows += [*mine[:n_datasets], mine[-1] | _average_run_diff_over_datasets(mine[:n_datasets])]
    return rows


def _count_changed_predictions_of_runs(
    label: np.ndarray, before: np.ndarray, after: np.ndarray, inside: np.ndarray
) -> Row:
    a, b, label = before[inside], after[inside], label[inside]
    in_both = (a >= 0) & (b >= 0)
    changed = in_both & (a != b)
    row = {
        "n": a >= -1,
        "n_both": in_both,
        "n_flips": changed,
        "lost": (a >= 0) & (b < 0),
        "gained": (a < 0) & (b >= 0),
    }
    row |= {"to_right": changed & (label >= 0) & (b == label), "to_wrong": changed & (label >= 0) & (a == label)}
    row |= {"unlabelled_flips": changed & (label < 0)}
    return {key: int(which.sum()) for key, which in row.items()}


def _average_run_diff_over_datasets(rows: Sequence[Row]) -> Row:
    """Of each figure the mean over the data sets on which both runs have it, which are independent."""
    mean: Row = {}
    for key in _FIGURES:
        known = [row for row in rows if row[key] is not None]
        mean |= dict.fromkeys(f"{key}{end}" for end in _ENDS)
        if known:
            mean |= {f"{key}{end}": float(np.mean([row[f"{key}{end}"] for row in known])) for end in _ENDS[:3]}
        if known and all(row[f"{key}_low"] is not None for row in known):
            point, low, high = (np.array([row[f"{key}{end}"] for row in known]) for end in _ENDS[2:])
            _, limits = mover_weighted_sum(point, (low, high), np.full(len(known), 1 / len(known)))
            mean |= {f"{key}_low": float(limits[0]), f"{key}_high": float(limits[1])}
    return mean


def _list_run_diff_changed_claims(judgements_of_runs: Sequence[Judgements], names: Sequence[str]) -> list[Row]:
    """Claims whose prediction changed: what became wrong before what became right, then what has no label."""
    first = judgements_of_runs[0]
    label, found = first.label, []
    for name in names:
        before, after = (one.prediction[one.evaluators.index(name)] for one in judgements_of_runs)
        changed = np.flatnonzero((before != after) & (before >= 0) & (after >= 0))
        kinds = np.where(label[changed] < 0, 2, after[changed] == label[changed])
        for at in changed[np.argsort(kinds, kind="stable")][:_N_EXAMPLES]:
            about = {key: first.claims[key].iloc[at] for key in ("claim_id", "dataset", "claim")}
            row: Row = {
                "evaluator": name,
                **{key: None if pd.isna(value) else str(value) for key, value in about.items()},
            }
            values = {"label": label[at], "before": before[at], "after": after[at]}
            found.append(row | {key: None if value < 0 else int(value) for key, value in values.items()})
    return found
