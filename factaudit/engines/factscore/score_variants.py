"""The same responses scored again with one setting of the pipeline another: what the audit `sensitivity` reads.

All variants share the cache of replies and the journals of the run, so that what two have in common is asked once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel, ValidationError

from factaudit.audit.core.audit_declaration import Column
from factaudit.audit.core.figure_formatting import format_figure_range, format_percent, format_percentage_points
from factaudit.audit.core.result_rows import Row
from factaudit.audit.sensitivity import BASE_VARIANT
from factaudit.engines.factscore.engine import FactScorer
from factaudit.engines.factscore.variant_cost import VariantCostForecast
from factaudit.engines.records import ScoredResponseRecords
from factaudit.engines.responses import Response
from factaudit.errors import UsageError, suggest_known_name
from factaudit.llm.settings import LLMSettings
from factaudit.results import Results, compare
from factaudit.tables import validate_claims, validate_verdicts, write_table
from factaudit.text.display_text import format_count

#: What may be varied: the steps of the pipeline, not what is scored.
VARIED_SETTINGS = (
    *("decomposer", "demos", "prompts", "decontextualize", "core", "entity_filter"),
    *("max_facts", "min_characters", "abstain"),
    *("knowledge", "passage_tokens", "retrieval", "retrieval_model", "k"),
    *("llm", "verifier", "verifiers", "parser", "npm", "gamma"),
)
#: What the base alone does.
_BASE_ALONE: dict[str, Any] = {"variants": {}, "explain_unsupported": False}
#: The score's name among the evaluators of the tables of variants: what is varied is the whole pipeline.
METRIC_NAME = "FActScore"


@dataclass(frozen=True)
class ScoreVariant:
    """One setting that is another than in the base: its name ("k=1") and the settings of the whole pipeline."""

    name: str
    block: Any


def list_score_variants(block: Any) -> list[ScoreVariant]:
    """The variants that a block of settings names, without those that are as the base is.

    Raises `UsageError` for settings that cannot be varied, values that they do not take, and two of one name.
    """
    found: dict[str, ScoreVariant] = {}
    for key, values in block.variants.items():
        if key not in VARIED_SETTINGS:
            raise UsageError(f"variants: {key!r} cannot be varied{suggest_known_name(key, VARIED_SETTINGS)}")
        field = "verifiers" if key == "verifier" else key
        for value in values:
            checked = _check_variant_setting_value(type(block), key, value, block.responses)
            chosen = getattr(checked, field)
            if chosen == getattr(block, field):
                continue
            name = f"{key}={_format_variant_setting_value(chosen, is_path=key in block.PATHS)}"
            if name in found:
                raise UsageError(f"variants: two are called {name!r}")
            found[name] = ScoreVariant(name, block.model_copy(update={field: chosen, **_BASE_ALONE}))
    if block.variants and not found:
        raise UsageError("variants: all values are those of the base")
    return list(found.values())


def _check_variant_setting_value(model: type[BaseModel], key: str, value: Any, responses: Sequence[str]) -> Any:
    try:
        return model.model_validate({"responses": responses, key: value})
    except ValidationError as error:
        raise UsageError(f"variants: {key}: {error.errors()[0]['msg']}, found {value!r}") from None


def _format_variant_setting_value(value: Any, is_path: bool) -> str:
    if isinstance(value, list):
        return "+".join(_format_variant_setting_value(one, is_path=False) for one in value)
    if isinstance(value, LLMSettings):
        return value.model
    if isinstance(value, Mapping):
        name, options = next(iter(value.items()))
        return f"{name}({', '.join(f'{key}={each}' for key, each in (options or {}).items())})"
    if isinstance(value, bool):
        return str(value).lower()
    return Path(value).name if is_path else f"{value:g}" if isinstance(value, float) else f"{value}"


@dataclass(frozen=True)
class ScoreVariantRun:
    """The base and its variants, ready to score: what a scoring run calls to add the audits of sensitivity.

    max_cost: of the whole run, in US dollars. say: told of the cost before it arises, and of the figures.
    """

    base: FactScorer
    scorers: Mapping[str, FactScorer]
    max_cost: float | None
    say: Callable[[str], None]
    progress: bool = False

    @property
    def callers(self) -> list[tuple[str, Any]]:
        """The clients of all variants, each with the name under which the run lists its calls."""
        return [
            (f"{name}: {caller}", client)
            for name, one in self.scorers.items()
            for caller, client in one.counted_clients
        ]

    def score_variants(
        self, responses: Sequence[Response], scored: ScoredResponseRecords, journal: Path
    ) -> Callable[[Results, Path], None]:
        """Foretell what the variants cost, then score them; gives what adds them to the run's results."""
        forecast = VariantCostForecast(self.base, self.scorers, responses)
        told = forecast.foretell()
        self._say_costs(told, " if all facts are new" if forecast.decompositions_are_open else "")
        if forecast.decompositions_are_open:
            told = forecast.foretell(decomposing=True)
            self._say_costs(told, " now that the facts are known")
        records = {
            name: one.score_responses(responses, journal=journal, progress=self.progress)
            for name, one in self.scorers.items()
        }
        costs = [row | _sum_client_usage(self.scorers[row["variant"]]) for row in told]

        def add_audits(results: Results, folder: Path) -> None:
            first = {BASE_VARIANT: self.base.names[0], **{name: one.names[0] for name, one in self.scorers.items()}}
            claims, verdicts = _stack_variant_fact_tables({BASE_VARIANT: scored, **records}, first)
            write_table(claims, folder / "variant_claims.parquet")
            write_table(verdicts, folder / "variant_verdicts.parquet")
            gammas = {name: one.gamma for name, one in self.scorers.items() if one.gamma != self.base.gamma}
            options = {"gamma": self.base.gamma} | ({"gammas": gammas} if gammas else {})
            more = compare(
                claims,
                verdicts,
                audits=[{"sensitivity": options}, "retrieval"],
                replicates=self.base.replicates,
                seed=self.base.seed,
                confidence=self.base.confidence,
            )
            results.audits.update({name: rows for name, rows in more.audits.items() if rows})
            results.finding_rows.extend(more.finding_rows)
            results.about["variants"] = {name: one.signatures[one.names[0]] for name, one in self.scorers.items()}
            results.sections.append(_build_variant_costs_section(costs))
            for line in _format_variant_score_table(more.audits["sensitivity"]):
                self.say(line)

        return add_audits

    def _say_costs(self, foretold: Sequence[Row], condition: str) -> None:
        """Say what the variants cost in all. Raises `UsageError` where the limit does not allow it."""
        calls = sum(row["calls"] for row in foretold)
        costs = [row["cost"] for row in foretold]
        cost = None if None in costs else sum(costs)
        dollars = "at a price that is not known" if cost is None else f"${cost:,.4f}"
        told = f"about {format_count(calls, 'call')}, {dollars}{condition}" if calls else "which ask models nothing new"
        self.say(f"variants  {len(foretold):>9,}, {told}")
        budgets = (getattr(client, "budget", None) for _, client in self.callers)
        spent = max((one.spent for one in budgets if one is not None), default=0.0)
        paid = sum(_sum_client_usage(one)["paid"] or 0.0 for one in self.scorers.values())  # part of what is spent
        if cost is not None and self.max_cost is not None and spent - paid + cost > self.max_cost:
            raise UsageError(
                f"the variants would cost ${cost:,.4f}, and ${spent:,.4f} of max_cost ({self.max_cost:g}) are spent: "
                "raise max_cost, or vary less; what is done is kept"
            )


