"""What FActScore, OpenFActScore and FActScore-turbo return, as JSON: decisions on the facts of each response, in order.

Files: ``*_factscore_output.json`` of shmsw25/FActScore, ``*_fs_*.json`` of OpenFActScore (Lage & Ostermann 2025), the
result of ``get_score`` of ntyazh/FActScore-turbo. None has topics or texts: the file that was scored does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from factaudit.datasets.checked_facts import CheckedFact, CheckedResponse, convert_checked_responses
from factaudit.datasets.source_files import (
    Conversion,
    DatasetSourceRow,
    expand_dataset_source_folders,
    read_dataset_source_json,
    read_dataset_source_rows,
)
from factaudit.errors import InputError, Problem


class ScoredFactResponse(DatasetSourceRow):
    """A line of the file that was scored."""

    topic: str | None = None
    output: str


class _FactDecision(BaseModel):
    atom: str
    is_supported: bool


class _FactScoreFile(BaseModel):
    decisions: list[list[_FactDecision] | None]
    passages: dict[str, Any] | None = None
    config_name: str | None = None


def convert_factscore_results(
    sources: Sequence[Path], *, responses: Path | None = None, system: str | None = None
) -> Conversion:
    """A fact is a claim, passages (of FActScore-turbo) the document; a file is a system where no ``system`` is given.

    ``responses``: the JSONL that was scored, with topic and output, line by line as the decisions. A response without
    decisions abstained.
    """
    paths = list(expand_dataset_source_folders(sources, "*.json"))
    texts = [] if responses is None else read_dataset_source_rows(responses, ScoredFactResponse, is_counted=True)
    found, names = [], set()
    for path in paths:
        content: _FactScoreFile = read_dataset_source_json(path, _FactScoreFile)
        if responses is not None and len(texts) != len(content.decisions):
            message = f"expected decisions on each of {len(texts)} responses of {responses.name}"
            raise InputError(str(path), [Problem(f"{message}, found {len(content.decisions)}")])
        names.add(content.config_name or "FActScore")
        for number, decisions in enumerate(content.decisions):
            text = texts[number] if texts else None
            found.append(
                CheckedResponse(
                    f"factscore:{path.stem}:{number}",
                    [_read_fact_decision(one, content.passages or {}) for one in decisions or ()],
                    "FActScore",
                    system or path.stem,
                    None if text is None else text.topic,
                    None if text is None else text.output,
                    decisions is None,
                )
            )
    notes = [] if responses is not None else ["no topics and no texts (option responses)"]
    return convert_checked_responses(found, names.pop() if len(names) == 1 else "FActScore", "factscore-results", notes)


def _read_fact_decision(decision: _FactDecision, passages: Mapping[str, Any]) -> CheckedFact:
    shown = passages.get(decision.atom.strip())
    texts = [str(one.get("text") or "") for one in shown if isinstance(one, Mapping)] if isinstance(shown, list) else []
    doc = "\n\n".join(text.replace("<s>", "").replace("</s>", "") for text in texts if text) or None
    return CheckedFact(decision.atom, int(decision.is_supported), doc=doc)
