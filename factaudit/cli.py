"""The command line. Exit codes: 0 done, 1 the work failed, 2 wrong usage; tracebacks only with ``--debug``."""

from __future__ import annotations

import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click
import yaml

from factaudit.cli_engines import COMMANDS, example
from factaudit.errors import FactauditError, UsageError, hint
from factaudit.version import __version__
from factaudit.yamlfile import parse_settings

if TYPE_CHECKING:
    from factaudit.results import Results

_PATH = click.Path(path_type=Path)


class _Group(click.Group):
    """Commands in the order in which they were written, and a hint for a misspelt one."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        if args and not args[0].startswith("-") and args[0] not in self.commands:
            ctx.fail(f"no command {args[0]!r}{hint(args[0], list(self.commands))}")
        return super().resolve_command(ctx, args)


@click.group(cls=_Group, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="factaudit")
@click.option("--debug", is_flag=True, help="Show tracebacks.")
def cli(debug: bool) -> None:
    """How far can a factuality metric be trusted?

    \b
    Start here:
      factaudit run experiments/quickstart.yaml --out runs/quickstart
      factaudit audit claims.jsonl verdicts.parquet --out runs/mine
    """


# ------------------------------------------------------------------------------------------------------- run


@cli.command(
    short_help="Run an experiment YAML into a run folder.",
    epilog=example("factaudit run experiments/quickstart.yaml --out runs/quickstart --set seed=1"),
)
@click.argument("experiment", type=_PATH)
@click.option("--out", type=_PATH, help="The run folder.  [default: runs/NAME-OF-THE-YAML]")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override a key of the YAML.")
def run(experiment: Path, out: Path | None, settings: Sequence[str]) -> None:
    """Run an experiment YAML and write its run folder; a second run reuses what is unchanged."""
    from factaudit.experiment import run as run_experiment

    out = out or Path("runs") / experiment.stem
    results = run_experiment(experiment, out, settings=parse_settings(settings), progress=True, say=click.echo)
    _summary(results)


def _summary(results: Results) -> None:
    """The report's opening, and how many findings there are."""
    from factaudit.report.summary import lead

    for paragraph in lead(results.to_dict()):
        click.echo()
        click.echo(click.wrap_text(paragraph, width=100))
    counts = Counter(finding["severity"] for finding in results.findings)
    click.echo(f"\nfindings  {counts['fail']} fail, {counts['warn']} warn, {counts['ok']} ok: see the report")


# ----------------------------------------------------------------------------------------------------- judge


@cli.command(
    short_help="Judge claims with evaluators.",
    epilog=example("factaudit judge claims.jsonl --evaluator rouge2 --evaluator random:seed=1 --out verdicts.parquet"),
)
@click.argument("claims", type=_PATH)
@click.option(
    "--evaluator", "evaluators", multiple=True, required=True, metavar="NAME[:key=value,...]", help="May be repeated."
)
@click.option("--out", type=_PATH, required=True, help="Verdicts: .parquet, .jsonl[.gz] or .csv[.gz].")
def judge(claims: Path, evaluators: Sequence[str], out: Path) -> None:
    """Judge claims with evaluators. Started again after an interruption, it goes on where it was."""
    import shutil

    from factaudit.evaluators.judging import check_names, name_evaluator
    from factaudit.evaluators.judging import judge as judge_claims
    from factaudit.tables import read_claims, suffix, write_table

    suffix(out)  # a wrong name is said before the work, not after
    named = [name_evaluator(spec) for spec in evaluators]
    check_names(named)
    table = read_claims(claims)
    journal = out.parent / f".{out.name}.journal"
    verdicts = judge_claims(table, named, journal=journal, progress=True)
    write_table(verdicts, out)
    for name, part in verdicts.groupby("evaluator", sort=False):
        counts = part["status"].value_counts()
        click.echo(f"{name}: {len(part):,} verdicts, {', '.join(f'{n:,} {status}' for status, n in counts.items())}")
    failed = int((verdicts["status"] == "error").sum())
    if failed:
        click.echo(f"{out} (run the same command again to retry the {failed:,} errors)")
    else:
        shutil.rmtree(journal)
        click.echo(out)


# ----------------------------------------------------------------------------------------------------- audit


