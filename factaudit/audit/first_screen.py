"""The first screen of a run: a short table of the evaluators, then what to use, what not, and what to do instead.

Terminal, report and notebook show the same. Everything here follows from the rows of the audits; what was not computed
is not said.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import starmap
from typing import Any, Literal

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.audit import load_all_audits, make_audited_run
from factaudit.audit.core.audit_declaration import AuditedRun
from factaudit.audit.core.decision_limits import (
    has_interval,
    is_significantly_above,
    is_significantly_below,
    read_decision_limits,
)
from factaudit.audit.core.evaluator_comparison import (
    find_datasets_of_lowest_and_highest_bacc,
    find_least_review_evaluator_row,
    find_overall_evaluator_rows,
    is_difference_open_by_unscored_claims,
    is_significantly_better_evaluator,
)
from factaudit.audit.core.finding_parts import format_first_finding_names
from factaudit.audit.core.result_rows import MACRO_MEAN, Row
from factaudit.audit.core.statements import Statement, join_statements, make_statement
from factaudit.audit.decomposition import list_decomposition_advice
from factaudit.audit.first_screen_estimates import list_first_screen_estimate_advice, select_level_of_estimates
from factaudit.audit.first_screen_systems import list_first_screen_system_advice
from factaudit.audit.first_screen_table import (
    build_first_screen_estimate_table,
    build_first_screen_evaluator_table,
    is_said_as_share,
    list_first_screen_unscored_advice,
    state_missed_errors_or_false_alarms,
)
from factaudit.audit.input_description import (
    describe_verified_facts,
    list_advice_on_sealed_test_openings,
    uses_trial_model,
)
from factaudit.audit.invariance import list_invariance_advice
from factaudit.audit.quantification import list_error_rate_bias_rows
from factaudit.text.display_text import format_count

#: The title of a run that has none of its own.
DEFAULT_TITLE = "Evaluators compared"
#: The first screen has at most so many evaluators.
MAX_EVALUATORS = 8
#: Of a run without evaluators to compare, it has at most so many systems.
MAX_ESTIMATED_SYSTEMS = 12
#: With fewer labelled errors (or correct claims), the advice is to label more.
_MIN_LABELS_OF_A_CLASS = 5
#: So many are named where several evaluators are avoided.
_MAX_AVOIDED = 2


@dataclass(frozen=True)
class ScreenAdviceLine:
    """A line below the table: what it is about (``Use``, ``Avoid``, ``Not for``, ...), and a sentence."""

    word: str
    sentence: Statement

    @property
    def kind(self) -> Literal["good", "bad", "care"]:
        """How the word is coloured and marked."""
        if self.word in ("Use", "Best", "Good for", "Instead"):
            return "good"
        return "bad" if self.word in ("Avoid", "Not for", "Do not use") else "care"


@dataclass(frozen=True)
class FirstScreen:
    """``columns``: headings of two lines each, ``""`` for an empty one; ``rows``: a cell for each. No columns: there is
    no evaluator with a figure. ``more_rows``: those behind the best."""

    size: str
    columns: list[tuple[str, str]]
    rows: list[list[str]]
    more_rows: list[list[str]]
    advice: list[ScreenAdviceLine]

    @property
    def is_answer(self) -> bool:
        """Whether it says anything; of an engine's run its own sentences do."""
        return bool(self.columns or self.advice)

    def describe_shown_rows(self) -> str:
        """``The best 8 of 12 evaluators``: where `rows` are not all."""
        way, noun = ("first", "rates") if self.columns[0][1] == "system" else ("best", "evaluators")
        return f"The {way} {len(self.rows)} of {len(self.rows) + len(self.more_rows)} {noun}"


def compose_first_screen(results: Mapping[str, Any]) -> FirstScreen:
    """The first screen of a ``results.json``'s content."""
    run = make_audited_run(results["audits"], results["about"])
    ranked = rank_evaluators_for_first_screen(run)
    columns, rows = build_first_screen_evaluator_table(run, ranked)
    advice, most = list(_list_screen_advice(run, ranked)), MAX_EVALUATORS
    if not columns and run.rows("estimates"):
        columns, rows = build_first_screen_estimate_table(run)
        advice = list(starmap(ScreenAdviceLine, list_first_screen_estimate_advice(run)))
        most = MAX_ESTIMATED_SYSTEMS
    size = describe_first_screen_run_size(run, has_estimates=not ranked)  # beside evaluators advice says it
    return FirstScreen(size, columns, rows[:most], rows[most:], advice)


