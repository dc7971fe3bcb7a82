"""Whether atomic facts are those of their responses: what is invented, repeated or left out, and what it does
to the score.

FActScore takes the facts for granted. Repeated and trivial facts raise it (Jiang et al. 2024), and it differs by who
decomposes (Wanner et al. 2024; Hu et al. 2024).
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.arrays.clustered_shares import estimate_clustered_shares
from factaudit.arrays.decomposition_faults import (
    FACT_FAULTS,
    DecompositionFaults,
    find_decomposition_faults,
    has_response_texts,
)
from factaudit.arrays.judgements import MISSING, Judgements
from factaudit.arrays.response_facts import has_response_facts, score_response_facts
from factaudit.arrays.response_means import mean_of_defined, response_change_with_interval, response_mean_with_interval
from factaudit.audit.core.audit_declaration import (
    Audit,
    AuditedRun,
    Check,
    Column,
    Finding,
    Severity,
    pick_shared_columns,
)
from factaudit.audit.core.decision_limits import is_significantly_above, is_significantly_below
from factaudit.audit.core.finding_parts import MIN_SHARE_COUNT, make_row_finding
from factaudit.audit.core.interval_methods import RESPONSE_CHANGE, RESPONSE_MEAN, WILSON
from factaudit.audit.core.plot_specs import PlotSpec
from factaudit.audit.core.result_rows import FEW_CLUSTERS, Row, drop_row_intervals, explain_missing_row_intervals
from factaudit.audit.core.statements import Statement, join_statements, make_statement
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.undefined_values import divide_or_undefined
from factaudit.text.content_words import WordVocabulary
from factaudit.text.demonstrations import read_fact_demonstrations
from factaudit.text.display_text import join_reasons

#: A decomposition is warned of where more than these shares of its facts have a fault, or less of the text is covered.
MAX_FAULTY_SHARES = {"invented": 0.1, "leaked": 0.02, "repeated": 0.2}
MIN_COVERAGE = 0.7
#: With more than this share of facts that are not in the text, a score says nothing of the text.
MOST_FACTS_SHARE = 0.5
#: The facts that are left in place of all, and the fault that the others have.
LEFT_FACTS = {"own": "invented", "distinct": "repeated", "informative": "trivial"}
_NO_TEXT_REASON = "the text of the responses is not known"


def compute_decomposition_faults(
    judgements: Judgements, *, demonstrations: str | None = None, intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """The shares of faulty facts, a row per dataset and system; first ``__all__`` where there are several.

    Found by words alone (`factaudit.text.fact_faults`). coverage: the share of the content words of responses that are
    in some fact; uncovered: the share of sentences of which facts leave something out. demonstrations: the file that
    prompts showed; None: our own.
    """
    if not has_response_texts(judgements):
        return []
    found = _cache_decomposition_faults(judgements, demonstrations)
    rows = []
    for key, inside in found.facts.responses_by_system():
        rows.append({**key, **_build_decomposition_faults_row(found, inside, intervals)})
    return rows


def _build_decomposition_faults_row(
    found: DecompositionFaults, in_system: np.ndarray, intervals: ClusterBootstrap | None
) -> Row:
    size = len(in_system)
    owner = found.facts.response
    n_facts = found.facts.count_facts_of_responses(found.facts.is_decomposed)
    hits = [np.bincount(owner[found.faults[name]], minlength=size) for name in FACT_FAULTS]
    hits += [found.counts["n_covered_words"], found.counts["n_uncovered"]]
    totals = [n_facts] * len(FACT_FAULTS) + [found.counts["n_words"], found.counts["n_sentences"]]
    places = np.flatnonzero(in_system & found.known & (n_facts > 0))
    names = (*FACT_FAULTS, "coverage", "uncovered")
    row: Row = {"n": int(n_facts[places].sum()), "n_responses": len(places)}
    row["n_sentences"] = int(found.counts["n_sentences"][places].sum())
    found_of, of = (np.stack(one, axis=1)[places].astype(np.int64) for one in (hits, totals))
    row |= estimate_clustered_shares(names, found_of, of, intervals)
    lacking = [name for name in names if row[name] is None]
    reason = _NO_TEXT_REASON if n_facts[in_system].any() else "no response has an atomic fact"
    why = [f"{reason}: {', '.join(lacking)}" if lacking else ""]
    return row | {"reason": join_reasons([*why, explain_missing_row_intervals(row, FEW_CLUSTERS)])}


def compute_decomposition_scores(
    judgements: Judgements, *, demonstrations: str | None = None, intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """What faulty facts do to FActScore: a row per evaluator, dataset and system, as of the audit `factscore`.

    ``init_score``: over all facts, without the length penalty. ``own_score``: over the facts that are not invented,
    ``distinct_score``: without repeated ones, ``informative_score``: without trivial ones; means over the responses
    that have such facts (``n_own``, ...). ``_change``: the difference of the two on these responses. A fact without a
    verdict counts as not supported; the bounds let it be either.
    """
    if not has_response_texts(judgements):
        return []
    found = _cache_decomposition_faults(judgements, demonstrations)
    rows = []
    for at, evaluator in enumerate(judgements.evaluators):
        scores = score_response_facts(found.facts, judgements, at, gamma=0)
        supported, least, most = _bound_decomposed_fact_support(found, judgements, at)
        asked = ~np.isnan(scores.figures["init_score"])
        for key, inside in found.facts.responses_by_system():
            row: Row = {"dataset": key["dataset"], "evaluator": evaluator, "system": key["system"]}
            some = inside & asked & found.known
            row["n_scored"] = int(some.sum())
            row["n_unscored"] = int(scores.n_unscored[some].sum())
            kept = {name: ~found.faults[fault] for name, fault in LEFT_FACTS.items()}
            every = np.ones(len(supported), dtype=bool)
            whole = _average_fact_shares_over_responses(found, supported, every)
            row |= _build_decomposition_score_figures(
                "init_score", found, (supported, least, most), every, some, intervals
            )
            for name, left in kept.items():
                mine = _average_fact_shares_over_responses(found, supported, left)
                both = some & ~np.isnan(mine)
                row[f"n_{name}"] = int(both.sum())
                row |= _build_decomposition_score_figures(
                    f"{name}_score", found, (supported, least, most), left, both, intervals
                )
                row |= response_change_with_interval(f"{name}_change", (mine - whole)[both].tolist(), intervals)
            lacking = [name for name in ("init_score", *(f"{name}_score" for name in kept)) if row[name] is None]
            why = f"no response has such facts that were judged: {', '.join(lacking)}" if lacking else ""
            row["reason"] = join_reasons([why, explain_missing_row_intervals(row, FEW_CLUSTERS)])
            alike = [key.removesuffix("_low") for key, low in row.items() if key.endswith("_low") and low is not None]
            alike = [key for key in alike if row[f"{key}_low"] == row[f"{key}_high"]]
            drop_row_intervals([row], "all responses have the same, so that none can be drawn", *alike)
            rows.append(row)
    return rows


def _cache_decomposition_faults(judgements: Judgements, demonstrations: str | None) -> DecompositionFaults:
    """The faults, found once for both tables."""

    def find() -> DecompositionFaults:
        shown = read_fact_demonstrations(demonstrations)
        words = [WordVocabulary([sentence, *facts]) for sentence, facts in shown.items()]
        return find_decomposition_faults(judgements, words)

    return judgements.compute_once(("decomposition_faults", demonstrations), find)


def _bound_decomposed_fact_support(
    found: DecompositionFaults, judgements: Judgements, evaluator: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Whether each fact is supported, surely so, and possibly so: bool (F,) each."""
    inside = found.facts.fact_of_claim >= 0
    member, n = found.facts.fact_of_claim[inside], len(found.facts.first_rows)
    stated = judgements.stated_prediction[evaluator][inside]

    def any_of(which: np.ndarray) -> np.ndarray:
        return np.bincount(member[which], minlength=n) > 0

    supported = any_of(judgements.prediction[evaluator][inside] == 1)
    return supported, any_of(stated == 1), any_of((stated == 1) | (stated == MISSING))