@cli.command(
    short_help="Audit verdicts against labelled claims.",
    epilog=example("factaudit audit claims.parquet gpt-4o.parquet minicheck.csv --out runs/mine"),
)
@click.argument("claims", type=_PATH)
@click.argument("verdicts", type=_PATH, nargs=-1, required=True)
@click.option("--out", type=_PATH, required=True, help="The run folder.")
@click.option("--title", default="Evaluators compared", show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the bootstrap.")
@click.option(
    "--replicates",
    type=click.IntRange(0),
    default=2000,
    show_default=True,
    help="Bootstrap replicates; 0 for no intervals.",
)
def audit(claims: Path, verdicts: tuple[Path, ...], out: Path, title: str, seed: int, replicates: int) -> None:
    """Audit verdicts against labelled claims: every audit, all figures and the report, without a YAML."""
    from factaudit.experiment import Experiment
    from factaudit.experiment import run as run_experiment

    experiment = Experiment(
        title=title,
        claims=[str(claims.resolve())],
        verdicts=[str(path.resolve()) for path in verdicts],
        seed=seed,
        replicates=replicates,
    )
    results = run_experiment(experiment, out, say=click.echo)
    _summary(results)


# ---------------------------------------------------------------------------------------------------- adjust


@cli.command(
    short_help="Correct error rates from one labelled system.",
    epilog=example("factaudit adjust claims.parquet verdicts.parquet --calibrate gpt-4"),
)
@click.argument("claims", type=_PATH)
@click.argument("verdicts", type=_PATH, nargs=-1, required=True)
@click.option("--calibrate", required=True, metavar="SYSTEM", help="The system whose labels are used.")
@click.option("--evaluator", help="Only this one.  [default: all]")
@click.option("--level", type=click.Choice(["claim", "response"]), default="claim", show_default=True)
@click.option("--out", type=_PATH, help="Also write the rows as a table: .csv, .jsonl or .parquet.")
def adjust(
    claims: Path, verdicts: tuple[Path, ...], calibrate: str, evaluator: str | None, level: str, out: Path | None
) -> None:
    """Calibrate on one labelled system: the tuned thresholds, and the corrected error rates of the other systems."""
    import pandas as pd

    from factaudit.audit.adjustment import adjust as adjust_rates
    from factaudit.tables import read_claims, read_verdicts, write_table

    table = read_claims(claims)
    rows = adjust_rates(table, read_verdicts(*verdicts, claims=table), evaluator, calibrate, levels=(level,))
    shown = pd.DataFrame(rows)
    if out is not None:
        write_table(shown, out)
    columns = ["dataset", "evaluator", "method", "threshold", "system", "n"]
    figures = ["predicted_error_rate", "adjusted_error_rate", "labelled_error_rate"]
    for figure in figures:
        shown[figure] = shown[figure].map(lambda value: "–" if pd.isna(value) else f"{100 * value:.1f} %")
    shown["threshold"] = shown["threshold"].map(lambda value: "–" if pd.isna(value) else f"{value:.3g}")
    click.echo(shown[columns + figures].to_string(index=False))
    for reason in shown["reason"].dropna().unique():
        click.echo(f"–: {reason}")


# --------------------------------------------------------------------------------------------------- convert


@cli.command(
    "convert",
    short_help="Turn a published data set into claims.",
    epilog=example("factaudit convert tofueval mediasum_factual_eval_dev.csv --out claims.parquet"),
)
@click.argument("format", metavar="FORMAT")
@click.argument("sources", nargs=-1, required=True, metavar="SOURCE...")
@click.option("--out", type=_PATH, required=True, help="Claims: .parquet, .jsonl[.gz] or .csv[.gz].")
@click.option("--verdicts", type=_PATH, help="Verdicts, where the format has them.")
@click.option("--join", multiple=True, metavar="FORMAT:PATH", help="aggrefact only: recover system and response_id.")
@click.option("--option", "options", multiple=True, metavar="KEY=VALUE", help="An option of the format.")
def convert_command(
    format: str, sources: Sequence[str], out: Path, verdicts: Path | None, join: Sequence[str], options: Sequence[str]
) -> None:
    """Turn a published data set into claims (and verdicts). `factaudit list formats` shows the formats."""
    from factaudit.datasets import convert
    from factaudit.tables import suffix, write_table

    for path in (out, verdicts):
        if path is not None:
            suffix(path)
    given = parse_settings(options)
    if join:
        given["join"] = list(join)
    converted = convert(format, sources, **given)
    for note in converted.notes:
        click.echo(note)
    write_table(converted.claims, out)
    click.echo(f"{out}: {len(converted.claims):,} claims")
    if verdicts is not None:
        if converted.verdicts is None:
            raise UsageError(f"the format {format!r} brings no verdicts")
        write_table(converted.verdicts, verdicts)
        click.echo(f"{verdicts}: {len(converted.verdicts):,} verdicts")
    elif converted.verdicts is not None:
        click.echo("the source has verdicts too: name a file for them with --verdicts")


# -------------------------------------------------------------------------------------------------- estimate


@cli.command(
    short_help="Say what an experiment will cost.",
    epilog=example("factaudit estimate experiments/compare_evaluators.yaml"),
)
@click.argument("experiment", type=_PATH)
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override a key of the YAML.")
@click.option("--prices", type=_PATH, help="A price table of your own: CSV with model, input, output per 1M tokens.")
def estimate(experiment: Path, settings: Sequence[str], prices: Path | None) -> None:
    """Say what an experiment's calls will cost, before any is made. Nothing is sent."""
    from factaudit.experiment import engine_of, load
    from factaudit.experiment import estimate as estimate_experiment

    if engine_of(experiment) is not None:
        raise UsageError(
            f"{experiment}: how many facts a response has is not known before it is decomposed; use max_cost"
        )
    rows = estimate_experiment(load(experiment, parse_settings(settings)), prices)
    if not rows:
        click.echo("no evaluator of this experiment asks a language model: nothing to pay")
        return
    total: float | None = 0.0
    for row in rows:
        # Counted with the model's own tokenizer it is a bound; approximated, it is not.
        bound = "about" if row["counted"].startswith("approximately") else "at most"
        money = "unknown" if row["cost"] is None else f"{bound} ${row['cost']:,.2f}"
        total = None if total is None or row["cost"] is None else total + row["cost"]
        click.echo(f"{row['evaluator']}: {row['calls']:,} calls ({row['cached_calls']:,} more are cached)")
        most = row["max_completion_tokens"]
        replies = "replies of any length" if most is None else f"at most {most:,} completion tokens"
        click.echo(f"    {row['prompt_tokens']:,} prompt tokens ({row['counted']}), {replies}")
        dated = f" (prices of {row['price_date']})" if row["price_date"] else ""
        click.echo(f"    cost: {money}{dated}{'; ' + row['reason'] if row['reason'] else ''}")
    click.echo(f"total: {'unknown' if total is None else f'{bound} ${total:,.2f}'}")


# ----------------------------------------------------------------------------------------------------- cache


@cli.group(short_help="Look after the replies that were paid for.", cls=_Group)
def cache() -> None:
    """The replies that language models have given: kept in one SQLite file, never bought twice."""


_CACHE = click.option("--file", "file", type=_PATH, help="The cache.  [default: $FACTAUDIT_CACHE or .cache/factaudit]")


@cache.command("info", short_help="What the cache holds.", epilog=example("factaudit cache info"))
@_CACHE
def cache_info(file: Path | None) -> None:
    """How many replies of which models the cache holds."""
    from factaudit.llm import cache as store

    click.echo(yaml.safe_dump(store.info(file or store.default_path()), sort_keys=False, allow_unicode=True).rstrip())


@cache.command(
    "export", short_help="Write every reply as a line of JSON.", epilog=example("factaudit cache export replies.jsonl")
)
@click.argument("out", type=_PATH)
@_CACHE
def cache_export(out: Path, file: Path | None) -> None:
    """Write every reply as a line of JSON."""
    from factaudit.llm import cache as store

    click.echo(f"{out}: {store.export(file or store.default_path(), out):,} replies")


@cache.command(
    "prune", short_help="Delete replies.", epilog=example("factaudit cache prune --older-than 90 --model gpt-4o-mini")
)
@click.option("--older-than", type=float, metavar="DAYS", help="Only replies older than so many days.")
@click.option("--model", help="Only replies of this model.")
@_CACHE
def cache_prune(older_than: float | None, model: str | None, file: Path | None) -> None:
    """Delete replies, and give the space back."""
    from factaudit.llm import cache as store

    if older_than is None and model is None:
        raise UsageError("say which replies to delete: --older-than DAYS, --model NAME, or both")
    removed = store.prune(file or store.default_path(), older_than=older_than, model=model)
    click.echo(f"{removed:,} replies deleted")


# ---------------------------------------------------------------------------------------------------- report


@cli.command(short_help="Render the report of a run folder again.", epilog=example("factaudit report runs/quickstart"))
@click.argument("run_dir", type=_PATH)
def report(run_dir: Path) -> None:
    """Render the tables, figures and report of a run folder again."""
    from factaudit.report import render
    from factaudit.results import Results

    Results.load(run_dir)  # says what is wrong, where something is
    written = render(run_dir)
    click.echo(f"{run_dir / 'report.html'} ({len(written)} files)")


# -------------------------------------------------------------------------------------------------- validate


@cli.command(
    short_help="Check a file without running anything.",
    epilog=example("factaudit validate claims.jsonl --kind claims"),
)
@click.argument("file", type=_PATH)
@click.option("--kind", type=click.Choice(["experiment", "claims", "verdicts"]), help="Told from the file otherwise.")
@click.option("--claims", type=_PATH, help="The claims that the verdicts are of.")
@click.option("--set", "settings", multiple=True, metavar="KEY=VALUE", help="Override a key of the YAML.")
def validate(file: Path, kind: str | None, claims: Path | None, settings: Sequence[str]) -> None:
    """Check an experiment YAML, a claims file or a verdicts file without running anything."""
    from factaudit.datasets.sources import count
    from factaudit.experiment import engine_of, load
    from factaudit.tables import read_claims, read_table, read_verdicts

    if kind is None:
        if file.suffix in (".yaml", ".yml"):
            kind = "experiment"
        else:
            kind = "verdicts" if "evaluator" in read_table(file) else "claims"
    if kind == "experiment":
        given = parse_settings(settings)
        if (engine := engine_of(file)) is not None:
            engine.load(file, given)
            click.echo(f"{file}: a valid experiment")
            return
        experiment = load(file, given)
        click.echo(f"{file}: a valid experiment ({count(len(experiment.evaluators), 'evaluator')} to run)")
    elif kind == "claims":
        table = read_claims(file)
        labelled = int(table["label"].notna().sum())
        datasets = count(table["dataset"].nunique(), "dataset")
        click.echo(f"{file}: {count(len(table), 'valid claim')}, {labelled:,} labelled, {datasets}")
    else:
        table = read_verdicts(file, claims=read_claims(claims) if claims else None)
        click.echo(f"{file}: {count(len(table), 'valid verdict')} of {', '.join(table['evaluator'].unique())}")


# ------------------------------------------------------------------------------------------------------ list


@cli.command("list", short_help="List the evaluators, audits or formats.", epilog=example("factaudit list evaluators"))
@click.argument("what", type=click.Choice(["evaluators", "audits", "formats"]))
def list_command(what: str) -> None:
    """List the evaluators, audits or formats, each with what it needs and a line to run it."""
    if what == "evaluators":
        from factaudit.evaluators.registry import entries

        for entry in entries().values():
            click.echo(f"{click.style(entry.name, bold=True)}: {entry.summary}")
            click.echo(f"    needs   {entry.needs}")
            if entry.source:
                click.echo(f"    source  {entry.source}")
            click.echo(f"    run     factaudit judge CLAIMS --evaluator {entry.example or entry.name} --out VERDICTS")
    elif what == "audits":
        from factaudit.audit import AUDITS
        from factaudit.results import options_model

        for name, function in AUDITS.items():
            click.echo(f"{click.style(name, bold=True)}: {_first_line(function)}")
            fields = options_model(name).model_fields
            if fields:
                click.echo(f"    options {', '.join(f'{key} (default {f.default!r})' for key, f in fields.items())}")
    else:
        from factaudit.datasets import FORMATS

        for name, format in FORMATS.items():
            click.echo(f"{click.style(name, bold=True)}: {format.summary}")
            click.echo(f"    run     {format.example}")


def _first_line(function: Any) -> str:
    return (function.__doc__ or "").strip().splitlines()[0]


for _command in COMMANDS:
    cli.add_command(_command)


# ------------------------------------------------------------------------------------------------------ main


def main(arguments: Sequence[str] | None = None) -> None:
    """The console script. Never returns: exits with 0, 1 or 2."""
    arguments = list(sys.argv[1:] if arguments is None else arguments)
    try:
        # Without standalone mode click returns the code of --help and --version, and what a command returns: None.
        sys.exit(cli.main(arguments, prog_name="factaudit", standalone_mode=False) or 0)
    except click.ClickException as error:
        error.show()
        sys.exit(2)
    except (click.Abort, KeyboardInterrupt):
        click.echo("\nstopped; what was done is kept: run the same command again to go on", err=True)
        sys.exit(1)
    except FactauditError as error:
        if "--debug" in arguments:
            raise
        click.echo(f"factaudit: {error}", err=True)
        sys.exit(2 if isinstance(error, UsageError) else 1)
    except BrokenPipeError:
        # Who read our output has closed it (`| head`): nothing more is to be written, nor flushed at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
    except OSError as error:
        if "--debug" in arguments:
            raise
        place = f"{error.filename}: " if error.filename else ""
        click.echo(f"factaudit: {place}{error.strerror or error}", err=True)
        sys.exit(1)
    except Exception as error:
        if "--debug" in arguments:
            raise
        click.echo(f"factaudit: {type(error).__name__}: {error}", err=True)
        click.echo("This is a bug in factaudit: please report it, with what `factaudit --debug ...` prints.", err=True)
        sys.exit(1)


if __name__ == "__main__":
    main()
