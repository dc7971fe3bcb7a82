"""What should a reader do with these evaluators? The first screen of a run: a short table, then a line for each advice.

Terminal, report and notebook show the same screen. Every line follows from the rows of the audits, and what was not
computed is not mentioned. The table has one unit in each column: shares in percent, errors of rates in percentage
points, and pairs of systems. Where more claims are unscored than ``limits.max_unscored`` allows, a cell is the range of
what is possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from statistics import mean, median
from typing import Any, Literal

import scipy

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.audit import load_all_audits, make_audited_run
from factaudit.audit.core.audit_declaration import AuditedRun
from factaudit.audit.core.decision_limits import (
    count_unscored_or_guessed,
    has_interval,
    is_significantly_above,
    is_significantly_below,
    read_decision_limits,
    unscored_share_for_decision,
    widen_interval_for_decision_limits,
)
from factaudit.audit.core.evaluator_comparison import (
    find_datasets_of_lowest_and_highest_bacc,
    find_least_review_evaluator_row,
    find_overall_evaluator_rows,
    is_difference_open_by_unscored_claims,
    is_significantly_better_evaluator,
)
from factaudit.audit.core.figure_formatting import (
    PERCENT_COLUMN,
    UNDEFINED_MARK,
    format_audit_figure,
    format_limit_in_points,
    format_whole_percent,
)
from factaudit.audit.core.result_rows import MACRO_MEAN, Row, is_total_key
from factaudit.audit.core.significance import DEFAULT_CONFIDENCE, read_confidence, select_rows_beyond_limit
from factaudit.audit.decomposition import list_decomposition_advice
from factaudit.audit.estimates import DISTANCE_PER_WIDTH, add_labelled_rates_to_audit_estimates
from factaudit.audit.input_description import describe_verified_facts, uses_trial_model
from factaudit.audit.invariance import format_variant_failures, list_invariance_advice
from factaudit.audit.quantification import decide_on_quantification, list_error_rate_bias_rows
from factaudit.audit.quantification_checks import list_quantification_bias_rows, select_significant_biases
from factaudit.audit.ranking_checks import (
    decide_on_ranking_systems,
    list_ranking_reversal_rows,
    sum_ordered_pairs,
)
from factaudit.audit.triage import REVIEWED
from factaudit.text.display_text import format_count

#: The title of a run that has none of its own.
DEFAULT_TITLE = "Evaluators compared"
#: The screen has at most so many evaluators, or so many systems where it shows estimates.
MAX_EVALUATORS, MAX_SYSTEMS = 8, 12
#: With fewer labelled errors (or correct claims), the only advice is to label more.
MIN_LABELS = 5
#: With fewer, a share stands with the count behind it, and a line says that it can change a lot.
ENOUGH_LABELS = 30


@dataclass(frozen=True)
class Advice:
    """A line below the table: what it is about (``Use``, ``Avoid``, ``Not for``, ...), and one or two sentences."""

    word: str
    sentence: str

    @property
    def kind(self) -> Literal["good", "bad", "care"]:
        """How the word is coloured and marked."""
        if self.word in ("Use", "Good for", "Instead"):
            return "good"
        return "bad" if self.word in ("Avoid", "Not for") else "care"


@dataclass(frozen=True)
class Screen:
    """``columns``: headings of two lines each, ``""`` for an empty one; ``rows``: a cell for each. Without columns no
    evaluator has a figure. ``more_rows``: the rows that do not fit."""

    size: str
    columns: list[tuple[str, str]]
    rows: list[list[str]]
    more_rows: list[list[str]]
    advice: list[Advice]

    @property
    def is_answer(self) -> bool:
        """Whether the screen says anything; for an engine's run its own sentences do."""
        return bool(self.columns or self.advice)

    def describe_shown_rows(self) -> str:
        """``The best 8 of 12 evaluators``, where `rows` are not all."""
        order, noun = ("first", "rates") if self.columns[0][1] == "system" else ("best", "evaluators")
        return f"The {order} {len(self.rows)} of {len(self.rows) + len(self.more_rows)} {noun}"


def compose_screen(results: Mapping[str, Any]) -> Screen:
    """The first screen of a ``results.json``'s content."""
    run = make_audited_run(results["audits"], results["about"])
    ranked = rank_evaluators(run)
    columns, rows = tabulate_evaluators(run, ranked)
    most = MAX_EVALUATORS
    if columns or not run.rows("estimates"):
        advice = [*list_engine_advice(run), *_advise_on_evaluators(run, ranked), *_advise_on_variants(run)]
    else:
        columns, rows = tabulate_estimates(run)
        advice, most = list(_advise_on_estimates(run)), MAX_SYSTEMS
    return Screen(describe_size(run), columns, rows[:most], rows[most:], advice)


def rank_evaluators(run: AuditedRun) -> list[str]:
    """The evaluators from the best on, by the first audit that can order them; floors come last."""
    for name, audit in load_all_audits().items():
        if audit.best is not None and (found := audit.best(run.rows(name))):
            return sorted(found, key=run.floors.__contains__)
    return []


# ------------------------------------------------------------------------------------------------------------ the size


