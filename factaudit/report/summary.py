"""The report's opening in plain language: which evaluator, how far to trust it, on what."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from factaudit.report.labels import UNDEFINED, Row, column_label, count, figure, is_total, name, repeats, span, unique
from factaudit.report.tables import Cell, Table

#: A gap between TPR and TNR of so much is called a leaning, as in the findings (VC §6).
LEANING = 0.20
#: From the gravest to the least.
SEVERITIES = ("fail", "warn", "ok")


def overall(rates: Sequence[Row]) -> dict[str, Row]:
    """Each evaluator's one row that stands for all claims: the mean over datasets, else its only row."""
    found: dict[str, Row] = {}
    for evaluator in unique(row["evaluator"] for row in rates):
        mine = [row for row in rates if row["evaluator"] == evaluator and not repeats(row)]
        for kind in ("__macro__", "__all__"):
            total = [row for row in mine if row.get("dataset") == kind]
            if len(total) == 1:
                found[evaluator] = total[0]
                break
        else:
            if len(mine) == 1:
                found[evaluator] = mine[0]
    return found


def floors_of(results: Mapping[str, Any]) -> set[str]:
    """The evaluators that read nothing (``always-yes``, say): what others are measured by, and no candidates."""
    return {each["name"] for each in results["about"].get("evaluators") or [] if each.get("floor")}


def lead(results: Mapping[str, Any]) -> list[str]:
    """A few sentences that answer the question; one string per paragraph."""
    audits = results["audits"]
    rates = audits.get("rates", [])
    paragraphs = [_about(results["about"])]
    ranked, floors = _ranked(overall(rates)), floors_of(results)
    best = [row for row in ranked if row["evaluator"] not in floors] or ranked
    if best:
        said = _which(best, audits.get("differences", []))
        said += _above_floors(best[0], [row for row in ranked if row["evaluator"] in floors])
        paragraphs.append(" ".join([*said, *_where(rates, best[0])]))
        paragraphs.append(" ".join(_for_what(audits, best[0]["evaluator"])))
    elif rates:
        paragraphs.append(
            "No evaluator has one balanced accuracy for all claims here (labels of both classes are needed); "
            "the tables below say what can be said of each part."
        )
    told = results["about"].get("evaluators", [])
    missing = _shares({each["name"]: (_without_prediction(each), each.get("n_verdicts") or 0) for each in told})
    if missing:
        paragraphs.append(
            f"Verdicts without a prediction: {missing}. They count as unscored: they leave no denominator, "
            "and each figure that they could change comes with the bounds between which it would lie."
        )
    guessed = _shares({each["name"]: (each.get("n_guessed") or 0, each.get("n_verdicts") or 0) for each in told})
    if guessed:
        paragraphs.append(f"Replies that could not be read and were counted as a verdict all the same: {guessed}.")
    return [text for text in paragraphs if text]


_FAILED = ("unparsed", "refused", "error", "skipped")


def _without_prediction(each: Row) -> int:
    return sum(each.get(f"n_{status}") or 0 for status in _FAILED) - (each.get("n_guessed") or 0)


def _shares(counts: Mapping[str, tuple[int, int]]) -> str:
    return ", ".join(f"{name} ({part:,} of {whole:,})" for name, (part, whole) in counts.items() if part)


def _about(about: Mapping[str, Any]) -> str:
    claims = about.get("claims") or []
    evaluators = about.get("evaluators") or []
    labelled = sum(row.get("n_labelled") or 0 for row in claims)
    attributable = sum(row.get("n_attributable") or 0 for row in claims)
    total = sum(row.get("n_claims") or 0 for row in claims)
    if not claims:
        return ""
    text = f"{count(total, 'claim')} from {count(len(claims), 'dataset')}"
    floors = sum(bool(row.get("floor")) for row in evaluators)
    told = count(len(evaluators) - floors, "evaluator") + (f" and {count(floors, 'floor')}" if floors else "")
    text = f"{told}, {text}" if evaluators else text
    if not labelled:
        return f"{text}; none of the claims is labelled, so that evaluators can be compared with each other only."
    share = figure("labelled", attributable / labelled)
    which = "all labelled" if labelled == total else f"{labelled:,} of them labelled"
    return f"{text}, {which}: {share} % of the labels say attributable."


