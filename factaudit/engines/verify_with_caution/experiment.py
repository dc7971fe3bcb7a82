"""An experiment YAML with a ``verify_with_caution:`` block, and running it: the paper from its printed cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict

from factaudit.audit.findings import run_audit_checks
from factaudit.engines.engine_settings import load_engine_experiment
from factaudit.engines.verify_with_caution.cell_recomputation import (
    NO_COUNTS_PRINTED,
    build_printed_rates_table,
    recompute_printed_cells,
    remove_counts_derived_from_printed_rates,
)
from factaudit.engines.verify_with_caution.claim_count_recovery import (
    SYSTEM_SIZE_GROUPS,
    recover_claim_counts,
    recover_detected_error_counts,
    recover_smallest_counts_from_printed_rates,
)
from factaudit.engines.verify_with_caution.printed_tables import (
    PRINTED_PAIR_TEST,
    PrintedTables,
    drop_rates_pooled_over_printed_systems,
    show_printed_balanced_accuracies,
)
from factaudit.engines.verify_with_caution.reproduction_rows import (
    build_reproduction_rows,
    compare_running_text_with_tables,
    count_reproduced_cells,
    describe_cells_given_by_choice,
    describe_orders_beside_printed_ones,
    describe_reproduction_agreement,
)
from factaudit.results import Results, compare_counts
from factaudit.run_ending import describe_run_audit_rows, finish_run
from factaudit.run_folder import RunSettings, list_file_checksums, lock_run_folder_for_writing, write_experiment_yaml
from factaudit.tables import write_table

_RECORDED_PACKAGES = ("numpy", "pandas", "scipy")
#: The audits of the recovered counts, as the paper has them; those of its thresholds need scores.
RECOVERED_COUNTS_AUDITS: tuple[str | dict[str, Any], ...] = (
    "quantification",
    {"headroom": {"groups": SYSTEM_SIZE_GROUPS}},
    {"ranking": PRINTED_PAIR_TEST},
    {"ranking_pairs": PRINTED_PAIR_TEST},
    {"adjustment": {"levels": ["claim"], "methods": ["none", "adjusted_counts"]}},
)
#: What a reader must know of tests and corrections that rest on numbers of claims.
RECOVERED_COUNTS_NOTE = (
    "The paper prints no numbers of claims. These tests and corrections rest on recovered ones, which give the printed "
    "rates and are not unique: with others some <, = and > may differ."
)
RECOVERED_RATES_NOTE = (
    "The paper prints no numbers of claims: TPR, TNR and their gap are of recovered ones, and differ from the printed "
    "rates by rounding."
)
#: Why means of the report are other ones than the paper's, which agree with ours where both have all calibrations.
REFUSED_CALIBRATIONS_NOTE = (
    "Calibrations that are not shown to do better than chance are left out of these means, and not of Table 1's."
)


class VerifyWithCautionSettings(BaseModel):
    """The files of the paper's printed figures (``data/published``)."""

    model_config = ConfigDict(extra="forbid")

    tables: str
    text: str
    PATHS: ClassVar[tuple[str, ...]] = ("tables", "text")


class VerifyWithCautionExperiment(RunSettings):
    """An experiment YAML with a ``verify_with_caution:`` block."""

    title: str = "Verify with Caution, reproduced"
    verify_with_caution: VerifyWithCautionSettings


def load_verify_with_caution_experiment(
    path: str | Path, settings: Mapping[str, Any] | None = None
) -> VerifyWithCautionExperiment:
    """Read and check an experiment YAML; ``settings`` override its keys. In the result all paths are absolute."""
    return load_engine_experiment(VerifyWithCautionExperiment, "verify_with_caution", path, settings)


def run_verify_with_caution_experiment(
    experiment: str | Path | VerifyWithCautionExperiment,
    out: str | Path,
    *,
    settings: Mapping[str, Any] | None = None,
    progress: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Results:
    """Recover the numbers of claims, audit them, and compare the printed cells that others give with what they give."""
    if not isinstance(experiment, VerifyWithCautionExperiment):
        experiment = load_verify_with_caution_experiment(experiment, settings)
    folder, block = Path(out), experiment.verify_with_caution
    with lock_run_folder_for_writing(folder, [block.tables, block.text]):
        printed = PrintedTables.read(block.tables)
        say(f"printed   {len(printed.cells):>9,} cells of {len({cell.table for cell in printed.cells})} tables")
        recovered = recover_claim_counts(printed)
        counts = recovered.build_counts_table(recover_detected_error_counts(printed, recovered))
        write_table(counts, folder / "counts.parquet")
        options: dict[str, Any] = {"title": experiment.title, "seed": experiment.seed}
        inputs = list_file_checksums([Path(block.tables), Path(block.text)])
        chosen = experiment.audits or RECOVERED_COUNTS_AUDITS
        settings_of_all: dict[str, Any] = options | {"replicates": 0, "confidence": experiment.confidence}
        # Rates are shown as printed; only orders and corrections are of the recovered numbers of claims.
        results = compare_counts(counts, audits=chosen, inputs=inputs, **settings_of_all)
        as_printed = compare_counts(build_printed_rates_table(printed), audits=chosen, **settings_of_all)
        for name in results.audits:
            of = as_printed if name in ("quantification", "headroom") else results
            results.audits[name] = remove_counts_derived_from_printed_rates(of.audits[name])
        results.audits["quantification"] = drop_rates_pooled_over_printed_systems(results.rows("quantification"))
        rates = compare_counts(recover_smallest_counts_from_printed_rates(printed), audits=["rates"], **settings_of_all)
        results.about["claims"] = []
        results.about["counts"] = NO_COUNTS_PRINTED
        names = dict.fromkeys([*results.evaluators, *rates.evaluators])
        results.about["evaluators"] = [{"name": name, "signature": None, "floor": False} for name in names]
        notes = dict.fromkeys(("ranking", "ranking_pairs", "adjustment"), RECOVERED_COUNTS_NOTE)
        notes["rates"] = RECOVERED_RATES_NOTE
        notes["adjustment"] += " " + REFUSED_CALIBRATIONS_NOTE
        rows = build_reproduction_rows(printed, recompute_printed_cells(printed, recovered))
        notes["ranking"] += " " + describe_orders_beside_printed_ones(printed, results.rows("ranking"))
        notes["reproduction_agreement"] = describe_cells_given_by_choice(rows)
        results.about["notes"] = notes
        results.audits.update(
            {
                "reproduction_agreement": count_reproduced_cells(rows),
                "reproduction": rows,
                "reproduction_text": compare_running_text_with_tables(block.text, printed, recovered),
                "rates": show_printed_balanced_accuracies(
                    printed, remove_counts_derived_from_printed_rates(rates.audits["rates"], "ppr")
                ),
            }
        )
        results.finding_rows[:], results.about["n_tests"] = run_audit_checks(results.audits, results.about)
        say(describe_run_audit_rows(results))
        say(describe_reproduction_agreement(rows))
        write_experiment_yaml(folder, experiment, results, packages=_RECORDED_PACKAGES)
        finish_run(folder, results)
        say(f"report    {folder / 'report.html'}")
    return results
