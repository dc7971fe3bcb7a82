"""Wikipedia's pages from the Hugging Face hub: a pinned snapshot, read one Parquet file after the other.

A file is downloaded when its turn comes and deleted when it is read, so that the disk holds one of them (0.4 GB) beside
the knowledge source that is built.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from factaudit.errors import FactauditError, format_error_first_line
from factaudit.publications.fetching import is_offline

#: Wikipedia's articles without markup, of 1 November 2023 (CC BY-SA 3.0, GFDL).
HUB_WIKIPEDIA = "wikimedia/wikipedia"
_REVISION = "b04c8d1ceb2f5cd4588862100d08de323dccfbaa"
_CONFIGURATION = "20231101.en"
#: The place of a page: the number of its file times this, and its row.
_ROWS_PER_FILE = 1 << 40


@dataclass(frozen=True)
class WikipediaSnapshot:
    """The snapshot's Parquet files (path, bytes), in order; ``folder`` is where one at a time is kept."""

    files: tuple[tuple[str, int], ...]
    folder: Path
    name: str = f"{HUB_WIKIPEDIA}/{_CONFIGURATION}"

    @property
    def total_bytes(self) -> int:
        """Of all files: what is downloaded."""
        return sum(size for _, size in self.files)

    @property
    def fingerprint(self) -> bytes:
        """What tells this source from others."""
        return json.dumps([_REVISION, self.files]).encode()

    def read_batches(
        self, offset: int, line_number: int, size: int
    ) -> Iterator[tuple[int, int, list[tuple[int, bytes]]]]:
        """(place after it, number of its last page, [(number, page as a line of JSON)]) from a place on.

        Pages without a title or a text are left out; their numbers are missing.
        """
        import pyarrow.parquet as pq

        first, skipped = divmod(offset, _ROWS_PER_FILE)
        for number in range(first, len(self.files)):
            with self._download(self.files[number][0]) as path, pq.ParquetFile(path) as parquet:
                row = 0
                for batch in parquet.iter_batches(size, columns=["title", "text"]):
                    pages = batch.to_pylist()
                    row += len(pages)
                    if number == first and row <= skipped:
                        continue
                    lines = [
                        (line_number + at, json.dumps(page).encode() + b"\n")
                        for at, page in enumerate(pages, start=1)
                        if (page["title"] or "").strip() and (page["text"] or "").strip()
                    ]
                    line_number += len(pages)
                    yield number * _ROWS_PER_FILE + row, line_number, lines

    def count_bytes_before(self, offset: int) -> int:
        """Of the files before a place: how much was downloaded."""
        return sum(size for _, size in self.files[: offset // _ROWS_PER_FILE])

    @contextmanager
    def _download(self, file: str) -> Iterator[Path]:
        from huggingface_hub import hf_hub_download

        self.folder.mkdir(parents=True, exist_ok=True)
        with TemporaryDirectory(dir=self.folder, prefix=".factaudit-wikipedia-") as folder:
            with _explain_hub_page_errors():
                found = hf_hub_download(HUB_WIKIPEDIA, file, repo_type="dataset", revision=_REVISION, local_dir=folder)
            yield Path(found)


def find_wikipedia_snapshot(folder: Path) -> WikipediaSnapshot:
    """The snapshot, its files and their sizes asked of the hub. Raises `FactauditError` where it cannot be asked."""
    if is_offline():
        raise FactauditError(f"{HUB_WIKIPEDIA} is not fetched: offline")
    try:
        from huggingface_hub import HfApi
    except ImportError:
        raise FactauditError(f"{HUB_WIKIPEDIA} needs the extra [hub]: pip install 'factaudit[hub]'") from None
    with _explain_hub_page_errors():
        siblings = HfApi().dataset_info(HUB_WIKIPEDIA, revision=_REVISION, files_metadata=True).siblings or []
    files = sorted(
        (one.rfilename, one.size or 0)
        for one in siblings
        if one.rfilename.startswith(f"{_CONFIGURATION}/") and one.rfilename.endswith(".parquet")
    )
    if not files:
        raise FactauditError(f"{HUB_WIKIPEDIA} at {_REVISION[:8]} has no Parquet file of {_CONFIGURATION}")
    return WikipediaSnapshot(tuple(files), folder)


@contextmanager
def _explain_hub_page_errors() -> Iterator[None]:
    try:
        yield
    except Exception as error:  # which class a lost connection has depends on the client's version
        raise FactauditError(
            f"{HUB_WIKIPEDIA} could not be read from the hub ({format_error_first_line(error)}); "
            "run the command again to go on"
        ) from error
