"""Rows as people read them on a terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import isnan
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from factaudit.cli.terminal import say
from factaudit.cli.verb import answer
from factaudit.errors import FactauditError

if TYPE_CHECKING:
    import pandas as pd

    from factaudit.estimate.sample import Sample
    from factaudit.results import Results


#: What a verb that makes a run folder gives as JSON.
RUN = {
    "run": "string: the run folder",
    "report": "string: the report",
    "results": "string: results.json, which has every row of every audit",
    "signature": "string: of what was computed from what",
    "about": "object: the claims per dataset and the verdicts per evaluator, counted",
    "audits": "object: per audit, how many rows results.json has of it",
    "decisions": "array: evaluator, task, may (yes, no, cannot tell) and why",
    "findings": "array: severity (fail, warn, ok), statement, and what it rests on",
    "cost": "number or null: US dollars of the calls; null where a price is not known",
}


#: What a verb that reads tables gives of them as JSON.
TABLES = {
    "n_claims": "integer or null: null where there are none",
    "n_labelled": "integer or null: claims with a label",
    "datasets": "array: names",
    "systems": "array: names",
    "n_verdicts": "integer or null: null where there are none",
    "evaluators": "array: evaluator, n_verdicts, n_predictions",
}


def counted(claims: pd.DataFrame | None, verdicts: pd.DataFrame | None) -> dict[str, Any]:
    """What `TABLES` names, of tables of which either may not be there."""
    found: dict[str, Any] = {**dict.fromkeys(TABLES), "datasets": [], "systems": [], "evaluators": []}
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


def answer_run(results: Results, out: Path, **more: Any) -> None:
    """Give a run as JSON."""
    from factaudit.report.summary import decisions

    table = decisions(results.to_dict())
    tasks, rows = ([], []) if table is None else (table.columns[1:], table.rows)
    costs = [row.get("cost") for row in results.calls]
    answer(
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
            "findings": results.findings,
            "cost": None if None in costs else sum(costs),
            **more,
        }
    )


def show_results(results: Results, out: Path) -> None:
    """The report's opening, and how many findings there are; a `FactauditError` where every verdict failed."""
    from factaudit.report.summary import decisions, lead

    content = results.to_dict()
    first, *rest = lead(content) or [""]
    table = decisions(content)
    told = [first] if first else []
    if table is not None:
        for line in table.rows:
            uses = [f"{task}: {cell.text}" for task, cell in zip(table.columns[1:], line[1:], strict=True)]
            told.append(f"{line[0].text}: may it be used to … {'; '.join(uses)}")
    for paragraph in [*told, *rest]:
        say()
        say(click.wrap_text(paragraph, width=100))
    counts = Counter(finding["severity"] for finding in results.findings)
    say(f"\nfindings  {counts['fail']} fail, {counts['warn']} warn, {counts['ok']} ok: see the report")
    answer_run(results, out)
    fail_without_predictions(results)


def fail_without_predictions(results: Results) -> None:
    """Raise `FactauditError` where every verdict failed: the report says so too, but a script asks the exit code."""
    rows = [row for row in results.about.get("evaluators", []) if row.get("n_verdicts")]
    if rows and not any(row["n_ok"] or row["n_guessed"] for row in rows):
        names = ("error", "refused", "unparsed", "skipped")
        found = ", ".join(f"{n:,} {name}" for name in names if (n := sum(row[f"n_{name}"] for row in rows)))
        raise FactauditError(f"no verdict has a prediction ({found})")


