"""What should a reader do with these evaluators? The first screen of a run: a short table, then a line for each advice.

Terminal, report and notebook show the same screen. Every line follows from rows, decisions and findings, and what was
not computed is not mentioned. The table has one unit in each column: shares in percent, errors of rates in percentage
points, and pairs of systems. Where more claims are unscored than ``limits.max_unscored`` allows, a cell is the range of
what is possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.audit import load_all_audits, make_audited_run
from factaudit.audit.core.audit_declaration import AuditedRun
from factaudit.audit.core.checks import Finding, describe_place, scale_figure, subtract_figures
from factaudit.audit.core.decision_limits import (
    has_interval,
    is_mostly_open,
    is_significantly_above,
    is_significantly_below,
    widen_interval_for_decision_limits,
)
from factaudit.audit.core.evaluator_comparison import (
    find_overall_evaluator_rows,
    find_review_row,
    rank_evaluators_by_bacc,
)
from factaudit.audit.core.figure_formatting import format_limit_in_points
from factaudit.audit.core.result_rows import MACRO_MEAN, Row, is_total_key
from factaudit.audit.core.wording import fill, join_names
from factaudit.audit.input_description import uses_trial_model
from factaudit.audit.invariance import format_variant_failures
from factaudit.audit.quantification import BIAS_CHECK, average_absolute_bias, list_system_biases, may_publish_rates
from factaudit.audit.ranking import ORDER_CHECK, may_rank_systems, sum_ordered_pairs
from factaudit.audit.screen_estimates import expect_corrected_rates, tabulate_estimates, word_estimates
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
#: A check has at most so many lines.
MAX_FINDINGS = 2
_NO_INTERVALS = "No intervals were computed, so differences may be due to chance."


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
    advice = [*_advise_on_evaluators(run), *list_warnings(run)]
    heads, table, most = *tabulate_evaluators(run), MAX_EVALUATORS
    if not table:
        heads, table, most = *tabulate_estimates(run), MAX_SYSTEMS
        advice += [Advice(*one) for one in word_estimates(run)]
    known = [at for at in range(len(heads)) if any(row[at] for row in table)]
    heads, table = [heads[at] for at in known], [[row[at] or "–" for at in known] for row in table]
    return Screen(describe_size(run), heads, table[:most], table[most:], advice)


def rank_evaluators(run: AuditedRun) -> list[str]:
    """The evaluators from the highest balanced accuracy on, else from the least mean bias; floors come last."""
    ranked = rank_evaluators_by_bacc(run.rows("rates"))
    if not run.rows("rates"):
        biases = {row["name"]: _list_biases(run, row["name"]) for row in run.about.get("evaluators") or []}
        off = {name: average_absolute_bias(rows)["off"] for name, rows in biases.items() if rows}
        ranked = sorted(off, key=off.__getitem__)
    return sorted(ranked, key=run.floors.__contains__)


# ------------------------------------------------------------------------------------------------------------ the size


def describe_size(run: AuditedRun) -> str:
    """How many evaluators, claims, systems, labels and errors the figures rest on."""
    claims, evaluators = (run.about.get(key) or [] for key in ("claims", "evaluators"))
    if run.about.get("counts"):
        return f"{format_count(len(evaluators), 'evaluator')}, by published error rates; {run.about['counts']}."
    if not claims:
        return ""
    labelled, correct, total = _count_labels(run)
    n_floors = len(run.floors)
    floors = format_count(n_floors, "baseline that reads nothing", "baselines that read nothing")
    who = [format_count(len(evaluators) - n_floors, "evaluator")] if len(evaluators) > n_floors else []
    who += [floors] if n_floors else []
    n = "all" if labelled == total else f"{labelled:,}"
    state = f"{n} labelled, {labelled - correct:,} of them as errors" if labelled else "none of them labelled"
    what = f"{format_count(total, 'claim')} in {format_count(len(claims), 'data set')}"
    text = f"{', '.join(filter(None, [' and '.join(who), what]))}, {state}."
    are_means = any(row["dataset"] == MACRO_MEAN for row in find_overall_evaluator_rows(run.rows("rates")).values())
    return text + f" Figures are averages over the {len(claims):,} data sets." * (are_means and len(claims) > 1)


def _count_labels(run: AuditedRun) -> tuple[int, int, int]:
    """Claims that are labelled, those labelled as correct, and all."""
    claims = run.about.get("claims") or []
    labelled, correct, total = (
        sum(row.get(key) or 0 for row in claims) for key in ("n_labelled", "n_attributable", "n_claims")
    )
    return labelled, correct, total


# ----------------------------------------------------------------------------------------------------------- the table

_HEADS = (
    ("misses this", "share of errors"),
    ("flags this share", "of correct claims"),
    ("error rates off", "by, on average"),
    ("agrees on", "system pairs"),
    ("still passes", "after an error"),
    ("changes after", "a rewording"),
)


def tabulate_evaluators(run: AuditedRun) -> tuple[list[tuple[str, str]], list[list[str]]]:
    """Headings, and a row of cells ("" where nothing is known) for each evaluator that has any, the best first; floors
    only where there is nobody else."""
    overall = find_overall_evaluator_rows(run.rows("rates"))
    has_intervals = any(has_interval(row, "bacc") for row in overall.values())
    interval = ("balanced accuracy", f"({100 * run.confidence:.3g} % CI)")
    names = [] if run.rows("estimates") and not overall else list(dict.fromkeys([*rank_evaluators(run), *overall]))
    table = []
    for name in [name for name in names if name not in run.floors] or names:
        row, biases = overall.get(name, {}), _list_biases(run, name)
        cells = [_format_share(run, row, "bacc"), *(_format_mistakes(run, row, right) for right in _MISTAKES)]
        cells += [_format_bias(run, biases) if biases else "", _format_agreeing_pairs(run, name)]
        cells += [format_variant_failures(run, name, expected) or "" for expected in ("changed", "same")]
        if any(cells):
            table.append([name, *cells])
    return [("", "evaluator"), interval if has_intervals else ("balanced", "accuracy"), *_HEADS], table


def _list_biases(run: AuditedRun, evaluator: str) -> list[Row]:
    """The rates of single systems: the whole of a data set that names none is no system."""
    return [row for row in list_system_biases(run, evaluator) if row["system"] != ALL_TOGETHER]


def _format_share(run: AuditedRun, row: Row, key: str) -> str:
    if row.get(key) is None:
        return ""
    is_open = is_mostly_open(row, run.limits)
    text = fill(f"{{{key}:whole}}", row, is_open)
    if key != "bacc" or is_open or not has_interval(row, key):
        return text
    return f"{text} ({fill(f'{{{key}_low:whole}}–{{{key}_high:whole}}', row).replace(' %', '')})"


#: What is wrong where TNR, or TPR, is low: the rate of mistakes, the labels it rests on, and their noun.
_MISTAKES = {"tnr": ("fpr", "n_unattributable", "error"), "tpr": ("fnr", "n_attributable", "correct claim")}


def _format_mistakes(run: AuditedRun, row: Row, right: str) -> str:
    """The share of mistakes; of few labels with the count, which a mean over data sets does not have."""
    wrong, n_key, _ = _MISTAKES[right]
    text, n = _format_share(run, row, wrong), row.get(n_key)
    if not text or n is None or n >= ENOUGH_LABELS or row["dataset"] == MACRO_MEAN or is_mostly_open(row, run.limits):
        return text
    return f"{text} ({round(row[wrong] * n):,} of {n:,})"


def _format_bias(run: AuditedRun, rows: Sequence[Row]) -> str:
    """How far rates are off on average."""
    mean_bias = average_absolute_bias(rows)
    return fill("{off:rough}", mean_bias, is_mostly_open(mean_bias, run.limits))


def _format_agreeing_pairs(run: AuditedRun, evaluator: str) -> str:
    """Of all pairs of systems: an evaluator that finds no difference agrees only where the labels find none."""
    found = sum_ordered_pairs(run, evaluator)
    if found is None or not found["n_ordered"]:
        return ""
    ends = dict.fromkeys(f"{found['n_pairs'] - found[f'n_not_alike_{end}']:,}" for end in ("max", "min"))
    return f"{' to '.join(ends)} of {found['n_pairs']:,}"


# ---------------------------------------------------------------------------------------------------------- the advice


def list_warnings(run: AuditedRun) -> Iterator[Advice]:
    """What keeps a reader from using any figure: a model for trying, and findings that belong on the first screen."""
    trial = [row["name"] for row in run.about.get("evaluators") or [] if uses_trial_model(row)]
    if trial:
        yield Advice("Beware", f"The model of {trial[0]} is only for trying factaudit; ignore its figures.")
    for audit in load_all_audits().values():
        for check in audit.checks if run.rows(audit.name) else ():
            if check.on_screen:
                found = [one for one in run.find(check) if one.verdict == "beyond"]
                found.sort(key=lambda one: -check.measure_gravity(one.evidence))
                yield from (Advice("Beware", one.statement) for one in found[:MAX_FINDINGS])


def _advise_on_evaluators(run: AuditedRun) -> Iterator[Advice]:
    overall = find_overall_evaluator_rows(run.rows("rates"))
    ranked = [name for name in rank_evaluators(run) if name not in run.floors]
    rows = [overall[name] for name in ranked if name in overall]
    lacking = _explain_lacking_labels(run, rows)
    if lacking is not None:
        yield lacking
    elif not rows:
        if ranked and any(has_interval(row, "bias") for row in _list_biases(run, ranked[0])):
            yield from _advise_on_error_rates(run, ranked[:1])
            yield from _advise_on_order(run, ranked[:1])
        elif ranked and not run.rows("estimates"):
            yield Advice("Beware", _NO_INTERVALS)
    elif not any(has_interval(row, "bacc") for row in rows):
        yield Advice("Beware", _NO_INTERVALS)
    else:
        yield from _advise_on_accuracy(run, rows)


def _advise_on_accuracy(run: AuditedRun, rows: Sequence[Row]) -> Iterator[Advice]:
    """rows: of each evaluator that for all claims, the most accurate first."""
    useful = [row for row in rows if is_significantly_above(row, "bacc", 0.5)]
    if not useful:
        who = f"{rows[0]['evaluator']} is not" if len(rows) == 1 else f"None of the {len(rows)} evaluators is"
        yield Advice("Avoid", f"{who} significantly better than guessing.")
        yield from _advise_on_few_labels(run, rows[0])
        return
    best, *others = rows
    worse = [row for row in others if is_significantly_above(_subtract_bacc(run, best, row), "gap", 0)]
    alike = [row for row in useful if row not in worse]
    names = [row["evaluator"] for row in alike]
    yield Advice("Use", _word_recommended(run, names, [row["evaluator"] for row in worse]))
    yield from _advise_to_avoid(run, [row for row in rows if row not in alike])
    yield from _advise_on_single_errors(run, alike)
    yield from _advise_on_error_rates(run, names)
    yield from _advise_on_order(run, names)
    yield from _advise_on_few_labels(run, best)
    yield from _advise_on_weak_places(run, names[0])


def _explain_lacking_labels(run: AuditedRun, rows: Sequence[Row]) -> Advice | None:
    """What to do where the labels, or the verdicts on labelled claims, are too few to advise anything else."""
    labelled, correct, total = _count_labels(run)
    errors = labelled - correct
    how = "label a sample (factaudit sample)" if labelled < total else "add claims and label them"
    if not total or not run.about.get("evaluators"):
        return None
    if not labelled:
        text = f"No claim is labelled, so nobody can say which verdicts are right. First {how}."
        return Advice("Label more", text)
    if min(errors, correct) < MIN_LABELS:
        found = f"{format_count(errors, 'labelled error')} and {format_count(correct, 'labelled correct claim')}"
        text = f"{found} are too few to say how good an evaluator is. Aim for at least {ENOUGH_LABELS} of each: {how}."
        return Advice("Label more", text)
    for _, key, _ in _MISTAKES.values():
        counts = [row[key] for row in rows if row.get(key) is not None]
        if max(counts, default=MIN_LABELS) < MIN_LABELS:
            return Advice("Judge", "Most labelled claims have no verdict, so judge them again before you compare.")
    return None


# -------------------------------------------------------------------------------------------------- whom to use, or not


def _subtract_bacc(run: AuditedRun, best: Row, row: Row) -> Row:
    """How far the best evaluator's BAcc is above another one's, as the figure ``gap``: the paired difference on the
    same claims; where that was not computed, as if the two were independent."""
    pair = best["evaluator"], row["evaluator"]
    for one in run.rows("differences"):
        if one["key"] == "bacc" and one["dataset"] == best["dataset"]:
            for sign, names in ((1, pair), (-1, pair[::-1])):
                if (one["evaluator_a"], one["evaluator_b"]) == names and one["difference"] is not None:
                    return scale_figure("gap", one, "difference", sign)
    return subtract_figures("gap", best, "bacc", row, "bacc")


def _word_recommended(run: AuditedRun, alike: Sequence[str], worse: Sequence[str]) -> str:
    """Which evaluator to use, how sure that is, and whether it knows these data from its training."""
    if len(alike) == 2:
        text = f"{alike[0]} or {alike[1]}; the difference between them is not significant."
    elif len(alike) > 2:
        text = f"{alike[0]}; it is not significantly more accurate than {join_names(alike[1:])}."
    elif worse:
        text = f"{alike[0]}; it is significantly more accurate than {join_names(worse)}."
    else:
        text = f"{alike[0]} is significantly better than guessing."
    trained = [name for name in alike if _is_trained_on(run, name)]
    if trained:
        verb = "was" if len(trained) == 1 else "were"
        text += f" {join_names(trained)} {verb} trained on this benchmark, so expect lower accuracy on your data."
    return text


def _is_trained_on(run: AuditedRun, evaluator: str) -> bool:
    """Whether an evaluator was trained on data of this run: ``RAGTruth`` is the data of ``RAGTruth-QA``."""
    datasets = [row["dataset"].casefold() for row in run.about.get("claims") or []]
    mine = [row for row in run.about.get("evaluators") or [] if row["name"] == evaluator]
    trained = [name.casefold() for row in mine for name in row.get("trained_on") or []]
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


# --------------------------------------------------------------------------------------------------------- for what


def _advise_on_single_errors(run: AuditedRun, alike: Sequence[Row]) -> Iterator[Advice]:
    least = run.limits.min_rate
    fit = [row["evaluator"] for row in alike if all(is_significantly_above(row, key, least) for key in _MISTAKES)]
    if fit:
        share = f"significantly more than {format_limit_in_points(least)} %"
        text = f"finding single errors: TPR and TNR of {join_names(fit)} are {share}."
        yield Advice("Good for", text)
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
    best = max(able, key=lambda row: row["errors_found"]) | {"reviewed": REVIEWED}
    text = "review the lowest scores first: {evaluator}'s lowest {reviewed:whole} contain {errors_found:whole} of the "
    yield Advice("Instead", fill(text + "errors.", best) + _promise_after_review(run, best["evaluator"]))


def _promise_after_review(run: AuditedRun, evaluator: str) -> str:
    row = find_review_row(run, evaluator)
    if row is None:
        return ""
    text = " If people review the lowest {review_share:whole}, at most {max_error:limit} % of the claims that are left "
    return fill(text + "are errors ({confidence:limit} % confidence).", row)


def _advise_on_error_rates(run: AuditedRun, evaluators: Sequence[str]) -> Iterator[Advice]:
    """Whether predicted error rates of systems can be published, and what to publish instead."""
    limit = format_limit_in_points(run.limits.max_bias)
    answers = {name: found.may for name in evaluators if (found := may_publish_rates(run, name)) is not None}
    far = {one.evaluator: one for one in run.find(BIAS_CHECK) if one.verdict == "beyond"}
    fit, unfit, unknown = ([name for name in answers if answers[name] == may] for may in ("yes", "no", "cannot tell"))
    if fit:
        text = f"publishing error rates: every rate of {join_names(fit)} is significantly within {limit} points."
        yield Advice("Good for", text)
    if unfit:
        text = f"publishing error rates as they are: {join_names([_word_far_rates(run, far[name]) for name in unfit])}"
        text += f", significantly more than the limit of {limit} points."
        if unknown:
            text += (
                f" For {join_names(unknown)}, there are too few labels to tell whether its rates are within the limit."
            )
        yield Advice("Not for", text)
    elif unknown:
        text = "There are too few labels to tell whether predicted error rates can be published."
        yield Advice("Beware", text + _word_labels_needed(run, unknown))
    if unfit or unknown:
        yield from _advise_to_correct_rates(run, evaluators[0])


def _word_far_rates(run: AuditedRun, found: Finding) -> str:
    """``2 of the 12 error rates that a predicts are off by up to 23 points``."""
    size, n = _format_bias(run, [found.row]), len(list_system_biases(run, str(found.evaluator)))
    if found.row["is_total"] or n == 1:
        return f"{found.evaluator}'s error rate{fill(describe_place(found.row), found.row)} is off by {size}"
    if len(found.alike) == 1:
        return f"the worst of the {n} error rates that {found.evaluator} predicts is off by {size}"
    return f"{len(found.alike)} of the {n} error rates that {found.evaluator} predicts are off by up to {size}"


def _word_labels_needed(run: AuditedRun, evaluators: Sequence[str]) -> str:
    """How many labels a system would let the interval of a typical rate's error end at the limit."""
    rows = [row for name in evaluators for row in list_system_biases(run, name) if has_interval(row, "bias")]
    rows = [row for row in rows if row["n"]]
    if not rows:
        return ""
    limit, have = run.limits.max_bias, median(row["n"] for row in rows)
    needed = median(row["n"] * ((row["bias_high"] - row["bias_low"]) / 2 / limit) ** 2 for row in rows)
    if needed <= have:
        return ""
    step = 10 ** max(len(str(int(needed))) - 2, 0)  # rounded up to two digits: 1,437 labels are about 1,500
    each = "" if rows[0]["system"] == ALL_TOGETHER else " per system"
    text = f" To measure the bias of a rate to within ±{format_limit_in_points(limit)} points, you need about "
    return text + f"{-(-needed // step) * step:,.0f} labels{each}; there are {have:,.0f}."


