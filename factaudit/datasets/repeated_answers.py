"""Ids of the answers of a model that is asked the same several times: another answer is another claim."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping


class RepeatedAnswerNumbering:
    """Ids of claims, and repeats of verdicts, of the samples of a log, which are numbered one after the other."""

    def __init__(self) -> None:
        self._ids: dict[tuple[str, str | None, str | None], str] = {}
        self._n_answers: Counter[str] = Counter()
        self._n_samples: Counter[str] = Counter()

    def number_answer(self, sample_id: str, texts: Mapping[str, str | None], repeat: int) -> tuple[str, int]:
        """The id of the claim that a sample's ``claim`` on its ``doc`` is, and the repeat of the sample's verdicts.

        The first answer of a sample has the sample's id and the log's own ``repeat``; others are numbered.
        """
        key = sample_id, texts.get("claim"), texts.get("doc")
        if key[1] is None and self._n_answers[sample_id]:  # an attempt that failed has no answer
            self._ids.setdefault(key, sample_id)
        if key not in self._ids:
            self._n_answers[sample_id] += 1
            number = self._n_answers[sample_id]
            self._ids[key] = sample_id if number == 1 else f"{sample_id}#{number}"
        claim_id = self._ids[key]
        repeat = repeat if claim_id == sample_id else self._n_samples[claim_id]
        self._n_samples[claim_id] += 1
        return claim_id, repeat
