"""Do the atomic facts match their responses? Which facts are invented, repeated or trivial, and
what do they leave out?

FActScore takes the facts as given. Repeated and trivial facts raise it (Jiang et al. 2024), and it
depends on the model that decomposes (Wanner et al. 2024; Hu et al. 2024). Only words are compared
(`factaudit.text.fact_faults`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import pandas as pd

from factaudit.arrays.figures import Figure
from factaudit.arrays.judgements import ALL_TOGETHER, Judgements
from factaudit.arrays.response_facts import (
    ResponseFacts,
    collect_response_facts,
    has_response_facts,
)
from factaudit.arrays.response_means import split_by_system
from factaudit.audit.core.audit_declaration import (
    WILSON,
    Audit,
    Column,
    PlotSpec,
    pick_shared_columns,
)
from factaudit.audit.core.audited_run import AuditedRun, widen_interval
from factaudit.audit.core.checks import Count
from factaudit.audit.core.result_rows import Row, explain_row, pick_figure
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import ClusterCounts, estimate_clustered_proportions
from factaudit.text.content_words import WordVocabulary
from factaudit.text.demonstrations import read_fact_demonstrations
from factaudit.text.fact_faults import find_fact_faults

#: The faults of a fact, and the coverage of the text by the facts.
FACT_FAULTS = ("invented", "leaked", "repeated", "trivial")
_SHARES = (*FACT_FAULTS, "coverage", "uncovered")
#: A decomposition gets a warning if larger shares of its facts have a fault, or if a smaller share
#: of the text is covered.
MAX_FAULTY_SHARES = {"invented": 0.1, "leaked": 0.02, "repeated": 0.2}
MIN_COVERAGE = 0.7


def compute_decomposition_faults(
    judgements: Judgements,
    *,
    demonstrations: str | None = None,
    intervals: ClusterBootstrap | None = None,
) -> list[Row]:
    """The shares of faulty facts, in a row per dataset and system; ``__all__`` comes first if there
    are several systems.

    coverage: the share of the content words of responses that appear in some fact. uncovered: the
    share of sentences of which the facts leave something out. Clusters are responses; responses
    with an unknown text do not count. demonstrations: the file that the prompts showed; None for
    ours.
    """
    if not has_response_texts(judgements):
        return []
    facts = collect_response_facts(judgements)
    shown = read_fact_demonstrations(demonstrations)
    vocabularies = [WordVocabulary([sentence, *said]) for sentence, said in shown.items()]
    hits, totals = _count_faults(judgements.claims, facts, vocabularies)
    rows = []
    for key, inside in split_by_system(facts.responses):
        own = np.flatnonzero(inside & (totals[:, 0] > 0))
        counts = totals[own].sum(axis=0).tolist()
        row: Row = {**key, "n": counts[0], "n_responses": len(own), "n_sentences": counts[-1]}
        alone = ClusterCounts(np.zeros(len(own), int), np.ones(len(own), int), totals[own], 1)
        shares = estimate_clustered_proportions(alone, hits[own], totals[own])
        low, high = shares.wilson_intervals(0.95 if intervals is None else intervals.confidence)
        for at, name in enumerate(_SHARES):
            ends = None if intervals is None else (low[:, at], high[:, at])
            row |= pick_figure(name, Figure(shares.point[:, at], None, ends), 0)
        lacking = "the text of the responses is not known"
        if not facts.is_decomposed[inside[facts.response]].any():
            lacking = "no response has an atomic fact"
        is_lacking = any(row[name] is None for name in _SHARES)
        rows.append(explain_row(row, _SHARES, [lacking] if is_lacking else []))
    return rows


def _count_faults(
    claims: pd.DataFrame, facts: ResponseFacts, demonstrations: Sequence[WordVocabulary]
) -> tuple[np.ndarray, np.ndarray]:
    """For each response and each of `_SHARES`, the numerator and the denominator: int64 (R, 6)
    each, 0 if the text is not known.

    The text of a response is its ``response``, else the ``sentence`` of its facts. A sentence that
    could not be decomposed is neither a fact nor part of the text, because the decomposer has said
    nothing about it.
    """
    hits, totals = np.zeros((2, len(facts.responses), len(_SHARES)), dtype=np.int64)
    columns = ["claim_id", "claim", "topic", "response", "sentence"]
    table = claims.reindex(columns=columns).iloc[facts.first_rows].astype(object)
    table = table.assign(is_fact=facts.is_decomposed, length=table["claim_id"].str.len())
    # In the order of their ids, so that no figure depends on the order of rows.
    order = table.assign(owner=facts.response).sort_values(["length", "claim_id"])
    for _, own in order.groupby("owner"):
        texts = [" ".join(own[name].dropna().unique()) for name in ("response", "sentence")]
        text = texts[0] or texts[1]
        if not text or own["claim"].isna().any():
            continue
        for sentence in own["claim"][~own["is_fact"]]:
            text = text.replace(sentence, "", 1)
        said = own["claim"][own["is_fact"]].tolist()
        topic = own["topic"].iloc[0]
        found = find_fact_faults(said, text, None if pd.isna(topic) else topic, demonstrations)
        faults = [sum(getattr(found, name)) for name in FACT_FAULTS]
        owner = own["owner"].iloc[0]
        hits[owner] = [*faults, found.n_covered_words, found.n_uncovered]
        totals[owner] = [*[len(said)] * len(FACT_FAULTS), found.n_words, found.n_sentences]
    return hits, totals


def has_response_texts(judgements: Judgements) -> bool:
    """Whether the claims are facts of responses, and the table has the texts or sentences of
    these."""
    claims = judgements.claims
    return has_response_facts(judgements) and any(
        name in claims and bool((claims[name].notna() & claims["response_id"].notna()).any())
        for name in ("response", "sentence")
    )


# ---- checks

#: How a sentence about facts with a fault begins.
_FAULT_WORDS = {
    "invented": "Not in the text of the response",
    "leaked": "In an example of the decomposition prompt, and not in the text",
    "repeated": "Said already by another fact of the response",
}


def _list_faulty_shares(run: AuditedRun) -> Iterator[Row]:
    for row in _list_systems(run):
        for fault, most in MAX_FAULTY_SHARES.items():
            share = row[fault]
            if share is not None:
                told = {"fault": fault, "words": _FAULT_WORDS[fault], "share": share, "most": most}
                told["n_faulty"] = round(share * row["n"])
                told["severity"] = "fail" if widen_interval(row, fault)[0] > most else "warn"
                yield row | told | {"excess": share - most}


def _list_coverage(run: AuditedRun) -> Iterator[Row]:
    for row in _list_systems(run):
        if row["coverage"] is not None:
            is_sure = widen_interval(row, "coverage")[1] < MIN_COVERAGE
            yield row | {"severity": "fail" if is_sure else "warn"}


def _list_systems(run: AuditedRun) -> Iterator[Row]:
    """The rows of systems. With ``whose``, the system's name if there are several."""
    rows = run.rows("decomposition")
    with_several = {row["dataset"] for row in rows if row["system"] == ALL_TOGETHER}
    for row in rows:
        is_total = row["system"] == ALL_TOGETHER
        is_named = row["system"] is not None and row["dataset"] in with_several and not is_total
        yield row | {"is_total": is_total, "whose": f" of {row['system']}" if is_named else ""}


