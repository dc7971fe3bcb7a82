"""D-FActScore: FActScore that notices when a text merges several people (Chiang & Lee 2024, "MF")

A text about "Ann Lee" may take facts of two people of this name for those of one. Each fact is then true of somebody,
and FActScore is high, but what the reader is told is not. `DFactScorer.score` goes through MF §4.1 and §5.1:

1. *Atomic facts*, as in FActScore (`decontextualize` adds the words of MF's code). Equal facts of two sentences stay:
   they may be of two people.
2. *Fact groups.* A model is given the paragraph and its facts, with four demonstrations, and says which facts a reader
   takes to be about one person (`factaudit.engines.grouping`; App. C, Table 8). Of equal facts in a group one is left.
3. *Candidates.* Everybody who is meant, maybe: the pages of the name (`factaudit.engines.candidates`). From here on
   there is a table of claims with a row per fact and person.
4. *Verification.* Each fact is put to the page of each candidate, by the verifiers of FActScore.
5. *Entity linking* (App. C.1). A group is linked to e* = argmax over the candidates e of 1/|A_i| Σ [e supports a] over
   the facts a of the group A_i (Eq. 1; `factaudit.arrays.support_matrix`). The Hungarian algorithm, by which no entity
   has two groups, is the rule ``hungarian``.
6. *Score* (§4.1). D-FS(y) = 1/|A| Σ_i Σ_{a in A_i} [e*_i supports a]: the share of a response's facts that the entity
   of their group supports. Where any entity may support a fact it is FActScore
   (`factaudit.arrays.biography_scores`). Of all responses it is the mean.

Steps 5 and 6 are arithmetic on the tables of claims and verdicts: the audits of `factaudit.audit.dfactscore`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Literal

from pydantic import Field

from factaudit.arrays.support_matrix import NARROW_MARGIN
from factaudit.audit.core.result_rows import Row
from factaudit.engines.candidates import MAX_CANDIDATES, CandidateSearch, find_candidates
from factaudit.engines.decompose import REPEATED, Decomposition
from factaudit.engines.factscore import FactScoreOptions, FactScorer
from factaudit.engines.grouping import GroupingPrompt, ask_for_groups, number_groups
from factaudit.engines.passages import DecomposedResponse, FactClaims, build_claims
from factaudit.engines.responses import Response
from factaudit.errors import UsageError
from factaudit.signature import make_signature


class DFactScoreOptions(FactScoreOptions):
    """The options of D-FActScore besides those of FActScore.

    grouper: who groups the facts (`factaudit.engines.grouping.GROUPERS`). group_demos: a file of demonstrations for
    grouping, in place of our own. max_candidates: how many pages of a name are put to the verifiers, at a call a fact
    each, where the biography brings no candidates. rule: how groups are linked to entities
    (`factaudit.arrays.support_matrix.LINKING_RULES`); the other rules stand beside it. narrow: a link whose margin is
    at most this is counted.
    """

    grouper: Literal["llm", "given", "one-group"] = "llm"
    group_demos: str | Path | None = None
    max_candidates: int = Field(default=MAX_CANDIDATES, ge=1)
    rule: Literal["argmax", "hungarian", "given"] = "argmax"
    narrow: float = Field(default=NARROW_MARGIN, ge=0, le=1)
    dataset: str = "biographies"


class DFactScorer(FactScorer):
    """D-FActScore of biographies; a response's topic is the name.

    The arguments are those of `FactScorer`, with `DFactScoreOptions`. Without a knowledge source, each biography brings
    its documents.
    """

    OPTIONS: ClassVar[type[FactScoreOptions]] = DFactScoreOptions
    needs_knowledge: ClassVar[bool] = False

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.grouping_prompt = GroupingPrompt.load(self.options.group_demos)
        if self.options.grouper == "llm" and self.llm is None:
            raise UsageError("the grouper 'llm' needs an LLM; without one, give the groups with the facts ('given')")

    @property
    def settings(self) -> Row:
        """What changes figures, but no verdict."""
        return {**super().settings, "narrow": self.options.narrow, "link": self.options.rule}

    @property
    def signatures(self) -> dict[str, str]:
        """By verifier's name every setting that can change a verdict, or a group."""
        groups: Row = self.options.model_dump(include={"grouper", "max_candidates"})
        if self.options.grouper == "llm" and self.llm is not None:
            groups |= {"demos": self.grouping_prompt.signature, "llm": self.llm.signature}
        return {name: f"{own}|{make_signature('groups', groups)}" for name, own in super().signatures.items()}

    def make_claims(self, responses: Sequence[Response], progress: bool = False) -> FactClaims:
        """Steps 1 to 3: the atomic facts with their groups, and the passages of each candidate."""
        options = self.options
        if options.grouper == "given" and not all(one.facts for one in responses):
            raise UsageError("the grouper 'given' needs biographies with facts and their groups")
        # 3. Candidates. They cost nothing, and what is missing is said before anything is paid for.
        searches = find_candidates(responses, self.knowledge, options.max_candidates)
        if options.rule == "given":
            _check_given_entities(responses, searches)
        # 1. Atomic facts, of the texts without citations.
        texts = [re.sub(r"\s*\[\d+\]", "", one.output) for one in responses]
        made = self.find_facts(responses, texts, progress=progress, unique_by_sentence=True)
        # 2. Fact groups.
        decomposed = []
        for response, search, facts, groups in zip(
            responses, searches, made, self._group_facts(texts, made, progress), strict=True
        ):
            if response.facts is None and groups is not None:
                facts, groups = _remove_repeated_facts(facts, groups)
            decomposed.append(DecomposedResponse(response, facts, search.candidates, groups, search.names))
        claims = build_claims(decomposed, self.retriever, options.dataset, options.irrelevant, by_person=True)
        if n := sum(one.n_left_out for one in searches):
            claims.notes.append(f"left out: {n:,} pages of a name beyond max_candidates")
        if n := sum(one.groups is None for one in decomposed):
            claims.notes.append(f"not grouped: the facts of {n:,} responses, as the model's replies could not be read")
        return claims

    def _group_facts(
        self, texts: Sequence[str], made: Sequence[Decomposition], progress: bool
    ) -> Sequence[tuple[int, ...] | None]:
        if self.options.grouper == "given":
            return [number_groups([fact.group for fact in one.facts]) for one in made]
        if self.options.grouper == "one-group" or self.llm is None:
            return [(0,) * len(one.facts) for one in made]
        facts = [[fact.text for fact in one.facts] for one in made]
        paragraphs = list(zip(texts, facts, strict=True))
        return ask_for_groups(self.llm, self.grouping_prompt, paragraphs, progress)


def _remove_repeated_facts(made: Decomposition, groups: Sequence[int]) -> tuple[Decomposition, tuple[int, ...]]:
    """Without the facts that their group has already; a sentence that was not decomposed stays."""
    first: dict[tuple[int, str], int] = {}
    kept = [
        number
        for number, fact in enumerate(made.facts)
        if first.setdefault((groups[number], fact.text), number) == number or fact.failure is not None
    ]
    left_out = made.left_out + Counter({REPEATED: len(made.facts) - len(kept)})
    facts = tuple(made.facts[number] for number in kept)
    return replace(made, facts=facts, left_out=left_out), tuple(groups[number] for number in kept)


def _check_given_entities(responses: Sequence[Response], searches: Sequence[CandidateSearch]) -> None:
    for response, search in zip(responses, searches, strict=True):
        for fact in response.facts or ():
            if fact.entity is not None and fact.entity not in {*search.names, *search.names.values()}:
                known = ", ".join(one.title for one in search.candidates if one.title) or "none"
                raise UsageError(
                    f"response {response.response_id!r}: the given entity {fact.entity!r} is not among its candidates "
                    f"({known})"
                )
