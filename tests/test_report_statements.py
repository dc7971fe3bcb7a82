"""What whole reports say: numbers read again from rows, conclusions recomputed from claims and verdicts by pandas."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from test_statements import WORLDS, audit_world, check_statements, make_world

from factaudit.audit.core.statements import Statement, StatementValue
from factaudit.results import compare
from factaudit.tables import validate_claims, validate_verdicts

Results = dict[str, Any]


@pytest.mark.slow
def test_every_number_of_a_wide_report_is_a_value_of_its_rows(tmp_path: Path) -> None:
    """50 systems and 20 evaluators: lists are cut, and say how many they leave out."""
    random = np.random.default_rng(5)
    n, systems, evaluators = 1500, 50, 20
    label = (random.random(n) < 0.5 + 0.008 * (np.arange(n) % systems)).astype(int)
    claims = pd.DataFrame({"claim_id": [f"c{i}" for i in range(n)], "dataset": "d", "claim": "a claim", "label": label})
    claims["system"] = [f"s{i % systems}" for i in range(n)]
    verdicts = pd.concat(
        claims[["claim_id"]].assign(
            evaluator=f"e{at}", prediction=np.where(random.random(n) < 0.55 + 0.02 * at, label, 1 - label), status="ok"
        )
        for at in range(evaluators)
    )
    audits = ["rates", "differences", "quantification", "headroom", "ranking", "consistency"]
    results = compare(validate_claims(claims), validate_verdicts(verdicts), audits=audits, replicates=20).to_dict()
    assert len(check_statements(results)) > 60


def test_a_report_of_counts_alone_says_nothing_that_its_rows_have_not() -> None:
    claims, verdicts = make_world("whole")
    for lacks in (["doc_id", "response_id"], ["system"], ["system", "doc_id", "response_id"]):
        check_statements(audit_world((claims.drop(columns=lacks), verdicts), with_estimates=False).to_dict())


# ------------------------------------------------------------------------------------------- conclusions by pandas


RATES = ("tpr", "tnr", "bacc")


def read_values(statement: Statement) -> dict[str, StatementValue]:
    return {value.field: value for value in statement.cited}


class World:
    """Claims beside verdicts, and figures of them that share no code with the package."""

    def __init__(self, claims: pd.DataFrame, verdicts: pd.DataFrame, audits: dict[str, Any]) -> None:
        self.audits = audits  # what only the package's statistics have: intervals of estimates, tuned thresholds
        self.claims = claims.assign(label=claims["label"].astype(float))
        self.joined = claims.merge(verdicts, on="claim_id")
        self.joined["label"] = self.joined["label"].astype(float)
        self.joined["said"] = self.joined["prediction"].astype(float)

    def select(self, row: dict[str, Any]) -> pd.DataFrame:
        """The judged claims that a row is about."""
        found = self.joined
        for key in ("dataset", "system", "evaluator"):
            if row.get(key) not in (None, "__all__", "__macro__"):
                found = found[found[key] == row[key]]
        return found

    def rate(self, row: dict[str, Any], label: int) -> float:
        """TPR of label 1, TNR of label 0: over all claims of a row, or the mean over data sets."""
        mine = self.select(row).dropna(subset=["label", "said"])
        hits = mine[mine["label"] == label].assign(hit=lambda table: table["said"] == label)
        return float(hits.groupby("dataset")["hit"].mean().mean())

    def error_rates(self, row: dict[str, Any]) -> tuple[float, float]:
        """The labelled and the predicted error rate."""
        mine = self.select(row)
        return 1 - float(mine["label"].mean()), 1 - float(mine["said"].mean())

    def system_rates(self, row: dict[str, Any], level: str) -> pd.DataFrame:
        mine = self.select({"dataset": row["dataset"], "evaluator": row["evaluator"]})
        if level == "response":
            mine = mine.groupby(["system", "response_id"], as_index=False)[["label", "said"]].min()
        return 1 - mine.groupby("system")[["label", "said"]].mean()

    def bound_rate(self, row: dict[str, Any], label: int, filling: int) -> float:
        """TPR or TNR where whatever has no prediction would have been predicted as ``filling``."""
        mine = self.select(row)
        hits = mine[mine["label"] == label].assign(hit=lambda table: table["said"].fillna(filling) == label)
        return float(hits.groupby("dataset")["hit"].mean().mean())

    def bound_figure(self, row: dict[str, Any], key: str) -> float | None:
        """``tpr_min``, ``bacc_max``; ``least_bias`` and ``greatest_bias`` in absolute value."""
        figure, _, end = key.rpartition("_")
        if end in ("min", "max") and figure in ("tpr", "tnr", "bacc"):
            rates = [self.bound_rate(row, label, label if end == "max" else 1 - label) for label in (1, 0)]
            return {"tpr": rates[0], "tnr": rates[1], "bacc": sum(rates) / 2}[figure]
        mine = self.select(row)
        ends = [float(mine["label"].mean() - mine["said"].fillna(filling).mean()) for filling in (0, 1)]
        greatest = max(map(abs, ends))
        return {"greatest_bias": greatest, "least_bias": 0.0 if min(ends) < 0 < max(ends) else min(map(abs, ends))}[key]

    def estimate_figure(self, row: dict[str, Any], key: str) -> float | None:
        """A figure of the summary of estimates, or how far a rate is from that of all labels."""
        claims = self.claims[self.claims["dataset"] == row["dataset"]]
        few = claims[claims["claim_id"].str[1:].astype(int) * 7 % 10 < 4]
        if key == "distance":
            of = [table[table["system"] == row["system"]]["label"] for table in (claims, few)]
            true, drawn = (1 - float(labels.mean()) for labels in of)
            main = self.audits["estimate_summary"][0]["main"]
            raw = 1 - float(self.select(row | {"evaluator": main})["said"].mean())
            return {"raw": raw, "labels": drawn}.get(row["method"], row["rate"]) - true
        known = {"n": len(claims), "n_labels": len(few), "n_systems": claims["system"].nunique()}
        widths = []
        for method in ("hierarchical", "labels"):
            mine = [one for one in self.audits["estimates"] if one["method"] == method]
            mine = [one for one in mine if one["dataset"] == row["dataset"]]
            widths.append(float(np.mean([one["rate_high"] - one["rate_low"] for one in mine])))
        known |= {"width": widths[0], "width_labels": widths[1]}
        return (known | {"n_alone": round(len(few) * (widths[1] / widths[0]) ** 2)}).get(key)

    def corrected_bias(self, row: dict[str, Any]) -> float | None:
        """The bias that a tuned threshold leaves of a system."""
        if row["calibration_system"].startswith("__"):
            return None
        same = ("dataset", "level", "evaluator", "method", "calibration_system")
        found = [one for one in self.audits["adjustment"] if all(one[key] == row[key] for key in same)]
        threshold = 0.5 if row["method"] == "none" else found[0]["threshold"]
        if threshold is None:
            return None
        mine = self.select(row).dropna(subset=["said"])
        flagged = mine["said"] == 0 if row["method"] == "none" else mine["score"] <= threshold
        return float(flagged.mean() - (1 - mine["label"].mean()))

    def figure(self, row: dict[str, Any], key: str) -> float | None:
        """A figure of a row, computed again; None for one that only the package's own statistics have."""
        if row.get("level") == "response" or row.get("cited_by"):
            return None
        if key == "distance" or "main" in row:
            return self.estimate_figure(row, key)
        if key in ("least_bias", "greatest_bias", *(f"{one}_{end}" for one in RATES for end in ("min", "max"))):
            return self.bound_figure(row, key)
        if "calibration_system" in row and key == "bias":
            return self.corrected_bias(row)
        if key == "n" and row.get("tpr", 0) is None:
            return float(self.select(row)["said"].notna().sum())
        rates = {"tpr": lambda: self.rate(row, 1), "tnr": lambda: self.rate(row, 0)}
        rates["bacc"] = lambda: (self.rate(row, 1) + self.rate(row, 0)) / 2
        rates["gap"] = lambda: self.rate(row, 1) - self.rate(row, 0)
        if "evaluator" in row and key in rates and "rate" not in row:
            return rates[key]()
        if "labelled_error_rate" in row and "predicted_error_rate" in row and "method" not in row:
            labelled, predicted = self.error_rates(row)
            known = {"labelled_error_rate": labelled, "predicted_error_rate": predicted, "bias": predicted - labelled}
            return known.get(key)
        if "labelled_system" in row and key in ("labelled", "predicted"):
            if row["group"] != "__all__":
                return None
            return float(self.system_rates(row, row["level"])["label" if key == "labelled" else "said"].min())
        if key == "iou":
            wide = self.select({"dataset": row["dataset"]}).pivot(index="claim_id", columns="evaluator", values="said")
            pair = wide[[row["evaluator_a"], row["evaluator_b"]]].dropna() == float(row["class"] == "attributable")
            return float(pair.all(axis=1).sum() / pair.any(axis=1).sum())
        if key == "n_pairs" and "dataset" in row and "evaluator" in row:
            systems = len(self.system_rates(row, "claim").dropna())
            return systems * (systems - 1) / 2
        if key in ("n", "n_lost", "n_lacking", "predicted_errors", "labelled_errors", "calibration_errors"):
            return COUNTS[key](self, row)
        return None


