"""How often do the 95 % intervals of the audits hold the truth? Each figure that has an interval is
tried.

All replicates of a setting are data sets of one comparison, and the true figures are those of one
more data set, which has many documents. An audit that is new is looked at as soon as it stands in
`AUDITS`. `measure.py` prints the table.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import ndtr, ndtri
from worlds import WORLDS, make_worlds

import factaudit

Row = dict[str, Any]
#: What is audited of claims with verdicts; of settings that ask several times or give grades.
AUDITS = (
    *(
        "rates",
        "differences",
        "discrimination",
        "consistency",
        "quantification",
        "headroom",
        "ranking",
    ),
    *("surface_bias", "covariates", "adjustment", "factscore"),
)
#: Whose intervals are of something else than the figure of many documents: of the very threshold
#: that was found; of systems that are themselves a sample (`influence.py` has Pearson's r).
OTHER_TARGETS = ("discrimination tuned_tpr", "discrimination tuned_tnr", "ranking pearson_r")
#: Claims of the data set with the true figures.
N_TRUE_CLAIMS = 100_000


@dataclass(frozen=True)
class Setting:
    """Systems answer about documents, some of which are hard: more errors, and evaluators that are
    less often right.

    errors: the error rate of each system; tpr, tnr: of both evaluators; shared: how much of what
    makes a claim or a verdict wrong is the document's (0 to 1); alike: how much evaluators share of
    what leads them astray; unscored: how often the second gives no verdict; own: each system has
    documents of its own; uneven: 1 to 2 * claims - 1 claims a document and system; longer: the
    harder a document, the more claims it has.
    """

    name: str
    documents: int = 50
    claims: int = 5
    errors: tuple[float, ...] = (0.2, 0.25, 0.3, 0.4)
    tpr: tuple[float, ...] = (0.85, 0.75)
    tnr: tuple[float, ...] = (0.7, 0.65)
    shared: float = 0.15
    alike: float = 0.5
    unscored: float = 0.0
    own: bool = False
    uneven: bool = False
    longer: bool = False
    repeats: int = 1
    grades: bool = False

    @property
    def audits(self) -> tuple[str, ...]:
        return ("stability",) if self.repeats > 1 else ("grades",) if self.grades else AUDITS


SETTINGS = make_worlds(Setting, WORLDS["covering"])


def draw_documents(
    setting: Setting, n_datasets: int, random: np.random.Generator
) -> dict[str, np.ndarray]:
    """Of each claim its data set, system, document and response, and how hard the document is."""
    shape = (n_datasets, setting.documents, len(setting.errors))
    dataset, document, system = (each.ravel() for each in np.indices(shape))
    place = dataset * setting.documents + document
    if setting.own:
        place = place * len(setting.errors) + system
    hard = random.normal(size=place.max() + 1)[place]
    n_claims = np.full(len(dataset), setting.claims)
    if setting.uneven:
        n_claims = random.integers(1, 2 * setting.claims, len(dataset))
    if setting.longer:
        n_claims = np.maximum(np.rint(setting.claims * np.exp(0.6 * hard - 0.18)), 1).astype(int)
    response = np.repeat(np.arange(len(dataset)), n_claims)
    about = {"dataset": dataset, "system": system, "document": place, "hard": hard}
    return {name: values[response] for name, values in about.items()} | {"response": response}


def draw_tables(setting: Setting, n_datasets: int, seed: int) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Claims and verdicts of so many data sets."""
    random = np.random.default_rng(seed)
    drawn = draw_documents(setting, n_datasets, random)
    n, effect = len(drawn["hard"]), np.sqrt(setting.shared) * drawn["hard"]

    def add_noise(sign: int, noise: np.ndarray) -> np.ndarray:
        """Standard normal numbers; those of one document go together."""
        return sign * effect + np.sqrt(1 - setting.shared) * noise

    is_error = (
        ndtr(add_noise(1, random.normal(size=n))) > 1 - np.array(setting.errors)[drawn["system"]]
    )
    # A claim shares 0 to 5 of five pairs of words with its document.
    texts = np.array(
        [" ".join([*"abcdef"[: shared + 1], *"uvwxyz"[shared:]]) for shared in range(6)]
    )
    names = {
        "dataset": "dataset",
        "task": "dataset",
        "system": "system",
        "doc_id": "document",
        "response_id": "response",
    }
    claims = pd.DataFrame(
        {column: np.char.add(column[0], drawn[key].astype(str)) for column, key in names.items()}
    )
    claims = claims.assign(
        claim_id=np.char.add("c", np.arange(n).astype(str)),
        label=(~is_error).astype(int),
        claim=texts[random.integers(0, 6, n)],
        doc="a b c d e f",
    )
    common, verdicts = random.normal(size=n), []
    for at, name in enumerate("ab"):
        own = np.sqrt(setting.alike) * common + np.sqrt(1 - setting.alike) * random.normal(size=n)
        least = np.where(is_error, 1 - setting.tnr[at], 1 - setting.tpr[at])
        for repeat in range(setting.repeats):
            again = (
                np.sqrt(0.8) * own + np.sqrt(0.2) * random.normal(size=n)
                if setting.repeats > 1
                else own
            )
            # How far a verdict lies on the right side: beyond one half in the share TPR or TNR of
            # the claims.
            right = ndtr(add_noise(-1, again) - ndtri(least))
            score = np.where(is_error, 1 - right, right).round(3)
            is_lost = random.random(n) < (setting.unscored if name == "b" else 0)
            table = pd.DataFrame(
                {"claim_id": claims["claim_id"], "evaluator": name, "repeat": repeat}
            )
            verdicts.append(
                table.assign(
                    score=np.where(is_lost, np.nan, score), status=np.where(is_lost, "error", "ok")
                )
            )
    both = pd.concat(verdicts, ignore_index=True)
    if setting.grades:
        quality, edges = add_noise(-1, random.normal(size=n)), [-1, 0, 0.5, 1]
        claims["grade"] = 1 + np.searchsorted(edges, quality + 0.5 * random.normal(size=n))
        both["grade"] = 1 + np.searchsorted(
            edges, np.tile(quality, 2) + 0.7 * random.normal(size=2 * n) + 0.2
        )
    return factaudit.validate_claims(claims), factaudit.validate_verdicts(both)


