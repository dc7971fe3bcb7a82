"""D-FActScore from biographies to claims and verdicts: facts, groups, one matrix of verdicts, links, scores."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from tqdm import tqdm

from factaudit.audit.core.judged import MISSING
from factaudit.engines.dfactscore import group as grouping
from factaudit.engines.dfactscore import score as scoring
from factaudit.engines.dfactscore.biographies import Biography, Fact, given_groups
from factaudit.engines.dfactscore.candidates import NOBODY, WAYS, Candidates, look_for
from factaudit.engines.dfactscore.group import GROUPERS, Grouping, LLMGrouper
from factaudit.engines.dfactscore.link import NARROW, RULES, Link, entity_of_facts, link
from factaudit.engines.dfactscore.matrix import Matrix
from factaudit.engines.factscore import verify
from factaudit.engines.factscore.abstain import DETECTORS, is_abstained
from factaudit.engines.factscore.decompose import MAX_FACTS, Demonstrations, decompose, sentences
from factaudit.engines.factscore.score import GAMMA
from factaudit.engines.factscore.tabulate import no_claims, no_verdicts
from factaudit.errors import UsageError, hint
from factaudit.evaluators.judging import judge, name_evaluator, parts
from factaudit.knowledge.docdb import Page
from factaudit.knowledge.retrieval import Retriever
from factaudit.knowledge.topics import Knowledge
from factaudit.llm.together import gather, run_sync, sessions
from factaudit.llm.types import LLM
from factaudit.signature import digest, signature
from factaudit.tables import validate_claims, validate_verdicts

#: FActScore's own prompt, put to the LLM; every other verifier is an evaluator.
LLM_VERIFIER = "llm"
#: Biographies in work at the same time: enough to keep a server busy, few enough for their prompts to fit in memory.
WINDOW = 64
#: Pairs of a fact and an entity that an evaluator is given at a time.
BLOCK = 4096
#: The evaluators' names in the verdicts table.
FACTSCORE, DFACTSCORE = "FActScore", "D-FActScore"

Row = dict[str, Any]


@dataclass(frozen=True)
class Scored:
    """What came of it.

    claims: a row per fact, with the ``group`` it is in, the ``entity`` the group is linked to, and as ``doc`` the
    passages of that entity's page. verdicts: two per claim, FActScore's and D-FActScore's. matrix: a row per fact and
    candidate entity that was verified, with score, prediction, status and raw, without the passages. responses: a row
    per biography, with its groups and facts. summary: figures over all responses, per system, and of every linking
    rule and grouper.
    """

    claims: pd.DataFrame
    verdicts: pd.DataFrame
    matrix: pd.DataFrame
    responses: list[Row]
    summary: Row


@dataclass
class DFactScorer:
    """D-FActScore of biographies (MF §3).

    Args:
        knowledge: where the candidates' pages are; None where every biography brings its documents.
        llm: decomposes, groups and verifies, as far as these need an LLM.
        verifier: ``llm`` (FActScore's prompt, with the name as its topic) or any evaluator (``unigram``,
            ``{"minicheck": {...}}``).
        groupers: one or several of `factaudit.engines.dfactscore.group.GROUPERS`. The first one's groups are scored;
        the
            others are compared with it, at no further call but their own.
        rule: how groups are linked to entities (`factaudit.engines.dfactscore.link.link`); the other rules stand
        beside it.
        demos, group_demos: files of demonstrations in place of our own.
        candidates: how the candidates of biographies that bring none are found: ``titles`` of the knowledge source that
            share the name, or the pages of the ``retriever.k`` best ``passages`` for the name; None: titles, and for a
            name that no title shares passages (`factaudit.engines.dfactscore.candidates.look_for`).
        retriever: how the passages of a page are chosen; the query is the name and the fact.
        parser: ``original`` or ``strict`` (`factaudit.engines.factscore.verify`).
        abstain: ``generic``, ``perplexity_ai`` or ``none``.
        gamma: of the length penalty, which is of the number of facts; 0 turns it off.
        narrow: a link whose margin is at most this is flagged.
        logprobs: ask the server for token probabilities, which become scores.
    """

    knowledge: Knowledge | None = None
    llm: LLM | None = None
    verifier: str | Mapping[str, Any] = LLM_VERIFIER
    groupers: Sequence[str] = ("llm",)
    rule: str = "argmax"
    demos: str | Path | None = None
    group_demos: str | Path | None = None
    candidates: str | None = None
    retriever: Retriever = field(default_factory=Retriever)
    parser: str = "original"
    abstain: str = "generic"
    gamma: float = GAMMA
    narrow: float = NARROW
    max_facts: int = MAX_FACTS
    logprobs: bool = True
    dataset: str = "biographies"
    replicates: int = 2000
    seed: int = 0
    confidence: float = 0.95

    def __post_init__(self) -> None:
        if isinstance(self.groupers, str):
            self.groupers = (self.groupers,)
        for name, values, known in (
            ("grouper", self.groupers, GROUPERS),
            ("linking rule", [self.rule], RULES),
            ("way to find candidates", [self.candidates] if self.candidates is not None else [], WAYS),
            ("parser", [self.parser], verify.PARSERS),
            ("abstention detector", [self.abstain], DETECTORS),
        ):
            for value in values:
                if value not in known:
                    raise UsageError(f"unknown {name} {value!r}{hint(value, known)}")
        if not self.groupers:
            raise UsageError("D-FActScore needs a grouper")
        if (self.verifier == LLM_VERIFIER or "llm" in self.groupers) and self.llm is None:
            what = "verifier" if self.verifier == LLM_VERIFIER else "grouper"
            raise UsageError(f"the {what} 'llm' needs an LLM; without one take, say, unigram and heuristic")
        self._evaluator = None if self.verifier == LLM_VERIFIER else name_evaluator(self.verifier)
        self._demonstrations = Demonstrations.load(self.demos)
        self._grouper = LLMGrouper(self.llm, grouping.Demonstrations.load(self.group_demos)) if self.llm else None

    @property
    def settings(self) -> Row:
        """What changes figures, but no verdict."""
        return {"gamma": self.gamma, "narrow": self.narrow}

    @property
    def callers(self) -> list[tuple[str, Any]]:
        """Whatever counts calls (``usage``), with the name under which its calls are told."""
        found: list[tuple[str, Any]] = [(DFACTSCORE, self.llm)]
        if self._evaluator is not None:
            found += [(self._evaluator.name, part) for part, _ in parts(self._evaluator.evaluator)]
        return [(name, one) for name, one in found if getattr(one, "usage", None) is not None]

    @property
    def signatures(self) -> dict[str, str]:
        """For each of the two evaluators, every setting that can change a verdict, on one line."""
        if self._evaluator is not None:
            verifier = self._evaluator.signature
        else:
            model = None if self.llm is None else self.llm.signature
            verifier = signature("llm", {"llm": model, "parser": self.parser, "logprobs": self.logprobs})
        shared: Row = {
            "verifier": verifier,
            "retrieval": self.retriever.signature,
            "facts": None if self.llm is None else digest(self.llm.signature, self._demonstrations.signature),
            "max_facts": self.max_facts,
            "found_by": {"candidates": self.candidates, "k": self.retriever.k},
            "abstain": self.abstain,
            "knowledge": None if self.knowledge is None else self.knowledge.db.signature,
        }
        own = self._grouper.signature if self.groupers[0] == "llm" and self._grouper else self.groupers[0]
        return {
            FACTSCORE: signature("factscore", shared | {"candidates": "any"}),
            DFACTSCORE: signature("dfactscore", shared | {"grouper": own, "link": self.rule}),
        }

    def score(
        self, biographies: Sequence[Biography], *, journal: str | Path | None = None, progress: bool = False
    ) -> Scored:
        """Score biographies.

        Args:
            journal: a folder where an evaluator's verdicts are written down as they come. (An LLM's replies are in
                its client's cache: in either case a run that was killed goes on where it was.)
            progress: show progress bars (on a terminal only).

        Raises `UsageError` where something is to be had from an LLM or a knowledge source that is not there, and
        `InputError` for people without a page under the policy ``error``, both before any call.
        """
        if not biographies:
            raise UsageError("there is no biography to score")
        if self.llm is None and any(one.facts is None for one in biographies):
            raise UsageError("facts are to be had from the biographies: that needs an LLM (or give the facts)")
        if "given" in self.groupers and not all(one.facts for one in biographies):
            raise UsageError("the grouper 'given' needs biographies with facts and their groups")
        works = [_Work(one) for one in biographies]
        self._find_candidates(works)
        if self.rule == "given":
            for work in works:
                for fact in work.bio.facts or ():
                    if fact.entity is not None and fact.entity not in {*work.titles, *work.pages}:
                        raise UsageError(
                            f"response {work.bio.response_id!r}: the given entity {fact.entity!r} is not among its "
                            f"candidates ({', '.join(work.pages) or 'none'})"
                        )
        run_sync(self._ask(works, progress))
        if self._evaluator is not None:
            self._judge(works, journal, progress)
        for work in works:
            self._finish(work)
        matrix = self._matrix(works)
        claims, verdicts = self._tables(works)
        rows = [self._row(work) for work in works]
        return Scored(claims, verdicts, matrix, rows, self._summary(works, rows))

    # --------------------------------------------------------------------------------------------- candidates

    def _find_candidates(self, works: Sequence[_Work]) -> None:
        open_names = [work.bio.name for work in works if work.bio.candidates is None]
        found: dict[str, Candidates] = {}
        if open_names:
            if self.knowledge is None:
                raise UsageError("candidates are to be found: that needs a knowledge source (or give them, or docs)")
            found = look_for(open_names, self.knowledge.db, self.candidates, self.retriever.k)
        if self.knowledge is not None:
            # Under the policy `error`, a name without candidates is as bad as a candidate without a page.
            lost = [name for name in open_names if not found[name].titles]
            named = [set(work.bio.candidates or ()) - {title for title, _ in work.bio.docs} for work in works]
            self.knowledge.check([*lost, *sorted(set().union(*named))])
        looked: dict[str, Page | verify.Support] = {}
        for work in works:
            if work.bio.candidates is None:
                work.candidates = found[work.bio.name]
            else:
                work.candidates = Candidates(work.bio.candidates, "given", None if work.bio.candidates else NOBODY)
            brought: dict[str, list[str]] = {}
            for title, text in work.bio.docs:
                if text not in brought.setdefault(title, []):
                    brought[title].append(text)
            for title in work.candidates.titles:
                if title not in looked:
                    looked[title] = self._look(title)
                page = looked[title]
                if isinstance(page, verify.Support) and title in brought:
                    page = Page(title, tuple(brought[title]))
                if isinstance(page, verify.Support):
                    work.missing[title] = page
                # Two titles may lead to one page, by a redirect: it is one entity.
                work.titles[title] = title if isinstance(page, verify.Support) else page.title
                work.pages[work.titles[title]] = None if isinstance(page, verify.Support) else page

    def _look(self, title: str) -> Page | verify.Support:
        """The page of a title, or why its facts have no verdict."""
        if self.knowledge is None:
            return verify.Support(None, None, "skipped", f"no document {title!r} came with the biography")
        page, status, reason = self.knowledge.find(title)
        return verify.Support(None, None, status, reason) if page is None else page

    # ------------------------------------------------------------------------------------------------ the LLM

    async def _ask(self, works: Sequence[_Work], progress: bool) -> None:
        """Everything that costs calls, many biographies at once; the client bounds what is under way."""
        window = asyncio.Semaphore(WINDOW)
        async with sessions(self.llm):
            with tqdm(total=len(works), desc="biographies", unit="bio", disable=None if progress else True) as bar:

                async def one(work: _Work) -> None:
                    async with window:
                        await self._facts(work)
                        await self._groups(work)
                        if self._evaluator is None:
                            await self._verify(work)
                    bar.update()

                await gather(one(work) for work in works)

    async def _facts(self, work: _Work) -> None:
        bio = work.bio
        work.abstained = is_abstained(bio.output, self.abstain)
        work.sentences = sentences(bio.text)
        if work.abstained:
            return
        if bio.facts is not None:
            work.facts = bio.facts
            return
        assert self.llm is not None
        found, work.n_duplicates, work.n_cut = await decompose(
            bio.text, self.llm.ask, self._demonstrations, max_facts=self.max_facts
        )
        work.failed = [one.get("error") or one["status"] for one in found if one["status"] not in ("ok", "boilerplate")]
        work.n_truncated = sum(one.get("truncated", False) for one in found)
        work.facts = tuple(Fact(text, number) for number, one in enumerate(found) for text in one["facts"])

    async def _groups(self, work: _Work) -> None:
        texts = [fact.text for fact in work.facts]
        for name in self.groupers:
            if name == "llm" and texts:
                assert self._grouper is not None
                found = await self._grouper.group(work.bio.text, texts)
            elif name == "heuristic":
                numbers = [fact.sentence for fact in work.facts]
                found = grouping.heuristic_groups(work.bio.name, work.sentences, texts, numbers)
            elif name == "given":
                found = Grouping(grouping.number_groups(given_groups(work.facts)[0]))
            else:
                found = grouping.one_group(len(texts))
            work.groupings[name] = found

    async def _verify(self, work: _Work) -> None:
        assert self.llm is not None
        llm = self.llm

        async def one(fact: int, page: Page) -> None:
            passages = await asyncio.to_thread(self._passages, work, fact, page)
            text = verify.prompt(work.bio.name, page.title, passages, work.facts[fact].text)
            reply = await llm.ask(verify.request(text, self.logprobs))
            work.verdicts[fact, page.title] = verify.read(reply, self.parser)

        pages = [page for page in work.pages.values() if page is not None]
        await gather(one(fact, page) for fact in range(len(work.facts)) for page in pages)

    # --------------------------------------------------------------------------------------------- the matrix

    def _passages(self, work: _Work, fact: int, page: Page) -> list[str]:
        return self.retriever.retrieve(page, work.bio.name, work.facts[fact].text)

    def _judge(self, works: Sequence[_Work], journal: str | Path | None, progress: bool) -> None:
        """Fill in an evaluator's verdicts, some biographies at a time: the passages of all would not fit in memory."""
        assert self._evaluator is not None
        block: list[tuple[_Work, int, Page]] = []
        for position, work in enumerate(works):
            pages = [page for page in work.pages.values() if page is not None]
            block += [(work, fact, page) for fact in range(len(work.facts)) for page in pages]
            if not block or (len(block) < BLOCK and position < len(works) - 1):
                continue
            table = pd.DataFrame(
                {
                    "claim_id": [one.cell_id(fact, page.title) for one, fact, page in block],
                    "dataset": self.dataset,
                    "topic": [one.bio.name for one, _, _ in block],
                    "claim": [one.facts[fact].text for one, fact, _ in block],
                    "doc": ["\n\n".join(self._passages(*cell)) for cell in block],
                }
            )
            judged = judge(validate_claims(table), [self._evaluator], journal=journal, progress=progress)
            for (one, fact, page), support in zip(block, _supports(judged), strict=True):
                one.verdicts[fact, page.title] = support
            block = []

    def _matrix(self, works: Sequence[_Work]) -> pd.DataFrame:
        """The matrix of all biographies as one table, without the passages."""
        rows = [
            {
                "claim_id": work.cell_id(number, title),
                "dataset": self.dataset,
                "system": work.bio.system,
                "response_id": work.bio.response_id,
                "doc_id": title,
                "topic": work.bio.name,
                "entity": title,
                "claim": fact.text,
                "fact": number,
                **asdict(work.verdict(number, title)),
            }
            for work in works
            for number, fact in enumerate(work.facts)
            for title in work.pages
        ]
        table = validate_claims(pd.DataFrame(rows)) if rows else no_claims()
        return table.astype({"prediction": "Int8"}) if rows else table

    # -------------------------------------------------------------------------------------------------- scores

    def _finish(self, work: _Work) -> None:
        n, titles = len(work.facts), tuple(work.pages)
        prediction = np.full((n, len(titles)), MISSING, dtype=np.int8)
        score = np.full((n, len(titles)), np.nan)
        for fact in range(n):
            for column, title in enumerate(titles):
                verdict = work.verdict(fact, title)
                prediction[fact, column] = MISSING if verdict.prediction is None else verdict.prediction
                score[fact, column] = np.nan if verdict.score is None else verdict.score
        work.matrix = Matrix(tuple(fact.text for fact in work.facts), titles, prediction, score)
        work.links = self._link(work, self.groupers[0], self.rule) or []

    def _link(self, work: _Work, grouper: str, rule: str) -> list[Link] | None:
        """The links of one grouping by one rule; None where there are no groups."""
        groups = work.groupings[grouper].groups
        return None if groups is None else self._linked(work, work.matrix, groups, rule)

    def _linked(self, work: _Work, matrix: Matrix, groups: Sequence[int], rule: str) -> list[Link]:
        return link(matrix, groups, rule, _given_entities(work, groups) if rule == "given" else None)

    def _figures(self, work: _Work, grouper: str, rule: str) -> Row:
        groups = work.groupings[grouper].groups
        links = work.links if (grouper, rule) == (self.groupers[0], self.rule) else self._link(work, grouper, rule)
        best = None
        if groups is not None and (work.matrix.prediction == MISSING).any():
            best = self._linked(work, work.matrix.at_best(), groups, rule)
        figures = scoring.score(work.matrix, groups, links or [], best=best, gamma=self.gamma, narrow=self.narrow)
        figures["n_unparsed"] = sum(one.status == "unparsed" for one in work.verdicts.values())
        known = {"system": work.bio.system, "abstained": work.abstained, "n_failed_sentences": len(work.failed)}
        return known | figures

    def _row(self, work: _Work) -> Row:
        main = work.groupings[self.groupers[0]]
        titles = work.matrix.entities
        by_any, attributed = work.matrix.by_any(), work.matrix.attributed()
        groups = main.groups
        linked = None if groups is None else entity_of_facts(work.links, groups)
        by_link = None if linked is None else work.matrix.by_entity(linked)
        facts = [
            {
                "text": fact.text,
                "sentence": fact.sentence,
                "group": None if groups is None else groups[number],
                "entity": None if linked is None or linked[number] < 0 else titles[linked[number]],
                "about": None if attributed[number] < 0 else titles[attributed[number]],
                "supported_by": [titles[e] for e in np.flatnonzero(work.matrix.prediction[number] == 1)],
                "factscore": _or_none(by_any[number]),
                "dfactscore": None if by_link is None else _or_none(by_link[number]),
                "label": fact.label,
                "given_group": fact.group,
                "given_entity": fact.entity,
            }
            for number, fact in enumerate(work.facts)
        ]
        return {
            "response_id": work.bio.response_id,
            "name": work.bio.name,
            "output": work.bio.output,
            **self._figures(work, self.groupers[0], self.rule),
            **({"reason": work.candidates.reason} if work.facts and not titles else {}),
            "given_category": work.bio.category,
            "candidates": list(titles),
            "candidates_from": work.candidates.source,
            "groups": [
                {
                    "entity": None if one.entity is None else titles[one.entity],
                    "share": one.share,
                    "second": None if one.second is None else titles[one.second],
                    "margin": one.margin,
                    "narrow": one.is_narrow(self.narrow),
                    "n_facts": sum(number == group for number in groups or ()),
                }
                for group, one in enumerate(work.links)
            ],
            "grouping": {name: _told(found) for name, found in work.groupings.items()},
            "n_truncated_sentences": work.n_truncated,
            "n_duplicates": work.n_duplicates,
            "n_cut": work.n_cut,
            "sentences": work.sentences,
            "facts": facts,
        }

    def _tables(self, works: Sequence[_Work]) -> tuple[pd.DataFrame, pd.DataFrame]:
        claims: list[Row] = []
        verdicts: list[Row] = []
        for work in works:
            main = work.groupings[self.groupers[0]]
            linked = None if main.groups is None else entity_of_facts(work.links, main.groups)
            titles = work.matrix.entities
            by_any = work.matrix.by_any()
            for number, fact in enumerate(work.facts):
                column = None if linked is None or linked[number] < 0 else int(linked[number])
                title = None if column is None else titles[column]
                page = None if title is None else work.pages[title]
                claim_id = work.claim_id(number)
                claims.append(
                    {
                        "claim_id": claim_id,
                        "dataset": self.dataset,
                        "system": work.bio.system,
                        "response_id": work.bio.response_id,
                        "doc_id": title,
                        "topic": work.bio.name,
                        "group": None if main.groups is None else str(main.groups[number] + 1),
                        "entity": title,
                        "claim": fact.text,
                        "doc": None if page is None else "\n\n".join(self._passages(work, number, page)),
                        "label": fact.label,
                    }
                )
                cells = [work.verdict(number, title) for title in titles]
                if not titles:
                    cells = [verify.Support(None, None, "skipped", work.candidates.reason)]
                known = [one.score for one in cells if one.score is not None]
                verdicts.append(
                    {
                        "claim_id": claim_id,
                        "evaluator": FACTSCORE,
                        "score": max(known) if known else None,
                        **_verdict(_or_none(by_any[number]), cells, ", ".join(work.supporters(number)) or None),
                    }
                )
                if main.groups is None:
                    told: Row = {"score": None, "prediction": None, "status": main.status, "raw": main.raw}
                elif column is None:
                    told = {"score": None, **_verdict(0 if titles else None, cells, "no entity is left for the group")}
                else:
                    told = {"score": cells[column].score, **_verdict(cells[column].prediction, [cells[column]], None)}
                verdicts.append({"claim_id": claim_id, "evaluator": DFACTSCORE, **told})
        if not claims:
            return no_claims(), no_verdicts()
        return validate_claims(pd.DataFrame(claims)), validate_verdicts(pd.DataFrame(verdicts))

    def _summary(self, works: Sequence[_Work], rows: Sequence[Row]) -> Row:
        options: Row = {"replicates": self.replicates, "seed": self.seed, "confidence": self.confidence}
        systems = list(dict.fromkeys(row["system"] for row in rows))
        rules = [rule for rule in RULES if rule != "given" or all(_has_entities(work) for work in works)]
        linking = []
        for grouper in self.groupers:
            for rule in rules:
                told = [self._figures(work, grouper, rule) for work in works]
                for system in systems:
                    row = scoring.summarise([one for one in told if one["system"] == system], **options)
                    linking.append(
                        {"grouper": grouper, "link": rule, "system": system} | {key: row[key] for key in _LINKING}
                    )
        return {
            "grouper": self.groupers[0],
            "link": self.rule,
            **scoring.summarise(rows, **options),
            **{key: sum(row[key] for row in rows) for key in _TOTALS},
            "systems": [
                {"system": system}
                | scoring.summarise([row for row in rows if row["system"] == system], **options)
                | {"category_accuracy": _share(_right_category([row for row in rows if row["system"] == system]))}
                for system in systems
            ],
            "category_accuracy": _share(_right_category(rows)),
            "linking": linking,
            "grouping": [self._grouping(works, name) for name in self.groupers],
        }

    def _grouping(self, works: Sequence[_Work], name: str) -> Row:
        """What one grouper did to the facts, and how it compares with the given groups and with the first grouper."""
        spoke = [work for work in works if work.facts]
        found = [work.groupings[name] for work in spoke]
        row: Row = {
            "grouper": name,
            "n_responses": len(spoke),
            "n_failed": sum(one.groups is None for one in found),
            **{key: sum(getattr(one, key) for one in found) for key in _COUNTS},
        }
        for key, truth in (("given", _given_groups), ("first", self._first_groups)):
            pairs = [(truth(work), one.groups) for work, one in zip(spoke, found, strict=True)]
            both = [grouping.compare(one, two) for one, two in pairs if one is not None and two is not None]
            row[f"n_compared_{key}"] = len(both)
            row[f"same_as_{key}"] = _share([same for same, _ in both])
            row[f"agreement_{key}"] = _share([agreed for _, agreed in both])
        return row

    def _first_groups(self, work: _Work) -> tuple[int, ...] | None:
        return work.groupings[self.groupers[0]].groups