def _advise_to_correct_rates(run: AuditedRun, evaluator: str) -> Iterator[Advice]:
    """Correct the rates by labels, where labels are expected to bring them nearer than they are as predicted."""
    if run.rows("estimate_summary"):
        yield from (Advice("Instead", text) for text in expect_corrected_rates(run, _list_biases(run, evaluator)))
    elif run.about.get("claims"):
        text = (
            "correct the rates of new claims: label about 100 of them per data set. factaudit sample chooses them, and "
        )
        text += "factaudit estimate gives each system a corrected rate with a 95 % CI."
        yield Advice("Instead", text)


def _advise_on_order(run: AuditedRun, evaluators: Sequence[str]) -> Iterator[Advice]:
    """Whether systems come out in the right order."""
    reversing = [one for one in run.find(ORDER_CHECK) if one.verdict == "beyond" and one.evaluator in evaluators]
    if reversing:
        turned = [(one.evaluator, sum(row["n_reversed"] for row in one.alike)) for one in reversing]
        told = [f"{name} puts {format_count(n, 'pair')} in the wrong order" for name, n in turned]
        yield Advice("Not for", f"ranking systems: {join_names(told)}.")
        return
    answers = {name: found.may for name in evaluators if (found := may_rank_systems(run, name)) is not None}
    for name, may in answers.items():
        counts, agreeing = sum_ordered_pairs(run, name), _format_agreeing_pairs(run, name)
        if counts is None or not agreeing or counts["n_reversed_max"]:
            continue
        text = f"{name} and the labels agree on {agreeing} pairs of systems"
        if may == "yes":
            yield Advice("Good for", f"ranking systems: {text}.")
        else:
            text = f"Rankings: {text}."
            if counts["n_one_sided"]:
                pairs = format_count(counts["n_one_sided"], "pair")
                text += f" For {pairs}, either {name} or the labels find a significant difference, but not both."
            yield Advice("Beware", text + " No pair is reversed.")
        break


