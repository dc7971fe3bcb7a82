"""The promise of few errors among what passes: its tests against SciPy's, and figures of a small
world. `validity/triage.py` simulates how often a promise is broken."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logit
from scipy.stats import binom, hypergeom, zscore

from factaudit.stats import risk_control


def test_p_values_are_scipys_of_the_least_number_of_errors_that_breaks_the_promise():
    of = np.array([200])
    for n_known in (0, 6):
        least = next(n for n in range(200) if n > 0.1 * 200 + 0.9 * n_known)
        for drawn, errors in ((1, 0), (40, 0), (40, 3), (60, 60)):
            n, found = np.array([drawn]), np.array([errors])
            p = risk_control.error_share_p_values(n, found, 0.1, of, n_known)
            assert p == pytest.approx(hypergeom.cdf(errors, 200, least, drawn))
            of_any = risk_control.error_share_p_values(n, found, 0.1)
            assert of_any == pytest.approx(binom.cdf(errors, drawn, 0.1))
    between = risk_control.error_share_p_values(np.array([40]), np.array([2.5]), 0.1, of)
    assert between == pytest.approx(hypergeom.cdf([2, 3], 200, 21, 40).mean())
    assert risk_control.error_share_p_values(*np.zeros((2, 1)), 0.1, of) == 1


#: By what is asked of 150 labels of 600 claims (or of 40 of 60): the last threshold, the claims and
#: known errors up to it, and labels and errors as so many equal ones; then the labels that would
#: do, as a fifth of these tell.
CURVES = {
    "corpus": ({}, (92, 565, 12, 142, 12, 60)),
    "few": ({"n_claims": 60}, (40, 57, 3, 37, 3, 480)),
    "half labelled": ({"n_claims": 300}, (79, 274, 16, 136, 16, 120)),
    "further claims": ({"is_population": True}, (81, 505, 8, 130, 8, 60)),
    "a stricter promise": ({"max_error": 0.03}, (-1, 588, 17, 148, 17, 340)),
    "a surer one": ({"confidence": 0.99}, (80, 499, 6, 127, 6, 120)),
    "unequal labels": ({"claims_per_label": [1, 19] * 75}, (66, 407, 2, 58.99, 1.11, 120)),
    "documents": ({"cluster": np.arange(150) // 5}, (80, 499, 6, 95.9, 4.53, 60)),
    "further documents": (
        {"cluster": np.arange(150) // 2, "is_population": True},
        (80, 499, 6, 103.83, 4.91, 60),
    ),
}


@pytest.mark.parametrize("case", CURVES)
def test_the_loosest_threshold_that_keeps_the_promise(case):
    more, expected = CURVES[case]
    options = {"n_claims": 600, "max_error": 0.1, "confidence": 0.9} | more
    n_claims = options.pop("n_claims")
    random = np.random.default_rng(5)
    risk = np.round(random.random(n_claims), 2)
    error = (random.random(n_claims) < 0.6 * risk**3).astype(float)
    risk[::50] = np.nan
    rows = np.sort(random.choice(n_claims, min(150, n_claims * 2 // 3), replace=False))

    def find_curve(every):
        some = {
            name: np.array(value)[::every] if np.ndim(value) else value
            for name, value in options.items()
        }
        return risk_control.control_passing_errors(
            risk, rows[::every], error[rows[::every]], **some
        )

    curve = find_curve(1)
    at = curve.last
    passes = risk <= curve.threshold[at]
    assert (curve.n_claims[at], curve.n_known[at]) == (passes.sum(), error[rows] @ passes[rows])
    planned = risk_control.plan_labels_to_pass(
        find_curve(5), 30, options["max_error"], options["confidence"]
    )
    found = (at, curve.n_claims[at], curve.n_known[at], curve.n_labels[at], curve.n_errors[at])
    assert (*found, planned) == pytest.approx(expected, abs=0.005)


def test_risks_of_several_evaluators_are_one_by_what_each_tells_of_errors():
    random = np.random.default_rng(2)
    error = (random.random(300) < 0.3).astype(float)
    score = expit(random.normal(size=(2, 300)) - np.outer([1.5, 0.3], error))
    rows = np.arange(0, 300, 2)

    def combine(score, error):
        return risk_control.combine_risks(
            score, rows, error[rows], np.arange(300), np.random.default_rng(0)
        )

    risk, weights = combine(score[:1], error)
    assert (*risk, *weights) == pytest.approx((*(1 - score[0]), 1))
    risk, weights = combine(score, 0 * error)
    assert risk == pytest.approx(-zscore(logit(score), axis=1).mean(0)), "nothing tells them apart"
    risk, weights = combine(score, error)
    assert (*weights, *risk[:2]) == pytest.approx((0.649, 0.351, 0.607, -0.052), abs=5e-4)


def test_labels_drawn_at_random_are_not_taken_for_those_of_documents():
    random, document = np.random.default_rng(0), np.arange(600) // 5
    draws = [random.choice(600, 100, replace=False) for _ in range(30)]
    assert not any(risk_control.are_labels_clustered(rows, document) for rows in draws)
    assert risk_control.are_labels_clustered(np.flatnonzero(document % 6 == 0), document)
