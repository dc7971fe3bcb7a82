"""D-FActScore: FActScore that notices when a text merges several people (Chiang & Lee 2024, "MF")

A text about "Ann Lee" may take facts of two people of this name for those of one. Each fact is then true of somebody,
and FActScore is high, but what the reader is told is not. `DFactScorer.score_responses` goes through MF §5.1:

1. *Atomic facts*, as in FActScore. Equal facts of two sentences stay: they may be of two people.
2. *Fact groups.* A model says which facts a reader takes to be about one person (`factaudit.engines.grouping`). Of
   equal facts in a group one is left.
3. *Candidates.* Everybody who is meant, maybe: the pages of the name (`factaudit.engines.candidates`).
4. *Verification.* Each fact is put to the page of each candidate, by the verifiers of FActScore.
5. *Linking and score.* A group is linked to the entity whose page supports most of its facts, and D-FActScore is the
   share of facts that the entity of their group supports; where any entity may support a fact it is FActScore. Both are
   arithmetic on the table of verdicts (`factaudit.arrays.support_matrix`, `factaudit.arrays.biography_scores`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar

from factaudit.audit.core.result_rows import Row
from factaudit.engines.candidates import CandidateSearch, find_candidates
from factaudit.engines.decompose import Decomposition
from factaudit.engines.dfactscore_report import name_scores, report_dfactscore
from factaudit.engines.factscore import FactScorer, verify_facts
from factaudit.engines.factscore_report import ScoredResponses
from factaudit.engines.grouping import FactGrouping, GroupingPrompt, ask_for_fact_groups, number_fact_groups
from factaudit.engines.options import DFactScoreOptions
from factaudit.engines.passages import FactRecord, build_claims_table, retrieve_passages
from factaudit.engines.responses import Response, remove_response_citation_marks
from factaudit.errors import UsageError
from factaudit.signature import make_signature


class DFactScorer(FactScorer):
    """D-FActScore of biographies; a response's topic is the name.

    Args (besides those of `FactScorer`; without a knowledge source, each biography brings its documents):
        options: `factaudit.engines.options.DFactScoreOptions`.
    """

    name: ClassVar[str] = "dfactscore"
    title: ClassVar[str] = "D-FActScore"
    OPTIONS: ClassVar[type[DFactScoreOptions]] = DFactScoreOptions
    needs_knowledge: ClassVar[bool] = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        if "llm" in self.options.groupers and self.llm is None:
            raise UsageError("the grouper 'llm' needs an LLM; without one, give the groups with the facts ('given')")
        self.grouping_prompt = GroupingPrompt.load(self.options.group_demos)

    @property
    def settings(self) -> Row:
        """What changes figures, but no verdict."""
        return {**super().settings, "narrow": self.options.narrow, "link": self.options.rule}

    @property
    def signatures(self) -> dict[str, str]:
        """Also of what the tables of facts call FActScore and D-FActScore."""
        asked = self.llm if "llm" in self.options.groupers else None
        groups = {
            "groupers": self.options.groupers,
            "demos": asked and self.grouping_prompt.signature,
            "llm": asked and asked.signature,
            **self.options.model_dump(include={"max_candidates"}),
        }
        found = {name: f"{told}|{make_signature('groups', groups)}" for name, told in super().signatures.items()}
        for name, told in list(found.items()):
            factscore, dfactscore = name_scores(name, len(self.names))
            found[factscore] = make_signature("factscore", {"candidates": "any", "verifier": told})
            found[dfactscore] = make_signature("dfactscore", {"link": self.options.rule, "verifier": told})
        return found

    def score_responses(
        self, responses: Sequence[Response], *, journal: str | Path | None = None, progress: bool = False
    ) -> ScoredResponses:
        """Score biographies, each step for all of them at once; see `FactScorer.score_responses`."""
        self.check_responses(responses)
        if "given" in self.options.groupers and not all(one.facts for one in responses):
            raise UsageError("the grouper 'given' needs biographies with facts and their groups")
        # 3. Candidates. They cost nothing, and what is missing is said before anything is paid for.
        searches = find_candidates(responses, self.knowledge, self.options.max_candidates)
        if self.options.rule == "given":
            _check_given_entities(responses, searches)
        # 1. Atomic facts.
        texts = [remove_response_citation_marks(one.output) for one in responses]
        decompositions = self.decompose(responses, texts, progress, unique_by_sentence=True)
        # 2. Fact groups.
        grouped = self._group_facts(responses, texts, decompositions, progress)
        records = []
        for response, search, (made, groupings) in zip(responses, searches, grouped, strict=True):
            record = FactRecord(response, made, search.candidates, groupings, search.source, search.n_left_out)
            records.append(retrieve_passages(record, self.retriever))
        claims = build_claims_table(records, self.options.dataset, self.options.irrelevant)
        # 4. Verification.
        verdicts = verify_facts(claims, records, self.verifiers, journal, progress)
        # 5. Linking and score.
        return report_dfactscore(records, claims, verdicts, self)

    def _group_facts(
        self,
        responses: Sequence[Response],
        texts: Sequence[str],
        decompositions: Sequence[Decomposition],
        progress: bool,
    ) -> list[tuple[Decomposition, dict[str, FactGrouping]]]:
        """The facts of each response with their groups by each grouper, the first one's first."""
        found: list[dict[str, FactGrouping]] = [{} for _ in responses]
        for name in self.options.groupers:
            if name == "llm":
                assert self.llm is not None
                facts = [[fact.text for fact in made.facts] for made in decompositions]
                paragraphs = list(zip(texts, facts, strict=True))
                made_groupings = ask_for_fact_groups(self.llm, self.grouping_prompt, paragraphs, progress)
            elif name == "given":
                marks = [[fact.group for fact in made.facts] for made in decompositions]
                made_groupings = [FactGrouping(number_fact_groups(one)) for one in marks]
            else:
                made_groupings = [FactGrouping((0,) * len(made.facts)) for made in decompositions]
            for groupings, grouping in zip(found, made_groupings, strict=True):
                groupings[name] = grouping
        return [
            _remove_repeated_facts(made, groupings) if response.facts is None else (made, groupings)
            for response, made, groupings in zip(responses, decompositions, found, strict=True)
        ]


