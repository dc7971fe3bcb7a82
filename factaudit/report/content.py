"""What stands in a report, as data: sections with text, tables and figures. HTML and Markdown only lay it out."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factaudit.report.labels import Row, count, group_columns, group_label, in_order, is_total, repeats, unique
from factaudit.report.summary import Check, checks, glance, lead
from factaudit.report.tables import Table, plain_table, result_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure


@dataclass(frozen=True)
class Picture:
    """A figure of the report: ``figures/<stem>.svg`` and ``.png``; ``draw`` is None where they are there already."""

    stem: str
    caption: str
    alt: str
    draw: Callable[[], Figure] | None = None


@dataclass(frozen=True)
class Section:
    id: str
    title: str
    text: list[str] = field(default_factory=list)
    pictures: list[Picture] = field(default_factory=list)
    tables: list[Table] = field(default_factory=list)
    #: D-FActScore's paragraphs with their facts by person (`factaudit.engines.dfactscore.run.merged_paragraphs`).
    merged: list[Row] = field(default_factory=list)


@dataclass(frozen=True)
class Document:
    """A report, ready to be laid out. All text is plain: whoever lays it out escapes it."""

    title: str
    lead: list[str]
    glance: Table | None
    #: What to warn of, by check; and the findings that are well.
    checks: list[Check]
    well: list[Row]
    sections: list[Section]
    signature: str
    version: str


@dataclass(frozen=True)
class _Audit:
    title: str
    text: str
    formula: str


# In the order of the report. The formulas are DESIGN's.
_AUDITS: dict[str, _Audit] = {
    "factscore": _Audit(
        "FActScore, system by system",
        "The unweighted mean over responses, with and without the length penalty.",
        "Responses that abstain or hold no fact count in the respond ratio only; one whose facts have no verdict is "
        "within the bounds.",
    ),
    "factscore_agreement": _Audit(
        "Predicted FActScore against people's",
        "Over the responses that both have scored; people's score knows no length penalty.",
        "Bias = predicted − people's; p-values are of no correlation.",
    ),
    "factscore_auc": _Audit(
        "Whether scores tell supported from unsupported facts",
        "Whatever the threshold.",
        "Area under the ROC curve over labelled facts; ties count half; intervals resample responses.",
    ),
    "factscore_thresholds": _Audit(
        "Finding responses that are good enough",
        "“Predicted score ≥ t” as a test for “people's score ≥ t”.",
        "Precision, recall and F1 over responses.",
    ),
    "factscore_calibration": _Audit(
        "People's scores by predicted score",
        "Responses in ten equal bins of the predicted score (without the penalty).",
        "Mean predicted and mean people's score of each bin.",
    ),
    "dfactscore": _Audit(
        "FActScore and D-FActScore of the systems",
        "A system that merges people of one name keeps its FActScore and loses D-FActScore (MF §4).",
        "Means over the responses that answered; init: without the length penalty. Gap = init FActScore − init "
        "D-FActScore, paired. Merged: some fact is true of somebody else of the name, not of the person it is told of.",
    ),
    "dfactscore_printed": _Audit(
        "Against the printed table",
        "Each printed figure beside what the published decisions give (MF Table 4).",
        "Rebuilt: rounded to the printed decimals.",
    ),
    "dfactscore_elsewhere": _Audit(
        "Facts that belong to someone else",
        "What a reader of the merged paragraphs is misled about.",
        "Linked: the person whom most facts of the group are true of. About: the person whom the fact is true of.",
    ),
    "dfactscore_linking": _Audit(
        "Other ways to group and to link",
        "All read from the same verdicts.",
        "argmax: the entity that supports most of a group (MF Eq. 1); hungarian: the same, but no entity twice.",
    ),
    "dfactscore_grouping": _Audit(
        "What the groupers did",
        "Every fact ends in exactly one group, whatever a reply holds.",
        "Same: exactly the same groups; agreement: share of facts in the corresponding group, mean over responses.",
    ),
    "dfactscore_people": _Audit(
        "People and the machine",
        "The same scores by annotators and by the machine, over the responses that both scored (MF §5.2).",
        "People: S / (S + NS), for D-FActScore an S only where the supporting page is the entity's. Pearson's r over "
        "responses.",
    ),
    "annotator_agreement": _Audit(
        "How far annotators agree",
        "What the machine can be asked to agree with at most (MF §4.2).",
        "Percent: pairs of judgements that agree; κ is Cohen's (two annotators), α Krippendorff's (nominal).",
    ),
    "popularity": _Audit(
        "Does the better-known person win?",
        "Page views of the candidates against the person whom a response is mostly about (MF §5.3).",
        "Most viewed: share of responses about the candidate with most views; mean rank: 0 is the most viewed, 1 the "
        "least.",
    ),
    "citations": _Audit(
        "Citation recall and precision",
        "After ALCE (MF App. D). Malformed citations are reported, not judged; they are in citations.jsonl.",
        "Recall = sentences that their cited documents together support / sentences; precision = citations that are "
        "needed or sufficient / citations; means over responses.",
    ),
    "citation_recall": _Audit(
        "Citation recall",
        "Computed again from published judgements (MF App. D, Table 7).",
        "Recall = sentences that their cited documents together support / sentences, mean over responses.",
    ),
    "rates": _Audit(
        "How often each evaluator is right",
        "Against the labels, on claims that people judged. A high TPR with a low TNR is an evaluator that says yes too "
        "readily; the same balanced accuracy can hide opposite habits (VC Fig. 3).",
        "TPR = P(prediction 1 | label 1); TNR = P(prediction 0 | label 0); BAcc = (TPR + TNR) / 2; PPR = share "
        "predicted 1; gap = TPR − TNR. FPR = 1 − TNR and FNR = 1 − TPR are in the CSV.",
    ),
    "consistency": _Audit(
        "Whether evaluators agree on the same claims",
        "Two evaluators of like balanced accuracy may call quite different claims errors (VC Fig. 2).",
        "IoU of a class = claims to which both evaluators give the class / claims to which either does; κ is Cohen's. "
        "Over claims that both have scored; labels are not needed.",
    ),
    "differences": _Audit(
        "Differences between evaluators on the same claims",
        "Paired: both evaluators judge the same claims, so that a difference can be clear where intervals overlap.",
        "Difference = the first evaluator's figure − the second's, with a paired cluster bootstrap and, for one "
        "dataset, a paired permutation test.",
    ),
    "quantification": _Audit(
        "Error rates of systems, predicted and labelled",
        "Whether an evaluator can say how many errors a system makes (VC Fig. 4).",
        "Error rate = share of 0; bias = predicted − labelled error rate, so below zero the evaluator sees too few "
        "errors. A response is attributable when all its claims are.",
    ),
    "headroom": _Audit(
        "How much room is left",
        "The best system's error rate is what is left to improve; an evaluator that gets it wrong ends a line of work "
        "too early or too late (VC §3.4).",
        "Headroom = the lowest error rate among the systems of a group, labelled and predicted; bias = predicted − "
        "labelled.",
    ),
    "ranking": _Audit(
        "Whether systems come out in the right order",
        "Each pair of systems is compared once with the labels and once with the predictions (VC §3.5).",
        "Per pair a pooled two-sided two-proportion z-test at p < 0.05 gives <, = or >. Wrong order: the two differ; "
        "major error: both are significant and opposite. τ-b and r are over the systems' error rates.",
    ),
    "ranking_pairs": _Audit(
        "The pairs of systems one by one",
        "Where the orders of the section above come from.",
        "< means that the first system has significantly fewer errors than the second, = that the test cannot tell.",
    ),
    "surface_bias": _Audit(
        "Leaning on word overlap",
        "An evaluator that leans on shared words accepts more, right or wrong, as a claim repeats more of the "
        "document: TPR rises and TNR falls (VC §4.1).",
        "ROUGE-2 precision = clipped share of the claim's bigrams found in the document; five bins by percentile "
        "within a task group; TPR and TNR within a bin.",
    ),
    "surface_trend": _Audit(
        "How strongly evaluators lean on word overlap",
        "The same leaning as one figure per rate: an evaluator leans on word overlap where the slope of TPR is above "
        "zero and that of TNR below.",
        "Slope of a least squares fit of “the prediction is right” on ROUGE-2 precision, over the claims of the rate's "
        "class: the change from no overlap (0) to full overlap (1), along a straight line that may lead beyond 100 %.",
    ),
    "chunking": _Audit(
        "What cutting documents into chunks changes",
        "A claim that draws on distant parts of a document cannot be verified from one chunk (VC §4.2).",
        "R2-diff = ROUGE-2 precision against the whole document − the maximum over its chunks. Flips: share of the "
        "claims' predictions that change from 1 to 0, and from 0 to 1, when the evaluator reads chunks.",
    ),
    "chunking_rates": _Audit(
        "Rates with and without chunks",
        "On documents that are longer than a chunk.",
        "TPR, TNR, BAcc and PPR as above; a chunked evaluator's score is the maximum over chunks.",
    ),
    "adjustment": _Audit(
        "Correcting error rates with a few labels",
        "One system's labels calibrate the evaluator; the others' predicted error rates are corrected (VC §5).",
        "Adjusted counts: p̂ = clip((p̂₀ − FNR) / (TNR − FNR), 0, 1), the error being the positive class; thresholds are "
        "tuned on the calibration system to zero bias or to the best BAcc. |bias| is over the other systems; "
        "“each in turn” is the mean over calibration systems.",
    ),
}
#: A figure of one kind goes over at most so many pages; tables and CSVs have the rest.
_MAX_PAGES = 3


def build(results: Mapping[str, Any], run_dir: Path) -> Document:
    """The document of a ``results.json``'s content; nothing is drawn yet."""
    about = results["about"]
    evaluators = [row["name"] for row in about.get("evaluators", [])]
    audits = {
        audit: in_order([row for row in rows if not repeats(row)], evaluators)
        for audit, rows in results["audits"].items()
    }
    order = [*(audit for audit in _AUDITS if audit in audits), *(audit for audit in audits if audit not in _AUDITS)]
    # What an engine has to say is what its run was about.
    sections = [_given_section(i, given, run_dir) for i, given in enumerate(results.get("sections") or [])]
    sections += [_audit_section(audit, audits[audit], evaluators, results) for audit in order]
    sections += [_calls(results["calls"])] if results.get("calls") else []
    sections.append(_provenance(results))
    warnings, well = checks(results)
    return Document(
        title=about.get("title") or "Evaluators compared",
        lead=lead(results),
        glance=glance(results),
        checks=warnings,
        well=well,
        sections=[section for section in sections if section.text or section.tables or section.pictures],
        signature=results["signature"],
        version=str(about.get("factaudit", "")),
    )


