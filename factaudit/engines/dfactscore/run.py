"""From files of biographies, or MF's published outputs, to a run folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from factaudit.datasets import merging_facts
from factaudit.datasets.sources import expand
from factaudit.engines import run
from factaudit.engines.dfactscore.citations import citation_scores, read_alce_scores, summarise_citations
from factaudit.engines.dfactscore.engine import DFactScorer
from factaudit.engines.dfactscore.humans import (
    annotator_agreement,
    compare_with_machine,
    human_scores,
    popularity,
    read_annotations,
    read_views,
)
from factaudit.engines.dfactscore.published import compare_printed, read_printed
from factaudit.engines.pipeline import Row, Scored
from factaudit.engines.responses import read_files
from factaudit.evaluators.judging import NamedEvaluator, name_evaluator, parts
from factaudit.files import write_jsonl
from factaudit.results import Results
from factaudit.runfolder import audited, checksums, finish, opened
from factaudit.tables import write_table

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
        citation_judge: an evaluator that judges the citations of biographies with documents (`citation_scores`).
        annotations: people's annotations (`factaudit.engines.dfactscore.humans.read_annotations`) to compare with.
        views: a CSV of ``title,views``: does a system tell of the person whom most people look up?
        options: of `factaudit.engines.run.score_files`.
    """
    judge = None if citation_judge is None else name_evaluator(citation_judge)
    callers = [] if judge is None else [(f"citations: {judge.name}", part) for part, _ in parts(judge.evaluator)]

    def more(scored: Scored, journal: Path) -> Callable[[Results, Path], None]:
        cited = [] if judge is None else _cited(sources, judge, journal, options)

        def add(results: Results, folder: Path) -> None:
            told: Row = {"replicates": scorer.replicates, "seed": scorer.seed, "confidence": scorer.confidence}
            if judge is not None:
                write_jsonl(folder / "citations.jsonl", cited)
                results.audits["citations"] = summarise_citations(cited, **told)
            if annotations is not None:
                people = read_annotations(annotations)
                results.audits["dfactscore_people"] = compare_with_machine(
                    human_scores(people), scored.responses, **told
                )
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
    found = merging_facts.convert(paths)
    assert found.verdicts is not None
    own: dict[str, Row] = {"dfactscore": {"link": "given", "gamma": 0.0}, "dfactscore_gap": {"link": "given"}}
    own |= {"dfactscore_linking": {"gamma": 0.0}, "dfactscore_elsewhere": {"link": "given"}}
    with opened(folder, paths):
        for note in found.notes:
            say(note)
        write_table(found.claims, folder / "claims.parquet")
        write_table(found.verdicts, folder / "verdicts.parquet")
        files = [*expand(paths, "*_factscore_output.json"), *expand(map(Path, citations), "*.score")]
        tables = (found.claims, found.verdicts)
        results = audited(*tables, {}, own=(*tables, own), inputs=checksums(files), **options)
        if printed is not None:
            results.audits["dfactscore_printed"] = compare_printed(results.audits["dfactscore"], read_printed(printed))
        if citations:
            chosen = {key: options[key] for key in ("replicates", "seed", "confidence") if key in options}
            results.audits["citation_recall"] = read_alce_scores(citations, **chosen)
        text = ["The links are the published ones; groups are the fewest that the decisions allow.", *found.notes]
        results.sections.append({"title": "The published files", "text": text, "table": None, "figure": None})
        finish(folder, results)
        say(f"report    {folder / 'report.html'}")
        return results


def _cited(
    sources: str | Path | Sequence[str | Path], judge: NamedEvaluator, journal: Path, options: Mapping[str, Any]
) -> list[Row]:
    read = {key: options[key] for key in ("facts", "system", "limit") if key in options}
    responses = read_files([sources] if isinstance(sources, str | Path) else sources, **read)
    return citation_scores(responses, judge, journal=journal, progress=bool(options.get("progress")))[0]
