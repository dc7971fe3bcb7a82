"""The tables of a run's first screen: its evaluators, or the systems whose error rates were estimated."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from factaudit.audit.core.audit_declaration import AuditedRun
from factaudit.audit.core.decision_limits import (
    count_unscored_or_guessed,
    has_interval,
    read_decision_limits,
    unscored_share_for_decision,
)
from factaudit.audit.core.evaluator_comparison import find_overall_evaluator_rows
from factaudit.audit.core.figure_formatting import (
    PERCENT_COLUMN,
    UNDEFINED_MARK,
    format_audit_figure,
    format_whole_percent,
)
from factaudit.audit.core.finding_parts import MIN_SHARE_COUNT, format_first_finding_names
from factaudit.audit.core.result_rows import Row, is_total_key
from factaudit.audit.core.significance import read_confidence
from factaudit.audit.core.statements import Statement, make_statement
from factaudit.audit.estimates import add_labelled_rates_to_audit_estimates
from factaudit.audit.invariance import format_variant_failures
from factaudit.audit.quantification import list_error_rate_bias_rows, state_mean_absolute_bias
from factaudit.audit.ranking_checks import sum_ordered_pairs
from factaudit.text.display_text import format_count


def build_first_screen_evaluator_table(
    run: AuditedRun, ranked: Sequence[str]
) -> tuple[list[tuple[str, str]], list[list[str]]]:
    overall = find_overall_evaluator_rows(run.rows("rates"))
    names = [*ranked, *(name for name in overall if name not in ranked)]
    # Floors are no candidates: they have no line beside those that are.
    names = [name for name in names if name not in run.floors] or names
    if not names:
        return [], []
    errors, others = (
        max((n for name in names if (n := overall[name].get(key)) is not None), default=None)
        for key in ("n_unattributable", "n_attributable")
    )
    confidence, has_ci = 100 * read_confidence(run), any(has_interval(row, "bacc") for row in overall.values())
    of_errors = "100 errors" if is_said_as_share(run, errors) else format_count(errors or 0, "error")
    of_others = "of 100 correct" if is_said_as_share(run, others) else f"of {others:,} correct"
    heads = [
        ("", "evaluator"),
        ("balanced acc.", f"({confidence:.3g} % CI)") if has_ci else ("balanced", "accuracy"),
        ("misses, of", of_errors),
        ("false alarms", of_others),
        ("system error", "rates off by"),
        ("reversed,", "of ranked"),
        ("still passes,", "of 100 changed"),
        ("flips, of", "100 rewordings"),
    ]
    limit = read_decision_limits(run).max_unscored
    table = [
        [
            name,
            _format_first_screen_bacc_cell(overall[name], limit),
            _format_first_screen_mistakes_cell(run, overall[name], "tnr", "n_unattributable", limit, errors),
            _format_first_screen_mistakes_cell(run, overall[name], "tpr", "n_attributable", limit, others),
            _format_bias_cell(run, name),
            _format_first_screen_reversals_cell(run, name),
            *(format_variant_failures(run, name, expected) or UNDEFINED_MARK for expected in ("changed", "same")),
        ]
        for name in names
    ]
    shown = [at for at in range(len(heads)) if at == 0 or any(row[at] != UNDEFINED_MARK for row in table)]
    if len(shown) == 1:  # names alone say nothing
        return [], []
    return [heads[at] for at in shown], [[row[at] for at in shown] for row in table]


def list_first_screen_unscored_advice(run: AuditedRun, shown: Sequence[Row]) -> Iterator[tuple[str, Statement]]:
    """Of which evaluators of the table so many claims are unscored or guessed that it has bounds for figures."""
    most = read_decision_limits(run).max_unscored
    lacking = [row | {"n_lacking": count_unscored_or_guessed(row)} for row in shown]
    lacking = [row for row in lacking if unscored_share_for_decision(row) > most]
    if not lacking:
        return
    bounded = " “Between” is what they leave possible." * any(row.get("bacc_min") is not None for row in lacking)
    if len(lacking) == 1:
        text = "{row.n_lacking:number claim} of {row.evaluator} are unscored or guessed." + bounded
        yield "Beware", make_statement(text, row=lacking[0])
        return
    names = [make_statement("{row.n_lacking:number} of {row.evaluator}", row=row) for row in lacking]
    text = "many claims are unscored or guessed: {names}." + bounded
    yield "Beware", make_statement(text, names=format_first_finding_names(names))


def is_said_as_share(run: AuditedRun, n: int | None) -> bool:
    """Whether mistakes among ``n`` claims are said as a share of 100; a table of counts has rates alone."""
    return n is None or n >= MIN_SHARE_COUNT or bool(run.about.get("counts"))


def _format_first_screen_bacc_cell(row: Row, max_unscored: float) -> str:
    if row.get("bacc") is None:
        return UNDEFINED_MARK
    if unscored_share_for_decision(row) > max_unscored and row.get("bacc_min") is not None:
        return f"between {format_whole_percent(row['bacc_min'])} and {format_whole_percent(row['bacc_max'])}"
    if not has_interval(row, "bacc"):
        return format_whole_percent(row["bacc"])
    return "{} ({}–{})".format(*(format_whole_percent(row[f"bacc{end}"]) for end in ("", "_low", "_high")))


def _format_first_screen_mistakes_cell(
    run: AuditedRun, row: Row, key: str, n_key: str, max_unscored: float, heading_n: int | None
) -> str:
    """Mistakes of 100, as the heading says; of few claims their count, and of how many unless the heading says it."""
    if row.get(key) is None:
        return UNDEFINED_MARK
    if not is_said_as_share(run, row.get(n_key)):
        count = f"{count_mistakes(run, row, key, n_key):,}"
        return count if row[n_key] == heading_n else f"{count} of {row[n_key]:,}"
    if unscored_share_for_decision(row) > max_unscored and row.get(f"{key}_min") is not None:
        return f"{format_whole_percent(1 - row[f'{key}_max'])} to {format_whole_percent(1 - row[f'{key}_min'])}"
    return format_whole_percent(1 - row[key])


def count_mistakes(run: AuditedRun, row: Row, key: str, n_key: str) -> int:
    """How many scored claims of a class are judged wrongly, over all data sets."""
    parts = [each for each in run.per_dataset("rates", key) if each["evaluator"] == row["evaluator"]]
    return sum(round((1 - each[key]) * (each.get(n_key) or 0)) for each in parts)


def _format_bias_cell(run: AuditedRun, evaluator: str) -> str:
    rows = list_error_rate_bias_rows(run.rows("quantification"), evaluator)
    return f"{state_mean_absolute_bias(run, rows)} points" if rows else UNDEFINED_MARK


def _format_first_screen_reversals_cell(run: AuditedRun, evaluator: str) -> str:
    """Of the pairs that it and the labels order: to reverse none is no merit of who orders hardly any."""
    found = sum_ordered_pairs(run.rows("ranking"), evaluator)
    if found is None or not found["n_ordered"]:  # where labels order nothing, nothing could be reversed
        return UNDEFINED_MARK
    n_both = found["n_ordered_alike"] + found["n_reversed"]
    if found["n_reversed_min"] < found["n_reversed_max"]:
        return f"{found['n_reversed_min']:,} to {found['n_reversed_max']:,}"  # and so is how many it orders
    return f"{found['n_reversed']:,} of {n_both:,}" if n_both else "no order"


def build_first_screen_estimate_table(run: AuditedRun) -> tuple[list[tuple[str, str]], list[list[str]]]:
    """Of a run that estimates error rates and compares no evaluators: the systems with the rates to report."""
    quotes = {(row["dataset"], row["level"]): row["quote"] for row in run.rows("estimate_summary") if row.get("quote")}
    rows = add_labelled_rates_to_audit_estimates(run, run.rows("estimates"))
    rows = [row for row in rows if row.get("rate") is not None]
    predicted = {_place_estimate(row): row for row in rows if row["method"] == "raw"}
    quoted = [row for row in rows if quotes.get((row["dataset"], row["level"])) == row["method"]]
    place = {key: at for at, key in enumerate(quotes)}
    quoted.sort(key=lambda row: (place[row["dataset"], row["level"]], row["rate"]))
    mains = dict.fromkeys(str(row["main"]) for row in run.rows("estimate_summary") if row.get("quote"))
    heads = [
        ("", "system"),
        ("error rate, %", f"({100 * read_confidence(run):.3g} % CI)"),
        ("as", "predicted") if len(run.about.get("evaluators") or []) < 2 else ("as predicted by", " and ".join(mains)),
        ("by all", "labels"),
    ]
    of = {"dataset": run.rows("estimate_summary"), "level": quoted}  # a data set without rates is one of the run, too
    differing = [key for key, rows in of.items() if len({row[key] for row in rows}) > 1]
    table = [
        [
            ", ".join(
                f"all {row['level']}s" if is_total_key(row[key]) else str(row[key]) for key in (*differing, "system")
            ),
            _format_first_screen_rate_cell(row, "rate"),
            _format_first_screen_rate_cell(predicted.get(_place_estimate(row), {}), "rate"),
            _format_first_screen_rate_cell(row, "labelled_error_rate"),
        ]
        for row in quoted
    ]
    shown = [at for at in range(len(heads)) if any(row[at] != UNDEFINED_MARK for row in table)]
    return [heads[at] for at in shown], [[row[at] for at in shown] for row in table]


def _place_estimate(row: Row) -> tuple[str, str, str]:
    return row["dataset"], row["level"], row["system"]


def _format_first_screen_rate_cell(row: Row, key: str) -> str:
    """In percent; decimals stand where the interval is no wider than 10 points."""
    if row.get(key) is None:
        return UNDEFINED_MARK
    low, high = row.get(f"{key}_low"), row.get(f"{key}_high")
    if low is None or high is None:
        return format_audit_figure(PERCENT_COLUMN, row[key])
    texts = [
        format_audit_figure(PERCENT_COLUMN, value) if high - low <= 0.1 else format_whole_percent(value)
        for value in (row[key], low, high)
    ]
    return "{} ({}–{})".format(*texts)


def state_missed_errors_or_false_alarms(run: AuditedRun, row: Row, key: str, n_key: str) -> Statement:
    """``44 of 100 errors``; of few claims the count, ``3 of 12 errors``."""
    noun = "error" if key == "tnr" else "correct claim"
    if is_said_as_share(run, row.get(n_key)):
        max_unscored = read_decision_limits(run).max_unscored
        if unscored_share_for_decision(row) > max_unscored and row.get(f"{key}_min") is not None:
            return make_statement(f"{{row.{key}_max:rest}} to {{row.{key}_min:rest}} {noun}s", row=row)
        return make_statement(f"{{row.{key}:rest}} {noun}s", row=row)
    counted = row | {"n_wrong": count_mistakes(run, row, key, n_key)}
    return make_statement(f"{{counted.n_wrong:number}} of {{counted.{n_key}:number {noun}}}", counted=counted)
