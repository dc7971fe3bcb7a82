"""``list``: which evaluators, audits, formats, published data and stored replies are
there?"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import click

from factaudit.cli.output import Outcome, verb


@verb(
    "list",
    short_help="List evaluators, audits, formats, published data or saved model replies.",
    example="factaudit list evaluators",
)
@click.argument("what", type=click.Choice(["evaluators", "audits", "formats", "data", "replies"]))
def list_command(what: str) -> Outcome:
    """List the evaluators, audits, formats, published data or saved replies of language
    models.

    The list says what each one needs and how to use it.
    """
    entries = list(_LISTS[what]())
    lines = []
    for entry in entries:
        lines.append(f"{entry['name']}: {entry['summary']}")
        for key, value in entry.items():
            if key not in ("name", "summary") and value not in (None, "", {}):
                told = (
                    ", ".join(f"{k} ({v})" for k, v in value.items())
                    if isinstance(value, dict)
                    else str(value)
                )
                lines.append(f"    {key.replace('_', ' '):<7} {told}")
    return Outcome(lines, {"what": what, "entries": entries})


def _list_evaluators() -> Iterator[dict[str, Any]]:
    from factaudit.evaluators.registry import list_evaluators

    for entry in list_evaluators().values():
        shown = {
            key: getattr(entry, key) for key in ("name", "summary", "needs", "source", "checked")
        }
        named = entry.example or entry.name
        yield shown | {"run": f"factaudit judge CLAIMS --evaluator {named} --out VERDICTS"}


def _list_audits() -> Iterator[dict[str, Any]]:
    from factaudit.audit import list_computable_audits

    for audit in list_computable_audits().values():
        options = {
            key: f"default {field.default!r}"
            for key, field in audit.options_model().model_fields.items()
        }
        yield {
            "name": audit.name,
            "summary": audit.question,
            "options": options,
            "source": audit.source,
        }


def _list_formats() -> Iterator[dict[str, Any]]:
    from factaudit.datasets import FORMATS

    for name, one in FORMATS.items():
        yield {
            "name": name,
            "summary": one.summary,
            "options": dict(one.options),
            "run": one.example,
        }


def _list_published_data() -> Iterator[dict[str, Any]]:
    from factaudit.publications.fetching import publication_folder
    from factaudit.publications.register import (
        list_hub_datasets,
        list_publications,
        list_published_files,
    )
    from factaudit.text.display_text import format_count

    folder = publication_folder()
    for publication in list_publications().values():
        own = [file for file in list_published_files() if file.publication == publication]
        size = f"{sum(file.bytes or 0 for file in own) / 1e6:,.1f} MB"
        n_here = sum((folder / file.stored_path).is_file() for file in own)
        formats = dict.fromkeys(name for file in own for name in file.formats)
        needed = {"score-csv": " --option dataset=NAME"}
        yield {
            "name": publication.name,
            "summary": publication.about,
            "files": f"{format_count(len(own), 'file')}, {size}; {n_here} in {folder}",
            "from": f"github.com/{publication.repository} at {publication.commit[:8]}",
            "licence": publication.licence,
            "run": "; ".join(
                f"factaudit convert {name} published:{publication.name}{needed.get(name, '')} --out"
                " CLAIMS"
                for name in formats
            ),
        }
    for dataset in list_hub_datasets():
        gated = (
            "accept its conditions on its page, then `hf auth login` or HF_TOKEN"
            if dataset.gated
            else ""
        )
        place = (
            f"huggingface.co/datasets/{dataset.repository} at {dataset.revision[:8]}; extra [hub]"
        )
        yield {
            "name": dataset.name,
            "summary": dataset.about,
            "from": place,
            "gated": gated,
            "licence": dataset.licence,
            "run": dataset.command,
        }


def _list_replies() -> Iterator[dict[str, Any]]:
    from factaudit.llm.settings import default_cache_path
    from factaudit.llm.store import summarise_reply_store

    found = summarise_reply_store(default_cache_path())
    yield {
        "name": found.pop("path"),
        "summary": "replies are never bought twice; to forget them, delete this file",
        **found,
    }


_LISTS = {
    "evaluators": _list_evaluators,
    "audits": _list_audits,
    "formats": _list_formats,
    "data": _list_published_data,
    "replies": _list_replies,
}
COMMANDS = (list_command,)
