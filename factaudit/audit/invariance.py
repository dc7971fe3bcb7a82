"""Does a verdict stay the same if only the wording changes, and does it change with the meaning?"""

from __future__ import annotations

from functools import partial

import numpy as np

from factaudit.arrays.figures import share_units
from factaudit.arrays.judgements import ALL_TOGETHER, MISSING, Judgements
from factaudit.audit.core.audit_declaration import (
    Audit,
    Column,
    PlotSpec,
    pick_shared_columns,
    share_column,
)
from factaudit.audit.core.audited_run import MAX_FLIP_RATE, AuditedRun
from factaudit.audit.core.checks import Check
from factaudit.audit.core.result_rows import Row, tabulate
from factaudit.audit.core.wording import ENOUGH_FOR_SHARES, format_whole_percent
from factaudit.errors import UsageError
from factaudit.stats import divide_or_undefined
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.stats.clustered_proportions import IntervalEnds
from factaudit.tables import find_claim_positions
from factaudit.tables.schema import VARIANT_COLUMNS

#: What `factaudit perturb` changes, in words that follow "with".
KIND_WORDS = {
    "spelling": "another spelling",
    "letter_case": "capital letters",
    "aside_added": "an unrelated sentence added",
    "number_changed": "changed numbers",
    "date_changed": "changed dates",
    "negation_added": "added negations",
}
#: Kinds that change no word of the claim. Sentences about rewording leave them out.
_WORDLESS_KINDS = ("letter_case", "aside_added")


def compute_invariance(
    judgements: Judgements, *, intervals: ClusterBootstrap | None = None
) -> list[Row]:
    """How often a verdict changes although it should not, and stays although it should change: a
    row per kind of change and evaluator, over all data sets; `ALL_TOGETHER` is all kinds with the
    same expectation.

    failure_rate: for kinds that keep the meaning, the share of the pairs with two predictions in
    which these differ. For kinds that change the meaning, the share of variants that are found
    attributable, among the claims that the evaluator found attributable and that people did not
    find unattributable. Labels of variants are not read, and clusters are those of the claims.
    """
    variants = judgements.variants
    if variants is None:
        return []
    originals = find_claim_positions(judgements.claims, variants.claims["variant_of"])
    kinds, expected = _read_variant_kinds_and_expectations(variants)
    rows: list[Row] = []
    for outcome in ("same", "changed"):
        mine = expected == outcome
        known = sorted(set(kinds[mine]))
        for kind in [ALL_TOGETHER, *known] if len(known) > 1 else known:
            chosen = np.flatnonzero(mine if kind == ALL_TOGETHER else mine & (kinds == kind))
            keys = {"dataset": ALL_TOGETHER, "expected": outcome, "kind": kind}
            rows += [
                _build_invariance_row(keys, judgements, variants, at, chosen, originals, intervals)
                for at in range(len(judgements.evaluators))
            ]
    return rows


def _read_variant_kinds_and_expectations(variants: Judgements) -> tuple[np.ndarray, np.ndarray]:
    for column in VARIANT_COLUMNS[1:]:
        if column not in variants.claims or variants.claims[column].isna().any():
            raise UsageError(
                f"audit 'invariance': expected {column!r} of every claim that is a variant_of"
                " another"
            )
    kinds, expected = (
        variants.claims[column].astype(str).to_numpy(dtype=object) for column in VARIANT_COLUMNS[1:]
    )
    if strange := sorted(set(expected) - {"same", "changed"}):
        raise UsageError(
            f"audit 'invariance': expected 'same' or 'changed' in 'expected', found {strange[0]!r}"
        )
    return kinds, expected


