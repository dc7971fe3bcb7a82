"""What will the calls of evaluators cost? Nothing is sent."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.evaluators.judging import NamedEvaluator, iterate_table_claims, walk_evaluator_members
from factaudit.llm.cost import estimate_llm_judging_cost, read_llm_price_table


def estimate_evaluator_costs(
    evaluators: Iterable[NamedEvaluator], claims: pd.DataFrame, price_table_path: str | Path | None = None
) -> list[dict[str, Any]]:
    """What judging claims would cost at the most: a row of `estimate_llm_judging_cost` per evaluator, repeat and member
    that asks a language model.
    """
    prices = None if price_table_path is None else read_llm_price_table(price_table_path)
    table_claims = list(iterate_table_claims(claims))
    return [
        row
        for one in evaluators
        for evaluator in one.evaluator_and_repeats
        for member, asked in walk_evaluator_members(evaluator, table_claims)
        for row in estimate_llm_judging_cost({one.name: member}, list(asked), prices=prices)
    ]
