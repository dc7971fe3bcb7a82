"""What a user's files hold: ``inspect``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from factaudit.cli.options import PATH, example, mapping_options
from factaudit.cli.show import TABLES, counted
from factaudit.cli.terminal import say, titled
from factaudit.cli.verb import Verb, answer

if TYPE_CHECKING:
    from factaudit.intake.load import Loaded
    from factaudit.intake.mapping import Mapping


@click.command(
    cls=Verb,
    gives={
        "files": "array: path, n_rows, and columns: name, kind, n_different, n_missing, words, low, high, mean_length",
        "mapping": "object or null: how columns that are not ours are read; null where they are ours",
        "notes": "array: what was taken for what, what was assumed, which columns nothing reads",
        **TABLES,
        "written": "string or null: the mapping's file",
        "next": "array: commands to run",
    },
    short_help="Say what files hold, and how they would be read.",
    epilog=example("factaudit inspect answers.csv judges.tsv --write mapping.yaml"),
)
@click.argument("files", type=PATH, nargs=-1, required=True)
@click.option("--write", type=PATH, metavar="MAPPING.yaml", help="Write the mapping, to look at, change and use.")
@mapping_options
def inspect(files: tuple[Path, ...], write: Path | None, mapping: Mapping) -> None:
    """Profile files of any shape: which column is what, what joins to what, and the commands to run next.

    Nothing but the mapping is written.
    """
    from factaudit.files import atomic, spare
    from factaudit.intake.anyfile import read_any
    from factaudit.intake.load import load
    from factaudit.intake.profile import describe

    spare(files, write)
    held, notes = [], []
    for path in files:
        table = read_any(path)
        titled(str(path), f"{len(table):,} rows, {len(table.columns)} columns")
        columns = [describe(str(name), table[name]) for name in table.columns]
        for column in columns:
            say(f"    {column}")
        held.append({"path": path, "n_rows": len(table), "columns": columns})
    say("")

    def note(line: str) -> None:
        notes.append(" ".join(line.split()))
        say(line)

    loaded = load(files, mapping, note)
    _show(loaded)
    made = loaded.mapping
    if write is not None:
        with atomic(write) as temporary:
            temporary.write_text(
                "# How the files are read: see `factaudit inspect`.\n"
                + (made.to_yaml() if made is not None else "{}\n"),
                encoding="utf-8",
            )
        say(f"mapping   {write}")
    say("")
    names = shlex.join(map(str, files))
    use = "" if made is None else f" --map {write or 'mapping.yaml'}"
    commands = []
    if write is None and made is not None:
        commands.append(f"factaudit inspect {names} --write mapping.yaml")
    if loaded.verdicts is not None:
        commands.append(f"factaudit audit {names}{use} --out runs/mine")
    elif loaded.claims is not None:
        commands.append(f"factaudit judge {names}{use} --evaluator rouge2 --out verdicts.parquet")
    for command in commands:
        say(f"next      {command}")
    described = None if made is None else made.model_dump(exclude_defaults=True, mode="json")
    answer(
        {
            "files": held,
            "mapping": described,
            "notes": notes,
            "written": write,
            "next": commands,
            **counted(loaded.claims, loaded.verdicts),
        }
    )


def _show(loaded: Loaded) -> None:
    from factaudit.text.printable import count

    claims, verdicts = loaded.claims, loaded.verdicts
    if claims is not None:
        labelled = int(claims["label"].notna().sum())
        told = [f"{labelled:,} labelled" + (f" ({claims['label'].mean():.1%} attributable)" if labelled else "")]
        told += [count(claims[name].nunique(), name) for name in ("dataset", "system") if claims[name].notna().any()]
        if without := int(claims["doc"].isna().sum()):
            told.append(f"{without:,} without a document")
        say(f"claims    {len(claims):,}: {', '.join(told)}")
    for evaluator, part in [] if verdicts is None else verdicts.groupby("evaluator", sort=False):
        scored = part["prediction"].notna()
        share = f", {part['prediction'].mean():.1%} attributable" if scored.any() else ""
        say(f"verdicts  {len(part):,} of {evaluator}: {int(scored.sum()):,} with a prediction{share}")


COMMANDS = (inspect,)
