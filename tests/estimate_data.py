"""Claims, verdicts and labels for the tests of `factaudit.estimate`: simulated, with known
rates."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pandas as pd

from factaudit import validate_claims, validate_verdicts

#: The columns of the audit `estimates`, in the order of its CSV file.
ESTIMATE_COLUMNS = [
    *("dataset", "level", "system", "method", "n", "n_unpredicted", "n_labels", "n_undecided"),
    *("rate", "rate_low", "rate_high", "rate_min", "rate_max", "reason"),
]


@dataclass(frozen=True)
class World:
    """How errors and scores come about.

    rates: the log-odds of an error of each system's average claim; size: claims per system; skill:
    how far evaluators' log-odds of errors and others lie apart; drift: standard deviation of what
    systems add to all scores; documents: how many, 0 for one per claim; cluster: standard deviation
    of what a document adds to the log-odds of an error.
    """

    rates: tuple[float, ...] = (-2.0, -1.4, -0.8, -0.3)
    size: int = 250
    skill: tuple[float, ...] = (2.0, 1.2)
    drift: float = 0.0
    documents: int = 0
    cluster: float = 0.0


def tables(world: World, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Claims with labels, and verdicts of evaluators e0, e1, ..."""
    random = np.random.default_rng(seed)
    systems = len(world.rates)
    system = np.repeat(np.arange(systems), world.size)
    documents = world.documents or len(system)
    document = (
        np.tile(np.arange(world.size) % documents, systems)
        if world.documents
        else np.arange(len(system))
    )
    odds = (
        np.array(world.rates)[system] + world.cluster * random.standard_normal(documents)[document]
    )
    error = random.random(len(system)) < 1 / (1 + np.exp(-odds))
    claims = pd.DataFrame(
        {
            "claim_id": [f"c{i:06d}" for i in range(len(system))],
            "dataset": "sim",
            "system": [f"s{s:02d}" for s in system],
            "doc_id": [f"d{d}" for d in document],
            "claim": [f"claim {i}" for i in range(len(system))],
            "label": 1 - error.astype(int),
        }
    )
    verdicts = []
    for at, skill in enumerate(world.skill):
        shift = world.drift * random.standard_normal(systems)
        logit = skill * (error - 0.5) + shift[system] + random.standard_normal(len(system))
        verdicts.append(
            pd.DataFrame(
                {
                    "claim_id": claims["claim_id"],
                    "evaluator": f"e{at}",
                    "score": 1 / (1 + np.exp(logit)),
                }
            )
        )
    return validate_claims(claims), validate_verdicts(pd.concat(verdicts, ignore_index=True))


def without_labels(claims: pd.DataFrame) -> pd.DataFrame:
    return claims.assign(label=pd.Series(pd.NA, index=claims.index, dtype="Int8"))


def annotated(claims: pd.DataFrame, ids: pd.Series, annotator: str = "a") -> pd.DataFrame:
    """Annotations that say what the claims' labels say."""
    label = claims.set_index("claim_id")["label"].reindex(ids)
    return pd.DataFrame({"claim_id": list(ids), "annotator": annotator, "label": label.to_numpy()})
