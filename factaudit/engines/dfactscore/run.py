"""From files of biographies, or MF's published outputs, to a run folder: tables, summary, audits and the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from factaudit.engines.dfactscore.citations import citation_scores, read_alce_scores, summarise_citations
from factaudit.engines.dfactscore.engine import DFactScorer, Scored
from factaudit.engines.dfactscore.humans import (
    annotator_agreement,
    compare_with_machine,
    human_scores,
    popularity,
    read_annotations,
    read_views,
)
from factaudit.engines.dfactscore.published import DATASET, Published, compare_printed, read_printed, read_published
from factaudit.engines.dfactscore.rows import DFACTSCORE, FACTSCORE
from factaudit.engines.dfactscore.score import CATEGORIES
from factaudit.engines.responses import ANNOTATED, read_files
from factaudit.evaluators.judging import name_evaluator, parts
from factaudit.evaluators.unread import unread
from factaudit.files import write_json, write_jsonl
from factaudit.results import Results, audit_options
from factaudit.runfolder import audited, checksums, counted, finish, opened, total_cost
from factaudit.signature import signature
from factaudit.tables import write_table

Row = dict[str, Any]
Say = Callable[[str], None]
#: Merged paragraphs that the report shows (all are in its table's file), and responses that are lists of facts only.
SHOWN, SHOWN_LISTS = 12, 6
#: From this difference on, FActScore alone is a wrong account of a system.
LARGE_GAP = 0.05


def score_files(
    sources: str | Path | Sequence[str | Path],
    scorer: DFactScorer,
    out: str | Path,
    *,
    facts: str | Path | None = None,
    system: str | None = None,
    limit: int | None = None,
    title: str = "D-FActScore",
    audits: Sequence[str | Mapping[str, Any]] | None = None,
    citation_judge: str | Mapping[str, Any] | None = None,
    annotations: str | Path | None = None,
    views: str | Path | None = None,
    max_cost: float | None = None,
    progress: bool = False,
    say: Say = lambda text: None,
) -> Results:
    """Score files of biographies into a run folder (``factaudit dscore``); the same call again resumes.

    Writes ``claims.parquet`` and ``verdicts.parquet`` (every fact against every candidate), ``responses.jsonl``,
    ``summary.json``, ``results.json``, tables, figures and the report.

    Args:
        sources: files as `factaudit.engines.responses.read_responses` reads them, with ``facts``, ``system``,
            ``limit``.
        audits: which (`factaudit.results.compare`); None: all where facts have labels.
        citation_judge: an evaluator that judges the citations of biographies with documents (`citation_scores`).
        annotations: people's annotations (`factaudit.engines.dfactscore.humans.read_annotations`) to compare with.
        views: a CSV of ``title,views``: does a system tell of the person whom most people look up?
        max_cost: US dollars that all runs into this folder may spend; None leaves the clients' own limits.
        say: gets one line per stage.
    """
    folder = Path(out)
    audit_options(audits)  # a misspelt audit is found before an hour of judging, not after
    paths = [Path(one) for one in ([sources] if isinstance(sources, str | Path) else sources)]
    biographies = read_files(paths, facts=facts, system=system, limit=limit)
    say(f"responses {len(biographies):>9,} of {len({one.system for one in biographies})} systems")
    judge = None if citation_judge is None else name_evaluator(citation_judge)
    callers = scorer.callers
    if judge is not None:
        callers += [(f"citations: {judge.name}", part) for part, _ in parts(judge.evaluator)]
    options: Row = {"replicates": scorer.replicates, "seed": scorer.seed, "confidence": scorer.confidence}
    with opened(folder, paths) as work:
        with counted(callers, work / "calls.json", max_cost) as calls:
            scored = scorer.score(biographies, journal=work / "journal", progress=progress)
            cited: list[Row] = []
            if judge is not None:
                cited, _ = citation_scores(biographies, judge, journal=work / "journal", progress=progress)
        n_facts, n_pairs = scored.summary["n_facts"], len(scored.verdicts)
        for line in unread(scored.verdicts):
            say(line)
        say(f"facts     {n_facts:>9,}, {n_pairs:,} verdicts on a fact and an entity")
        write_table(scored.claims, folder / "claims.parquet")
        write_table(scored.verdicts, folder / "verdicts.parquet")
        write_jsonl(folder / "responses.jsonl", scored.responses)
        told = signature(scorer.signatures[scorer.names[0]], scorer.settings)
        write_json(folder / "summary.json", scored.summary | {"cost": total_cost(calls), "signature": told})
        paths += [Path(one) for one in (facts, annotations, views) if one is not None and one not in ANNOTATED]
        inputs = checksums(paths)
        results = audited(
            *scored.facts,
            scorer.settings,
            title=title,
            audits=audits,
            inputs=inputs,
            signatures=dict.fromkeys((FACTSCORE, DFACTSCORE), told),
            **options,
        )
        add_scores(results, scored, scorer, folder)
        if judge is not None:
            write_jsonl(folder / "citations.jsonl", cited)
            results.audits["citations"] = summarise_citations(cited, **options)
        if annotations is not None:
            people = read_annotations(annotations)
            results.audits["dfactscore_people"] = compare_with_machine(
                human_scores(people), scored.responses, **options
            )
            results.audits["annotator_agreement"] = annotator_agreement(people)
        if views is not None:
            results.audits["popularity"] = [popularity(scored.responses, read_views(views))]
        results.calls.extend(calls)
        finish(folder, results)
        for row in scored.summary["systems"]:
            say(
                f"{row['system'] or 'all'}: FActScore {_percent(row['factscore'])}, "
                f"D-FActScore {_percent(row['dfactscore'])}"
            )
        say(f"report    {folder / 'report.html'}")
        return results


def published_files(
    sources: Sequence[str | Path],
    out: str | Path,
    *,
    printed: str | Path | None = None,
    citations: Sequence[str | Path] = (),
    audits: Sequence[str | Mapping[str, Any]] | None = None,
    title: str = "Merging Facts, Crafting Fallacies: the published outputs",
    replicates: int = 2000,
    seed: int = 0,
    confidence: float = 0.95,
    say: Say = lambda text: None,
) -> Results:
    """Rebuild MF's Table 4 from its published decisions into a run folder.

    Args:
        sources: ``*_factscore_output.json`` files of its repository, or folders of them.
        printed: a CSV of printed figures to compare with (``data/published/mf_table4.csv``).
        citations: ALCE ``*.score`` files, or folders of them, whose citation recall is computed again.
    """
    folder = Path(out)
    options: Row = {"replicates": replicates, "seed": seed, "confidence": confidence}
    found = read_published(sources, **options)
    with opened(folder, [sources] if isinstance(sources, str | Path) else sources):
        say(f"claims    {len(found.claims):>9,} of {len(found.rows)} files")
        write_table(found.claims, folder / "claims.parquet")
        write_table(found.verdicts, folder / "verdicts.parquet")
        write_jsonl(folder / "responses.jsonl", found.responses)
        files = [path for one in (*sources, *citations) for path in _files(Path(one))]
        inputs = checksums(files)
        results = audited(found.claims, found.verdicts, {}, title=title, audits=audits, inputs=inputs, **options)
        results.audits["dfactscore"] = found.rows
        results.findings.extend(gap_findings(found.rows, DATASET))
        if printed is not None:
            results.audits["dfactscore_printed"] = compare_printed(found.rows, read_printed(printed))
        if citations:
            results.audits["citation_recall"] = read_alce_scores(citations, **options)
        _published_sections(results, found, folder)
        finish(folder, results)
        say(f"report    {folder / 'report.html'}")
        return results


def add_scores(results: Results, scored: Scored, scorer: DFactScorer, folder: Path) -> None:
    """Add D-FActScore's tables and sections to the results of a run, and draw its figures into the folder."""
    summary = scored.summary
    rows = summary["systems"]
    if len(rows) > 1:
        rows = [{"system": "__all__", **{k: v for k, v in summary.items() if k not in _NESTED}}, *rows]
    results.audits["dfactscore"] = rows
    results.findings.extend(gap_findings(summary["systems"], scorer.dataset))
    results.audits["dfactscore_linking"] = summary["linking"]
    results.audits["dfactscore_grouping"] = summary["grouping"]
    results.audits["dfactscore_elsewhere"] = elsewhere_rows(scored.responses)
    text = [
        "FActScore lets any person of the name support a fact; D-FActScore only the one to whom the fact's group is "
        "linked. Both are means over the responses that answered, of penalty × supported facts / facts; the penalty is "
        f"exp(1 − γ/n) for n < γ facts (γ = {scorer.gamma:g}) and depends on the number of facts, where the published "
        "code takes the number of groups. The figure shows both without the penalty, with intervals over responses.",
        f"Verified by {scorer.names[0]}; groups by {scorer.groupers[0]!r}; linked by {scorer.rule!r}. "
        f"{summary['n_answered']:,} of {summary['n_responses']:,} responses answered, with {summary['n_facts']:,} "
        f"facts; {summary['n_unscored']:,} facts have no FActScore verdict, {summary['n_unscored_linked']:,} no "
        f"D-FActScore verdict. {summary['n_narrow']:,} links are narrow: the second-best person supports nearly as "
        f"many facts (a margin of at most {scorer.narrow:g}).",
        _told_candidates(scored.responses, scorer.retriever.k),
        "Groupers: " + "; ".join(_told_grouping(row) for row in summary["grouping"]) + ".",
    ]
    doubts = [
        f"{summary[key]:,} {told}"
        for key, told in (
            ("n_unparsed", "verification replies hold neither True nor False"),
            (
                "n_failed_sentences",
                "sentences could not be decomposed, because calls failed: their facts are in no figure",
            ),
            ("n_truncated_sentences", "decompositions broke off at the limit of tokens"),
            ("n_cut", f"facts were cut beyond {scorer.max_facts} a response"),
        )
        if summary[key]
    ]
    if doubts:
        text.append("; ".join(doubts) + ".")
    if any(row["category"] is not None for row in scored.responses):
        told = (f"{name}: {_percent(summary[name])}" for name in CATEGORIES)
        text.append(f"Categories (MF §2.4). {'; '.join(told)}. Merged: {_percent(summary['share_merged'])}.")
    if summary["category_accuracy"] is not None:
        text.append(f"The category is as given for {_percent(summary['category_accuracy'])} of the responses.")
    results.sections.extend(
        _figure_sections("FActScore and D-FActScore", text, summary["systems"], scored.responses, folder)
    )
    if merged := merged_paragraphs(scored.responses):
        results.sections.append(merged)


