"""What should a reader do with these evaluators? The first screen of a run: a short table, then a
line for each piece of advice.

Terminal, report and notebook show the same screen. Each line follows from rows, decisions and
findings; what was not computed is not mentioned. A column of the table has one unit: shares in
percent, errors of rates in percentage points, or pairs of systems. Where more claims are unscored
than ``limits.max_unscored`` allows, a cell is the range of what is possible.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any, Literal

from factaudit.arrays.judgements import ALL_TOGETHER
from factaudit.audit import load_all_audits
from factaudit.audit.annotators import AGREEMENT
from factaudit.audit.core.audit_declaration import Column
from factaudit.audit.core.audited_run import AuditedRun, has_interval, widen_interval
from factaudit.audit.core.checks import Check, combine_figures
from factaudit.audit.core.result_rows import MACRO_MEAN, Row, is_total_key
from factaudit.audit.core.wording import (
    ENOUGH_FOR_SHARES,
    fill,
    format_heading_with_unit,
    join_names,
)
from factaudit.audit.decisions import (
    Permission,
    average_absolute_bias,
    count_agreeing_pairs,
    list_decisions,
    list_orders_of,
    list_system_biases,
)
from factaudit.audit.differences import find_bacc_difference
from factaudit.audit.estimates import (
    advise_on_estimates,
    expect_corrected_rates,
    format_cell,
    tabulate_estimates,
)
from factaudit.audit.invariance import format_variant_failures
from factaudit.audit.ranking import POWER_CHECK
from factaudit.audit.triage import REVIEWED
from factaudit.text.display_text import format_count

#: The model that the extra [local] brings: with it the whole path can be tried, and nothing be
#: measured.
TRIAL_MODEL = "SmolLM2-135M"
#: The title of a run that has none of its own.
DEFAULT_TITLE = "Evaluators compared"
#: The screen has at most so many evaluators, or so many systems where it shows estimates.
MAX_EVALUATORS, MAX_SYSTEMS = 8, 12
#: With fewer labelled errors (or correct claims), the only advice is to label more.
MIN_LABELS = 5
#: The audits of scores, with the figure whose range is stated: D-FActScore's if both were computed.
_SCORES = {"dfactscore": "init_dfactscore", "factscore": "score"}
#: A smaller range of what is possible for a score is not mentioned.
MAX_OPEN_SCORE = 0.01
#: A check has at most so many lines.
MAX_FINDINGS = 2
_BASELINES = "baselines that read nothing"
#: The tasks of decisions, as advice names them.
_TASKS = {
    "find single errors": "finding errors without review",
    "report a system's error rate": "publishing uncorrected error rates",
    "rank systems": "ranking systems",
}
#: How advice begins, by what a decision permits.
_WORDS: dict[Permission, str] = {"yes": "Good for", "no": "Not for", "cannot tell": "Unclear"}


@dataclass(frozen=True)
class Advice:
    """A line below the table: what it is about (``Use``, ``Avoid``, ``Not for``, ...), and one or
    two sentences."""

    word: str
    sentence: str

    @property
    def kind(self) -> Literal["good", "bad", "care"]:
        """How the word is coloured and marked."""
        if self.word in ("Avoid", "Not for"):
            return "bad"
        return "good" if self.word in ("Use", "Good for", "Instead") else "care"


@dataclass(frozen=True)
class Screen:
    """``columns``: headings of two lines each; ``rows``: a cell for each of them; ``more_rows``:
    those that do not fit. Without columns there is no figure to show."""

    size: str
    columns: list[tuple[str, str]]
    rows: list[list[str]]
    more_rows: list[list[str]]
    advice: list[Advice]

    @property
    def is_answer(self) -> bool:
        """Whether the screen says anything; for an engine's run its own sentences do."""
        return bool(self.columns or self.advice)