def describe_size(run: AuditedRun) -> str:
    """How many evaluators, claims, systems, labels and errors the figures rest on."""
    claims, evaluators = (run.about.get(key) or [] for key in ("claims", "evaluators"))
    if run.about.get("counts"):
        return f"{format_count(len(evaluators), 'evaluator')}, by published error rates; {run.about['counts']}."
    if not claims:
        return ""
    labelled, attributable, total = (
        sum(row.get(key) or 0 for row in claims) for key in ("n_labelled", "n_attributable", "n_claims")
    )
    n_floors = sum(bool(row.get("floor")) for row in evaluators)
    who = format_count(len(evaluators) - n_floors, "evaluator") if len(evaluators) > n_floors else ""
    if n_floors:
        floors = format_count(n_floors, "baseline that reads nothing", "baselines that read nothing")
        who = " and ".join(filter(None, [who, floors]))
    what = f"{format_count(total, 'claim')} in {format_count(len(claims), 'data set')}"
    if run.rows("dfactscore"):
        who, what, total = describe_verified_facts(run)
    errors = labelled - attributable
    if not labelled:
        state = "none of them labelled"
    elif errors == labelled:
        state = f"{'all' if labelled == total else f'{labelled:,}'} labelled, all as errors"
    else:
        state = f"{'all' if labelled == total else f'{labelled:,}'} labelled, {errors:,} of them as errors"
    text = f"{', '.join(filter(None, [who, what]))}, {state}."
    are_means = any(row["dataset"] == MACRO_MEAN for row in find_overall_evaluator_rows(run.rows("rates")).values())
    return text + f" Figures are averages over the {len(claims):,} data sets." * (are_means and len(claims) > 1)


# ----------------------------------------------------------------------------------------------------------- the table


def tabulate_evaluators(run: AuditedRun, ranked: Sequence[str]) -> tuple[list[tuple[str, str]], list[list[str]]]:
    """Headings and a row for each evaluator, the best first. A column in which nothing is known is left out."""
    overall = find_overall_evaluator_rows(run.rows("rates"))
    given = [] if overall or run.rows("estimates") else _rank_by_error_rates(run)
    names = list(dict.fromkeys([*ranked, *overall, *given]))
    names = [name for name in names if name not in run.floors] or names
    has_ci = any(has_interval(row, "bacc") for row in overall.values())
    heads = [
        ("", "evaluator"),
        ("balanced accuracy", f"({100 * read_confidence(run):.3g} % CI)") if has_ci else ("balanced", "accuracy"),
        ("misses this", "share of errors"),
        ("flags this share", "of correct claims"),
        ("error rates off", "by, on average"),
        ("and at worst", "by"),
        ("agrees on", "system pairs"),
        ("Kendall's τ", "of systems"),
        ("still passes", "after an error"),
        ("changes after", "a rewording"),
    ]
    table = [
        [
            name,
            _format_share(run, overall.get(name, {}), "bacc", with_interval=True),
            _format_mistakes(run, overall.get(name, {}), "tnr"),
            _format_mistakes(run, overall.get(name, {}), "tpr"),
            _format_mean_bias(run, name),
            UNDEFINED_MARK if overall else _format_worst_bias(run, name),
            _format_agreeing_pairs(run, name),
            UNDEFINED_MARK if overall else _format_mean_tau(run, name),
            *(_format_failures(run, name, expected) for expected in ("changed", "same")),
        ]
        for name in names
    ]
    shown = [at for at in range(len(heads)) if at == 0 or any(row[at] != UNDEFINED_MARK for row in table)]
    if len(shown) == 1:
        return [], []
    return [heads[at] for at in shown], [[row[at] for at in shown] for row in table]


def _rank_by_error_rates(run: AuditedRun) -> list[str]:
    """Where only error rates are known: the evaluators whose rates are nearest to the labelled ones first."""
    off = {}
    for name in [row["name"] for row in run.about.get("evaluators") or []]:
        rows = list_error_rate_bias_rows(run.rows("quantification"), name)
        off[name] = mean(abs(row["bias"]) for row in rows) if rows else 1.0
    return sorted(off, key=off.__getitem__)


def _format_share(run: AuditedRun, row: Row, key: str, with_interval: bool = False) -> str:
    if row.get(key) is None:
        return UNDEFINED_MARK
    if _is_open(run, row) and row.get(f"{key}_min") is not None:
        ends = dict.fromkeys(format_whole_percent(row[f"{key}_{end}"]) for end in ("min", "max"))
        return f"{' to '.join(ends)} %"
    text = f"{format_whole_percent(row[key])} %"
    if with_interval and has_interval(row, key):
        text += f" ({format_whole_percent(row[f'{key}_low'])}–{format_whole_percent(row[f'{key}_high'])})"
    return text


#: What is wrong where TNR, or TPR, is low: the rate of mistakes, the labels it rests on, and their noun.
_MISTAKES = {"tnr": ("fpr", "n_unattributable", "error"), "tpr": ("fnr", "n_attributable", "correct claim")}


def _format_mistakes(run: AuditedRun, row: Row, right: str) -> str:
    """The share of mistakes; of few labels with the count, which a mean over data sets does not have."""
    wrong, n_key, _ = _MISTAKES[right]
    text = _format_share(run, row, wrong)
    n = row.get(n_key)
    if text == UNDEFINED_MARK or _is_open(run, row) or row["dataset"] == MACRO_MEAN or n is None or n >= ENOUGH_LABELS:
        return text
    return f"{text} ({round(row[wrong] * n):,} of {n:,})"