def _audit_section(audit: str, rows: list[Row], evaluators: Sequence[str], results: Mapping[str, Any]) -> Section:
    words = _AUDITS.get(audit, _Audit(audit.replace("_", " ").capitalize(), "", ""))
    slug = audit.replace("_", "-")
    if not rows:
        return Section(slug, words.title, [words.text, "Nothing to compute on: this audit has no rows."])
    if audit in _KINDS and not _defined(rows, _KINDS[audit].keys):
        why = next((str(row["reason"]) for row in rows if row.get("reason")), "no reason given")
        text = f"Undefined on these claims ({why}). The rows are in tables/{audit}.csv."
        return Section(slug, words.title, [words.text, text])
    shown, note = rows, ""
    if audit == "adjustment" and any(row.get("calibration_system") == "__cv__" for row in rows):
        # A mean over calibrations has no threshold, and no system, of its own.
        only_one = {"threshold"} | {key for key in rows[0] if key.startswith("calibration_error")}
        shown = [
            {key: value for key, value in row.items() if key not in only_one}
            for row in rows
            if row.get("calibration_system") == "__cv__"
        ]
        note = " Each calibration is in the CSV."
    paragraphs = [words.text] if words.text else []
    if audit == "adjustment":
        paragraphs += _published_finding(results.get("findings") or [])
    pictures = _pictures(audit, rows, evaluators, results)
    # The figure's caption has the formula already.
    formula = "" if pictures or not words.formula else f" {words.formula}"
    table = result_table(shown, f"{words.title}.{formula}{note}", f"tables/{audit}.csv")
    return Section(slug, words.title, paragraphs, pictures, [table])


