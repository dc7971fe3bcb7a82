"""Do chunks make an evaluator flag claims that no single chunk supports, and does that do harm?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from factaudit.audit.core.audit_declaration import AuditedRun, Finding
from factaudit.audit.core.decision_limits import can_warn_without_intervals
from factaudit.audit.core.finding_parts import (
    format_how_many_datasets,
    group_finding_rows_by_evaluator,
    group_finding_rows_by_keys,
)
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.significance import p_above_other_figure, read_confidence
from factaudit.audit.core.statements import make_statement

#: Chunking may turn this much more of the claims from 1 to 0 where no one chunk has all their bigrams.
MAX_EXTRA_FLIPS = 0.05


def find_chunking_flips(audited_run: AuditedRun, chunked_rates: Sequence[Row]) -> Iterator[Finding]:
    """Claims that are supported by no single chunk, and are rejected because of it.

    chunked_rates: how often evaluators are right with chunks and without.
    """
    every = list(audited_run.per_dataset("chunking", "flip_1_to_0"))
    n_compared = len({(row["dataset"], row["evaluator"], row["chunked_evaluator"]) for row in every})
    audited_run.test_counts.append(n_compared * (not can_warn_without_intervals(every, "flip_1_to_0")))
    for evaluator, mine in group_finding_rows_by_evaluator(every):
        compared, bad = [], []
        for (dataset, chunked), group in group_finding_rows_by_keys(mine, "dataset", "chunked_evaluator"):
            kinds = {row["r2_diff"]: row for row in group}
            if set(kinds) != {"zero", "positive"}:
                continue
            split, whole = kinds["positive"], kinds["zero"]
            compared.append(dataset)
            if split["flip_1_to_0"] > max(whole["flip_1_to_0"] + MAX_EXTRA_FLIPS, split["flip_0_to_1"]):
                p_value = p_above_other_figure(audited_run, split, "flip_1_to_0", whole, "flip_1_to_0")
                sure = p_value * n_compared < 1 - read_confidence(audited_run)
                if not sure and not can_warn_without_intervals(every, "flip_1_to_0"):
                    continue
                bad.append((sure, split["flip_1_to_0"] - whole["flip_1_to_0"], dataset, chunked, split, whole))
        if not bad:
            continue
        sure, _, dataset, chunked, split, whole = max(bad, key=lambda each: each[:2])
        where = format_how_many_datasets([each[2] for each in bad], compared)
        others = "{whole.flip_1_to_0:percent}" if whole["flip_1_to_0"] else "none"
        rates = {
            row["evaluator"]: row
            for row in chunked_rates
            if (row["dataset"], row.get("chunk_size")) == (dataset, split.get("chunk_size"))
            and row.get("bacc") is not None
        }
        size = "unknown size" if split.get("chunk_size") is None else "{split.chunk_size:number word}"
        cut, uncut = rates.get(chunked, {}), rates.get(evaluator, {})
        # Without labels that say otherwise, what turns verdicts to 0 for their wording alone is a fault.
        is_fault, advice = True, ""
        if cut and uncut:
            has_interval = cut.get("bacc_change_high") is not None
            is_fault = cut["bacc_change_high"] < 0 if has_interval else cut["bacc"] < uncut["bacc"]
            advice = " Its balanced accuracy there is {cut.bacc:percent} with chunks and {uncut.bacc:percent} without"
            is_lower = has_interval and not is_fault and cut["bacc"] < uncut["bacc"]
            advice += ", not significantly lower." if is_lower else "." if is_fault else ", so the labels show no harm."
        advice += " Give it whole documents or larger chunks." * is_fault
        yield Finding(
            "fail" if sure and is_fault else "warn",
            evaluator,
            dataset,
            make_statement(
                "Chunks make {split.evaluator} flag more of the claims whose words are spread over several "
                "chunks{where}. "
                f"On {{split.dataset}}, chunks of {size} turn {{split.flip_1_to_0:percent}} of these "
                f"{{split.n:number claim}} from attributable to unattributable, and {others} of the others.{advice}",
                split=split,
                cut=cut,
                uncut=uncut,
                whole=whole,
                where=where,
            ),
            {"chunked_evaluator": chunked, "flip_1_to_0": split["flip_1_to_0"]}
            | {"flip_1_to_0_of_others": whole["flip_1_to_0"], "flip_0_to_1": split["flip_0_to_1"], "n": split["n"]},
        )
