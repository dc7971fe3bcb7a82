"""LLM-AggreFact: claims of 11 datasets with documents and labels (Tang et al. 2024, MiniCheck).

Files: its Parquet, CSV or JSONL with the columns dataset, doc, claim, label, contamination_identifier; or the source
``lytang/LLM-AggreFact``, from the Hugging Face hub. The benchmark is for evaluation only, and gated: its conditions are
to be accepted on its page.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from factaudit.datasets.aggrefact_subsets import find_dataset_task
from factaudit.datasets.conversion import Conversion, reads
from factaudit.datasets.original_datasets import join_original_datasets
from factaudit.datasets.source_files import JoinsOption, parse_split_name
from factaudit.errors import FactauditError, UsageError
from factaudit.tables import CLAIM_COLUMNS, read_table
from factaudit.tables.column_profiles import find_judged_columns
from factaudit.tables.reading import combine_claims
from factaudit.tables.unreadable_rows import leave_out_columns_of_judgements
from factaudit.text.display_text import format_count

#: The benchmark's name on the hub.
HUB_REPOSITORY = "lytang/LLM-AggreFact"


@reads(
    "aggrefact",
    "LLM-AggreFact's files, or lytang/LLM-AggreFact from the Hugging Face hub (Tang et al. 2024)",
    "factaudit convert aggrefact test.parquet --option join=tofueval:tofueval/ --out claims.parquet",
    ["*.parquet", "*.jsonl", "*.csv"],
    options={
        "join": "FORMAT:PATH (tofueval, lfqa, ragtruth, predicted (AggreFact), reveal, claimverify, expertqa):"
        " recover system and response_id by claim text",
        "split": "hub: the split to load (default test); files: the split's name, where they don't say",
        "revision": "hub: a commit, tag or branch (default main); what it resolved to is recorded",
    },
)
def convert_aggrefact(
    sources: Sequence[Path], *, join: JoinsOption = (), split: str | None = None, revision: str | None = None
) -> Conversion:
    """The benchmark's rows as claims, tasks from the registry; ``join`` recovers systems and responses.

    ``claim_id`` does not depend on ``join``. ``provenance`` has the hub's resolved revision.
    """
    provenance: dict[str, Any] = {}
    files: list[tuple[Path, str | None]] = []
    for source in sources:
        if source.as_posix() == HUB_REPOSITORY and not source.exists():
            chosen = split or "test"
            downloaded, commit = download_aggrefact_split(chosen, revision)
            files += [(path, chosen) for path in downloaded]
            provenance = {"repository": HUB_REPOSITORY, "split": chosen, "revision": commit}
        else:
            files.append((source, split or parse_split_name(source)))
    if revision is not None and not provenance:
        raise UsageError(f"option 'revision' is for the source {HUB_REPOSITORY}; files have no revision")
    tables = []
    for path, name in files:
        table = read_table(path)
        further = {str(column): table[column].tolist() for column in table.columns if column not in CLAIM_COLUMNS}
        leave_out_columns_of_judgements(path, [*find_judged_columns(further)])
        tables.append(table if "split" in table else table.assign(split=name))
    claims = combine_claims(tables, [str(path) for path, _ in files])
    claims["task"] = claims["task"].fillna(claims["dataset"].map(find_dataset_task))
    notes = [f"{format_count(len(claims), 'claim')} of {format_count(claims['dataset'].nunique(), 'dataset')}"]
    if provenance:
        notes.append(f"{HUB_REPOSITORY} at revision {provenance['revision']}")
    if join:
        claims, joined = join_original_datasets(claims, join)
        notes += joined
    return Conversion(claims, notes=notes, provenance=provenance)


def download_aggrefact_split(split: str, revision: str | None) -> tuple[list[Path], str]:
    """The files of a split in the hub's cache, downloaded where they are not there yet, and the commit they are of."""
    try:
        from huggingface_hub import HfApi, snapshot_download
        from huggingface_hub.errors import GatedRepoError, RevisionNotFoundError
    except ImportError:
        raise FactauditError(f"{HUB_REPOSITORY} needs the extra [hub]: pip install 'factaudit[hub]'") from None
    pattern = f"data/{split}-*.parquet"
    try:
        # A whole commit needs no asking: a pinned revision that is in the cache works without a network.
        pinned = revision is not None and re.fullmatch("[0-9a-f]{40}", revision)
        commit = revision if pinned else HfApi().dataset_info(HUB_REPOSITORY, revision=revision).sha
        folder = snapshot_download(HUB_REPOSITORY, repo_type="dataset", revision=commit, allow_patterns=pattern)
    except GatedRepoError:
        raise FactauditError(
            f"{HUB_REPOSITORY} is gated: accept its conditions at https://huggingface.co/datasets/{HUB_REPOSITORY}, "
            "then log in (`hf auth login`, or HF_TOKEN in the environment)"
        ) from None
    except RevisionNotFoundError:
        raise FactauditError(f"{HUB_REPOSITORY} has no revision {revision!r}") from None
    except Exception as error:
        # Which class a lost connection has depends on the client's version and its HTTP library.
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise FactauditError(f"{HUB_REPOSITORY} could not be read from the hub ({reason})") from error
    files = sorted(Path(folder).glob(pattern))
    if not files:
        raise FactauditError(f"{HUB_REPOSITORY} at {commit} has no split {split!r}; it has dev and test")
    return files, str(commit)
