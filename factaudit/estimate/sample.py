"""Which claims to label: drawn by their scores, with all that an estimate must know of the draw kept in one file.

A sample file is Parquet, a row per claim to label. Its metadata holds the plan (budget, seeds, phases, what was drawn
from) and a checksum of the rows: labels of other claims, of another claims table or of a sample that was edited are
refused, since no estimate could know how they were drawn.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from factaudit.audit.core.judged import LEVELS, Judged
from factaudit.errors import InputError, Problem, UsageError, hint
from factaudit.estimate.allocate import draw_first, draw_more, first_budget
from factaudit.estimate.case import Case
from factaudit.estimate.columns import guess_of
from factaudit.estimate.corpus import Corpus, corpora
from factaudit.estimate.design import Draw
from factaudit.files import atomic
from factaudit.signature import digest
from factaudit.tables import claim_positions
from factaudit.tables.columns import arrow

SCHEMA = "factaudit.sample/1"
#: Columns of a sample, a row per claim. probability: of being drawn, in its phase, given what was drawn before; frame:
#: how many claims (or responses) its stratum held then; annotators: the numbers of those who are to label it.
COLUMNS = (
    "claim_id",
    "dataset",
    "system",
    "stratum",
    "probability",
    "order",
    "phase",
    "frame",
    "annotators",
)
_METADATA = b"factaudit.sample"


@dataclass(frozen=True)
class Plan:
    """How a sample was drawn.

    budget: labels (or labelled responses, by ``level``) in all; shares: those of each dataset; drawn: per phase those
    of each dataset; seeds: of each phase; evaluators: the main one first; corpus: a checksum of the claims drawn from;
    annotators and overlap: how many label, and the share that all of them do.
    """

    budget: int
    level: str
    evaluators: tuple[str, ...]
    strata: tuple[str, ...]
    corpus: str
    shares: dict[str, int]
    drawn: tuple[dict[str, int], ...]
    seeds: tuple[int, ...]
    annotators: int = 1
    overlap: float = 0.0
    same_documents: bool = False

    def remaining(self, dataset: str) -> int:
        """What is not drawn yet of a dataset's share."""
        return self.shares[dataset] - sum(phase.get(dataset, 0) for phase in self.drawn)


@dataclass(frozen=True)
class Sample:
    """Claims to label (`COLUMNS`) and how they were drawn."""

    rows: pd.DataFrame
    plan: Plan
    source: str = field(default="the sample")

    def write(self, path: str | Path) -> None:
        """Write a Parquet file with the plan and a checksum of the rows in its metadata."""
        if Path(path).suffix.lower() != ".parquet":
            raise InputError(str(path), [Problem("expected a name that ends in .parquet: it keeps how it was drawn")])
        table = pa.Table.from_pandas(self.rows, preserve_index=False)
        about = {"schema": SCHEMA, "plan": asdict(self.plan), "rows": _checksum(self.rows)}
        table = table.replace_schema_metadata({**(table.schema.metadata or {}), _METADATA: json.dumps(about).encode()})
        with atomic(path) as temporary:
            pq.write_table(table, temporary, compression="zstd")

    def check_labels(self, ids: pd.Series) -> None:
        """Raise `InputError` where there are labels of claims that were not drawn."""
        strange = ids[~ids.isin(self.rows["claim_id"])]
        if len(strange):
            shown = ", ".join(map(repr, strange.head(3)))
            raise InputError(
                self.source,
                [
                    Problem(
                        f"{len(strange)} of {len(ids)} labels are of claims that were not drawn ({shown}): how they "
                        "came to be labelled is not known, so no estimate can use them"
                    )
                ],
            )

    def draw(self, corpus: Corpus, judged: Judged) -> Draw:
        """The draw in terms of a corpus's rows. Raises `UsageError` where single claims of responses were drawn."""
        mine = self.rows[self.rows["dataset"] == corpus.dataset]
        at = corpus.unit_of[claim_positions(judged.claims, mine["claim_id"])]
        if (at < 0).any():
            raise InputError(self.source, [Problem("the sample is not of these claims: they have other systems")])
        frame = mine["frame"].to_numpy(dtype=np.float64)
        stratum = mine["stratum"].to_numpy()
        if corpus.level != self.plan.level:
            if corpus.level == "response":
                if (np.bincount(corpus.unit_of[corpus.unit_of >= 0]) > 1).any():
                    raise UsageError(
                        "single claims were drawn, which says nothing fair of whole responses: "
                        "sample with --level response"
                    )
            else:  # the stratum's claims, by what the drawn ones of its responses hold
                drawn = mine["probability"].to_numpy() * frame
                frame *= np.bincount(stratum)[stratum] / drawn
        first = ~pd.Series(at).duplicated().to_numpy()
        return Draw(at[first], mine["phase"].to_numpy()[first], stratum[first], frame[first])


