"""What stands behind a finding that one of two runs has alone: whether its figures changed, and what they were."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import get_args

import numpy as np

from factaudit.arrays.judgements import Judgements
from factaudit.arrays.paired_changes import average_repeated_predictions, compute_paired_changes
from factaudit.audit.core.audit_declaration import Severity
from factaudit.audit.core.figure_formatting import format_audit_figure
from factaudit.audit.core.significance import DEFAULT_CONFIDENCE
from factaudit.audit.findings import explain_absent_finding, find_check
from factaudit.results import Results, Row
from factaudit.run_gate import format_points

#: Of a check the figures that its findings state, and whether by data set and by system; no other figure's test
#: stands for them (a bias is no headroom).
_FIGURES_OF_CHECK: dict[str, tuple[tuple[str, ...], dict[bool, str]]] = {
    "gap": (("tpr", "tnr"), {False: "data set"}),
    "bias": (("bias",), {False: "data set", True: "system"}),
    "direction": (("bias",), {False: "data set"}),
    "transfer": (("tpr", "tnr"), {True: "system"}),
}
_FIGURE_WORDS = {"tpr": "TPR", "tnr": "TNR", "bias": "bias"}
#: Why a finding on evaluators changed of which no verdict did, on the same claims with the same labels.
_WHY_UNCHANGED = (
    "The verdicts, the claims and their labels are the same: other evaluators or settings of the run made it."
)
#: Why a finding changed where its figures could not.
_WHY_NO_PREDICTION_CHANGED = (
    "No prediction changed on the claims judged in both runs: what else differs made it (labels, claims, lost "
    "verdicts, other evaluators or settings)."
)
_WHY_NO_IMPROVEMENT = "The severity fell, but the figures got worse: this is no improvement."
#: So many figures that changed significantly are named.
_MOST_NAMED = 3


def explain_finding_changes_of_runs(
    findings: Sequence[Row],
    results: tuple[Results, Results],
    judgements: Sequence[Judgements],
    names: Mapping[str, str],
    unchanged: Collection[str] = (),
) -> list[Row]:
    """The findings, with ``why`` of those that changed: whether the figures that they state changed significantly.

    That one run has a finding and the other has not is no such test. n_significant: how many of the figures changed
    significantly, on the claims of both runs (Bonferroni over them); null where no test was made. Of a finding without
    such a test ``why`` says so, and has its figure in both runs, where both have it. names: of evaluators, from before
    to after. unchanged: those after of which verdicts, claims and labels are the same.
    """
    old_names = {new: old for old, new in names.items()}
    found = []
    for finding in findings:
        row = finding | {"n_significant": None}
        found.append(row)
        if row["change"] == "restated":
            continue
        warning = _warn_of_graver_figures(row, results[0]) if row["change"] == "changed" else ""
        parts = (row["evaluator"] or "").split(" / ")
        after = [names[name] if row["change"] == "gone" and name else name for name in parts]
        # Claims are judged in chunks by another evaluator than the one that the finding names.
        besides = {one for key, one in row["evidence"].items() if key.endswith("_evaluator")}
        besides = {names.get(name) for name in besides} if row["change"] == "gone" else besides
        if all(name in unchanged for name in (*after, *besides)):
            said = [row.get("why"), _WHY_UNCHANGED, warning]
            row |= {"n_significant": 0, "why": " ".join(filter(None, said))}
            continue
        before = [old_names[name] if name else name for name in after]
        said = [row.get("why") or ""]
        if row["change"] == "new":
            sought = row | {"evaluator": " / ".join(before)}
            said.append(_explain_finding_not_checked_before(sought, results[0]))
        if row["id"] in _FIGURES_OF_CHECK and len(parts) == 1 and parts[0]:
            row["n_significant"], sentence = _test_figures_of_finding(row, judgements, after[0])
            said.append(sentence)
        elif row["change"] in ("new", "gone"):
            said.append(_tell_figure_of_both_runs(row, results, (before, after)))
        said.append(warning)
        if row["n_significant"] is None:
            said.append("(no change tested)")
        row["why"] = " ".join(filter(None, said))
    return found


def _explain_finding_not_checked_before(finding: Row, first: Results) -> str:
    """Why the run before could not have the finding; "" where it was checked there."""
    why = explain_absent_finding(finding, first.audits, first.about, first.finding_rows)
    head = "Not checked now: "
    return f"Not checked before: {why.removeprefix(head)}" if why.startswith(head) else ""


def _warn_of_graver_figures(finding: Row, first: Results) -> str:
    """That a finding whose severity fell is graver by what its check measures; "" where it is not, or severity rose."""
    found = find_check(finding["id"])
    before = next(
        one
        for one in first.finding_rows
        if (one["id"], one["statement"]) == (finding["id"], finding["statement_before"])
    )
    ranks = [get_args(Severity).index(one["severity"]) for one in (before, finding)]
    if found is None or not before["evidence"] or ranks[1] <= ranks[0]:
        return ""
    gravities = [found[1].measure_gravity(one["evidence"]) for one in (before, finding)]
    return _WHY_NO_IMPROVEMENT if gravities[1] > gravities[0] else ""


def _test_figures_of_finding(finding: Row, judgements: Sequence[Judgements], evaluator: str) -> tuple[int | None, str]:
    """How many of the figures changed significantly, and a sentence; None where none is defined in both runs."""
    figures, levels = _FIGURES_OF_CHECK[finding["id"]]
    first = judgements[0]
    predictions = [average_repeated_predictions(one, evaluator) for one in judgements]
    both = ~np.isnan(predictions[0]) & ~np.isnan(predictions[1])
    if np.array_equal(predictions[0][both], predictions[1][both]):
        return 0, _WHY_NO_PREDICTION_CHANGED
    groupings = [first.make_groups("claim", systems=is_split) for is_split in levels]

    def compute_changes(confidence: float) -> list[tuple[str, Row, np.ndarray]]:
        found = []
        for groups in groupings:
            at = groups.codes >= 0
            old, new = (one[at] for one in predictions)
            codes, clusters = groups.codes[at], first.cluster_codes[at]
            changes = compute_paired_changes(first.label[at], old, new, codes, len(groups.keys), clusters, confidence)
            for figure in figures:
                found += [(figure, *each) for each in zip(groups.keys, np.transpose(changes[figure]), strict=True)]
        return found

    # What has too few documents (or claims of a class) for an interval is not tested: it is none of the tests.
    every = compute_changes(DEFAULT_CONFIDENCE)
    n = sum(not np.isnan(ends).any() for *_, (_, _, _, *ends) in every)
    changed: list[str] = []
    stated: list[str] = []
    unchanged: list[str] = []
    for figure, key, (old, new, _, low, high) in compute_changes(1 - (1 - DEFAULT_CONFIDENCE) / max(n, 1)):
        if np.isnan([low, high]).any():
            continue
        place = f"{key['system']}, {key['dataset']}" if "system" in key else str(key["dataset"])
        ends = f"change {format_points(low)} to {format_points(high)}"
        told = f"{place} ({_format_change_of_figure(figure, old, new)}, {ends})"
        is_changed = low > 0 or high < 0
        (changed if is_changed else unchanged).append(told)
        if is_changed and _is_figure_of_finding(finding, figure, key):
            stated.append(told)
    words = " and ".join(_FIGURE_WORDS[figure] for figure in figures)
    places = [level for level, groups in zip(levels.values(), groupings, strict=True) if groups.keys]
    words += f" by {' and '.join(places)}"
    untested = f"; {len(every) - n} more could not be tested" * (len(every) > n)
    corrected = f"corrected for {n}" if n > 1 else "one test"
    if not n:
        return None, ""
    if not changed:
        return 0, f"None of {n} changes of {words} is significant ({corrected}{untested})."
    # Not all are named: what the finding states is, as it may have grown where the others shrank.
    changed.sort(key=lambda told: told not in stated)
    more = f" and {len(changed) - _MOST_NAMED} more" * (len(changed) > _MOST_NAMED)
    are = "are" if len(changed) > 1 else "is"
    intervals = f"95 % CIs {corrected}" if n > 1 else "95 % CI"
    # A finding that is gone may have hung on what did not change significantly.
    others = f"; not significant: {'; '.join(unchanged)}" if unchanged and n <= _MOST_NAMED else ""
    return len(changed), (
        f"{len(changed)} of {n} changes of {words} {are} significant ({intervals}{untested}): "
        f"{'; '.join(changed[:_MOST_NAMED])}{more}{others}."
    )


def _is_figure_of_finding(finding: Row, figure: str, key: Row) -> bool:
    evidence = finding["evidence"]
    is_there = finding["dataset"] == key["dataset"] and evidence.get("system", key.get("system")) == key.get("system")
    return is_there and evidence.get("rate", figure) == figure


def _format_change_of_figure(figure: str, before: float, after: float) -> str:
    if figure == "bias":
        return f"{format_points(before)} → {format_points(after)}"
    return f"{_FIGURE_WORDS[figure]} {100 * before:.1f} → {100 * after:.1f}"


def _tell_figure_of_both_runs(
    finding: Row, results: tuple[Results, Results], evaluators: tuple[Sequence[str], Sequence[str]]
) -> str:
    """A finding's figure before and after; "" where not just one row of either run is that of the finding, or its
    check weighs another figure.
    """
    found = find_check(finding["id"])
    if found is None or not (figure := found[1].figure):
        return ""
    audit, check = found
    # A finding of a gain is not of the figure that is gained: that may stay while the gain goes.
    evidence = finding["evidence"]
    is_weighed = finding["severity"] != "ok" and evidence.get(figure) is not None
    if is_weighed and abs(check.measure_gravity(evidence)) != abs(evidence[figure]):
        return ""
    known = {**finding["evidence"], "dataset": finding["dataset"]}
    keys = [key for key, column in audit.columns.items() if column.key and key in known]
    told = []
    for run, names in zip(results, evaluators, strict=True):
        rows = [
            row
            for row in run.audits.get(audit.name, [])
            if {row[key] for key in row if key.startswith("evaluator")} == set(names)
            and all(row.get(key) == known[key] for key in keys)
        ]
        if len(rows) != 1 or rows[0].get(figure) is None:
            return ""
        told.append(format_audit_figure(audit.columns[figure], rows[0][figure]))
    return f"{audit.columns[figure].heading} {told[0]} → {told[1]}."