def _published_finding(findings: Sequence[Row]) -> list[str]:
    """Where what VC §5 found of tuned thresholds is found here too; nothing where that was not looked at."""
    where: dict[str, list[str]] = {"holds": [], "fails": [], "is not settled": []}
    for each in findings:
        told = (each.get("evidence") or {}).get("published_finding")
        if told in where:
            level = "" if each["evidence"].get("level") == "claim" else f" ({each['evidence'].get('level')} level)"
            where[told].append(f"{each['evaluator']} on {each['dataset']}{level}")
    if not any(where.values()):
        return []
    said = "; ".join(f"{told} for {', '.join(names) or 'none'}" for told, names in where.items())
    return [
        "VC §5 found that tuning the threshold to zero bias reduces the bias of the other systems and tuning it to "
        f"BAcc increases it. By the intervals of the changes, that {said}."
    ]


# --- figures ---------------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Kind:
    """How an audit's rows become figures.

    ``what`` opens the caption, ``keys`` are drawn, ``known`` are keys that do not make groups, and ``per_page(k)``
    groups go into one figure of k evaluators.
    """

    what: str
    keys: tuple[str, ...]
    known: tuple[str, ...]
    per_page: Callable[[int], int]
    reading: str = ""
    shape: str = "Dot plot"


_KINDS: dict[str, _Kind] = {
    "rates": _Kind(
        "TPR, TNR and BAcc of evaluators across datasets", ("tpr", "tnr", "bacc"), ("evaluator",), lambda k: 16
    ),
    "chunking_rates": _Kind(
        "TPR, TNR and BAcc on long documents, with and without chunks",
        ("tpr", "tnr", "bacc"),
        ("evaluator",),
        lambda k: 14,
    ),
    "consistency": _Kind(
        "Pairwise IoU of evaluators, by predicted class",
        ("iou",),
        ("evaluator_a", "evaluator_b", "class"),
        lambda k: 12 if k <= 4 else 8 if k <= 6 else 5,
        "1 means that two evaluators give the class to the same claims, 0 that they share none.",
        "Heat maps",
    ),
    "quantification": _Kind(
        "Predicted against labelled error rates, a point per system and evaluator",
        ("bias",),
        ("evaluator", "system", "level"),
        lambda k: 9,
        "On the dashed line the evaluator is right; below it, it sees too few errors.",
        "Scatter plots",
    ),
    "headroom": _Kind(
        "Lowest error rate among the systems: labelled (black line) and as predicted",
        ("labelled", "predicted"),
        ("evaluator", "level", "group"),
        lambda k: 14,
    ),
    "ranking": _Kind(
        "How evaluators order pairs of systems",
        ("error_rate", "major_error_rate", "kendall_tau", "pearson_r"),
        ("evaluator", "level"),
        lambda k: 14,
    ),
    "ranking_pairs": _Kind(
        "Labelled against predicted order of system pairs, counted over datasets",
        ("error",),
        ("evaluator",),
        lambda k: 10**9,
        "Off the diagonal the order is wrong; in the two far corners it is reversed.",
        "3 × 3 tables",
    ),
    "surface_bias": _Kind(
        "TPR and TNR over bins of ROUGE-2 precision, by task group",
        ("tpr", "tnr"),
        ("evaluator",),
        lambda k: 4,
        "TPR that rises while TNR falls is leaning on word overlap.",
        "Line plots",
    ),
    "chunking": _Kind(
        "Predictions that chunking flips, where one chunk holds all shared bigrams (R2-diff = 0) and where none does",
        ("flip_1_to_0", "flip_0_to_1"),
        ("evaluator", "chunked_evaluator", "r2_diff"),
        lambda k: 14,
    ),
    "adjustment": _Kind(
        "|Bias| of the systems that did not calibrate, by method: mean (filled) and worst (hollow)",
        ("mean_abs_bias", "worst_abs_bias"),
        ("evaluator", "level", "method", "calibration_system"),
        lambda k: 14 if k <= 3 else 7 if k <= 6 else 4,
    ),
}


