"""The tables of a reproduction: every printed cell, and every figure of the running text, beside what we find."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from factaudit.audit.core.result_rows import Row
from factaudit.datasets.source_files import DatasetSourceRow, read_dataset_source_rows
from factaudit.engines.verify_with_caution.cell_recomputation import (
    COUNTS_CHOSEN_TO_FIT,
    ORDER_TABLES,
    TABLES_GIVEN_BY_CHOICE,
    CellKey,
    RecomputedCell,
    recompute_audit_of_counts,
)
from factaudit.engines.verify_with_caution.claim_count_recovery import (
    MAX_FEW_ERRORS,
    SYSTEM_SIZE_GROUPS,
    RecoveredClaimCounts,
)
from factaudit.engines.verify_with_caution.printed_tables import (
    HEADROOM,
    LABELS_EVALUATOR,
    MACRO_MEAN,
    N_SYSTEM_PAIRS,
    PrintedCell,
    PrintedTables,
)
from factaudit.errors import InputError, Problem

#: What floating point may add, and how little beside the rounding is at its edge.
_EPSILON, _RATE_ROUNDING, _ROUNDING_EDGE = 1e-6, 0.05, 0.002


def build_reproduction_rows(
    printed: PrintedTables, recomputed_cells: Mapping[CellKey, Sequence[RecomputedCell]]
) -> list[Row]:
    """A row for each printed cell (two where it was recomputed in two ways), in the paper's order."""
    rows = []
    for cell in printed.cells:
        key = (cell.table, cell.dataset, cell.system, cell.evaluator, cell.quantity)
        about: Row = {name: getattr(cell, name) for name in ("table", "dataset", "level", "system", "evaluator")}
        about |= {"quantity": cell.quantity, "published": cell.value}
        for one in recomputed_cells.get(key, ()):
            apart = abs(one.value - cell.value) - one.tolerance
            agrees, note = apart <= _EPSILON, one.note
            if not agrees:
                note = f"{_explain_unreproduced_cell(printed, cell, one, apart)}; {note}"
            rows.append(about | {"recomputed": one.value, "within_rounding": int(agrees), "note": note})
        if key not in recomputed_cells:
            rows.append(
                about | {"recomputed": None, "within_rounding": None, "note": _explain_reproduction_input_cell(cell)}
            )
    return rows


def describe_reproduction_agreement(rows: Sequence[Row]) -> str:
    """How many printed cells agree in every comparison, and of how many agreement says only that numbers exist."""
    cells = _group_comparisons_by_cell(rows)
    agree = [mine for mine in cells.values() if all(row["within_rounding"] for row in mine)]
    existence = sum(any(_EXISTENCE in row["note"] for row in mine) for mine in agree)
    chosen = len([mine for mine in agree if _is_given_by_choice(mine[0])])
    return (
        f"{len(agree):,} of {len(cells):,} published cells agree; {existence:,} of them agree with some numbers of "
        f"claims, which are not printed, {chosen:,} of these with numbers chosen to fit them"
    )


def _group_comparisons_by_cell(rows: Sequence[Row]) -> dict[tuple[Any, ...], list[Row]]:
    cells: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        if row["within_rounding"] is not None:
            key = tuple(row[name] for name in ("table", "dataset", "level", "system", "evaluator", "quantity"))
            cells.setdefault(key, []).append(row)
    return cells


def describe_cells_given_by_choice(rows: Sequence[Row]) -> str:
    """Which tables went into the numbers of claims that they are compared with, and what follows; "" of none."""
    chosen = [row for row in rows if row["within_rounding"] is not None and _is_given_by_choice(row)]
    if not chosen:
        return ""
    datasets = " and ".join(dict.fromkeys(row["dataset"] for row in chosen))
    *most, last = map(str, TABLES_GIVEN_BY_CHOICE)
    return (
        f"On {datasets} the numbers of claims were chosen to fit Tables {', '.join(most)} and {last}: that "
        f"{sum(row['within_rounding'] for row in chosen)} of {len(chosen)} comparisons agree shows only that "
        "such numbers exist."
    )