# ----------------------------------------------------------------------------------------------------- what to distrust


def _advise_on_few_labels(run: AuditedRun, best: Row) -> Iterator[Advice]:
    """The fewest labels behind a figure: an average over data sets is no more certain than the smallest of them."""
    parts = [row for row in run.per_dataset("rates", "bacc") if row["evaluator"] == best["evaluator"]]
    counts = [
        (row[key], noun, row["dataset"])
        for row in parts
        for _, key, noun in _MISTAKES.values()
        if row.get(key) is not None
    ]
    n, noun, dataset = min(counts, default=(ENOUGH_LABELS, "", ""))
    if n < ENOUGH_LABELS:
        where = f" in {dataset}" if len(parts) > 1 else ""
        text = f"These figures rest on only {format_count(n, f'labelled {noun}')}{where} and can change a lot with more"
        yield Advice("Beware", f"{text}.")


def _advise_on_weak_places(run: AuditedRun, evaluator: str) -> Iterator[Advice]:
    """The data sets where BAcc is lowest and highest, where their intervals (with their bounds) do not meet."""
    parts = [row for row in run.per_dataset("rates", "bacc") if row["evaluator"] == evaluator]
    parts = sorted((row for row in parts if not is_total_key(row["dataset"])), key=lambda row: row["bacc"])
    if len(parts) < 2:
        return
    low, high = (widen_interval_for_decision_limits(row, "bacc") for row in (parts[0], parts[-1]))
    if low is not None and high is not None and low[1] < high[0]:
        text = "{dataset}: {evaluator} has a balanced accuracy of {bacc:whole} there, {top:whole} on {other}."
        yield Advice("Weak on", fill(text, parts[0] | {"top": parts[-1]["bacc"], "other": parts[-1]["dataset"]}))