def _format_mean_bias(run: AuditedRun, evaluator: str) -> str:
    rows = list_error_rate_bias_rows(run.rows("quantification"), evaluator)
    if not rows:
        return UNDEFINED_MARK
    whole = {key: sum(row.get(key) or 0 for row in rows) for key in ("n", "n_unscored", "n_guessed")}
    if not _is_open(run, whole) or any(row.get("bias_min") is None for row in rows):
        return _format_points(mean(abs(row["bias"]) for row in rows))
    least = mean(max(row["bias_min"], -row["bias_max"], 0.0) for row in rows)
    most = mean(max(abs(row["bias_min"]), abs(row["bias_max"])) for row in rows)
    return f"{format_whole_percent(least)} to {_format_points(most)}"


def _format_worst_bias(run: AuditedRun, evaluator: str) -> str:
    rows = list_error_rate_bias_rows(run.rows("quantification"), evaluator)
    return _format_points(max(abs(row["bias"]) for row in rows)) if rows else UNDEFINED_MARK


def _format_agreeing_pairs(run: AuditedRun, evaluator: str) -> str:
    """Of all pairs of systems: an evaluator that finds no difference agrees only where the labels find none."""
    found = sum_ordered_pairs(run.rows("ranking"), evaluator)
    if found is None or not found["n_ordered"]:
        return UNDEFINED_MARK
    ends = dict.fromkeys(f"{found['n_pairs'] - found[f'n_not_alike_{end}']:,}" for end in ("max", "min"))
    return f"{' to '.join(ends)} of {found['n_pairs']:,}"


def _format_mean_tau(run: AuditedRun, evaluator: str) -> str:
    taus = [row["kendall_tau"] for row in run.per_dataset("ranking", "kendall_tau") if row["evaluator"] == evaluator]
    return f"{mean(taus):.2f}".replace("-", "−") if taus else UNDEFINED_MARK


def _format_failures(run: AuditedRun, evaluator: str, expected: str) -> str:
    return format_variant_failures(run, evaluator, expected) or UNDEFINED_MARK


def tabulate_estimates(run: AuditedRun) -> tuple[list[tuple[str, str]], list[list[str]]]:
    """A row for each system with the rate to report, where a run estimates rates and compares no evaluators."""
    summary = [row for row in run.rows("estimate_summary") if row.get("quote")]
    methods = {(row["dataset"], row["level"]): row["quote"] for row in summary}
    rows = add_labelled_rates_to_audit_estimates(run, run.rows("estimates"))
    rows = [row for row in rows if row.get("rate") is not None]
    predicted = {_place(row): row for row in rows if row["method"] == "raw"}
    quoted = [row for row in rows if methods.get((row["dataset"], row["level"])) == row["method"]]
    order = {place: at for at, place in enumerate(methods)}
    quoted.sort(key=lambda row: (order[row["dataset"], row["level"]], row["rate"]))
    mains = " and ".join(dict.fromkeys(str(row["main"]) for row in summary))
    heads = [
        ("", "system"),
        ("estimated error", f"rate, % ({100 * read_confidence(run):.3g} % CI)"),
        ("predicted", f"by {mains}"),
        ("by all", "labels"),
    ]
    several = [key for key in ("dataset", "level") if len({row[key] for row in quoted}) > 1]
    table = [
        [
            ", ".join(
                f"all {row['level']}s" if is_total_key(row[key]) else str(row[key]) for key in (*several, "system")
            ),
            _format_rate(row, "rate"),
            _format_rate(predicted.get(_place(row), {}), "rate"),
            _format_rate(row, "labelled_error_rate"),
        ]
        for row in quoted
    ]
    shown = [at for at in range(len(heads)) if any(row[at] != UNDEFINED_MARK for row in table)]
    return [heads[at] for at in shown], [[row[at] for at in shown] for row in table]


def _format_rate(row: Row, key: str) -> str:
    """In percent, with a decimal where the interval is no wider than 10 points."""
    if row.get(key) is None:
        return UNDEFINED_MARK
    if not has_interval(row, key):
        return format_audit_figure(PERCENT_COLUMN, row[key])
    low, high = row[f"{key}_low"], row[f"{key}_high"]
    texts = [
        format_audit_figure(PERCENT_COLUMN, value) if high - low <= 0.1 else format_whole_percent(value)
        for value in (row[key], low, high)
    ]
    return "{} ({}–{})".format(*texts)


# ---------------------------------------------------------------------------------------------------------- the advice


def list_engine_advice(run: AuditedRun) -> Iterator[Advice]:
    """What keeps a reader from using the scores of an engine."""
    yield from starmap(Advice, list_decomposition_advice(run))
    for row in run.about.get("evaluators") or []:
        if uses_trial_model(row):
            yield Advice("Beware", f"The model of {row['name']} is only for trying factaudit; ignore its figures.")
            return