def read_sample(path: str | Path) -> Sample:
    """Read a sample file. Raises `InputError` where it is none, or where its rows are not as they were written."""
    source = str(path)
    try:
        table = pq.read_table(path)
    except FileNotFoundError:
        raise InputError(source, [Problem("no such file")]) from None
    except (pa.ArrowException, OSError):
        raise InputError(source, [Problem("not a readable Parquet file: expected one that `sample` wrote")]) from None
    metadata = (table.schema.metadata or {}).get(_METADATA)
    if metadata is None:
        raise InputError(source, [Problem("no sample file: it does not say how its claims were drawn")])
    try:
        about = json.loads(metadata)
        fields: dict[str, Any] = {k: tuple(v) if isinstance(v, list) else v for k, v in about["plan"].items()}
        plan = Plan(**fields)
        right = about["schema"] == SCHEMA and list(table.column_names) == list(COLUMNS)
        checksum = about["rows"]
    except (ValueError, KeyError, TypeError):
        right = False
    if not right:
        raise InputError(source, [Problem("no sample file of this version of factaudit")])
    rows = table.to_pandas()
    if _checksum(rows) != checksum:
        raise InputError(
            source, [Problem("its rows were changed after they were drawn: labels of it cannot be used as drawn")]
        )
    return Sample(rows, plan, source)


def draw_sample(
    judged: Judged,
    evaluators: Sequence[str],
    budget: int,
    *,
    level: str = "claim",
    strata: Sequence[str] = (),
    seed: int = 0,
    phases: int = 2,
    annotators: int = 1,
    overlap: float = 0.0,
    same_documents: bool = False,
) -> Sample:
    """Draw the first phase of a budget of labels (all of it, where one phase is better or ``phases`` is 1).

    judged: labels in it are not looked at; budget: claims (or responses, by ``level``) per dataset; same_documents:
    the same documents for all systems, which sharpens differences and blunts levels.
    """
    if level not in LEVELS:
        raise UsageError(f"unknown level {level!r}{hint(level, LEVELS)}")
    if not 0 <= overlap <= 1:
        raise UsageError(f"expected an overlap from 0 to 1, found {overlap}")
    found = list(corpora(judged, level, evaluators, strata))
    shares = _shares(budget, found)
    drawn: dict[str, tuple[Corpus, Draw]] = {}
    for corpus in found:
        share = min(shares[corpus.dataset], len(corpus.error))
        first = share if phases == 1 else first_budget(share, len(corpus.systems))
        random = _random(seed, corpus, 0)
        if same_documents:
            draw = _same_documents(corpus, share, random)
        else:
            guess = guess_of(corpus.score[0])
            draw = draw_first(guess, corpus.system, first, random, corpus.stratum, first < share)
        drawn[corpus.dataset] = (corpus, draw)
    plan = Plan(
        budget=budget,
        level=level,
        evaluators=tuple(evaluators),
        strata=tuple(strata),
        corpus=_corpus_digest(judged),
        shares={name: len(draw.row) if same_documents else shares[name] for name, (_, draw) in drawn.items()},
        drawn=({name: len(draw.row) for name, (_, draw) in drawn.items()},),
        seeds=(seed,),
        annotators=annotators,
        overlap=overlap,
        same_documents=same_documents,
    )
    return Sample(_table(judged, drawn, plan, {}), plan)


def draw_again(sample: Sample, judged: Judged, more: int | None = None, seed: int = 0) -> Sample:
    """The next phase: what remains of the budget, or ``more`` labels on top of it, where the fit so far is unsure.

    judged: with the labels so far. The rows that were drawn before stay as they are.
    """
    plan = sample.plan
    if plan.same_documents:
        raise UsageError("a sample of the same documents for all systems cannot be extended")
    check_corpus(sample, judged)
    found = list(corpora(judged, plan.level, plan.evaluators, plan.strata))
    added = {corpus.dataset: 0 for corpus in found} if more is None else _shares(more, found)
    drawn: dict[str, tuple[Corpus, Draw]] = {}
    for corpus in found:
        before = sample.draw(corpus, judged)
        size = min(plan.remaining(corpus.dataset) + added[corpus.dataset], len(corpus.error) - len(before.row))
        if size < 1:
            continue
        case = Case(corpus, before)
        if not len(case.rows):
            raise UsageError(f"{corpus.dataset}: no label yet: a further phase is drawn by what the labels so far say")
        random = _random(seed, corpus, len(plan.drawn))
        drawn[corpus.dataset] = (corpus, draw_more(case.fitted, corpus.system, before, size, random))
    if not drawn:
        raise UsageError("nothing remains of the sample's budget: say with --more how many labels to add")
    plan = replace(
        plan,
        budget=plan.budget + (more or 0),
        shares={name: share + added.get(name, 0) for name, share in plan.shares.items()},
        drawn=(*plan.drawn, {name: len(draw.row) for name, (_, draw) in drawn.items()}),
        seeds=(*plan.seeds, seed),
    )
    offsets = {str(name): int(rows["stratum"].max()) + 1 for name, rows in sample.rows.groupby("dataset")}
    table = _table(judged, drawn, plan, offsets)
    table["order"] += int(sample.rows["order"].max()) + 1
    return Sample(pd.concat([sample.rows, table], ignore_index=True), plan)


