"""D-FActScore: FActScore that notices when a text merges several people (Chiang & Lee 2024, "MF")

A text about "Ann Lee" may take facts of two people of this name for those of one. Each fact is then
true of somebody, and FActScore is high, but what the reader is told is not. The steps of MF §4.1,
§5.1 and App. C, in the order in which `dfactscore` takes them:

1. *Candidates* (App. C.1). Everybody who is meant, maybe. MF takes those of the five passages that
   the text was written from. Here they are the candidates and documents that come with the text,
   and where none do, up to 10 pages of the name in the knowledge source
   (`factaudit.engines.candidates`).
2. *Atomic facts*, as in FActScore, of the text without its citations. The setting
   ``decontextualize`` asks, in the words of MF's code, for facts with nouns in place of pronouns.
   Equal facts of two sentences stay: they may be of two people.
3. *Fact groups.* A model is given the paragraph and its facts, with four demonstrations, and says
   which facts a reader takes to be about one person (Table 8; `factaudit.engines.grouping`). Of
   equal facts in a group one is left.
4. *Verification.* Each fact is put to the page of each candidate alone: to the passages of this
   page that are nearest to "NAME FACT", by the verifiers of FActScore. From here on there is a
   table of claims with a row per fact and person.
5. *Entity linking* (App. C.1). A group is linked to e* = argmax over the candidates e of 1/|A_i|
   Σ [e supports a] over the facts a of the group A_i (Eq. 1). That takes the verdicts on all
   candidates, which is why step 4 comes first. The rule ``hungarian`` links no two groups to one
   entity. (`SupportMatrix.link` in `factaudit.arrays.biographies`, with what decides ties.)
6. *Score* (§4.1). D-FS(y) = 1/|A| Σ_i Σ_{a in A_i} [e*_i supports a]: the share of a response's
   grouped facts that the entity of their group supports, by the verdicts of step 4
   (``init_dfactscore``; ``dfactscore`` has the length penalty of FActScore's code besides).
   FActScore, from the same verdicts, is the share of the facts that any candidate supports. Also
   counted are the groups (MF's "# bio", ``n_biographies``) and the people of whom facts are true
   ("# ent.", ``n_entities``). `factaudit.arrays.biography_scores` has them for a response; those of
   a system are means over its responses that have facts.

MF's citation recall (App. D) is a score of its own, of texts with documents:
`factaudit.engines.citations`.

Steps 5 and 6 are arithmetic on the tables of claims and verdicts: the audit `dfactscore`
(`factaudit.audit.dfactscore`).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from factaudit.engines.candidates import find_candidates
from factaudit.engines.decompose import remove_repeated_facts
from factaudit.engines.factscore import find_facts, mark_abstentions, verify
from factaudit.engines.grouping import ask_for_groups, number_groups
from factaudit.engines.passages import VerifiedFacts, build_claims
from factaudit.engines.pipeline import Pipeline
from factaudit.engines.responses import Response
from factaudit.errors import UsageError
from factaudit.text.display_text import format_count

_CITATION = re.compile(r"\s*\[\d+\]")


def dfactscore(
    responses: Sequence[Response],
    models: Pipeline,
    *,
    journal: str | Path | None = None,
    progress: bool = False,
) -> VerifiedFacts:
    """The facts of biographies with their groups, and the verdict of each on each person whom it
    may be about: steps 1 to 4, each for all biographies at once.

    The links and scores, steps 5 and 6, are then ``factaudit.compare(found.claims, found.verdicts,
    audits=["dfactscore"])``.

    A response's topic is the name. Without a knowledge source, each biography brings its documents.
    Arguments and errors are those of `factaudit.engines.factscore.factscore`.
    """
    settings = models.settings
    models.check_can_decompose(responses)
    if settings.grouper == "given" and any(one.facts is None for one in responses):
        raise UsageError("the grouper 'given' needs biographies with facts and their groups")
    # 1. Candidates. They cost nothing, and what is missing is said before anything is paid for.
    named, candidates = find_candidates(responses, models.knowledge)

    # 2. Atomic facts, of the texts without citations. A text that abstains has none.
    texts = [replace(one, output=_CITATION.sub("", one.output)) for one in named]
    texts = mark_abstentions(texts, models)
    with_facts = find_facts(texts, models, progress=progress)

    # 3. Fact groups. Facts that came with a text stay, even if they are repeated.
    groups = group_facts(with_facts, models, progress)
    grouped = [replace(one, groups=its) for one, its in zip(with_facts, groups, strict=True)]
    for at, given in enumerate(responses):
        if given.facts is None:
            grouped[at] = remove_repeated_facts(grouped[at])

    # 4. Verification: a claim for each fact and candidate, with the passages that the retriever
    # finds for the fact on the candidate's page
    claims = build_claims(grouped, candidates, models.retriever, by_person=True)
    if n := sum(one.groups is None for one in grouped):
        claims.notes.append(
            f"not grouped: the facts of {format_count(n, 'response')}, as the model's replies could"
            " not be read"
        )
    return VerifiedFacts(claims.table, verify(claims, models, journal, progress), claims.notes)


def group_facts(
    responses: Sequence[Response], models: Pipeline, progress: bool = False
) -> Sequence[tuple[int, ...] | None]:
    """The group of each fact of each response: as the LLM says, or as given (facts without
    a mark are in one group); None where the LLM's reply cannot be read."""
    if models.settings.grouper == "llm" and models.llm is not None:
        return ask_for_groups(models.llm, responses, progress)
    marks = [[fact.group for fact in one.facts or ()] for one in responses]
    return list(map(number_groups, marks))