def _advise_on_evaluators(run: AuditedRun, ranked: Sequence[str]) -> Iterator[Advice]:
    overall = find_overall_evaluator_rows(run.rows("rates"))
    rows = [overall[name] for name in ranked if name in overall and name not in run.floors]
    yield from _advise_to_label(run, rows)
    if not rows:
        yield from _advise_on_counts(run)
    if not rows or not _has_enough_labels(rows):
        yield from _advise_on_unscored(run, rows)
        return
    if not any(has_interval(row, "bacc") for row in rows):
        yield Advice("Beware", "No intervals were computed, so differences may be due to chance.")
        yield from _advise_on_unscored(run, rows)
        return
    useful = [row for row in rows if is_significantly_above(row, "bacc", 0.5)]
    if not useful:
        yield Advice("Avoid", _state_none_useful(rows))
        yield from _advise_to_beware(run, rows[:1], rows)
        return
    best, *others = useful
    alike = [best, *(row for row in others if not is_significantly_better_evaluator(run, best, row["evaluator"]))]
    yield Advice("Use", _state_recommended(run, rows, useful, alike))
    yield from _advise_to_avoid(run, [row for row in rows if row not in alike])
    yield from _advise_on_single_errors(run, alike, rows)
    yield from _advise_on_error_rates(run, [row["evaluator"] for row in alike])
    yield from _advise_on_order(run, [row["evaluator"] for row in alike])
    yield from _advise_to_beware(run, alike, rows)
    for advise in filter(None, [audit.advice for audit in load_all_audits().values()]):
        yield from starmap(Advice, advise(run, [row["evaluator"] for row in alike]))


def _advise_on_counts(run: AuditedRun) -> Iterator[Advice]:
    """Where only error rates are known: how far the best ones are off, and whether that can be tested."""
    names = _rank_by_error_rates(run)
    rows = list_error_rate_bias_rows(run.rows("quantification"), names[0]) if names else []
    if any(has_interval(row, "bias") for row in rows):
        yield from _advise_on_error_rates(run, names[:1])
        yield from _advise_on_order(run, names[:1])
    elif rows:
        most = read_decision_limits(run).max_bias
        far = sum(abs(row["bias"]) > most for row in rows)
        text = f"{names[0]} comes closest to the labelled error rates. Of its {format_count(len(rows), 'rate')}, "
        text += f"{f'{far:,}' if far else 'none'} {'is' if far <= 1 else 'are'} off by more than "
        text += f"{format_limit_in_points(most)} points. There are no intervals, so differences may be due to chance."
        yield Advice("Beware", text)


def _has_enough_labels(rows: Sequence[Row]) -> bool:
    """Whether each class has labels enough for advice; published rates come without counts."""
    counts = [row.get(key) for row in rows for key in ("n_unattributable", "n_attributable")]
    return all(
        max(some, default=MIN_LABELS) >= MIN_LABELS
        for some in ([n for n in counts[at::2] if n is not None] for at in (0, 1))
    )


def _advise_to_label(run: AuditedRun, rows: Sequence[Row]) -> Iterator[Advice]:
    claims = run.about.get("claims") or []
    if not claims:
        return
    labelled, correct, total = (
        sum(row.get(key) or 0 for row in claims) for key in ("n_labelled", "n_attributable", "n_claims")
    )
    errors = labelled - correct
    how = "label a sample (factaudit sample)" if labelled < total else "add claims and label them"
    if not labelled:
        if run.about.get("evaluators"):
            text = "No claim is labelled, so nobody can say which verdicts are right. First "
            yield Advice("Label more", text + how + ".")
    elif min(errors, correct) < MIN_LABELS:
        found = f"{format_count(errors, 'labelled error')} and {format_count(correct, 'labelled correct claim')}"
        lacking = [("errors are missed", errors), ("correct claims are flagged", correct)]
        lacking_text = " and how many ".join(what for what, n in lacking if n < MIN_LABELS)
        text = f"There are only {found}, too few to tell how many {lacking_text}."
        if not min(errors, correct):
            text = f"All {labelled:,} labelled claims are {'errors' if errors else 'correct'}, so nobody can tell how "
            text += f"many {lacking_text}."
        yield Advice("Label more", f"{text} Aim for at least {ENOUGH_LABELS} of each: {how}.")
    elif rows and not _has_enough_labels(rows):
        text = "Most labelled claims have no verdict, so there is too little to compare: judge them again."
        yield Advice("Judge", text)


def _state_none_useful(rows: Sequence[Row]) -> str:
    if len(rows) == 1:
        return f"{rows[0]['evaluator']} is not significantly better than guessing."
    return f"None of the {len(rows)} evaluators is significantly better than guessing."


def _state_recommended(run: AuditedRun, rows: Sequence[Row], useful: Sequence[Row], alike: Sequence[Row]) -> str:
    """Which evaluator to use, how sure that is, and whether it knows these data from its training."""
    names = [row["evaluator"] for row in alike]
    worse = [row["evaluator"] for row in rows if is_significantly_better_evaluator(run, alike[0], row["evaluator"])]
    if len(rows) == 1:
        text = f"{names[0]} is significantly better than guessing."
    elif len(alike) > 1:
        is_open = any(is_difference_open_by_unscored_claims(run, alike[0], name) for name in names[1:])
        if len(alike) == 2:
            text = f"{names[0]} or {names[1]}; the difference between them is not significant"
        else:
            text = f"{names[0]}; it is not significantly more accurate than {_join_names(names[1:])}"
        text += ", or depends on the unscored claims." if is_open else "."
        if len(alike) == 2:
            text += _state_trade_off(alike)
    elif len(worse) == len(rows) - 1:
        text = f"{names[0]}; it is significantly more accurate than {'the others' if len(worse) > 1 else worse[0]}."
    elif len(useful) == 1:
        text = f"{names[0]}; only this one is significantly better than guessing."
    else:
        text = f"{names[0]}; it is significantly more accurate than {_join_names(worse)}."
    trained = [name for name in names if _is_trained_on(run, name)]
    if trained:
        who = "It was" if len(names) == 1 else "Both were" if len(trained) == 2 == len(names) else ""
        who = who or f"{_join_names(trained)} {'was' if len(trained) == 1 else 'were'}"
        text += f" {who} trained on this benchmark, so expect less on your data."
    return text