def _ranked(rows: Mapping[str, Row]) -> list[Row]:
    scored = [row for row in rows.values() if row.get("bacc") is not None]
    return sorted(scored, key=lambda row: -row["bacc"])


def _percent(row: Row, key: str) -> str:
    """``78.3 % (75.1–81.2)``: a figure with its interval, where it has one."""
    text = f"{figure(key, row[key])} %"
    if row.get(f"{key}_low") is not None and row.get(f"{key}_high") is not None:
        text += f" ({span(key, row[f'{key}_low'], row[f'{key}_high'])})"
    return text


def _which(best: Sequence[Row], differences: Sequence[Row]) -> list[str]:
    first = best[0]
    over = " as the mean over datasets" if first.get("dataset") == "__macro__" else ""
    wrong = round(100 * (1 - first["bacc"]))
    if len(best) > 1:
        head = f"{first['evaluator']} has the highest balanced accuracy of these evaluators: {_percent(first, 'bacc')}"
    else:
        head = f"{first['evaluator']} has a balanced accuracy of {_percent(first, 'bacc')}"
    said = [f"{head}{over}."]
    low = first.get("bacc_low")
    if first["bacc"] <= 0.5 or (low is not None and low <= 0.5):
        said.append(
            "That cannot be told from guessing (50 %): do not rely on it to tell attributable claims from others."
        )
    elif first.get("tpr") is not None and first.get("tnr") is not None:
        said.append(
            f"On as many attributable as unattributable claims it would judge about {wrong} of 100 wrongly: it finds "
            f"{figure('tpr', first['tpr'])} % of the attributable (TPR) and {figure('tnr', first['tnr'])} % of the "
            "unattributable ones (TNR)."
        )
        gap = first["tpr"] - first["tnr"]
        if gap >= LEANING:
            said.append(
                "It leans towards “attributable”: errors slip through, and a predicted error rate tends to be low."
            )
        elif gap <= -LEANING:
            said.append("It leans towards “unattributable”: many of the errors that it reports are none.")
    if len(best) > 1:
        said.append(_second(first, best[1], differences))
    return said


def _above_floors(best: Row, floors: Sequence[Row]) -> list[str]:
    if not floors or best in floors or best["bacc"] > floors[0]["bacc"]:
        return []
    floor = f"{floors[0]['evaluator']}, which reads nothing ({figure('bacc', floors[0]['bacc'])} %)"
    return [f"No evaluator here does better than {floor}."]


def _second(first: Row, second: Row, differences: Sequence[Row]) -> str:
    """The runner-up, and whether the claims settle which of the two is better: paired where that was computed."""
    text = f"{second['evaluator']} follows with {_percent(second, 'bacc')}"
    pair = {first["evaluator"], second["evaluator"]}
    for row in differences:
        same = {row["evaluator_a"], row["evaluator_b"]} == pair and row.get("key") == "bacc"
        low, high = row.get("difference_low"), row.get("difference_high")
        if same and row.get("dataset") == first.get("dataset") and low is not None and high is not None:
            if low <= 0 <= high:
                return f"{text}; on the same claims the difference is within chance, so neither is shown to be better."
            low, high = sorted((abs(low), abs(high)))
            return f"{text}; on the same claims the difference is clear ({span('mean_abs_bias', low, high)} points)."
    low, high = first.get("bacc_low"), second.get("bacc_high")
    if low is not None and high is not None and low <= high:
        text += "; their intervals overlap, so which of the two is better is not settled by these claims"
    return f"{text}."


