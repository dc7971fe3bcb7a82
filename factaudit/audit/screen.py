"""What should a reader do with these evaluators? The first screen of a run: a short table, then a
line for each advice.

Terminal, report and notebook show the same screen. Every line follows from rows, decisions and
findings, and what was not computed is not mentioned. The table has one unit in each column: shares
in percent, errors of rates in percentage points, and pairs of systems. Where more claims are
unscored than ``limits.max_unscored`` allows, a cell is the range of what is possible.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.arrays.system_rankings import count_ordered_system_rankings
from factaudit.audit import load_all_audits, make_audited_run
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.checks import Check, Finding, combine_figures, describe_place
from factaudit.audit.core.decision_limits import has_interval, widen_interval
from factaudit.audit.core.result_rows import MACRO_MEAN, Row
from factaudit.audit.core.wording import ENOUGH_FOR_SHARES, fill, join_names
from factaudit.audit.decisions import (
    average_absolute_bias,
    list_orders_of,
    list_system_biases,
    may_publish_rates,
    may_rank_systems,
)
from factaudit.audit.input_description import uses_trial_model
from factaudit.audit.invariance import format_variant_failures
from factaudit.audit.quantification import BIAS_CHECK
from factaudit.audit.ranking import ORDER_CHECK, POWER_CHECK
from factaudit.audit.screen_estimates import (
    expect_corrected_rates,
    tabulate_estimates,
    word_estimates,
)
from factaudit.audit.triage import REVIEWED
from factaudit.text.display_text import format_count

#: The title of a run that has none of its own.
DEFAULT_TITLE = "Evaluators compared"
#: The screen has at most so many evaluators, or so many systems where it shows estimates.
MAX_EVALUATORS, MAX_SYSTEMS = 8, 12
#: With fewer labelled errors (or correct claims), the only advice is to label more.
MIN_LABELS = 5
#: What the only advice begins with where labels are too few for any other.
LABEL_MORE = "Label more"
#: A check has at most so many lines.
MAX_FINDINGS = 2
#: What is wrong where TNR, or TPR, is low: the rate of mistakes, the labels it rests on, and their
#: noun.
_MISTAKES = {
    "tnr": ("fpr", "n_unattributable", "error"),
    "tpr": ("fnr", "n_attributable", "correct claim"),
}
_GOOD, _BAD = ("Use", "Good for", "Instead"), ("Avoid", "Not for")


@dataclass(frozen=True)
class Advice:
    """A line below the table: what it is about (``Use``, ``Avoid``, ``Not for``, ...), and one or
    two sentences."""

    word: str
    sentence: str

    @property
    def kind(self) -> Literal["good", "bad", "care"]:
        """How the word is coloured and marked."""
        if self.word in _BAD:
            return "bad"
        return "good" if self.word in _GOOD else "care"


@dataclass(frozen=True)
class Screen:
    """``columns``: headings of two lines each, ``""`` for an empty one; ``rows``: a cell for each.
    Without columns no
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
        order, noun = (
            ("first", "rates") if self.columns[0][1] == "system" else ("best", "evaluators")
        )
        return f"The {order} {len(self.rows)} of {len(self.rows) + len(self.more_rows)} {noun}"


def compose_screen(results: Mapping[str, Any]) -> Screen:
    """The first screen of a ``results.json``'s content."""
    run = make_audited_run(results["audits"], results["about"])
    advice = list(_advise_on_evaluators(run))
    # That they order no systems goes without saying.
    lacks_labels = any(one.word == LABEL_MORE for one in advice)
    advice += list_warnings(run, unless=[POWER_CHECK] if lacks_labels else [])
    heads, table, most = *tabulate_evaluators(run), MAX_EVALUATORS
    if not table:
        heads, table, most = *tabulate_estimates(run), MAX_SYSTEMS
        advice += [Advice(*one) for one in word_estimates(run)]
    known = [at for at in range(len(heads)) if any(row[at] for row in table)]
    heads, table = [heads[at] for at in known], [[row[at] or "–" for at in known] for row in table]
    return Screen(describe_size(run), heads, table[:most], table[most:], advice)


