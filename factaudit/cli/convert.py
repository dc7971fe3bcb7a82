"""Published data sets turned into our tables: ``convert``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from factaudit.cli.options import PATH, example
from factaudit.cli.terminal import say
from factaudit.cli.verb import Verb, answer
from factaudit.errors import UsageError


@click.command(
    cls=Verb,
    gives={
        "claims": "string: the file",
        "n_claims": "integer",
        "verdicts": "string or null: the file",
        "n_verdicts": "integer or null: of the source, written or not",
        "annotations": "string or null: the file",
        "n_annotations": "integer or null: of the source, written or not",
        "notes": "array: rows left out and why, how a join went",
    },
    short_help="Turn a published data set into claims.",
    epilog=example("factaudit convert tofueval mediasum_factual_eval_dev.csv --out claims.parquet"),
)
@click.argument("format", metavar="FORMAT")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--out", type=PATH, required=True, help="Claims: .parquet, .jsonl[.gz] or .csv[.gz].")
@click.option("--verdicts", type=PATH, help="Verdicts, where the format has them.")
@click.option("--annotations", type=PATH, help="What each annotator said, where the format has it.")
@click.option("--join", multiple=True, metavar="FORMAT:PATH", help="aggrefact only: recover system and response_id.")
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="An option of the format.")
def convert(
    format: str,
    sources: Sequence[str],
    out: Path,
    verdicts: Path | None,
    annotations: Path | None,
    join: Sequence[str],
    options: Sequence[str],
) -> None:
    """Turn a published data set into claims (and verdicts). `factaudit list formats` shows the formats."""
    from factaudit.datasets import convert as convert_sources
    from factaudit.files import spare
    from factaudit.tables import suffix, write_table
    from factaudit.yamlfile import parse_settings

    for path in (out, verdicts, annotations):
        if path is not None:
            suffix(path)
    spare([*sources, *(one.partition(":")[2] for one in join)], out, verdicts, annotations)
    given = parse_settings(options, "--option")
    if join:
        given["join"] = list(join)
    converted = convert_sources(format, sources, **given)
    for note in converted.notes:
        say(note)
    write_table(converted.claims, out)
    say(f"{out}: {len(converted.claims):,} claims")
    counts: dict[str, int | None] = {"n_claims": len(converted.claims)}
    for what, path, option in (("verdicts", verdicts, "--verdicts"), ("annotations", annotations, "--annotations")):
        table = getattr(converted, what)
        if path is None and table is not None:
            say(f"the source has {what} too: name a file for them with {option}")
        elif path is not None and table is None:
            raise UsageError(f"the format {format!r} brings no {what}")
        elif path is not None:
            write_table(table, path)
            say(f"{path}: {len(table):,} {what}")
        counts[f"n_{what}"] = None if table is None else len(table)
    answer({"claims": out, "verdicts": verdicts, "annotations": annotations, "notes": converted.notes, **counts})


COMMANDS = (convert,)
