"""How is each interval made? The names that `Column.interval` uses, in the words of captions."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from factaudit.audit.core.audit_declaration import Audit
from factaudit.audit.core.result_rows import MACRO_MEAN, Row

WILSON = "Wilson, with the effective sample size of the clusters"
MOVER = "MOVER, from Wilson intervals"
DISCORDANT = "paired, from discordant claims"
SIMULTANEOUS = "simultaneous over systems, from Wilson intervals"
INFLUENCE = "on the log-odds scale, from influence values"
KAPPA = "Wilson interval of the disagreement"
JACKKNIFE = "jackknife over clusters"
RESPONSE_WILSON = "Wilson, with the effective number of responses"
RESPONSE_MEAN = "Korn and Graubard, over responses"
RESPONSE_CHANGE = "Student's t over responses, at least as wide as Korn and Graubard if all change in one direction"
RESPONSE_INFLUENCE = "Fisher's z, infinitesimal jackknife over responses"
RESPONSE_COUNT = "Student's t on the log scale, over responses"
FISHER = "Fisher's z, over systems"
INFINITESIMAL_JACKKNIFE = "infinitesimal jackknife over clusters"
FISHER_INFLUENCE = f"Fisher's z, {INFINITESIMAL_JACKKNIFE}"
FISHER_JACKKNIFE = f"Fisher's z, {JACKKNIFE}"
#: These are drawn: they move with the number of replicates, and captions say it.
CLUSTER_BOOTSTRAP = "cluster bootstrap"
ORDER_BOOTSTRAP = "cluster bootstrap of the order of the systems"
RESPONSE_BOOTSTRAP = "bootstrap over responses"
SHARE_BEYOND_FLOOR = f"{RESPONSE_BOOTSTRAP}, at least Wilson's of the share, less the floor"


def is_random_interval_method(interval_method: str) -> bool:
    """Whether a method resamples, so that it has replicates.

    >>> is_random_interval_method(ORDER_BOOTSTRAP), is_random_interval_method(WILSON)
    (True, False)
    """
    return "bootstrap" in interval_method


def describe_interval_methods(audit: Audit, keys: Iterable[str], rows: Sequence[Row], about: Mapping[str, Any]) -> str:
    """A caption's words for the intervals of some figures: ``95 % intervals: Wilson's ... (TPR, TNR); MOVER (BAcc)``.

    keys: of the figures drawn; rows: those drawn, of which only figures with an interval are told of; about: of the
    run, with its confidence and number of replicates. "" where no figure has an interval.
    """
    headings_by_method: dict[str, list[str]] = {}
    for key in keys:
        if any(row.get(f"{key}_low") is not None for row in rows):
            method = audit.columns[key].interval
            text = method if isinstance(method, str) else audit.intervals
            headings_by_method.setdefault(text, []).append(audit.columns[key].heading)
    if not headings_by_method:
        return ""
    replicates = f", {about['replicates']:,} replicates" if about.get("replicates") else ""
    parts = []
    for method, headings in headings_by_method.items():
        text = method + replicates * is_random_interval_method(method)
        parts.append(f"{text} ({', '.join(headings)})" if len(headings_by_method) > 1 else text)
    if any(row.get("dataset") == MACRO_MEAN for row in rows):
        parts.append("of means over data sets MOVER")
    share = f"{100 * about['confidence']:.4g} % " if about.get("confidence") else ""
    methods = "; ".join(filter(None, parts))
    return f"{share}intervals: {methods}" if methods else f"{share}intervals"