def _state_trade_off(alike: Sequence[Row]) -> str:
    """Where one of two misses fewer errors and the other raises fewer false alarms, both significantly."""
    better = {}
    for key in ("tnr", "tpr"):
        low, high = sorted(alike, key=lambda row: row[key] or 0.0)
        low_ends, high_ends = (widen_interval_for_decision_limits(row, key) for row in (low, high))
        if low_ends is None or high_ends is None or low_ends[1] >= high_ends[0]:
            return ""
        better[key] = high["evaluator"]
    if better["tnr"] == better["tpr"]:
        return ""
    return f" {better['tnr']} misses fewer errors, {better['tpr']} raises fewer false alarms."


def _is_trained_on(run: AuditedRun, evaluator: str) -> bool:
    """Whether an evaluator was trained on data of this run: ``RAGTruth`` is the data of ``RAGTruth-QA``."""
    datasets = [row["dataset"].casefold() for row in run.about.get("claims") or []]
    trained = [
        name.casefold()
        for row in run.about.get("evaluators") or []
        if row["name"] == evaluator
        for name in row.get("trained_on") or []
    ]
    return any(dataset.startswith(name) for dataset in datasets for name in trained)


def _advise_to_avoid(run: AuditedRun, worse: Sequence[Row]) -> Iterator[Advice]:
    """Evaluators that are wrong on most errors, or on most correct claims, or may be guessing."""
    reasons = []
    for row in worse:
        name = row["evaluator"]
        if is_significantly_below(row, "tpr", 0.5):
            reasons.append(f"{name}: it flags {_format_mistakes(run, row, 'tpr')} of the correct claims")
        elif is_significantly_below(row, "tnr", 0.5):
            reasons.append(f"{name}: it misses {_format_mistakes(run, row, 'tnr')} of the errors")
        elif has_interval(row, "bacc") and not is_significantly_above(row, "bacc", 0.5):
            reasons.append(f"{name}: it is not significantly better than guessing")
    if reasons:
        rest = f"; and {len(reasons) - 2} more" if len(reasons) > 2 else ""
        yield Advice("Avoid", "; ".join(reasons[:2]) + rest + ".")


def _advise_on_single_errors(run: AuditedRun, alike: Sequence[Row], rows: Sequence[Row]) -> Iterator[Advice]:
    least = read_decision_limits(run).min_rate
    limit = format_limit_in_points(least)
    fit = [row["evaluator"] for row in alike if all(is_significantly_above(row, key, least) for key in ("tpr", "tnr"))]
    if fit:
        text = f"finding single errors: {_join_names(fit)} {'finds' if len(fit) == 1 else 'find'} significantly more "
        yield Advice(
            "Good for", text + f"than {limit} % of the errors and {_verb(fit, 'pass')} as many correct claims."
        )
        return
    for right, verb, what in (("tnr", "misses", "of them"), ("tpr", "flags", "of the correct claims")):
        if all(is_significantly_below(row, right, least) for row in alike):
            first, *others = sorted(alike, key=lambda row: -row[right])
            text = f"finding single errors: {first['evaluator']} {verb} {_format_mistakes(run, first, right)} {what}"
            if len(others) == 1:
                text += f", {others[0]['evaluator']} {_format_mistakes(run, others[0], right)}"
            elif others:
                text += ", and the others even more"
            yield Advice("Not for", text + ".")
            break
    yield from _advise_on_review(run, [row["evaluator"] for row in alike])


def _advise_on_review(run: AuditedRun, evaluators: Sequence[str]) -> Iterator[Advice]:
    """Which claims people should review, by the scores of one of these evaluators: the one that finds most errors."""
    rows = find_overall_evaluator_rows(run.rows("triage"))
    able = [rows[name] for name in evaluators if name in rows and rows[name].get("errors_found") is not None]
    if not able:
        return
    best = max(able, key=lambda row: row["errors_found"])
    text = f"review the lowest scores first: {best['evaluator']}'s lowest {format_whole_percent(REVIEWED)} % contain "
    text += f"{format_whole_percent(best['errors_found'])} % of the errors."
    if (row := find_least_review_evaluator_row(run, [best["evaluator"]])) is not None:
        text += f" If you review the lowest {format_whole_percent(row['review_share'])} %, at most "
        text += f"{format_limit_in_points(row['max_error'])} % of the other claims are errors "
        text += f"({format_limit_in_points(row['confidence'])} % confidence)."
    yield Advice("Instead", text)


