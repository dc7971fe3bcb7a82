"""Every Eval Ever (evaleval/every_eval_ever, ``eval.schema.json`` 0.2.1): a file per evaluator, a result per figure."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from factaudit.export.rates import read_rates
from factaudit.files import file_name, write_json
from factaudit.results import Results, Row
from factaudit.signature import digest

SCHEMA_VERSION = "0.2.1"
_METRICS = {
    "bacc": "balanced accuracy at telling attributable from unattributable claims",
    "tpr": "share of the attributable claims that are found attributable",
    "tnr": "share of the unattributable claims that are found unattributable",
}


def export(run_dir: Path, out: Path) -> list[Path]:
    """Write ``EVALUATOR.json`` from the audit `rates`: BAcc, TPR and TNR on each data set, with intervals.

    An undefined figure has no result. The evaluator is the *model* here: what is measured is how well it judges.
    Raises `InputError` for a run without rates.
    """
    results = read_rates(run_dir)
    now = str(int(time.time()))
    paths = []
    for about in results.about.get("evaluators", []):
        rows = [row for row in results.rows("rates", evaluator=about["name"]) if not row["dataset"].startswith("__")]
        record = _record(about, [one for row in rows for one in _results(row, results)], results, now)
        path = out / f"{digest(about['name'])[:8]}-{file_name(about['name'])}.json"
        write_json(path, record)
        paths.append(path)
    return paths


def _record(about: Row, found: list[Row], results: Results, now: str) -> Row:
    title = str(results.about.get("title") or "factaudit")
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{title}/{about['name']}/{now}",
        "retrieved_timestamp": now,
        "source_metadata": {
            "source_name": title,
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
            "additional_details": {"signature": results.signature},
        },
        "eval_library": {"name": "factaudit", "version": str(results.about.get("factaudit", "unknown"))},
        "model_info": {
            "name": about["name"],
            "id": about["name"],
            "additional_details": {"signature": str(about.get("signature") or "unknown")},
        },
        "evaluation_results": found,
    }


def _results(row: Row, results: Results) -> Iterator[Row]:
    for key, text in _METRICS.items():
        if row.get(key) is None:
            continue
        details: Row = {"score": row[key], "uncertainty": {"num_samples": row["n"]}}
        if row.get(f"{key}_low") is not None:
            level = results.about.get("confidence", 0.95)
            ends = {"lower": row[f"{key}_low"], "upper": row[f"{key}_high"], "confidence_level": level}
            details["uncertainty"]["confidence_interval"] = ends
        if row.get("n_unscored"):
            details["details"] = {"n_unscored": str(row["n_unscored"])}
            details["details"] |= {end: str(row[f"{key}_{end}"]) for end in ("min", "max")}
        yield {
            "evaluation_name": f"{row['dataset']} {key}",
            "source_data": {"dataset_name": row["dataset"], "source_type": "other"},
            "metric_config": {
                "evaluation_description": text,
                "lower_is_better": False,
                "score_type": "continuous",
                "min_score": 0,
                "max_score": 1,
            },
            "score_details": details,
        }
