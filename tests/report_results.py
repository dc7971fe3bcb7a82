"""A plausible ``results.json`` with rows of every audit, made from a seed: what the report's tests render."""

from __future__ import annotations

import html
import itertools
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from factaudit.audit import list_computable_audits
from factaudit.audit.core.audit_declaration import Audit

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


def _declared_rows(
    audit: Audit, rng: random.Random, datasets: tuple[str, ...], evaluators: tuple[str, ...], systems: tuple[str, ...]
) -> Iterator[dict[str, Any]]:
    """Rows that have the columns that an audit declares, with figures that may stand in them."""
    known = {"dataset": datasets, "evaluator": evaluators, "system": systems, "task": TASKS, "level": ("claim",)}
    ordered = {"bin": (1, 2, 3, 4, 5), "at_least": (0.1, 0.2, 0.3)}
    values = {
        key: ordered.get(key) or known.get(key) or tuple(column.values) or ("one", "two")
        for key, column in audit.columns.items()
        if column.key
    }
    for keys in itertools.product(*values.values()):
        row: dict[str, Any] = dict(zip(values, keys, strict=True)) | {"reason": None}
        for key, column in audit.columns.items():
            if key in row:
                continue
            figure = rng.uniform(-0.3, 0.3) if column.unit == "points" else rng.uniform(0.2, 0.8)
            row[key] = {"count": rng.randint(3, 90), "text": next(iter(column.values), "x")}.get(column.unit, figure)
            for ends in [("low", "high")] * bool(column.interval) + [("min", "max")] * bool(column.bounds):
                row |= {f"{key}_{ends[0]}": figure - 0.1, f"{key}_{ends[1]}": figure + 0.1}
        yield row


