"""docs/data.md, made from the register of publications: ``make docs``."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path

from factaudit.files import write_text
from factaudit.publications.fetching import format_published_size
from factaudit.publications.register import (
    Publication,
    PublishedFile,
    PublishedHubDataset,
    list_hub_datasets,
    list_publications,
    list_published_files,
    read_publication_citation,
)
from factaudit.text.display_text import format_count

_PAGE_HEAD = """\
# Published data by name

<!-- Made by `make docs` from factaudit/publications/*.csv: change it there. -->

`published:NAME` stands for what its authors published in a repository at one commit,
`published:NAME/PATH` for a file or folder of it, wherever a path may stand: in an experiment YAML,
after `factaudit convert FORMAT`, in `factaudit.convert`. `factaudit convert FORMAT` without a
source, and `format:` without `source:`, take all files of the format.

```
factaudit list data                                                 # all of it: size, licence, what is here
factaudit convert tofueval --out claims.parquet                     # all that is published in the format
factaudit convert tofueval published:tofueval/factual_consistency/mediasum_factual_eval_dev.csv --out claims.parquet
factaudit run experiments/dfactscore_published.yaml                 # an experiment fetches what it names
```

A file that is missing is fetched once, from the repository named below. What is fetched, from
where, how large and under which licence is said before; on a terminal you are asked above 50 MB. A
file is kept only if its size and its SHA-256 are those of the register (where only git's blob id is
known, that). `factaudit inspect FILE` fetches nothing. A run folder's report names publications,
commits and files, and `references.bib` has what to cite.

| variable or option | |
|---|---|
| `FACTAUDIT_DATA` | The folder of published data: searched first, and fetched into. By default in the user's cache folder. A clone of a repository may lie in it, or be it; files under other names are told by size and hash. |
| `--set data=DIR` | Of `factaudit run`: a folder or clone that is searched before that one. |
| `--offline`, `FACTAUDIT_OFFLINE=1` | Fetch nothing: name each missing file, its place, its address and its hash, so that somebody can bring it. |
| `FACTAUDIT_DATA_URL` | A mirror, in place of `https://raw.githubusercontent.com`. |
| `FACTAUDIT_WIKIPEDIA_API` | A MediaWiki's API, in place of `https://en.wikipedia.org/w/api.php` (`missing: wikipedia`). |

Nothing of these data is part of factaudit, but for the scores of four detectors on 1,800 responses
of RAGTruth, which `factaudit run demo` reads. A licence "none stated" means that the repository has no
licence file: ask its authors before you pass their files on.

## Publications

"""  # noqa: E501 (lines of Markdown)
_HUB_HEAD = """\
## On the Hugging Face hub

These need the extra `[hub]` (from a checkout `pip install '.[hub]'`) and lie in the hub's own cache
(`HF_HOME`). A gated one asks you to accept its conditions on its page once; then give a token: `hf
auth login`, or `HF_TOKEN` in the environment.

"""
#: What the formats that have no file in the register read, and where their authors publish it.
_OTHER_FORMATS = {
    "reveal": ("google/reveal on the Hugging Face hub, gated", "`eval/reveal_eval.csv`"),
    "claimverify": (
        "nelson-liu/evaluating-verifiability-in-generative-search-engines",
        "`verifiability_judgments/*.jsonl.gz`, `human_evaluation_annotations.jsonl`",
    ),
    "expertqa": ("chaitanyamalaviya/ExpertQA", "`data/r2_compiled_anon.jsonl`"),
    "safe-results": (
        "google-deepmind/long-form-factuality",
        "`*-SAFE.json`, as `eval.run_eval` writes them",
    ),
    "veriscore-results": ("Yixiao-Song/VeriScore", "`model_output/verification_*.jsonl`"),
    "factscore-results": (
        "shmsw25/FActScore, ryabhmd/OpenFActScore, ntyazh/FActScore-turbo",
        "what `get_score` returns, as JSON; option responses: the JSONL that was scored",
    ),
    "predicted": ("Liyan06/AggreFact", "`data/aggre_fact_sota.csv`, `data/aggre_fact_final.csv`"),
}
_OTHER_HEAD = """\
## Formats whose data you bring

They read their authors' files under the names that these have in the repository. The register has
none of them: neither commit nor hash was checked.

| format | repository | files |
|---|---|---|
"""
_DERIVED = """\

## What is published in no such shape

- `factaudit/start/demo/responses.jsonl.gz` (a row per response with `scores`) was made for this
  project: from `results/unified_predictions.parquet` of hugoomez/rag-hallucination-detector (commit
  5df4bf50; QA and Summary) and RAGTruth's `dataset/response.jsonl`.
- A file of RAGTruth's responses that bring their own `question` and `passages` is our test data's;
  RAGTruth publishes the passages in `dataset/source_info.jsonl`.
- The passages behind FActScore's labels are Wikipedia's of 1 April 2023; the original's
  `enwiki-20230401.db` is read as it is (`FACTSCORE_DB_PATH`). Without it `missing: wikipedia` asks
  Wikipedia as it is today.
- `data/published/*.csv` hold the printed figures of two papers: nobody publishes them as tables.
"""


def render_published_data_page() -> str:
    """The whole page: the publications, what lies on the hub, and the formats that nothing is
    registered for."""
    parts = [_PAGE_HEAD]
    for publication in list_publications().values():
        own = [file for file in list_published_files() if file.publication == publication]
        parts.append("\n".join(_render_publication(publication, own)) + "\n\n")
    parts += [
        _HUB_HEAD,
        *(f"{_describe_published_hub_dataset(one)}\n" for one in list_hub_datasets()),
        "\n",
        _OTHER_HEAD,
    ]
    parts += [
        f"| `{name}` | [{repository}](https://github.com/{repository}) | {paths} |\n"
        for name, (repository, paths) in _OTHER_FORMATS.items()
    ]
    return "".join([*parts, _DERIVED])


def _render_publication(
    publication: Publication, published_files: list[PublishedFile]
) -> Iterator[str]:
    formats = list(dict.fromkeys(name for file in published_files for name in file.formats))
    place = f"{publication.repository}/tree/{publication.commit}"
    yield f"### `published:{publication.name}`\n"
    yield f"{publication.about[0].upper()}{publication.about[1:]}.\n"
    yield "| | |\n|---|---|"
    yield (
        f"| from | [{publication.repository}](https://github.com/{place}) at"
        f" `{publication.commit[:12]}` |"
    )
    yield (
        f"| files | {format_count(len(published_files), 'file')},"
        f" {format_published_size(published_files)} |"
    )
    yield f"| licence | {publication.licence} |"
    commands = ", ".join(f"`factaudit convert {name}`" for name in formats)
    yield f"| read by | {commands or 'engines and audits, as it is'} |"
    yield (
        "\n<details><summary>Files and citation</summary>\n\n| path | bytes | hash |\n|---|--:|---|"
    )
    for file in published_files:
        checksum = (
            f"sha256 `{file.sha256[:16]}…`" if file.sha256 else f"git `{str(file.git_blob)[:16]}…`"
        )
        yield f"| `{file.path}` | {'' if file.bytes is None else f'{file.bytes:,}'} | {checksum} |"
    yield f"\n```bibtex\n{read_publication_citation(publication).strip()}\n```\n\n</details>"


def _describe_published_hub_dataset(dataset: PublishedHubDataset) -> str:
    gated = "gated" if dataset.gated else "open"
    return (
        f"- [{dataset.repository}](https://huggingface.co/datasets/{dataset.repository}) ({gated};"
        f" licence: {dataset.licence}; revision: `{dataset.revision}`): {dataset.about}."
        f" `{dataset.command}`"
    )


if __name__ == "__main__":
    write_text(Path(sys.argv[1]), render_published_data_page())