def _where(rates: Sequence[Row], best: Row) -> list[str]:
    parts = [
        row
        for row in rates
        if row["evaluator"] == best["evaluator"] and not is_total(row.get("dataset")) and row.get("bacc") is not None
    ]
    if len({row["dataset"] for row in parts}) != len(parts) or len(parts) < 2:
        return []
    parts.sort(key=lambda row: row["bacc"])
    (worst, lowest), (top, highest) = ((row["dataset"], figure("bacc", row["bacc"])) for row in (parts[0], parts[-1]))
    return [f"{best['evaluator']} does best on {top} ({highest} %) and worst on {worst} ({lowest} %)."]


def _for_what(audits: Mapping[str, Sequence[Row]], evaluator: str) -> list[str]:
    said = []
    biases = _biases(audits.get("quantification", []), evaluator)
    if biases:
        worst = max(biases, key=lambda row: abs(row["bias"]))
        mean = sum(abs(row["bias"]) for row in biases) / len(biases)
        where = f"{name('system', worst['system'])} on {name('dataset', worst['dataset'])}"
        labelled, predicted = (figure(key, worst[key]) for key in ("labelled_error_rate", "predicted_error_rate"))
        said.append(
            f"As a measure of systems, the claim error rates that {evaluator} predicts are off by "
            f"{figure('mean_abs_bias', mean)} points on average over "
            f"{count(len(biases), 'system and dataset', 'systems and datasets')}, at worst by "
            f"{figure('mean_abs_bias', abs(worst['bias']))} ({where}: labelled {labelled} %, predicted {predicted} %)."
        )
    ranking = _ranking(audits.get("ranking", []), evaluator)
    if ranking is not None:
        share, pairs = ranking
        said.append(
            f"It orders {figure('error_rate', share)} % of {count(pairs, 'pair')} of systems otherwise than the labels."
        )
    return said


def _biases(rows: Sequence[Row], evaluator: str) -> list[Row]:
    return [
        row
        for row in rows
        if row["evaluator"] == evaluator
        and row.get("level", "claim") == "claim"
        and not is_total(row.get("system"))
        and row.get("bias") is not None
    ]


def _ranking(rows: Sequence[Row], evaluator: str) -> tuple[float, int] | None:
    """The share of pairs ordered wrongly at claim level, over all datasets, and the number of pairs."""
    mine = [
        row
        for row in rows
        if row["evaluator"] == evaluator and row.get("level", "claim") == "claim" and row.get("error_rate") is not None
    ]
    pairs = sum(row.get("n_pairs") or 0 for row in mine)
    return (sum(row["error_rate"] * row["n_pairs"] for row in mine) / pairs, pairs) if pairs else None


def glance(results: Mapping[str, Any]) -> Table | None:
    """One line per evaluator: what to know before trusting it."""
    audits = results["audits"]
    rows = overall(audits.get("rates", []))
    if not rows:
        return None
    ranked, floors = [row["evaluator"] for row in _ranked(rows)], floors_of(results)
    order = sorted([*ranked, *(each for each in rows if each not in ranked)], key=floors.__contains__)
    biased = {each: _biases(audits.get("quantification", []), each) for each in order}
    ordered = {each: _ranking(audits.get("ranking", []), each) for each in order}
    findings = results.get("findings") or []
    columns = ["evaluator", *(column_label(key) for key in ("bacc", "tpr", "tnr"))]
    columns += ["mean system |bias| (points)"] * any(biased.values())
    columns += ["pairs misordered (%)"] * any(ordered.values())
    columns += ["findings: fail", "findings: warn"] * bool(findings)
    body = []
    for evaluator in order:
        row = rows[evaluator]
        floor = evaluator in floors
        cells = [Cell(evaluator, ["a floor: reads nothing"] if floor else [])]
        for key in ("bacc", "tpr", "tnr"):
            low, high = row.get(f"{key}_low"), row.get(f"{key}_high")
            notes = [span(key, low, high)] if None not in (low, high, row.get(key)) else []
            cells.append(
                Cell(figure(key, row[key]), notes, "" if row[key] is not None else str(row.get("reason") or ""))
            )
        if any(biased.values()):
            of = [abs(each["bias"]) for each in biased[evaluator]]
            cells.append(Cell(figure("mean_abs_bias", sum(of) / len(of) if of else None)))
        if any(ordered.values()):
            pairs = ordered[evaluator]
            cells.append(Cell(figure("error_rate", pairs[0] if pairs else None)))
        if findings:
            for severity in ("fail", "warn"):
                mine = [f for f in findings if f.get("evaluator") == evaluator and f.get("severity") == severity]
                cells.append(Cell(UNDEFINED) if floor else Cell(str(len(mine))))
        body.append(cells)
    first = next(iter(rows.values()))
    over = {"__macro__": "Rates are means over datasets. ", "__all__": "Rates are over all claims. "}
    caption = "The evaluators at a glance, by balanced accuracy. " + over.get(str(first.get("dataset")), "")
    caption += "System |bias|: how far predicted error rates of systems are off. " * any(biased.values())
    return Table(caption.strip(), columns, [False] + [True] * (len(columns) - 1), body, len(body))