def make_results(
    n_datasets: int = 4,
    n_evaluators: int = 4,
    n_systems: int = 6,
    *,
    datasets: tuple[str, ...] = DATASETS,
    evaluators: tuple[str, ...] = EVALUATORS,
    systems: tuple[str, ...] = SYSTEMS,
    intervals: bool = True,
    unscored: bool = True,
    seed: int = 0,
) -> dict[str, Any]:
    """The content of a ``results.json``; every audit of DESIGN.md has rows, some with undefined figures."""
    rng = random.Random(seed)
    datasets, evaluators, systems = datasets[:n_datasets], evaluators[:n_evaluators], systems[:n_systems]
    tpr = {e: rng.uniform(0.55, 0.97) for e in evaluators}
    tnr = {e: rng.uniform(0.35, 0.9) for e in evaluators}
    hard = {d: rng.uniform(-0.15, 0.05) for d in datasets}

    def near(value: float, by: float = 0.05) -> float:
        return min(1.0, max(0.0, value + rng.uniform(-by, by)))

    def spread(row: dict[str, Any], *keys: str, by: float = 0.04) -> dict[str, Any]:
        for key in keys:
            value, floor = row[key], -1.0 if key == "bias" else 0.0
            if intervals:
                row[f"{key}_low"] = None if value is None else max(floor, value - by * rng.uniform(0.6, 1.2))
                row[f"{key}_high"] = None if value is None else min(1.0, value + by * rng.uniform(0.6, 1.2))
            slack = 0.05 if row.get("n_unscored") else 0.0
            row[f"{key}_min"] = None if value is None else max(floor, value - slack * 0.4)
            row[f"{key}_max"] = None if value is None else min(1.0, value + slack)
        row.setdefault("reason", None)
        return row

    def rates(dataset: str, evaluator: str) -> dict[str, Any]:
        a, b = (
            near(tpr[evaluator.removesuffix("+chunked")] + hard.get(dataset, 0)),
            near(tnr[evaluator.removesuffix("+chunked")] + hard.get(dataset, 0)),
        )
        row: dict[str, Any] = {"dataset": dataset, "evaluator": evaluator, "n": rng.randint(200, 1500)}
        row["n_unscored"] = rng.randint(1, 40) if unscored and evaluator == evaluators[-1] else 0
        row |= {"tpr": a, "tnr": b, "fpr": 1 - b, "fnr": 1 - a, "bacc": (a + b) / 2, "ppr": near(0.6), "gap": a - b}
        return spread(row, "tpr", "tnr", "bacc", "ppr")

    audits: dict[str, list[dict[str, Any]]] = {}
    audits["rates"] = [rates(d, e) for d in (*datasets, "__macro__") for e in evaluators]
    first = audits["rates"][0]
    for key in ("tnr", "fpr", "bacc", "gap"):
        for suffix in ("", "_low", "_high", "_min", "_max"):
            if key + suffix in first:
                first[key + suffix] = None
    first["reason"] = "tnr, fpr, bacc, gap: no unattributable claim"
    audits["consistency"] = [
        spread(
            {
                "dataset": d,
                "evaluator_a": a,
                "evaluator_b": b,
                "class": c,
                "n": 400,
                "iou": iou,
                "kappa": near(0.5, 0.3),
            },
            "iou",
        )
        for d in datasets
        for a, b in itertools.combinations(evaluators, 2)
        for c in ("attributable", "unattributable")
        for iou in [near(0.55, 0.4)]
    ]
    truth = {(d, s): near(0.2, 0.12) for d in datasets for s in systems}
    audits["quantification"], audits["headroom"] = [], []
    audits["ranking"], audits["ranking_pairs"] = [], []
    for d, level in itertools.product(datasets, ("claim", "response")):
        shift = 0.2 if level == "response" else 0.0
        for e in evaluators:
            mine = []
            for s in (*systems, "__all__"):
                labelled = near(truth.get((d, s), 0.2) + shift, 0)
                predicted = near(labelled + (tnr[e] - 1) * 0.3 + (1 - tpr[e]) * 0.6, 0.04)
                row = {"dataset": d, "level": level, "system": s, "evaluator": e, "n": rng.randint(30, 300)}
                row |= {"n_unscored": 2 if unscored and e == evaluators[-1] else 0}
                row |= {
                    "labelled_error_rate": labelled,
                    "predicted_error_rate": predicted,
                    "bias": predicted - labelled,
                }
                mine.append(spread(row, "labelled_error_rate", "predicted_error_rate", "bias"))
            audits["quantification"] += mine
            for group, members in (("__all__", mine), ("small models", mine[: max(1, n_systems // 2)])):
                least = min(r["labelled_error_rate"] for r in members)
                lowest = min(r["predicted_error_rate"] for r in members)
                row = {"dataset": d, "level": level, "group": group, "evaluator": e, "labelled": least}
                audits["headroom"].append(
                    spread(row | {"predicted": lowest, "bias": lowest - least}, "predicted", "bias")
                )
            pairs = []
            for a, b in itertools.combinations(systems, 2):
                orders = rng.choices("<=>", (2, 6, 2), k=2)
                wrong = orders[0] != orders[1]
                row = {"dataset": d, "level": level, "system_a": a, "system_b": b, "evaluator": e}
                row |= {"labelled_order": orders[0], "predicted_order": orders[1], "p_labelled": rng.random()}
                row |= {"p_predicted": rng.random() ** 6, "error": wrong, "major_error": wrong and "=" not in orders}
                pairs.append(row | {"reason": None})
            audits["ranking_pairs"] += pairs
            few = n_systems < 2
            row = {"dataset": d, "level": level, "evaluator": e, "n_systems": n_systems, "n_pairs": len(pairs)}
            row |= {"error_rate": None if few else sum(p["error"] for p in pairs) / len(pairs)}
            row |= {"major_error_rate": None if few else sum(p["major_error"] for p in pairs) / len(pairs)}
            row |= {
                "kendall_tau": None if few else rng.uniform(-0.5, 1),
                "pearson_r": None if few else rng.uniform(-0.4, 1),
            }
            row["reason"] = "error_rate, kendall_tau, pearson_r: fewer than two systems" if few else None
            audits["ranking"].append(row)
    audits["surface_bias"] = [
        spread(
            {
                "task": t,
                "evaluator": e,
                "bin": b,
                "r2_low": b / 5 - 0.2,
                "r2_high": b / 5,
                "n": 200,
                "n_pos": 140,
                "n_neg": 60,
                "tpr": near(0.5 + 0.09 * b, 0.04),
                "tnr": near(0.9 - 0.08 * b, 0.04),
            },
            "tpr",
            "tnr",
        )
        for t in TASKS
        for e in evaluators
        for b in range(1, 6)
    ]
    pairs_of = [(e, f"{e}+chunked") for e in evaluators[1:4]]
    audits["chunking"] = [
        spread(
            {
                "dataset": d,
                "evaluator": e,
                "chunked_evaluator": c,
                "r2_diff": r,
                "n": 120,
                "flip_1_to_0": near(0.1 if r == "positive" else 0.04, 0.03),
                "flip_0_to_1": near(0.15, 0.08),
            },
            "flip_1_to_0",
            "flip_0_to_1",
        )
        for d in datasets
        for e, c in pairs_of
        for r in ("zero", "positive")
    ]
    audits["chunking_rates"] = [rates(d, each) for d in datasets for pair in pairs_of for each in pair]
    audits["adjustment"] = []
    for d, level, e in itertools.product(datasets, ("claim", "response"), evaluators):
        for calibration in ("__cv__", *systems):
            for m, centre in (
                ("none", 0.1),
                ("adjusted_counts", 0.07),
                ("zero_bias_threshold", 0.03),
                ("bacc_threshold", 0.12),
            ):
                row = {"dataset": d, "level": level, "evaluator": e, "method": m, "calibration_system": calibration}
                row |= {
                    "calibration_error_rate": None if calibration == "__cv__" else 0.2,
                    "threshold": 0.41 if "threshold" in m else None,
                }
                mean = near(centre, 0.025)
                row |= {
                    "mean_abs_bias": mean,
                    "worst_abs_bias": mean * 1.8,
                    "n_systems": n_systems,
                    "unidentifiable": 0,
                    "reason": None,
                }
                audits["adjustment"].append(row)
    for audit in list_computable_audits().values():
        audits.setdefault(audit.name, list(_declared_rows(audit, rng, datasets, evaluators, systems)))
    best = max(evaluators, key=lambda e: tpr[e] + tnr[e])
    findings = [
        {
            "id": "gap",
            "severity": "fail",
            "evaluator": evaluators[0],
            "dataset": datasets[0],
            "statement": f"{evaluators[0]} finds 91.0 % of the attributable but 48.2 % of the unattributable claims of "
            f"{datasets[0]}: do not use it to find errors there.",
            "evidence": {"tpr": 0.91, "tnr": 0.482},
        },
        {
            "id": "iou",
            "severity": "warn",
            "evaluator": best,
            "dataset": datasets[-1],
            "statement": "Two evaluators of about the same BAcc agree on fewer than half of the errors that they "
            "report: "
            "look at claims, not only at rates.",
            "evidence": {"iou": 0.41},
        },
        {
            "id": "unscored",
            "severity": "ok",
            "evaluator": best,
            "dataset": None,
            "statement": "No conclusion depends on the unscored claims.",
            "evidence": {"n_unscored": 3},
        },
    ]
    return {
        "schema": "factaudit.results/2",
        "signature": "factaudit|audits:0123456789abcdef|confidence:0.95|replicates:2000|seed:0|version:0.1.0",
        "about": {
            "title": "Evaluators compared on a made-up benchmark",
            "factaudit": "0.1.0",
            "seed": 0,
            "replicates": 2000,
            "claims": [
                {
                    "dataset": d,
                    "task": TASKS[i % 4],
                    "n_claims": 900,
                    "n_labelled": 880,
                    "n_attributable": 600 - 20 * i,
                    "n_systems": n_systems,
                    "n_responses": 120,
                }
                for i, d in enumerate(datasets)
            ],
            "evaluators": [
                {
                    "name": e,
                    "signature": f"{e}|threshold:0.5",
                    "n_verdicts": 900,
                    "n_ok": 880,
                    "n_unparsed": 12,
                    "n_refused": 5,
                    "n_error": 3,
                    "n_skipped": 0,
                }
                for e in evaluators
            ],
            "inputs": [{"path": "data/claims.parquet", "checksum": "sha256:" + "ab" * 32}],
        },
        "audits": audits,
        "findings": findings,
        "calls": [
            {
                "evaluator": evaluators[-1],
                "calls": 1200,
                "cached_calls": 300,
                "prompt_tokens": 912345,
                "completion_tokens": 4567,
                "cost": 0.1432,
            }
        ],
        "sections": [],
    }


def read_report_text(folder: Path) -> str:
    """What the report of a run folder says: without styles, scripts, drawings and tags, and with single spaces."""
    page = (folder / "report.html").read_text(encoding="utf-8")
    page = re.sub(r"<(style|script|svg)\b.*?</\1>", " ", page, flags=re.DOTALL)
    return " ".join(html.unescape(re.sub(r"<[^>]+>", " ", page)).split())
