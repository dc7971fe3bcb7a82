"""Which claims are behind the figures? What a report and `factaudit view` show of them.

``claims.js`` filters and sorts them in the browser; a report holds the most telling ones, the page of `factaudit view`
all of them.
"""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from factaudit.arrays.judgements import MISSING, Judgements
from factaudit.audit import load_all_audits
from factaudit.tables import STATUSES, find_claim_positions_in_table, list_plain_rows, read_run_tables
from factaudit.tables.annotations import read_annotations
from factaudit.tables.schema import is_text_placeholder

#: Of the claims that a report holds: how many, and of how many compressed bytes together.
MAX_REPORT_CLAIMS = 2_000
MAX_REPORT_CLAIM_BYTES = 250_000
#: Characters of a text that a report holds; the whole is in the run folder.
MAX_TEXT_LENGTH, MAX_REPLY_LENGTH = 6_000, 600
#: What is shown of an annotation.
_ANNOTATION_FIELDS = ("annotator", "label", "grade", "start", "end", "note")


class ClaimBrowser:
    """The claims of a run with all that was said of them."""

    def __init__(self, judged: Judgements, verdicts: pd.DataFrame, annotations: pd.DataFrame | None = None) -> None:
        """verdicts: at least those of them that have more than `judged` does (`select_detailed_verdicts`)."""
        self.judged = judged
        self.table = self.judged.claims
        self.evaluators = list(self.judged.evaluators)
        # Arrays by column: a row of a table of many types is slow to take.
        self._cells = {name: self.table[name].array for name in self.table.columns}
        first = verdicts[verdicts["repeat"] == 0]
        self._raw = _map_column_by_claim(first, "raw")
        self._chunks = _map_column_by_claim(first, "chunk_scores")
        self._variants = self._group_variants_by_claim()
        self._people: dict[str, list[dict[str, Any]]] = {}
        for said in list_plain_rows(annotations) if annotations is not None else ():
            shown = {key: said[key] for key in _ANNOTATION_FIELDS if said.get(key) is not None}
            self._people.setdefault(said["claim_id"], []).append(shown)

    @classmethod
    def read_run_folder(cls, run_dir: Path) -> ClaimBrowser:
        """The claims of a run folder. Raises `InputError` where it has none."""
        people = run_dir / "annotations.parquet"
        claims, verdicts = read_run_tables(run_dir)
        said = read_annotations(people) if people.is_file() else None
        return cls(Judgements.join(claims, verdicts), select_detailed_verdicts(verdicts), said)

    def _group_variants_by_claim(self) -> dict[int, list[int]]:
        """Of each claim that has variants their rows in `Judgements.variants`."""
        found: dict[int, list[int]] = {}
        if (variants := self.judged.variants) is not None:
            originals = find_claim_positions_in_table(self.table, variants.claims["variant_of"])
            for row, original in enumerate(originals.tolist()):
                found.setdefault(original, []).append(row)
        return found

    @cached_property
    def has_text(self) -> bool:
        """Whether there is a claim to read."""
        return any(not is_text_placeholder(str(text)) for text in self.table["claim"].dropna())

    @property
    def row_explanation(self) -> str:
        """What a row is where the figures of the report are of others: a fact stands beside each person's page."""
        of_people = self.table["entity"].notna().to_numpy()
        if not self.table["fact_id"][of_people].dropna().duplicated().any():
            return ""
        text = "A row is a fact and one person of the name, with the verifier's verdict."
        if (self.judged.label[of_people] != MISSING).any():
            text += " Only the row of the person told of has the fact's label: what the verifier gets wrong is not "
            text += "what FActScore and D-FActScore get wrong."
        return text

    def score_telling_claims(self, at: int) -> np.ndarray:
        """float64 (n,): how telling each claim is of an evaluator: sure errors, then disagreements, then the rest.

        at: the evaluator's place. One at a time, as all of them take more memory than all the audits.
        """
        said, label = self.judged.prediction, self.judged.label
        score = np.nan_to_num(np.abs(self.judged.score[at] - 0.5), nan=0.25)
        is_disputed = (said == 1).any(0) & (said == 0).any(0)
        rest = np.where(said[at] == MISSING, 1.5, is_disputed + 0.5 - score)
        is_wrong = (said[at] != MISSING) & (label != MISSING) & (said[at] != label)
        return np.where(is_wrong, 2 + score, rest)

    def make_claim_row(self, position: int, document: Any = None) -> dict[str, Any]:
        """A claim as the page shows it. ``document``: what stands for its document (by default the text)."""
        cells = self._cells
        claim_id = cells["claim_id"][position]
        said = []
        for number, name in enumerate(self.evaluators):
            prediction, status = (
                int(self.judged.prediction[number, position]),
                int(self.judged.status[number, position]),
            )
            if status == MISSING and prediction == MISSING:
                continue
            score = self.judged.score[number, position]
            chunks = self._chunks.get((claim_id, name))
            verdict: dict[str, Any] = {"e": number, "p": None if prediction == MISSING else prediction}
            verdict |= {} if np.isnan(score) else {"s": round(float(score), 4)}
            verdict |= {"st": STATUSES[status]} if STATUSES[status] != "ok" else {}
            verdict |= {"raw": raw} if (raw := self._raw.get((claim_id, name))) else {}
            if chunks is not None:  # some chunks may have no score
                verdict["chunks"] = [None if pd.isna(one) else round(float(one), 3) for one in chunks]
            said.append(verdict)
        label = int(self.judged.label[position])
        found = {
            "id": claim_id,
            "dataset": cells["dataset"][position],
            "claim": _text_or_none(cells["claim"][position]),
            "said": said,
        }
        found |= {
            "label": None if label == MISSING else label,
            "doc": _text_or_none(cells["doc"][position]) if document is None else document,
        }
        found |= {"people": [dict(one) for one in people]} if (people := self._people.get(claim_id)) else {}
        if position in self._variants:
            found["variants"] = [
                self._make_variant_row(row, cells["doc"][position]) for row in self._variants[position]
            ]
        for column in ("system", "response_id", "topic", "error_type"):
            if column in cells and not pd.isna(cells[column][position]):
                found[column] = str(cells[column][position])
        return found

    def _make_variant_row(self, row: int, document: Any) -> dict[str, Any]:
        """A variant beside its claim: ``doc`` only where it is another document; what each evaluator said."""
        variants = self.judged.variants
        assert variants is not None
        values = variants.claims.iloc[row]
        found = {key: str(values[key]) for key in ("kind", "expected", "claim")} | {"id": values["claim_id"]}
        if not pd.isna(values["doc"]) and values["doc"] != document:
            found["doc"] = values["doc"]
        found["said"] = [
            {"e": number, "p": int(prediction)} | ({} if np.isnan(score) else {"s": round(float(score), 4)})
            for number, (prediction, score) in enumerate(
                zip(variants.prediction[:, row], variants.score[:, row], strict=True)
            )
            if prediction != MISSING
        ]
        return found

    def list_filter_choices(self) -> dict[str, Any]:
        """What the page's filters offer."""
        return {
            "evaluators": self.evaluators,
            "datasets": sorted(self.table["dataset"].dropna().unique().tolist()),
            "systems": sorted(self.table["system"].dropna().unique().tolist()),
            "total": len(self.table),
        }

    def pack_telling_claims(self) -> str:
        """What a report holds: `make_page_content` of the most telling claims, gzip in base64.

        Long texts are cut off, which their end says. No more than `MAX_REPORT_CLAIMS`, and as many as
        `MAX_REPORT_CLAIM_BYTES` hold.
        """
        size = MAX_REPORT_CLAIMS
        while True:
            content = self.make_page_content(size, is_cut=True)
            packed = base64.b64encode(gzip.compress(encode_page_content(content), 9, mtime=0)).decode("ascii")
            n_claims = len(content["claims"])
            if len(packed) <= MAX_REPORT_CLAIM_BYTES or n_claims <= 20:
                return packed
            size = max(20, int(n_claims * 0.95 * MAX_REPORT_CLAIM_BYTES / len(packed)))

    def _choose_telling_claims(self, size: int) -> Sequence[int]:
        """The most telling claims of each data set in turn, by the evaluator that each is most telling of."""
        telling = np.zeros(len(self.table))
        for at in range(len(self.evaluators)):
            telling = np.maximum(telling, self.score_telling_claims(at))
        order = pd.Series(np.argsort(-telling, kind="stable"))
        turn = order.groupby(self.judged.dataset_codes[order]).cumcount()
        return order[np.argsort(turn, kind="stable")].tolist()[:size]

    def make_page_content(self, n_claims: int, *, is_cut: bool = False) -> dict[str, Any]:
        """The most telling claims of each data set in turn, as the page reads them.

        `list_filter_choices` with ``docs`` (texts) and ``claims`` (rows whose ``doc`` is a place among these, or -1).
        is_cut: long texts are cut off, which their end says.
        """

        def cut(text: str, max_length: int) -> str:
            return _cut_claim_browser_text(text, max_length) if is_cut else text

        docs: dict[str, int] = {}
        rows = []
        for at in self._choose_telling_claims(n_claims):
            text = self._cells["doc"][at]
            place = -1 if pd.isna(text) else docs.setdefault(cut(text, MAX_TEXT_LENGTH), len(docs))
            row = self.make_claim_row(at, document=place)
            row["claim"] = None if row["claim"] is None else cut(row["claim"], MAX_TEXT_LENGTH)
            for said in row["said"]:
                if "raw" in said:
                    said["raw"] = cut(said["raw"], MAX_REPLY_LENGTH)
            for variant in row.get("variants", ()):
                for key in ("claim", "doc") if "doc" in variant else ("claim",):
                    variant[key] = cut(variant[key], MAX_TEXT_LENGTH)
            for said in row.get("people", ()):
                said |= {key: cut(value, MAX_REPLY_LENGTH) for key, value in said.items() if isinstance(value, str)}
            rows.append(row)
        return {**self.list_filter_choices(), "docs": list(docs), "claims": rows}