def _pictures(audit: str, rows: list[Row], evaluators: Sequence[str], results: Mapping[str, Any]) -> list[Picture]:
    if audit not in _KINDS:
        return []
    kind = _KINDS[audit]
    found = []
    levels = unique(row.get("level") for row in rows) if "level" in kind.known or audit == "ranking_pairs" else [None]
    for level in levels:
        mine = [row for row in rows if level is None or row.get("level") == level]
        if not _defined(mine, kind.keys):
            continue
        columns = group_columns(mine, kind.known)
        if audit == "surface_bias":
            columns = [column for column in columns if column != "dataset"] or ["task"]
        if audit == "ranking_pairs":
            columns = ["level"]
        groups = unique(group_label(row, columns) for row in mine)
        size = kind.per_page(len(_evaluators(mine)))
        pages = min(_MAX_PAGES, math.ceil(len(groups) / size))
        for page in range(pages):
            chosen = set(groups[page * size : (page + 1) * size])
            part = [row for row in mine if group_label(row, columns) in chosen]
            parts = [audit, *([str(level)] if level else []), *([str(page + 1)] if pages > 1 else [])]
            # A level is data, and must not lead out of the folder.
            stem = re.sub(r"[^A-Za-z0-9_-]", "-", "_".join(parts))
            what = (
                kind.what + (f", {level} level" if level else "") + (f" ({page + 1} of {pages})" if pages > 1 else "")
            )
            caption = _caption(what, audit, kind, part, results)
            if page == pages - 1 and len(groups) > pages * size:
                caption += f" Drawn: the first {pages * size} of {len(groups)} groups; the CSV has all."
            among = count(len(_evaluators(part)), "evaluator")
            alt = f"{kind.shape}: {what}; {among}. The table of this section has the figures."
            found.append(Picture(stem, caption, alt, _drawing(audit, part, evaluators)))
    return found


