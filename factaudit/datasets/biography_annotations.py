"""What people said of biographies: CSV, JSONL or Parquet with a row per annotator and fact (MF App.
B)."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from pydantic import Field

from factaudit.datasets.source_files import SourceRow, read_rows


class BiographyFactAnnotation(SourceRow):
    """What one annotator said of one fact.

    biography: which of the paragraph's biographies the fact is in (any mark). entity: the title of
    the page of the person whom that biography is about. label: S (supported by that page), NS or
    IR. page: the title of the page that the fact is found on, that of somebody else where it is NS
    (step 4); where an S has none, it is the entity's.
    """

    system: str
    response_id: str
    fact: str = Field(pattern=r"\S")
    biography: str
    label: Literal["S", "NS", "IR"]
    annotator: str = "1"
    entity: str | None = None
    page: str | None = None


def read_biography_fact_annotations(path: str | Path) -> list[dict[str, Any]]:
    """The rows of a file of annotations, with all keys of `BiographyFactAnnotation`; `InputError`
    says what is wrong with it.
    """
    return [row.model_dump() for row in read_rows(Path(path), BiographyFactAnnotation)]