def elsewhere_rows(responses: Sequence[Row]) -> list[Row]:
    """The facts that belong to someone else, a row each, the most merged responses first: what to act on."""
    return [
        {
            "system": row["system"],
            "name": row["name"],
            "response_id": row["response_id"],
            "linked": fact["entity"],
            "fact": fact["text"],
            "about": fact["about"],
        }
        for row in _most_merged(responses)
        for fact in row["facts"]
        if _is_elsewhere(fact)
    ]


def gap_findings(rows: Sequence[Row], dataset: str) -> list[Row]:
    """What FActScore hides of each system, as findings: ``fail`` from `LARGE_GAP` on, ``warn`` for a clear gap."""
    found = []
    for row in rows:
        if row["gap"] is None or row["gap_low"] is None or row["gap_low"] <= 0:
            continue
        statement = (
            f"{row['system'] or 'The system'} has a FActScore of {_percent(row['init_factscore'])} and a D-FActScore "
            f"of {_percent(row['init_dfactscore'])}: {_percent(row['share_merged'])} of its responses tell of one "
            "person what is true of another of the name. Do not quote its FActScore alone."
        )
        keys = ("gap", "gap_low", "gap_high", "share_merged", "n_elsewhere", "n_facts")
        found.append(
            {
                "id": "merged_facts",
                "severity": "fail" if row["gap"] >= LARGE_GAP else "warn",
                "evaluator": FACTSCORE,
                "dataset": dataset,
                "statement": statement,
                "evidence": {"system": row["system"], **{key: row[key] for key in keys}},
            }
        )
    return found