def count_errors_of_scored(world: World, row: dict[str, Any], column: str) -> float:
    mine = world.select({"evaluator": row["evaluator"]}).dropna(subset=["label", "said"])
    return float(1 - mine[column].mean())


COUNTS: dict[str, Callable[[World, dict[str, Any]], float | None]] = {
    "n": lambda world, row: None,
    "n_lost": lambda world, row: float(world.select(row).dropna(subset=["label"])["said"].isna().sum()),
    "n_lacking": lambda world, row: float(
        world.select({"evaluator": row["evaluator"]}).dropna(subset=["label"])["said"].isna().sum()
    ),
    "predicted_errors": lambda world, row: count_errors_of_scored(world, row, "said"),
    "labelled_errors": lambda world, row: count_errors_of_scored(world, row, "label"),
    "calibration_errors": lambda world, row: float(
        world.select({key: row[key] for key in ("dataset", "evaluator")} | {"system": row["calibration_system"]})
        .query("label == 0")["claim_id"]
        .nunique()
    ),
}


# Of a template without a figure that pandas can compute: is what it says so? Evaluators in it are names.


def list_bacc(world: World) -> dict[str, float]:
    """The balanced accuracy of each evaluator, by pandas."""
    names = list(dict.fromkeys(world.joined["evaluator"]))
    return {name: (world.rate({"evaluator": name}, 1) + world.rate({"evaluator": name}, 0)) / 2 for name in names}