def rank_evaluators_for_first_screen(run: AuditedRun) -> list[str]:
    """The evaluators from the best on, by the first audit that can say so; floors, no candidates, come last."""
    for name, audit in load_all_audits().items():
        if audit.best is not None and (found := audit.best(run.rows(name))):
            return sorted(found, key=run.floors.__contains__)
    return []


def describe_first_screen_run_size(run: AuditedRun, has_estimates: bool = True) -> str:
    """How many evaluators, claims, labels and errors there are, and (has_estimates) what labels estimates rest on."""
    about, estimated = run.about, run.rows("estimate_summary")
    level = select_level_of_estimates(estimated)
    n_estimated = sum(row["n_labels"] or 0 for row in estimated if row["level"] == level)
    claims, evaluators = (about.get(key) or [] for key in ("claims", "evaluators"))
    overall = find_overall_evaluator_rows(run.rows("rates")).values()
    are_means = any(row["dataset"] == MACRO_MEAN for row in overall)
    of_systems = _describe_systems_of_mean_bias(run, overall) if are_means else ""
    if about.get("counts"):
        text = f"{format_count(len(evaluators), 'evaluator')}: {about['counts']}, so that there are no intervals."
        return text + f" Rates are means over data sets{of_systems}." * are_means
    if not claims:
        return ""
    labelled, attributable, total = (
        sum(row.get(key) or 0 for row in claims) for key in ("n_labelled", "n_attributable", "n_claims")
    )
    floors = sum(bool(row.get("floor")) for row in evaluators)
    text = format_count(len(evaluators) - floors, "evaluator") if evaluators else ""
    text += f" and {format_count(floors, 'floor')}" * bool(floors)
    what = f"{format_count(total, 'claim')} in {format_count(len(claims), 'data set')}"
    if run.rows("dfactscore"):
        text, what, total = describe_verified_facts(run)
    text = ", ".join(filter(None, [text, what])) + f" (rates are their means{of_systems})" * (labelled and are_means)
    if not labelled and n_estimated:
        return f"{text}; estimates rest on {format_count(n_estimated, 'label')}, all that is labelled."
    if not labelled:
        return f"{text}, none labelled."
    share = "all labelled" if labelled == total else f"{labelled:,} labelled"
    errors = labelled - attributable
    found = f"{errors:,} are errors" if errors > 1 else "one is an error" if errors else "none is an error"
    if has_estimates and 0 < n_estimated < labelled:
        found += f". Estimates rest on {n_estimated:,} of the labels"
    return f"{text}, {share}: {found}."


def _describe_systems_of_mean_bias(run: AuditedRun, overall: Collection[Row]) -> str:
    """Over how many rates the mean |bias| is, where that is not the mean of the data sets' means."""
    of_evaluators = [list_error_rate_bias_rows(run.rows("quantification"), row["evaluator"]) for row in overall]
    systems = Counter(row["dataset"] for row in max(of_evaluators, key=len, default=[]))
    n_datasets = max(row.get("n_datasets") or 0 for row in overall)
    if not systems or (len(systems) == n_datasets and len(set(systems.values())) == 1):
        return ""
    return f"; “off by” is the mean over {format_count(systems.total(), 'system rate')} of {len(systems):,}"


# ---------------------------------------------------------------------------------------------------------- the advice


def _list_screen_advice(run: AuditedRun, ranked: Sequence[str]) -> Iterator[ScreenAdviceLine]:
    yield from list_scoring_engine_advice(run)
    yield from _list_first_screen_evaluator_advice(run, ranked)
    yield from starmap(ScreenAdviceLine, list_invariance_advice(run))


def list_scoring_engine_advice(run: AuditedRun) -> Iterator[ScreenAdviceLine]:
    """What keeps from using the scores of an engine: facts that are not of the text, and a model that is for trying."""
    yield from starmap(ScreenAdviceLine, [*list_decomposition_advice(run), *list_advice_on_sealed_test_openings(run)])
    tried = [row for row in run.about.get("evaluators") or [] if uses_trial_model(row)]
    if tried:
        text = "the model of {row.name} is there to try the tool: no figure that it made says anything."
        yield ScreenAdviceLine("Beware", make_statement(text, row=tried[0]))