def rank_evaluators(run: AuditedRun) -> list[str]:
    """The evaluators from the highest balanced accuracy on, else from the least mean bias; floors
    come last."""
    worth = {
        name: row["bacc"]
        for name, row in run.overall("rates").items()
        if row.get("bacc") is not None
    }
    if not run.rows("rates"):
        biases = {
            one["name"]: _list_biases(run, one["name"]) for one in run.about.get("evaluators") or []
        }
        worth = {name: -average_absolute_bias(rows)["off"] for name, rows in biases.items() if rows}
    return sorted(worth, key=lambda name: (name in run.floors, -worth[name]))


def describe_size(run: AuditedRun) -> str:
    """How many evaluators, claims, systems, labels and errors the figures rest on."""
    claims, evaluators = (run.about.get(key) or [] for key in ("claims", "evaluators"))
    if run.about.get("counts"):
        return (
            f"{format_count(len(evaluators), 'evaluator')}, by published error rates;"
            f" {run.about['counts']}."
        )
    if not claims:
        return ""
    labelled, correct, total = _count_labels(run)
    n_floors = len(run.floors)
    parts = (
        [format_count(len(evaluators) - n_floors, "evaluator")]
        if len(evaluators) > n_floors
        else []
    )
    if n_floors:
        parts.append(
            format_count(n_floors, "baseline that reads nothing", "baselines that read nothing")
        )
    what = f"{format_count(total, 'claim')} in {format_count(len(claims), 'data set')}"
    text = ", ".join([" and ".join(parts), what] if parts else [what])
    n = "all" if labelled == total else f"{labelled:,}"
    errors = (
        "1 of them as an error"
        if labelled - correct == 1
        else f"{labelled - correct:,} of them as errors"
    )
    text += f", {n} labelled, {errors}." if labelled else ", none of them labelled."
    if len(claims) > 1 and any(
        row["dataset"] == MACRO_MEAN for row in run.overall("rates").values()
    ):
        text += f" Figures are averages over the {len(claims):,} data sets."
    return text


def _count_labels(run: AuditedRun) -> tuple[int, int, int]:
    """Claims that are labelled, those labelled as correct, and all."""
    claims = run.about.get("claims") or []
    labelled, correct, total = (
        sum(row.get(key) or 0 for row in claims)
        for key in ("n_labelled", "n_attributable", "n_claims")
    )
    return labelled, correct, total


# ---- the table

_HEADS = (
    ("misses this", "share of errors"),
    ("flags this share", "of correct claims"),
    ("error rates off", "by, on average"),
    ("agrees on", "system pairs"),
    ("still passes", "after an error"),
    ("changes after", "a rewording"),
)


def tabulate_evaluators(run: AuditedRun) -> tuple[list[tuple[str, str]], list[list[str]]]:
    """Headings, and a row of cells ("" where nothing is known) for each evaluator that has any, the
    best first; floors only where there is nobody else."""
    overall, names = run.overall("rates"), rank_evaluators(run)
    if overall or not run.rows("estimates"):
        names = list(dict.fromkeys([*names, *overall]))
    else:
        names = []
    table = []
    for name in [name for name in names if name not in run.floors] or names:
        row, biases = overall.get(name, {}), _list_biases(run, name)
        cells = [
            _format_accuracy(run, row),
            *(_format_mistakes(run, row, right) for right in _MISTAKES),
        ]
        cells += [_format_bias(run, biases) if biases else "", _format_agreeing_pairs(run, name)]
        cells += [format_variant_failures(run, name, expected) for expected in ("changed", "same")]
        if any(cells):
            table.append([name, *cells])
    accuracy = ("balanced", "accuracy")
    if any(has_interval(row, "bacc") for row in overall.values()):
        accuracy = ("balanced accuracy", f"({100 * run.confidence:.3g} % CI)")
    return [("", "evaluator"), accuracy, *_HEADS], table


def _list_biases(run: AuditedRun, evaluator: str) -> list[Row]:
    """The rates of single systems: the whole of a data set that names none is no system."""
    return [row for row in list_system_biases(run, evaluator) if row["system"] != ALL_TOGETHER]


def _format_accuracy(run: AuditedRun, row: Row) -> str:
    if row.get("bacc") is None:
        return ""
    text = run.fill("{bacc:whole}", row)
    if run.is_open(row) or not has_interval(row, "bacc"):
        return text
    return f"{text} ({fill('{bacc_low:whole}–{bacc_high:whole}', row).replace(' %', '')})"


