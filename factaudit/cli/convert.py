"""``convert``: how does a published data set become tables of claims and verdicts?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

import click

from factaudit.cli.options import OFFLINE_OPTION, PATH_TYPE
from factaudit.cli.output import Outcome, verb
from factaudit.cli.terminal import print_line
from factaudit.errors import UsageError


@verb(
    "convert",
    short_help="Turn a published data set into claims.",
    example="factaudit convert tofueval mediasum_factual_eval_dev.csv --out claims.parquet",
)
@click.argument("format", metavar="FORMAT")
@click.argument("sources", nargs=-1, metavar="[SOURCE]...")
@click.option(
    "--out",
    type=PATH_TYPE,
    required=True,
    help="The file of claims to write: .parquet, .jsonl[.gz] or .csv[.gz].",
)
@click.option(
    "--verdicts",
    type=PATH_TYPE,
    help="Also write the verdicts to this file, if the format has any.",
)
@click.option(
    "--annotations",
    type=PATH_TYPE,
    help="Also write what each annotator said, if the format has it.",
)
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="KEY=VALUE",
    help="An option of the format; `factaudit list formats` shows them.",
)
@OFFLINE_OPTION
def convert_command(
    format: str,
    sources: Sequence[str],
    out: Path,
    verdicts: Path | None,
    annotations: Path | None,
    options: Sequence[str],
) -> Outcome:
    """Turn a published data set into claims and verdicts. `factaudit list formats` shows the
    formats.

    A SOURCE is a file, a folder or published data (`published:NAME`, see `factaudit list data`).
    Without a SOURCE, the published files of this data set are fetched.
    """
    from factaudit.datasets import convert as convert_sources
    from factaudit.files import check_outputs
    from factaudit.settings.yaml_file import parse_yaml_set_options
    from factaudit.tables import parse_table_suffix, write_table

    for path in (out, verdicts, annotations):
        if path is not None:
            parse_table_suffix(path)
    check_outputs(
        [
            *sources,
            *(part for pair in options for part in re.split(r"[=:,\[\]]+", pair)[1:] if part),
        ],
        *(out, verdicts, annotations),
    )
    # An option of a format is text unless it is a list: `metrics=yes` is not a truth value, and
    # `dataset=007` is not a number.
    texts = {key: text for key, _, text in (pair.partition("=") for pair in options)}
    given = {
        key: value if isinstance(value, list | dict) else texts[key]
        for key, value in parse_yaml_set_options(options, "--option").items()
    }
    converted = convert_sources(format, sources or None, report_line=print_line, **given)
    lines = list(converted.notes)
    write_table(converted.claims, out)
    lines.append(f"{out}: {len(converted.claims):,} claims")
    counts: dict[str, int | None] = {"n_claims": len(converted.claims)}
    for what, path, option in (
        ("verdicts", verdicts, "--verdicts"),
        ("annotations", annotations, "--annotations"),
    ):
        table = getattr(converted, what)
        if path is None and table is not None:
            lines.append(f"the source has {what} too: name a file for them with {option}")
        elif path is not None and table is None:
            raise UsageError(
                f"the format {format!r} has no {what}; `factaudit list formats` shows what each"
                " format has"
            )
        elif path is not None:
            write_table(table, path)
            lines.append(f"{path}: {len(table):,} {what}")
        counts[f"n_{what}"] = None if table is None else len(table)
    files = {"claims": out, "verdicts": verdicts, "annotations": annotations}
    return Outcome(lines, {**files, "notes": converted.notes, **counts})


COMMANDS = (convert_command,)
