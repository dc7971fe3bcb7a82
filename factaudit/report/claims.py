"""The claims behind the figures, to look at: what the report holds of them, and what `factaudit view` is asked for."""

from __future__ import annotations

import base64
import gzip
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import numpy as np
import pandas as pd

from factaudit.audit import declared
from factaudit.audit.core.judged import MISSING, Judged
from factaudit.tables import STATUSES, read_run, records
from factaudit.tables.annotations import read_annotations

#: Of the claims that a report holds: how many, and of how many compressed bytes together.
MAX_CLAIMS = 2_000
MAX_BYTES = 250_000
#: Characters of a text that a report holds; the whole is in the run folder.
MAX_TEXT, MAX_RAW = 6_000, 600
#: What may be asked for: claims judged wrongly (in either way), rightly, not at all, or differently by evaluators.
KINDS = {
    "wrong": "judged wrongly",
    "passed": "unattributable, and passed",
    "rejected": "attributable, and rejected",
    "right": "judged rightly",
    "unscored": "without a verdict",
    "disagree": "evaluators disagree",
}


#: What is shown of an annotation.
_OF_PEOPLE = ("annotator", "label", "grade", "start", "end", "note")


@dataclass(frozen=True)
class Asked:
    """A question to the claims; "" asks for nothing in particular. ``text``: a part of the claim or of its id."""

    dataset: str = ""
    system: str = ""
    evaluator: str = ""
    kind: str = ""
    text: str = ""


class Claims:
    """The claims of a run with all that was said of them."""

    def __init__(self, judged: Judged, verdicts: pd.DataFrame, annotations: pd.DataFrame | None = None) -> None:
        """verdicts: at least those of them that have more than `judged` does (`telling_more`)."""
        self.judged = judged
        self.table = self.judged.claims
        self.evaluators = list(self.judged.evaluators)
        # Arrays by column: a row of a table of many types is slow to take.
        self._cells = {name: self.table[name].array for name in self.table.columns}
        first = verdicts[verdicts["repeat"] == 0]
        self._raw = _by_claim(first, "raw")
        self._chunks = _by_claim(first, "chunk_scores")
        self._people: dict[str, list[dict[str, Any]]] = {}
        for said in records(annotations) if annotations is not None else ():
            shown = {key: said[key] for key in _OF_PEOPLE if said.get(key) is not None}
            self._people.setdefault(said["claim_id"], []).append(shown)

    @classmethod
    def of(cls, run_dir: Path) -> Claims:
        """The claims of a run folder. Raises `InputError` where it has none."""
        people = run_dir / "annotations.parquet"
        claims, verdicts = read_run(run_dir)
        said = read_annotations(people) if people.is_file() else None
        return cls(Judged.join(claims, verdicts), telling_more(verdicts), said)

    @cached_property
    def kinds(self) -> dict[str, np.ndarray]:
        """bool (E, n) of each of `KINDS`; ``disagree`` is the same for all evaluators."""
        said, label = self.judged.prediction, self.judged.label[None]
        known = (said != MISSING) & (label != MISSING)
        both = ((said == 1).any(0) & (said == 0).any(0))[None]
        return {
            "wrong": known & (said != label),
            "passed": known & (said == 1) & (label == 0),
            "rejected": known & (said == 0) & (label == 1),
            "right": known & (said == label),
            "unscored": said == MISSING,
            "disagree": np.broadcast_to(both, said.shape),
        }

    @cached_property
    def telling(self) -> np.ndarray:
        """float (E, n): how telling a claim is of an evaluator: sure errors, then disagreements, then the rest."""
        score = np.nan_to_num(np.abs(self.judged.score - 0.5), nan=0.25)
        wrong, unscored = self.kinds["wrong"], self.kinds["unscored"]
        return np.where(wrong, 2 + score, np.where(unscored, 1.5, self.kinds["disagree"] + 0.5 - score))

    def find(self, asked: Asked, first: int = 0, size: int = 20) -> tuple[int, list[int]]:
        """How many claims are as asked, and the rows of ``size`` of them from the ``first`` on; telling ones first."""
        inside = np.ones(len(self.table), dtype=bool)
        for column, wanted in (("dataset", asked.dataset), ("system", asked.system)):
            if wanted:
                inside &= (self.table[column] == wanted).fillna(False).to_numpy(dtype=bool)
        if asked.text:
            texts = self.table["claim"].str.cat(self.table["claim_id"], sep="\n")
            inside &= texts.str.contains(asked.text, case=False, regex=False).fillna(False).to_numpy(dtype=bool)
        of = [self.evaluators.index(asked.evaluator)] if asked.evaluator in self.evaluators else slice(None)
        if asked.kind in self.kinds:
            inside &= self.kinds[asked.kind][of].any(0)
        rows = np.flatnonzero(inside)
        order = np.argsort(-self.telling[of][:, rows].max(0, initial=0), kind="stable")
        return len(rows), rows[order][first : first + size].tolist()

    def row(self, at: int, doc: Any = None) -> dict[str, Any]:
        """A claim as the page shows it. ``doc``: what stands for its document (by default the text)."""
        cells = self._cells
        claim_id = cells["claim_id"][at]
        said = []
        for number, name in enumerate(self.evaluators):
            prediction, status = int(self.judged.prediction[number, at]), int(self.judged.status[number, at])
            if status == MISSING and prediction == MISSING:
                continue
            score = self.judged.score[number, at]
            chunks = self._chunks.get((claim_id, name))
            verdict: dict[str, Any] = {"e": number, "p": None if prediction == MISSING else prediction}
            verdict |= {} if np.isnan(score) else {"s": round(float(score), 4)}
            verdict |= {"st": STATUSES[status]} if STATUSES[status] != "ok" else {}
            verdict |= {"raw": raw} if (raw := self._raw.get((claim_id, name))) else {}
            if chunks is not None:  # some chunks may have no score
                verdict["chunks"] = [None if pd.isna(one) else round(float(one), 3) for one in chunks]
            said.append(verdict)
        label = int(self.judged.label[at])
        found = {"id": claim_id, "dataset": cells["dataset"][at], "claim": _text(cells["claim"][at]), "said": said}
        found |= {"label": None if label == MISSING else label, "doc": _text(cells["doc"][at]) if doc is None else doc}
        found |= {"people": people} if (people := self._people.get(claim_id)) else {}
        for column in ("system", "response_id", "topic", "error_type"):
            if column in cells and not pd.isna(cells[column][at]):
                found[column] = str(cells[column][at])
        return found

    def about(self) -> dict[str, Any]:
        """What the page's filters offer."""
        return {
            "evaluators": self.evaluators,
            "datasets": sorted(self.table["dataset"].dropna().unique().tolist()),
            "systems": sorted(self.table["system"].dropna().unique().tolist()),
            "total": len(self.table),
        }

    def packed(self) -> str:
        """What a report holds: the most telling claims of each data set and evaluator in turn, gzip in base64.

        {"evaluators", "datasets", "systems", "total", "docs": [text], "claims": [row, ``doc`` being a number]}; long
        texts are cut off, which their end says. No more than `MAX_CLAIMS`, and as many as `MAX_BYTES` hold.
        """
        chosen = self._chosen(MAX_CLAIMS)
        while True:
            packed = _packed(self._page(chosen))
            if len(packed) <= MAX_BYTES or len(chosen) <= 20:
                return packed
            chosen = chosen[: max(20, int(len(chosen) * 0.95 * MAX_BYTES / len(packed)))]

    def _chosen(self, size: int) -> Sequence[int]:
        datasets, names = self.judged.datasets
        queues = [
            rows[np.argsort(-self.telling[at][rows], kind="stable")]
            for code in range(len(names))
            for rows in [np.flatnonzero(datasets == code)]
            for at in range(len(self.evaluators))
        ]
        found: dict[int, None] = {}
        for place in range(max(map(len, queues), default=0)):
            found |= dict.fromkeys(int(queue[place]) for queue in queues if place < len(queue))
            if len(found) >= size:
                break
        return list(found)[:size]

    def _page(self, chosen: Sequence[int]) -> dict[str, Any]:
        docs: dict[str, int] = {}
        rows = []
        for at in chosen:
            text = self._cells["doc"][at]
            row = self.row(at, doc=-1 if pd.isna(text) else docs.setdefault(_cut(text, MAX_TEXT), len(docs)))
            row["claim"] = None if row["claim"] is None else _cut(row["claim"], MAX_TEXT)
            for said in row["said"]:
                if "raw" in said:
                    said["raw"] = _cut(said["raw"], MAX_RAW)
            if "people" in row:
                row["people"] = [
                    {key: _cut(value, MAX_RAW) if isinstance(value, str) else value for key, value in said.items()}
                    for said in row["people"]
                ]
            rows.append(row)
        return {**self.about(), "docs": list(docs), "claims": rows}