#: What each check is about; other checks go by their id.
_CHECKS = {
    "merged_facts": "Facts of several people told as one person's",
    "gap": "TPR and TNR far apart",
    "bacc_tie": "Like BAcc, unlike habits",
    "iou": "Evaluators that find different errors",
    "bias": "Error rates of systems that are off",
    "order": "Systems in the wrong order",
    "overlap": "Leaning on word overlap",
    "chunking": "Claims that chunks cannot support",
    "calibration": "Calibration on too few errors",
    "adjustment": "What a calibration does to the other systems",
    "power": "Too few labels to tell systems apart",
    "clusters": "Too few documents for intervals",
    "unscored": "Unscored claims that matter",
}


@dataclass(frozen=True)
class Check:
    """The findings of one check, gravest first, within a severity those on the best evaluators first."""

    title: str
    findings: list[Row]

    def counts(self) -> str:
        """``3 fail, 1 warn``."""
        severities = [each.get("severity") for each in self.findings]
        return ", ".join(f"{severities.count(one)} {one}" for one in SEVERITIES if one in severities)


def checks(results: Mapping[str, Any]) -> tuple[list[Check], list[Row]]:
    """The checks that have something to warn of, and the findings that are ``ok``."""
    gravity = {severity: position for position, severity in enumerate(SEVERITIES)}
    best = [row["evaluator"] for row in _ranked(overall(results["audits"].get("rates", [])))]
    rank = {evaluator: position for position, evaluator in enumerate(best)}

    def order(finding: Row) -> tuple[int, int]:
        return gravity.get(str(finding.get("severity")), 0), rank.get(str(finding.get("evaluator")), len(rank))

    found = results.get("findings") or []
    grave = [each for each in found if each.get("severity") != "ok"]
    groups = [
        Check(_CHECKS.get(str(one), str(one)), sorted((f for f in grave if f.get("id") == one), key=order))
        for one in unique(each.get("id") for each in grave)
    ]
    return groups, [each for each in found if each.get("severity") == "ok"]


def evidence(finding: Row) -> str:
    """A finding's figures in one line: ``TPR 91.0 %, gap +42.8 points (+30.1 to +55.0), n 120``."""
    figures = finding.get("evidence") or {}
    said = []
    for key, value in figures.items():
        if key.endswith(("_low", "_high")) and key.rpartition("_")[0] in figures:
            continue
        label, _, unit = column_label(key).partition(" (")
        text = " ".join(part for part in (label, figure(key, value), unit.rstrip(")")) if part)
        low, high = figures.get(f"{key}_low"), figures.get(f"{key}_high")
        said.append(text if low is None or high is None else f"{text} ({span(key, low, high)})")
    return ", ".join(said)
