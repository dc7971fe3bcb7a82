"""How do results look on a terminal? Tables and lines that commands print."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factaudit.cli.json_output import is_answer_format, print_json_output
from factaudit.cli.screen_text import format_terminal_screen, wrap_terminal_paragraph
from factaudit.cli.terminal import print_line
from factaudit.errors import FactauditError
from factaudit.text.display_text import format_cached_reply_dates, format_count

if TYPE_CHECKING:
    import pandas as pd

    from factaudit.estimate.label_sample import LabelSample
    from factaudit.results import Results


#: What a verb that makes a run folder gives as JSON.
RUN_JSON_KEYS = {
    "run": "string: the run folder",
    "report": "string: the report",
    "results": "string: results.json, which has the rows of every audit, or says where they lie",
    "signature": "string: of what was computed from what",
    "about": "object: the claims per data set and the verdicts per evaluator, counted",
    "audits": "object: per audit, how many rows it has",
    "decisions": "array: evaluator, task, may (yes, no, cannot tell) and why",
    "findings": "array: severity (fail, warn, ok), statement, and what it rests on",
    "cost": "number or null: US dollars of the calls; null where a price is not known",
}


#: What a verb that reads tables gives of them as JSON.
TABLE_JSON_KEYS = {
    "n_claims": "integer or null: null where there are none",
    "n_labelled": "integer or null: claims with a label",
    "datasets": "array: names",
    "systems": "array: names",
    "n_verdicts": "integer or null: null where there are none",
    "evaluators": "array: evaluator, n_verdicts, n_predictions",
}


def count_claims_and_verdicts_for_display(claims: pd.DataFrame | None, verdicts: pd.DataFrame | None) -> dict[str, Any]:
    """What `TABLE_JSON_KEYS` names, of tables of which either may not be there."""
    found: dict[str, Any] = {**dict.fromkeys(TABLE_JSON_KEYS), "datasets": [], "systems": [], "evaluators": []}
    if claims is not None:
        found |= {"n_claims": len(claims), "n_labelled": int(claims["label"].notna().sum())}
        found |= {f"{name}s": claims[name].dropna().unique().tolist() for name in ("dataset", "system")}
    if verdicts is not None:
        parts = verdicts.groupby("evaluator", sort=False)["prediction"]
        found["n_verdicts"] = len(verdicts)
        found["evaluators"] = [
            {"evaluator": name, "n_verdicts": len(part), "n_predictions": int(part.notna().sum())}
            for name, part in parts
        ]
    return found


def display_run_json(results: Results, out: Path, **more: Any) -> None:
    """Give a run as JSON, where JSON is asked for: what it holds is not computed in vain."""
    if not is_answer_format("json"):
        return
    from factaudit.report.summary import build_report_evaluator_uses_table

    table = build_report_evaluator_uses_table(results.to_dict())
    tasks, rows = ([], []) if table is None else (table.columns[1:], table.rows)
    costs = [row.get("cost") for row in results.calls]
    print_json_output(
        {
            "run": out,
            "report": out / "report.html",
            "results": out / "results.json",
            "signature": results.signature,
            "about": results.about,
            "audits": {name: len(rows) for name, rows in results.audits.items()},
            "decisions": [
                {"evaluator": line[0].text, "task": task, "may": cell.text, "why": ": ".join(filter(None, cell.notes))}
                for line in rows
                for task, cell in zip(tasks, line[1:], strict=True)
            ],
            "findings": results.finding_rows,
            "cost": None if None in costs else sum(costs),
            **more,
        }
    )


def display_run_results(results: Results, out: Path) -> None:
    """The first screen; a `FactauditError` where every verdict failed."""
    print_line()
    for line in format_terminal_screen(results):
        print_line(line)
    counts = Counter(finding["severity"] for finding in results.finding_rows)
    told = [format_count(counts[key], noun) for key, noun in (("fail", "problem"), ("warn", "warning")) if counts[key]]
    print_line(f"\nnext      open {out / 'report.html'}{', which explains ' * bool(told)}{' and '.join(told)}")
    print_line(f"          look at single claims: factaudit view {out}")
    display_cached_calls(results.calls)
    display_run_json(results, out)
    check_displayed_run_has_predictions(results)


def render_run_figures(out: Path) -> None:
    """The figures of a run as PNG, too."""
    from factaudit.run_folder import RunFolder

    with RunFolder.open(out) as run:
        run.render_again(png=True)


def display_score_warnings(results: Results) -> None:
    """What keeps from using the scores of an engine's run, as its first screen says it."""
    from factaudit.audit import make_audited_run
    from factaudit.audit.screen import list_engine_advice

    for advice in list_engine_advice(make_audited_run(results.audits, results.about)):
        for line in wrap_terminal_paragraph(advice.sentence, f"{advice.word:<12}"):
            print_line(line)


def display_cached_calls(call_rows: Sequence[Mapping[str, Any]]) -> None:
    """How many replies came from the cache and from when; nothing where none did."""
    if count := sum(row.get("cached_calls") or 0 for row in call_rows):
        calls = sum(row.get("calls") or 0 for row in call_rows)
        dated = format_cached_reply_dates(call_rows)
        of = f" ({dated})" if dated else ""
        of += " or of an equal call" if calls else ""
        print_line(f"replies   {count:,} from the cache{of}, {format_count(calls, 'call')} sent")