def compose_screen(results: Mapping[str, Any]) -> Screen:
    """The first screen of a ``results.json``'s content."""
    run = AuditedRun(results["audits"], results["about"])
    advice = [*_advise_on_evaluators(run), *list_warnings(run)]
    heads, table, most = *tabulate_evaluators(run), MAX_EVALUATORS
    if not table:
        heads, table, most = *tabulate_estimates(run), MAX_SYSTEMS
        advice += [Advice(*one) for one in advise_on_estimates(run)]
    if not table:
        heads, table, most = *tabulate_scores(run), MAX_SYSTEMS
        advice += [*_warn_of_open_scores(run)][:MAX_FINDINGS]
    if not table:
        heads, table = tabulate_agreement(run)
    known = [at for at in range(len(heads)) if any(row[at] for row in table)]
    heads, table = [heads[at] for at in known], [[row[at] or "–" for at in known] for row in table]
    return Screen(describe_size(run), heads, table[:most], table[most:], advice)


def rank_evaluators(run: AuditedRun) -> list[str]:
    """The evaluators from the highest balanced accuracy on, then those without one from the least
    mean bias; floors come last."""
    accuracy = {name: row.get("bacc") for name, row in run.overall("rates").items()}
    worth = {name: (1, value) for name, value in accuracy.items() if value is not None}
    for name in [one["name"] for one in run.about.get("evaluators") or []]:
        if name not in worth and (biases := _list_biases(run, name)):
            worth[name] = (0, -average_absolute_bias(biases)["off"])
    best_first = sorted(worth, key=worth.__getitem__, reverse=True)
    return sorted(best_first, key=run.floors.__contains__)


def describe_size(run: AuditedRun) -> str:
    """How many evaluators, claims, labels and errors the figures rest on."""
    n_floors, evaluators = len(run.floors), run.about.get("evaluators") or []
    parts = [format_count(len(evaluators) - n_floors, "evaluator")] if evaluators else []
    if n_floors:
        parts.append(format_count(n_floors, "baseline that reads nothing", _BASELINES))
    claims = run.about.get("claims") or []
    if run.about.get("counts"):
        return f"{parts[0]}, by published error rates; {run.about['counts']}."
    if not claims:
        return ""
    n_labelled, n_correct, n_claims = _count_labels(run)
    parts.append(f"{format_count(n_claims, 'claim')} in {format_count(len(claims), 'data set')}")
    parts[-1] += _count_systems(claims)
    how_many = {n_claims: "all", 0: "none"}.get(n_labelled, f"{n_labelled:,}")
    parts.append(f"{how_many} labelled")
    if n_labelled:
        n_errors = n_labelled - n_correct
        parts.append(format_count(n_errors, "of them as an error", "of them as errors"))
    text = f"{', '.join(parts)}."
    if any(row["dataset"] == MACRO_MEAN for row in run.overall("rates").values()):
        text += f" Figures are averages over the {len(claims):,} data sets."
    if any(row.get("bacc") is not None for row in run.overall("rates").values()):
        text += " Balanced accuracy is the mean of the share of errors found and the share of"
        text += " correct claims passed; guessing gives 50 %."
    if n_labelled and evaluators and not any(row["n_systems"] for row in claims):
        text += " No column names systems (--system COLUMN), so their error rates and their order"
        text += " were not computed."
    return text


def _count_systems(claims: Sequence[Row]) -> str:
    """How many systems wrote the claims of each data set; "" where none is named."""
    numbers = sorted({row["n_systems"] for row in claims} - {0})
    if not numbers:
        return ""
    text = f" with {format_count(numbers[-1], 'system')}"
    if len(numbers) > 1:
        text = f" with {numbers[0]:,} to {numbers[-1]:,} systems"
    return f"{text} each" if len(claims) > 1 else text


def _count_labels(run: AuditedRun) -> tuple[int, int, int]:
    """Claims that are labelled, those labelled as correct, and all."""
    keys, claims = ("n_labelled", "n_attributable", "n_claims"), run.about.get("claims") or []
    labelled, correct, total = (sum(row.get(key) or 0 for row in claims) for key in keys)
    return labelled, correct, total


# ---- the table