def _average_fact_shares_over_responses(
    found: DecompositionFaults, supported: np.ndarray, left: np.ndarray
) -> np.ndarray:
    """float64 (R,): of the facts that are left the share that is supported; NaN without any."""
    size, owner = len(found.facts.responses), found.facts.response
    counts = [np.bincount(owner[which], minlength=size) for which in (supported & left, left)]
    return divide_or_undefined(counts[0], counts[1])


def _build_decomposition_score_figures(
    key: str,
    found: DecompositionFaults,
    support: tuple[np.ndarray, np.ndarray, np.ndarray],
    left: np.ndarray,
    in_system: np.ndarray,
    intervals: ClusterBootstrap | None,
) -> Row:
    point, least, most = (_average_fact_shares_over_responses(found, one, left)[in_system] for one in support)
    bounds = {f"{key}_min": mean_of_defined(least), f"{key}_max": mean_of_defined(most)}
    return response_mean_with_interval(key, point.tolist(), intervals) | bounds


# ---------------------------------------------------------------------------------------------------------- sentences

_FAULT_TEXTS = {
    "invented": "are not in the text of their responses",
    "leaked": "come from the examples in the prompt",
    "repeated": "repeat other facts of their responses",
}


def state_decomposition_fault(row: Row, fault: str) -> Statement:
    """The sentence that says how many facts have a fault, without its stop; of few facts their number."""
    name = row["system"] if row["system"] not in (None, ALL_TOGETHER) else ""
    system = make_statement(" of {name}" if name else "", name=name)
    text = f"{{row.{fault}:percent}} of {{row.n:number fact}}"
    if row["n"] < MIN_SHARE_COUNT:
        row, text = (
            row | {f"n_{fault}": round(row[fault] * row["n"])},
            f"{{row.n_{fault}:number}} of {{row.n:number fact}}",
        )
    return make_statement(text + "{system} " + _FAULT_TEXTS[fault], row=row, system=system)


