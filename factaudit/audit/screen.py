"""What should a reader do with these evaluators? The first screen of a run: a short table, then a
line for each advice.

Terminal, report and notebook show the same screen. Every line follows from rows, decisions and
findings, and what was not computed is not mentioned. The table has one unit in each column: shares
in percent, errors of rates in percentage points, and pairs of systems. Where more claims are
unscored than ``limits.max_unscored`` allows, a cell is the range of what is possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
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
    may_find_errors,
    may_publish_rates,
    may_rank_systems,
)
from factaudit.audit.differences import find_bacc_difference
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
        n = format_count(len(evaluators), "evaluator")
        return f"{n}, by published error rates; {run.about['counts']}."
    if not claims:
        return ""
    labelled, correct, total = _count_labels(run)
    floors = [("baseline that reads nothing", "baselines that read nothing", len(run.floors))]
    nouns = [("evaluator", "evaluators", len(evaluators) - len(run.floors)), *floors]
    parts = [" and ".join(format_count(n, one, many) for one, many, n in nouns if n)]
    parts.append(f"{format_count(total, 'claim')} in {format_count(len(claims), 'data set')}")
    parts.append("none of them labelled")
    if labelled:
        all_or_some = "all" if labelled == total else f"{labelled:,}"
        errors = format_count(labelled - correct, "of them as an error", "of them as errors")
        parts[-1:] = [f"{all_or_some} labelled", errors]
    text = f"{', '.join(filter(None, parts))}."
    if any(row["dataset"] == MACRO_MEAN for row in run.overall("rates").values()):
        text += f" Figures are averages over the {len(claims):,} data sets."
    return text


def _count_labels(run: AuditedRun) -> tuple[int, int, int]:
    """Claims that are labelled, those labelled as correct, and all."""
    keys, claims = ("n_labelled", "n_attributable", "n_claims"), run.about.get("claims") or []
    labelled, correct, total = (sum(row.get(key) or 0 for row in claims) for key in keys)
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
    overall, table = run.overall("rates"), []
    names = list(dict.fromkeys([*rank_evaluators(run), *overall]))
    if not overall and run.rows("estimates"):
        names = []
    for name in [name for name in names if name not in run.floors] or names:
        row, biases = overall.get(name, {}), _list_biases(run, name)
        cells = [
            _format_accuracy(run, row),
            *(_format_mistakes(run, row, key) for key in _MISTAKES),
        ]
        cells += [_format_bias(run, biases) if biases else "", _format_agreeing_pairs(run, name)]
        cells += [format_variant_failures(run, name, how) for how in ("changed", "same")]
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
    lacking = _explain_lacking_labels(run)
    if lacking:
        yield Advice(LABEL_MORE, lacking)
    elif any(has_interval(row, "bacc") for row in rows):
        yield from _advise_on_accuracy(run, rows)
    elif any(has_interval(row, "bias") for row in figures):
        yield from _advise_on_error_rates(run, ranked[:1])
        yield from _advise_on_order(run, ranked[:1])
    elif any(row.get("bacc") is not None or row.get("bias") is not None for row in figures):
        yield Advice("Beware", "No intervals were computed, so differences may be due to chance.")


def _explain_lacking_labels(run: AuditedRun) -> str:
    """What to do where the labels are too few to advise anything else."""
    labelled, correct, total = _count_labels(run)
    errors = labelled - correct
    if not run.about.get("evaluators") or not total or min(errors, correct) >= MIN_LABELS:
        return ""
    how = "label a sample (factaudit sample)" if labelled < total else "add claims and label them"
    if not labelled:
        return f"No claim is labelled, so nobody can say which verdicts are right. First {how}."
    text = f"{format_count(errors, 'labelled error')} and"
    text += f" {format_count(correct, 'labelled correct claim')}"
    text += " are too few to choose an evaluator, to flag errors with it, to publish error rates or"
    return f"{text} to rank systems. Aim for at least {ENOUGH_FOR_SHARES} of each: {how}."


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
    found = find_bacc_difference(run, best["dataset"], best["evaluator"], row["evaluator"])
    return found or combine_figures("gap", (best, "bacc", 1), (row, "bacc", -1))


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
    names = [row["evaluator"] for row in alike]
    answers = {name: found.may for name in names if (found := may_find_errors(run, name))}
    fit = [name for name in names if answers.get(name) == "yes"]
    if fit:
        least = fill("{least:limit} %", {"least": run.limits.min_rate})
        text = f"TPR and TNR of {join_names(fit)} are significantly more than {least}"
        yield Advice("Good for", f"finding single errors: {text}.")
        return
    for right, verb, what in (("tnr", "misses", "them"), ("tpr", "flags", "the correct claims")):
        if all(widen_interval(row, right)[1] < run.limits.min_rate for row in alike):
            best = max(alike, key=lambda row: row[right])
            text = f"{best['evaluator']} {verb} {_format_mistakes(run, best, right)} of {what}"
            even = "even " if len(alike) > 1 else ""
            yield Advice("Not for", f"finding single errors: {even}{text}.")
            break
    yield from _advise_on_review(run, names)


def _advise_on_review(run: AuditedRun, evaluators: Sequence[str]) -> Iterator[Advice]:
    """Which claims people should review, by the scores of one of these evaluators: the one that
    finds most errors."""
    rows = [run.overall("triage").get(name, {}) for name in evaluators]
    able = [row for row in rows if row.get("errors_found") is not None]
    if not able:
        return
    best = max(able, key=itemgetter("errors_found")) | {"reviewed": REVIEWED}
    text = "review the lowest scores first: {evaluator}'s lowest {reviewed:whole} contain "
    text += "{errors_found:whole} of the errors."
    if best["review_share"] == 1:
        text += " No cut-off is shown to leave at most {max_error:limit} % errors"
        text += " ({confidence:limit} % confidence)."
    elif best["review_share"] > 0:
        text += " If people review the lowest {review_share:whole} of its scores, at most"
        text += " {max_error:limit} % of the claims that are left are errors"
        text += " ({confidence:limit} % confidence)."
    yield Advice("Instead", fill(text, best))


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
        worst = join_names(_word_far_rates(run, far[name]) for name in unfit)
        text = "publishing error rates as they are. Significantly more than"
        text += f" {limit} off: {worst}."
        if unknown:
            text += f" For {join_names(unknown)}, there are too few labels to tell."
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
    """``2 of 12 error rates by a (the worst by 23 points)``."""
    told = found.row | {"who": found.evaluator, "size": _format_bias(run, [found.row])}
    text = "{n_beyond} of {n_compared:number error rate} by {who} (the worst by {size})"
    return fill(text, told)


def _word_labels_needed(run: AuditedRun, evaluators: Sequence[str]) -> str:
    """How many labels a system would let the interval of a typical rate's error end at the
    limit."""
    rows = [row for name in evaluators for row in list_system_biases(run, name)]
    rows = [row for row in rows if has_interval(row, "bias") and row["n"]]
    if not rows:
        return ""
    limit, have = run.limits.max_bias, median(row["n"] for row in rows)
    halves = [(row["bias_high"] - row["bias_low"]) / 2 for row in rows]
    needed = median(row["n"] * (half / limit) ** 2 for row, half in zip(rows, halves, strict=True))
    if needed <= have:
        return ""
    # Rounded to two digits: 1,437 labels are about 1,400.
    told = {"limit": limit, "needed": int(float(f"{needed:.2g}")), "have": round(have)}
    text = " To know to within ±{limit:limit} points how far off a rate is, you need about {needed}"
    return fill(f"{text} labels of each system; there are {{have}}.", told)


def _advise_on_order(run: AuditedRun, evaluators: Sequence[str]) -> Iterator[Advice]:
    """Whether systems come out in the right order."""
    told = []
    for one in run.find(ORDER_CHECK):
        if one.verdict == "beyond" and one.evaluator in evaluators:
            n = sum(row["n_reversed"] for row in one.alike)
            told.append(f"{one.evaluator} puts {format_count(n, 'pair')} in the wrong order")
    if told:
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
    parts = run.per_dataset("rates", "bacc", evaluator=best["evaluator"])
    counts = [
        (row[key], noun, describe_place(row).format(**row))
        for row in parts
        for _, key, noun in _MISTAKES.values()
        if row.get(key) is not None
    ]
    n, noun, where = min(counts, default=(ENOUGH_FOR_SHARES, "", ""))
    if n < ENOUGH_FOR_SHARES:
        text = f"These figures rest on only {format_count(n, f'labelled {noun}')}{where} and can"
        yield Advice("Beware", f"{text} change a lot with more.")


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