def _advise_on_error_rates(run: AuditedRun, evaluators: Sequence[str]) -> Iterator[Advice]:
    """Whether predicted error rates of systems can be published, and what to publish instead."""
    most = read_decision_limits(run).max_bias
    limit = format_limit_in_points(most)
    tested = {
        name: rows
        for name in evaluators
        if (rows := [row for row in list_quantification_bias_rows(run) if row["evaluator"] == name])
    }
    answers = {name: answer.may for name in tested if (answer := decide_on_quantification(run, name)) is not None}
    far, far_sets = select_significant_biases(run, most)
    off = {name: [row for row in far if row["evaluator"] == name] for name in answers}
    off_sets = {name: [row for row in far_sets if row["evaluator"] == name] for name in answers}
    unfit = [name for name in answers if answers[name] != "yes" and (off[name] or off_sets[name])]
    unknown = [name for name in answers if answers[name] == "cannot tell" and name not in unfit]
    fit = [name for name in answers if answers[name] == "yes"]
    if fit:
        text = f"publishing error rates: every rate of {_join_names(fit)} is significantly within {limit} points."
        yield Advice("Good for", text)
    told = [_state_far_rates(run, name, off[name] or off_sets[name], tested[name]) for name in unfit]
    if told:
        text = f"publishing error rates as they are: {told[0]}, significantly more than the {limit} allowed"
        text += f"; {_join_names(told[1:])}." if told[1:] else "."
        yield Advice("Not for", text + _state_labels_needed(tested, unknown, most))
    elif unknown:
        text = "There are too few labels to tell whether predicted error rates can be published."
        yield Advice("Beware", text + _state_labels_needed(tested, unknown, most, is_alone=True))
    yield from _advise_to_correct_rates(run, evaluators[0], bool(told or unknown))


def _state_far_rates(run: AuditedRun, name: str, off: Sequence[Row], tested: Sequence[Row]) -> str:
    """``one of a's 12 error rates is off by 23 points``."""
    worst = max(off, key=lambda row: abs(row["bias"]))
    size = _format_bias(run, worst)
    is_counted = any(row is worst for row in tested)
    if is_counted and len(off) > 1:
        return f"{len(off)} of {name}'s {len(tested)} error rates{_count_places(tested)} are off by up to {size}"
    if is_counted and len(tested) > 1:
        return f"the worst of {name}'s {len(tested)} error rates{_count_places(tested)} is off by {size}"
    place = worst["dataset"] if worst["system"] == ALL_TOGETHER else f"{worst['system']} on {worst['dataset']}"
    return f"{name}'s error rate for {place} is off by {size}"


def _count_places(tested: Sequence[Row]) -> str:
    """`` (6 systems on 2 data sets)``; nothing where there is one data set."""
    systems, datasets = ({row[key] for row in tested} for key in ("system", "dataset"))
    return f" ({len(systems)} systems on {len(datasets)} data sets)" if min(len(systems), len(datasets)) > 1 else ""


def _state_labels_needed(
    tested: Mapping[str, Sequence[Row]], unknown: Sequence[str], limit: float, is_alone: bool = False
) -> str:
    """How many labels a system would let the interval of a typical rate's error end at the limit."""
    if not unknown:
        return ""
    rows = [row for name in unknown for row in tested[name] if has_interval(row, "bias") and row.get("n")]
    text = "" if is_alone else f" For {_join_names(unknown)} there are too few labels to tell"
    needed = median(row["n"] * ((row["bias_high"] - row["bias_low"]) / 2 / limit) ** 2 for row in rows) if rows else 0
    have = median(row["n"] for row in rows) if rows else 0
    if needed <= have:
        return f"{text}." if text else ""
    each = " per system" * any(row["system"] != ALL_TOGETHER for row in rows)
    each += " and data set" * (bool(each) and len({row["dataset"] for row in rows}) > 1)
    how_many = f"to know how far a rate is off to within ±{format_limit_in_points(limit)} points takes about "
    how_many += f"{_round_up(needed):,}{' labels' * is_alone}{each}, and there are {have:,.0f}."
    return f"{text}: {how_many}" if text else f" {how_many[0].upper()}{how_many[1:]}"


def _advise_to_correct_rates(run: AuditedRun, evaluator: str, is_doubtful: bool) -> Iterator[Advice]:
    """Correct the rates by labels, where labels are expected to bring them nearer than they are as predicted."""
    summary = [row for row in run.rows("estimate_summary") if row.get("quote") and row.get("width") is not None]
    level = _select_level(summary)
    summary = [row for row in summary if row["level"] == level]
    if not summary:
        if is_doubtful and run.about.get("claims"):
            text = (
                "for new claims, label some of them (about 100 per data set to begin with): factaudit sample chooses "
            )
            text += "them, and factaudit estimate gives each error rate a 95 % CI."
            yield Advice("Instead", text)
        return
    estimated = [row for row in _list_quoted_estimates(run) if row["level"] == level]
    known = [row for row in estimated if row.get("labelled_error_rate") is not None]
    held = [row for row in known if row["rate_low"] <= row["labelled_error_rate"] <= row["rate_high"]]
    # Where the truth is known and too few intervals contain it, their widths promise too much.
    if scipy.special.bdtr(len(held), len(known), DEFAULT_CONFIDENCE) < 1 - DEFAULT_CONFIDENCE:
        return
    widths = {_place(row): row["rate_high"] - row["rate_low"] for row in estimated}
    places = {(row["dataset"], row["level"], row["system"]) for row in estimated}
    biased = [
        row
        for row in list_error_rate_bias_rows(run.rows("quantification"), evaluator)
        if (row["dataset"], "claim", row["system"]) in places
    ]
    expected = DISTANCE_PER_WIDTH * mean(widths[_place(row)] for row in estimated)
    raw = mean(abs(row["bias"]) for row in biased) if biased else None
    if raw is None or expected >= raw:
        return
    n_labels = {row["n_labels"] for row in summary}
    labels = " to ".join(f"{n:,}" for n in sorted({min(n_labels), max(n_labels)}))
    text = f"correct them with human labels (factaudit sample, then factaudit estimate): with {labels} labels"
    text += f"{' per data set' * (len(summary) > 1)}, they are expected to be "
    text += f"off by {_format_points(expected)} on average instead of {format_whole_percent(raw)}."
    yield Advice("Instead", text)