def merged_paragraphs(responses: Sequence[Row], shown: int = SHOWN) -> Row | None:
    """The section of merged paragraphs with their facts by person; None where none is merged.

    ``merged`` is a list of ``{name, system, response_id, factscore, dfactscore, people: [{title, n, linked}],
    sentences: [{text, person}], facts: [{text, person, elsewhere}]}``; a person is a number in ``people``, or null.
    """
    merged = _most_merged(responses)
    if not merged:
        return None
    n_facts = sum(row["n_elsewhere"] for row in merged)
    text = (
        f"{len(merged):,} paragraphs say {n_facts:,} things of one person that are true of another of the name (in "
        "bold among the facts). A sentence is coloured as the person whom most of its facts are true of. Shown: the "
        f"{min(shown, len(merged))} with most of them; tables/dfactscore_elsewhere.csv has all."
    )
    items = [_paragraph(row) for row in merged[:shown]]
    return {"title": "Merged paragraphs", "text": text, "table": None, "figure": None, "merged": items}


_NESTED = ("systems", "linking", "grouping", "grouper", "link")


def _paragraph(row: Row) -> Row:
    linked = {group["entity"] for group in row["groups"]}
    counts = Counter(fact["about"] for fact in row["facts"] if fact["about"] is not None)
    people = [title for title, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]
    owner = [_owner(fact) for fact in row["facts"]]
    people += [title for title in dict.fromkeys(owner) if title is not None and title not in people]
    number = {title: position for position, title in enumerate(people)}
    sentences = []
    for position, sentence in enumerate(row["sentences"]):
        mine = Counter(
            title for title, fact in zip(owner, row["facts"], strict=True) if fact["sentence"] == position and title
        )
        best = max(mine, key=lambda title: mine[title]) if mine else None
        sentences.append({"text": sentence, "person": None if best is None else number[best]})
    totals = Counter(owner)
    return {
        "name": row["name"],
        "system": row["system"],
        "response_id": row["response_id"],
        "factscore": row["init_factscore"],
        "dfactscore": row["init_dfactscore"],
        "people": [{"title": title, "n": totals[title], "linked": title in linked} for title in people],
        "sentences": sentences,
        "facts": [
            {"text": fact["text"], "person": None if title is None else number[title], "elsewhere": _is_elsewhere(fact)}
            for title, fact in zip(owner, row["facts"], strict=True)
        ],
    }


