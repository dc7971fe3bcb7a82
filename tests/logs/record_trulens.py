"""Writes tests/logs/trulens.jsonl with TruLens itself (pip install trulens-core==2.16.0).

An app that says one sentence of a document, with a feedback function of our own: the session's records with feedback,
without the two columns that hold the whole app and record once more.
"""

import os
import re
import sys
import tempfile
import time
from pathlib import Path

os.environ["TRULENS_OTEL_TRACING"] = "0"

from trulens.apps.basic import TruBasicApp
from trulens.core import Feedback, TruSession

DOCS = ["The mill by the river closed in 1902.", "The bridge was built of stone.", "Two foxes live in the park."]
CLAIMS = ["The mill closed in 1902.", "The bridge was built of wood.", "Foxes live in the park."]


def words(text):
    return re.findall(r"\w+", text.lower())


def overlap(source: str, statement: str) -> float:
    found = words(statement)
    return sum(word in words(source) for word in found) / len(found)


session = TruSession(database_url=f"sqlite:///{tempfile.mkdtemp()}/log.sqlite")
feedback = Feedback(overlap, name="Groundedness").on_input_output()
app = TruBasicApp(lambda doc: CLAIMS[DOCS.index(doc)], app_name="writer", app_version="1", feedbacks=[feedback])
for doc in DOCS:
    with app:
        app.app(doc)
time.sleep(5)
records, _ = session.get_records_and_feedback()
records = records.drop(columns=["app_json", "record_json"])
records.to_json(Path(sys.argv[1]) / "trulens.jsonl", orient="records", lines=True, default_handler=str)
