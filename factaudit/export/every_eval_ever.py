"""Every Eval Ever (evaleval/every_eval_ever, ``eval.schema.json`` 0.2.1): a file per evaluator, a result per figure."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from factaudit.export.checked_rates import read_checked_rates_for_export
from factaudit.files import make_safe_file_name, write_json
from factaudit.results import Results, Row
from factaudit.signature import hash_texts

SCHEMA_VERSION = "0.2.1"
_METRIC_DESCRIPTIONS = {
    "bacc": "balanced accuracy at telling attributable from unattributable claims",
    "tpr": "share of the attributable claims that are found attributable",
    "tnr": "share of the unattributable claims that are found unattributable",
}


def export_every_eval_ever(run_dir: Path, out: Path) -> list[Path]:
    """Write ``EVALUATOR.json`` from the audit `rates`: BAcc, TPR and TNR on each data set, with intervals.

    An undefined figure has no result. The evaluator is the *model* here: what is measured is how well it judges.
    Raises `InputError` for a run without rates.
    """
    results = read_checked_rates_for_export(run_dir)
    now = str(int(time.time()))
    paths = []
    for about in results.about.get("evaluators", []):
        rows = [row for row in results.rows("rates", evaluator=about["name"]) if not row["dataset"].startswith("__")]
        record = _make_every_eval_record(
            about, [one for row in rows for one in _list_every_eval_results(row, results)], results, now
        )
        path = out / f"{hash_texts(about['name'])[:8]}-{make_safe_file_name(about['name'])}.json"
        write_json(path, record)
        paths.append(path)
    return paths


def _make_every_eval_record(evaluator_row: Row, evaluation_results: list[Row], results: Results, timestamp: str) -> Row:
    title = str(results.about.get("title") or "factaudit")
    return {
        "schema_version": SCHEMA_VERSION,
        "evaluation_id": f"{title}/{evaluator_row['name']}/{timestamp}",
        "retrieved_timestamp": timestamp,
        "source_metadata": {
            "source_name": title,
            "source_type": "evaluation_run",
            "source_organization_name": "unknown",
            "evaluator_relationship": "other",
            "additional_details": {"signature": results.signature},
        },
        "eval_library": {"name": "factaudit", "version": str(results.about.get("factaudit", "unknown"))},
        "model_info": {
            "name": evaluator_row["name"],
            "id": evaluator_row["name"],
            "additional_details": {"signature": str(evaluator_row.get("signature") or "unknown")},
        },
        "evaluation_results": evaluation_results,
    }


def _list_every_eval_results(row: Row, results: Results) -> Iterator[Row]:
    for key, text in _METRIC_DESCRIPTIONS.items():
        if row.get(key) is None:
            continue
        # The claims behind a TPR are those of its class.
        samples = row.get({"tpr": "n_attributable", "tnr": "n_unattributable"}.get(key, "n"))
        details: Row = {"score": row[key], "uncertainty": {} if samples is None else {"num_samples": samples}}
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
