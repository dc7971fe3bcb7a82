"""Writes tests/logs/langfuse_*.json with the API's models of Langfuse's SDK (pip install langfuse==5.0.4), offline.

The pages that `GET /api/public/v2/scores` and `GET /api/public/observations` answer: two evaluators' scores, a person's
annotation, and the observations that they are of.
"""

import json
import re
import sys
from datetime import UTC, datetime
from pathlib import Path

from langfuse.api.commons.types import ObservationV2
from langfuse.api.commons.types.score import Score_Boolean, Score_Categorical, Score_Numeric

DOCS = ["The mill by the river closed in 1902.", "The bridge was built of stone.", "Two foxes live in the park."]
CLAIMS = ["The mill closed in 1902.", "The bridge was built of wood.", "Foxes live in the park."]
LABELS = ["yes", "no", "yes"]
folder, now = Path(sys.argv[1]), datetime(2026, 11, 23, tzinfo=UTC)


def words(text):
    return re.findall(r"\w+", text.lower())


scores, observations = [], []
for at, (doc, claim, label) in enumerate(zip(DOCS, CLAIMS, LABELS, strict=True)):
    place = {"trace_id": f"t{at}", "observation_id": f"o{at}", "environment": "default", "timestamp": now}
    place |= {"created_at": now, "updated_at": now}
    share = sum(word in words(doc) for word in words(claim)) / len(words(claim))
    scores += [
        Score_Numeric(id=f"s{at}", name="overlap", source="EVAL", value=share, **place),
        Score_Boolean(
            id=f"b{at}",
            name="grounded",
            source="API",
            value=float("wood" not in claim),
            string_value=str("wood" not in claim),
            comment="looked it up",
            **place,
        ),
        Score_Categorical(
            id=f"h{at}",
            name="supported",
            source="ANNOTATION",
            value=0.0,
            string_value=label,
            author_user_id="ann",
            **place,
        ),
    ]
    observations.append(
        ObservationV2(
            id=f"o{at}",
            trace_id=f"t{at}",
            project_id="p",
            type="GENERATION",
            name="answer",
            start_time=now,
            model="writer",
            input={"question": "?", "context": doc},
            output=claim,
            metadata={},
            latency=0.2,
        )
    )
for name, rows in (("scores", scores), ("observations", observations)):
    page = {"data": [json.loads(row.json()) for row in rows]}
    page["meta"] = {"page": 1, "limit": 50, "totalItems": len(rows), "totalPages": 1}
    (folder / f"langfuse_{name}.json").write_text(json.dumps(page, indent=1))
