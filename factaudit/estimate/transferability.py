"""Do labels of some systems carry over to another? A test of whether the labelled systems are alike, and its power."""

from __future__ import annotations

import numpy as np

from factaudit.estimate.estimation_case import RateEstimationCase
from factaudit.stats.group_score_test import group_score_test
from factaudit.stats.hierarchical_regression import error_probabilities_at_mode

#: The difference in one system's error rate that the power is given for, and the level of the test.
POWER_DIFFERENCE = 0.1
SIGNIFICANCE_LEVEL = 0.05
#: So small a spread of the system effects that there are none.
_NO_EFFECT_SCALE = 0.01


def explain_transferability(estimation: RateEstimationCase) -> str:
    """A sentence for a borrowed rate: the test that, given the scores, all labelled systems have the same rate."""
    corpus, rows = estimation.corpus, estimation.labelled_rows
    mode = estimation.fit_mode(_NO_EFFECT_SCALE, estimation.label_weight)
    p = error_probabilities_at_mode(mode, estimation.covariates, corpus.system, rows)
    test = group_score_test(
        corpus.error[rows], p, corpus.system[rows], estimation.label_weight, POWER_DIFFERENCE, SIGNIFICANCE_LEVEL
    )
    if np.isnan(test.p):
        return "borrowed from one other system's labels: whether systems are alike cannot be tested"
    shown = "differ" if test.p < SIGNIFICANCE_LEVEL else "are not shown to differ"
    return (
        f"borrowed from other systems' labels; by their scores the {test.n_groups} labelled systems {shown} "
        f"(p = {test.p:.2g}; a difference of {100 * POWER_DIFFERENCE:.0f} points in one would be seen with a "
        f"probability of {100 * test.power:.0f} %)"
    )
