"""The FActScores of the same responses by variants of one pipeline, as arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from factaudit.arrays.claim_groups import ALL_TOGETHER
from factaudit.arrays.judgements import Judgements
from factaudit.arrays.response_facts import collect_response_facts, score_response_facts

#: The figures of a response: its FActScore with the length penalty, and what it could be.
SCORE_KEYS = ("score", "score_min", "score_max")
_RESPONSE_KEYS = ["dataset", "system", "response_id"]


@dataclass(frozen=True)
class VariantScores:
    """What one evaluator says of the R responses of a dataset, by variant.

    system: object (R,), sorted; cluster: int (R,), equal for texts on one topic, else the response's own. figures: of
    each of `SCORE_KEYS` by variant float64 (R,), NaN where a response has no facts, or none was asked.
    """

    dataset: str
    evaluator: str
    system: np.ndarray
    cluster: np.ndarray
    figures: Mapping[str, Mapping[str, np.ndarray]]

    def list_variants(self, base: str) -> list[str]:
        """The variants, the base first."""
        return sorted(self.figures["score"], key=lambda name: (name != base, name))

    def responses_by_system(self, variant: str) -> Iterator[tuple[str | None, np.ndarray]]:
        """Each system with its responses that have facts by the variant (bool (R,)); first all, where several."""
        spoke = ~np.isnan(self.figures["score_max"][variant])
        systems = list(dict.fromkeys(self.system[spoke]))
        if len(systems) > 1:
            yield ALL_TOGETHER, spoke
        for system in systems:
            yield system, spoke & np.array([one == system for one in self.system], dtype=bool)


def collect_variant_scores(
    judgements: Judgements, gamma: float, gammas: Mapping[str, float] | None
) -> list[VariantScores]:
    """The scores of each dataset and evaluator, found once for both audits."""
    key = ("variant_scores", gamma, tuple(sorted((gammas or {}).items())))
    return judgements.compute_once(key, lambda: list(_score_responses_by_variant(judgements, gamma, gammas or {})))


def _score_responses_by_variant(
    judgements: Judgements, gamma: float, gammas: Mapping[str, float]
) -> Iterator[VariantScores]:
    if "variant" not in judgements.claims:
        return
    parts = []
    for name in sorted(map(str, judgements.claims["variant"].dropna().unique())):
        alone = _select_judgements_of_variant(judgements, name)
        facts = collect_response_facts(alone)
        topic = np.full(len(facts.responses), None, dtype=object)
        topic[facts.response] = alone.claims["topic"].to_numpy(dtype=object)[facts.first_rows]
        responses = facts.responses[_RESPONSE_KEYS].assign(topic=topic, variant=name)
        for number, judge in enumerate(alone.evaluators):
            scores = score_response_facts(facts, alone, number, gammas.get(name, gamma))
            spoke = scores.n_facts > 0
            if (alone.status[number] >= 0).any() and spoke.any():
                parts.append(responses.assign(evaluator=judge, **{k: scores.figures[k] for k in SCORE_KEYS})[spoke])
    every = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=["dataset", "evaluator"])
    for (dataset, evaluator), of in every.groupby(["dataset", "evaluator"], sort=True, observed=True):
        keys = [(str(s), str(r)) for s, r in zip(of["system"], of["response_id"], strict=True)]
        place = {key: number for number, key in enumerate(sorted(set(keys)))}
        at = np.array([place[key] for key in keys])
        system = np.full(len(place), None, dtype=object)
        system[at] = of["system"].to_numpy(dtype=object)
        # Texts on one topic are not independent, whichever system wrote them.
        topics = np.array([str(key) for key in place], dtype=object)
        known = of["topic"].notna().to_numpy()
        topics[at[known]] = of["topic"].to_numpy(dtype=object)[known]
        figures: dict[str, dict[str, np.ndarray]] = {key: {} for key in SCORE_KEYS}
        for named, mine in of.groupby("variant", sort=True):
            rows = at[(of["variant"] == named).to_numpy()]
            for key, by_variant in figures.items():
                by_variant[str(named)] = np.full(len(place), np.nan)
                by_variant[str(named)][rows] = mine[key].to_numpy(dtype=np.float64)
        yield VariantScores(
            str(dataset), str(evaluator), system, pd.factorize(topics, sort=True)[0].astype(np.int64), figures
        )


def _select_judgements_of_variant(judgements: Judgements, variant: str) -> Judgements:
    inside = (judgements.claims["variant"] == variant).fillna(False).to_numpy(dtype=bool)
    return Judgements(
        judgements.claims[inside].reset_index(drop=True),
        judgements.evaluators,
        judgements.label[inside],
        judgements.prediction[:, inside],
        judgements.score[:, inside],
        judgements.status[:, inside],
        judgements.empty_responses.iloc[:0],
    )
