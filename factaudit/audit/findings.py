"""What the figures mean for a user: the advice of "Verify with Caution" (VC §6) as checks on the rows of the audits.

A finding is ``{id, severity, evaluator, dataset, statement, evidence}``: ``fail`` where the interval leaves no doubt,
``warn`` where the figure says so but its interval (or the lack of one) leaves some, ``ok`` where a check had something
to look at and found nothing (once per evaluator; dataset None). ``evidence`` is a flat dict of the figures in it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from factaudit.audit.adjustment import CV
from factaudit.audit.core.rows import ALL, MACRO, Row, counted

#: |TPR - TNR| over this is a lopsided evaluator (VC §6: 20 points).
MAX_GAP = 0.20
#: Evaluators whose BAccs are no further apart are alike by BAcc.
LIKE_BACC = 0.02
#: Like evaluators should agree on at least this share of what either finds (IoU).
MIN_IOU = 0.50
#: Chunking may turn this much more of the claims from 1 to 0 where no one chunk has all their bigrams.
MAX_EXTRA_FLIPS = 0.05
#: A system with fewer labelled errors is too little to calibrate on.
MIN_ERRORS = 10
#: Less than this share of pairs with enough labels to show 10 points, and most orders are beyond the data.
MIN_DETECTABLE = 0.50
#: A bootstrap of fewer clusters gives intervals that are too narrow (Cameron, Gelbach & Miller 2008).
MIN_CLUSTERS = 10

Audits = Mapping[str, list[Row]]


def findings(audits: Audits, about: Mapping[str, Any] | None = None) -> list[Row]:
    """The findings of all checks whose audits are there, in the order of the checks.

    audits: rows by audit name, as in ``results.json``. about: its ``about``, for an evaluator without any row is still
    told about, of a floor (``always-yes``, say) nothing is said, and intervals need clusters.
    """
    told = (about or {}).get("evaluators", [])
    floors = {each["name"] for each in told if each.get("floor")}
    audits = {name: [row for row in rows if not floors & _evaluators(row)] for name, rows in audits.items()}
    found: list[Row] = []
    for check in _CHECKS:
        found += _once(list(check(audits)))
    found += _clusters(audits, (about or {}).get("claims", []))
    named = [each["name"] for each in told if each["name"] not in floors]
    judged = {row["evaluator"] for row in audits.get("rates", [])}
    if judged:
        found += [
            _finding("unscored", "fail", name, None, f"{name} has no verdict on any claim.", {})
            for name in named
            if name not in judged
        ]
    return found


# ---------------------------------------------------------------------------------------------------- the checks


def _gap(audits: Audits) -> Iterator[Row]:
    """TPR and TNR more than 20 points apart: the evaluator leans to one answer."""
    for evaluator, rows in _by_evaluator(_per_dataset(audits, "rates", "gap")):
        bad = [row for row in rows if abs(row["gap"]) > MAX_GAP]
        for row in bad:
            passes = row["gap"] > 0
            worse, better = ("unattributable", "attributable") if passes else ("attributable", "unattributable")
            rates = sorted((row["tpr"], row["tnr"]))
            yield _finding(
                "gap",
                _beyond(row, "gap", MAX_GAP if passes else -MAX_GAP),
                evaluator,
                row["dataset"],
                f"On {row['dataset']}, {evaluator} recognises {_percent(rates[1])} of {better} but only "
                f"{_percent(rates[0])} of {worse} claims: check a sample of what it "
                f"{'passes' if passes else 'rejects'} before you rely on it.",
                _figures(row, "tpr", "tnr", "gap", "gap_low", "gap_high", "n"),
            )
        if rows and not bad:
            widest = max(rows, key=lambda row: abs(row["gap"]))
            yield _finding(
                "gap",
                "ok",
                evaluator,
                None,
                f"{evaluator}'s TPR and TNR are at most {_points(MAX_GAP)} points apart everywhere "
                f"(widest: {_points(abs(widest['gap']))} on {widest['dataset']}).",
                _figures(widest, "tpr", "tnr", "gap"),
            )


def _bacc_tie(audits: Audits) -> Iterator[Row]:
    """Two evaluators of like BAcc, one of which passes and one of which rejects too much."""
    for a, b in _like_pairs(audits):
        apart = abs(a["gap"] - b["gap"])
        if a["gap"] * b["gap"] >= 0 or apart <= MAX_GAP:
            continue
        passes, rejects = (a, b) if a["gap"] > 0 else (b, a)
        yield _finding(
            "bacc_tie",
            "warn",
            _pair(a, b),
            a["dataset"],
            f"On {a['dataset']}, {a['evaluator']} and {b['evaluator']} have like BAcc ({_percent(a['bacc'])} and "
            f"{_percent(b['bacc'])}) but opposite habits: choose {rejects['evaluator']} to catch errors (TNR "
            f"{_percent(rejects['tnr'])}), {passes['evaluator']} to keep good claims (TPR {_percent(passes['tpr'])}).",
            {
                f"{key}_{side}": row[key]
                for side, row in (("a", a), ("b", b))
                for key in ("evaluator", "bacc", "tpr", "tnr")
            },
        )


def _iou(audits: Audits) -> Iterator[Row]:
    """Evaluators of like BAcc that find different claims."""
    like = {(a["dataset"], frozenset((a["evaluator"], b["evaluator"]))): (a, b) for a, b in _like_pairs(audits)}
    for row in _per_dataset(audits, "consistency", "iou"):
        pair = like.get((row["dataset"], frozenset((row["evaluator_a"], row["evaluator_b"]))))
        if pair is None or row["iou"] >= MIN_IOU:
            continue
        yield _finding(
            "iou",
            _beyond(row, "iou", MIN_IOU, below=True),
            _pair(*pair),
            row["dataset"],
            f"On {row['dataset']}, {row['evaluator_a']} and {row['evaluator_b']} have like BAcc but share only "
            f"{_percent(row['iou'])} of the claims that either finds {row['class']}: one cannot stand in for the "
            "other, so look at claims, not only at rates.",
            _figures(row, "evaluator_a", "evaluator_b", "class", "iou", "iou_low", "iou_high", "kappa", "n")
            | {"bacc_a": pair[0]["bacc"], "bacc_b": pair[1]["bacc"]},
        )


def _bias(audits: Audits) -> Iterator[Row]:
    """Predicted error rates whose interval does not hold the labelled one."""
    rows = [row for row in _per_dataset(audits, "quantification", "bias") if "predicted_error_rate_low" in row]
    for evaluator, mine in _by_evaluator(rows):
        missed_any = False
        for (dataset, level), group in _grouped(mine, "dataset", "level"):
            systems = [row for row in group if row["system"] != ALL] or group
            usable = [row for row in systems if row["predicted_error_rate_low"] is not None]
            missed = [row for row in usable if not _inside(row, "labelled_error_rate", "predicted_error_rate")]
            if not missed:
                continue
            missed_any = True
            worst = max(missed, key=lambda row: abs(row["bias"]))
            # The labelled rate has an error of its own; the interval of the paired difference has both.
            sure = any(row["bias_low"] is not None and row["bias_low"] * row["bias_high"] > 0 for row in missed)
            told, true = _percent(worst["predicted_error_rate"]), _percent(worst["labelled_error_rate"])
            if worst["system"] == ALL:
                said = f"error rate is off: it is put at {told} where the labels say {true}"
            else:
                said = (
                    f"error rates are off for {len(missed)} of {len(usable)} systems: it puts {worst['system']}'s at "
                )
                said += f"{told} where the labels say {true}"
            yield _finding(
                "bias",
                "fail" if sure else "warn",
                evaluator,
                dataset,
                f"On {dataset}, {evaluator}'s {level}-level {said}; do not quote it unadjusted.",
                {"level": level, "n_missed": len(missed), "n_systems": len(usable), "system": worst["system"]}
                | _figures(worst, "labelled_error_rate", "predicted_error_rate", "bias", "bias_low", "bias_high", "n"),
            )
        if mine and not missed_any:
            yield _finding(
                "bias",
                "ok",
                evaluator,
                None,
                f"No labelled error rate lies outside the interval of {evaluator}'s predicted one.",
                {"n_rates": len(mine)},
            )


def _order(audits: Audits) -> Iterator[Row]:
    """Systems that the predictions put in another order than the labels."""
    for evaluator, rows in _by_evaluator(_per_dataset(audits, "ranking", "error_rate")):
        bad = [row for row in rows if row["error_rate"] > 0]
        for row in bad:
            wrong, major = (round(row[key] * row["n_pairs"]) for key in ("error_rate", "major_error_rate"))
            turned = f", {major} of them turned round" if major else ""
            yield _finding(
                "order",
                "fail" if major or (row.get("error_rate_low") or 0) > 0 else "warn",
                evaluator,
                row["dataset"],
                f"On {row['dataset']}, {evaluator} orders {wrong} of {row['n_pairs']} pairs of systems "
                f"({row['level']} level) otherwise than the labels do{turned}: do not rank systems by it unchecked.",
                _figures(row, "level", "n_systems", "n_pairs", "error_rate", "major_error_rate", "kendall_tau"),
            )
        if rows and not bad:
            yield _finding(
                "order",
                "ok",
                evaluator,
                None,
                f"{evaluator} orders every pair of systems as the labels do.",
                {"n_pairs": sum(row["n_pairs"] for row in rows)},
            )


def _overlap(audits: Audits) -> Iterator[Row]:
    """TPR that rises, TNR that falls with word overlap."""
    rows = [row for row in audits.get("surface_trend", []) if row["slope"] is not None]
    for evaluator, mine in _by_evaluator(rows):
        leans = False
        for (task,), group in _grouped(mine, "task"):
            slopes = {row["rate"]: row for row in group}
            sure = {
                rate: row
                for rate, row in slopes.items()
                if row.get("slope_low") is not None
                and (row["slope_low"] > 0 if rate == "tpr" else row["slope_high"] < 0)
            }
            if not sure:
                continue
            leans = True
            how = {
                "tpr": "misses attributable claims in other words (TPR {} points for every tenth of overlap)",
                "tnr": "passes unattributable claims in the document's words (TNR {})",
            }
            said = " and ".join(how[rate].format(_points(row["slope"] / 10, sign=True)) for rate, row in sure.items())
            yield _finding(
                "overlap",
                "fail" if len(sure) == 2 else "warn",
                evaluator,
                task,
                f"On {task}, {evaluator} leans on word overlap: it {said}; distrust it on paraphrases and near copies.",
                {"task": task} | {f"{rate}_{key}": row[key] for rate, row in sure.items() for key in _SLOPE},
            )
        if not leans and any("slope_low" in row for row in mine):
            yield _finding(
                "overlap",
                "ok",
                evaluator,
                None,
                f"{evaluator} shows no clear lean on word overlap.",
                {"n_trends": len(mine)},
            )


_SLOPE = ("slope", "slope_low", "slope_high")


def _chunks(audits: Audits) -> Iterator[Row]:
    """Claims that are supported by no single chunk, and are rejected because of it."""
    rows = _per_dataset(audits, "chunking", "flip_1_to_0")
    for evaluator, mine in _by_evaluator(rows):
        bad = False
        for (dataset, chunked), group in _grouped(mine, "dataset", "chunked_evaluator"):
            kinds = {row["r2_diff"]: row for row in group}
            if set(kinds) != {"zero", "positive"}:
                continue
            split, whole = kinds["positive"], kinds["zero"]
            if split["flip_1_to_0"] <= max(whole["flip_1_to_0"] + MAX_EXTRA_FLIPS, split["flip_0_to_1"]):
                continue
            bad = True
            least, most = split.get("flip_1_to_0_low"), whole.get("flip_1_to_0_high")
            sure = least is not None and most is not None and least > most
            yield _finding(
                "chunking",
                "fail" if sure else "warn",
                evaluator,
                dataset,
                f"On {dataset}, chunks make {evaluator} reject {_percent(split['flip_1_to_0'])} of the {split['n']} "
                f"claims whose wording is spread over chunks, against {_percent(whole['flip_1_to_0'])} of the "
                "others: give it whole documents, or larger chunks.",
                {
                    "chunked_evaluator": chunked,
                    "flip_1_to_0": split["flip_1_to_0"],
                    "flip_1_to_0_of_others": whole["flip_1_to_0"],
                    "flip_0_to_1": split["flip_0_to_1"],
                    "n": split["n"],
                },
            )
        if mine and not bad:
            yield _finding(
                "chunking", "ok", evaluator, None, f"Chunks do not make {evaluator} reject spread-out claims.", {}
            )


def _calibration(audits: Audits) -> Iterator[Row]:
    """Systems with too few labelled errors to calibrate on."""
    rows = [row for row in audits.get("adjustment", []) if row.get("calibration_errors") is not None]
    for (dataset, level), group in _grouped(rows, "dataset", "level"):
        errors: dict[str, int] = {}
        for row in group:
            name = row["calibration_system"]
            errors[name] = max(errors.get(name, 0), row["calibration_errors"])
        few = {name: count for name, count in errors.items() if count < MIN_ERRORS}
        best = max(errors, key=lambda name: errors[name])
        if few:
            listed = ", ".join(f"{name} ({count})" for name, count in sorted(few.items(), key=lambda item: item[1]))
            advice = f"use {best} ({errors[best]})" if best not in few else "label more first"
            yield _finding(
                "calibration",
                "warn" if best not in few else "fail",
                None,
                dataset,
                f"On {dataset}, {len(few)} of {len(errors)} systems have fewer than {MIN_ERRORS} labelled errors "
                f"({level} level: {listed}): do not calibrate on them; {advice}.",
                {
                    "level": level,
                    "n_systems": len(errors),
                    "n_too_few": len(few),
                    "best": best,
                    "n_errors": errors[best],
                },
            )
        else:
            yield _finding(
                "calibration",
                "ok",
                None,
                dataset,
                f"On {dataset}, each system has at least {MIN_ERRORS} labelled errors to calibrate on ({level} level).",
                {"level": level, "n_systems": len(errors), "n_errors": min(errors.values())},
            )


#: The methods of `adjustment` in words; the first two are those of VC §5's finding.
_METHODS = {
    "zero_bias_threshold": "a zero-bias threshold",
    "bacc_threshold": "a best-BAcc threshold",
    "adjusted_counts": "adjusted counts",
}


def _adjustment(audits: Audits) -> Iterator[Row]:
    """What calibrating on one system does to the bias of the others, and whether that is what VC §5 found."""
    rows = [row for row in audits.get("adjustment", []) if row["calibration_system"] == CV]
    rows = [row for row in rows if row["method"] in _METHODS and row["change"] is not None and "change_low" in row]
    before = {
        (row["dataset"], row["level"], row["evaluator"]): row["mean_abs_bias"]
        for row in audits.get("adjustment", [])
        if row["calibration_system"] == CV and row["method"] == "none"
    }
    for (dataset, level, evaluator), group in _grouped(rows, "dataset", "level", "evaluator"):
        by_method = {row["method"]: row for row in group}
        sure = {method: _direction(row) for method, row in by_method.items()}
        said = ", ".join(
            f"{_points(row['change'], sign=True)} with {words}"
            for method, words in _METHODS.items()
            if (row := by_method.get(method))
        )
        helping = [method for method in by_method if sure[method] < 0]
        best = min(helping, key=lambda method: by_method[method]["mean_abs_bias"], default=None)
        advice = f"use {_METHODS[best]}" if best else "none is shown to reduce it, so do not count on a correction"
        uncorrected = before[dataset, level, evaluator]
        text = (
            f"On {dataset}, calibrating {evaluator} on one system changes the mean |bias| of the others' {level}-level "
            f"error rates ({_points(uncorrected)} points uncorrected) by {said}: {advice}"
        )
        evidence: Row = {"level": level, "mean_abs_bias": uncorrected}
        paper = (sure.get("zero_bias_threshold"), sure.get("bacc_threshold"))
        if None not in paper:
            holds = "holds" if paper == (-1, 1) else "fails" if paper[0] == 1 or paper[1] == -1 else "is not settled"
            text += f" (VC §5's finding, that zero bias helps and BAcc harms, {holds} here)"
            evidence |= {"published_finding": holds}
        for method in (each for each in _METHODS if each in by_method):
            row = by_method[method]
            evidence |= {f"{method}_{key}": row[key] for key in ("change", "change_low", "change_high")}
        severity = "ok" if best else "fail" if 1 in sure.values() else "warn"
        yield _finding("adjustment", severity, evaluator, dataset, f"{text}.", evidence)


def _direction(row: Row) -> int:
    """-1 where a method surely reduces the bias of the others, 1 where it surely increases it, else 0."""
    if row["change_low"] is None:
        return 0
    return -1 if row["change_high"] < 0 else 1 if row["change_low"] > 0 else 0


def _power(audits: Audits) -> Iterator[Row]:
    """Too few labels to tell the systems apart."""
    for (dataset, level), group in _grouped(_per_dataset(audits, "ranking", "detectable_10"), "dataset", "level"):
        row = max(group, key=lambda row: row["n"])
        evidence = _figures(row, "level", "n_systems", "n_pairs", "n", "detectable_5", "detectable_10")
        able = f"{round(row['detectable_10'] * row['n_pairs'])} of {row['n_pairs']} pairs of systems"
        if row["detectable_10"] < MIN_DETECTABLE:
            yield _finding(
                "power",
                "warn",
                None,
                dataset,
                f"On {dataset}, only {able} have enough labels to show a difference of 10 points ({level} level): "
                "a pair without a significant difference is not a pair of equals.",
                evidence,
            )
        else:
            yield _finding(
                "power",
                "ok",
                None,
                dataset,
                f"On {dataset}, {able} have enough labels to show a difference of 10 points ({level} level).",
                evidence,
            )


def _unscored(audits: Audits) -> Iterator[Row]:
    """Unscored claims that could change what is said of an evaluator."""
    rates = list(_per_dataset(audits, "rates"))
    biases = {
        (row["dataset"], row["evaluator"]): row
        for row in _per_dataset(audits, "quantification", "bias")
        if row["system"] == ALL and row["level"] == "claim"
    }
    for evaluator, mine in _by_evaluator(rates):
        lacking = [row for row in mine if row["n_unscored"]]
        changed = False
        for row in lacking:
            dataset = row["dataset"]
            if not row["n"]:
                changed = True
                all_of_them = counted(row["n_unscored"], "claim")
                text = f"On {dataset}, {evaluator} has scored none of {all_of_them}: judge them first."
                yield _finding("unscored", "fail", evaluator, dataset, text, _figures(row, "n", "n_unscored"))
                continue
            open_questions = []
            if row["gap"] is not None and not _settled(row, "gap", -MAX_GAP, MAX_GAP):
                open_questions.append(f"whether its TPR and TNR are over {_points(MAX_GAP)} points apart")
            bias = biases.get((dataset, evaluator))
            if bias is not None and not _settled(bias, "bias", 0):
                open_questions.append("whether its error rate is too low or too high")
            rivals = [
                other["evaluator"]
                for other in rates
                if other["dataset"] == dataset and other["evaluator"] != evaluator and _could_swap(row, other)
            ]
            if rivals:
                open_questions.append(f"whether its BAcc is above that of {', '.join(rivals)}")
            if not open_questions:
                continue
            changed = True
            yield _finding(
                "unscored",
                "warn",
                evaluator,
                dataset,
                f"On {dataset}, {counted(row['n_unscored'], 'claim')} that {evaluator} did not score could change "
                f"{' and '.join(open_questions)}: judge them again before you conclude.",
                _figures(row, "n", "n_unscored", "gap", "gap_min", "gap_max", "bacc", "bacc_min", "bacc_max"),
            )
        if mine and not changed:
            total = sum(row["n_unscored"] for row in lacking)
            said = f"{counted(total, 'unscored claim')} of {evaluator} cannot change any of these conclusions."
            yield _finding(
                "unscored",
                "ok",
                evaluator,
                None,
                said if total else f"{evaluator} has scored every labelled claim.",
                {"n_unscored": total},
            )


def _clusters(audits: Audits, claims: Iterable[Mapping[str, Any]]) -> Iterator[Row]:
    """Too few documents or responses for intervals that hold."""
    if not any("tpr_low" in row for row in audits.get("rates", [])):
        return
    for each in claims:
        clusters = each.get("n_clusters")
        if clusters is not None and clusters < MIN_CLUSTERS:
            what = "document or response" if clusters == 1 else "documents or responses"
            yield _finding(
                "clusters",
                "warn",
                None,
                each["dataset"],
                f"On {each['dataset']}, all claims come from {clusters} {what}, so that intervals are too narrow where "
                "there are any: judge more documents before you rely on them.",
                {"n_clusters": clusters, "n": each["n_claims"]},
            )


_CHECKS: tuple[Callable[[Audits], Iterator[Row]], ...] = (
    _gap,
    _bacc_tie,
    _iou,
    _bias,
    _order,
    _overlap,
    _chunks,
    _calibration,
    _adjustment,
    _power,
    _unscored,
)

# ------------------------------------------------------------------------------------------------------- helpers


def _once(found: list[Row]) -> list[Row]:
    """Without what a check says of responses where it says the same of claims (a data set of whole responses)."""

    def of_level(finding: Row, level: str) -> tuple[Any, ...]:
        figures = {**finding["evidence"], "level": level}
        return finding["id"], finding["evaluator"], finding["dataset"], tuple(sorted(figures.items(), key=str))

    of_claims = {of_level(each, "claim") for each in found if each["evidence"].get("level") == "claim"}
    return [
        each
        for each in found
        if each["evidence"].get("level") != "response" or of_level(each, "claim") not in of_claims
    ]


def _finding(
    name: str, severity: str, evaluator: str | None, dataset: str | None, statement: str, evidence: Row
) -> Row:
    return {
        "id": name,
        "severity": severity,
        "evaluator": evaluator,
        "dataset": dataset,
        "statement": statement,
        "evidence": evidence,
    }


def _per_dataset(audits: Audits, audit: str, figure: str | None = None) -> Iterator[Row]:
    """Rows of one dataset (or of all together), not split by other columns, whose ``figure`` is defined."""
    for row in audits.get(audit, []):
        # The columns of ``by`` come first, dataset before all; then one of the audit's own.
        unsplit = list(row)[1] in ("evaluator", "evaluator_a", "level")
        if unsplit and row["dataset"] != MACRO and (figure is None or row[figure] is not None):
            yield row


def _evaluators(row: Row) -> set[str]:
    return {row[key] for key in ("evaluator", "evaluator_a", "evaluator_b") if key in row}


def _grouped(rows: Iterable[Row], *keys: str) -> Iterator[tuple[tuple[Any, ...], list[Row]]]:
    """Rows by the values of some keys, in order of first appearance."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in rows:
        groups.setdefault(tuple(row[key] for key in keys), []).append(row)
    yield from groups.items()