def show_adjusted(rows: pd.DataFrame) -> None:
    """The rows of `factaudit.audit.core.adjust.adjust` as a table; below it what they rest on, and what is missing."""
    columns = ["dataset", "evaluator", "method", "threshold", "system", "n"]
    rates = ["predicted_error_rate", "adjusted_error_rate", "labelled_error_rate"]
    shown = rows[columns + rates].copy()
    for column in rates:
        shown[column] = [_figure(100 * rate, "{:.1f} %") for rate in rows[column].astype("float64")]
    if "adjusted_error_rate_low" in rows:
        ends = (rows[f"adjusted_error_rate_{end}"].astype("float64") for end in ("low", "high"))
        shown.insert(
            8, "interval", [_figure(100 * low, f"{{:.1f}}–{100 * high:.1f}") for low, high in zip(*ends, strict=True)]
        )
    shown["threshold"] = [_figure(threshold, "{:.3g}") for threshold in rows["threshold"].astype("float64")]
    say(shown.to_string(index=False))
    for (dataset, evaluator), of in rows.groupby(["dataset", "evaluator"], sort=False):
        tests = [
            f"{rate.upper()} p = {of[f'{rate}_p'].iloc[0]:.3f} (could miss one system "
            f"{100 * of[f'{rate}_missable'].iloc[0]:.0f} points off)"
            for rate in ("tpr", "tnr")
            if of[f"{rate}_p"].notna().iloc[0]
        ]
        said = "; ".join(tests) or "not tested: too few labelled systems"
        say(f"{dataset}, {evaluator}: does it judge all systems alike, as a correction supposes? {said}")
    for reason in rows["reason"].dropna().unique():
        say(f"–: {reason}")


def _figure(value: float, form: str) -> str:
    return "–" if isnan(value) else form.format(value)


def show_costs(rows: Sequence[dict[str, Any]]) -> None:
    """The rows of `factaudit.experiment.expected_cost`, three lines each, and their total."""
    if not rows:
        say("no evaluator of this experiment asks a language model: nothing to pay")
        return
    # Counted with the model's own tokenizer a figure is a bound; approximated, it is not.
    bounds = ["about" if row["counted"].startswith("approximately") else "at most" for row in rows]
    for row, bound in zip(rows, bounds, strict=True):
        say(f"{row['evaluator']}: {row['calls']:,} calls ({row['cached_calls']:,} more are cached)")
        most = row["max_completion_tokens"]
        replies = "replies of any length" if most is None else f"at most {most:,} completion tokens"
        say(f"    {row['prompt_tokens']:,} prompt tokens ({row['counted']}), {replies}")
        dated = f" (prices of {row['price_date']})" if row["price_date"] else ""
        say(f"    cost: {_money(row['cost'], bound)}{dated}{'; ' + row['reason'] if row['reason'] else ''}")
    costs = [row["cost"] for row in rows]
    total = None if None in costs else sum(costs)
    say(f"total: {_money(total, 'about' if 'about' in bounds else 'at most')}")


def _money(dollars: float | None, bound: str) -> str:
    return "unknown" if dollars is None else f"{bound} ${dollars:,.2f}"


