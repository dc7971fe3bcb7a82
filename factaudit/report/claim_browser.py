"""Which claims are behind the figures? The claims as a report and `factaudit view` show them.

The script ``claims.js`` filters and sorts them in the browser. A report holds only the claims that
tell the reader most; the page of `factaudit view` holds all of them.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from factaudit.arrays.judgements import MISSING, Judgements
from factaudit.audit import load_all_audits
from factaudit.tables import (
    STATUSES,
    find_claim_positions,
    list_plain_rows,
    read_run_tables,
)
from factaudit.tables.annotations import read_annotations
from factaudit.tables.schema import is_text_placeholder

#: How many claims a report may hold, and how many characters they may have in total.
MAX_REPORT_CLAIMS = 2_000
MAX_REPORT_CHARACTERS = 450_000
#: After how many characters a report cuts off a text, and a reply. The run folder has all of it.
_MAX_TEXT_LENGTH, _MAX_REPLY_LENGTH = 6_000, 600
#: The columns shown of an annotation, and those of a claim besides its texts.
_ANNOTATION_FIELDS = ("annotator", "label", "grade", "start", "end", "note")
_CLAIM_FIELDS = ("dataset", "system", "entity", "response_id", "topic", "error_type")


class ClaimBrowser:
    """The claims of a run, with their labels, annotations and verdicts."""

    def __init__(
        self, judged: Judgements, verdicts: pd.DataFrame, annotations: pd.DataFrame | None = None
    ) -> None:
        """verdicts: at least the verdicts that hold more than `judged` does (see
        `select_detailed_verdicts`)."""
        self.judged, self.table = judged, judged.claims
        # One array per column, because taking a row from a table with columns of many types is
        # slow.
        self._cells = {name: self.table[name].array for name in self.table.columns}
        first = verdicts[verdicts["repeat"] == 0]
        keys = list(zip(first["claim_id"], first["evaluator"], strict=True))
        self._details = dict(
            zip(keys, zip(first["raw"], first["chunk_scores"], strict=True), strict=True)
        )
        self._people: dict[str, list[dict[str, Any]]] = {}
        for said in list_plain_rows(annotations) if annotations is not None else ():
            shown = {key: said[key] for key in _ANNOTATION_FIELDS if said.get(key) is not None}
            self._people.setdefault(said["claim_id"], []).append(shown)
        #: For each claim that has variants: their rows in `Judgements.variants`.
        self._variants: dict[int, list[int]] = {}
        if judged.variants is not None:
            originals = find_claim_positions(self.table, judged.variants.claims["variant_of"])
            for row, original in enumerate(originals.tolist()):
                self._variants.setdefault(original, []).append(row)

    @classmethod
    def read_run_folder(cls, run_dir: Path) -> ClaimBrowser:
        """The claims of a run folder. Raises `InputError` if the folder has none."""
        people = run_dir / "annotations.parquet"
        claims, verdicts = read_run_tables(run_dir)
        said = read_annotations(people) if people.is_file() else None
        return cls(Judgements.join(claims, verdicts), select_detailed_verdicts(verdicts), said)

    @property
    def has_text(self) -> bool:
        """Whether at least one claim has a text that can be read."""
        return any(not is_text_placeholder(str(text)) for text in self.table["claim"].dropna())

    @property
    def row_explanation(self) -> str:
        """What one row is, in runs whose figures count something else: with D-FActScore, a row is a
        fact beside one person's page."""
        of_people = self.table["entity"].notna().to_numpy()
        if not self.table["fact_id"][of_people].dropna().duplicated().any():
            return ""
        text = (
            "Each row is a fact beside one of the people with this name. The verdict says whether"
            " this person's page supports the fact."
        )
        if (self.judged.label[of_people] != MISSING).any():
            text += (
                " Only the row of the person whom the text describes has the fact's label, so a"
                " wrong verdict here is not an error of FActScore or D-FActScore."
            )
        return text

    def list_filter_choices(self) -> dict[str, Any]:
        """The choices that the page's filters offer."""
        return {
            "evaluators": list(self.judged.evaluators),
            "datasets": sorted(self.table["dataset"].dropna().unique().tolist()),
            "systems": sorted(self.table["system"].dropna().unique().tolist()),
            "total": len(self.table),
        }

    def make_page_content(
        self, n_claims: int, n_characters: float = float("inf")
    ) -> dict[str, Any]:
        """The claims that tell the reader most, from each data set in turn, in the form that the
        page reads.

        The result is `list_filter_choices` with two more keys: ``docs`` (the texts of documents)
        and ``claims`` (rows whose ``doc`` is an index into ``docs``, or -1). n_characters: the
        limit for all texts together; with a limit, long texts are cut off and end with a remark
        that says so.
        """
        is_cut = n_characters < float("inf")
        docs: dict[str, int] = {}
        rows: list[dict[str, Any]] = []
        for at in self._order_by_telling()[:n_claims]:
            row = self._make_claim_row(at, is_cut)
            text = self._cells["doc"][at]
            if pd.isna(text):
                row["doc"] = -1
            else:
                text = _cut(text, _MAX_TEXT_LENGTH) if is_cut else text
                n_characters -= 0 if text in docs else len(text)
                row["doc"] = docs.setdefault(text, len(docs))
            n_characters -= len(str(row))
            rows.append(row)
            if n_characters < 0:
                break
        return {**self.list_filter_choices(), "docs": list(docs), "claims": rows}

    def pack_claims(self, n_claims: int, n_characters: float = float("inf")) -> str:
        """`make_page_content`, packed with gzip and base64 for the page. Half of a surrogate pair
        becomes a question mark."""
        content = self.make_page_content(n_claims, n_characters)
        text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
        return base64.b64encode(gzip.compress(text.encode("utf-8", "replace"), 9, mtime=0)).decode(
            "ascii"
        )

    def _order_by_telling(self) -> list[int]:
        """The claims of each data set in turn: first those on which an evaluator is confidently
        wrong, then those on which annotators or evaluators disagree, then the rest."""
        said, label = self.judged.prediction, self.judged.label
        is_disputed = (said == 1).any(0) & (said == 0).any(0)
        labels = (
            {one.get("label") for one in self._people.get(claim, ())}
            for claim in self._cells["claim_id"]
        )
        telling = np.fromiter(({0, 1} <= given for given in labels), float, len(self.table))
        # All of them at once would take much memory.
        for prediction, score in zip(said, self.judged.score, strict=True):
            distance = np.nan_to_num(np.abs(score - 0.5), nan=0.25)
            is_wrong = (prediction != MISSING) & (label != MISSING) & (prediction != label)
            rest = np.where(prediction == MISSING, 1.5, is_disputed + 0.5 - distance)
            telling = np.maximum(telling, np.where(is_wrong, 2 + distance, rest))
        order = pd.Series(np.argsort(-telling, kind="stable"))
        turn = order.groupby(self.judged.dataset_codes[order]).cumcount()
        return order[np.argsort(turn, kind="stable")].tolist()

    def _make_claim_row(self, at: int, is_cut: bool) -> dict[str, Any]:
        """A claim as the page shows it, without its document."""
        longest = (_MAX_TEXT_LENGTH, _MAX_REPLY_LENGTH) if is_cut else (None, None)
        values = {
            name: self._cells[name][at]
            for name in ("claim_id", "claim", *_CLAIM_FIELDS)
            if name in self._cells
        }
        said = _list_verdicts(
            self.judged.prediction[:, at], self.judged.score[:, at], self.judged.status[:, at]
        )
        for verdict in said:
            key = values["claim_id"], self.judged.evaluators[verdict["e"]]
            raw, chunks = self._details.get(key, (None, None))
            if isinstance(raw, str):
                verdict["raw"] = _cut(raw, longest[1])
            if isinstance(chunks, list | tuple | np.ndarray):
                verdict["chunks"] = [
                    None if pd.isna(one) else round(float(one), 3) for one in chunks
                ]
        label = int(self.judged.label[at])
        row: dict[str, Any] = {
            name: str(values[name]) for name in _CLAIM_FIELDS if not pd.isna(values.get(name))
        }
        row |= {
            "id": values["claim_id"],
            "label": None if label == MISSING else label,
            "said": said,
        }
        row["claim"] = None if pd.isna(values["claim"]) else _cut(values["claim"], longest[0])
        if values["claim_id"] in self._people:
            row["people"] = [
                {
                    key: _cut(value, longest[1]) if isinstance(value, str) else value
                    for key, value in one.items()
                }
                for one in self._people[values["claim_id"]]
            ]
        if at in self._variants:
            row["variants"] = [
                self._make_variant_row(variant, at, longest[0]) for variant in self._variants[at]
            ]
        return row

    def _make_variant_row(self, variant: int, at: int, longest: int | None) -> dict[str, Any]:
        """A variant of a claim and what each evaluator said of it. ``doc`` is set only if the
        variant has another document."""
        variants = self.judged.variants
        assert variants is not None
        values = variants.claims.iloc[variant]
        row: dict[str, Any] = {key: str(values[key]) for key in ("kind", "expected")}
        row |= {"id": values["claim_id"], "claim": _cut(str(values["claim"]), longest)}
        if not pd.isna(values["doc"]) and values["doc"] != self._cells["doc"][at]:
            row["doc"] = _cut(values["doc"], longest)
        row["said"] = _list_verdicts(variants.prediction[:, variant], variants.score[:, variant])
        return row