def _format_mistakes(run: AuditedRun, row: Row, right: str) -> str:
    """The share of mistakes; of few labels with the count, which a mean over data sets does not
    have."""
    wrong, n_key, _ = _MISTAKES[right]
    if row.get(wrong) is None:
        return ""
    text, n = run.fill(f"{{{wrong}:whole}}", row), row.get(n_key) or ENOUGH_FOR_SHARES
    if n >= ENOUGH_FOR_SHARES or row["dataset"] == MACRO_MEAN or run.is_open(row):
        return text
    return f"{text} ({round(row[wrong] * n):,} of {n:,})"


def _format_bias(run: AuditedRun, rows: Sequence[Row]) -> str:
    """How far rates are off on average."""
    return run.fill("{off:rough}", average_absolute_bias(rows))


def _format_agreeing_pairs(run: AuditedRun, evaluator: str) -> str:
    """Of all pairs of systems: an evaluator that finds no difference agrees only where the labels
    find none."""
    found = count_ordered_system_rankings(list_orders_of(run, evaluator))
    if not found["n_ordered"]:
        return ""
    ends = dict.fromkeys(
        f"{found['n_pairs'] - found[f'n_not_alike_{end}']:,}" for end in ("max", "min")
    )
    return f"{' to '.join(ends)} of {found['n_pairs']:,}"


# ---- the advice


def list_warnings(run: AuditedRun, unless: Sequence[Check] = ()) -> Iterator[Advice]:
    """What keeps a reader from using any figure: a model for trying, and findings that belong on
    the first screen."""
    trial = [row["name"] for row in run.about.get("evaluators") or [] if uses_trial_model(row)]
    if trial:
        yield Advice(
            "Beware", f"The model of {trial[0]} is only for trying factaudit; ignore its figures."
        )
    for audit in load_all_audits().values():
        for check in audit.checks if run.rows(audit.name) else ():
            if check.on_screen and check not in unless:
                found = [one for one in run.find(check) if one.verdict == "beyond"]
                found.sort(key=lambda one: -check.measure_gravity(one.evidence))
                yield from (Advice("Beware", one.statement) for one in found[:MAX_FINDINGS])


def _advise_on_evaluators(run: AuditedRun) -> Iterator[Advice]:
    overall = run.overall("rates")
    ranked = [name for name in rank_evaluators(run) if name not in run.floors]
    rows = [overall[name] for name in ranked if name in overall]
    figures = rows or [row for name in ranked[:1] for row in _list_biases(run, name)]
    lacking = _explain_lacking_labels(run, rows)
    if lacking is not None:
        yield lacking
    elif any(has_interval(row, "bacc") for row in rows):
        yield from _advise_on_accuracy(run, rows)
    elif any(has_interval(row, "bias") for row in figures):
        yield from _advise_on_error_rates(run, ranked[:1])
        yield from _advise_on_order(run, ranked[:1])
    elif rows or (ranked and not run.rows("estimates")):
        yield Advice("Beware", "No intervals were computed, so differences may be due to chance.")


def _explain_lacking_labels(run: AuditedRun, rows: Sequence[Row]) -> Advice | None:
    """What to do where the labels, or the verdicts on labelled claims, are too few to advise
    anything else."""
    labelled, correct, total = _count_labels(run)
    errors = labelled - correct
    how = "label a sample (factaudit sample)" if labelled < total else "add claims and label them"
    if not total or not run.about.get("evaluators"):
        return None
    if not labelled:
        text = f"No claim is labelled, so nobody can say which verdicts are right. First {how}."
        return Advice(LABEL_MORE, text)
    if min(errors, correct) < MIN_LABELS:
        found = (
            f"{format_count(errors, 'labelled error')} and"
            f" {format_count(correct, 'labelled correct claim')}"
        )
        text = (
            f"{found} are too few to choose an evaluator, to flag errors with it, to publish error"
            " rates or to rank "
        )
        text += f"systems. Aim for at least {ENOUGH_FOR_SHARES} of each"
        return Advice(LABEL_MORE, f"{text}: {how}.")
    for _, key, _ in _MISTAKES.values():
        counts = [row[key] for row in rows if row.get(key) is not None]
        if max(counts, default=MIN_LABELS) < MIN_LABELS:
            return Advice(
                "Judge",
                "Most labelled claims have no verdict, so judge them again before you compare.",
            )
    return None


