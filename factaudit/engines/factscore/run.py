"""From files of responses to a run folder: tables, summary, audits where there are labels, and the report."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from factaudit.engines.factscore.engine import FactScorer, Scored
from factaudit.engines.factscore.labeled import agreement, calibration, discrimination, thresholds
from factaudit.engines.responses import ANNOTATED, read_files
from factaudit.evaluators.unread import unread
from factaudit.files import write_json, write_jsonl
from factaudit.results import Results, audit_options
from factaudit.runfolder import audited, checksums, counted, finish, opened, total_cost
from factaudit.signature import signature
from factaudit.tables import write_table

Row = dict[str, Any]
#: Responses that the report shows, each with so many of the facts that were found unsupported.
SHOWN, SHOWN_FACTS = 10, 8


def score_files(
    sources: str | Path | Sequence[str | Path],
    scorer: FactScorer,
    out: str | Path,
    *,
    facts: str | Path | None = None,
    system: str | None = None,
    limit: int | None = None,
    title: str = "FActScore",
    audits: Sequence[str | Mapping[str, Any]] | None = None,
    max_cost: float | None = None,
    progress: bool = False,
    say: Callable[[str], None] = lambda text: None,
) -> Results:
    """Score files of responses into a run folder (``factaudit score``); the same call again resumes and reuses.

    Writes ``claims.parquet``, ``verdicts.parquet``, ``responses.jsonl``, ``summary.json``, ``results.json``, tables,
    figures and the report. The audits of `factaudit.audit` are computed where claims have labels.

    Args:
        sources: JSONL files (`factaudit.engines.responses.read_responses`, with ``facts``, ``system``, ``limit``).
        audits: which (`factaudit.results.compare`); None means all.
        max_cost: US dollars that all runs into this folder may spend; None leaves the clients' own limits.
        say: gets one line per stage.
    """
    folder = Path(out)
    audit_options(audits)  # a misspelt audit is found before an hour of judging, not after
    paths = [Path(one) for one in ([sources] if isinstance(sources, str | Path) else sources)]
    responses = read_files(paths, facts=facts, system=system, limit=limit)
    say(f"responses {len(responses):>9,} of {len({one.system for one in responses})} systems")
    with opened(folder, paths) as work:
        with counted(scorer.callers, work / "calls.json", max_cost) as calls:
            scored = scorer.score_responses(responses, journal=work / "journal", progress=progress)
        summary = scored.summary
        for line in unread(scored.verdicts):
            say(line)
        say(f"facts     {summary['n_facts']:>9,}, {summary['n_unscored']:,} of them unscored")
        write_table(scored.claims, folder / "claims.parquet")
        write_table(scored.verdicts, folder / "verdicts.parquet")
        write_jsonl(folder / "responses.jsonl", scored.responses)
        told = signature(scorer.signatures[scorer.names[0]], scorer.settings)
        write_json(folder / "summary.json", summary | {"cost": total_cost(calls), "signature": told})
        inputs = checksums([*paths, facts] if facts is not None and facts not in ANNOTATED else paths)
        results = _results(scorer, scored, title, audits, inputs, folder)
        results.calls.extend(calls)
        finish(folder, results)
        score = "undefined" if summary["score"] is None else f"{summary['score']:.4f}"
        say(f"FActScore {score:>9} ({summary['evaluator']})")
        say(f"report    {folder / 'report.html'}")
        return results


def _results(
    scorer: FactScorer,
    scored: Scored,
    title: str,
    audits: Sequence[str | Mapping[str, Any]] | None,
    inputs: list[Row],
    folder: Path,
) -> Results:
    options: Row = {"replicates": scorer.replicates, "seed": scorer.seed, "confidence": scorer.confidence}
    results = audited(
        scored.claims,
        scored.verdicts,
        scorer.settings,
        title=title,
        audits=audits,
        inputs=inputs,
        signatures=scorer.signatures,
        **options,
    )
    every = scored.summary.get("evaluators") or [scored.summary]
    results.audits["factscore"] = [
        {"evaluator": one["evaluator"], **row}
        for one in every
        for row in [{"system": "__all__", **_flat(one)}, *one["systems"]]
        # One system's row would say the same again.
        if len(one["systems"]) > 1 or row["system"] != "__all__"
    ]
    results.sections.append(_scores_section(scorer, scored, folder))
    if scored.claims["label"].notna().any():
        results.audits["factscore_auc"] = discrimination(scored.claims, scored.verdicts, **options)
    if any(row.get("human") for row in scored.responses):
        chosen: Row = {"irrelevant": scorer.irrelevant}
        results.audits["factscore_agreement"] = agreement(scored.responses, **chosen, **options)
        results.audits["factscore_thresholds"] = thresholds(scored.responses, **chosen)
        results.audits["factscore_calibration"] = rows = calibration(scored.responses, **chosen)
        results.sections.append(_people_section(scorer, scored, rows, folder))
    if table := _unsupported(scored):
        results.sections.append(table)
    return results


def _flat(summary: Row) -> Row:
    return {key: value for key, value in summary.items() if key not in ("evaluator", "systems", "evaluators")}


def _scores_section(scorer: FactScorer, scored: Scored, folder: Path) -> Row:
    from factaudit.engines.factscore.figures import scores_figure
    from factaudit.report.plots.style import save_figure

    summary = scored.summary
    text = [
        "FActScore = mean over the responses that did not abstain of penalty × supported facts / facts; penalty = "
        f"exp(1 − γ/n) for responses of n < γ facts, γ = {scorer.gamma:g}. "
        f"{summary['n_scored']:,} of {summary['n_responses']:,} responses are scored; {summary['n_abstained']:,} "
        f"abstained, {summary['n_without_facts']:,} hold no fact, {summary['n_unscored_responses']:,} have facts "
        f"without a verdict. {summary['n_facts']:,} facts, {summary['n_unscored']:,} of them unscored by "
        f"{summary['evaluator']}. Points are responses, diamonds means with their interval over responses."
    ]
    if summary["n_duplicates"] or summary["n_cut"]:
        text.append(
            f"Of the facts of the replies, {summary['n_duplicates']:,} were repeated in a response and removed, and "
            f"{summary['n_cut']:,} cut beyond {scorer.max_facts} a response."
        )
    if summary["n_failed_sentences"] or summary["n_truncated_sentences"]:
        text.append(
            f"{summary['n_failed_sentences']:,} sentences could not be decomposed, because calls failed: their facts "
            f"are in no figure. {summary['n_truncated_sentences']:,} replies broke off at the limit of tokens: what "
            "they hold is used."
        )
    if summary["n_unparsed"]:
        how = "guessed, as published" if scorer.parser == "original" else "left unscored"
        text.append(f"{summary['n_unparsed']:,} replies hold neither True nor False: their verdicts are {how}.")
    pages = Counter(row["matched"] for row in scored.responses if row["matched"] not in (None, "exact"))
    if pages:
        text.append(
            "Pages that were not found under the topic itself: "
            + ", ".join(f"{n:,} by {how}" for how, n in pages.most_common())
            + "."
        )
    section: Row = {"title": "FActScore of the systems", "text": text, "table": None, "figure": None}
    if summary["n_scored"]:
        save_figure(scores_figure(scored.responses, summary), folder / "figures" / "factscore", section["title"])
        section["figure"] = "factscore.svg"
    return section


def _people_section(scorer: FactScorer, scored: Scored, rows: list[Row], folder: Path) -> Row:
    from factaudit.engines.factscore.figures import calibration_figure
    from factaudit.report.plots.style import save_figure

    convention = (
        "facts that people found irrelevant are left out"
        if scorer.irrelevant == "exclude"
        else "facts that people found irrelevant count as not supported"
    )
    text = (
        f"People's score = their supported / labelled facts over relevant sentences; {convention}. Predicted: without "
        "the length penalty, which people's score does not know. A point is a response; diamonds are the means of "
        "responses in ten bins of the predicted score. On the dashed line the machine agrees with people."
    )
    section: Row = {"title": "FActScore against people", "text": text, "table": None, "figure": None}
    if rows:
        figure = calibration_figure(scored.responses, rows, scorer.irrelevant)
        save_figure(figure, folder / "figures" / "factscore-people", section["title"])
        section["figure"] = "factscore-people.svg"
    return section


def _unsupported(scored: Scored) -> Row | None:
    """The responses with the lowest share of supported facts, and what was found unsupported: where to look first."""
    name = scored.summary["evaluator"]
    judged = [row for row in scored.responses if row["init_score"] is not None and row["n_supported"] < row["n_facts"]]
    judged.sort(key=lambda row: (row["init_score"], -row["n_facts"]))
    rows = []
    for row in judged[:SHOWN]:
        facts = [fact for sentence in row["sentences"] for fact in sentence["facts"]]
        unsupported = [fact["text"] for fact in facts if fact["verdicts"][name]["prediction"] == 0]
        more = len(unsupported) - SHOWN_FACTS
        shown = unsupported[:SHOWN_FACTS] + ([f"and {more:,} more"] if more > 0 else [])
        share = f"{row['n_supported']} of {row['n_facts']}"
        rows.append([row["topic"], row["system"] or "–", share, " · ".join(shown)])
    if not rows:
        return None
    columns = ["topic", "system", "supported", "facts found unsupported"]
    text = f"The {len(rows)} responses of the lowest share of supported facts ({name}); all are in responses.jsonl."
    return {"title": "Where to look first", "text": text, "table": {"columns": columns, "rows": rows}, "figure": None}