_HEADS = (
    ("errors", "missed"),
    ("correct claims", "flagged"),
    ("system error rates", "off by, on average"),
    ("agrees with labels", "on pairs of systems"),
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
        row, biases, orders = (
            overall.get(name, {}),
            _list_biases(run, name),
            list_orders_of(run, name),
        )
        cells = [
            _format_accuracy(run, row),
            _format_share(run, row, "fpr", "n_unattributable"),
            _format_share(run, row, "fnr", "n_attributable"),
            run.fill("{off:rough}", average_absolute_bias(biases)) if biases else "",
            count_agreeing_pairs(orders) if _is_any_pair_ordered(orders) else "",
            *(format_variant_failures(run, name, how) for how in ("changed", "same")),
        ]
        if any(cells):
            table.append([name, *cells])
    accuracy = ("balanced", "accuracy")
    if any(has_interval(row, "bacc") for row in overall.values()):
        accuracy = ("balanced accuracy", f"({100 * run.confidence:.3g} % CI)")
    return [("", "evaluator"), accuracy, *_HEADS], table


def _list_biases(run: AuditedRun, evaluator: str) -> list[Row]:
    """The rates of single systems: the whole of a data set that names none is no system."""
    return [row for row in list_system_biases(run, evaluator) if row["system"] != ALL_TOGETHER]


def _is_any_pair_ordered(orders: Sequence[Row]) -> bool:
    """Whether the labels order a pair of systems significantly."""
    return any(row["n_ordered"] for row in orders)


def _format_accuracy(run: AuditedRun, row: Row) -> str:
    if row.get("bacc") is None:
        return ""
    text = run.fill("{bacc:whole}", row)
    if run.is_open(row) or not has_interval(row, "bacc"):
        return text
    return f"{text} ({fill('{bacc_low:whole}–{bacc_high:whole}', row).replace(' %', '')})"


def _format_share(run: AuditedRun, row: Row, wrong: str, n_key: str) -> str:
    """A share of mistakes; of few labels of one data set with the count."""
    if row.get(wrong) is None:
        return ""
    text, n = run.fill(f"{{{wrong}:whole}}", row), row.get(n_key) or ENOUGH_FOR_SHARES
    if n >= ENOUGH_FOR_SHARES or row["dataset"] == MACRO_MEAN or run.is_open(row):
        return text
    return f"{text} ({round(row[wrong] * n):,} of {n:,})"


def tabulate_scores(run: AuditedRun) -> tuple[list[tuple[str, str]], list[list[str]]]:
    """Of FActScore or D-FActScore: headings, and a row with the scores of each system."""
    name = _find_score(run)
    if name is None:
        return [], []
    audit = load_all_audits()[name]
    columns = {key: audit.columns[key] for key in audit.plot.keys} if audit.plot else {}
    return _tabulate_figures("system", columns, _name_scored_rows(run.rows(name)))


def _name_scored_rows(rows: Sequence[Row]) -> list[tuple[str, Row]]:
    """Rows of scores, each with whose scores it has: the system, and the data set and verifier
    where there are several. Claims need not name a system."""
    varied = [key for key in ("dataset", "evaluator") if len({row[key] for row in rows}) > 1]
    named = []
    for row in rows:
        system = row["system"] or "texts without a system"
        who = "all systems" if is_total_key(row["system"]) else system
        named.append((", ".join([who, *(row[key] for key in varied)]), row))
    return named


def _find_score(run: AuditedRun) -> str | None:
    """The audit with the scores of a run."""
    return next((name for name in _SCORES if run.rows(name)), None)


def _warn_of_open_scores(run: AuditedRun) -> Iterator[Advice]:
    """Between which values the score of all systems (or of the only one) lies, whatever facts
    without a verdict had been, where these leave open more than `MAX_OPEN_SCORE`."""
    name = _find_score(run)
    if name is None:
        return
    key, named = _SCORES[name], _name_scored_rows(run.rows(name))
    # A run of one system has no row of all systems.
    totals = [(who, row) for who, row in named if is_total_key(row["system"])]
    for who, row in totals or named:
        least, most = row.get(f"{key}_min"), row.get(f"{key}_max")
        if least is not None and most is not None and most - least > MAX_OPEN_SCORE:
            text = "Some facts have no verdict. Whatever these had been, the score of {whose}"
            text += f" is between {{{key}_min:percent}} and {{{key}_max:percent}}."
            yield Advice("Beware", fill(text, row | {"whose": who}))


def tabulate_agreement(run: AuditedRun) -> tuple[list[tuple[str, str]], list[list[str]]]:
    """Of a run without evaluators: headings, and a row for all annotators and each two of them."""
    rows = [] if run.about.get("evaluators") else run.rows("agreement")
    columns = {key: AGREEMENT.columns[key] for key in ("n", "n_split", "agree", "kappa", "alpha")}
    has_datasets = len({row["dataset"] for row in rows}) > 1
    named = []
    for row in rows:
        name = f"{row['annotator_a']} and {row['annotator_b']}"
        if is_total_key(row["annotator_a"]):
            name = "all annotators"
        named.append((f"{row['dataset']}, {name}" if has_datasets else name, row))
    return _tabulate_figures("annotators", columns, named)


def _tabulate_figures(
    what: str, columns: Mapping[str, Column], named_rows: Sequence[tuple[str, Row]]
) -> tuple[list[tuple[str, str]], list[list[str]]]:
    """Headings, and of each row its name and its figures."""
    heads = [("", what), *(("", format_heading_with_unit(one)) for one in columns.values())]
    table = [
        [name, *(format_cell(column, row, key) for key, column in columns.items())]
        for name, row in named_rows
    ]
    return heads, table


# ---- the advice


def list_warnings(run: AuditedRun) -> Iterator[Advice]:
    """What keeps a reader from using any figure: a model for trying, and findings that belong on
    the first screen."""
    trial = [row["name"] for row in run.about.get("evaluators") or [] if uses_trial_model(row)]
    if trial:
        yield Advice(
            "Beware", f"The model of {trial[0]} is only for trying factaudit; ignore its figures."
        )
    # That labels which are too few for anything order no systems goes without saying.
    left_out = [POWER_CHECK] if _explain_lacking_labels(run) else list[Check]()
    for audit in load_all_audits().values():
        for check in audit.checks if run.rows(audit.name) else ():
            if check.on_screen and check not in left_out:
                found = [one for one in run.find(check) if one.verdict == "beyond"]
                found.sort(key=lambda one: -check.measure_gravity(one.evidence))
                yield from (Advice("Beware", one.statement) for one in found[:MAX_FINDINGS])


def uses_trial_model(evaluator_row: Row) -> bool:
    """Whether the model of ``base_url=local`` that comes along made verdicts, or the facts, by name
    and signature."""
    return TRIAL_MODEL in f"{evaluator_row.get('name')} {evaluator_row.get('signature')}"


def _advise_on_evaluators(run: AuditedRun) -> Iterator[Advice]:
    overall = run.overall("rates")
    names = [name for name in rank_evaluators(run) if name not in run.floors]
    rows = [overall[name] for name in names if name in overall]
    lacking = _explain_lacking_labels(run)
    if lacking:
        yield Advice("Label more", lacking)
    elif any(has_interval(row, "bacc") for row in rows):
        yield from _advise_on_accuracy(run, rows)
    elif any(has_interval(row, "bias") for name in names[:1] for row in _list_biases(run, name)):
        yield from _advise_on_tasks(run, names[:1])
    elif names:
        yield Advice("Beware", "No intervals were computed, so differences may be due to chance.")


def _explain_lacking_labels(run: AuditedRun) -> str:
    """What to do where the labels are too few to advise anything else."""
    labelled, correct, total = _count_labels(run)
    errors = labelled - correct
    if not run.about.get("evaluators") or not total or min(errors, correct) >= MIN_LABELS:
        return ""
    if not labelled:
        text = "No claim is labelled, so nobody can say which verdicts are right. Label a sample:"
        text += " factaudit sample draws it, and factaudit estimate computes error rates from its"
        return f"{text} labels."
    text = f"{format_count(errors, 'labelled error')} and"
    text += f" {format_count(correct, 'labelled correct claim')}"
    text += " are too few to choose an evaluator, to flag errors with it, to publish error rates or"
    text += f" to rank systems. Label at least {ENOUGH_FOR_SHARES} errors and"
    return f"{text} {ENOUGH_FOR_SHARES} correct claims (factaudit sample chooses what to label)."


def _advise_on_accuracy(run: AuditedRun, rows: Sequence[Row]) -> Iterator[Advice]:
    """rows: of each evaluator that for all claims, the most accurate first."""
    able = [row for row in rows if widen_interval(row, "bacc")[0] > 0.5]
    if not able:
        who = f"{rows[0]['evaluator']} is not"
        if len(rows) > 1:
            who = f"None of the {len(rows)} evaluators is"
        yield Advice("Avoid", f"{who} significantly better than guessing.")
        yield from _advise_on_few_labels(run)
        return
    worse = [
        row for row in rows[1:] if widen_interval(_subtract_bacc(run, rows[0], row), "gap")[0] > 0
    ]
    alike = [row for row in able if row not in worse] or able[:1]
    names = [row["evaluator"] for row in alike]
    yield Advice("Use", _word_recommended(run, names, [row["evaluator"] for row in worse]))
    bad = [row for row in rows if row not in alike and _is_bad(row)]
    if bad:
        reasons = [_word_badness(run, row) for row in bad]
        yield Advice("Avoid", f"{_join_clauses(reasons)}.")
    yield from _advise_on_tasks(run, names)
    yield from _advise_on_few_labels(run)
    yield from _advise_on_weak_places(run, names[0])


def _subtract_bacc(run: AuditedRun, best: Row, row: Row) -> Row:
    """How far the best evaluator's BAcc is above another one's, as the figure ``gap``: the paired
    difference on the same claims; where that was not computed, as if the two were independent."""
    found = find_bacc_difference(run, best["dataset"], best["evaluator"], row["evaluator"])
    return found or combine_figures("gap", (best, "bacc", 1), (row, "bacc", -1))


def _is_bad(row: Row) -> bool:
    """Whether an evaluator is wrong on most errors, or on most correct claims, or may be
    guessing."""
    is_mostly_wrong = any(widen_interval(row, key)[1] < 0.5 for key in ("tpr", "tnr"))
    return is_mostly_wrong or widen_interval(row, "bacc")[0] <= 0.5


def _word_badness(run: AuditedRun, row: Row) -> str:
    if widen_interval(row, "tnr")[1] < 0.5:
        return f"{row['evaluator']}: it {run.fill('misses {fpr:whole} of the errors', row)}"
    if widen_interval(row, "tpr")[1] < 0.5:
        return f"{row['evaluator']}: it {run.fill('flags {fnr:whole} of the correct claims', row)}"
    return f"{row['evaluator']}: it is not significantly better than guessing"


def _word_recommended(run: AuditedRun, alike: Sequence[str], worse: Sequence[str]) -> str:
    """Which evaluator to use, whether alone, how sure that is, and whether it was trained on these
    data."""
    text = " or ".join(alike) if len(alike) < 3 else alike[0]
    tasks = [one for name in alike for one in list_decisions(run, name)]
    if tasks and not any(one.may == "yes" for one in tasks):
        text += ", together with human review"
    better = f"significantly more accurate than {join_names(worse) or 'guessing'}."
    if len(alike) == 1:
        text += f"; it is {better}"
    elif len(alike) == 2:
        text += "; the difference between them is not significant."
    else:
        text += f"; it is not significantly more accurate than {join_names(alike[1:])}."
    trained = [name for name in alike if _is_trained_on(run, name)]
    if trained:
        who = "Both" if len(trained) == len(alike) == 2 else join_names(trained)
        were = "was" if len(trained) == 1 else "were"
        text += f" {who} {were} trained on this benchmark, so expect lower accuracy on your data."
    if worse and len(alike) > 1:
        text += f" {alike[0]} is {better}"
    return text


def _is_trained_on(run: AuditedRun, evaluator: str) -> bool:
    """Whether an evaluator was trained on data of this run: ``RAGTruth`` is the data of
    ``RAGTruth-QA``."""
    about = {row["name"]: row for row in run.about.get("evaluators") or []}
    names = about.get(evaluator, {}).get("trained_on") or []
    starts = tuple(name.casefold() for name in names)
    return any(
        row["dataset"].casefold().startswith(starts) for row in run.about.get("claims") or []
    )


def _join_clauses(clauses: Sequence[str]) -> str:
    """The first two of them, and how many more there are."""
    more = [f"and {len(clauses) - 2} more"] if len(clauses) > 2 else []
    return "; ".join([*clauses[:2], *more])


def _advise_on_tasks(run: AuditedRun, evaluators: Sequence[str]) -> Iterator[Advice]:
    """For each task whether one of these evaluators is fit for it, and what else to do."""
    answers = [(name, one) for name in evaluators for one in list_decisions(run, name)]
    for task, doing in _TASKS.items():
        mine = [(name, one) for name, one in answers if one.task == task]
        required = [one.required for _, one in mine[:1]]  # said once for each task
        said = {
            may: [f"{name} {one.figure}" for name, one in mine if one.may == may] for may in _WORDS
        }
        # What is unclear is said of one evaluator, and only where none is good for the task. The
        # check of power speaks where the labels order no pair of systems.
        is_told = task == "rank systems" and not _is_any_pair_ordered(
            list_orders_of(run, evaluators[0])
        )
        said["cannot tell"] = [] if said["yes"] or is_told else said["cannot tell"][:1]
        for may, word in _WORDS.items():
            if said[may]:
                rule = f" (required: {required.pop()})" if required else ""
                yield Advice(word, f"{doing}{rule}: {_join_clauses(said[may])}.")
        if mine and not said["yes"]:
            yield from _advise_instead(run, task, evaluators)


def _advise_instead(run: AuditedRun, task: str, evaluators: Sequence[str]) -> Iterator[Advice]:
    """What to do where no evaluator is fit for a task."""
    if task == "find single errors":
        tuned = [run.overall("discrimination").get(name, {}) for name in evaluators]
        keys = ("tuned_tpr", "tuned_tnr")
        for row in tuned:
            if all(widen_interval(row, key)[0] > run.limits.min_rate for key in keys):
                text = "tune the threshold of {evaluator}. With a threshold tuned to each data set,"
                text += " TPR is {tuned_tpr:percent} and TNR is {tuned_tnr:percent}."
                yield Advice("Instead", fill(text, row))
                break
        reviews = [run.overall("triage").get(name, {}) for name in evaluators]
        able = [row for row in reviews if row.get("errors_found") is not None]
        if able:
            best = max(able, key=itemgetter("errors_found")) | {"reviewed": REVIEWED}
            text = "let people review the claims with the lowest scores first, which are the least"
            text += " supported (factaudit triage lists them). The lowest {reviewed:whole} of"
            text += " {evaluator}'s scores contain {errors_found:whole} of the errors."
            if 0 < best["review_share"] < 1:
                text += " If people review the lowest {review_share:whole} of its scores, at most"
                text += " {max_error:limit} % of the claims that are left are errors"
                text += " ({confidence:limit} % confidence)."
            yield Advice("Instead", fill(text, best))
    elif task == "report a system's error rate":
        text = (
            "publish corrected rates of your next claims: with about 100 labels per data set,"
            " factaudit estimate gives each system a rate and its 95 % CI (factaudit sample chooses"
            " what to label)."
        )
        if run.rows("estimate_summary"):
            text = expect_corrected_rates(run, _list_biases(run, evaluators[0]))
        if text:
            yield Advice("Instead", text)


# ---- what to distrust


def _advise_on_few_labels(run: AuditedRun) -> Iterator[Advice]:
    """The fewest labels behind a figure: an average over data sets is no more certain than the
    smallest of them."""
    counts = []
    for row in run.about.get("claims") or []:
        n_correct = row["n_attributable"]
        n_errors = row["n_labelled"] - n_correct
        if n_correct and n_errors:
            counts += [(n_errors, "error", row["dataset"])]
            counts += [(n_correct, "correct claim", row["dataset"])]
    n, noun, dataset = min(counts, default=(ENOUGH_FOR_SHARES, "", ""))
    if n < ENOUGH_FOR_SHARES:
        text = f"These figures rest on only {format_count(n, f'labelled {noun}')} on {dataset} and"
        yield Advice("Beware", f"{text} can change a lot with more.")


def _advise_on_weak_places(run: AuditedRun, evaluator: str) -> Iterator[Advice]:
    """The data sets where BAcc is lowest and highest, where their intervals (with their bounds) do
    not meet."""
    parts = [
        row
        for row in run.per_dataset("rates", "bacc", evaluator=evaluator)
        if row["dataset"] != ALL_TOGETHER
    ]
    if parts:
        low, high = (choose(parts, key=itemgetter("bacc")) for choose in (min, max))
        if widen_interval(low, "bacc")[1] < widen_interval(high, "bacc")[0]:
            text = "{dataset}: {evaluator} has a balanced accuracy of {bacc:whole} there, "
            text += "{top:whole} on {other}."
            told = low | {"top": high["bacc"], "other": high["dataset"]}
            yield Advice("Weak on", fill(text, told))
