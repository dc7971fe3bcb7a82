"""Audits without a YAML: ``audit``, and ``adjust`` for the error rates that one labelled system corrects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from factaudit.cli.options import PATH, PNG, REPLICATES, RUN_FOLDER, example, mapping_options
from factaudit.cli.show import RUN, show_adjusted, show_results
from factaudit.cli.terminal import say
from factaudit.cli.verb import Verb, answer

if TYPE_CHECKING:
    from factaudit.intake.mapping import Mapping


@click.command(
    cls=Verb,
    gives=RUN,
    short_help="Audit verdicts against labelled claims.",
    epilog=example("factaudit audit claims.parquet gpt-4o.parquet minicheck.csv --out runs/mine"),
)
@click.argument("files", nargs=-1, required=True, metavar="CLAIMS|COUNTS|TABLES [VERDICTS|ANNOTATIONS]...")
@RUN_FOLDER
@mapping_options
@click.option("--title", default="Evaluators compared", show_default=True)
@click.option("--seed", type=click.IntRange(0), default=0, show_default=True, help="Of the bootstrap.")
@click.option(
    "--replicates",
    type=REPLICATES,
    default=2000,
    show_default=True,
    help="Bootstrap replicates; 0 for no intervals.",
)
@click.option(
    "--on",
    "where",
    type=click.Choice(["memory", "duckdb"]),
    help="Read Parquet into memory, or by queries.  [default: by queries above 10,000,000 verdicts]",
)
@click.option(
    "--limit",
    "limits",
    multiple=True,
    metavar="NAME=SHARE",
    help="What is asked of an evaluator: min_rate, max_bias, max_misordered, min_orderable, max_unscored.",
)
@click.option(
    "--label-rule",
    "label_rules",
    multiple=True,
    metavar="RULE",
    help="Of several annotators: majority, any_unattributable, all_attributable or a name. The first makes the labels, "
    "all are shown beside each other.",
)
@PNG
def audit(
    files: tuple[str, ...],
    out: Path,
    mapping: Mapping,
    title: str,
    seed: int,
    replicates: int,
    where: str | None,
    limits: tuple[str, ...],
    label_rules: tuple[str, ...],
    png: bool,
) -> None:
    """Audit verdicts against labelled claims: every audit, all figures and the report, without a YAML.

    One file may hold both. Files whose columns are not ours are read as what they seem to be, which is told;
    `factaudit inspect` shows it before. Where only error rates are published: a table of counts (dataset, system,
    evaluator, n, labelled_error_rate, predicted_error_rate).

    Of any size, past memory: Parquet, or duckdb:///path.db?claims=TABLE&verdicts=TABLE.
    """
    from factaudit.experiment import Experiment
    from factaudit.experiment import run as run_experiment
    from factaudit.intake.anyfile import read_any
    from factaudit.tables.counts import is_counts
    from factaudit.unchanged import add_pngs

    given: dict[str, Any] = {"title": title, "seed": seed, "replicates": replicates, "where": where}
    given["decisions"] = dict(_limit(text) for text in limits)
    paths = [str(Path(name).resolve()) for name in files]
    if len(files) == 1 and "://" in files[0]:
        given["tables"] = files[0]
    elif len(files) == 1 and is_counts(read_any(Path(files[0]))):
        given["counts"] = paths[0]
    else:
        given["claims"], given["verdicts"] = paths[:1], paths[1:]
        given["mapping"] = mapping.model_dump(exclude_defaults=True, mode="json")
        given["label_rules"] = list(label_rules)
    experiment = Experiment(**given)
    results = run_experiment(experiment, out, say=say)
    if png:
        add_pngs(out)
    show_results(results, out)


def _limit(text: str) -> tuple[str, float]:
    """``max_bias=0.03``."""
    from factaudit.audit.core.decisions import Limits

    name, _, value = text.partition("=")
    try:
        return name, Limits.of({name: float(value)}).given()[name]
    except ValueError:
        raise click.BadParameter(f"expected NAME=SHARE, found {text!r}", param_hint="--limit") from None


@click.command(
    cls=Verb,
    gives={
        "rows": "array: per dataset, evaluator, method and system: threshold, n, predicted_error_rate,"
        " adjusted_error_rate with _low and _high, labelled_error_rate, reason where there is none",
        "out": "string or null: the file of the rows",
    },
    short_help="Correct error rates from one labelled system.",
    epilog=example("factaudit adjust claims.parquet verdicts.parquet --calibrate gpt-4"),
)
@click.argument("claims", type=PATH)
@click.argument("verdicts", type=PATH, nargs=-1, required=True)
@click.option("--calibrate", required=True, metavar="SYSTEM", help="The system whose labels are used.")
@click.option("--evaluator", help="Only this one.  [default: all]")
@click.option("--level", type=click.Choice(["claim", "response"]), default="claim", show_default=True)
@click.option("--out", type=PATH, help="Also write the rows as a table: .csv, .jsonl or .parquet.")
def adjust(
    claims: Path, verdicts: tuple[Path, ...], calibrate: str, evaluator: str | None, level: str, out: Path | None
) -> None:
    """Calibrate on one labelled system: the tuned thresholds, and the corrected error rates of the other systems."""
    import pandas as pd

    from factaudit.audit.core.adjust import adjust as adjust_rates
    from factaudit.audit.core.intervals import Intervals
    from factaudit.files import spare
    from factaudit.tables import read_claims, read_verdicts, records, suffix, write_table

    if out is not None:
        suffix(out)  # a wrong name is said before the work, not after
    spare([claims, *verdicts], out)
    table = read_claims(claims)
    rows = pd.DataFrame(
        adjust_rates(
            table, read_verdicts(*verdicts, claims=table), evaluator, calibrate, levels=(level,), intervals=Intervals()
        )
    )
    if out is not None:
        write_table(rows, out)
    show_adjusted(rows)
    answer({"rows": records(rows), "out": out})


COMMANDS = (audit, adjust)
