"""Experiment YAMLs and run folders: ``run``, ``report``, ``validate``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from factaudit.cli.options import OVERRIDE, PATH, PNG, example, mapping_options
from factaudit.cli.show import RUN, TABLES, counted, show_results
from factaudit.cli.terminal import say
from factaudit.cli.verb import Verb, answer

if TYPE_CHECKING:
    from factaudit.intake.mapping import Mapping


@click.command(
    cls=Verb,
    gives=RUN,
    short_help="Run an experiment YAML into a run folder.",
    epilog=example("factaudit run experiments/quickstart.yaml --out runs/quickstart --set seed=1"),
)
@click.argument("experiment", type=PATH)
@click.option("--out", type=PATH, help="The run folder.  [default: runs/NAME-OF-THE-YAML]")
@OVERRIDE
@PNG
def run(experiment: Path, out: Path | None, settings: Sequence[str], png: bool) -> None:
    """Run an experiment YAML and write its run folder; a second run reuses what is unchanged."""
    from factaudit.experiment import run as run_experiment
    from factaudit.unchanged import add_pngs
    from factaudit.yamlfile import parse_settings

    out = out or Path("runs") / experiment.stem
    results = run_experiment(experiment, out, settings=parse_settings(settings), progress=True, say=say)
    if png:
        add_pngs(out)
    show_results(results, out)


@click.command(
    cls=Verb,
    gives={"report": "string: the report", "files": "array: all files that were written"},
    short_help="Render the report of a run folder again.",
    epilog=example("factaudit report runs/quickstart"),
)
@click.argument("run_dir", type=PATH)
@PNG
def report(run_dir: Path, png: bool) -> None:
    """Render the tables, figures and report of a run folder again."""
    from factaudit.results import Results
    from factaudit.runfolder import opened
    from factaudit.unchanged import refresh

    Results.load(run_dir)  # says what is wrong, where something is
    with opened(run_dir):
        written = refresh(run_dir, png=png, anew=True)
    say(f"{run_dir / 'report.html'} ({len(written)} files)")
    answer({"report": run_dir / "report.html", "files": sorted(written)})


@click.command(
    cls=Verb,
    gives={
        "file": "string: what is valid",
        "kind": "string: experiment, claims, verdicts, or tables of both",
        "n_evaluators": "integer or null: an experiment's, to run",
        **TABLES,
    },
    short_help="Check a file without running anything.",
    epilog=example("factaudit validate claims.jsonl --kind claims"),
)
@click.argument("file", type=PATH)
@click.option("--kind", type=click.Choice(["experiment", "claims", "verdicts"]), help="Told from the file otherwise.")
@click.option("--claims", type=PATH, help="The claims that the verdicts are of.")
@OVERRIDE
@mapping_options
def validate(file: Path, kind: str | None, claims: Path | None, settings: Sequence[str], mapping: Mapping) -> None:
    """Check an experiment YAML, a claims file or a verdicts file without running anything."""
    from factaudit.experiment import engine_of, load
    from factaudit.intake.load import load as load_tables
    from factaudit.tables import read_claims, read_verdicts
    from factaudit.text.printable import count
    from factaudit.yamlfile import parse_settings

    n_evaluators, made, verdicts = None, None, None
    if kind is None:
        kind = "experiment" if file.suffix in (".yaml", ".yml") else "tables"
    if kind == "experiment":
        given = parse_settings(settings)
        if (engine := engine_of(file)) is not None:
            engine.load(file, given)
            say(f"{file}: a valid experiment")
        else:
            n_evaluators = len(load(file, given).evaluators)
            say(f"{file}: a valid experiment ({count(n_evaluators, 'evaluator')} to run)")
    elif kind == "claims":
        made = read_claims(file)
    elif kind == "verdicts":
        verdicts = read_verdicts(file, claims=read_claims(claims) if claims else None)
    else:
        loaded = load_tables([file] if claims is None else [claims, file], mapping, say)
        made, verdicts = loaded.claims if claims is None else None, loaded.verdicts
    if made is not None:
        labelled, datasets = int(made["label"].notna().sum()), count(made["dataset"].nunique(), "dataset")
        say(f"{file}: {count(len(made), 'valid claim')}, {labelled:,} labelled, {datasets}")
    if verdicts is not None:
        say(f"{file}: {count(len(verdicts), 'valid verdict')} of {', '.join(verdicts['evaluator'].unique())}")
    answer({"file": file, "kind": kind, "n_evaluators": n_evaluators, **counted(made, verdicts)})


COMMANDS = (run, report, validate)
