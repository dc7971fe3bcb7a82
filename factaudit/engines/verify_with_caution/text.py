"""Figures of the paper's running text (``data/published/vc_text.csv``) beside what its tables give."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path

import numpy as np

from factaudit.audit.core.rows import Row
from factaudit.datasets.sources import Row as SourceRow
from factaudit.datasets.sources import read_rows
from factaudit.engines.verify_with_caution.printed import HEADROOM, MACRO, Printed
from factaudit.engines.verify_with_caution.recompute import ORDERS, audit
from factaudit.engines.verify_with_caution.recover import SMALL_AND_LARGE, Recovered
from factaudit.errors import InputError, Problem

GPT4, BESPOKE = "gpt-4-turbo", "Bespoke-7B"


class Printout(SourceRow):
    """A figure of the text: where it stands, and the figure."""

    id: str
    where: str
    printed: float


@dataclass(frozen=True)
class Statement:
    """What the tables give in its stead (in the text's units), and a sentence with both figures.

    ``tolerance``: how far the two may be apart; {printed} and {found} are filled in, with ``digits`` decimals.
    """

    found: Callable[[_Tables], float]
    sentence: str
    tolerance: float
    digits: int = 1


def statements(path: str | Path, printed: Printed, recovered: Recovered) -> list[Row]:
    """A row for each figure of the file: where, printed, found, agrees (1 or 0), sentence."""
    rows = []
    tables = _Tables(printed, recovered)
    for figure in read_rows(Path(path), Printout):
        if figure.id not in STATEMENTS:
            problem = Problem(f"expected one of {', '.join(STATEMENTS)}, found {figure.id!r}", column="id")
            raise InputError(str(path), [problem])
        known = STATEMENTS[figure.id]
        found = known.found(tables)
        # A figure of the text is given to its last digit, a count exactly.
        agrees = abs(found - figure.printed) <= known.tolerance + 1e-9
        said = known.sentence.format(printed=f"{figure.printed:g}", found=f"{found:.{known.digits}f}")
        rows.append(
            {"where": figure.where, "printed": figure.printed, "found": found, "agrees": int(agrees), "sentence": said}
        )
    return rows


@dataclass(frozen=True)
class _Tables:
    """The printed cells, and the audits' rows on the recovered counts."""

    printed: Printed
    recovered: Recovered

    def rate(self, table: int, dataset: str, evaluator: str) -> float:
        return self.printed.value(table, dataset, None, evaluator, {3: "bacc", 4: "fpr", 5: "fnr"}[table])

    @property
    def datasets(self) -> list[str]:
        return list(dict.fromkeys(cell.dataset for cell in self.printed.of(3) if cell.dataset != MACRO))

    def gap(self, dataset: str, evaluator: str) -> float:
        """TPR - TNR, in points."""
        return self.rate(4, dataset, evaluator) - self.rate(5, dataset, evaluator)

    def worst_bias(self, table: int, evaluator: str) -> float:
        cells = [c.value for c in self.printed.of(table) if c.evaluator == evaluator and c.quantity == "bias"]
        return min(cells)

    def headroom(self, group: str) -> float:
        """The bias of gpt-4-turbo's headroom on RAGTruth-News over the small or the large systems, in points."""
        counts = self.recovered.counts()
        mine = counts[(counts["dataset"] == "RAGTruth-News") & (counts["level"] == "claim")]
        rows = audit("headroom", mine, levels=["claim"], groups=SMALL_AND_LARGE)
        (row,) = [row for row in rows if row["group"] == group and row["evaluator"] == GPT4]
        return 100 * row["bias"]

    def wrong_orders(self, evaluator: str) -> float:
        """The mean over the eight data sets of the share of pairs that are ordered otherwise than by the labels."""
        quantity = "order_error_rate"
        cells = [c for c in self.printed.of(*ORDERS) if (c.evaluator, c.quantity) == (evaluator, quantity)]
        return float(np.mean([cell.value for cell in cells]))

    def biases(self, dataset: str, evaluator: str, headroom: bool) -> float:
        """Mean |bias| over the systems of Table 27, the headroom row as a further one where asked."""
        cells = [c for c in self.printed.of(27) if (c.dataset, c.evaluator, c.quantity) == (dataset, evaluator, "bias")]
        return float(np.mean([abs(c.value) for c in cells if headroom or c.system != HEADROOM]))

    def highest_bias(self) -> float:
        cells = [
            c
            for c in self.printed.of(27)
            if (c.dataset, c.evaluator, c.quantity) == ("RAGTruth-MARCO", BESPOKE, "bias")
        ]
        return max(c.value for c in cells)

    def helped(self) -> float:
        """Of the 24 calibrations of Table 31, those in which tuning for zero bias lowers the mean |bias|."""
        cells = {(c.dataset, c.system, c.quantity): c.value for c in self.printed.of(31)}
        tuned = [(d, s) for d, s, quantity in cells if quantity == "mean_abs_bias:zero_bias_threshold"]
        return float(
            sum(cells[d, s, "mean_abs_bias:zero_bias_threshold"] < cells[d, s, "mean_abs_bias:none"] for d, s in tuned)
        )

    def inversions(self) -> float:
        """The most pairs of six systems that an evaluator of Table 6 has in the wrong order: (1 - tau) / 2 of 15."""
        cells = [c.value for c in self.printed.of(6) if c.quantity == "kendall_tau" and c.dataset in self.datasets]
        return round((1 - min(cells)) / 2 * len(list(combinations(range(6), 2))))

    def opposite(self) -> float:
        cells = [
            c for c in self.printed.of(*ORDERS) if c.quantity == "pairs:labelled<,predicted>" and c.dataset != "LFQA"
        ]
        return sum(cell.value for cell in cells)


STATEMENTS: Mapping[str, Statement] = {
    "bacc_bespoke": Statement(
        lambda t: t.rate(3, MACRO, BESPOKE),
        "The text gives Bespoke-7B a mean BAcc of {printed} %, Table 3 one of {found} %.",
        0.05,
    ),
    "bacc_gpt4": Statement(
        lambda t: t.rate(3, MACRO, GPT4),
        "The text gives gpt-4-turbo a mean BAcc of {printed} %, Table 3 one of {found} %: it is the better of the "
        "two, not "
        "the worse.",
        0.05,
    ),
    "gaps_bespoke": Statement(
        lambda t: sum(abs(t.gap(d, BESPOKE)) > 20 for d in t.datasets),
        "TPR and TNR of Bespoke-7B are more than 20 points apart on {printed} of 14 data sets in the text, on "
        "{found} in "
        "Tables 4 and 5.",
        0,
        0,
    ),
    "gaps_gpt4": Statement(
        lambda t: sum(abs(t.gap(d, GPT4)) > 20 for d in t.datasets),
        "TPR and TNR of gpt-4-turbo are more than 20 points apart on {printed} of 14 data sets in the text, on "
        "{found} in "
        "Tables 4 and 5.",
        0,
        0,
    ),
    "tnr_lags": Statement(
        lambda t: sum(t.gap(d, GPT4) > 10 for d in t.datasets),
        "TNR lags behind TPR by more than 10 points on {printed} of 14 data sets in the text (it does not say "
        "whose), on "
        "{found} for gpt-4-turbo in Tables 4 and 5.",
        0,
        0,
    ),
    "media_bacc_low": Statement(
        lambda t: min(
            t.rate(3, "TofuEval-MediaS", name)
            for name in (GPT4, "gpt-3.5-turbo", BESPOKE, "MiniCheck-FT5", "MiniCheck-Rbta")
        ),
        "On TofuEval-MediaS the five evaluators have a BAcc of at least {printed} % in the text; gpt-3.5-turbo has "
        "{found} % "
        "in Table 3.",
        0.5,
    ),
    "media_bias_claim": Statement(
        lambda t: t.worst_bias(11, GPT4),
        "On TofuEval-MediaS gpt-4-turbo is off by {printed} points at worst by claims in the text, by {found} in "
        "Table 11.",
        0.05,
    ),
    "media_bias_response": Statement(
        lambda t: t.worst_bias(13, GPT4),
        "On TofuEval-MediaS gpt-4-turbo is off by {printed} points at worst by responses in the text, by {found} "
        "in Table "
        "13.",
        0.05,
    ),
    "news_headroom_small": Statement(
        lambda t: t.headroom("small"),
        "On RAGTruth-News gpt-4-turbo misses the headroom of the 7B systems by {printed} points in the text, by "
        "{found} "
        "from Table 27.",
        0.05,
        2,
    ),
    "news_headroom_large": Statement(
        lambda t: t.headroom("large"),
        "On RAGTruth-News gpt-4-turbo misses the headroom of the GPT systems by {printed} points in the text, by "
        "{found} "
        "from Table 27.",
        0.05,
        2,
    ),
    "orders_gpt4": Statement(
        lambda t: t.wrong_orders(GPT4),
        "gpt-4-turbo orders {printed} % of the pairs of systems wrongly in the text, {found} % over the eight tables.",
        0.5,
    ),
    "orders_bespoke": Statement(
        lambda t: t.wrong_orders(BESPOKE),
        "Bespoke-7B orders {printed} % of the pairs of systems wrongly in the text, {found} % over the eight tables.",
        0.5,
    ),
    "opposite_orders": Statement(
        lambda t: t.opposite(),
        "The text knows {printed} pairs of systems that an evaluator orders the other way round with significance; "
        "Table 28 "
        "has {found}: MiniCheck-Rbta on RAGTruth-MARCO.",
        0,
        0,
    ),
    "chunked_ppr": Statement(
        lambda t: float(
            np.mean(
                [
                    t.printed.value(30, d, None, BESPOKE, "ppr")
                    - t.printed.value(30, d, None, f"{BESPOKE} (cs=500)", "ppr")
                    for d in dict.fromkeys(c.dataset for c in t.printed.of(30))
                ]
            )
        ),
        "With chunks Bespoke-7B says attributable {printed} points less often in the text, {found} in Table 30.",
        0.5,
    ),
    "tuning_helps": Statement(
        lambda t: t.helped(),
        "Tuning for zero bias is said to lower the bias consistently, that is in all {printed} calibrations; in "
        "Table 31 it "
        "does in {found} (not on Recent News with mistral-7B-instruct, from 3.3 to 4.3 points).",
        0,
        0,
    ),
    "ranking_errors": Statement(
        lambda t: t.inversions(),
        "An evaluator makes at most {printed} ranking errors in the caption of Table 6; a tau of 0.33 in it is "
        "{found} of 15 "
        "pairs.",
        0,
        0,
    ),
    "marco_bias_high": Statement(
        lambda t: t.highest_bias(),
        "The bias of Bespoke-7B on RAGTruth-MARCO reaches {printed} points in the text, {found} in Table 27.",
        0.5,
    ),
    "yelp_bias_gpt4": Statement(
        lambda t: t.biases("RAGTruth-Yelp", GPT4, headroom=False),
        "The mean |bias| of gpt-4-turbo on RAGTruth-Yelp is {printed} points in the text, {found} over the six "
        "systems of "
        "Table 27: the text's comes out with the headroom row averaged in as a seventh.",
        0.05,
        2,
    ),
    "yelp_bias_bespoke": Statement(
        lambda t: t.biases("RAGTruth-Yelp", BESPOKE, headroom=False),
        "The mean |bias| of Bespoke-7B on RAGTruth-Yelp is {printed} points in the text, {found} over the six "
        "systems of "
        "Table 27: the text's comes out with the headroom row averaged in as a seventh.",
        0.05,
        2,
    ),
}
