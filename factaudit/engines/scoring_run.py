"""How do files of responses become a run folder? Tables, summary, audits and the report, for both engines."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from factaudit.audit.audit_options import read_audit_names_and_options
from factaudit.engines.records import ScoredResponseRecords
from factaudit.engines.responses import ANNOTATED_FACT_SOURCES, Response, read_response_files
from factaudit.engines.scoring_engine import ScoringEngine
from factaudit.evaluators.unscored_verdicts import format_unscored_verdicts
from factaudit.files import write_json, write_jsonl
from factaudit.results import Results
from factaudit.run_folder import (
    RunFolder,
    RunSettings,
    compare_run_tables,
    count_run_llm_calls,
    list_file_checksums,
    sum_run_call_costs,
)
from factaudit.signature import make_signature
from factaudit.tables import write_table
from factaudit.text.display_text import format_count

Say = Callable[[str], None]
#: Called with the responses, their scores and the folder of journals while calls are counted; what it returns is
#: called with the results and the run folder, to add to them.
ResultsExtension = Callable[[Sequence[Response], ScoredResponseRecords, Path], Callable[[Results, Path], None]]


def score_response_files(
    sources: str | Path | Sequence[str | Path],
    scorer: ScoringEngine,
    run_folder: str | Path,
    *,
    facts: str | Path | None = None,
    system: str | None = None,
    limit: int | None = None,
    title: str = "",
    audits: Sequence[str | Mapping[str, Any]] | None = None,
    max_cost: float | None = None,
    callers: Sequence[tuple[str, Any]] = (),
    inputs: Sequence[str | Path] = (),
    extend_results: ResultsExtension | None = None,
    responses: Sequence[Response] | None = None,
    experiment: RunSettings | None = None,
    overwrite: bool = False,
    progress: bool = False,
    say: Say = lambda text: None,
) -> Results:
    """Score files of responses into a run folder; the same call again resumes and reuses.

    Writes ``claims.parquet``, ``verdicts.parquet``, ``responses.jsonl``, ``summary.json`` (with this run's
    ``seconds_per_example``: what was known already takes none), ``results.json``, tables, figures and the report.

    Args:
        sources: files as `factaudit.engines.responses.read_response_file` reads them, with ``facts``, ``system``,
            ``limit``.
        audits: which besides the engine's own (`factaudit.results.compare`); None: all where facts have labels.
        max_cost: US dollars that all runs into this folder may spend; None leaves the clients' own limits.
        callers: what else asks models, with the names of its calls. inputs: what else is read. extend_results: adds
            audits of its own.
        responses: what was read of the sources, where these are of another form.
        experiment: the settings that all this is of, for ``experiment.yaml``.
        overwrite: whether results of other sources in the folder may go.
        say: gets one line per stage.
    """
    folder = Path(run_folder)
    read_audit_names_and_options(audits)  # a misspelt audit is found before an hour of judging, not after
    paths = [Path(one) for one in ([sources] if isinstance(sources, str | Path) else sources)]
    if responses is None:
        responses = read_response_files(paths, facts=facts, system=system, limit=limit)
    say(f"responses {len(responses):>9,} of {format_count(len({one.system for one in responses}), 'system')}")
    read = [*paths, *(Path(one) for one in (facts, *inputs) if one is not None and one not in ANNOTATED_FACT_SOURCES)]
    with RunFolder.open(folder, read, overwrite=overwrite, say=say) as run:
        add = None
        with count_run_llm_calls([*scorer.counted_clients, *callers], run.work / "calls.json", max_cost) as calls:
            start = time.monotonic()
            scored = scorer.score_responses(responses, journal=run.work / "journal", progress=progress)
            seconds = (time.monotonic() - start) / max(1, len(responses))
            if extend_results is not None:
                add = extend_results(responses, scored, run.work / "journal")
        summary = scored.summary
        for line in format_unscored_verdicts(scored.verdicts):
            say(line)
        n_facts, n_unscored, n_failed = (summary[key] for key in ("n_facts", "n_unscored", "n_failed_sentences"))
        told = f"; {format_count(n_failed, 'sentence')} not decomposed" if n_failed else ""
        n_left_out = summary["n_left_out_sentences"]
        told += f"; {format_count(n_left_out, 'line')} of layout or talk left out" if n_left_out else ""
        say(f"facts     {n_facts - n_failed:>9,}, {n_unscored - n_failed:,} of them unscored{told}")
        write_table(scored.claims, folder / "claims.parquet")
        write_table(scored.verdicts, folder / "verdicts.parquet")
        write_jsonl(folder / "responses.jsonl", scored.responses)
        told = make_signature(scorer.signatures[scorer.names[0]], scorer.settings)
        shown = {key: value for key, value in summary.items() if key != "rows"}  # they are in results.json
        spent = {"cost": sum_run_call_costs(calls), "seconds_per_example": round(seconds, 6), "signature": told}
        write_json(folder / "summary.json", shown | spent)
        results = compare_run_tables(
            *scored.audit_tables,
            scorer.settings,
            title=title or scorer.title,
            audits=audits,
            engine_tables=(scored.claims, scored.verdicts, scorer.audits()),
            inputs=list_file_checksums(read),
            signatures=scorer.signatures,
            replicates=scorer.replicates,
            seed=scorer.seed,
            confidence=scorer.confidence,
        )
        results.sections.extend(scorer.sections(scored))
        results.audits.update(scorer.tables(scored))
        if add is not None:
            add(results, folder)
        results.calls.extend(calls)
        for line in scorer.format_summary_lines(scored):
            say(line)
        return run.finish(experiment, results)