def _by_evaluator(rows: Iterable[Row]) -> Iterator[tuple[str, list[Row]]]:
    for (evaluator,), group in _grouped(rows, "evaluator"):
        yield evaluator, group


def _like_pairs(audits: Audits) -> Iterator[tuple[Row, Row]]:
    """Pairs of rows of `rates` on the same dataset whose BAccs are alike."""
    for _, rows in _grouped(_per_dataset(audits, "rates", "bacc"), "dataset"):
        for at, a in enumerate(rows):
            for b in rows[at + 1 :]:
                if abs(a["bacc"] - b["bacc"]) <= LIKE_BACC:
                    yield a, b


def _pair(a: Row, b: Row) -> str:
    return f"{a['evaluator']} / {b['evaluator']}"


def _beyond(row: Row, key: str, limit: float, below: bool = False) -> str:
    """``fail`` where the whole interval of a figure is beyond the limit (away from 0, or below it), else ``warn``."""
    low, high = row.get(f"{key}_low"), row.get(f"{key}_high")
    if low is None or high is None:
        return "warn"
    return "fail" if (high < limit if below or limit < 0 else low > limit) else "warn"


def _inside(row: Row, key: str, of: str) -> bool:
    return row[f"{of}_low"] <= row[key] <= row[f"{of}_high"]


def _settled(row: Row, key: str, *limits: float) -> bool:
    """Whether the bounds of a figure are on the same side of every limit."""
    low, high = row[f"{key}_min"], row[f"{key}_max"]
    return all(not low < limit < high for limit in limits)


def _could_swap(row: Row, other: Row) -> bool:
    """Whether two evaluators could change places by BAcc if all claims were scored."""
    if row["bacc"] is None or other["bacc"] is None or row["bacc"] == other["bacc"]:
        return False
    lower, upper = sorted((row, other), key=lambda each: each["bacc"])
    return lower["bacc_max"] >= upper["bacc_min"]


def _figures(row: Row, *keys: str) -> Row:
    return {key: row[key] for key in keys if key in row}


def _percent(rate: float) -> str:
    return f"{100 * rate:.1f} %"


def _points(difference: float, sign: bool = False) -> str:
    """Percentage points, without a needless decimal."""
    text = f"{100 * difference:{'+' if sign else ''}.1f}".removesuffix(".0")
    # A rounded zero has no sign, and a minus is no hyphen.
    return "0" if float(text) == 0 else text.replace("-", "−")
