"""How is each interval computed? The names that `Column.interval` uses, in the words of
captions."""

from __future__ import annotations

WILSON = "Wilson, with the effective sample size of the clusters"
MOVER = "MOVER, from Wilson intervals"
DISCORDANT = "paired, from discordant claims"
SIMULTANEOUS = "simultaneous over systems, from Wilson intervals"
JACKKNIFE = "jackknife over clusters"
INFLUENCE = f"on the log-odds scale, {JACKKNIFE}"
RESPONSE_WILSON = "Wilson, with the effective number of responses"
RESPONSE_MEAN = "Korn and Graubard, over responses"
RESPONSE_CHANGE = (
    "Student's t over responses, at least as wide as Korn and Graubard if all change in one"
    " direction"
)
RESPONSE_INFLUENCE = "Fisher's z, jackknife over responses"
RESPONSE_COUNT = "Student's t on the log scale, over responses"
OPEN_ORDERS = "all orders of the systems that tests of pairs leave open"
FISHER = "Fisher's z, over systems"
FISHER_JACKKNIFE = f"Fisher's z, {JACKKNIFE}"
#: Drawn: it moves with the number of replicates, and captions say it.
CLUSTER_BOOTSTRAP = "cluster bootstrap"


def is_random_interval_method(interval_method: str) -> bool:
    """Whether a method resamples, and so has a number of replicates.

    >>> is_random_interval_method(CLUSTER_BOOTSTRAP), is_random_interval_method(WILSON)
    (True, False)
    """
    return "bootstrap" in interval_method
