"""What changed between two run folders? Verdicts on the same claims, rates, findings and costs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from factaudit.arrays.judgements import Judgements
from factaudit.arrays.paired_changes import (
    average_repeated_predictions,
    compute_paired_changes,
    compute_paired_flip_shares,
)
from factaudit.audit import load_all_audits
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.result_rows import MACRO_MEAN
from factaudit.diff.gate import GateVerdict, judge_changes
from factaudit.errors import InputError, Problem, UsageError, suggest_known_name
from factaudit.experiment.folder import sum_run_call_costs
from factaudit.results import Results, Row
from factaudit.stats import none_if_undefined
from factaudit.stats.mover import mover_weighted_sum
from factaudit.tables import read_claims, read_verdicts
from factaudit.tables.schema import is_text_placeholder

#: The figures whose change, with its interval, is part of a row.
_FIGURES = ("bacc", "tpr", "tnr", "ppr", "bias", "abs_bias")
_ENDS = ("_before", "_after", "", "_low", "_high")


@dataclass(frozen=True)
class RunDiff:
    """Two runs on the claims that they share.

    n_claims: claims in both runs; n_labelled: those with a label before, which rates are of (where
    a data set has none, PPR is of all); n_labels_changed and n_texts_changed: those with another
    label, or another text or document.
    pairs: which evaluators are compared ({before, after}). alone_before, alone_after: those without
    a partner.
    changes: a row per evaluator (by its name after) and dataset (``__macro__``: the mean over data
    sets): n claims, n_both (judged in both runs), n_flips and flips (those of n_both whose
    prediction differs, and their share), lost and gained (judged before only, and after only),
    to_right and to_wrong (labelled claims whose prediction became right, and wrong), and per figure
    ``KEY_before``, ``KEY_after`` and ``KEY`` (= after - before) with ``KEY_low`` and ``KEY_high``,
    of the paired difference; abs_bias: the mean of |bias|. All but unscored are of the claims
    judged in both runs. Rates are means over repeats, counts are of the first one.
    findings: those that are new, gone, or of another severity, of evaluators and audits of both
    runs. costs: US dollars of the calls, where known.
    """

    before: str
    after: str
    n_claims: int
    only_before: int
    only_after: int
    n_labelled: int
    n_labels_changed: int
    n_texts_changed: int
    only_datasets_before: list[str]
    only_datasets_after: list[str]
    pairs: list[Row]
    alone_before: list[str]
    alone_after: list[str]
    changes: list[Row]
    findings: list[Row]
    costs: Row

    def judge(self, fail_on: Sequence[str] = (), warn_on: Sequence[str] = ()) -> GateVerdict:
        """Decide whether a gate fails. ``fail_on=["bacc<-0.02"]`` fails if the whole interval is
        below the limit; ``warn_on`` warns if the point is.

        Raises `UsageError` for a condition that cannot be read.
        """
        told = []
        if self.alone_before and self.alone_after:
            lone = f"{', '.join(self.alone_before)} before, {', '.join(self.alone_after)} after"
            told = [f"not compared: {lone}; name their pairs with --pair OLD=NEW"]
        return judge_changes(self.changes, fail_on, warn_on, told)


def diff_runs(
    before: str | Path, after: str | Path, *, pairs: Mapping[str, str] | Sequence[str] = ()
) -> RunDiff:
    """Compare two run folders on the claims that both have (by claim_id).

    pairs: from an evaluator's name before to its name after, if it changed, or texts ``OLD=NEW``.
    All other evaluators are paired by name; if exactly one evaluator is left on each side, these
    two are a pair. Raises `InputError`, and `UsageError` if there is no evaluator to compare.
    """
    runs = Results.load(before), Results.load(after)
    claims = [read_claims(Path(folder) / "claims.parquet") for folder in (before, after)]
    shared = claims[0][claims[0]["claim_id"].isin(claims[1]["claim_id"])].reset_index(drop=True)
    if shared.empty:
        raise InputError(
            f"{before}, {after}",
            [Problem("the two runs have no claim_id in common; compare runs on the same claims")],
        )
    new_names = pair_evaluators(
        *runs, pairs if isinstance(pairs, Mapping) else parse_pairs(pairs, *runs)
    )
    tables = [read_verdicts(Path(folder) / "verdicts.parquet") for folder in (before, after)]
    tables[0] = tables[0][tables[0]["evaluator"].isin([*new_names])]
    tables[0] = tables[0].assign(evaluator=tables[0]["evaluator"].map(new_names))
    tables[1] = tables[1][tables[1]["evaluator"].isin([*new_names.values()])]
    judged = [Judgements.join(shared, table) for table in tables]
    names = [name for name in new_names.values() if all(name in one.evaluators for one in judged)]
    changes = [row for name in names for row in _compare_evaluator(judged, name)]
    if not any(row["n_both"] for row in changes):
        raise UsageError(
            f"nothing to compare of {', '.join(new_names.values())}: no claim is judged in both"
            " runs (verdicts that are made of a verifier's are not compared)"
        )
    return RunDiff(
        before=str(before),
        after=str(after),
        **_compare_claims(*claims),
        pairs=[{"before": old, "after": new} for old, new in new_names.items()],
        alone_before=[name for name in _list_judges(runs[0]) if name not in new_names],
        alone_after=[name for name in _list_judges(runs[1]) if name not in new_names.values()],
        changes=changes,
        findings=_compare_findings(*runs, new_names, _match_datasets(*claims)),
        costs={
            side: sum_run_call_costs(run.calls) if run.calls else None
            for side, run in zip(("before", "after"), runs, strict=True)
        },
    )


# --- which evaluators are the same ones
# -----------------------------------------------------------------------------


def parse_pairs(texts: Sequence[str], first: Results, second: Results) -> dict[str, str]:
    """``OLD=NEW`` as {old: new}. A name may contain ``=``. Raises `UsageError` for a text without
    one."""
    found: dict[str, str] = {}
    for text in texts:
        parts = text.split("=")
        splits = [("=".join(parts[:at]), "=".join(parts[at:])) for at in range(1, len(parts))]
        known = [
            pair for pair in splits if pair[0] in first.evaluators and pair[1] in second.evaluators
        ]
        if not splits:
            raise UsageError(f"--pair: expected OLD=NEW, found {text!r}")
        old, new = (known or splits)[0]
        found[old] = new
    return found


def pair_evaluators(first: Results, second: Results, named: Mapping[str, str]) -> dict[str, str]:
    """A dict from each evaluator's name before to its name after: first the pairs in ``named``,
    then equal names, then the two that are left if there is exactly one on each side (baselines
    aside).

    Raises `UsageError` for a name that a run does not have, and if only baselines could be
    compared.
    """
    for results, side, names in (
        (first, "before", named.keys()),
        (second, "after", named.values()),
    ):
        for name in names:
            if name not in results.evaluators:
                raise UsageError(
                    f"--pair: no evaluator {name!r}"
                    f" {side}{suggest_known_name(name, results.evaluators)}"
                )
    taken = {*named, *named.values()}
    both = [name for name in first.evaluators if name in second.evaluators and name not in taken]
    pairs = {**named, **dict(zip(both, both, strict=True))}
    old, new = _list_judges(first), _list_judges(second)
    left = (
        [name for name in old if name not in pairs],
        [name for name in new if name not in pairs.values()],
    )
    if len(left[0]) == len(left[1]) == 1:
        pairs[left[0][0]] = left[1][0]
    if not pairs or ((old or new) and not any(name in old for name in pairs)):
        told = [", ".join(names) or "none" for names in (old, new)]
        raise UsageError(
            f"nothing to compare: the evaluators are {told[0]} before and {told[1]} after. Name the"
            " pairs that are one evaluator with --pair OLD=NEW"
        )
    return {name: pairs[name] for name in first.evaluators if name in pairs}


def _list_judges(results: Results) -> list[str]:
    """The evaluators that are not baselines."""
    floors = AuditedRun({}, results.about).floors
    return [name for name in results.evaluators if name not in floors]


# --- what changed
# ------------------------------------------------------------


def _compare_claims(before: pd.DataFrame, after: pd.DataFrame) -> Row:
    """The counts in `RunDiff` that are about claims. Rows of responses without a claim are left
    out."""
    first, second = (
        claims[claims["abstained"].isna()].set_index("claim_id", drop=False)
        for claims in (before, after)
    )
    shared = first.index[first.index.isin(second.index)]
    old, new = first.loc[shared], second.loc[shared]
    labels = [
        side["label"].astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan)
        for side in (old, new)
    ]
    is_known = [~np.isnan(label) for label in labels]
    has_other_text = np.zeros(len(shared), dtype=bool)
    for column in ("claim", "doc"):
        texts = zip(old[column], new[column], strict=True)
        has_other_text |= np.array(
            [_is_text(a) and _is_text(b) and a != b for a, b in texts], dtype=bool
        )
    names = _match_datasets(before, after)
    datasets = [
        [names.get(name, name) for name in first["dataset"].unique()],
        list(second["dataset"].unique()),
    ]
    return {
        "n_claims": len(shared),
        "only_before": len(first) - len(shared),
        "only_after": len(second) - len(shared),
        "n_labelled": int(is_known[0].sum()),
        "n_labels_changed": int((is_known[0] & is_known[1] & (labels[0] != labels[1])).sum()),
        "n_texts_changed": int(has_other_text.sum()),
        "only_datasets_before": [name for name in datasets[0] if name not in datasets[1]],
        "only_datasets_after": [name for name in datasets[1] if name not in datasets[0]],
    }


def _match_datasets(before: pd.DataFrame, after: pd.DataFrame) -> dict[str, str]:
    """A dict from each data set's name before to its name after, by the claims that they share,
    because a data set may be named after its file. Empty if they do not match one to one."""
    names = before.set_index("claim_id")["dataset"], after.set_index("claim_id")["dataset"]
    pairs = pd.concat(names, axis=1, join="inner", keys=("old", "new")).drop_duplicates()
    is_one_to_one = pairs["old"].is_unique and pairs["new"].is_unique
    return dict(zip(pairs["old"], pairs["new"], strict=True)) if is_one_to_one else {}


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not is_text_placeholder(value)


def _compare_evaluator(judgements: Sequence[Judgements], name: str) -> list[Row]:
    """The rows of `RunDiff.changes` for one evaluator: one per data set, and their mean."""
    first = judgements[0]
    label, clusters = first.label, first.cluster_codes
    before, after = (one.prediction[one.evaluators.index(name)] for one in judgements)
    shares = [average_repeated_predictions(one, name) for one in judgements]
    whole = np.zeros(len(label), dtype=np.int64)
    rows: list[Row] = []
    for groups, places in ((first.dataset_codes, first.dataset_names), (whole, [MACRO_MEAN])):
        changes = compute_paired_changes(label, shares[0], shares[1], groups, len(places), clusters)
        flips = compute_paired_flip_shares(before, after, groups, len(places), clusters)
        for at, place in enumerate(places):
            row: Row = {"dataset": place, "evaluator": name}
            row |= _count_changed_predictions(label, before, after, groups == at)
            row |= {
                f"flips{end}": none_if_undefined(one[at])
                for end, one in zip(_ENDS[2:], flips, strict=True)
            }
            for key, figures in changes.items():
                row |= {
                    f"{key}{end}": none_if_undefined(one[at])
                    for end, one in zip(_ENDS, figures, strict=True)
                }
            rows.append(row)
    *of_datasets, mean = rows
    return [*of_datasets, mean | _average_over_datasets(of_datasets)]


def _count_changed_predictions(
    label: np.ndarray, before: np.ndarray, after: np.ndarray, inside: np.ndarray
) -> Row:
    a, b, label = before[inside], after[inside], label[inside]
    in_both = (a >= 0) & (b >= 0)
    changed = in_both & (a != b)
    counted = {
        "n_both": in_both,
        "n_flips": changed,
        "lost": (a >= 0) & (b < 0),
        "gained": (a < 0) & (b >= 0),
        "to_right": changed & (label >= 0) & (b == label),
        "to_wrong": changed & (label >= 0) & (a == label),
    }
    return {"n": len(a), **{key: int(which.sum()) for key, which in counted.items()}}


def _average_over_datasets(rows: Sequence[Row]) -> Row:
    """The mean of each figure over the data sets on which both runs have it. Data sets are
    independent of each other."""
    mean: Row = {}
    for key in _FIGURES:
        known = [row for row in rows if row[key] is not None]
        mean |= dict.fromkeys(f"{key}{end}" for end in _ENDS)
        if known:
            mean |= {
                f"{key}{end}": float(np.mean([row[f"{key}{end}"] for row in known]))
                for end in _ENDS[:3]
            }
        if known and all(row[f"{key}_low"] is not None for row in known):
            point, low, high = (
                np.array([row[f"{key}{end}"] for row in known]) for end in _ENDS[2:]
            )
            _, limits = mover_weighted_sum(point, (low, high), np.full(len(known), 1 / len(known)))
            mean |= {f"{key}_low": float(limits[0]), f"{key}_high": float(limits[1])}
    return mean


def _compare_findings(
    first: Results, second: Results, new_names: Mapping[str, str], new_datasets: Mapping[str, str]
) -> list[Row]:
    """The findings that are new, gone or of another severity, for the same check, evaluators and
    data set.

    A finding that is gone is no longer reported, which does not show that its cause was mended.
    Findings about an audit or an evaluator that only one run has are left out.
    """
    after = _key_findings(second, first, {name: name for name in new_names.values()}, {})
    left = _key_findings(first, second, new_names, new_datasets)
    rows = []
    for key, finding in after.items():
        before = left.pop(key, None)
        if before is None:
            rows.append({"change": "new", **finding})
        elif before["severity"] != finding["severity"]:
            rows.append({"change": "changed", **finding, "severity_before": before["severity"]})
    return rows + [{"change": "gone", **finding} for finding in left.values()]


def _key_findings(
    run: Results, other: Results, names: Mapping[str, str], datasets: Mapping[str, str]
) -> dict[tuple[str, str, str], Row]:
    """A run's findings by check, evaluators and data set, under their names after the change."""
    audit_of = {
        check.id: name for name, audit in load_all_audits().items() for check in audit.checks
    }
    found = {}
    for finding in run.finding_rows:
        parts = (finding["evaluator"] or "").split(" / ") if finding["evaluator"] else []
        if audit_of.get(finding["id"]) in {*other.audits, None} and all(
            part in names for part in parts
        ):
            named, dataset = (
                " / ".join(sorted(names[part] for part in parts)),
                str(finding["dataset"]),
            )
            found[finding["id"], named, datasets.get(dataset, dataset)] = finding
    return found