def _sum_client_usage(scorer: FactScorer) -> Row:
    usages = list({id(client.usage): client.usage for _, client in scorer.counted_clients}.values())
    costs = [one.cost for one in usages]
    return {"paid_calls": sum(one.calls for one in usages), "paid": None if None in costs else sum(costs)}


def _stack_variant_fact_tables(
    records: Mapping[str, ScoredResponseRecords], evaluators: Mapping[str, str]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """All facts by variant, and what each variant's own verifier says of them."""
    claims, verdicts = [], []
    for name, one in records.items():
        ids = {"claim_id": one.claims["claim_id"] + f"@{name}", "fact_id": one.claims["fact_id"] + f"@{name}"}
        claims.append(one.claims.assign(**ids, doc=None, variant=name))
        mine = one.verdicts[one.verdicts["evaluator"] == evaluators[name]]
        verdicts.append(mine.assign(claim_id=mine["claim_id"] + f"@{name}", evaluator=METRIC_NAME))
    return tuple(  # type: ignore[return-value]
        check(pd.concat(parts, ignore_index=True).astype({"claim_id": object}))
        for check, parts in ((validate_claims, claims), (validate_verdicts, verdicts))
    )


def _build_variant_costs_section(cost_rows: Sequence[Row]) -> Row:
    lines = [
        f"{row['variant']}: foretold {format_count(row['calls'], 'call')} ({_format_dollars(row['cost'])}), made "
        f"{row['paid_calls']:,} ({_format_dollars(row['paid'])})."
        for row in cost_rows
    ]
    return {"title": "What the variants cost", "text": lines, "table": None, "figure": None}


def _format_dollars(dollars: float | None) -> str:
    return "price not known" if dollars is None else f"${dollars:,.4f}"


def _format_variant_score_table(score_rows: Sequence[Row]) -> list[str]:
    """The table of variants that the command prints."""
    lines = [("variant", "FActScore (95 % CI)", "change in points")]
    seen: set[Any] = set()
    for row in score_rows:
        if (key := (row["dataset"], row["variant"])) in seen:  # the first row is of all systems
            continue
        seen.add(key)
        lines.append(
            (
                row["variant"],
                _format_score_with_interval(row, "score"),
                _format_score_with_interval(row, "change"),
            )
        )
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return ["  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines]


def _format_score_with_interval(row: Row, key: str) -> str:
    if row[key] is None:
        return "–" if key == "score" else ""
    is_share = key == "score"
    text = format_percent(row[key]) if is_share else format_percentage_points(row[key], with_sign=True)
    low, high = row.get(f"{key}_low"), row.get(f"{key}_high")
    if low is None or high is None:
        return text
    return f"{text} ({format_figure_range(Column('', 'percent' if is_share else 'points'), low, high)})"
