"""What are the scores with one setting of the pipeline changed? The audit `sensitivity` reads this.

All variants share the cache of replies and the journals of the run, so that what two have in common is asked once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd
from pydantic import ValidationError

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
            try:
                chosen = getattr(type(block).model_validate({"responses": block.responses, key: value}), field)
            except ValidationError as error:
                raise UsageError(f"variants: {key}: {error.errors()[0]['msg']}, found {value!r}") from None
            if chosen == getattr(block, field):
                continue
            name = f"{key}={Path(chosen).name if key in block.PATHS else _format_setting(chosen)}"
            if name in found:
                raise UsageError(f"variants: two are called {name!r}")
            found[name] = block.model_copy(update={field: chosen, "variants": {}})
    if block.variants and not found:
        raise UsageError("variants: all values are those of the base")
    return found


def _format_setting(value: Any) -> str:
    if isinstance(value, list):
        return "+".join(map(_format_setting, value))
    if isinstance(value, LLMSettings):
        return value.model
    if isinstance(value, Mapping):
        name, options = next(iter(value.items()))
        return f"{name}({', '.join(f'{key}={each}' for key, each in (options or {}).items())})"
    return str(value).lower() if isinstance(value, bool) else f"{value:g}" if isinstance(value, float) else str(value)


def score_variants(
    base: FactScorer, scorers: Mapping[str, FactScorer], say: Callable[[str], None], progress: bool = False
) -> Callable[[Sequence[Response], ScoredResponses, Path], Callable[[Results, Path], None]]:
    """What a scoring run calls to score the variants as well, and to add the audits that compare them with the base.

    say: told of the figures, a line per variant.
    """

    def score(responses: Sequence[Response], scored: ScoredResponses, journal: Path) -> Callable[[Results, Path], None]:
        every = {BASE_VARIANT: (base, scored)}
        for name, one in scorers.items():
            every[name] = one, one.score_responses(responses, journal=journal, progress=progress)

        def add_audits(results: Results, folder: Path) -> None:
            claims, verdicts = _stack_fact_tables(every)
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
            # The first row of a variant is of all systems.
            first = {row["variant"]: row for row in reversed(more.audits["sensitivity"])}
            for name in every:
                if name in first:
                    score, change = (_format_figure(first[name], key) for key in ("score", "change"))
                    say(f"{name:<28} {score:<22} {change}".rstrip())

        return add_audits

    return score


def _stack_fact_tables(every: Mapping[str, tuple[FactScorer, ScoredResponses]]) -> tuple[pd.DataFrame, pd.DataFrame]:
    """All facts by variant, and what each variant's own verifier says of them."""
    claims, verdicts = [], []
    for name, (scorer, scored) in every.items():
        ids = {key: scored.claims[key] + f"@{name}" for key in ("claim_id", "fact_id")}
        claims.append(scored.claims.assign(**ids, doc=None, variant=name))
        mine = scored.verdicts[scored.verdicts["evaluator"] == scorer.names[0]]
        verdicts.append(mine.assign(claim_id=mine["claim_id"] + f"@{name}", evaluator=METRIC_NAME))
    both = (pd.concat(parts, ignore_index=True).astype({"claim_id": object}) for parts in (claims, verdicts))
    return validate_claims(next(both)), validate_verdicts(next(both))


def _format_figure(row: Row, key: str) -> str:
    """A score with its interval, or the change from the base in points."""
    if row[key] is None:
        return "–" if key == "score" else ""
    shown = Column("", "percent" if key == "score" else "points")
    text = format_percent(row[key]) if key == "score" else format_percentage_points(row[key], with_sign=True)
    low, high = row.get(f"{key}_low"), row.get(f"{key}_high")
    return text if low is None or high is None else f"{text} ({format_figure_range(shown, low, high)})"
