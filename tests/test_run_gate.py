"""What a gate says of changes between two runs: of claims that both judged, and first what the verdict rests on."""

from __future__ import annotations

import numpy as np

from factaudit.arrays.paired_changes import compute_paired_changes
from factaudit.diff.gate import judge_changes
from factaudit.results import Row

LABEL = np.repeat([1, 0], [80, 40])
ENDS = ("_before", "_after", "", "_low", "_high")


def make_row(evaluator: str, before: np.ndarray, after: np.ndarray) -> Row:
    """A row of `factaudit.diff.RunDiff.changes`, over all claims."""
    n = len(LABEL)
    row: Row = {"evaluator": evaluator, "dataset": "__macro__"}
    for key, values in compute_paired_changes(LABEL, before, after, np.zeros(n, int), 1, np.arange(n)).items():
        row |= {f"{key}{end}": float(one[0]) for end, one in zip(ENDS, values, strict=True)}
    both = ~np.isnan(before) & ~np.isnan(after)
    row |= {"n_both": int(both.sum()), "n_flips": int((before != after)[both].sum())}
    return row | {"lost": int(np.isnan(after).sum()), "gained": int(np.isnan(before).sum())}


def make_wrong(*places: int) -> np.ndarray:
    """Predictions that are right but at these places."""
    said = LABEL.astype(float)
    said[list(places)] = 1 - said[list(places)]
    return said


def test_lost_verdicts_neither_raise_nor_lower_a_figure() -> None:
    """A judge that no longer answers where it was wrong has not become better; what it lost has its own figure."""
    before = make_wrong(*range(12))
    after = before.copy()
    after[:12] = np.nan
    row = make_row("judge", before, after)
    assert [row[key] for key in ("bacc", "tpr", "tnr", "ppr", "bias", "abs_bias")] == [0.0] * 6
    assert (row["tpr_before"], row["unscored"]) == (1.0, 0.1)
    verdict = judge_changes([row], [], [])
    assert verdict.word == "changed", "a tenth of the verdicts is no noise"
    assert verdict.sentences[0].startswith("judge: the share of unscored claims changed by +10.0 points (95 % CI +")
    assert verdict.sentences[1:] == ["judge: no prediction changed"]
    before[2:12], after[2:12] = 1 - before[2:12], 1 - before[2:12]
    assert judge_changes([make_row("judge", before, after)], [], []).word == "no significant change"
    assert judge_changes([row], ["unscored>0.02"], []).word == "fail"


def test_a_verdict_names_first_what_it_rests_on_and_says_of_the_others_that_they_did_not_change() -> None:
    right = make_wrong()
    rows = [
        make_row("same", right, right),
        make_row("noisy", right, make_wrong(0, 90)),
        make_row("judge", right, make_wrong(*range(20), *range(80, 95))),
    ]
    verdict = judge_changes(rows, [], [])
    assert verdict.word == "worse"
    assert verdict.sentences[0].startswith("judge: BAcc changed by −")
    assert verdict.sentences[-2] == "same: no prediction changed"
    assert verdict.sentences[-1].startswith("noisy: BAcc changed by −")
    assert verdict.sentences[-1].endswith("), not significant after the correction for all evaluators")


def test_several_evaluators_are_corrected_for_each_other() -> None:
    row = make_row("judge", make_wrong(), make_wrong(0, 90))
    likely = row | {"bacc": -0.03, "bacc_low": -0.0571, "bacc_high": -0.0029}  # p = 0.03
    assert judge_changes([likely], [], []).word == "worse"
    assert judge_changes([likely, likely | {"evaluator": "other"}], [], []).word == "no significant change"


def test_a_warning_that_cannot_be_checked_has_not_passed() -> None:
    """ "PASS: judge: the change of TPR is undefined" of claims without labels."""
    row = make_row("judge", make_wrong(), make_wrong(1)) | {"tpr": None, "tpr_low": None, "tpr_high": None}
    verdict = judge_changes([row], [], ["tpr<0"])
    assert verdict.word == "warn"
    assert verdict.sentences == [
        "judge: TPR is undefined, so that tpr<0 cannot be checked (are there labels?)",
    ]
    assert judge_changes([row], [], ["ppr>0.5"]).word == "pass"
