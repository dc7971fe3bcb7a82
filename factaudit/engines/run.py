"""From files of responses to a run folder: tables, summary, audits and the report; the same for both engines."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from factaudit.engines.pipeline import Engine
from factaudit.engines.records import Scored
from factaudit.engines.responses import ANNOTATED, Response, read_files
from factaudit.evaluators.unread import unread
from factaudit.files import write_json, write_jsonl
from factaudit.results import Results, audit_options
from factaudit.runfolder import audited, checksums, counted, opened, total_cost
from factaudit.signature import signature
from factaudit.tables import write_table
from factaudit.unchanged import finish

Say = Callable[[str], None]
#: Besides the engine's own audits: given the scores and a journal, writes what it will and adds to the results.
More = Callable[[Scored, Path], Callable[[Results, Path], None]]


def score_files(
    sources: str | Path | Sequence[str | Path],
    scorer: Engine,
    out: str | Path,
    *,
    facts: str | Path | None = None,
    system: str | None = None,
    limit: int | None = None,
    title: str = "",
    audits: Sequence[str | Mapping[str, Any]] | None = None,
    max_cost: float | None = None,
    callers: Sequence[tuple[str, Any]] = (),
    inputs: Sequence[str | Path] = (),
    more: More | None = None,
    responses: Sequence[Response] | None = None,
    progress: bool = False,
    say: Say = lambda text: None,
) -> Results:
    """Score files of responses into a run folder; the same call again resumes and reuses.

    Writes ``claims.parquet``, ``verdicts.parquet``, ``responses.jsonl``, ``summary.json`` (with this run's
    ``seconds_per_example``: what was known already takes none), ``results.json``, tables, figures and the report.

    Args:
        sources: files as `factaudit.engines.responses.read_responses` reads them, with ``facts``, ``system``,
            ``limit``.
        audits: which besides the engine's own (`factaudit.results.compare`); None: all where facts have labels.
        max_cost: US dollars that all runs into this folder may spend; None leaves the clients' own limits.
        callers, inputs, more: what else asks models, what else is read, and what else is made of the scores.
        responses: what was read of the sources, where these are of another form.
        say: gets one line per stage.
    """
    folder = Path(out)
    audit_options(audits)  # a misspelt audit is found before an hour of judging, not after
    paths = [Path(one) for one in ([sources] if isinstance(sources, str | Path) else sources)]
    if responses is None:
        responses = read_files(paths, facts=facts, system=system, limit=limit)
    say(f"responses {len(responses):>9,} of {len({one.system for one in responses})} systems")
    read = [*paths, *(Path(one) for one in (facts, *inputs) if one is not None and one not in ANNOTATED)]
    with opened(folder, read) as work:
        add = None
        with counted([*scorer.callers, *callers], work / "calls.json", max_cost) as calls:
            start = time.monotonic()
            scored = scorer.score_responses(responses, journal=work / "journal", progress=progress)
            seconds = (time.monotonic() - start) / max(1, len(responses))
            if more is not None:
                add = more(scored, work / "journal")
        summary = scored.summary
        for line in unread(scored.verdicts):
            say(line)
        say(f"facts     {summary['n_facts']:>9,}, {summary['n_unscored']:,} of them unscored")
        write_table(scored.claims, folder / "claims.parquet")
        write_table(scored.verdicts, folder / "verdicts.parquet")
        write_jsonl(folder / "responses.jsonl", scored.responses)
        told = signature(scorer.signatures[scorer.names[0]], scorer.settings)
        shown = {key: value for key, value in summary.items() if key != "rows"}  # they are in results.json
        spent = {"cost": total_cost(calls), "seconds_per_example": round(seconds, 6), "signature": told}
        write_json(folder / "summary.json", shown | spent)
        results = audited(
            *scored.verified,
            scorer.settings,
            title=title or scorer.title,
            audits=audits,
            own=(scored.claims, scored.verdicts, scorer.audits()),
            inputs=checksums(read),
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
        finish(folder, results)
        for line in scorer.told(summary):
            say(line)
        say(f"report    {folder / 'report.html'}")
        return results
