"""The automatic evaluation of *Merging Facts, Crafting Fallacies* (MF: Chiang & Lee 2024) as its
repository has it.

Files: ``result/factscore/*_factscore_output.json`` of d223302/Merging-Facts-Crafting-Fallacies. A
file lists for each response its facts with FActScore's decision and the page that supports it, and
the facts that came back from the grouping prompt with D-FActScore's. The published code leaves out
the first fact of each group reply, so the second list is shorter. Names and paragraphs are not in
the files.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pydantic import BaseModel

from factaudit.datasets.conversion import VERDICTS, Conversion
from factaudit.datasets.source_files import describe_wrong_file, read_json
from factaudit.signature import hash_texts

#: Who decided: ChatGPT with retrieved passages (MF §5.1).
EVALUATOR = "retrieval+ChatGPT"
#: Stands for a page whose title is not in the file.
UNKNOWN_PAGE = "(a page whose title is not in the file)"

Row = dict[str, Any]


class _Decision(BaseModel):
    atom: str
    is_supported: bool
    supporting_topic: str | list[str] | None = None

    @property
    def page(self) -> str | None:
        """The supporting page. Where the file has a list, it holds no more than the first letter of
        the title, which is enough to tell the pages apart."""
        if not isinstance(self.supporting_topic, list):
            return self.supporting_topic
        if not self.supporting_topic:
            return None
        return f"{self.supporting_topic[0]}… (the file has only this letter)"


class _File(BaseModel):
    num_groups: float
    decisions: list[list[_Decision] | None]
    global_decisions: list[list[_Decision] | None]


def convert_merging_facts(sources: Sequence[Path]) -> Conversion:
    """Claims with a row per fact and page that was decided on, for the audits `dfactscore` (with
    ``link: given``).

    ``group``: facts that come one after the other and are supported by one page. That is the least
    number of groups: a file tells only their mean over its responses (``mean_biographies``). A fact
    that the second list lacks is in none, and one that the first lacks is ``invented``.
    ``given_entity``: the page that the group is linked to. ``about``: the page that supports the
    fact, as MF attributes it. A page without a row was not decided on, or the file does not tell.
    """
    return convert_files_of_systems("merging-facts", sources, _read_file)


def convert_files_of_systems(
    source: str, paths: Sequence[Path], read: Callable[[Path, str], tuple[list[Row], str]]
) -> Conversion:
    """Files of a system each: ``read`` makes claims and a note of a file and the system that its
    name says."""
    claims: list[Row] = []
    notes: list[str] = []
    for path in paths:
        rows, note = read(path, parse_merging_facts_system(path))
        claims += rows
        notes.append(f"{path.name}: {note}")
    return Conversion.from_claims(source, claims, notes)


def parse_merging_facts_system(path: str | Path) -> str:
    """The system that a file's name says, in our words.

    >>> parse_merging_facts_system(
    ...     "bioqa-Llama-2-13b-chat-hf-gtr-no-ambig-shot2-ndoc5-42_factscore_output.json"
    ... )
    'Llama-2-13b-chat, no ambiguity'
    >>> parse_merging_facts_system(
    ...     "bioqa-gpt-3.5-turbo-0301-gtr-shot2-ndoc5-42_chatgpt_factscore_output.json"
    ... )
    'gpt-3.5-turbo-0301 (facts by ChatGPT)'
    """
    name = Path(path).name
    found = re.match(r"_?bioqa-(.+?)(?:-hf)?-gtr-(?:(no-ambig|careful)-)?shot", name)
    if found is None:
        return name.split(".json")[0]
    variant = {"no-ambig": ", no ambiguity", "careful": ", careful"}.get(found[2], "")
    if name.startswith("_"):
        variant += ", earlier file"
    return found[1] + variant + (" (facts by ChatGPT)" if "_chatgpt_" in name else "")


def _read_file(path: Path, system: str) -> tuple[list[Row], str]:
    content: _File = read_json(path, _File)
    if len(content.decisions) != len(content.global_decisions) or not any(content.decisions):
        counts = f"{len(content.decisions)} and {len(content.global_decisions)}"
        message = "expected decisions and global_decisions on each response's facts"
        raise describe_wrong_file(path, f"{message}, found {counts} lists")
    claims: list[Row] = []
    n_facts = n_lost = 0
    for number, (facts, grouped) in enumerate(
        zip(content.decisions, content.global_decisions, strict=True)
    ):
        response = f"{hash_texts(system, length=6)}-{number:03d}"
        rows = [*_list_decisions(response, facts or [], grouped or [])]
        if not facts:
            rows.append({"claim_id": response, "claim": None, "abstained": int(facts is None)})
        shared = {"dataset": "AmbigBio", "system": system, "response_id": response}
        claims += [shared | {"mean_biographies": content.num_groups} | row for row in rows]
        atoms = Counter(one.atom for one in facts or [])
        n_facts += atoms.total()
        # What it invented replaces none.
        n_lost += (atoms - Counter(one.atom for one in grouped or [])).total()
    counts = f"{len(content.decisions):,} responses, {n_facts:,} facts"
    return claims, f"{system}, {counts}, {n_lost:,} of them lost by the grouping"


def _list_decisions(
    response: str, facts: Sequence[_Decision], grouped: Sequence[_Decision]
) -> Iterator[Row]:
    """A claim for each fact and page that is known to have been decided on. Facts of the two lists
    are matched by text, in order."""
    numbers, linked = _find_groups(facts, grouped)
    waiting: dict[str, list[int]] = {}
    for at, one in enumerate(grouped):
        waiting.setdefault(one.atom, []).append(at)
    pairs: list[tuple[_Decision | None, int | None]] = [
        (fact, waiting[fact.atom].pop(0) if waiting.get(fact.atom) else None) for fact in facts
    ]
    pairs += [(None, at) for rest in waiting.values() for at in rest]
    pages = sorted({one.page for one in [*facts, *grouped] if one.page is not None}) or [
        UNKNOWN_PAGE
    ]
    for number, (fact, place) in enumerate(pairs):
        # What no page supports, no page that is told does.
        predictions: dict[str, int] = {}
        if fact is not None:
            predictions = (
                {fact.page or UNKNOWN_PAGE: 1} if fact.is_supported else dict.fromkeys(pages, 0)
            )
        claim: Row = {"about": fact and fact.page, "invented": int(fact is None)}
        if place is not None:
            entity = linked[numbers[place]]
            claim |= {"group": str(numbers[place] + 1), "given_entity": entity}
            predictions[entity] = int(grouped[place].is_supported)
        claim["claim"] = fact.atom if fact is not None else grouped[place or 0].atom
        claim["fact_id"] = f"{response}.{number}"
        for cell, (page, prediction) in enumerate(predictions.items()):
            verdict = {"evaluator": EVALUATOR, "prediction": prediction}
            yield {
                "claim_id": f"{claim['fact_id']}.{cell}",
                **claim,
                "entity": page,
                VERDICTS: [verdict],
            }


def _find_groups(
    facts: Sequence[_Decision], grouped: Sequence[_Decision]
) -> tuple[list[int], list[str]]:
    """The group of each fact of the second list, and each group's page.

    Groups come one after the other: the page changes only where a new one begins. A fact that is
    not supported is in the group before it, but in the next one where the page of that group is
    known to support it.
    """
    owners: dict[str, list[str | None]] = {}
    for fact in facts:
        owners.setdefault(fact.atom, []).append(fact.page)
    linked: list[str] = []
    numbers: list[int] = []
    for one in grouped:
        about = owners[one.atom].pop(0) if owners.get(one.atom) else None
        if one.page is not None and (not linked or linked[-1] != one.page):
            linked.append(one.page)
        is_behind = one.page is None and bool(linked) and about == linked[-1]
        numbers.append(max(0, len(linked) - 1) + is_behind)
    linked = linked or [UNKNOWN_PAGE]
    return [min(number, len(linked) - 1) for number in numbers], linked