#: The figures that depend on groups and links.
_LINKING = (
    "n_answered",
    *(f"dfactscore{end}" for end in ("", "_low", "_high", "_min", "_max")),
    *(f"init_dfactscore{end}" for end in ("", "_low", "_high", "_min", "_max")),
    *(f"gap{end}" for end in ("", "_low", "_high")),
    *("n_biographies", "share_merged", "n_elsewhere", "n_narrow", "reason"),
)
_TOTALS = ("n_failed_sentences", "n_truncated_sentences", "n_unparsed", "n_duplicates", "n_cut")
_COUNTS = ("n_changed", "n_dropped", "n_invented", "n_repeated")


@dataclass
class _Work:
    """All about one biography, filled step by step."""

    bio: Biography
    pages: dict[str, Page | None] = field(default_factory=dict)
    missing: dict[str, verify.Support] = field(default_factory=dict)
    #: Of each candidate, as it was named, the title of its page.
    titles: dict[str, str] = field(default_factory=dict)
    abstained: bool = False
    sentences: list[str] = field(default_factory=list)
    facts: tuple[Fact, ...] = ()
    failed: list[str] = field(default_factory=list)
    n_truncated: int = 0
    n_duplicates: int = 0
    n_cut: int = 0
    groupings: dict[str, Grouping] = field(default_factory=dict)
    verdicts: dict[tuple[int, str], verify.Support] = field(default_factory=dict)
    candidates: Candidates = field(init=False)
    matrix: Matrix = field(init=False)
    links: list[Link] = field(default_factory=list)

    def claim_id(self, fact: int) -> str:
        return f"{self.bio.response_id}.{fact}"

    def cell_id(self, fact: int, title: str) -> str:
        return f"{self.claim_id(fact)}.{digest(title, length=8)}"

    def verdict(self, fact: int, title: str) -> verify.Support:
        return self.missing[title] if self.pages[title] is None else self.verdicts[fact, title]

    def supporters(self, fact: int) -> list[str]:
        return [title for title in self.pages if self.verdict(fact, title).prediction == 1]


