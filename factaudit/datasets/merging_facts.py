"""The automatic evaluation of *Merging Facts, Crafting Fallacies* (MF: Chiang & Lee 2024) as its repository has it.

Files: ``result/factscore/*_factscore_output.json`` of d223302/Merging-Facts-Crafting-Fallacies. A file lists for each
response its facts with FActScore's decision and the page that supports it, and the facts that came back from the
grouping prompt with D-FActScore's. The published code leaves out the first fact of each group reply, so the second list
is shorter. Names and paragraphs are not in the files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import BaseModel

from factaudit.datasets.source_files import Conversion, expand_dataset_source_folders, read_dataset_source_json
from factaudit.errors import InputError, Problem
from factaudit.signature import hash_texts
from factaudit.tables.unreadable_rows import leave_out_unreadable_file
from factaudit.text.display_text import format_count

DATASET = "AmbigBio"
#: Who decided: ChatGPT with retrieved passages (MF §5.1).
EVALUATOR = "retrieval+ChatGPT"
#: Stands for a page whose title a file does not tell.
UNKNOWN_PAGE = "(a page that is not told)"
#: A file's totals are the means of its decisions to this difference.
_MEAN_TOLERANCE = 1e-6

Row = dict[str, Any]


class _MergingFactsDecision(BaseModel):
    atom: str
    is_supported: bool
    supporting_topic: str | list[str] | None = None

    @property
    def supporting_page(self) -> str | None:
        """The supporting page. A file holds the first letter of a title in a list: it tells pages apart, no more."""
        if isinstance(self.supporting_topic, list):
            return f"{self.supporting_topic[0]}… (the rest is not told)" if self.supporting_topic else None
        return self.supporting_topic


class _MergingFactsFile(BaseModel):
    init_score: float
    init_global_score: float
    num_supporting_topics: float
    num_groups: float
    respond_ratio: float
    decisions: list[list[_MergingFactsDecision] | None]
    global_decisions: list[list[_MergingFactsDecision] | None]


def convert_merging_facts(sources: Sequence[Path]) -> Conversion:
    """Claims with a row per fact and page that was decided on, for the audits `dfactscore` (with ``link: given``).

    ``group``: facts that come one after the other and are supported by one page. That is the least number of groups: a
    file tells only their mean over its responses (``mean_biographies``). A fact that the second list lacks is in none,
    and one that the first lacks is ``invented``. ``given_entity``: the page that the group is linked to. ``about``: the
    page that supports the fact, as MF attributes it. A page without a row was not decided on, or the file does not
    tell.

    A file of another form is left out (`leave_out_unreadable_file`). Raises `InputError` where no other is left, or
    two files would be one system.
    """
    paths = list(expand_dataset_source_folders(sources, "*_factscore_output.json"))
    claims: list[Row] = []
    verdicts: list[Row] = []
    notes: list[str] = []
    failed: list[InputError] = []
    for path, system in zip(paths, name_merging_facts_systems(paths), strict=True):
        try:
            content = _read_merging_facts_file(path)
        except InputError as error:
            leave_out_unreadable_file(path, error)
            failed.append(error)
            continue
        for number, (facts, grouped) in enumerate(zip(content.decisions, content.global_decisions, strict=True)):
            shared = {
                "dataset": DATASET,
                "system": system,
                "response_id": f"{hash_texts(system, length=6)}-{number:03d}",
                "mean_biographies": content.num_groups,
            }
            for cell in _list_merging_facts_entity_cells(facts, grouped or []):
                identity = f"{shared['response_id']}.{cell['number']}"
                claims.append(shared | {"fact_id": identity, "claim_id": f"{identity}.{cell['cell']}"} | cell["claim"])
                claim_id, prediction = claims[-1]["claim_id"], cell["prediction"]
                verdicts.append({"claim_id": claim_id, "evaluator": EVALUATOR, "prediction": prediction})
            if not facts:
                lone = {"claim_id": shared["response_id"], "abstained": int(facts is None), "claim": None}
                claims.append(shared | lone)
        n_responses = format_count(len(content.decisions), "response")
        notes.append(f"{path.name}: {system}, {n_responses}, {_describe_lost_facts(content)}")
        notes += [f"{path.name}: {text}" for text in _describe_merging_facts_totals(content)]
    if failed and not verdicts:
        raise failed[0]
    return Conversion.from_rows(claims, verdicts, source="merging-facts", notes=notes)


def _read_merging_facts_file(path: Path) -> _MergingFactsFile:
    content: _MergingFactsFile = read_dataset_source_json(path, _MergingFactsFile)
    if len(content.decisions) != len(content.global_decisions):
        counts = f"{len(content.decisions)} decisions, {len(content.global_decisions)} global_decisions"
        raise InputError(str(path), [Problem(f"expected as many of both, a list per response; found {counts}")])
    if not any(content.decisions) and not any(content.global_decisions):
        raise InputError(str(path), [Problem("no response has a fact")])
    return content


def parse_merging_facts_system(path: str | Path) -> str:
    """The system that a file's name says, in our words.

    >>> parse_merging_facts_system("bioqa-Llama-2-13b-chat-hf-gtr-no-ambig-shot2-ndoc5-42_factscore_output.json")
    'Llama-2-13b-chat, no ambiguity'
    >>> parse_merging_facts_system("bioqa-gpt-3.5-turbo-0301-gtr-shot2-ndoc5-42_chatgpt_factscore_output.json")
    'gpt-3.5-turbo-0301 (facts by ChatGPT)'
    """
    name = Path(path).name
    found = re.match(r"_?bioqa-(.+?)(?:-hf)?-gtr-(?:(no-ambig|careful)-)?shot", name)
    if found is None:
        return name.split(".json")[0]
    variant = {"no-ambig": ", no ambiguity", "careful": ", careful"}.get(found[2], "")
    return found[1] + variant + (" (facts by ChatGPT)" if "_chatgpt_" in name else "")


def name_merging_facts_systems(paths: Sequence[Path]) -> list[str]:
    """A name for each file; where two would have one, the file name is added to that which is not ``bioqa-…``."""
    names = [parse_merging_facts_system(path) for path in paths]
    shared = Counter(names)
    names = [
        f"{name} ({path.name})" if shared[name] > 1 and not path.name.startswith("bioqa-") else name
        for name, path in zip(names, paths, strict=True)
    ]
    for name, number in Counter(names).items():
        if number > 1:
            files = [str(path) for path, own in zip(paths, names, strict=True) if own == name]
            raise InputError(", ".join(files), [Problem(f"these files would all be the system {name!r}")])
    return names


def _list_merging_facts_entity_cells(
    facts: Sequence[_MergingFactsDecision] | None, grouped_facts: Sequence[_MergingFactsDecision]
) -> Iterator[Row]:
    """The cells of one response's matrix that are known: number of the fact, of the cell, its claim and prediction.

    Facts of the two lists are matched by text, in order.
    """
    numbers, linked = _find_merging_facts_group_and_page(facts or [], grouped_facts)
    waiting: dict[str, list[int]] = {}
    for at, one in enumerate(grouped_facts):
        waiting.setdefault(one.atom, []).append(at)
    pairs: list[tuple[_MergingFactsDecision | None, int | None]] = [
        (fact, waiting[fact.atom].pop(0) if waiting.get(fact.atom) else None) for fact in facts or []
    ]
    pairs += [(None, at) for rest in waiting.values() for at in rest]
    pages = {one.supporting_page for one in [*(facts or []), *grouped_facts]} - {None} or {UNKNOWN_PAGE}
    for number, (fact, place) in enumerate(pairs):
        verdicts: dict[str, int] = {}
        if fact is not None:
            # What no page supports, no page that is told does.
            verdicts = (
                {fact.supporting_page or UNKNOWN_PAGE: 1}
                if fact.is_supported
                else dict.fromkeys(sorted(map(str, pages)), 0)
            )
        claim: Row = {"about": None if fact is None else fact.supporting_page, "invented": int(fact is None)}
        if place is not None:
            claim |= {"group": str(numbers[place] + 1), "given_entity": linked[numbers[place]]}
            verdicts[linked[numbers[place]]] = int(grouped_facts[place].is_supported)
        claim["claim"] = fact.atom if fact is not None else grouped_facts[place or 0].atom
        for cell, (page, prediction) in enumerate(verdicts.items()):
            yield {"number": number, "cell": cell, "claim": claim | {"entity": page}, "prediction": prediction}


def _find_merging_facts_group_and_page(
    facts: Sequence[_MergingFactsDecision], grouped_facts: Sequence[_MergingFactsDecision]
) -> tuple[list[int], list[str]]:
    """The group of each fact of the second list, and each group's page.

    Groups come one after the other: the page changes only where a new one begins. A fact that is not supported is in
    the group before it, but in the next one where the page of that group is known to support it.
    """
    owners: dict[str, list[str | None]] = {}
    for fact in facts:
        owners.setdefault(fact.atom, []).append(fact.supporting_page)
    linked: list[str] = []
    numbers: list[int] = []
    for one in grouped_facts:
        about = owners[one.atom].pop(0) if owners.get(one.atom) else None
        if one.supporting_page is not None and (not linked or linked[-1] != one.supporting_page):
            linked.append(one.supporting_page)
        behind = one.supporting_page is None and bool(linked) and about == linked[-1]
        numbers.append(max(0, len(linked) - 1) + behind)
    if not linked:
        linked.append(UNKNOWN_PAGE)
    return [min(number, len(linked) - 1) for number in numbers], linked


def _describe_lost_facts(content: _MergingFactsFile) -> str:
    n_facts = n_lost = 0
    for facts, grouped in zip(content.decisions, content.global_decisions, strict=True):
        atoms = Counter(one.atom for one in facts or [])
        n_facts += atoms.total()
        n_lost += (atoms - Counter(one.atom for one in grouped or [])).total()  # what it invented replaces none
    return f"{format_count(n_facts, 'fact')}, {n_lost:,} of them lost by the grouping"


def _describe_merging_facts_totals(content: _MergingFactsFile) -> Iterator[str]:
    """Where a file's own totals are not the means of its decisions."""
    answered = [facts for facts in content.decisions if facts is not None]
    grouped = [facts for facts in content.global_decisions if facts]
    means: dict[str, Sequence[float]] = {
        "init_score": [_supported_share(facts) for facts in answered if facts],
        "init_global_score": [_supported_share(facts) for facts in grouped],
        "num_supporting_topics": [len({one.supporting_page for one in facts} - {None}) for facts in answered],
        "respond_ratio": [facts is not None for facts in content.decisions],
    }
    for name, values in means.items():
        found, told = float(np.mean(values)) if values else np.nan, getattr(content, name)
        if not abs(found - told) <= _MEAN_TOLERANCE:
            yield f"{name} is {told:.6g} in the file, but {found:.6g} by its decisions"


def _supported_share(decisions: Sequence[_MergingFactsDecision]) -> float:
    return sum(one.is_supported for one in decisions) / len(decisions)