def _remove_repeated_facts(
    made: Decomposition, groupings: dict[str, FactGrouping]
) -> tuple[Decomposition, dict[str, FactGrouping]]:
    """Without the facts that their group has already, by the first grouper; of no groups all stay.

    A fact that stands for a sentence which was not decomposed stays.
    """
    groups = next(iter(groupings.values())).groups
    if groups is None:
        return made, groupings
    first: dict[tuple[int, str], int] = {}
    kept = [
        number
        for number, fact in enumerate(made.facts)
        if first.setdefault((groups[number], fact.text), number) == number or fact.failure_status is not None
    ]
    left = {
        name: one if one.groups is None else replace(one, groups=tuple(one.groups[number] for number in kept))
        for name, one in groupings.items()
    }
    n_duplicates = made.n_duplicates + len(made.facts) - len(kept)
    return replace(made, facts=tuple(made.facts[number] for number in kept), n_duplicates=n_duplicates), left


def _check_given_entities(responses: Sequence[Response], searches: Sequence[CandidateSearch]) -> None:
    for response, search in zip(responses, searches, strict=True):
        names = {name for one in search.candidates for name in (one.title, *one.other_titles)}
        for fact in response.facts or ():
            if fact.entity is not None and fact.entity not in names:
                known = ", ".join(one.title for one in search.candidates if one.title) or "none"
                raise UsageError(
                    f"response {response.response_id!r}: the given entity {fact.entity!r} is not among its candidates "
                    f"({known})"
                )