def _is_given_by_choice(row: Row) -> bool:
    return row["table"] in TABLES_GIVEN_BY_CHOICE and COUNTS_CHOSEN_TO_FIT in row["note"]


def describe_orders_beside_printed_ones(printed: PrintedTables, ranking_rows: Sequence[Row]) -> str:
    """How many ordering errors of Table 28, which has fewer pairs, are others in the report, which compares all."""
    found = {(row["dataset"], row["evaluator"]): row for row in ranking_rows if row["level"] == "claim"}
    cells = printed.select_cells(28, quantity="order_error_rate")
    beside = [(cell, found[key]) for cell in cells if (key := (cell.dataset, cell.evaluator)) in found]
    others = [cell for cell, row in beside if abs(100 * row["error_rate"] - cell.value) > _RATE_ROUNDING + _EPSILON]
    if not others:
        return ""
    datasets = list(dict.fromkeys(cell.dataset for cell in others))
    return (
        "Table 28 has fewer pairs of systems than are compared here, and the paper does not say which. By the "
        f"recovered numbers its pairs come out without systems of at most {MAX_FEW_ERRORS} labelled errors. Of the "
        f"{len(beside)} ordering errors that stand in both, {len(others)} are others here ({', '.join(datasets)})."
    )


#: In the notes of cells that several numbers of claims could give, or that were chosen to come near.
_EXISTENCE = "exist"


def count_reproduced_cells(rows: Sequence[Row]) -> list[Row]:
    """How many of the compared cells of each table and evaluator agree in every comparison."""
    counts: dict[tuple[int, str], list[bool]] = {}
    for (table, *_, evaluator, _), mine in _group_comparisons_by_cell(rows).items():
        counts.setdefault((table, evaluator), []).append(all(row["within_rounding"] for row in mine))
    return [
        {"table": table, "evaluator": evaluator, "n": len(each), "n_agree": sum(each)}
        | {"share": sum(each) / len(each), "cells": f"{sum(each)}/{len(each)}"}
        for (table, evaluator), each in counts.items()
    ]


def _explain_unreproduced_cell(
    printed: PrintedTables, cell: PrintedCell, recomputed: RecomputedCell, excess_difference: float
) -> str:
    if cell.table in ORDER_TABLES:
        mine = printed.select_cells(cell.table, dataset=cell.dataset, evaluator=cell.evaluator)
        total = sum(one.value for one in mine if one.quantity.startswith("pairs:labelled"))
        misprint = f"a misprint: the printed pairs of {cell.evaluator}"
        if total != N_SYSTEM_PAIRS:
            return f"{misprint} add up to {total:.0f}, six systems make {N_SYSTEM_PAIRS}"
        return f"{misprint} and its printed share do not go together"
    if excess_difference <= _ROUNDING_EDGE:
        return f"at the edge of rounding: {recomputed.value:.4f}"
    if cell.quantity.endswith(":adjusted_counts"):
        return "with these numbers of claims no number of found errors gives both printed figures"
    return "the printed inputs do not give it"


def _explain_reproduction_input_cell(cell: PrintedCell) -> str:
    if cell.quantity == "bias" and cell.evaluator == LABELS_EVALUATOR:
        return "0 by definition: the labels' own column"
    if cell.evaluator == "AlignScore" and (cell.table in ORDER_TABLES or cell.table in (6, 7)):
        return "no rates of AlignScore by system are printed; an input of what is"
    if cell.quantity.endswith("_threshold"):
        return "needs scores, which are not printed; an input of Table 1"
    inputs = {
        4: "an input of Tables 3 and 8",
        5: "an input of Tables 3 and 8",
        8: "an input of the predicted rates",
        30: "an input of BAcc and of PPR with chunks",
    }
    if cell.table == 3 and cell.dataset != MACRO_MEAN:
        return "no inputs are printed"
    return inputs.get(cell.table, "an input of biases, headroom and orders")


# ------------------------------------------------------------- the running text (``data/published/vc_text.csv``)
GPT4, BESPOKE_7B = "gpt-4-turbo", "Bespoke-7B"


class RunningTextFigure(DatasetSourceRow):
    """A figure of the text: where it stands, and the figure."""

    id: str
    where: str
    printed: float


