"""The audits by name: what is computed from claims and verdicts, with no evaluator at hand."""

from __future__ import annotations

from collections.abc import Callable

from factaudit.audit import (
    adjustment,
    chunking,
    consistency,
    differences,
    headroom,
    quantification,
    ranking,
    rates,
    surface,
)
from factaudit.audit.core.rows import Row

#: The audits in the order of the report. Each takes a `factaudit.audit.core.judged.Judged`, its options and
#: ``intervals``.
AUDITS: dict[str, Callable[..., list[Row]]] = {
    "rates": rates.rates,
    "differences": differences.differences,
    "consistency": consistency.consistency,
    "quantification": quantification.quantification,
    "headroom": headroom.headroom,
    "ranking": ranking.ranking,
    "ranking_pairs": ranking.ranking_pairs,
    "surface_bias": surface.surface_bias,
    "surface_trend": surface.surface_trend,
    "chunking": chunking.chunking,
    "chunking_rates": chunking.chunking_rates,
    "adjustment": adjustment.adjustment,
}
