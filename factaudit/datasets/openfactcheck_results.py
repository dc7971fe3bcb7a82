"""OpenFactCheck's results (Wang et al. 2024): the ``.jsonl`` that its pipeline writes per response."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from factaudit.datasets.checked_facts import CheckedFact, CheckedResponse, convert_checked_responses
from factaudit.datasets.source_files import (
    Conversion,
    DatasetSourceRow,
    expand_dataset_source_folders,
    read_dataset_source_rows,
)
from factaudit.tables.vocabulary import parse_label_word


class OpenFactCheckSolverStep(DatasetSourceRow):
    """What the state was after a solver: ``state`` has the response, its claims, their evidence and the verdicts."""

    idx: int
    solver: str
    state: dict[str, Any]


def convert_openfactcheck_results(sources: Sequence[Path], *, system: str | None = None) -> Conversion:
    """A claim is a claim, the verifier an evaluator, the evidence the document; a file is a response.

    Of its lines the last is read: a response whose pipeline broke off has claims without a verdict, which are unscored.
    """
    responses, names = [], set()
    for path in expand_dataset_source_folders(sources, "*.jsonl"):
        steps = sorted(read_dataset_source_rows(path, OpenFactCheckSolverStep), key=lambda step: step.idx)
        state = steps[-1].state
        details = state.get("detail") or state.get("log") or []
        verdicts = {str(one["claim"]): one for one in details if isinstance(one, Mapping) and "claim" in one}
        if verdicts:
            names.add(steps[-1].solver)
        claims = state.get("claims_with_evidences") or state.get("claims") or verdicts
        facts = [_read_openfactcheck_fact(str(claim), verdicts.get(str(claim)), claims) for claim in claims]
        question = state.get("question")
        responses.append(
            CheckedResponse(
                f"openfactcheck:{path.stem}",
                facts,
                "OpenFactCheck",
                system,
                None if question is None else str(question),
                str(state.get("response") or "") or None,
            )
        )
    evaluator = names.pop() if len(names) == 1 else "OpenFactCheck"
    return convert_checked_responses(responses, evaluator, "openfactcheck")


def _read_openfactcheck_fact(claim: str, verdict: Mapping[str, Any] | None, claims: Any) -> CheckedFact:
    evidence = (verdict or {}).get("evidences", (verdict or {}).get("evidence"))
    if evidence is None and isinstance(claims, Mapping):
        evidence = claims.get(claim)
    doc = "\n\n".join(_list_evidence_texts(evidence)) or None
    if verdict is None:
        return CheckedFact(claim, None, "error", doc=doc, raw="no verifier has judged this claim")
    said = verdict.get("factuality", verdict.get("label"))
    prediction = None if said is None else parse_label_word(said)
    return CheckedFact(claim, prediction, "ok" if prediction is not None else "unparsed", doc=doc, raw=str(said))


def _list_evidence_texts(evidence: Any) -> list[str]:
    """All texts of evidence, in order: a text, a list of them, or pairs of a query and a text."""
    if isinstance(evidence, str):
        return [evidence] if evidence.strip() else []
    inner = evidence.values() if isinstance(evidence, Mapping) else evidence
    return [text for one in inner for text in _list_evidence_texts(one)] if isinstance(evidence, Mapping | list) else []