@dataclass(frozen=True)
class RunningTextStatement:
    """What the tables give in its stead (in the text's units), and a sentence with both figures.

    ``tolerance``: how far the two may be apart; {printed} and {found} are filled in, with ``digits`` decimals.
    ``is_decidable``: False where the text does not say whose figure it is.
    """

    compute_figure: Callable[[_RunningTextTables], float]
    sentence_template: str
    tolerance: float
    digits: int = 1
    is_decidable: bool = True


def compare_running_text_with_tables(
    path: str | Path, printed: PrintedTables, recovered: RecoveredClaimCounts
) -> list[Row]:
    """A row for each figure of the file: where, printed, found, agrees (1, 0, or None: undecidable), sentence."""
    rows = []
    tables = _RunningTextTables(printed, recovered)
    for figure in read_dataset_source_rows(Path(path), RunningTextFigure):
        if figure.id not in STATEMENTS:
            problem = Problem(f"expected one of {', '.join(STATEMENTS)}, found {figure.id!r}", column="id")
            raise InputError(str(path), [problem])
        known = STATEMENTS[figure.id]
        found = known.compute_figure(tables)
        # A figure of the text is given to its last digit, a count exactly.
        agrees = abs(found - figure.printed) <= known.tolerance + 1e-9
        said = known.sentence_template.format(printed=f"{figure.printed:g}", found=f"{found:.{known.digits}f}")
        row: Row = {"where": figure.where, "printed": figure.printed, "found": found}
        rows.append(row | {"agrees": int(agrees) if known.is_decidable else None, "sentence": said})
    return rows