# ---- whom to use, or not


def _advise_on_accuracy(run: AuditedRun, rows: Sequence[Row]) -> Iterator[Advice]:
    """rows: of each evaluator that for all claims, the most accurate first."""
    best = rows[0]
    worse = [
        row for row in rows[1:] if widen_interval(_subtract_bacc(run, best, row), "gap")[0] > 0
    ]
    alike = [row for row in rows if widen_interval(row, "bacc")[0] > 0.5 and row not in worse]
    if not any(widen_interval(row, "bacc")[0] > 0.5 for row in rows):
        who = (
            f"{best['evaluator']} is not"
            if len(rows) == 1
            else f"None of the {len(rows)} evaluators is"
        )
        yield Advice("Avoid", f"{who} significantly better than guessing.")
        yield from _advise_on_few_labels(run, best)
        return
    names = [row["evaluator"] for row in alike]
    yield Advice("Use", _word_recommended(run, names, [row["evaluator"] for row in worse]))
    yield from _advise_to_avoid(run, [row for row in rows if row not in alike])
    yield from _advise_on_single_errors(run, alike)
    yield from _advise_on_error_rates(run, names)
    yield from _advise_on_order(run, names)
    yield from _advise_on_few_labels(run, best)
    yield from _advise_on_weak_places(run, names[0])


def _subtract_bacc(run: AuditedRun, best: Row, row: Row) -> Row:
    """How far the best evaluator's BAcc is above another one's, as the figure ``gap``: the paired
    difference on the same claims; where that was not computed, as if the two were independent."""
    pair = [best["evaluator"], row["evaluator"]]
    for one in run.rows("differences"):
        names = [one["evaluator_a"], one["evaluator_b"]]
        is_theirs = one["dataset"] == best["dataset"] and sorted(names) == sorted(pair)
        if is_theirs and one["key"] == "bacc" and one["difference"] is not None:
            return combine_figures("gap", (one, "difference", 1 if names == pair else -1))
    return combine_figures("gap", (best, "bacc", 1), (row, "bacc", -1))


def _word_recommended(run: AuditedRun, alike: Sequence[str], worse: Sequence[str]) -> str:
    """Which evaluator to use, how sure that is, and whether it knows these data from its
    training."""
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
        text += (
            f" {join_names(trained)} {verb} trained on this benchmark, so expect lower accuracy on"
            " your data."
        )
    return text


def _is_trained_on(run: AuditedRun, evaluator: str) -> bool:
    """Whether an evaluator was trained on data of this run: ``RAGTruth`` is the data of
    ``RAGTruth-QA``."""
    datasets = [row["dataset"].casefold() for row in run.about.get("claims") or []]
    for row in run.about.get("evaluators") or []:
        names = tuple(name.casefold() for name in row.get("trained_on") or [])
        if row["name"] == evaluator and any(dataset.startswith(names) for dataset in datasets):
            return True
    return False


def _advise_to_avoid(run: AuditedRun, worse: Sequence[Row]) -> Iterator[Advice]:
    """Evaluators that are wrong on most errors, or on most correct claims, or may be guessing."""
    reasons = []
    for row in worse:
        name = row["evaluator"]
        if widen_interval(row, "tpr")[1] < 0.5:
            reasons.append(
                f"{name}: it flags {_format_mistakes(run, row, 'tpr')} of the correct claims"
            )
        elif widen_interval(row, "tnr")[1] < 0.5:
            reasons.append(f"{name}: it misses {_format_mistakes(run, row, 'tnr')} of the errors")
        elif widen_interval(row, "bacc")[0] <= 0.5:
            reasons.append(f"{name}: it is not significantly better than guessing")
    if len(reasons) > 2:
        reasons[2:] = [f"and {len(reasons) - 2} more"]
    if reasons:
        yield Advice("Avoid", "; ".join(reasons) + ".")


# ---- for what