def list_named(world: World, text: str) -> list[str]:
    return [name for name in list_bacc(world) if re.search(rf"\b{name}\b", text)]


def is_best_named_first(world: World, statement: Statement) -> bool:
    """The evaluator that is named first, or that stands behind ``It``, has the highest balanced accuracy."""
    bacc = list_bacc(world)
    best = max(bacc, key=lambda name: bacc[name])
    named = list_named(world, statement)
    others = named if statement.startswith("It ") else named[1:]
    first = best if statement.startswith("It ") else named[0]
    return bacc[first] == pytest.approx(bacc[best]) and all(bacc[name] < bacc[best] for name in others)


def count_labelled_and_scored(world: World) -> int:
    return len(world.joined.dropna(subset=["label", "said"]))


def is_every_labelled_claim_scored(world: World, statement: Statement) -> bool:
    (name,) = list_named(world, statement)
    return not world.select({"evaluator": name}).dropna(subset=["label"])["said"].isna().any()


def do_intervals_hold(world: World, statement: Statement) -> bool:
    """How many of the intervals hold the rate of all labels, and how many there are."""
    values = read_values(statement)
    rows = values["with_interval"].rows
    true = [
        1 - world.claims.loc[world.claims["dataset"] == row["dataset"]].groupby("system")["label"].mean()
        for row in rows
    ]
    held = [row["rate_low"] <= rates[row["system"]] <= row["rate_high"] for row, rates in zip(rows, true, strict=True)]
    return values["holding"].text == f"{sum(held)}"


