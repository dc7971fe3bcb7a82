"""``list``: which evaluators, audits, formats, published data and groupers are there?"""

from __future__ import annotations

from typing import Any

import click

from factaudit.cli.json_output import JsonOutputCommand, print_json_output
from factaudit.cli.options import format_help_example
from factaudit.cli.terminal import print_line, print_titled_terminal_line


@click.command(
    "list",
    cls=JsonOutputCommand,
    json_keys={
        "what": "string: evaluators, audits, formats, data or groupers",
        "entries": "array: name and summary (of an audit its question), and of evaluators needs, source, checked and"
        " example, of audits options and source, of formats options and example",
    },
    short_help="List the evaluators, audits, formats, published data or groupers of facts.",
    epilog=format_help_example("factaudit list evaluators"),
)
@click.argument("what", type=click.Choice(["evaluators", "audits", "formats", "data", "groupers"]))
def list_command(what: str) -> None:
    """List the evaluators, audits, formats, published data or groupers, with what each needs and how to run it.

    Groupers group the facts of a text by person.
    """
    entries = {
        "evaluators": _list_evaluators_for_listing_command,
        "audits": _list_audits_for_listing_command,
        "formats": _list_formats_for_listing_command,
        "data": _list_published_data_for_listing_command,
        "groupers": _list_groupers_for_listing_command,
    }[what]()
    print_json_output({"what": what, "entries": entries})


def _list_evaluators_for_listing_command() -> list[dict[str, Any]]:
    from factaudit.evaluators.registry import list_evaluators

    told = []
    for entry in list_evaluators().values():
        named = entry.example or entry.name
        print_titled_terminal_line(entry.name, entry.summary)
        print_line(f"    needs   {entry.needs}")
        if entry.source:
            print_line(f"    source  {entry.source}")
        if entry.checked:
            print_line(f"    checked {entry.checked}")
        print_line(f"    run     factaudit judge CLAIMS --evaluator {named} --out VERDICTS")
        shown = {key: getattr(entry, key) for key in ("name", "summary", "needs", "source", "checked")}
        told.append(shown | {"example": named})
    return told


def _list_audits_for_listing_command() -> list[dict[str, Any]]:
    from factaudit.audit import list_computable_audits

    told = []
    for audit in list_computable_audits().values():
        print_titled_terminal_line(audit.name, audit.question)
        options = {key: field.default for key, field in audit.options_model().model_fields.items()}
        if options:
            print_line(f"    options {', '.join(f'{key} (default {default!r})' for key, default in options.items())}")
        if audit.source:
            print_line(f"    source  {audit.source}")
        told.append({"name": audit.name, "summary": audit.question, "options": options, "source": audit.source})
    return told


def _list_formats_for_listing_command() -> list[dict[str, Any]]:
    from factaudit.datasets import FORMATS

    told = []
    for name, format in FORMATS.items():
        print_titled_terminal_line(name, format.summary)
        print_line(f"    run     {format.example}")
        told.append({"name": name, "summary": format.summary, "options": format.options, "example": format.example})
    return told


def _list_published_data_for_listing_command() -> list[dict[str, Any]]:
    from factaudit.publications.fetching import publication_folder
    from factaudit.publications.register import list_hub_datasets, list_publications, list_published_files
    from factaudit.text.display_text import format_count

    entries = []
    folder = publication_folder()
    for publication in list_publications().values():
        own = [file for file in list_published_files() if file.publication == publication]
        n_here = sum((folder / file.stored_path).is_file() for file in own)
        size = sum(file.bytes or 0 for file in own)
        print_titled_terminal_line(publication.name, publication.about)
        unknown = "" if all(file.bytes for file in own) else ", some of unknown size"
        print_line(f"    files   {format_count(len(own), 'file')}, {size / 1e6:,.1f} MB{unknown}; {n_here} here")
        print_line(f"    from    github.com/{publication.repository} at {publication.commit[:8]}")
        print_line(f"    licence {publication.licence}")
        for format_name in dict.fromkeys(name for file in own for name in file.formats):
            needed = " --option dataset=NAME" if format_name == "score-csv" else ""
            print_line(f"    run     factaudit convert {format_name} published:{publication.name}{needed} --out CLAIMS")
        entries.append(
            {
                "name": publication.name,
                "summary": publication.about,
                "repository": publication.repository,
                "commit": publication.commit,
                "licence": publication.licence,
                "n_files": len(own),
                "n_here": n_here,
                "bytes": size,
            }
        )
    for dataset in list_hub_datasets():
        print_titled_terminal_line(dataset.name, dataset.about)
        print_line(f"    from    huggingface.co/datasets/{dataset.repository} at {dataset.revision[:8]}; extra [hub]")
        if dataset.gated:
            print_line("    gated   accept its conditions on its page, then `hf auth login` or HF_TOKEN")
        print_line(f"    licence {dataset.licence}")
        print_line(f"    run     {dataset.command}")
        entries.append(
            {
                "name": dataset.name,
                "summary": dataset.about,
                "repository": dataset.repository,
                "commit": dataset.revision,
                "licence": dataset.licence,
                "n_files": None,
                "n_here": None,
                "bytes": None,
            }
        )
    print_line(f"\nkept in {folder}; FACTAUDIT_DATA names a folder of yours to read first")
    return entries


def _list_groupers_for_listing_command() -> list[dict[str, Any]]:
    from factaudit.engines.grouping import GROUPERS

    for name, summary in GROUPERS.items():
        print_titled_terminal_line(name, summary)
        print_line(f"    run     factaudit score --dfactscore BIOGRAPHIES --grouper {name} --out RUN")
    return [{"name": name, "summary": summary} for name, summary in GROUPERS.items()]


COMMANDS = (list_command,)