def _list_first_screen_evaluator_advice(run: AuditedRun, ranked: Sequence[str]) -> Iterator[ScreenAdviceLine]:
    overall = find_overall_evaluator_rows(run.rows("rates"))
    rows = [overall[name] for name in ranked if name not in run.floors]
    if not rows:
        if run.about.get("claims") and not any(row.get("n_labelled") for row in run.about["claims"]):
            text = "a sample of the claims (factaudit sample): without labels nothing says who is right."
            yield ScreenAdviceLine("Label", make_statement(text))
        return
    most = max(rows, key=lambda row: (row.get("n_unattributable") or 0) + (row.get("n_attributable") or 0))
    counts = [n for key in ("n_unattributable", "n_attributable") if (n := most.get(key)) is not None]
    if counts and min(counts) < _MIN_LABELS_OF_A_CLASS:
        yield from _list_first_screen_few_labels_advice(run, most)
        return
    if not any(has_interval(row, "bacc") for row in rows):
        word, text = "Best", "{best.evaluator} has the highest balanced accuracy; no interval was computed, and no "
        text += "difference tested."
        if len(rows) == 1:
            word, text = "Beware", "No interval was computed: how far these figures may be off by chance is not known."
        elif rows[0]["bacc"] == rows[1]["bacc"]:
            word, text = "Beware", "No evaluator alone has the highest balanced accuracy; no interval was computed."
        yield ScreenAdviceLine(word, make_statement(text, best=rows[0]))
        yield from starmap(ScreenAdviceLine, list_first_screen_unscored_advice(run, rows))
        return
    useful = [row for row in rows if is_significantly_above(row, "bacc", 0.5)]
    if not useful:
        text = "any of them as they are: none is shown to be better than guessing."
        if len(rows) == 1:
            text = "{best.evaluator} as it is: it is not shown to be better than guessing."
        yield ScreenAdviceLine("Do not use", make_statement(text, best=rows[0]))
        yield from _list_first_screen_caveat_advice(run, rows[0], rows[:1], rows)
        return
    best, *others = useful
    alike = [best, *(row for row in others if not is_significantly_better_evaluator(run, best, row["evaluator"]))]
    worse = [row for row in rows if is_significantly_better_evaluator(run, best, row["evaluator"])]
    word = "Use" if _may_be_used_for_a_task(run, [row["evaluator"] for row in alike]) else "Best"
    yield ScreenAdviceLine(word, _state_first_screen_recommended_evaluators(run, rows, useful, alike, worse))
    yield from _list_first_screen_evaluators_to_avoid(run, [row for row in rows if row not in alike])
    yield from _list_first_screen_error_flagging_advice(run, alike, [row["evaluator"] for row in rows])
    yield from starmap(ScreenAdviceLine, list_first_screen_system_advice(run, [row["evaluator"] for row in alike]))
    yield from _list_first_screen_caveat_advice(run, best, rows, rows)
    for advise in filter(None, [audit.advice for audit in load_all_audits().values()]):
        yield from starmap(ScreenAdviceLine, advise(run, [row["evaluator"] for row in alike]))


def _list_first_screen_few_labels_advice(run: AuditedRun, most: Row) -> Iterator[ScreenAdviceLine]:
    """What figures of few labels ask for: more labels, or verdicts on those that there are; ``most``: of most labels.

    Labels that have no verdict are no lack of labels: more of them would change nothing.
    """
    claims = run.about.get("claims") or []
    labelled, attributable, total = (
        sum(row.get(key) or 0 for row in claims) for key in ("n_labelled", "n_attributable", "n_claims")
    )
    said = {"errors": labelled - attributable, "correct": attributable, "without": 0}
    said["without"] = labelled - sum(most.get(key) or 0 for key in ("n_unattributable", "n_attributable"))
    text = "{most.n_unattributable:number labelled error} and {most.n_attributable:number labelled correct claim}"
    if said["without"] > 0:
        text = "{most.n_unattributable:number} of {said.errors:number labelled error} and {most.n_attributable:number} "
        text += "of {said.correct:number labelled correct claim}"
    if min(said["errors"], said["correct"]) < _MIN_LABELS_OF_A_CLASS or said["without"] <= 0:
        more = "new claims" if labelled == total and said["without"] > 0 else "more claims (factaudit sample)"
        yield ScreenAdviceLine("Label", make_statement(f"{more}: these figures rest on {text}.", most=most, said=said))
        text = ""
    if said["without"] > 0:
        text = f": these figures rest on {text}." if text else "."
        text = f"{{said.without:number labelled claim}} again: {{most.evaluator}} has no verdict on them{text}"
        yield ScreenAdviceLine("Judge", make_statement(text, most=most, said=said))