CHECKS = (
    Count(
        id="faulty_facts",
        title="Facts that are not in the text",
        rows=_list_faulty_shares,
        figure="excess",
        by=("dataset", "fault"),
        unit="system",
        says="{words}: {n_faulty} of {n:number fact}{whose} ({share:percent}), {verdict}.",
        beyond="more than {most:limit} %",
        on_screen=True,
    ),
    Count(
        id="uncovered_text",
        title="Text that no fact covers",
        rows=_list_coverage,
        figure="coverage",
        limit=MIN_COVERAGE,
        side="under",
        by=("dataset",),
        unit="system",
        says=(
            "The facts{whose} contain {coverage:percent} of the content words of the responses,"
            " {verdict}."
        ),
        beyond="less than {limit:limit} %",
        advice="Much of the text is not checked.",
    ),
)


_FAULTS_DESCRIPTION = {
    "invented": (
        "not in the text",
        "facts with a number, a name or at least half of their words missing from the response",
    ),
    "leaked": (
        "from the demonstrations",
        "invented facts whose words occur in a demonstration of the prompt",
    ),
    "repeated": ("repeated", "facts that repeat another fact of the response"),
    "trivial": ("trivial", "facts that are true of almost everybody"),
}
_DEMONSTRATIONS_OPTION = {
    "demonstrations": (
        "the file of demonstrations that the prompts showed; by default those that come with"
        " factaudit"
    )
}
AUDITS = (
    Audit(
        name="decomposition",
        title="Whether facts are those of the responses",
        question=(
            "Does the response really say each atomic fact, and do the facts cover the whole"
            " response?"
        ),
        source="Jiang et al. 2024 (Core); Wanner et al. 2024 (DecompScore); Hu et al. 2024",
        text=(
            "The check compares words only. A fact that uses the response's words in a wrong way is"
            " not found, and a correct paraphrase may be counted as invented."
        ),
        formula=(
            "Each share is the facts with that fault / all facts. Coverage = content words of the"
            " responses that occur in at least one fact / all content words. A part of a sentence"
            " counts as left out if a number, a name or more than a fifth of its words occur in no"
            " fact."
        ),
        remedy=(
            "If many facts are invented, do not report the score; decompose with a larger model. If"
            " many facts are repeated or trivial, they raise the score."
        ),
        columns={
            **pick_shared_columns("dataset", "system"),
            "n": Column(
                "facts",
                "count",
                "number of facts, and of the responses and sentences that they come from",
            ),
            "n_responses": Column(
                "responses",
                "count",
                "number of facts, and of the responses and sentences that they come from",
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
                "coverage",
                "percent",
                "content words of the text that occur in a fact",
                interval=WILSON,
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
        applies=has_response_texts,
        without_labels=True,
        plot=PlotSpec(
            what="Faulty facts",
            keys=("invented", "leaked", "repeated", "trivial"),
            groups=("system",),
            series="dataset",
        ),
        checks=CHECKS,
    ),
)