def _owner(fact: Row) -> str | None:
    """Whom a fact is shown as true of; of several people the one that it was linked to, where that is one of them."""
    if fact["dfactscore"] == 1 and fact["entity"] is not None:
        return fact["entity"]
    return fact["about"]


def _is_elsewhere(fact: Row) -> bool:
    return fact["factscore"] == 1 and fact["dfactscore"] == 0


def _most_merged(responses: Sequence[Row]) -> list[Row]:
    merged = [row for row in responses if row.get("merged")]
    return sorted(merged, key=lambda row: (-row["n_elsewhere"], row["response_id"]))


def _published_sections(results: Results, found: Published, folder: Path) -> None:
    lost = "; ".join(f"{row['system']}: {row['n_lost']:,} of {row['n_facts']:,}" for row in found.rows)
    missing = sum(row["n_without_dfactscore"] for row in found.rows)
    text = [
        "FActScore, D-FActScore and the number of entities are computed from the decisions and equal the files' own "
        "totals; neither has the length penalty (MF's code penalises D-FActScore by the number of groups, so that only "
        "init_global_score can be compared). The number of biographies stands in a file as a total only; the decisions "
        "give a lower bound (n_biographies_min): the linked entity changes only where a new group begins.",
        f"The published grouping leaves out the first fact of each reply. Lost facts: {lost}. {missing} responses lost "
        "all their facts, and with them their D-FActScore; the published mean leaves them out, and so does this one.",
        "Merged: some fact is supported by a page of the name, but not by the one to which its group is linked. "
        f"{sum(row['n_dfactscore_higher'] for row in found.rows)} responses have a D-FActScore above their FActScore: "
        "with one list of facts that cannot be, it comes of the facts that were lost, changed or added.",
    ]
    results.sections.extend(_figure_sections("FActScore and D-FActScore", text, found.rows, found.responses, folder))
    worst = sorted(
        (row for row in found.responses if row.get("merged")), key=lambda row: (-row["n_elsewhere"], row["response_id"])
    )[:SHOWN_LISTS]
    claims = found.claims
    verdicts = found.verdicts.pivot(index="claim_id", columns="evaluator", values="prediction")
    told = claims.join(verdicts, on="claim_id")
    items = []
    for row in worst:
        facts = [
            {"text": one["claim"], "sentence": None, "entity": one["entity"], "about": one["supported_by"]}
            | {"factscore": _number(one[FACTSCORE]), "dfactscore": _number(one[DFACTSCORE])}
            for one in told[told["response_id"] == row["response_id"]].to_dict("records")
        ]
        facts = [{key: value if isinstance(value, int | str) else None for key, value in one.items()} for one in facts]
        linked = [{"entity": title} for title in dict.fromkeys(one["entity"] for one in facts) if title]
        items.append(
            _paragraph(
                {**row, "name": f"Response {row['response_id']}", "groups": linked, "sentences": [], "facts": facts}
            )
        )
    if items:
        text_merged = (
            f"The {len(items)} responses with most facts that are true of somebody else of the name (in bold). The "
            "files hold facts, not paragraphs or names. A fact without a colour has no supporting page."
        )
        results.sections.append(
            {"title": "The most merged responses", "text": text_merged, "table": None, "figure": None, "merged": items}
        )