def list_decomposition_advice(audited_run: AuditedRun) -> Iterator[tuple[str, Statement]]:
    """What the first screen says of facts that are not of the text: a word, and a sentence."""
    told = [(row, fault) for row, fault, _ in list_faulty_decomposition_rows(audited_run) if fault != "repeated"]
    for row in {id(row): row for row, _ in told}.values():
        said = join_statements([state_decomposition_fault(row, fault) for one, fault in told if one is row], "; ", ".")
        if (row["invented"] or 0) > MOST_FACTS_SHARE:
            text = "the scores, because most facts are not in the texts. {said}"
            yield "Avoid", make_statement(text, said=said)
        else:
            yield "Beware", said


def list_faulty_decomposition_rows(audited_run: AuditedRun) -> Iterator[tuple[Row, str, bool]]:
    """The rows with a fault beyond its limit, the fault, and whether its interval is beyond as well.

    Of several systems their total stands for all, where it is beyond the limit.
    """
    for fault, limit in MAX_FAULTY_SHARES.items():
        rows = [row for row in audited_run.rows("decomposition") if (row[fault] or 0) > limit]
        totals = {row["dataset"] for row in rows if row["system"] == ALL_TOGETHER}
        for row in rows:
            if row["system"] == ALL_TOGETHER or row["dataset"] not in totals:
                yield row, fault, is_significantly_above(row, fault, limit)


def _find_faulty_decomposed_facts(audited_run: AuditedRun) -> Iterator[Finding]:
    for row, fault, is_sure in list_faulty_decomposition_rows(audited_run):
        severity: Severity = "fail" if is_sure else "warn"
        said = make_statement("{said}.", said=state_decomposition_fault(row, fault))
        keys = ("system", fault, f"{fault}_low", f"{fault}_high", "n", "n_responses")
        yield make_row_finding(severity, row, said, *keys)


def _find_text_uncovered_by_facts(audited_run: AuditedRun) -> Iterator[Finding]:
    for row in audited_run.rows("decomposition"):
        if row["coverage"] is None or row["coverage"] >= MIN_COVERAGE:
            continue
        said = make_statement(
            "The facts of {name} contain only {row.coverage:percent} of the content words of the responses, so "
            "much of the "
            "text is not checked.",
            name=row["system"] if row["system"] not in (None, ALL_TOGETHER) else "all systems",
            row=row,
        )
        severity: Severity = "fail" if is_significantly_below(row, "coverage", MIN_COVERAGE) else "warn"
        keys = ("system", "coverage", "coverage_low", "coverage_high", "n", "n_responses")
        yield make_row_finding(severity, row, said, *keys)


