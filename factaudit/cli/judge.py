"""Evaluators at work: ``judge``, and ``cost``, what that will be."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from factaudit.cli.options import OVERRIDE, PATH, example, mapping_options
from factaudit.cli.show import show_costs
from factaudit.cli.terminal import say
from factaudit.cli.verb import Verb, answer
from factaudit.errors import FactauditError, UsageError

if TYPE_CHECKING:
    from factaudit.intake.mapping import Mapping


@click.command(
    cls=Verb,
    gives={
        "out": "string: the verdicts' file",
        "evaluators": "array: evaluator, n_verdicts, and statuses: how many of each",
        "n_errors": "integer: the same command again retries them",
    },
    short_help="Judge claims with evaluators.",
    epilog=example("factaudit judge claims.jsonl --evaluator rouge2 --evaluator random:seed=1 --out verdicts.parquet"),
)
@click.argument("claims", type=PATH)
@click.option(
    "--evaluator", "evaluators", multiple=True, required=True, metavar="NAME[:key=value,...]", help="May be repeated."
)
@click.option("--repeats", type=click.IntRange(1), help="Ask each so often, and see how stable it is.")
@click.option("--orders", type=click.IntRange(1), help="And so often with documents' passages in another order.")
@click.option("--out", type=PATH, required=True, help="Verdicts: .parquet, .jsonl[.gz] or .csv[.gz].")
@click.option(
    "--on", metavar="ray[://HOST:PORT]", help="Judge on a Ray cluster (extra [ray]); LLMs are asked from here."
)
@click.option(
    "--shard", "share", metavar="I/N", help="Only the I-th of N parts: one command a machine, then audit all N files."
)
@mapping_options
def judge(
    claims: Path,
    evaluators: Sequence[str],
    repeats: int | None,
    orders: int | None,
    out: Path,
    on: str | None,
    share: str | None,
    mapping: Mapping,
) -> None:
    """Judge claims with evaluators. Started again after an interruption, it goes on where it was."""
    import shutil

    from factaudit.evaluators.judging import check_names, files_of, name_evaluator
    from factaudit.evaluators.judging import judge as judge_claims
    from factaudit.evaluators.shards import parse_shard, shard
    from factaudit.evaluators.unread import unread
    from factaudit.files import spare
    from factaudit.intake.load import load
    from factaudit.tables import suffix, write_table

    suffix(out)  # a wrong name is said before the work, not after
    parsed = None if share is None else parse_shard(share)
    named = [name_evaluator(spec, repeats, orders) for spec in evaluators]
    check_names(named)
    spare([claims, *files_of(named)], out)
    table = load([claims], mapping, say).claims
    if table is None:
        raise UsageError(f"{claims}: no claims in it; `factaudit inspect {claims}` shows what it holds")
    if parsed is not None:
        whole, table = len(table), shard(table, *parsed)
        say(f"shard {share}: {len(table):,} of {whole:,} claims")
    journal = out.parent / f".{out.name}.journal"
    verdicts = judge_claims(table, named, journal=journal, progress=True, on=on)
    write_table(verdicts, out)
    judged = []
    for name, part in verdicts.groupby("evaluator", sort=False):
        counts = part["status"].value_counts()
        say(f"{name}: {len(part):,} verdicts, {', '.join(f'{n:,} {status}' for status, n in counts.items())}")
        judged.append({"evaluator": name, "n_verdicts": len(part), "statuses": counts.to_dict()})
    for line in unread(verdicts):
        say(line)
    failed = int((verdicts["status"] == "error").sum())
    if failed:
        say(f"{out} (run the same command again to retry the {failed:,} errors)")
    else:
        shutil.rmtree(journal)
        say(str(out))
    answer({"out": out, "evaluators": judged, "n_errors": failed})
    if not verdicts["prediction"].notna().any():
        said = verdicts["raw"].dropna()
        why = f": {said.iloc[0]}" if len(said) else ""
        raise FactauditError(f"no claim was scored{why}")


@click.command(
    cls=Verb,
    gives={
        "rows": "array: per evaluator: calls, cached_calls, prompt_tokens, max_completion_tokens, cost, reason",
        "cost": "number or null: US dollars of all; null where some price is not known",
    },
    short_help="Say what an experiment will cost.",
    epilog=example("factaudit cost experiments/compare_evaluators.yaml"),
)
@click.argument("experiment", type=PATH)
@OVERRIDE
@click.option("--prices", type=PATH, help="A price table of your own: CSV with model, input, output per 1M tokens.")
def cost(experiment: Path, settings: Sequence[str], prices: Path | None) -> None:
    """Say what an experiment's calls will cost, before any is made. Nothing is sent."""
    from factaudit.experiment import engine_of, expected_cost, load
    from factaudit.yamlfile import parse_settings

    if engine_of(experiment) is not None:
        raise UsageError(
            f"{experiment}: how many facts a response has is not known before it is decomposed; use max_cost"
        )
    rows = expected_cost(load(experiment, parse_settings(settings)), prices)
    show_costs(rows)
    costs = [row["cost"] for row in rows]
    answer({"rows": rows, "cost": None if None in costs else sum(costs)})


COMMANDS = (judge, cost)