def make_claim_browser_link(finding: Mapping[str, Any], filter_choices: Mapping[str, Any]) -> str | None:
    """What to ask for the claims behind a finding, as a query; None where it is of no evaluator or data set.

    filter_choices: as `ClaimBrowser.list_filter_choices` gives it.
    """
    named = str(finding.get("evaluator") or "")
    known = set(filter_choices["evaluators"])
    if named and named not in known and not set(named.split(" / ")) <= known:  # with D-FActScore they are a verifier's
        return None
    asked = {key: finding.get(key) for key in ("evaluator", "dataset") if finding.get(key) in filter_choices[f"{key}s"]}
    kinds = {check.id: check.claims for audit in load_all_audits().values() for check in audit.checks}
    return urlencode(asked | {"kind": kinds.get(str(finding.get("id")), "wrong")}) if asked else None


def select_detailed_verdicts(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The verdicts that have a reply, or scores of chunks: often none, and then there is nothing to hold."""
    return verdicts[verdicts["raw"].notna() | verdicts["chunk_scores"].notna()]


def _map_column_by_claim(verdicts: pd.DataFrame, column: str) -> dict[tuple[str, str], Any]:
    known = verdicts[verdicts[column].notna()]
    return dict(zip(zip(known["claim_id"], known["evaluator"], strict=True), known[column], strict=True))


def _text_or_none(value: Any) -> str | None:
    return None if pd.isna(value) else str(value)


def _cut_claim_browser_text(text: str, max_length: int) -> str:
    cut = len(text) - max_length
    return text if cut <= 0 else f"{text[:max_length]} … [{cut:,} more characters in the run folder]"


def encode_page_content(content: Mapping[str, Any]) -> bytes:
    """JSON of what `ClaimBrowser.make_page_content` makes; half of a surrogate pair becomes a question mark."""
    text = json.dumps(content, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    return text.encode("utf-8", "replace")