def _advise_on_single_errors(run: AuditedRun, alike: Sequence[Row]) -> Iterator[Advice]:
    least = run.limits.min_rate
    fit = [
        row["evaluator"]
        for row in alike
        if all(widen_interval(row, key)[0] > least for key in _MISTAKES)
    ]
    if fit:
        text = fill("{least:limit} %", {"least": least})
        text = (
            f"finding single errors: TPR and TNR of {join_names(fit)} are significantly more than"
            f" {text}."
        )
        yield Advice("Good for", text)
        return
    for right, verb, what in (
        ("tnr", "misses", "of them"),
        ("tpr", "flags", "of the correct claims"),
    ):
        if all(widen_interval(row, right)[1] < least for row in alike):
            first, *others = sorted(alike, key=lambda row: -row[right])
            text = (
                f"finding single errors: {first['evaluator']} {verb}"
                f" {_format_mistakes(run, first, right)} {what}"
            )
            if len(others) == 1:
                text += f", {others[0]['evaluator']} {_format_mistakes(run, others[0], right)}"
            elif others:
                text += ", and the others even more"
            yield Advice("Not for", text + ".")
            break
    yield from _advise_on_review(run, [row["evaluator"] for row in alike])


def _advise_on_review(run: AuditedRun, evaluators: Sequence[str]) -> Iterator[Advice]:
    """Which claims people should review, by the scores of one of these evaluators: the one that
    finds most errors."""
    rows = [row for name, row in run.overall("triage").items() if name in evaluators]
    able = [row for row in rows if row.get("errors_found") is not None]
    if not able:
        return
    able.sort(key=lambda row: evaluators.index(row["evaluator"]))
    best = max(able, key=lambda row: row["errors_found"]) | {"reviewed": REVIEWED}
    text = (
        "review the lowest scores first: {evaluator}'s lowest {reviewed:whole} contain"
        " {errors_found:whole} of the "
    )
    text = fill(text + "errors.", best)
    if 0 < best["review_share"] < 1:
        promise = (
            " If people review the lowest {review_share:whole} of its scores, at most"
            " {max_error:limit} % of the "
        )
        text += fill(
            promise + "claims that are left are errors ({confidence:limit} % confidence).", best
        )
    elif best["review_share"] == 1:
        promise = (
            " No cut-off is shown to leave at most {max_error:limit} % errors ({confidence:limit} %"
            " confidence)."
        )
        text += fill(promise, best)
    yield Advice("Instead", text)


def _advise_on_error_rates(run: AuditedRun, evaluators: Sequence[str]) -> Iterator[Advice]:
    """Whether predicted error rates of systems can be published, and what to publish instead."""
    limit = fill("{limit:limit} points", {"limit": run.limits.max_bias})
    answers = {
        name: found.may
        for name in evaluators
        if (found := may_publish_rates(run, name)) is not None
    }
    fit, unfit, unknown = (
        [name for name in answers if answers[name] == may] for may in ("yes", "no", "cannot tell")
    )
    if fit:
        text = (
            f"publishing error rates: every rate of {join_names(fit)} is significantly within"
            f" {limit}."
        )
        yield Advice("Good for", text)
    if unfit:
        far = {one.evaluator: one for one in run.find(BIAS_CHECK) if one.verdict == "beyond"}
        text = (
            "publishing error rates as they are:"
            f" {join_names(_word_far_rates(run, far[name]) for name in unfit)}"
        )
        text += f", significantly more than the limit of {limit}."
        if unknown:
            text += (
                f" For {join_names(unknown)}, there are too few labels to say that any single rate"
                " is beyond it."
            )
        yield Advice("Not for", text)
    elif unknown:
        text = (
            "There are too few labels to tell whether predicted error rates can be published as"
            " they are."
        )
        yield Advice("Beware", text + _word_labels_needed(run, unknown))
    if (unfit or unknown) and run.rows("estimate_summary"):
        biases = _list_biases(run, evaluators[0])
        yield from (Advice("Instead", text) for text in expect_corrected_rates(run, biases))
    elif (unfit or unknown) and run.about.get("claims"):
        text = (
            "publish corrected rates of your next claims: with about 100 labels per data set,"
            " factaudit estimate "
        )
        text += "gives each system a rate and its 95 % CI (factaudit sample chooses what to label)."
        yield Advice("Instead", text)


def _word_far_rates(run: AuditedRun, found: Finding) -> str:
    """``2 of the 12 error rates that a predicts are off by up to 23 points``."""
    size, n, who = (
        _format_bias(run, [found.row]),
        len(list_system_biases(run, str(found.evaluator))),
        found.evaluator,
    )
    if found.row["is_total"] or n == 1:
        return f"{who}'s error rate{fill(describe_place(found.row), found.row)} is off by {size}"
    if len(found.alike) == 1:
        return f"the worst of the {n} error rates that {who} predicts is off by {size}"
    return f"{len(found.alike)} of the {n} error rates that {who} predicts are off by up to {size}"