def _evaluators(rows: Sequence[Row]) -> set[str]:
    return {row[key] for row in rows for key in ("evaluator", "evaluator_a", "evaluator_b") if row.get(key)}


def _defined(rows: Sequence[Row], keys: Sequence[str]) -> bool:
    return any(row.get(key) is not None for row in rows for key in keys)


def _drawing(audit: str, rows: list[Row], evaluators: Sequence[str]) -> Callable[[], Figure]:
    def draw() -> Figure:
        from factaudit.report.figures import FIGURES

        return FIGURES[audit](rows, evaluators)

    return draw


def _caption(what: str, audit: str, kind: _Kind, rows: list[Row], results: Mapping[str, Any]) -> str:
    about = results["about"]
    if audit == "adjustment":
        rows = [row for row in rows if row.get("calibration_system") == "__cv__"] or rows  # as the figure does
    text = [f"{what}.", _AUDITS[audit].formula, kind.reading]
    if any(key.endswith("_low") and f"{key[:-4]}_high" in row and key != "r2_low" for row in rows for key in row):
        confidence = about.get("confidence")
        share = f"{100 * confidence:g} % " if confidence else ""
        replicates = f" ({about['replicates']:,} replicates)" if about.get("replicates") else ""
        if audit not in ("consistency", "adjustment"):
            text.append(f"Thin lines: {share}bootstrap intervals{replicates}.")
    text.append(_counts(rows))
    unscored = sum(row.get("n_unscored") or 0 for row in rows if not is_total(row.get("dataset")))
    if unscored and audit in ("rates", "chunking_rates", "quantification"):
        text.append("Pale bars: where a figure could lie whatever the unscored claims' predictions had been.")
    if any(key in row and row[key] is None for row in rows for key in kind.keys):
        text.append("Undefined figures are not drawn.")
    return " ".join(part for part in text if part)


