"""A gate fails a build rarely where the judge is the same: ``gates.py`` in short, with a fixed seed."""

from __future__ import annotations

import gates
import pytest

REPLICATES = 300
#: 2.5 %, and three standard errors more.
MOST = 0.025 + 3 * (0.025 * 0.975 / REPLICATES) ** 0.5


@pytest.mark.slow
@pytest.mark.parametrize("judge", gates.SAME, ids=lambda judge: judge.name)
def test_the_same_judge_rarely_fails(judge):
    found = gates.share_of_failures(judge, REPLICATES)
    at_limit = {} if judge.flips < 0.1 else {"flips>0.1"}  # there it is the limit itself
    assert {name: share for name, share in found.items() if name not in {"point", *at_limit} and share > MOST} == {}


def test_the_point_alone_cries_wolf_and_a_judge_that_got_worse_is_found():
    same, worse = gates.SAME[0], gates.WORSE[5]
    assert gates.share_of_failures(same, REPLICATES)["point"] > 0.05
    assert worse.fall == 0.1
    assert gates.share_of_failures(worse, REPLICATES)["bacc<-0.02"] > 0.9


@pytest.mark.parametrize("n_judges", [1, 3])
def test_without_conditions_judges_that_are_the_same_are_rarely_called_worse_or_better(n_judges):
    """8.3 % were, as balanced accuracy and the other figures had 5 % each."""
    found = gates.share_of_significant_changes(gates.SAME[0], n_judges, REPLICATES)
    assert found <= 0.05 + 3 * (0.05 * 0.95 / REPLICATES) ** 0.5