def _may_be_used_for_a_task(run: AuditedRun, evaluators: Sequence[str]) -> bool:
    """Whether some decision on each of them is “yes”, if only with a correction or review; so where nothing decides."""
    decisions = [one for name, audit in load_all_audits().items() if run.rows(name) for one in audit.decides]

    def has_task(evaluator: str) -> bool:
        answers = [one.answer(run, evaluator) for one in decisions]
        return any(one is not None and one.may not in ("no", "cannot tell") for one in answers)

    return not decisions or all(map(has_task, evaluators))


def _state_first_screen_recommended_evaluators(
    run: AuditedRun, rows: Sequence[Row], useful: Sequence[Row], alike: Sequence[Row], worse: Sequence[Row]
) -> Statement:
    """Which evaluator to use; ``alike``: the best, and those of use that do not differ from it significantly."""
    best = alike[0]
    if len(rows) == 1:
        return make_statement("{best.evaluator}, the only evaluator here: it is better than guessing.", best=best)
    is_open = any(is_difference_open_by_unscored_claims(run, best, row["evaluator"]) for row in alike[1:])
    if len(alike) == 2:
        text = "{best.evaluator} or {second.evaluator}: the difference is "
        text += "open by the unscored claims." if is_open else "not significant."
        return make_statement(text, best=best, second=alike[1])
    if len(alike) > 2:
        names = format_first_finding_names([row["evaluator"] for row in alike[1:]])
        text = "{best.evaluator}: the differences from {names} are not significant"
        return make_statement(text + ", or open by the unscored claims" * is_open + ".", best=best, names=names)
    if len(useful) == 1 and len(worse) < len(rows) - 1:
        return make_statement("{best.evaluator}: it alone is shown to be better than guessing.", best=best)
    if len(worse) == len(rows) - 1 > 1:
        return make_statement("{best.evaluator}: significantly more accurate than the others.", best=best)
    names = format_first_finding_names([row["evaluator"] for row in worse])
    return make_statement("{best.evaluator}: significantly more accurate than {names}.", best=best, names=names)


def _list_first_screen_evaluators_to_avoid(run: AuditedRun, worse: Sequence[Row]) -> Iterator[ScreenAdviceLine]:
    """Those that are significantly worse than the best, and of no use."""
    reasons = []
    for row in worse:
        if is_significantly_below(row, "tpr", 0.5):
            what = make_statement(
                "it flags {mistakes}", mistakes=state_missed_errors_or_false_alarms(run, row, "tpr", "n_attributable")
            )
        elif is_significantly_below(row, "tnr", 0.5):
            what = make_statement(
                "it misses {mistakes}",
                mistakes=state_missed_errors_or_false_alarms(run, row, "tnr", "n_unattributable"),
            )
        elif has_interval(row, "bacc") and not is_significantly_above(row, "bacc", 0.5):
            what = make_statement("it is not shown to be better than guessing")
        else:
            continue
        reasons.append(make_statement("{row.evaluator}: {what}", row=row, what=what))
    if reasons:
        text, more = join_statements(reasons[:_MAX_AVOIDED], "; "), reasons[_MAX_AVOIDED:]
        tail = make_statement("{more:count more evaluator}", more=more) if more else None
        yield ScreenAdviceLine("Avoid", join_statements([text, tail] if tail else [text], "; and ", "."))