def _advise_on_order(run: AuditedRun, evaluators: Sequence[str]) -> Iterator[Advice]:
    """Whether systems come out in the right order."""
    reversing = list_ranking_reversal_rows(run)
    turned = {name: sum(row["n_reversed"] for row in reversing if row["evaluator"] == name) for name in evaluators}
    wrong = [f"{name} puts {format_count(n, 'pair')} in the wrong order" for name, n in turned.items() if n]
    counts = sum_ordered_pairs(run.rows("ranking"), evaluators[0])
    if wrong:
        yield Advice("Not for", f"ranking systems: {_join_names(wrong)}.")
    elif counts is not None and counts["n_ordered"] < read_decision_limits(run).min_orderable * counts["n_pairs"]:
        pairs = format_count(counts["n_pairs"], "pair")
        n = f"only {counts['n_ordered']:,}" if counts["n_ordered"] else "none"
        text = f"The labels differ significantly for {n} of {pairs} of systems, too few to judge a ranking by."
        yield Advice("Beware", text)
    answers = {name: decide_on_ranking_systems(run, name) for name in evaluators}
    fit = [name for name, answer in answers.items() if answer is not None and answer.may == "yes"]
    if fit:
        yield Advice("Good for", f"ranking systems: {_join_names([_state_agreeing_pairs(run, name) for name in fit])}.")
    elif answers[evaluators[0]] is not None and counts is not None and counts["n_one_sided"] and _reverses_none(counts):
        text = f"Rankings: {_state_agreeing_pairs(run, evaluators[0])}. On the others, one of the two finds a "
        yield Advice("Beware", text + "significant difference and the other does not; no pair is reversed.")


def _reverses_none(counts: Row) -> bool:
    """Whether no pair is in the opposite order, significantly or not, whatever the missing verdicts had been."""
    return not counts["n_reversed_max"]


def _state_agreeing_pairs(run: AuditedRun, evaluator: str) -> str:
    return f"{evaluator} and the labels agree on {_format_agreeing_pairs(run, evaluator)} pairs of systems"


def _advise_to_beware(run: AuditedRun, alike: Sequence[Row], rows: Sequence[Row]) -> Iterator[Advice]:
    yield from _advise_on_unscored(run, rows)
    best = alike[0]
    few = [
        f"{best[key]:,} labelled {noun}s"
        for _, key, noun in _MISTAKES.values()
        if best.get(key) is not None and best[key] < ENOUGH_LABELS
    ]
    if few:
        yield Advice("Beware", f"These figures rest on only {_join_names(few)} and can change a lot with more.")
    elif best["dataset"] == MACRO_MEAN:
        yield from _advise_on_small_datasets(run, best["evaluator"])
    apart = find_datasets_of_lowest_and_highest_bacc(run.rows("rates"), best["evaluator"])
    if apart is not None:
        worst, top = apart
        text = f"{worst['dataset']}: {best['evaluator']} has a balanced accuracy of "
        text += f"{format_whole_percent(worst['bacc'])} % there, {format_whole_percent(top['bacc'])} % on "
        yield Advice("Weak on", text + f"{top['dataset']}.")


def _advise_on_small_datasets(run: AuditedRun, evaluator: str) -> Iterator[Advice]:
    """An average over data sets is no more certain than the smallest of them."""
    parts = [row for row in run.per_dataset("rates", "bacc") if row["evaluator"] == evaluator]
    for _, key, noun in _MISTAKES.values():
        counts = {row["dataset"]: row[key] for row in parts if row.get(key) is not None}
        dataset = min(counts, key=counts.__getitem__, default=None)
        if dataset is not None and counts[dataset] < ENOUGH_LABELS:
            text = f"The averages rest on only {format_count(counts[dataset], f'labelled {noun}')} in {dataset}."
            yield Advice("Beware", text)


def _advise_on_unscored(run: AuditedRun, rows: Sequence[Row]) -> Iterator[Advice]:
    """Which evaluators lack so many verdicts that the table shows a range; one lacking data set is enough."""
    most = read_decision_limits(run).max_unscored
    names = {row["evaluator"] for row in rows}
    lacking: dict[str, int] = {}
    for row in [*rows, *run.per_dataset("rates")]:
        if row["evaluator"] in names and unscored_share_for_decision(row) > most:
            name = row["evaluator"]
            lacking[name] = max(lacking.get(name, 0), count_unscored_or_guessed(row))
    if lacking:
        told = [f"{name} on {format_count(n, 'claim')}" for name, n in lacking.items()]
        text = f"Verdicts are missing or guessed: {_join_names(told)}. A range is what they leave possible."
        yield Advice("Beware", text)