@dataclass(frozen=True)
class _RunningTextTables:
    """The printed cells, and the audits' rows on the recovered counts."""

    printed: PrintedTables
    recovered: RecoveredClaimCounts

    @property
    def datasets(self) -> list[str]:
        """The data sets of Table 3."""
        return self.printed.list_datasets(3)

    def get_rate(self, table: int, dataset: str, evaluator: str) -> float:
        """BAcc, FPR or FNR, by the table's number."""
        return self.printed.get_value(table, dataset, None, evaluator, {3: "bacc", 4: "fpr", 5: "fnr"}[table])

    def tpr_tnr_gap(self, dataset: str, evaluator: str) -> float:
        """TPR - TNR, in points."""
        return self.get_rate(4, dataset, evaluator) - self.get_rate(5, dataset, evaluator)

    def count_gaps(self, evaluator: str) -> int:
        """The data sets on which TPR and TNR are more than 20 points apart."""
        return sum(abs(self.tpr_tnr_gap(dataset, evaluator)) > 20 for dataset in self.datasets)

    def list_biases(self, table: int, **fields: str) -> list[float]:
        """The printed biases of an evaluator (or of one data set) in a table."""
        return [cell.value for cell in self.printed.select_cells(table, quantity="bias", **fields)]

    def list_biases_where_most_errors_are(self, dataset: str, evaluator: str) -> list[float]:
        """An evaluator's biases in Table 27 on the half of a data set's systems that the labels find most errors of."""
        cells = self.printed.select_cells(27, dataset=dataset, evaluator=LABELS_EVALUATOR, quantity="error_rate")
        rates = {cell.system: cell.value for cell in cells if cell.system != HEADROOM}
        most = sorted(rates, key=rates.__getitem__)[len(rates) // 2 :]
        biases = self.printed.select_cells(27, dataset=dataset, evaluator=evaluator, quantity="bias")
        return [cell.value for cell in biases if cell.system in most]

    def headroom_bias(self, group: str) -> float:
        """The bias of gpt-4-turbo's headroom on RAGTruth-News over the small or the large systems, in points."""
        counts = self.recovered.build_counts_table()
        mine = counts[(counts["dataset"] == "RAGTruth-News") & (counts["level"] == "claim")]
        rows = recompute_audit_of_counts("headroom", mine, levels=["claim"], groups=SYSTEM_SIZE_GROUPS)
        (row,) = [row for row in rows if row["group"] == group and row["evaluator"] == GPT4]
        return 100 * row["bias"]

    def mean_order_error_rate(self, evaluator: str) -> float:
        """The mean over the eight data sets of the share of pairs that are not ordered as the labels do."""
        cells = self.printed.select_cells(*ORDER_TABLES, evaluator=evaluator, quantity="order_error_rate")
        return float(np.mean([cell.value for cell in cells]))

    def mean_absolute_bias(self, dataset: str, evaluator: str) -> float:
        """Mean |bias| over the systems of Table 27, without the headroom row."""
        cells = self.printed.select_cells(27, dataset=dataset, evaluator=evaluator, quantity="bias")
        return float(np.mean([abs(cell.value) for cell in cells if cell.system != HEADROOM]))

    def count_helpful_tunings(self) -> float:
        """The subsets of Table 31 on which tuning for zero bias lowers the mean |bias| over its calibrations."""
        change: dict[str, float] = {}
        for quantity, sign in (("mean_abs_bias:zero_bias_threshold", 1), ("mean_abs_bias:none", -1)):
            for cell in self.printed.select_cells(31, quantity=quantity):
                change[cell.dataset] = change.get(cell.dataset, 0.0) + sign * cell.value
        return float(sum(each < 0 for each in change.values()))

    def max_reversed_pairs(self) -> int:
        """The most pairs of six systems that an evaluator of Table 6 has in the wrong order: (1 - tau) / 2 of 15."""
        taus = self.printed.select_cells(6, quantity="kendall_tau")
        lowest = min(cell.value for cell in taus if cell.dataset in self.datasets)
        return round((1 - lowest) / 2 * N_SYSTEM_PAIRS)

    def count_opposite_orders(self) -> float:
        """The pairs of systems that an evaluator orders the other way round; LFQA has other systems."""
        cells = self.printed.select_cells(*ORDER_TABLES, quantity="pairs:labelled<,predicted>")
        return sum(cell.value for cell in cells if cell.dataset != "LFQA")

    def chunked_ppr_loss(self) -> float:
        """By how many points less often Bespoke-7B says attributable with chunks: the mean over Table 30."""
        whole, chunked = (
            [cell.value for cell in self.printed.select_cells(30, evaluator=name, quantity="ppr")]
            for name in (BESPOKE_7B, f"{BESPOKE_7B} (cs=500)")
        )
        return float(np.mean(np.subtract(whole, chunked)))


_FIVE_EVALUATORS = (GPT4, "gpt-3.5-turbo", BESPOKE_7B, "MiniCheck-FT5", "MiniCheck-Rbta")
#: Sentences that are said twice, of two evaluators, levels or groups of systems.
_GAPS = (
    "TPR and TNR of {} are more than 20 points apart on {{printed}} of 14 data sets in the text, on {{found}} in "
    "Tables 4 and 5."
)
_WORST_BIAS = (
    "On TofuEval-MediaS gpt-4-turbo is off by {{printed}} points at worst by {} in the text, by {{found}} in Table {}."
)
_HEADROOM = (
    "On RAGTruth-News gpt-4-turbo misses the headroom of the {} systems by {{printed}} points in the text, by "
    "{{found}} from Table 27."
)
_ORDERS = (
    "{} orders {{printed}} % of the pairs of systems wrongly in the text, {{found}} % over the eight data sets of "
    "Tables 12 to 28, as printed."
)
_MEAN_BIAS = (
    "The mean |bias| of {} on RAGTruth-Yelp is {{printed}} points in the text, {{found}} over the six systems of "
    "Table 27: the text's comes out with the headroom row averaged in as a seventh."
)
STATEMENTS: Mapping[str, RunningTextStatement] = {
    "bacc_bespoke": RunningTextStatement(
        lambda t: t.get_rate(3, MACRO_MEAN, BESPOKE_7B),
        "The text gives Bespoke-7B a mean BAcc of {printed} %, Table 3 one of {found} %.",
        0.05,
    ),
    "bacc_gpt4": RunningTextStatement(
        lambda t: t.get_rate(3, MACRO_MEAN, GPT4),
        "The text gives gpt-4-turbo a mean BAcc of {printed} %, Table 3 one of {found} %: it is the better of the two, "
        "not the worse.",
        0.05,
    ),
    "gaps_bespoke": RunningTextStatement(lambda t: t.count_gaps(BESPOKE_7B), _GAPS.format(BESPOKE_7B), 0, 0),
    "gaps_gpt4": RunningTextStatement(lambda t: t.count_gaps(GPT4), _GAPS.format(GPT4), 0, 0),
    "tnr_lags": RunningTextStatement(
        lambda t: sum(t.tpr_tnr_gap(dataset, GPT4) > 10 for dataset in t.datasets),
        "TNR lags behind TPR by more than 10 points on {printed} of 14 data sets in the text. It does not say whose: "
        "by Tables 4 and 5 it is {found} for gpt-4-turbo; AlignScore alone has exactly the text's number.",
        0,
        0,
        is_decidable=False,
    ),
    "media_bacc_low": RunningTextStatement(
        lambda t: min(t.get_rate(3, "TofuEval-MediaS", name) for name in _FIVE_EVALUATORS),
        "On TofuEval-MediaS the five evaluators have a BAcc of at least {printed} % in the text; gpt-3.5-turbo has "
        "{found} % in Table 3.",
        0.5,
    ),
    "media_bias_claim": RunningTextStatement(
        lambda t: min(t.list_biases(11, evaluator=GPT4)), _WORST_BIAS.format("claims", 11), 0.05
    ),
    "media_bias_response": RunningTextStatement(
        lambda t: min(t.list_biases(13, evaluator=GPT4)), _WORST_BIAS.format("responses", 13), 0.05
    ),
    "news_headroom_small": RunningTextStatement(lambda t: t.headroom_bias("small"), _HEADROOM.format("7B"), 0.05, 2),
    "news_headroom_large": RunningTextStatement(lambda t: t.headroom_bias("large"), _HEADROOM.format("GPT"), 0.05, 2),
    "orders_gpt4": RunningTextStatement(lambda t: t.mean_order_error_rate(GPT4), _ORDERS.format(GPT4), 0.5),
    "orders_bespoke": RunningTextStatement(
        lambda t: t.mean_order_error_rate(BESPOKE_7B), _ORDERS.format(BESPOKE_7B), 0.5
    ),
    "opposite_orders": RunningTextStatement(
        lambda t: t.count_opposite_orders(),
        "The text knows {printed} pairs of systems that an evaluator orders the other way round with significance; "
        "Table 28 has {found}: MiniCheck-Rbta on RAGTruth-MARCO.",
        0,
        0,
    ),
    "chunked_ppr": RunningTextStatement(
        lambda t: t.chunked_ppr_loss(),
        "With chunks Bespoke-7B says attributable {printed} points less often in the text, {found} in Table 30.",
        0.5,
    ),
    "tuning_helps": RunningTextStatement(
        lambda t: t.count_helpful_tunings(),
        "Tuning for zero bias lowers the mean bias on {printed} subsets in the text, on {found} in Table 31.",
        0,
        0,
    ),
    "ranking_errors": RunningTextStatement(
        lambda t: t.max_reversed_pairs(),
        "An evaluator makes at most {printed} ranking errors in the caption of Table 6; a tau of 0.33 in it is {found} "
        "of 15 pairs.",
        0,
        0,
    ),
    "marco_bias_high": RunningTextStatement(
        lambda t: max(t.list_biases_where_most_errors_are("RAGTruth-MARCO", BESPOKE_7B)),
        "On RAGTruth-MARCO the bias of Bespoke-7B reaches {printed} points in the text, on systems with more errors "
        "that it does not name. In Table 27 the half of the systems with most errors reaches {found}.",
        0.5,
        is_decidable=False,
    ),
    "yelp_bias_gpt4": RunningTextStatement(
        lambda t: t.mean_absolute_bias("RAGTruth-Yelp", GPT4), _MEAN_BIAS.format(GPT4), 0.05, 2
    ),
    "yelp_bias_bespoke": RunningTextStatement(
        lambda t: t.mean_absolute_bias("RAGTruth-Yelp", BESPOKE_7B), _MEAN_BIAS.format(BESPOKE_7B), 0.05, 2
    ),
}