def _list_first_screen_error_flagging_advice(
    run: AuditedRun, alike: Sequence[Row], evaluators: Sequence[str]
) -> Iterator[ScreenAdviceLine]:
    least = read_decision_limits(run).min_rate
    fit = [row["evaluator"] for row in alike if all(is_significantly_above(row, k, least) for k in ("tpr", "tnr"))]
    if fit:
        finds, passes = ("finds", "passes") if len(fit) in (1, len(alike)) else ("find", "pass")
        text = f"flagging single errors: {{who}} {finds} significantly more than {{least:limit}} % of the errors, and "
        text += f"{passes} as large a share of the correct claims."
        who = "each of them" if 1 < len(fit) == len(alike) else format_first_finding_names(fit)
        yield ScreenAdviceLine("Good for", make_statement(text, who=who, least=least))
        return
    for key, n_key in (("tnr", "n_unattributable"), ("tpr", "n_attributable")):
        if all(is_significantly_below(row, key, least) for row in alike):
            # The table has each one's figure: what is sure of all is that they exceed the limit.
            who = f"{'both' if len(alike) == 2 else 'all'} {'miss' if key == 'tnr' else 'flag'}"
            text = "flagging single errors: {who} significantly over {most:limit} %"
            text += "." if key == "tnr" else " of correct claims."
            told = make_statement(text, who=who, most=1 - least)
            if len(alike) == 1:
                mistakes = state_missed_errors_or_false_alarms(run, alike[0], key, n_key)
                verb = "misses" if key == "tnr" else "flags"
                text = f"flagging single errors: {{row.evaluator}} {verb} {{mistakes}}."
                told = make_statement(text, row=alike[0], mistakes=mistakes)
            yield ScreenAdviceLine("Not for", told)
            break
    else:
        if all(any(is_significantly_below(row, key, least) for key in ("tnr", "tpr")) for row in alike):
            text = "flagging single errors: each misses significantly over {most:limit} %, or flags as many correct "
            yield ScreenAdviceLine("Not for", make_statement(text + "claims.", most=1 - least))
    if (review := find_least_review_evaluator_row(run, evaluators)) is not None:
        text = "of single verdicts, review the {review.review_share:percent} of claims that {review.evaluator} scores "
        text += "lowest: of the rest" + " in all data sets" * (review["dataset"] == ALL_TOGETHER)
        text += " at most {review.max_error:limit} % are errors (confidence {review.confidence:limit} %)."
        yield ScreenAdviceLine("Instead", make_statement(text, review=review))


def _list_first_screen_caveat_advice(
    run: AuditedRun, best: Row, compared: Sequence[Row], shown: Sequence[Row]
) -> Iterator[ScreenAdviceLine]:
    """What is wrong with the best evaluator, and with those compared with it; shown: those that the table shows."""
    trained = [each for each in run.about.get("evaluators") or [] if each.get("trained_on")]
    sets = {row["dataset"] for row in run.about.get("claims") or []}
    seen = [
        each["name"]
        for each in trained
        if any(_is_training_dataset(one, name) for one in each["trained_on"] for name in sets)
    ]
    if seen:
        text = "trained on this benchmark: {names}."
        yield ScreenAdviceLine("Beware", make_statement(text, names=format_first_finding_names(seen)))
    yield from starmap(ScreenAdviceLine, list_first_screen_unscored_advice(run, shown))
    for key, noun in (("n_unattributable", "labelled error"), ("n_attributable", "labelled correct claim")):
        # A mean over data sets rests on each of them.
        parts = [row for row in run.per_dataset("rates", "bacc") if row["evaluator"] == best["evaluator"]]
        if not is_said_as_share(run, best.get(key)):
            fewest = min(parts, key=lambda row: row.get(key) or 0, default=best)
            of_them = f", {{fewest.{key}:number}} of them on {{fewest.dataset}}" * (len(parts) > 1)
            text = f"only {{best.{key}:number {noun}}}{of_them}."
            yield ScreenAdviceLine("Beware", make_statement(text, best=best, fewest=fewest))
            continue
        few = [row for row in parts if not is_said_as_share(run, row.get(key))] if len(parts) > 1 else []
        told = [make_statement(f"{{row.{key}:number}} on {{row.dataset}}", row=row) for row in few]
        if few:
            text = f"few {noun}s behind these means: {{told}}."
            yield ScreenAdviceLine("Beware", make_statement(text, told=format_first_finding_names(told)))
    apart = find_datasets_of_lowest_and_highest_bacc(run.rows("rates"), best["evaluator"])
    if apart is not None:
        worst, top = apart
        text = "{best.evaluator} is worse on {worst.dataset} (balanced accuracy {worst.bacc:percent}) than on "
        text += "{top.dataset} ({top.bacc:percent}){others}."
        names = [row["evaluator"] for row in compared if row is not best]
        also = [name for name in names if _is_worse_on_same_dataset(run, name, worst, top)]
        others = make_statement("; {names}, too" * bool(also), names=format_first_finding_names(also))
        yield ScreenAdviceLine("Beware", make_statement(text, best=best, worst=worst, top=top, others=others))


def _is_worse_on_same_dataset(run: AuditedRun, evaluator: str, worst: Row, top: Row) -> bool:
    apart = find_datasets_of_lowest_and_highest_bacc(run.rows("rates"), evaluator)
    return apart is not None and [row["dataset"] for row in apart] == [worst["dataset"], top["dataset"]]


def _is_training_dataset(trained_on: str, dataset: str) -> bool:
    """``RAGTruth`` is the data of ``RAGTruth-QA``."""
    return dataset.casefold().startswith(trained_on.casefold())