def _advise_on_variants(run: AuditedRun) -> Iterator[Advice]:
    yield from starmap(Advice, list_invariance_advice(run))


def _advise_on_estimates(run: AuditedRun) -> Iterator[Advice]:
    """Of a run that only estimates: which rates to report, and whether the predicted ones will do."""
    summary = [row for row in run.rows("estimate_summary") if row.get("quote")]
    quoted = _list_quoted_estimates(run)
    level = _select_level(summary)
    mine = [row for row in quoted if row["level"] == level]
    if mine:
        n_labels = sum(row["n_labels"] or 0 for row in summary if row["level"] == level)
        width = mean(row["rate_high"] - row["rate_low"] for row in mine)
        text = f"the estimated rates: {format_count(n_labels, 'label')} give 95 % CIs of "
        text = text.replace("95", f"{100 * read_confidence(run):.3g}")
        yield Advice("Use", text + f"{_format_points(width)}{' on average' * (len(mine) > 1)}.")
    raw = {_place(row): row["rate"] for row in run.rows("estimates") if row["method"] == "raw"}
    beside = []
    for row in quoted:
        if (predicted := raw.get(_place(row))) is not None:
            ends = {"off_low": predicted - row["rate_high"], "off_high": predicted - row["rate_low"]}
            beside.append(row | {"off": predicted - row["rate"]} | ends)
    off = select_rows_beyond_limit(run, beside, "off", 0)
    if off:
        mains = _join_names(list(dict.fromkeys(str(row["main"]) for row in summary)))
        text = f"the rates that {mains} {'predict' if ' and ' in mains else 'predicts'}: {len(off)} of {len(beside)} "
        yield Advice("Avoid", text + f"{'differs' if len(off) == 1 else 'differ'} significantly from the estimates.")
    undecided = sum(row.get("n_undecided") or 0 for row in summary if row["level"] == level)
    if undecided:
        text = f"People could not decide {format_count(undecided, level)}; the bounds count them as right and as wrong."
        yield Advice("Beware", text)
    estimated = {(row["dataset"], row["level"], row["method"]) for row in run.rows("estimates")}
    for row in run.rows("estimate_summary"):
        if (row["dataset"], row["level"], row.get("quote")) not in estimated:
            yield Advice("Beware", f"On {row['dataset']} no rate can be reported: {row['why']}.")
    lone = [row for row in mine if not row["n_labels"] and not is_total_key(row["system"])]
    if lone:
        names = _join_names([row["system"] for row in lone])
        yield Advice("Beware", f"No claim of {names} was labelled; the rate rests on the other systems' labels.")


def _list_quoted_estimates(run: AuditedRun) -> list[Row]:
    """The estimates to report that have an interval, a row for each system, with the rate by all labels where known."""
    methods = {(row["dataset"], row["level"]): row["quote"] for row in run.rows("estimate_summary")}
    rows = [
        row
        for row in run.rows("estimates")
        if has_interval(row, "rate") and row["method"] == methods.get((row["dataset"], row["level"]))
    ]
    return add_labelled_rates_to_audit_estimates(run, rows)


def _select_level(rows: Sequence[Row]) -> str:
    """Claims where there are any: labels of responses are the same labels again."""
    return "claim" if any(row["level"] == "claim" for row in rows) else "response"


def _place(row: Row) -> tuple[str, str, str]:
    return row["dataset"], row["level"], row["system"]


# ------------------------------------------------------------------------------------------------------------- wording


def _is_open(run: AuditedRun, row: Row) -> bool:
    """Whether so much is unscored or guessed that a range says more than a figure."""
    return unscored_share_for_decision(row) > read_decision_limits(run).max_unscored


def _format_points(share: float) -> str:
    """``23 points``; ``0.4 points`` where a whole number would hide what is there."""
    if 0 < share < 0.015:
        return f"{format_audit_figure(PERCENT_COLUMN, share)} points"
    n = format_whole_percent(share)
    return f"{n} point" if n == "1" else f"{n} points"


def _format_bias(run: AuditedRun, row: Row) -> str:
    if _is_open(run, row) and row.get("bias_min") is not None:
        least = max(row["bias_min"], -row["bias_max"], 0.0)
        return f"{format_whole_percent(least)} to {_format_points(max(abs(row['bias_min']), abs(row['bias_max'])))}"
    return _format_points(abs(row["bias"]))


def _join_names(names: Sequence[str]) -> str:
    """``a``; ``a and b``; ``a, b, c and 3 more``."""
    shown, rest = (names, 0) if len(names) <= 4 else (names[:3], len(names) - 3)
    if rest:
        return f"{', '.join(shown)} and {rest} more"
    return " and ".join(filter(None, [", ".join(shown[:-1]), *shown[-1:]]))


def _verb(subjects: Sequence[str], verb: str) -> str:
    return verb if len(subjects) > 1 else f"{verb}es" if verb.endswith("s") else f"{verb}s"


def _round_up(number: float) -> int:
    """To two digits: ``1,437`` labels are about ``1,500``."""
    step = 10 ** max(len(str(int(number))) - 2, 0)
    return int(-(-number // step) * step)
