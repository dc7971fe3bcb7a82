"""A plausible ``results.json`` with rows of every audit, made from a seed: what the report's tests
render."""

from __future__ import annotations

import html
import itertools
import random
import re
from pathlib import Path
from typing import Any

from factaudit.audit import list_computable_audits

TASKS = ("summarization", "long-form QA", "response verification", "data-to-text")
DATASETS = (
    "AggreFact-CNN",
    "AggreFact-XSum",
    "TofuEval-MediaSum",
    "TofuEval-MeetingBank",
    "WiCE",
    "Reveal",
    "ClaimVerify",
    "FactCheck-GPT",
    "ExpertQA",
    "LFQA",
    "RAGTruth-Summary",
    "RAGTruth-QA",
    "RAGTruth-Data2txt",
    "a-very-long-name-of-a-dataset-with-many-parts",
)
EVALUATORS = (
    "rouge2",
    "MiniCheck-Flan-T5-Large",
    "llm:model=gpt-4o-mini-2024-07-18,prompt=minicheck,chunk=500",
    "Bespoke-MiniCheck-7B",
    "gpt-4-turbo",
    "always-yes",
    "tfidf",
    "unigram",
)
SYSTEMS = tuple(f"Model-{letter}" for letter in "ABCDEFGHIJ")


def _declared_rows(audit, rng, known):
    """Rows that have the columns that an audit declares, with figures that may stand in them."""
    ordered = {"bin": (1, 2, 3, 4, 5), "at_least": (0.1, 0.2, 0.3)}
    values = {
        key: (
            ordered.get(key)
            or known.get(key)
            or known.get(key[:-2])
            or tuple(column.values)
            or ("one", "two")
        )
        for key, column in audit.columns.items()
        if column.key
    }

    def at(key: str, row: dict[str, Any]) -> int:
        return values[key].index(row[key])

    for keys in itertools.product(*values.values()):
        row = dict(zip(values, keys, strict=True)) | {"reason": None}
        # Of two that are compared the first one has been listed before the second.
        if any(at(key, row) >= at(f"{key[:-1]}b", row) for key in values if key.endswith("_a")):
            continue
        for key, column in audit.columns.items():
            if key in row:
                continue
            figure = rng.uniform(-0.3, 0.3) if column.unit == "points" else rng.uniform(0.2, 0.8)
            row[key] = {"count": rng.randint(3, 90), "text": next(iter(column.values), "x")}.get(
                column.unit, figure
            )
            for ends in [("low", "high")] * bool(column.interval) + [("min", "max")] * bool(
                column.bounds
            ):
                row |= {f"{key}_{ends[0]}": figure - 0.1, f"{key}_{ends[1]}": figure + 0.1}
        if "n_unscored" in row:
            row["n_unscored"] = 2 if row.get("evaluator") == known["evaluator"][-1] else 0
        yield row


def make_results(
    n_datasets: int = 4,
    n_evaluators: int = 4,
    n_systems: int = 6,
    *,
    datasets: tuple[str, ...] = DATASETS,
    evaluators: tuple[str, ...] = EVALUATORS,
    systems: tuple[str, ...] = SYSTEMS,
) -> dict[str, Any]:
    """The content of a ``results.json``; every audit has rows, and the first of the rates has
    undefined figures."""
    rng = random.Random(0)
    datasets, evaluators, systems = (
        datasets[:n_datasets],
        evaluators[:n_evaluators],
        systems[:n_systems],
    )
    known = {
        "dataset": datasets,
        "evaluator": evaluators,
        "system": systems,
        "task": TASKS,
        "level": ("claim",),
    }
    audits = {
        name: list(_declared_rows(audit, rng, known))
        for name, audit in list_computable_audits().items()
    }
    audits["rates"] += _declared_rows(
        list_computable_audits()["rates"], rng, known | {"dataset": ("__macro__",)}
    )
    first = audits["rates"][0]
    first |= {key: None for key in first if key.split("_")[0] in ("tnr", "fpr", "bacc", "gap")}
    first["reason"] = "tnr, fpr, bacc, gap: no unattributable claim"
    findings = [
        {
            "id": check,
            "severity": severity,
            "evaluator": evaluator,
            "dataset": dataset,
            "statement": statement,
        }
        | {"evidence": evidence}
        for check, severity, evaluator, dataset, statement, evidence in (
            (
                "gap",
                "fail",
                evaluators[0],
                datasets[0],
                "It misses 52 % of the errors.",
                {"tpr": 0.91},
            ),
            (
                "iou",
                "warn",
                evaluators[-1],
                datasets[-1],
                "Two evaluators agree on few errors.",
                {"iou": 0.41},
            ),
            (
                "unscored",
                "ok",
                evaluators[0],
                None,
                "No conclusion depends on the unscored claims.",
                {"n_unscored": 3},
            ),
        )
    ]
    counts = {
        "n_claims": 900,
        "n_labelled": 880,
        "n_attributable": 600,
        "n_systems": n_systems,
        "n_responses": 120,
    }
    statuses = {"n_ok": 880, "n_unparsed": 12, "n_refused": 5, "n_error": 3, "n_skipped": 0}
    about = {
        "title": "Evaluators compared on a made-up benchmark",
        "factaudit": "0.1.0",
        "seed": 0,
        "replicates": 2000,
    }
    about |= {
        "claims": [
            {"dataset": name, "task": TASKS[at % 4], **counts} for at, name in enumerate(datasets)
        ],
        "evaluators": [
            {"name": name, "signature": f"{name}|threshold:0.5", "n_verdicts": 900, **statuses}
            for name in evaluators
        ],
        "inputs": [{"path": "data/claims.parquet", "checksum": "sha256:" + "ab" * 32}],
    }
    calls = {
        "evaluator": evaluators[-1],
        "calls": 1200,
        "cached_calls": 300,
        "prompt_tokens": 912345,
    }
    return {
        "schema": "factaudit.results/2",
        "signature": (
            "factaudit|audits:0123456789abcdef|confidence:0.95|replicates:2000|seed:0|version:0.1.0"
        ),
        "about": about,
        "audits": audits,
        "findings": findings,
        "calls": [calls | {"completion_tokens": 4567, "cost": 0.1432}],
        "sections": [],
    }


def read_report_text(folder: Path) -> str:
    """What the report of a run folder says: without styles, scripts, drawings and tags, and with
    single spaces."""
    page = (folder / "report.html").read_text(encoding="utf-8")
    page = re.sub(r"<(style|script|svg)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())