def _build_invariance_row(
    keys: Row,
    judgements: Judgements,
    variants: Judgements,
    evaluator: int,
    chosen: np.ndarray,
    originals: np.ndarray,
    intervals: ClusterBootstrap | None,
) -> Row:
    """The row of one kind. ``chosen``: the rows of some variants; ``originals``: for each variant
    the row of its claim."""
    must_change = keys["expected"] == "changed"
    confidence = None if intervals is None else intervals.confidence
    is_wrong = (judgements.label[originals[chosen]] == 0) & must_change
    chosen = chosen[~is_wrong]
    claims = originals[chosen]
    before, after = judgements.prediction[evaluator, claims], variants.prediction[evaluator, chosen]
    stated = (
        judgements.stated_prediction[evaluator, claims],
        variants.stated_prediction[evaluator, chosen],
    )
    is_pair = (before != MISSING) & (after != MISSING)
    counted = is_pair & (before == 1) if must_change else is_pair
    failed = after == 1 if must_change else after != before
    clusters, bounds = judgements.cluster_codes[claims], _bound_failures(*stated, must_change)
    failure_rate = share_units(failed, counted, clusters, confidence, bounds)
    counts = {
        "n": counted,
        "n_unscored": ~is_pair,
        "n_rejected": is_pair & (before == 0) & must_change,
        "n_left_out": is_wrong,
        "n_guessed": is_pair & (np.minimum(*stated) == MISSING),
    }
    row = keys | {"evaluator": judgements.evaluators[evaluator]}
    row |= {name: int(which.sum()) for name, which in counts.items()}
    row["n_clusters"] = len(np.unique(clusters[counted]))
    reasons = {_NO_PAIR: [not row["n"]]}
    return tabulate([row], {}, {"failure_rate": failure_rate}, reasons)[0]


_NO_PAIR = "no pair counts: it is unscored, or was rejected or labelled an error before"


def _bound_failures(before: np.ndarray, after: np.ndarray, must_change: bool) -> IntervalEnds:
    """The lowest and the highest share of failures that the missing predictions allow; NaN where
    undefined."""
    missing_before, missing_after = before == MISSING, after == MISSING
    if not must_change:
        open_pairs = missing_before | missing_after
        sure = (~open_pairs & (before != after)).sum(keepdims=True)
        n = np.array([len(before)])
        return divide_or_undefined(sure, n), divide_or_undefined(sure + open_pairs.sum(), n)
    n, sure = (before == 1).sum(keepdims=True), ((before == 1) & (after == 1)).sum()
    # A claim without a prediction may count or not. For the upper bound it counts if that raises
    # the share, for the lower bound if that lowers it.
    raising = (missing_before & (after != 0)).sum()
    lowering = (missing_before & (after != 1)).sum()
    could = sure + ((before == 1) & missing_after).sum()
    return divide_or_undefined(sure, n + lowering), divide_or_undefined(
        could + raising, n + raising
    )


# ---- checks


def list_kind_rows(run: AuditedRun, expected: str) -> list[Row]:
    """The rows of single kinds of change, with their ``words``."""
    every = run.per_dataset("invariance", "failure_rate")
    rows = [row for row in every if row["expected"] == expected and row["kind"] != ALL_TOGETHER]
    return [
        row | {"words": KIND_WORDS.get(row["kind"], row["kind"].replace("_", " "))} for row in rows
    ]


CHECKS = (
    Check(
        id="invariance",
        title="Verdicts that change with the wording",
        rows=partial(list_kind_rows, expected="same"),
        figure="failure_rate",
        limit=MAX_FLIP_RATE,
        says=(
            "With {words}, {evaluator} changes {failure_rate:percent} of its verdicts{on} although"
            " the meaning is the same, {verdict}."
        ),
        beyond="more than {limit:limit} %",
        unit="kind",
        null="at most 5 % of the verdicts change, for every kind of change that keeps the meaning",
        is_share=True,
        claims="contrary",
    ),
    Check(
        id="missed_changes",
        title="Changes of meaning that the evaluator misses",
        rows=partial(list_kind_rows, expected="changed"),
        figure="failure_rate",
        # As many errors may be missed as the decision about single errors allows.
        limit=lambda limits: 1 - limits.min_rate,
        says=(
            "{evaluator} still passes {failure_rate:percent} of {n:number claim} with {words}{on},"
            " {verdict}."
        ),
        beyond="more than {limit:limit} %",
        advice="It passed each of them before the change.",
        unit="kind",
        null=(
            "an evaluator passes at most 20 % of the changed claims, for every kind of change of"
            " the meaning"
        ),
        is_share=True,
        claims="contrary",
        on_screen=True,
    ),
)


