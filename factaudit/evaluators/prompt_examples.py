"""Which claims may be examples in a judge's prompt? Only those of the split ``train``, none that is measured on."""

from __future__ import annotations

from collections.abc import Iterable

import pandas as pd

from factaudit.errors import UsageError
from factaudit.evaluators.base import Evaluator
from factaudit.text.display_text import format_count

#: Shorter claims stand in many a text by chance.
_MIN_CLAIM_WORDS = 4


def check_prompts_spare_claims(evaluators: Iterable[Evaluator], claims: pd.DataFrame) -> None:
    """Raise `UsageError` where the prompt of an evaluator has a claim of another split than ``train``.

    claims: a claims table; those without a split, and those of fewer than four words, are not looked for.
    """
    prompts = [prompt for one in evaluators if (prompt := getattr(one, "prompt_text", None)) is not None]
    measured = claims[claims["split"].notna() & (claims["split"] != "train") & claims["claim"].notna()]
    if not prompts or measured.empty:
        return
    texts = measured["claim"].astype(str).map(_normalise_text)
    measured = measured[texts.str.count(" ") >= _MIN_CLAIM_WORDS - 1]
    for prompt in map(_normalise_text, prompts):
        found = measured[[text in prompt for text in texts[measured.index]]]
        if len(found):
            first = found.iloc[0]
            raise UsageError(
                f"the prompt contains {format_count(len(found), 'claim')} that should be judged: claim "
                f"{first['claim_id']!r} of the split {first['split']!r}; take examples from the split 'train'"
            )


def _normalise_text(text: str) -> str:
    return " ".join(text.casefold().split())
