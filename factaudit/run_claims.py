"""How the claims of two runs differ: which are in one alone, and whose label or text is another one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from factaudit.tables.schema import is_text_placeholder


def compare_claims_of_runs(before: pd.DataFrame, after: pd.DataFrame) -> dict[str, Any]:
    """The counts of `factaudit.run_diff.RunDiff` that are of claims (by claim_id).

    Rows of responses without any claim are no claims. A text is another one where both runs have one.
    """
    first, second = (claims[claims["abstained"].isna()].set_index("claim_id", drop=False) for claims in (before, after))
    shared = first.index[first.index.isin(second.index)]
    old, new = first.loc[shared], second.loc[shared]
    labels = [side["label"].astype("Float64").to_numpy(dtype=np.float64, na_value=np.nan) for side in (old, new)]
    is_known = [~np.isnan(label) for label in labels]
    datasets = [list(side["dataset"].unique()) for side in (first, second)]
    return {
        "n_claims": len(shared),
        "only_before": len(first) - len(shared),
        "only_after": len(second) - len(shared),
        "only_datasets_before": [name for name in datasets[0] if name not in datasets[1]],
        "only_datasets_after": [name for name in datasets[1] if name not in datasets[0]],
        "n_labelled": int(is_known[0].sum()),
        "n_labels_changed": int(((labels[0] != labels[1]) & (is_known[0] | is_known[1])).sum()),
        "n_labels_added": int((~is_known[0] & is_known[1]).sum()),
        "n_labels_removed": int((is_known[0] & ~is_known[1]).sum()),
        "n_texts_changed": int((_has_other_text(old, new, "claim") | _has_other_text(old, new, "doc")).sum()),
    }


def _has_other_text(old: pd.DataFrame, new: pd.DataFrame, column: str) -> np.ndarray:
    texts = [side[column].to_numpy(dtype=object) for side in (old, new)]
    return np.array([_is_text(a) and _is_text(b) and a != b for a, b in zip(*texts, strict=True)], dtype=bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and not is_text_placeholder(value)


def describe_label_changes_of_runs(n_changed: int, n_added: int, n_removed: int) -> str:
    """Labels that were added contradict none.

    >>> describe_label_changes_of_runs(10, 8, 0)
    '2 differ, 8 only after'
    """
    counts = (n_changed - n_added - n_removed, "differ"), (n_added, "only after"), (n_removed, "only before")
    return ", ".join(f"{n:,} {how}" for n, how in counts if n)