def _counts(rows: Sequence[Row]) -> str:
    counts = [row["n"] for row in rows if row.get("n") is not None and not is_total(row.get("dataset"))]
    if not counts:
        return ""
    low, high = min(counts), max(counts)
    each = f"n = {low:,}" if low == high else f"n = {low:,} to {high:,}"
    unscored = sum(row.get("n_unscored") or 0 for row in rows if not is_total(row.get("dataset")))
    return f"{each} behind each point" + (f"; {unscored:,} unscored in all." if unscored else ".")


# --- what is not an audit --------------------------------------------------------------------------------------------


def _given_section(position: int, given: Mapping[str, Any], run_dir: Path) -> Section:
    """A section that an engine contributed: {title, text, table: {columns, rows} or null, figure: "name.svg" or null}.

    ``text`` is a string or a list of paragraphs. The figure's files are in the run folder's ``figures``.
    """
    title = str(given.get("title") or "More")
    text = given.get("text") or []
    table, stem = given.get("table"), given.get("figure")
    tables = [plain_table(table["columns"], table["rows"], title)] if table else []
    pictures = []
    # Only a plain name of a file that is there: results are data, and must not make the report read other files.
    if stem and Path(stem).name == stem and (run_dir / "figures" / stem).is_file():
        pictures = [Picture(Path(stem).stem, title, title)]
    paragraphs = [text] if isinstance(text, str) else list(text)
    return Section(f"section-{position + 1}", title, paragraphs, pictures, tables, list(given.get("merged") or []))


def _calls(calls: Sequence[Row]) -> Section:
    table = result_table(calls, "Calls to language models. Cached calls cost nothing.", "tables/calls.csv")
    known = [row["cost"] for row in calls if row.get("cost") is not None]
    text = f"{count(sum(row.get('calls') or 0 for row in calls), 'call')}"
    text += f", {sum(row.get('cached_calls') or 0 for row in calls):,} answered from the cache"
    text += f"; cost {sum(known):.4g}" if known else "; cost unknown"
    missing = len(calls) - len(known)
    text += f" (unknown for {count(missing, 'evaluator')})." if known and missing else "."
    return Section("calls", "Calls and cost", [text], [], [table])


def _provenance(results: Mapping[str, Any]) -> Section:
    about = results["about"]
    tables = []
    if about.get("claims"):
        columns = ["dataset", "task", "claims", "labelled", "attributable", "systems", "responses"]
        keys = ["dataset", "task", *(f"n_{key}" for key in columns[2:])]
        tables.append(plain_table(columns, [[row.get(key) for key in keys] for row in about["claims"]], "Claims."))
    if about.get("evaluators"):
        columns = ["evaluator", "verdicts", "ok", "unparsed", "refused", "error", "skipped", "signature"]
        keys = ["name", *(f"n_{key}" for key in columns[1:-1]), "signature"]
        rows = [[row.get(key) for key in keys] for row in about["evaluators"]]
        tables.append(plain_table(columns, rows, "Evaluators: what became of their verdicts, and how they were made."))
    if about.get("inputs"):
        rows = [[row.get("path"), row.get("checksum")] for row in about["inputs"]]
        tables.append(plain_table(["file", "checksum"], rows, "Inputs."))
    parts = [f"factaudit {about.get('factaudit', '')}", f"seed {about.get('seed')}"]
    if about.get("replicates") is not None:
        parts.append(count(about["replicates"], "bootstrap replicate"))
    text = [", ".join(parts) + ".", f"Signature: {results['signature']}"]
    return Section("provenance", "Where the figures come from", text, [], tables)