def _word_labels_needed(run: AuditedRun, evaluators: Sequence[str]) -> str:
    """How many labels a system would let the interval of a typical rate's error end at the
    limit."""
    rows = [row for name in evaluators for row in list_system_biases(run, name)]
    rows = [row for row in rows if has_interval(row, "bias") and row["n"]]
    if not rows:
        return ""
    limit, have = run.limits.max_bias, median(row["n"] for row in rows)
    needed = median(
        row["n"] * ((row["bias_high"] - row["bias_low"]) / 2 / limit) ** 2 for row in rows
    )
    if needed <= have:
        return ""
    # Rounded up to two digits: 1,437 labels are about 1,500.
    step = 10 ** max(len(str(int(needed))) - 2, 0)
    each = "" if rows[0]["system"] == ALL_TOGETHER else " per system"
    told = {"limit": limit, "needed": math.ceil(needed / step) * step, "have": round(have)}
    text = (
        " To know to within ±{limit:limit} points how far off a rate is, you need about {needed}"
        " labels"
    )
    return fill(f"{text}{each}; there are {{have}}.", told)


def _advise_on_order(run: AuditedRun, evaluators: Sequence[str]) -> Iterator[Advice]:
    """Whether systems come out in the right order."""
    reversing = [
        one
        for one in run.find(ORDER_CHECK)
        if one.verdict == "beyond" and one.evaluator in evaluators
    ]
    if reversing:
        turned = [(one.evaluator, sum(row["n_reversed"] for row in one.alike)) for one in reversing]
        told = [f"{name} puts {format_count(n, 'pair')} in the wrong order" for name, n in turned]
        yield Advice("Not for", f"ranking systems: {join_names(told)}.")
        return
    for name in evaluators:
        answer, agreeing = may_rank_systems(run, name), _format_agreeing_pairs(run, name)
        counts = count_ordered_system_rankings(list_orders_of(run, name))
        if answer is None or not agreeing or counts["n_reversed_max"]:
            continue
        text = f"{name} and the labels agree on {agreeing} pairs of systems."
        if answer.may == "yes":
            yield Advice("Good for", f"ranking systems: {text}")
            return
        if counts["n_one_sided"]:
            text += " On the rest, only one of the two finds a significant difference."
        yield Advice("Beware", f"Rankings: {text} No pair is reversed.")
        return


# ---- what to distrust


def _advise_on_few_labels(run: AuditedRun, best: Row) -> Iterator[Advice]:
    """The fewest labels behind a figure: an average over data sets is no more certain than the
    smallest of them."""
    parts = list(run.per_dataset("rates", "bacc", evaluator=best["evaluator"]))
    counts = [
        (row[key], noun, row["dataset"])
        for row in parts
        for _, key, noun in _MISTAKES.values()
        if key in row
    ]
    n, noun, dataset = min(
        (one for one in counts if one[0] is not None), default=(ENOUGH_FOR_SHARES, "", "")
    )
    if n < ENOUGH_FOR_SHARES:
        where = f" in {dataset}" if len(parts) > 1 else ""
        text = (
            f"These figures rest on only {format_count(n, f'labelled {noun}')}{where} and can"
            " change a lot with more"
        )
        yield Advice("Beware", f"{text}.")


def _advise_on_weak_places(run: AuditedRun, evaluator: str) -> Iterator[Advice]:
    """The data sets where BAcc is lowest and highest, where their intervals (with their bounds) do
    not meet."""
    parts = [
        row
        for row in run.per_dataset("rates", "bacc", evaluator=evaluator)
        if row["dataset"] != ALL_TOGETHER
    ]
    if parts:
        low, high = (choose(parts, key=lambda row: row["bacc"]) for choose in (min, max))
        if widen_interval(low, "bacc")[1] < widen_interval(high, "bacc")[0]:
            text = (
                "{dataset}: {evaluator} has a balanced accuracy of {bacc:whole} there, {top:whole}"
                " on {other}."
            )
            yield Advice(
                "Weak on", fill(text, low | {"top": high["bacc"], "other": high["dataset"]})
            )