def _shares(budget: int, found: Sequence[Corpus]) -> dict[str, int]:
    """A budget split over datasets in proportion to their systems."""
    systems = np.array([len(corpus.systems) for corpus in found])
    if budget < systems.sum():
        raise UsageError(f"{budget} labels are too few for {systems.sum()} systems: expected at least one each")
    ends = np.floor(np.cumsum(systems) * budget / systems.sum() + 1e-9).astype(int)
    return {corpus.dataset: int(n) for corpus, n in zip(found, np.diff(ends, prepend=0), strict=True)}


def check_corpus(sample: Sample, judged: Judged) -> None:
    """Raise `InputError` where the claims are not those that the sample was drawn from."""
    if sample.plan.corpus != _corpus_digest(judged):
        raise InputError(
            sample.source, [Problem("it was drawn from another claims table (other claims, systems or responses)")]
        )


def _same_documents(corpus: Corpus, budget: int, random: np.random.Generator) -> Draw:
    """Whole documents at random, every system's claims on them, while the budget lasts: a stratum per system."""
    order = random.permutation(int(corpus.document.max()) + 1)
    place = np.argsort(order)[corpus.document]
    rows = np.argsort(place, kind="stable")
    # Documents are drawn whole: the last one that does not fit is left out.
    last = place[rows[min(budget, len(rows)) - 1]]
    fits = (place <= last).sum() <= budget
    chosen = np.flatnonzero(place <= last if fits or last == 0 else place < last)
    frame = np.bincount(corpus.system)[corpus.system[chosen]]
    return Draw(chosen, np.zeros(len(chosen), dtype=np.int64), corpus.system[chosen], frame)


def _table(
    judged: Judged, drawn: Mapping[str, tuple[Corpus, Draw]], plan: Plan, offsets: Mapping[str, int]
) -> pd.DataFrame:
    """The rows of one phase: every claim of what was drawn."""
    parts = []
    for dataset, (corpus, draw) in drawn.items():
        claims = np.flatnonzero(np.isin(corpus.unit_of, draw.row))
        place = np.empty(len(corpus.error), dtype=np.int64)
        place[draw.row] = np.arange(len(draw.row))
        at = place[corpus.unit_of[claims]]
        table = judged.claims.iloc[claims]
        parts.append(
            pd.DataFrame(
                {
                    "claim_id": table["claim_id"].to_numpy(dtype=object),
                    "dataset": dataset,
                    "system": table["system"].to_numpy(dtype=object),
                    "stratum": draw.stratum[at] + offsets.get(dataset, 0),
                    "probability": draw.probability[at],
                    "order": 0,
                    "phase": len(plan.drawn) - 1,
                    "frame": draw.frame[at],
                    "unit": draw.row[at],
                }
            )
        )
    rows = pd.concat(parts, ignore_index=True)
    # Claims of one response stay together; otherwise the order tells nothing of system or score.
    random = np.random.default_rng([plan.seeds[-1], len(plan.drawn), 1])
    units = pd.factorize(rows["dataset"].astype(str) + "|" + rows["unit"].astype(str))[0]
    rank = random.permutation(int(units.max()) + 1)[units]
    order = np.argsort(rank, kind="stable")
    rows = rows.iloc[order].reset_index(drop=True)
    rows["order"] = np.arange(len(rows))
    rows["annotators"] = _assigned(rank[order], plan, random)
    return rows[list(COLUMNS)]


def _assigned(rank: np.ndarray, plan: Plan, random: np.random.Generator) -> list[str]:
    """Whose each row is, as numbers from 1: everybody's for a share ``overlap`` of the units, else one's in turn."""
    n = int(rank.max(initial=-1)) + 1
    everybody = " ".join(str(number + 1) for number in range(plan.annotators))
    shared = np.zeros(n, dtype=bool)
    shared[random.choice(n, int(np.ceil(plan.overlap * n)), replace=False)] = True
    turn = np.cumsum(~shared) % plan.annotators
    return [everybody if shared[unit] else str(turn[unit] + 1) for unit in rank]


def _random(seed: int, corpus: Corpus, phase: int) -> np.random.Generator:
    return np.random.default_rng([seed, phase, int(digest(corpus.dataset, "sample"), 16)])


def _corpus_digest(judged: Judged) -> str:
    """A checksum of which claims there are, of which system and response: not of their order, texts or labels."""
    names = ("claim_id", "dataset", "system", "response_id")
    columns = [arrow(judged.claims[name]).fill_null("\0") for name in names]
    rows = pc.binary_join_element_wise(*columns, pa.scalar("\x1f", pa.large_string()))
    return digest("\n".join(sorted(rows.to_pylist())))


def _checksum(rows: pd.DataFrame) -> str:
    # Python's own numbers, whose text is the same in every version of pandas.
    values = zip(*(rows[column].astype(object).where(rows[column].notna(), None) for column in COLUMNS), strict=True)
    return digest(json.dumps([list(row) for row in values]), length=64)