# ---- the first screen


def format_variant_failures(audited_run: AuditedRun, evaluator: str, expected: str) -> str:
    """``38 %``, over all data sets and kinds that change a word of the claim, of few pairs ``25 %
    (3 of 12)``; "" where no pair counts."""
    rows = [row for row in list_kind_rows(audited_run, expected) if row["evaluator"] == evaluator]
    rows = [row for row in rows if row["kind"] not in _WORDLESS_KINDS]
    n = sum(row["n"] for row in rows)
    failed = sum(round(row["failure_rate"] * row["n"]) for row in rows)
    if not n:
        return ""
    text = f"{format_whole_percent(failed / n)} %"
    return text if n >= ENOUGH_FOR_SHARES else f"{text} ({failed} of {n})"


AUDIT = Audit(
    name="invariance",
    title="Whether verdicts follow the meaning, not the wording",
    question=(
        "Does a verdict stay the same if only the wording changes, and change if the meaning"
        " changes?"
    ),
    source="Ribeiro et al. 2020, CheckList; Gardner et al. 2020",
    formula=(
        "Failures = if the meaning stays: pairs of a claim and its variant with different verdicts"
        " / pairs with two verdicts; if it changes: variants that the evaluator accepts / variants"
        " of claims that it accepts."
    ),
    text=(
        "`factaudit perturb` makes the variants without a model. No labels are needed, since it is"
        " known what should happen. If the meaning changes, claims that people labelled as errors"
        " are left out, because the change may have made them true."
    ),
    remedy=(
        "Do not use an evaluator for the kinds of error that it misses. If verdicts change with the"
        " order of the passages or the place of the evidence, ask in several orders and take the"
        " majority."
    ),
    columns={
        **pick_shared_columns("dataset"),
        "expected": Column(
            "verdict should",
            "text",
            "what should happen: `same` (only the wording changes) or `changed` (the meaning"
            " changes)",
            key=True,
            values={"same": "stay", "changed": "turn"},
        ),
        "kind": Column(
            "change",
            "text",
            "what was changed (column `kind` of the variants)",
            True,
            values={ALL_TOGETHER: "all"} | KIND_WORDS,
        ),
        **pick_shared_columns("evaluator"),
        "n": Column("n", "count", "pairs behind the rate"),
        "n_unscored": Column("unscored", "count", "pairs that lack a prediction"),
        **pick_shared_columns("n_guessed"),
        "n_rejected": Column(
            "rejected before",
            "count",
            "pairs whose verdict should change, but whose original claim the evaluator already"
            " rejects",
            shown="any",
        ),
        "n_left_out": Column(
            "left out",
            "count",
            "pairs whose verdict should change, but whose original claim people labelled as an"
            " error",
            shown="any",
        ),
        "n_clusters": Column(
            "documents", "count", "clusters of claims behind the rate", shown=False
        ),
        "failure_rate": share_column(
            "failures", "share of pairs that are not judged as they should be", claims="contrary"
        ),
        **pick_shared_columns("reason"),
    },
    compute=compute_invariance,
    without_labels=True,
    applies=lambda judged: judged.variants is not None,
    plot=PlotSpec(
        what="Pairs of a claim and its variant that are not judged as they should be",
        reading=(
            "A verdict should stay where the meaning does, and turn where it does not: 0 is best"
            " for both."
        ),
        keys=("failure_rate",),
        groups=("expected", "kind"),
        limits={"failure_rate": (0.0, 1.0)},
        per_page=28,
    ),
    checks=CHECKS,
)
