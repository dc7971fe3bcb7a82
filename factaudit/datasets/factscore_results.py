"""What FActScore, OpenFActScore and FActScore-turbo return, as JSON: decisions on the facts of each
response, in order.

Files: ``*_factscore_output.json`` of shmsw25/FActScore, ``*_fs_*.json`` of OpenFActScore (Lage &
Ostermann 2025), the result of ``get_score`` of ntyazh/FActScore-turbo. None has topics or texts:
the file that was scored does.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel, Field

from factaudit.datasets.checked_facts import make_fact_claims
from factaudit.datasets.conversion import Conversion
from factaudit.datasets.source_files import SourceRow, describe_wrong_file, read_json, read_rows


class _Response(SourceRow):
    """A line of the file that was scored."""

    topic: str | None = None
    output: str


class _Decision(BaseModel):
    atom: str
    is_supported: bool


class _Passage(BaseModel):
    text: str = ""


class _File(BaseModel):
    decisions: list[list[_Decision] | None]
    passages: dict[str, list[_Passage]] = Field(default_factory=dict)
    config_name: str = "FActScore"

    def find_document(self, fact: str) -> str | None:
        """The passages that a fact was checked against."""
        texts = (
            one.text.replace("<s>", "").replace("</s>", "")
            for one in self.passages.get(fact.strip(), [])
        )
        return "\n\n".join(filter(None, texts)) or None


def convert_factscore_results(
    sources: Sequence[Path], *, responses: Path | None = None, system: str | None = None
) -> Conversion:
    """A fact is a claim, passages (of FActScore-turbo) the document; a file is a system where no
    ``system`` is given.

    ``responses``: the JSONL that was scored, with topic and output, line by line as the decisions.
    A response without decisions abstained.
    """
    texts = [] if responses is None else read_rows(responses, _Response, is_counted=True)
    claims: list[dict[str, Any]] = []
    for path in sources:
        content: _File = read_json(path, _File)
        if responses is not None and len(texts) != len(content.decisions):
            message = f"expected decisions on each of {len(texts)} responses of {responses.name}"
            raise describe_wrong_file(path, f"{message}, found {len(content.decisions)}")
        for number, decisions in enumerate(content.decisions):
            response: dict[str, Any] = {
                "dataset": "FActScore",
                "system": system or path.stem,
                "response_id": f"factscore:{path.stem}:{number}",
            }
            if texts:
                response |= {"topic": texts[number].topic, "response": texts[number].output}
            facts = [
                {
                    "claim": one.atom,
                    "prediction": int(one.is_supported),
                    "doc": content.find_document(one.atom),
                }
                for one in decisions or ()
            ]
            claims += make_fact_claims(response, content.config_name, facts, decisions is None)
    notes = [] if texts else ["no topics and no texts (option responses)"]
    return Conversion.from_claims("factscore-results", claims, notes)