def check_displayed_run_has_predictions(results: Results) -> None:
    """Raise `FactauditError` where every verdict failed: the report says so too, but a script asks the exit code."""
    rows = [row for row in results.about.get("evaluators", []) if row.get("n_verdicts")]
    if rows and not any(row["n_ok"] or row["n_guessed"] for row in rows):
        names = ("error", "refused", "unparsed", "skipped")
        found = ", ".join(f"{n:,} {name}" for name in names if (n := sum(row[f"n_{name}"] for row in rows)))
        raise FactauditError(f"no verdict has a prediction ({found})")


def display_adjusted_rates(adjusted_rows: pd.DataFrame) -> None:
    """The rows of `factaudit.audit.error_rate_correction.correct_system_error_rates` as a table; below it what is
    missing."""
    from factaudit.audit.core.figure_formatting import PERCENT_COLUMN, format_figure_range

    columns = ["dataset", "evaluator", "method", "threshold", "system", "n"]
    rates = ["predicted_error_rate", "adjusted_error_rate", "labelled_error_rate"]
    shown = adjusted_rows[[*columns, *rates, "n_labels"]].copy()
    for column in rates:
        shown[column] = [_format_figure(100 * rate, "{:.1f} %") for rate in adjusted_rows[column].astype("float64")]
    if "adjusted_error_rate_low" in adjusted_rows:
        ends = (adjusted_rows[f"adjusted_error_rate_{end}"].astype("float64") for end in ("low", "high"))
        shown.insert(
            8,
            "interval",
            [
                "–" if isnan(low) else format_figure_range(PERCENT_COLUMN, low, high)
                for low, high in zip(*ends, strict=True)
            ],
        )
    shown["threshold"] = [
        _format_figure(threshold, "{:.3g}") for threshold in adjusted_rows["threshold"].astype("float64")
    ]
    print_line(shown.to_string(index=False))
    for reason in adjusted_rows["reason"].dropna().unique():
        print_line(f"–: {reason}")


def _format_figure(value: float, number_format: str) -> str:
    return "–" if isnan(value) else number_format.format(value)


def display_expected_costs(cost_rows: Sequence[dict[str, Any]]) -> None:
    """The rows of `factaudit.experiment.estimate_experiment_cost`, three lines each, and their total; also as JSON."""
    costs = [row["cost"] for row in cost_rows]
    print_json_output({"rows": cost_rows, "cost": None if None in costs else sum(costs)})
    if not cost_rows:
        print_line("no evaluator of this experiment asks a language model, so it costs nothing")
        return
    # Counted with the model's own tokenizer a figure is a bound; approximated, it is not.
    bounds = ["about" if row["counted"].startswith("approximately") else "at most" for row in cost_rows]
    for row, bound in zip(cost_rows, bounds, strict=True):
        if row["prompt_tokens"] is None:
            told = "" if row["calls"] is None else f" at most {format_count(row['calls'], 'call')};"
            print_line(f"{row['evaluator']}:{told} {row['reason']}")
            continue
        print_line(f"{row['evaluator']}: {format_count(row['calls'], 'call')}{_format_spared_calls(row)}")
        most = row["max_completion_tokens"]
        replies = "replies of any length" if most is None else f"at most {most:,} completion tokens"
        print_line(f"    {row['prompt_tokens']:,} prompt tokens ({row['counted']}), {replies}")
        dated = f" (prices of {row['price_date']})" if row["price_date"] else ""
        print_line(
            f"    cost: {_format_dollar_cost(row['cost'], bound)}{dated}{'; ' + row['reason'] if row['reason'] else ''}"
        )
    total = None if None in costs else sum(costs)
    print_line(f"total: {_format_dollar_cost(total, 'about' if 'about' in bounds else 'at most')}")


def _format_spared_calls(cost_row: Mapping[str, Any]) -> str:
    """Calls that the cache answers, and such as are the same as others of the run: asked once."""
    same = cost_row.get("repeated_calls")
    told = [f"{cost_row['cached_calls'] - (same or 0):,} more are cached"]
    if same is None:  # a rehearsal does not part the two
        told = [f"{cost_row['cached_calls']:,} more are cached or the same as others"]
    elif same:
        told.append(f"{same:,} are the same as others and asked only once")
    return f" ({', '.join(told)})"


def _format_dollar_cost(dollars: float | None, bound_word: str) -> str:
    return "unknown" if dollars is None else f"{bound_word} ${dollars:,.2f}"