def _supports(verdicts: pd.DataFrame) -> Iterable[verify.Support]:
    for prediction, score, status, raw in zip(
        verdicts["prediction"], verdicts["score"], verdicts["status"], verdicts["raw"], strict=True
    ):
        yield verify.Support(
            None if pd.isna(prediction) else int(prediction),
            None if pd.isna(score) else float(score),
            status,
            raw if isinstance(raw, str) else None,
        )


def _verdict(prediction: int | None, cells: Sequence[verify.Support], raw: str | None) -> Row:
    """Prediction, status and raw of a verdict that stands on these cells of the matrix.

    Where it stands on replies that were guessed at, it is ``unparsed`` as they are.
    """
    if prediction is None:
        reason = next(one for one in cells if one.prediction is None)
        return {"prediction": None, "status": reason.status, "raw": reason.raw}
    alike = [one for one in cells if one.prediction == prediction]
    # One clear reply is enough to be supported; not to be supported takes them all.
    guessed = (all if prediction else any)(one.status == "unparsed" for one in alike) and bool(alike)
    told = raw or (cells[0].raw if len(cells) == 1 else None)
    return {"prediction": prediction, "status": "unparsed" if guessed else "ok", "raw": told}


def _given_entities(work: _Work, groups: Sequence[int]) -> dict[int, str]:
    """Of each group the given entity that most of its facts have."""
    regrouped = [
        Fact(fact.text, group=str(number), entity=fact.entity) for fact, number in zip(work.facts, groups, strict=True)
    ]
    entities = given_groups(regrouped)[1].items()
    return {int(group or 0): work.titles.get(entity, entity) for group, entity in entities if entity is not None}


def _has_entities(work: _Work) -> bool:
    known = {fact.entity for fact in work.facts} - {None}
    return not work.facts or (bool(known) and known <= {*work.titles, *work.pages})


def _given_groups(work: _Work) -> tuple[int, ...] | None:
    marks = [fact.group for fact in work.facts]
    return grouping.number_groups(marks) if all(mark is not None for mark in marks) else None


def _right_category(rows: Sequence[Row]) -> list[bool]:
    return [row["category"] == row["given_category"] for row in rows if row["given_category"] and row["category"]]


def _told(found: Grouping) -> Row:
    return {
        "groups": None if found.groups is None else list(found.groups),
        "status": found.status,
        **{key: getattr(found, key) for key in _COUNTS},
        "raw": found.raw,
    }


def _share(values: Sequence[float]) -> float | None:
    return float(np.mean(values)) if values else None


def _or_none(verdict: int) -> int | None:
    return None if verdict < 0 else int(verdict)