def are_orders_those_of_pairs(world: World, statement: Statement) -> bool:
    """The sums of pairs are those of the table of pairs, one by one, whose rates pandas computes."""
    values = read_values(statement)
    found = dict.fromkeys(("n_ordered", "n_ordered_alike"), 0)
    for row in values["rows.n_ordered"].rows:
        same = ("dataset", "level", "evaluator")
        pairs = [one for one in world.audits["ranking_pairs"] if all(one[key] == row[key] for key in same)]
        rates = world.system_rates(row, "claim")
        for pair in pairs:
            label, said = (rates.loc[pair["system_b"]] - rates.loc[pair["system_a"]])[["label", "said"]]
            for key, difference in (("labelled_order", label), ("predicted_order", said)):
                assert pair[key] == "=" or (pair[key] == "<") == (difference > 0), (pair, difference)
            found["n_ordered"] += pair["labelled_order"] != "="
            found["n_ordered_alike"] += pair["labelled_order"] == pair["predicted_order"] != "="
    told = {key: int(values[f"rows.{key}"].text.split()[0]) for key in found if f"rows.{key}" in values}
    return told == {key: found[key] for key in told}


def is_mean_minimum_below_each_rate(world: World, statement: Statement) -> bool:
    """The mean of the lowest rate over draws is at most the lowest of the mean rates."""
    (row,) = read_values(statement)["row.headroom"].rows
    rates = [one for one in world.audits["estimates"] if one["method"] == "hierarchical"]
    rates = [one["rate"] for one in rates if (one["dataset"], one["level"]) == (row["dataset"], row["level"])]
    return row["headroom_low"] <= row["headroom"] <= min(rates) + 1e-9


def list_biases_with_errors(world: World, evaluator: str) -> list[tuple[float, float]]:
    """Of every system: the bias, and its standard error as if all claims were independent."""
    found = []
    for _, mine in (
        world.select({"evaluator": evaluator}).dropna(subset=["label", "said"]).groupby(["dataset", "system"])
    ):
        wrong = mine["label"] - mine["said"]
        found.append((float(wrong.mean()), float(wrong.std() / len(wrong) ** 0.5)))
    return found


def is_some_bias_not_within_limit(world: World, statement: Statement) -> bool:
    most = 0.05
    assert f"within {100 * most:g} points" in statement
    return any(
        abs(bias) + 1.96 * error > most
        for name in list_bacc(world)
        for bias, error in list_biases_with_errors(world, name)
    )


def are_single_biases_beyond_limit(world: World, statement: Statement) -> bool:
    (beyond,) = [value.rows for value in statement.cited if value.field == "beyond"]
    biases = [world.error_rates(row)[1] - world.error_rates(row)[0] for row in beyond]
    return all(abs(bias) > 0.05 for bias in biases) and len(beyond) > 0


def is_difference_between_systems_not_shown(world: World, statement: Statement) -> bool:
    """By a test that takes claims for independent, the one that rejects sooner; after Holm where some reject alone."""
    from scipy.stats import chi2_contingency

    values = read_values(statement)
    (row,) = values["worst.evaluator"].rows
    n_tests = len(values["mine"].rows) * len(list_bacc(world)) if "mine" in values else 1
    mine = world.select({key: row[key] for key in ("dataset", "evaluator")}).dropna(subset=["label", "said"])
    mine = mine[mine["label"] == (row["rate"] == "tpr")]
    table = pd.crosstab(mine["system"], mine["said"])
    if table.shape[1] < 2:
        return True
    if n_tests == 1:
        return float(chi2_contingency(table).pvalue) > 0.01
    # Counts may be small: X² (up to a factor) of verdicts shuffled over claims.
    inside = pd.get_dummies(mine["system"]).to_numpy(float)
    said = mine["said"].to_numpy(float) - mine["said"].mean()
    draw = np.random.default_rng(0)
    shuffled = np.stack([said, *(draw.permutation(said) for _ in range(5_000))], axis=1)
    spread = ((inside.T @ shuffled) ** 2 / inside.sum(0)[:, None]).sum(0)
    return n_tests * float((spread[1:] >= spread[0] - 1e-9).mean()) > 0.01


def do_systems_differ_together(world: World, statement: Statement) -> bool:
    """By tests that take claims for independent, the ones that reject sooner, and Fisher's sum of all."""
    from scipy.stats import chi2_contingency, combine_pvalues

    p_values = []
    for row in read_values(statement)["mine"].rows:
        mine = world.select({key: row[key] for key in ("dataset", "evaluator")}).dropna(subset=["label", "said"])
        table = pd.crosstab(*(mine[mine["label"] == (row["rate"] == "tpr")][key] for key in ("system", "said")))
        p_values.append(float(chi2_contingency(table).pvalue))
    return float(combine_pvalues(p_values).pvalue) < 0.05