def audit_tables(setting: Setting, n_datasets: int, seed: int) -> dict[str, Sequence[Row]]:
    claims, verdicts = draw_tables(setting, n_datasets, seed)
    return factaudit.compare(claims, verdicts, audits=list(setting.audits), replicates=300).audits


def list_intervals(rows: Sequence[Row]) -> Iterator[tuple[tuple[str, ...], Row, str]]:
    """Each interval with what it is about (the data set aside), its row and its key."""
    for row in rows:
        about = {key: value for key, value in row.items() if isinstance(value, str) or key == "bin"}
        # A run need not find the system that is truly lowest: its interval counts all the same.
        for key in ("dataset", "task", "reason", "labelled_system", "predicted_system"):
            about.pop(key, None)
        for key in row:
            if key.endswith("_low") and key[:-4] in row and row.get("dataset") != "__macro__":
                yield tuple(map(str, about.values())), row, key[:-4]


def measure_coverage(setting: Setting, replicates: int, seed: int = 5) -> dict[str, np.ndarray]:
    """By figure whether each interval of each replicate holds the truth."""
    n_documents = max(N_TRUE_CLAIMS // (setting.claims * len(setting.errors)), 2000)
    truths = audit_tables(replace(setting, documents=n_documents), 1, seed=1)
    found = defaultdict(list)
    for name, rows in audit_tables(setting, replicates, seed).items():
        true = {(about, key): row[key] for about, row, key in list_intervals(truths[name])}
        for about, row, key in list_intervals(rows):
            low, high, truth = row[f"{key}_low"], row[f"{key}_high"], true.get((about, key))
            if low is not None and truth is not None and f"{name} {key}" not in OTHER_TARGETS:
                found[f"{name} {key}"].append(low <= truth <= high)
    return {name: np.array(held) for name, held in found.items()}
