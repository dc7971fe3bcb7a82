"""WiCE: claims of Wikipedia articles and the web pages that they cite (Kamoi et al. 2023; VC Table
8).

Files: ``data/entailment_retrieval/{claim,subclaim}/{train,dev,test}.jsonl`` of ryokamoi/wice.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from pydantic import Field

from factaudit.datasets.conversion import Conversion
from factaudit.datasets.source_files import SourceRow, parse_split_name, read_rows


class _Metadata(SourceRow):
    id: str
    claim_title: str | None = None


class _Claim(SourceRow):
    claim: str
    evidence: list[str] = Field(min_length=1)
    label: Literal["supported", "partially_supported", "not_supported"]
    meta: _Metadata


def convert_wice(sources: Sequence[Path]) -> Conversion:
    """Claims with the cited page as the document; "supported" is 1, partly supported 0 (as VC reads
    it).

    People wrote the claims, so ``system`` is null. The topic is the article's title. The id of a
    subclaim is that of its claim, a hyphen and a number (``dev00001-0``); its response is the
    claim.
    """
    claims = []
    for path in sources:
        for one in read_rows(path, _Claim):
            whole = re.sub(r"(?<=\d)-\d+$", "", one.meta.id)
            claims.append(
                {
                    "claim_id": f"wice:{one.meta.id}",
                    "dataset": "WiCE",
                    "response_id": whole,
                    "doc_id": whole,
                    "topic": one.meta.claim_title,
                    "split": parse_split_name(path),
                    "claim": one.claim,
                    "doc": "\n".join(one.evidence),
                    "label": int(one.label == "supported"),
                }
            )
    return Conversion.from_claims("wice", claims)