def is_error_share_of_passing_claims_kept(world: World, statement: Statement) -> bool:
    (value,) = [one for one in statement.cited if one.key == "review_share"]
    (row,) = value.rows
    mine = world.select(row).dropna(subset=["label"])
    passing = mine[mine["score"] >= row["threshold"]]
    assert 1 - len(passing) / len(mine) == pytest.approx(row["review_share"], abs=0.01)
    return float((passing["label"] == 0).mean()) <= row["max_error"]


CONDITIONS: dict[str, Callable[[World, Statement], bool]] = {
    "By the model, the lowest error rate": is_mean_minimum_below_each_rate,
    "Whether all are within {most:limit} points is open: no rate": is_some_bias_not_within_limit,
    "Whether all are within {most:limit} points is open: by the intervals": are_single_biases_beyond_limit,
    "Whether {worst.evaluator:} judges all systems alike is not known": is_difference_between_systems_not_shown,
    "{worst.evaluator:} does not judge all systems alike, by": do_systems_differ_together,
    "With review of {row.review_share:percent}": is_error_share_of_passing_claims_kept,
    "of single verdicts, review the": is_error_share_of_passing_claims_kept,
    "{holding:count} of {with_interval:count} intervals hold": do_intervals_hold,
    "{best.evaluator:}: significantly more accurate": is_best_named_first,
    "{best.evaluator:} or {second.evaluator:}": is_best_named_first,
    "{best.evaluator:}: the differences from": is_best_named_first,
    "{row.evaluator:} has scored every labelled claim": is_every_labelled_claim_scored,
    "{best.evaluator:}, the only evaluator here": lambda world, text: (
        list(list_bacc(world)) == list_named(world, text) and min(list_bacc(world).values()) > 0.5
    ),
    "It orders none of the": are_orders_those_of_pairs,
    "orders {rows.n_ordered_alike:number} of": are_orders_those_of_pairs,
    "TPR and TNR need scored claims with labels": lambda world, text: count_labelled_and_scored(world) == 0,
    "a sample of the claims": lambda world, text: count_labelled_and_scored(world) == 0,
}


def recompute_text(value: StatementValue, figures: list[float]) -> str:
    share = 100 * float(np.mean(figures))
    return {
        "percent": f"{share:.1f} %",
        "interval": f"{share:.1f} %",
        "points": f"{100 * np.mean(np.abs(figures)):.1f}",
        "signed": "0.0" if abs(share) < 0.05 else f"{share:+.1f}".replace("-", "−"),
        "rest": f"{100 - share:.0f} of 100",
        "number": f"{sum(figures):,.0f}",
    }.get(value.reading, value.text)


@pytest.mark.slow
def test_conclusions_hold_for_claims_and_verdicts(capsys: pytest.CaptureFixture[str]) -> None:
    """Every template that these worlds make: each figure in it that claims and verdicts give is computed by pandas."""
    recomputed, templates, whole = 0, set(), set()
    for name in WORLDS:
        for seed in (3, 8):
            tables = make_world(name, seed=seed)
            results = audit_world(tables).to_dict()
            world = World(*tables, results["audits"])
            for statement in check_statements(results):
                whole.add(statement.template)
                for start, holds in CONDITIONS.items():
                    if statement.template.startswith(start):
                        assert holds(world, statement), (name, statement)
                        templates.add(statement.template)
                for value in statement.cited:
                    if not value.rows or not all(isinstance(row, dict) for row in value.rows):
                        continue
                    figures = [world.figure(row, value.key) for row in value.rows]
                    if any(figure is None or np.isnan(figure) for figure in figures):
                        continue
                    text = recompute_text(value, [figure for figure in figures if figure is not None])
                    assert value.text.startswith(text), (name, statement, value.field, value.text, text)
                    recomputed += 1
                    templates.add(statement.template)
    with capsys.disabled():
        print(f"\n{recomputed:,} figures; {len(templates)} of {len(whole)} templates hold by pandas")
        print("\n".join(sorted(whole - templates)))
    assert len(templates) >= 25
