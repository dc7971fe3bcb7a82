"""Reports of many evaluators and systems: what figures draw, what they say of it, and what tables open with."""

from __future__ import annotations

from typing import Any

from factaudit.audit import list_computable_audits
from factaudit.report.figures import MAX_EVALUATORS, ReportFigure, make_report_figure

JUDGES = [f"judge{i}" for i in range(20)]


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


def figure_of(audit: str, rows: list[dict[str, Any]], ranked: list[str] = JUDGES) -> ReportFigure:
    found = make_report_figure(list_computable_audits()[audit], rows, JUDGES, set(), ranked)
    assert found is not None
    return found


def legend_of(figure: ReportFigure) -> list[str]:
    assert figure.draw is not None
    drawn = figure.draw().figure
    return [text.get_text() for legend in drawn.legends for text in legend.get_texts()]


def test_of_twenty_evaluators_the_best_and_the_worst_are_drawn():
    ranked = JUDGES[::-1]
    figure = figure_of("rates", [rate_row(f"d{i}", name) for i in range(3) for name in JUDGES], ranked)
    assert legend_of(figure) == [*ranked[:5], *ranked[-3:]]
    assert "Shown are the best 5 and the worst 3 of 20 evaluators." in figure.caption
    drawn = figure.draw().figure  # type: ignore[misc]
    colours = [line.get_color() for line in drawn.legends[0].get_lines()]
    assert len(set(colours)) == MAX_EVALUATORS


def test_eight_evaluators_are_all_drawn():
    figure = figure_of("rates", [rate_row("d", name) for name in JUDGES[:8]])
    assert legend_of(figure) == JUDGES[:8]
    assert "Shown" not in figure.caption


def test_an_audit_of_evaluators_at_neither_end_draws_these():
    figure = figure_of("rates", [rate_row("d", name) for name in JUDGES[6:10]])
    assert legend_of(figure) == JUDGES[6:10]
    assert "Shown" not in figure.caption


def test_a_line_per_system_is_drawn_of_those_with_the_lowest_and_the_highest_error_rates():
    rows = [error_rate_row("d", system, "judge0") for system in range(40)]
    lines = figure_of("quantification", rows)
    drawn = lines.draw().figure  # type: ignore[misc]
    names = [text.get_text() for text in drawn.axes[0].get_yticklabels()]
    assert names == [f"model-{i}" for i in (*range(14), *range(26, 40))]
    assert "Shown are the 14 with the lowest and the 14 with the highest labelled error rate of 40." in lines.caption
