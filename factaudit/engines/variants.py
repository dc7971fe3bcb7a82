"""What are the scores with one setting of the pipeline changed? The audit `sensitivity` reads this.

All variants share the cache of replies and the journals of the run, so that what two have in common is asked once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from pydantic import BaseModel, ValidationError

from factaudit.audit.core.audit_declaration import Column
from factaudit.audit.core.figure_formatting import format_figure_range, format_percent, format_percentage_points
from factaudit.audit.core.result_rows import Row
from factaudit.audit.sensitivity import BASE_VARIANT
from factaudit.engines.factscore_report import ScoredResponses
from factaudit.engines.responses import Response
from factaudit.errors import UsageError, suggest_known_name
from factaudit.llm.settings import LLMSettings
from factaudit.results import Results, compare
from factaudit.tables import validate_claims, validate_verdicts, write_table

if TYPE_CHECKING:
    from factaudit.engines.factscore import FactScorer

#: What may be varied: the steps of the pipeline, not what is scored.
VARIED_SETTINGS = (
    *("decomposer", "demos", "prompts", "decontextualize"),
    *("max_facts", "min_characters", "abstain"),
    *("knowledge", "passage_tokens", "retrieval", "retrieval_model", "k"),
    *("llm", "verifier", "verifiers", "parser", "npm", "gamma"),
)
#: The score's name among the evaluators of the tables of variants: what is varied is the whole pipeline.
METRIC_NAME = "FActScore"


def list_score_variants(block: Any) -> dict[str, Any]:
    """The variants that a block of settings names, without those that are as the base is: by its name ("k=1") the
    settings of the whole pipeline with one setting another.

    Raises `UsageError` for settings that cannot be varied, values that they do not take, and two of one name.
    """
    found: dict[str, Any] = {}
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
            found[name] = block.model_copy(update={field: chosen, "variants": {}})
    if block.variants and not found:
        raise UsageError("variants: all values are those of the base")
    return found


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


def score_variants(
    base: FactScorer, scorers: Mapping[str, FactScorer], say: Callable[[str], None], progress: bool = False
) -> Callable[[Sequence[Response], ScoredResponses, Path], Callable[[Results, Path], None]]:
    """What a scoring run calls to score the variants as well, and to add the audits that compare them with the base.

    say: told of the figures, a line per variant.
    """

    def score(responses: Sequence[Response], scored: ScoredResponses, journal: Path) -> Callable[[Results, Path], None]:
        every = {BASE_VARIANT: scored}
        for name, one in scorers.items():
            every[name] = one.score_responses(responses, journal=journal, progress=progress)

        def add_audits(results: Results, folder: Path) -> None:
            first = {name: one.names[0] for name, one in {BASE_VARIANT: base, **scorers}.items()}
            claims, verdicts = _stack_variant_fact_tables(every, first)
            write_table(claims, folder / "variant_claims.parquet")
            write_table(verdicts, folder / "variant_verdicts.parquet")
            gamma = base.options.gamma
            gammas = {name: one.options.gamma for name, one in scorers.items() if one.options.gamma != gamma}
            more = compare(
                claims,
                verdicts,
                audits=[{"sensitivity": {"gamma": gamma, **({"gammas": gammas} if gammas else {})}}, "retrieval"],
                replicates=base.replicates,
                seed=base.seed,
                confidence=base.confidence,
            )
            results.audits.update({name: rows for name, rows in more.audits.items() if rows})
            results.finding_rows.extend(more.finding_rows)
            results.about["variants"] = {name: one.signatures[one.names[0]] for name, one in scorers.items()}
            for line in _format_variant_score_table(more.audits["sensitivity"]):
                say(line)

        return add_audits

    return score


def _stack_variant_fact_tables(
    records: Mapping[str, ScoredResponses], evaluators: Mapping[str, str]
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
