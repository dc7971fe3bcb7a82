"""MF's own automatic evaluation, as its repository has it: claims and verdicts, and Table 4 rebuilt from them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pandas as pd
from pydantic import BaseModel, Field

from factaudit.datasets.sources import expand, read_json
from factaudit.engines.dfactscore.rows import DFACTSCORE, FACTSCORE
from factaudit.engines.factscore.score import bootstrap_mean
from factaudit.errors import InputError, Problem
from factaudit.signature import digest
from factaudit.tables import validate_claims, validate_verdicts

DATASET = "AmbigBio"
#: The totals of a file that can be computed again from its decisions, and the names that they have here.
TOTALS = {"init_score": "init_factscore", "init_global_score": "init_dfactscore", "num_supporting_topics": "n_entities"}

Row = dict[str, Any]


class _Decision(BaseModel):
    atom: str
    is_supported: bool
    supporting_topic: str | list[str] | None = None

    @property
    def topic(self) -> str | None:
        """One title. (A file holds the first letter of a title in a list: it tells groups apart, no more.)"""
        if isinstance(self.supporting_topic, list):
            return self.supporting_topic[0] if self.supporting_topic else None
        return self.supporting_topic


class _File(BaseModel):
    init_score: float
    init_global_score: float
    num_supporting_topics: float
    num_groups: float
    respond_ratio: float
    score: float
    global_score: float
    decisions: list[list[_Decision] | None]
    global_decisions: list[list[_Decision] | None]
    n_invalid: float = Field(default=0.0, alias="nan")


@dataclass(frozen=True)
class Published:
    """What the files hold.

    claims: a row per fact, also those that only one of the two lists has. verdicts: FActScore's and D-FActScore's of
    each; a fact that the other list lacks is ``skipped`` there, with the reason. rows: a row per file (`rebuild`).
    responses: a row per response.
    """

    claims: pd.DataFrame
    verdicts: pd.DataFrame
    rows: list[Row]
    responses: list[Row]


def read_published(
    sources: Sequence[str | Path], *, replicates: int = 2000, seed: int = 0, confidence: float = 0.95
) -> Published:
    """Read ``*_factscore_output.json`` files (or folders of them) of MF's repository.

    A file lists for each response its facts with FActScore's decision, and the facts that came back from the grouping
    prompt with D-FActScore's. The published code leaves out the first fact of each group reply, so the second list is
    shorter: those facts are counted (``n_lost``) and have no D-FActScore verdict. What the reply changed or added has
    no FActScore verdict. Names and paragraphs are not in the files.

    Raises `InputError` where a file is of another form.
    """
    claims: list[Row] = []
    verdicts: list[Row] = []
    rows: list[Row] = []
    responses: list[Row] = []
    for path in expand([Path(one) for one in sources], "*_factscore_output.json"):
        content: _File = read_json(path, _File)
        if len(content.decisions) != len(content.global_decisions):
            counts = f"{len(content.decisions)} decisions, {len(content.global_decisions)} global_decisions"
            raise InputError(str(path), [Problem(f"expected as many of both, a list per response; found {counts}")])
        system = system_of(path)
        own = []
        for number, (facts, grouped) in enumerate(zip(content.decisions, content.global_decisions, strict=True)):
            response_id = f"{digest(system, length=6)}-{number:03d}"
            response: Row = {"system": system, "response_id": response_id, "abstained": facts is None}
            if facts is not None:
                told = _response(system, response_id, facts, grouped or [])
                claims += told[0]
                verdicts += told[1]
                response |= told[2]
            own.append(response)
        rows.append(_rebuild(path, system, content, own, replicates, seed, confidence))
        responses += own
    if not claims:
        raise InputError(", ".join(map(str, sources)), [Problem("no response has a fact")])
    return Published(validate_claims(pd.DataFrame(claims)), validate_verdicts(pd.DataFrame(verdicts)), rows, responses)


def system_of(path: str | Path) -> str:
    """The system that a file's name says, in our words.

    >>> system_of("bioqa-Llama-2-13b-chat-hf-gtr-no-ambig-shot2-ndoc5-42_factscore_output.json")
    'Llama-2-13b-chat, no ambiguity'
    >>> system_of("bioqa-gpt-3.5-turbo-0301-gtr-shot2-ndoc5-42_chatgpt_factscore_output.json")
    'gpt-3.5-turbo-0301 (facts by ChatGPT)'
    """
    name = Path(path).name
    found = re.match(r"_?bioqa-(.+?)(?:-hf)?-gtr-(?:(no-ambig|careful)-)?shot", name)
    if found is None:
        return name.split(".json")[0]
    variant = {"no-ambig": ", no ambiguity", "careful": ", careful"}.get(found[2], "")
    return found[1] + variant + (" (facts by ChatGPT)" if "_chatgpt_" in name else "")


def compare_printed(rows: Sequence[Row], printed: Sequence[Row]) -> list[Row]:
    """Each printed figure beside what the decisions give: a row per system and figure.

    printed: ``{system, figure, value, decimals, ...}``; rates in per cent, as a table prints them. ``same``: whether
    the figure, rounded to the printed decimals, is the printed one.
    """
    by_system = {row["system"]: row for row in rows}
    found = []
    for one in printed:
        row = by_system.get(one["system"])
        if row is None:
            continue
        percent = one["figure"].startswith("init_")
        value = row[one["figure"]]
        shown = None if value is None else round(100 * value if percent else value, one["decimals"])
        found.append(
            {"system": one["system"], "figure": one["figure"], "printed": one["value"], "rebuilt": shown}
            | {"same": shown == one["value"], "source": one["source"]}
        )
    return found


def read_printed(path: str | Path) -> list[Row]:
    """The printed figures of ``data/published/mf_table4.csv``, for `compare_printed`."""
    table = pd.read_csv(path, dtype={"value": str})
    return [
        {
            "system": row["system"],
            "figure": row["figure"],
            "value": float(row["value"]),
            "decimals": len(row["value"].partition(".")[2]),
            "source": row["source"],
        }
        for row in table.to_dict("records")
    ]


def _response(
    system: str, response_id: str, facts: Sequence[_Decision], grouped: Sequence[_Decision]
) -> tuple[list[Row], list[Row], Row]:
    """Claims, verdicts and figures of one response; the facts of the two lists are matched by text, in order."""
    waiting: dict[str, list[_Decision]] = {}
    for one in grouped:
        waiting.setdefault(one.atom, []).append(one)
    pairs: list[tuple[_Decision | None, _Decision | None]] = [
        (fact, waiting[fact.atom].pop(0) if waiting.get(fact.atom) else None) for fact in facts
    ]
    pairs += [(None, one) for rest in waiting.values() for one in rest]
    claims: list[Row] = []
    verdicts: list[Row] = []
    for number, pair in enumerate(pairs):
        claim_id = f"{response_id}.{number}"
        fact, linked = pair
        source = next(one for one in pair if one is not None)
        claims.append(
            {
                "claim_id": claim_id,
                "dataset": DATASET,
                "system": system,
                "response_id": response_id,
                "claim": source.atom,
                "entity": _title(linked),
                "supported_by": _title(fact),
            }
        )
        for name, decision, reason in (
            (FACTSCORE, pair[0], "not among the extracted facts: the grouping reply changed or added it"),
            (DFACTSCORE, pair[1], "the grouped facts lack it"),
        ):
            verdicts.append(
                {
                    "claim_id": claim_id,
                    "evaluator": name,
                    "score": None,
                    "prediction": None if decision is None else int(decision.is_supported),
                    "status": "skipped" if decision is None else "ok",
                    "raw": reason if decision is None else None,
                }
            )
    elsewhere = sum(f is not None and g is not None and f.is_supported and not g.is_supported for f, g in pairs)
    init_factscore = _share([fact.is_supported for fact in facts])
    init_dfactscore = _share([one.is_supported for one in grouped])
    both = init_factscore is not None and init_dfactscore is not None
    texts = Counter(fact.atom for fact in facts), Counter(one.atom for one in grouped)
    runs = [one.topic for one in grouped if one.topic is not None]
    figures = {
        "n_facts": len(facts),
        "n_grouped": len(grouped),
        "n_missing": (texts[0] - texts[1]).total(),
        "n_added": (texts[1] - texts[0]).total(),
        "n_entities": len({fact.topic for fact in facts} - {None}),
        # Groups come one after the other: the linked entity changes only where a new group begins.
        "n_biographies_min": max(1, sum(n == 0 or runs[n - 1] != topic for n, topic in enumerate(runs))),
        "init_factscore": init_factscore,
        "init_dfactscore": init_dfactscore,
        "gap": init_factscore - init_dfactscore if both else None,  # type: ignore[operator]
        "n_elsewhere": elsewhere,
        "merged": elsewhere > 0,
    }
    return claims, verdicts, figures


def _rebuild(
    path: Path, system: str, content: _File, responses: Sequence[Row], replicates: int, seed: int, confidence: float
) -> Row:
    answered = [row for row in responses if not row["abstained"]]
    row: Row = {
        "system": system,
        "file": path.name,
        "n_responses": len(responses),
        "n_answered": len(answered),
        "respond_ratio": len(answered) / len(responses),
    }
    for key in ("init_factscore", "init_dfactscore", "gap", "n_entities", "n_biographies_min"):
        values = pd.Series([one[key] for one in answered], dtype="float64").dropna().to_numpy()
        row[key] = float(values.mean()) if len(values) else None
        row[f"{key}_low"], row[f"{key}_high"] = bootstrap_mean(values, replicates, seed, confidence)
    row["n_without_dfactscore"] = sum(one["init_dfactscore"] is None for one in answered)
    # Its number of groups is in no decision: the file's own total is all there is.
    row["n_biographies"] = content.num_groups
    row["share_merged"] = _share([one["merged"] for one in answered])
    # Possible only because facts were lost or added on the way to the groups.
    row["n_dfactscore_higher"] = sum(one["gap"] is not None and one["gap"] < -1e-9 for one in answered)
    row["n_elsewhere"] = sum(one["n_elsewhere"] for one in answered)
    row["n_facts"] = sum(one["n_facts"] for one in answered)
    row["n_grouped"] = sum(one["n_grouped"] for one in answered)
    row["n_lost"] = row["n_facts"] - row["n_grouped"]
    row["n_missing"] = sum(one["n_missing"] for one in answered)
    row["n_added"] = sum(one["n_added"] for one in answered)
    for theirs, ours in TOTALS.items():
        row[f"file_{ours}"] = getattr(content, theirs)
    row["file_respond_ratio"] = content.respond_ratio
    return row


def _title(decision: _Decision | None) -> str | None:
    """The title in a decision, None where there is none (a list holds only its first letter)."""
    title = None if decision is None else decision.supporting_topic
    return title if isinstance(title, str) else None


def _share(values: Sequence[bool]) -> float | None:
    return sum(values) / len(values) if values else None
