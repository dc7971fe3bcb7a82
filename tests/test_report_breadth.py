"""Reports of many evaluators and systems: what figures draw, what they say of it, and what tables open with."""

from __future__ import annotations

from typing import Any

from factaudit.audit import list_computable_audits
from factaudit.report.figure_selection import MAX_DRAWN_EVALUATORS, MAX_DRAWN_SYSTEMS
from factaudit.report.report_figures import ReportFigure, list_report_figures

JUDGES = [f"judge{i}" for i in range(20)]
ABOUT = {"confidence": 0.95, "replicates": 2000, "evaluators": [{"name": name} for name in JUDGES]}


def rate_row(dataset: str, evaluator: str) -> dict[str, Any]:
    figures = dict.fromkeys(("tpr", "tnr", "bacc"), 0.5)
    return {"dataset": dataset, "evaluator": evaluator, "n": 20, "n_unscored": 0, **figures, "reason": None}


def error_rate_row(dataset: str, system: int, evaluator: str, bias: float = 0.1) -> dict[str, Any]:
    labelled = system / 100
    counts = {"n": 20, "n_unscored": 0, "n_labelled": 20}
    rates = {"labelled_error_rate": labelled, "predicted_error_rate": labelled + bias, "bias": bias}
    ends = {f"{key}_{end}": value for key, value in rates.items() for end in ("low", "high")}
    keys = {"dataset": dataset, "level": "claim", "system": f"model-{system}", "evaluator": evaluator}
    return {**keys, **counts, **rates, **ends, "reason": None}


def figures_of(audit: str, rows: list[dict[str, Any]], ranked: list[str] = JUDGES) -> list[ReportFigure]:
    return list_report_figures(list_computable_audits()[audit], rows, JUDGES, ABOUT, ranked)


def legend_of(figure: ReportFigure) -> list[str]:
    assert figure.draw is not None
    drawn = figure.draw().figure
    return [text.get_text() for legend in drawn.legends for text in legend.get_texts()]


def test_of_twenty_evaluators_the_best_and_the_worst_are_drawn():
    ranked = JUDGES[::-1]
    (figure,) = figures_of("rates", [rate_row(f"d{i}", name) for i in range(3) for name in JUDGES], ranked)
    assert legend_of(figure) == [*ranked[:5], *ranked[-3:]]
    assert (
        "The figure shows the best 5 and the worst 3 of 20 evaluators; the file of the table has all." in figure.caption
    )
    drawn = figure.draw().figure  # type: ignore[misc]
    colours = [line.get_color() for line in drawn.legends[0].get_lines()]
    assert len(set(colours)) == MAX_DRAWN_EVALUATORS


def test_evaluators_without_a_rank_are_not_called_the_best():
    (figure,) = figures_of("rates", [rate_row("d", name) for name in JUDGES], [])
    assert legend_of(figure) == JUDGES[:MAX_DRAWN_EVALUATORS]
    assert "The figure shows 8 of 20 evaluators" in figure.caption
    assert "best" not in figure.caption


def test_eight_evaluators_are_all_drawn():
    (figure,) = figures_of("rates", [rate_row("d", name) for name in JUDGES[:8]])
    assert legend_of(figure) == JUDGES[:8]
    assert "Drawn" not in figure.caption


def test_an_audit_of_evaluators_at_neither_end_draws_these():
    (figure,) = figures_of("rates", [rate_row("d", name) for name in JUDGES[6:10]])
    assert legend_of(figure) == JUDGES[6:10]
    assert "Drawn" not in figure.caption


def test_a_line_per_system_is_drawn_of_those_with_the_lowest_and_the_highest_error_rates():
    rows = [error_rate_row("d", system, "judge0") for system in range(40)]
    (lines,) = figures_of("quantification", rows)
    drawn = lines.draw().figure  # type: ignore[misc]
    names = [text.get_text() for text in drawn.axes[0].get_yticklabels()]
    assert names == [f"model-{i}" for i in (*range(6), *range(34, 40))]
    assert len(names) == MAX_DRAWN_SYSTEMS
    text = "The figure shows the 6 of 40 systems with the lowest labelled error rate and the 6 with the highest"
    assert text in lines.caption