def _figure_sections(
    title: str, text: list[str], rows: Sequence[Row], responses: Sequence[Row], folder: Path
) -> list[Row]:
    from factaudit.engines.dfactscore.figures import gap_figure, scores_figure
    from factaudit.report.plots.style import save_figure

    scores: Row = {"title": title, "text": text, "table": _scores_table(rows), "figure": None}
    if all(row["init_dfactscore"] is None for row in rows):
        return [scores]
    save_figure(scores_figure(rows), folder / "figures" / "dfactscore", title)
    gaps: Row = {
        "title": "How much FActScore leaves unseen, response by response",
        "text": "The share of responses whose FActScore exceeds their D-FActScore by at least so much (no penalty).",
        "table": None,
    }
    save_figure(gap_figure(responses), folder / "figures" / "dfactscore-gap", gaps["title"])
    return [scores | {"figure": "dfactscore.svg"}, gaps | {"figure": "dfactscore-gap.svg"}]


def _scores_table(rows: Sequence[Row]) -> Row:
    """What a reader wants first; every figure and interval is in tables/dfactscore.csv."""
    columns = ["system", "responses", "facts", "FActScore", "D-FActScore", "difference (points)"]
    columns += ["merged responses", "biographies", "entities"]
    body = []
    for row in rows:
        gap = "–" if row["gap"] is None else f"{100 * row['gap']:.1f}"
        if row["gap_low"] is not None:
            gap += f" ({100 * row['gap_low']:.1f} to {100 * row['gap_high']:.1f})"
        told = (_percent(row[key]) for key in ("init_factscore", "init_dfactscore"))
        means = ("–" if row[key] is None else f"{row[key]:.1f}" for key in ("n_biographies", "n_entities"))
        counts = (row["n_answered"], row["n_facts"])
        body.append([row["system"] or "–", *counts, *told, gap, _percent(row["share_merged"]), *means])
    return {"columns": columns, "rows": body}


def _told_candidates(responses: Sequence[Row], k: int) -> str:
    n = Counter(row["candidates_from"] for row in responses)
    ways = (
        ("given", "given"),
        ("titles", "the pages whose titles share the name"),
        ("passages", f"the pages of the {k} passages that BM25 ranks best for the name, which no title need share"),
        ("none", "nobody was found, so that their facts have no verdict"),
    )
    told = [f"{words} ({n[way]:,} of {len(responses):,})" for way, words in ways if n[way]]
    return f"Whom a biography may be about: {'; '.join(told)}."


def _told_grouping(row: Row) -> str:
    told = []
    if row["grouper"] == "llm":
        told.append(f"{row['n_changed']:,} facts changed, {row['n_dropped']:,} dropped by its replies")
        told.append(f"{row['n_invented']:,} lines invented, {row['n_repeated']:,} repeated")
    if row["n_failed"]:
        told.append(f"{row['n_failed']:,} responses without a usable reply")
    if row["same_as_given"] is not None and row["grouper"] != "given":
        told.append(
            f"exactly as given for {_percent(row['same_as_given'])} of {row['n_compared_given']:,} responses "
            f"(facts in the right group: {_percent(row['agreement_given'])})"
        )
    return f"{row['grouper']}: {', '.join(told)}" if told else row["grouper"]


def _files(path: Path) -> list[Path]:
    return sorted(one for one in path.rglob("*") if one.is_file()) if path.is_dir() else [path]


def _number(value: Any) -> int | None:
    return None if value is None or value != value or str(value) == "<NA>" else int(value)


def _percent(value: float | None) -> str:
    return "–" if value is None else f"{100 * value:.1f} %"