def _list_verdicts(
    predictions: np.ndarray, scores: np.ndarray, statuses: np.ndarray | None = None
) -> list[dict[str, Any]]:
    """What each evaluator (``e``, by its place) said of a claim: prediction ``p``, score ``s``,
    status ``st``."""
    found = []
    for place, (prediction, score) in enumerate(zip(predictions, scores, strict=True)):
        status = MISSING if statuses is None else int(statuses[place])
        if prediction == MISSING and status == MISSING:
            continue
        verdict: dict[str, Any] = {
            "e": place,
            "p": None if prediction == MISSING else int(prediction),
        }
        if not np.isnan(score):
            verdict["s"] = round(float(score), 4)
        if status != MISSING and STATUSES[status] != "ok":
            verdict["st"] = STATUSES[status]
        found.append(verdict)
    return found


def make_claim_browser_link(
    finding: Mapping[str, Any], filter_choices: Mapping[str, Any]
) -> str | None:
    """The query that shows the claims behind a finding; None if the finding is not about an
    evaluator or a data set. filter_choices: as `ClaimBrowser.list_filter_choices` returns them."""
    named = str(finding.get("evaluator") or "")
    known = set(filter_choices["evaluators"])
    # With D-FActScore, verdicts are those of a verifier.
    if named and named not in known and not set(named.split(" / ")) <= known:
        return None
    asked = {
        key: finding.get(key)
        for key in ("evaluator", "dataset")
        if finding.get(key) in filter_choices[f"{key}s"]
    }
    kinds = {
        check.id: check.claims for audit in load_all_audits().values() for check in audit.checks
    }
    return (
        urlencode(asked | {"kind": kinds.get(str(finding.get("id")), "wrong")}) if asked else None
    )


def select_detailed_verdicts(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The verdicts that come with a reply or with scores of chunks. Often there are none, and then
    nothing needs to be kept."""
    return verdicts[verdicts["raw"].notna() | verdicts["chunk_scores"].notna()]


def _cut(text: str, longest: int | None) -> str:
    if longest is None or len(text) <= longest:
        return text
    return f"{text[:longest]} … [{len(text) - longest:,} more characters in the run folder]"