def display_estimated_rates(audit_rows: Mapping[str, Sequence[dict[str, Any]]]) -> None:
    """Rates from few labels: what was predicted, what labels say, what is corrected, and what to quote.

    The order of the systems and the widths of the intervals stand in the report.
    """
    from factaudit.arrays.claim_groups import ALL_TOGETHER
    from factaudit.audit.estimate_remarks import NO_USABLE_LABEL, format_estimate_advice

    reasons = [about["why"] for about in audit_rows["estimate_summary"]]
    for at, about in enumerate(audit_rows["estimate_summary"]):
        mine = [row for row in audit_rows["estimates"] if _is_same_dataset_and_level(row, about)]
        print_line(
            f"\n{about['dataset']}, {about['level']}s: {about['n']:,}, "
            + (f"{about['n_labels']:,} of them labelled" if about["n_labels"] else NO_USABLE_LABEL)
            + f"; main evaluator: {about['main']}"
        )
        if about["target"] == "population":
            print_line("These rates are about the population that the documents come from.")
        if about["quote"] is None:
            print_line(f"{about['why']}{'; ' + about['reason'] if about['reason'] else ''}")
            continue
        methods = list(dict.fromkeys(row["method"] for row in mine))
        words = {"raw": "as predicted", "labels": "labels only"}
        has_undecided = any(row["n_undecided"] for row in mine)
        lines = [["system", "labels", *["no label"] * has_undecided, *(words.get(name, name) for name in methods)]]
        for system in dict.fromkeys(row["system"] for row in mine):
            rates = {row["method"]: row for row in mine if row["system"] == system}
            labels, undecided = (next(iter(rates.values()))[key] for key in ("n_labels", "n_undecided"))
            share = [f"{100 * undecided / max(labels + undecided, 1):.0f} %"] * has_undecided
            cells = (_format_displayed_estimate(rates[method]) for method in methods)
            name = f"all {about['level']}s" if system == ALL_TOGETHER else system
            lines.append([name, f"{labels:,}", *share, *cells])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            print_line("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        print_line(format_estimate_advice(about, reasons[:at]))
        if about["reason"]:
            print_line(f"note: {about['reason']}")


def _is_same_dataset_and_level(row: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return row["dataset"] == other["dataset"] and row["level"] == other["level"]


def _format_displayed_estimate(row: Mapping[str, Any]) -> str:
    from factaudit.audit.core.figure_formatting import format_percent_with_interval

    return "–" if row["rate"] is None else format_percent_with_interval(row, "rate")


def display_drawn_sample(sample: LabelSample, out: Path, pages: Sequence[Path]) -> None:
    """What was drawn, and what to do next."""
    plan = sample.plan
    rows = sample.rows[sample.rows["phase"] == len(plan.drawn) - 1]
    left = sum(plan.count_remaining_labels(name) for name in plan.shares)
    what = plan.level
    for dataset, part in rows.groupby("dataset"):
        n_systems, strata = part["system"].nunique(), format_count(part["stratum"].nunique(), "stratum", "strata")
        systems = f" of {format_count(n_systems, 'system')}" if n_systems else ", no systems,"
        print_line(f"{dataset}: {format_count(plan.drawn[-1][str(dataset)], what)}{systems} in {strata}")
    for path in pages:
        print_line(f"open {path} in a browser to label")
    print_line(str(out))
    if left:
        print_line(
            f"{left:,} of {plan.budget:,} labels remain. Label these claims first, then draw the others with "
            f"--then {out.name}"
        )


def display_annotator_agreement(
    agreement_rows: Sequence[dict[str, Any]],
    labels: pd.Series,
    rule: str,
    n_disagreements: int,
    undecided_reasons: Mapping[str, int],
) -> None:
    """Agreement of annotators, and what the label rule makes of their labels."""
    for row in agreement_rows:
        who = "all annotators" if row["annotator_a"] == "__all__" else f"{row['annotator_a']} and {row['annotator_b']}"
        told = [
            f"{name} {_format_displayed_agreement(row, key)}"
            for key, name in _AGREEMENT_FIGURES
            if row[key] is not None
        ]
        print_line(f"{who}, {row['n']:,} claims: {', '.join(told) or row['reason']}")
    counts = labels.value_counts()
    kinds = (f"{counts.get(1, 0):,} attributable", f"{counts.get(0, 0):,} unattributable")
    said = ", ".join(kinds) if rule != "mean" else f"mean {labels.mean():.3f}"
    print_line(f"labels by {rule}: {said}, {int(labels.isna().sum()):,} without")
    if undecided_reasons:
        reasons = ", ".join(f"{reason} {n:,}" for reason, n in undecided_reasons.items() if reason != "?")
        print_line(
            f"{format_count(sum(undecided_reasons.values()), 'claim')} undecided" + f": {reasons}" * bool(reasons)
        )
    if n_disagreements:
        print_line(f"{format_count(n_disagreements, 'claim')} {'has' if n_disagreements == 1 else 'have'} both labels")


_AGREEMENT_FIGURES = (("percent", "agreement"), ("kappa", "κ"), ("alpha", "α"))


def _format_displayed_agreement(agreement_row: Mapping[str, Any], figure: str) -> str:
    form = "{:.1%}" if figure == "percent" else "{:.2f}"
    text = form.format(agreement_row[figure])
    low, high = agreement_row[f"{figure}_low"], agreement_row[f"{figure}_high"]
    return text if low is None else f"{text} ({form.format(low)} to {form.format(high)})"
