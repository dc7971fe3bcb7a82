"""D-FActScore: FActScore that notices when a text merges several people (Chiang & Lee 2024, "MF")

A text about "Ann Lee" may take facts of two people of this name for those of one. Each fact is then
true of somebody, and FActScore is high, but what the reader is told is not. `dfactscore` goes
through MF §4.1 and §5.1:

1. *Atomic facts*, as in FActScore (`decontextualize` adds the words of MF's code). Equal facts of
   two sentences stay: they may be of two people.
2. *Fact groups.* A model is given the paragraph and its facts, with four demonstrations, and says
   which facts a reader takes to be about one person (`factaudit.engines.grouping`; App. C, Table
   8). Of equal facts in a group one is left.
3. *Candidates.* Everybody who is meant, maybe: the pages of the name
   (`factaudit.engines.candidates`). From here on there is a table of claims with a row per fact and
   person.
4. *Verification.* Each fact is put to the page of each candidate, by the verifiers of FActScore.
5. *Entity linking* (App. C.1). A group is linked to e* = argmax over the candidates e of 1/|A_i|
   Σ [e supports a] over the facts a of the group A_i (Eq. 1; `factaudit.arrays.support_matrix`).
   The Hungarian algorithm, by which no entity has two groups, is the rule ``hungarian``.
6. *Score* (§4.1). D-FS(y) = 1/|A| Σ_i Σ_{a in A_i} [e*_i supports a]: the share of a response's
   facts that the entity of their group supports. Where any entity may support a fact it is
   FActScore (`factaudit.arrays.biography_scores`). Of all responses it is the mean.

Steps 5 and 6 are arithmetic on the tables of claims and verdicts: the audits of
`factaudit.audit.dfactscore`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from factaudit.engines.candidates import find_candidates
from factaudit.engines.decompose import REPEATED
from factaudit.engines.factscore import find_facts, mark_abstentions, verify
from factaudit.engines.grouping import ask_for_groups, number_groups
from factaudit.engines.passages import ScoredFacts, build_claims
from factaudit.engines.pipeline import Pipeline
from factaudit.engines.responses import Response
from factaudit.errors import UsageError

_CITATION = re.compile(r"\s*\[\d+\]")


def dfactscore(
    responses: Sequence[Response],
    models: Pipeline,
    *,
    journal: str | Path | None = None,
    progress: bool = False,
) -> ScoredFacts:
    """The facts of biographies with their groups, and the verdict of each on each person whom it
    may be about.

    A response's topic is the name. Without a knowledge source, each biography brings its documents.
    Arguments and errors are those of `factaudit.engines.factscore.factscore`.
    """
    settings = models.settings
    models.check_can_decompose(responses)
    if settings.grouper == "given" and any(one.facts is None for one in responses):
        raise UsageError("the grouper 'given' needs biographies with facts and their groups")
    # 3. Candidates. They cost nothing, and what is missing is said before anything is paid for.
    named, people, n_beyond = find_candidates(responses, models.knowledge, settings.max_candidates)
    # 1. Atomic facts, of the texts without citations
    texts = [replace(one, output=_CITATION.sub("", one.output)) for one in named]
    texts = mark_abstentions(texts, models)
    facts, left_out = find_facts(texts, models, unique_by_sentence=True, progress=progress)
    # 2. Fact groups
    grouped = []
    for one, its in zip(facts, group_facts(facts, models, progress), strict=True):
        grouped.append(replace(one, groups=its))
    for at, given in enumerate(responses):
        if given.facts is None:
            grouped[at] = _remove_repeated_facts(grouped[at], left_out)
    claims = build_claims(
        grouped,
        people,
        models.retriever,
        left_out,
        by_person=True,
    )
    if n_beyond:
        claims.notes.append(f"left out: {n_beyond:,} pages of a name beyond max_candidates")
    if n := sum(one.groups is None for one in grouped):
        claims.notes.append(
            f"not grouped: the facts of {n:,} responses, as the model's replies could not be read"
        )
    # 4. Verification; linking (5.) and score (6.) are arithmetic on these tables
    return ScoredFacts(claims.table, verify(claims, models, journal, progress), claims.notes)


def group_facts(
    responses: Sequence[Response], models: Pipeline, progress: bool = False
) -> Sequence[tuple[int, ...] | None]:
    """The group of each fact of each response: as the LLM says, or as given."""
    if models.grouping_prompt is not None and models.llm is not None:
        return ask_for_groups(models.llm, models.grouping_prompt, responses, progress)
    marks = [[fact.group for fact in one.facts or ()] for one in responses]
    return list(map(number_groups, marks))


def _remove_repeated_facts(response: Response, left_out: Counter[str]) -> Response:
    """Without the facts that their group has already; a sentence that was not decomposed stays."""
    if response.groups is None:
        return response
    facts = response.facts or ()
    first: dict[object, int] = {}
    for at, (fact, group) in enumerate(zip(facts, response.groups, strict=True)):
        first.setdefault((group, fact.text) if fact.failure is None else at, at)
    kept = list(first.values())
    left_out[REPEATED] += len(facts) - len(kept)
    return replace(
        response,
        facts=tuple(facts[at] for at in kept),
        groups=tuple(response.groups[at] for at in kept),
    )
