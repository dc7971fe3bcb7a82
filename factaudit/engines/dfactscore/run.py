"""From files of biographies, or MF's published outputs, to a run folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pandas as pd

from factaudit.audit.annotators import annotator_agreement
from factaudit.audit.citations import citations as citation_rows
from factaudit.audit.core.intervals import Intervals
from factaudit.audit.core.judged import Judged
from factaudit.audit.people import compare_with_machine, human_scores
from factaudit.audit.popularity import popularity
from factaudit.audit.printed import compare_printed, read_printed
from factaudit.datasets import alce, merging_facts
from factaudit.datasets.people import read_annotations, read_views
from factaudit.datasets.sources import expand
from factaudit.engines import run
from factaudit.engines.citations import judge_citations
from factaudit.engines.dfactscore.engine import DFactScorer
from factaudit.engines.pipeline import Row
from factaudit.engines.records import Scored
from factaudit.engines.responses import read_files
from factaudit.evaluators.judging import NamedEvaluator, name_evaluator, parts
from factaudit.files import write_jsonl
from factaudit.results import Results
from factaudit.runfolder import audited, checksums, opened
from factaudit.tables import merge_claims, merge_verdicts, records, write_table
from factaudit.unchanged import finish

Say = Callable[[str], None]


def score_files(
    sources: str | Path | Sequence[str | Path],
    scorer: DFactScorer,
    out: str | Path,
    *,
    citation_judge: str | Mapping[str, Any] | None = None,
    annotations: str | Path | None = None,
    views: str | Path | None = None,
    **options: Any,
) -> Results:
    """Score files of biographies into a run folder (``factaudit dscore``): `factaudit.engines.run.score_files`, and

    Args:
        citation_judge: an evaluator that judges the citations of biographies with documents (`judge_citations`).
        annotations: people's annotations (`factaudit.datasets.people.Annotation`) to compare with.
        views: a CSV of ``title,views``: does a system tell of the person whom most people look up?
        options: of `factaudit.engines.run.score_files`.
    """
    judge = None if citation_judge is None else name_evaluator(citation_judge)
    callers = [] if judge is None else [(f"citations: {judge.name}", part) for part, _ in parts(judge.evaluator)]

    def more(scored: Scored, journal: Path) -> Callable[[Results, Path], None]:
        cited = None if judge is None else _cited(sources, judge, journal, options)

        def add(results: Results, folder: Path) -> None:
            intervals = None
            if scorer.replicates:
                intervals = Intervals(scorer.replicates, scorer.seed, scorer.confidence)
            if cited is not None:
                claims, verdicts = cited
                judged = claims.drop(columns="doc").merge(verdicts, on="claim_id", how="left")
                write_jsonl(folder / "citations.jsonl", records(judged))
                results.audits["citations"] = citation_rows(Judged.join(claims, verdicts), intervals=intervals)
            if annotations is not None:
                people = read_annotations(annotations)
                told = human_scores(people)
                results.audits["dfactscore_people"] = compare_with_machine(told, scored.responses, intervals=intervals)
                results.audits["annotator_agreement"] = annotator_agreement(people)
            if views is not None:
                results.audits["popularity"] = [popularity(scored.responses, read_views(views))]

        return add

    inputs = [one for one in (annotations, views) if one is not None]
    return run.score_files(sources, scorer, out, callers=callers, inputs=inputs, more=more, **options)


def published_files(
    sources: Sequence[str | Path],
    out: str | Path,
    *,
    printed: str | Path | None = None,
    citations: Sequence[str | Path] = (),
    say: Say = lambda text: None,
    **options: Any,
) -> Results:
    """Rebuild MF's Table 4 from its published decisions (`factaudit.datasets.merging_facts`) into a run folder.

    Args:
        printed: a CSV of printed figures to compare with (``data/published/mf_table4.csv``).
        citations: ALCE ``*.score`` files, or folders of them, whose citation recall is computed again.
        options: title, audits, replicates, seed, confidence (`factaudit.runfolder.audited`).
    """
    folder = Path(out)
    paths = [Path(one) for one in sources]
    found = [merging_facts.convert(paths)]
    own: dict[str, Row] = {"dfactscore": {"link": "given", "gamma": 0.0}, "dfactscore_gap": {"link": "given"}}
    own |= {"dfactscore_linking": {"gamma": 0.0}, "dfactscore_elsewhere": {"link": "given"}}
    if citations:
        found.append(alce.convert([Path(one) for one in citations]))
        own["citations"] = {}
    claims = merge_claims([one.claims for one in found])
    verdicts = merge_verdicts([one.verdicts for one in found if one.verdicts is not None])
    notes = [note for one in found for note in one.notes]
    with opened(folder, paths):
        for note in notes:
            say(note)
        write_table(claims, folder / "claims.parquet")
        write_table(verdicts, folder / "verdicts.parquet")
        files = [*expand(paths, "*_factscore_output.json"), *expand(map(Path, citations), "*.score")]
        tables = (claims, verdicts)
        results = audited(*tables, {}, own=(*tables, own), inputs=checksums(files), **options)
        if printed is not None:
            results.audits["dfactscore_printed"] = compare_printed(results.audits["dfactscore"], read_printed(printed))
        text = ["The links are the published ones; groups are the fewest that the decisions allow.", *notes]
        results.sections.append({"title": "The published files", "text": text, "table": None, "figure": None})
        finish(folder, results)
        say(f"report    {folder / 'report.html'}")
        return results


def _cited(
    sources: str | Path | Sequence[str | Path], judge: NamedEvaluator, journal: Path, options: Mapping[str, Any]
) -> tuple[pd.DataFrame, pd.DataFrame]:
    read = {key: options[key] for key in ("facts", "system", "limit") if key in options}
    responses = read_files([sources] if isinstance(sources, str | Path) else sources, **read)
    return judge_citations(responses, judge, journal=journal, progress=bool(options.get("progress")))
