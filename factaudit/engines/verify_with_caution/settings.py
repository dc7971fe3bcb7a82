"""An experiment YAML with a ``verify_with_caution:`` block, and running it: the paper from its printed cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from factaudit.engines.settings import load_block
from factaudit.engines.verify_with_caution.printed import Printed
from factaudit.engines.verify_with_caution.recompute import recompute
from factaudit.engines.verify_with_caution.recover import SMALL_AND_LARGE, balanced, errors_found, recover
from factaudit.engines.verify_with_caution.reproduce import agreement, reproduction
from factaudit.engines.verify_with_caution.text import statements
from factaudit.results import Results, compare_counts
from factaudit.runfolder import RunSettings, checksums, opened, write_lock
from factaudit.tables import write_table
from factaudit.text.printable import count
from factaudit.unchanged import finish

_PACKAGES = ("numpy", "pandas", "scipy")
#: The audits of the recovered counts, as the paper has them; those of its thresholds need scores.
AUDITS: tuple[str | dict[str, Any], ...] = (
    "quantification",
    {"headroom": {"groups": SMALL_AND_LARGE}},
    "ranking",
    "ranking_pairs",
    {"adjustment": {"levels": ["claim"], "methods": ["none", "adjusted_counts"]}},
)


class Block(BaseModel):
    """The files of the paper's printed figures (``data/published``)."""

    model_config = ConfigDict(extra="forbid")

    tables: str
    text: str
    PATHS: ClassVar[tuple[str, ...]] = ("tables", "text")


class VCExperiment(RunSettings):
    """An experiment YAML with a ``verify_with_caution:`` block."""

    title: str = "Verify with Caution, reproduced"
    verify_with_caution: Block


def load(path: str | Path, settings: Mapping[str, Any] | None = None) -> VCExperiment:
    """Read and check an experiment YAML; ``settings`` override its keys. In the result all paths are absolute."""
    return load_block(VCExperiment, "verify_with_caution", path, settings)


def run(
    experiment: str | Path | VCExperiment,
    out: str | Path,
    *,
    settings: Mapping[str, Any] | None = None,
    progress: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Results:
    """Recover the numbers of claims, audit them, and compare the printed cells that others give with what they give."""
    if not isinstance(experiment, VCExperiment):
        experiment = load(experiment, settings)
    folder, block = Path(out), experiment.verify_with_caution
    with opened(folder, [block.tables, block.text]):
        printed = Printed.read(block.tables)
        say(f"printed   {len(printed.cells):>9,} cells of {len({cell.table for cell in printed.cells})} tables")
        recovered = recover(printed)
        counts = recovered.counts(errors_found(printed, recovered))
        write_table(counts, folder / "counts.parquet")
        options: dict[str, Any] = {"title": experiment.title, "seed": experiment.seed}
        inputs = checksums([Path(block.tables), Path(block.text)])
        results = compare_counts(
            counts,
            audits=experiment.audits or AUDITS,
            replicates=experiment.replicates,
            confidence=experiment.confidence,
            inputs=inputs,
            **options,
        )
        # Of the claims of Tables 3 to 5 no number is known: rates as printed, and no intervals.
        rates = compare_counts(balanced(printed), audits=["rates"], replicates=0, **options)
        rows = reproduction(printed, recompute(printed, recovered))
        compared = [row["within_rounding"] for row in rows if row["within_rounding"] is not None]
        results.audits.update(
            {
                "reproduction_agreement": agreement(rows),
                "reproduction": rows,
                "reproduction_text": statements(block.text, printed, recovered),
                "rates": rates.audits["rates"],
            }
        )
        results.findings.extend(rates.findings)
        say(f"audits    {sum(map(len, results.audits.values())):>9,} rows in {count(len(results.audits), 'audit')}")
        say(f"{sum(compared):,} of {len(compared):,} published cells agree")
        write_lock(folder, experiment, results, packages=_PACKAGES)
        finish(folder, results)
        say(f"report    {folder / 'report.html'}")
    return results