def link(finding: Mapping[str, Any], about: Mapping[str, Any]) -> str | None:
    """What to ask for the claims behind a finding, as a query; None where it is of no evaluator or data set.

    about: as `Claims.about` gives it.
    """
    asked = {key: finding.get(key) for key in ("evaluator", "dataset") if finding.get(key) in about[f"{key}s"]}
    kinds = {check.id: check.claims for audit in declared().values() for check in audit.checks}
    return urlencode({**asked, "kind": kinds.get(str(finding.get("id")), "wrong")}) if asked else None


def telling_more(verdicts: pd.DataFrame) -> pd.DataFrame:
    """The verdicts that have a reply, or scores of chunks: often none, and then there is nothing to hold."""
    return verdicts[verdicts["raw"].notna() | verdicts["chunk_scores"].notna()]


def _by_claim(verdicts: pd.DataFrame, column: str) -> dict[tuple[str, str], Any]:
    """What verdicts have in a column, by claim and evaluator."""
    known = verdicts[verdicts[column].notna()]
    return dict(zip(zip(known["claim_id"], known["evaluator"], strict=True), known[column], strict=True))


def _text(value: Any) -> str | None:
    return None if pd.isna(value) else str(value)


def _cut(text: str, most: int) -> str:
    return text if len(text) <= most else text[:most] + f" … [{len(text) - most:,} more characters in the run folder]"


def _packed(value: Any) -> str:
    data = json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode("utf-8", "replace")
    return base64.b64encode(gzip.compress(data, 9, mtime=0)).decode("ascii")