_FAULTS_DESCRIPTION = {
    "invented": (
        "not in the text",
        "facts with a number, a name or at least half of their words missing from the response",
    ),
    "leaked": ("from the demonstrations", "invented facts whose words occur in a demonstration of the prompt"),
    "repeated": ("repeated", "facts that repeat another fact of the response"),
    "trivial": ("trivial", "facts that are true of almost everybody"),
}
_SCORES_DESCRIPTION = {
    "own": ("facts of the text", "over the facts that their response says"),
    "distinct": ("distinct facts", "without facts that repeat another fact of the response"),
    "informative": ("informative facts", "without trivial facts"),
}
_DEMONSTRATIONS_OPTION = {
    "demonstrations": ("the file of demonstrations that the prompts showed; by default those that come with factaudit")
}
AUDITS = (
    Audit(
        name="decomposition",
        after="citations",
        title="Whether facts are those of the responses",
        question="Does the response really say each atomic fact, and do the facts cover the whole response?",
        source="Jiang et al. 2024 (Core); Wanner et al. 2024 (DecompScore); Hu et al. 2024",
        text=(
            "The check compares words only. A fact that uses the response's words in a wrong way is not found, and"
            " a correct paraphrase may be counted as invented."
        ),
        formula=(
            "Each share is the facts with that fault / all facts. Coverage = content words of the responses "
            "that occur in at least one fact / all content words. A part of a sentence counts as left out if a "
            "number, a name or more than a fifth of its words occur in no fact."
        ),
        remedy=(
            "If many facts are invented, do not report the score; decompose with a larger model. If many facts "
            "are repeated or trivial, also report the score over distinct and informative facts "
            "(`decomposition_scores`)."
        ),
        columns={
            **pick_shared_columns("dataset", "system"),
            "n": Column("facts", "count", "number of facts, and of the responses and sentences that they come from"),
            "n_responses": Column(
                "responses", "count", ("number of facts, and of the responses and sentences that they come from")
            ),
            "n_sentences": Column(
                "sentences",
                "count",
                "number of facts, and of the responses and sentences that they come from",
                shown=False,
            ),
            **{
                name: Column(heading, "percent", what, interval=WILSON)
                for name, (heading, what) in _FAULTS_DESCRIPTION.items()
            },
            "coverage": Column(
                "coverage", "percent", "content words of the text that occur in a fact", interval=WILSON
            ),
            "uncovered": Column(
                "sentences with a part left out",
                "percent",
                "sentences with a number, a name or more than a fifth of the words in no fact",
                interval=WILSON,
                counted_in="n_sentences",
            ),
            **pick_shared_columns("reason"),
        },
        options=_DEMONSTRATIONS_OPTION,
        compute=compute_decomposition_faults,
        applies=lambda judged: has_response_facts(judged) and has_response_texts(judged),
        without_labels=True,
        plot=PlotSpec(
            what="Faulty facts",
            keys=("invented", "leaked", "repeated", "trivial"),
            groups=("system",),
            series="dataset",
        ),
        checks=(
            Check(
                "faulty_facts",
                "Facts that are not in the text",
                "more than 10 % of the facts are not in the text, 2 % come from examples in the prompt, or 20 % "
                "repeat other facts",
                _find_faulty_decomposed_facts,
                figure="invented",
                gravity=lambda evidence: max(evidence.get(fault) or 0.0 for fault in MAX_FAULTY_SHARES),
            ),
            Check(
                "uncovered_text",
                "Text that no fact covers",
                "the facts contain less than 70 % of the content words of the text",
                _find_text_uncovered_by_facts,
                figure="coverage",
                gravity=lambda evidence: -evidence["coverage"],
            ),
        ),
    ),
    Audit(
        name="decomposition_scores",
        after="decomposition",
        title="What faulty facts do to FActScore",
        question="How much does FActScore change if faulty facts are left out?",
        source="Jiang et al. 2024 (Core)",
        text="FActScore without the length penalty, first over all facts, then over the facts that remain.",
        formula="Supported remaining facts / remaining facts, averaged over the responses in which a fact remains.",
        remedy="If a change is large, report the score over the remaining facts, and say so.",
        columns={
            **pick_shared_columns("dataset", "evaluator", "system"),
            "n_scored": Column(
                "responses", "count", ("responses with at least one fact that the evaluator was asked about")
            ),
            "n_unscored": Column("unscored", "count", "facts without a verdict", shown="any"),
            "init_score": Column("all facts", "percent", "over all facts", bounds=True, interval=RESPONSE_MEAN),
            **{
                key: column
                for name, (heading, what) in _SCORES_DESCRIPTION.items()
                for key, column in (
                    (
                        f"n_{name}",
                        Column(
                            f"responses with {heading}", "count", "responses with at least one such fact", shown=False
                        ),
                    ),
                    (
                        f"{name}_score",
                        Column(heading, "percent", what, bounds=True, interval=RESPONSE_MEAN, counted_in=f"n_{name}"),
                    ),
                    (
                        f"{name}_change",
                        Column(
                            f"change by {heading}", "points", what, interval=RESPONSE_CHANGE, counted_in=f"n_{name}"
                        ),
                    ),
                )
            },
            **pick_shared_columns("reason"),
        },
        options=_DEMONSTRATIONS_OPTION,
        compute=compute_decomposition_scores,
        applies=lambda judged: has_response_facts(judged) and has_response_texts(judged),
        without_labels=True,
    ),
)