def show_estimates(audits: Mapping[str, Sequence[dict[str, Any]]]) -> None:
    """Rates from few labels: what was predicted, what labels say, what is corrected; the order, and what to quote."""
    for about in audits["estimate_summary"]:
        mine = [row for row in audits["estimates"] if _same(row, about)]
        say(f"\n{about['dataset']}, {about['level']}s: {about['n']:,}, {about['n_labels']:,} of them labelled")
        if about["quote"] is None:
            say(f"{about['why']}{'; ' + about['reason'] if about['reason'] else ''}")
            continue
        methods = list(dict.fromkeys(row["method"] for row in mine))
        lines = [["system", "labels", *methods]]
        for system in dict.fromkeys(row["system"] for row in mine):
            rates = {row["method"]: row for row in mine if row["system"] == system}
            labels = next(iter(rates.values()))["n_labels"]
            lines.append([system, f"{labels:,}", *(_rate(rates[method]) for method in methods)])
        widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
        for line in lines:
            say("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip())
        best = [row for row in audits["estimate_ranks"] if _same(row, about)]
        if best:
            first = max(best, key=lambda row: row["p_best"])
            resolved = f"{100 * about['resolved']:.0f} % of the pairs of systems are told apart"
            say(f"best: {first['system']} with a probability of {100 * first['p_best']:.0f} %; {resolved}")
        if about["worth"] is not None:
            say(f"the scores made each label worth {about['worth']:.1f}")
        say(about["why"])
        if about["reason"]:
            say(f"note: {about['reason']}")


def _same(row: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return row["dataset"] == other["dataset"] and row["level"] == other["level"]


def _rate(row: Mapping[str, Any]) -> str:
    if row["rate"] is None:
        return "–"
    text = f"{100 * row['rate']:.1f} %"
    if row["rate_low"] is not None:
        text += f" ({100 * row['rate_low']:.1f}–{100 * row['rate_high']:.1f})"
    return text


def show_plan(rows: Sequence[dict[str, Any]], width: float, seconds_per_label: float, piloted: bool) -> None:
    """Widths by number of labels, the mean over systems, and the labels that the wanted width takes."""
    from factaudit.estimate.plan import PLANNED, labels_for

    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        mine = [row for row in rows if row["dataset"] == dataset]
        say(f"\n{dataset}, number of labels: mean width of the 95 % intervals in points, and its range")
        for method in PLANNED:
            cells = [
                f"{row['n_labels']:,}: "
                + "{} ({}–{})".format(*(_points(row[f"width{end}"]) for end in ("", "_low", "_high")))
                for row in mine
                if row["method"] == method and row["system"] == "__mean__" and row["width"] is not None
            ]
            say(f"  {method:<15} {'   '.join(cells) or 'no interval: fewer than 10 labels a system'}")
            middle, low, high = labels_for(mine, method, width)
            if middle is not None:
                span = f"{low or middle:,.0f} to {f'{high:,.0f}' if high else 'more than planned for'}"
                hours = middle * seconds_per_label / 3600
                say(f"  {'':<15} {100 * width:g} points: about {middle:,.0f} labels ({span}), {hours:.1f} hours")
            else:
                say(f"  {'':<15} {100 * width:g} points: more labels than planned for")
    if piloted:
        say("\nPilots of 66 labels told the width at 200 within 25 % in 57 to 93 of 100 cases:")
        say("take the range, and plan again on the way.")
    else:
        say("\nFrom stated TPR and TNR, the same for all systems: a pilot of 50 labels knows more.")


def _points(share: float) -> str:
    return f"{100 * share:.1f}"


def show_sample(sample: Sample, out: Path, pages: Sequence[Path]) -> None:
    """What was drawn, and what to do next."""
    plan = sample.plan
    rows = sample.rows[sample.rows["phase"] == len(plan.drawn) - 1]
    left = sum(plan.remaining(name) for name in plan.shares)
    what = "responses" if plan.level == "response" else "claims"
    for dataset, part in rows.groupby("dataset"):
        systems, strata = part["system"].nunique(dropna=False), part["stratum"].nunique()
        say(f"{dataset}: {plan.drawn[-1][str(dataset)]:,} {what} of {systems} systems in {strata} strata")
    if plan.same_documents:
        say("the same documents for all systems: differences are sharper (3 to 11 %), rates up to 29 % blunter")
    for path in pages:
        say(f"label on {path}")
    say(str(out))
    if left:
        say(f"{left:,} of {plan.budget:,} labels remain: when these are labelled, draw them with --then {out.name}")


def show_agreement(rows: Sequence[dict[str, Any]], labels: pd.Series, rule: str, n_disagreements: int) -> None:
    """Agreement of annotators, and what the label rule makes of their labels."""
    for row in rows:
        who = "all annotators" if row["annotator_a"] == "__all__" else f"{row['annotator_a']} and {row['annotator_b']}"
        told = [f"{name} {_agreement(row, key)}" for key, name in _AGREEMENT if row[key] is not None]
        say(f"{who}, {row['n']:,} claims: {', '.join(told) or row['reason']}")
    counts = labels.value_counts()
    kinds = (f"{counts.get(1, 0):,} attributable", f"{counts.get(0, 0):,} unattributable")
    said = ", ".join(kinds) if rule != "mean" else f"mean {labels.mean():.3f}"
    say(f"labels by {rule}: {said}, {int(labels.isna().sum()):,} without")
    if n_disagreements:
        say(f"{n_disagreements:,} claims have both labels")


_AGREEMENT = (("percent", "agreement"), ("kappa", "κ"), ("alpha", "α"))


def _agreement(row: Mapping[str, Any], key: str) -> str:
    form = "{:.1%}" if key == "percent" else "{:.2f}"
    text = form.format(row[key])
    low, high = row[f"{key}_low"], row[f"{key}_high"]
    return text if low is None else f"{text} ({form.format(low)} to {form.format(high)})"
