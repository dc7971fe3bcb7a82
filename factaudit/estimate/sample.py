"""Which claims should be labelled? Drawn by their scores; one file keeps all that an estimate must
know of the draw.

A sample file is Parquet, a row per claim to label. Its metadata holds the plan (budget, seeds,
phases, what was drawn from) and a checksum of the rows: labels of other claims, of another claims
table or of a sample that was edited are refused, since no estimate could know how they were drawn.
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

from factaudit.arrays.judgements import LEVELS, Judgements
from factaudit.errors import InputError, Problem, UsageError, suggest_known_name
from factaudit.estimate.corpus import Corpus, build_corpora
from factaudit.estimate.methods import Estimation
from factaudit.files import replace_file_atomically
from factaudit.signature import hash_texts
from factaudit.stats import sampling
from factaudit.tables import find_claim_positions
from factaudit.tables.annotations import find_undecided_claims
from factaudit.tables.column_parsing import make_arrow_text
from factaudit.tables.table_files import check_parquet_unpacked_size
from factaudit.text.display_text import format_count

SAMPLE_SCHEMA = "factaudit.sample/1"
#: Columns of a sample, a row per claim. probability: of being drawn, in its phase, given what was
#: drawn before; frame: how many claims (or responses) its stratum held then; annotators: the
#: numbers of those who are to label it.
SAMPLE_COLUMNS = (
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
_METADATA_KEY = b"factaudit.sample"

#: By dataset what was drawn of it in one phase.
PhaseDraws = dict[str, tuple[Corpus, sampling.StratifiedDraw]]


@dataclass(frozen=True)
class SamplingPlan:
    """How a sample was drawn.

    budget: labels (or labelled responses, by ``level``) in all; shares: those of each dataset;
    drawn: per phase those of each dataset; seeds: of each phase; evaluators: the main one first;
    corpus: a checksum of the claims drawn from;
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

    def count_remaining_labels(self, dataset: str) -> int:
        """What is not drawn yet of a dataset's share."""
        return self.shares[dataset] - sum(phase.get(dataset, 0) for phase in self.drawn)


@dataclass(frozen=True)
class LabelSample:
    """Claims to label (`SAMPLE_COLUMNS`) and how they were drawn."""

    rows: pd.DataFrame
    plan: SamplingPlan
    source: str = field(default="the sample")

    def write(self, path: str | Path) -> None:
        """Write a Parquet file with the plan and a checksum of the rows in its metadata."""
        if Path(path).suffix.lower() != ".parquet":
            raise _refuse(
                path,
                "expected a name that ends in .parquet: the file also says how the claims were"
                " drawn",
            )
        table = pa.Table.from_pandas(self.rows, preserve_index=False)
        about = {
            "schema": SAMPLE_SCHEMA,
            "plan": asdict(self.plan),
            "rows": _checksum_rows(self.rows),
        }
        metadata = {**(table.schema.metadata or {}), _METADATA_KEY: json.dumps(about).encode()}
        with replace_file_atomically(path) as temporary:
            pq.write_table(table.replace_schema_metadata(metadata), temporary, compression="zstd")

    def find_draw(self, corpus: Corpus, judgements: Judgements) -> sampling.StratifiedDraw:
        """The draw in terms of a corpus's rows. Raises `UsageError` where single claims of
        responses were drawn."""
        mine = self.rows[self.rows["dataset"] == corpus.dataset]
        at = corpus.unit_of_claim[find_claim_positions(judgements.claims, mine["claim_id"])]
        if (at < 0).any():
            raise _refuse(
                self.source,
                "this sample was drawn from other claims: the systems differ; give the same claims",
            )
        frame, stratum = mine["frame"].to_numpy(dtype=np.float64), mine["stratum"].to_numpy()
        if corpus.level == "response" and self.plan.level == "claim":
            if (np.bincount(corpus.unit_of_claim[corpus.unit_of_claim >= 0]) > 1).any():
                whole = int((corpus.is_labelled | corpus.undecided).sum())
                raise UsageError(
                    "single claims were drawn, which says nothing fair of whole responses"
                    f" ({format_count(whole, 'response')} labelled whole, {corpus.n_partial} in"
                    " part): sample with --level response"
                )
        elif corpus.level != self.plan.level:
            # The stratum's claims, by what the drawn ones of its responses hold.
            frame = frame * np.bincount(stratum)[stratum] / (mine["probability"].to_numpy() * frame)
        first = ~pd.Series(at).duplicated().to_numpy()
        return sampling.StratifiedDraw(
            at[first], mine["phase"].to_numpy()[first], stratum[first], frame[first]
        )

    def check_matches(
        self,
        judgements: Judgements,
        annotations: pd.DataFrame | None = None,
        rule: str = "majority",
    ) -> None:
        """Raise `InputError` where the claims are not those drawn from, or where people judged
        others than the drawn.

        annotations, rule: what the labels were made of; a claim that people left undecided was
        judged, too.
        """
        if self.plan.corpus != _digest_claims(judgements):
            raise _refuse(
                self.source,
                "this sample was drawn from another claims table, with other claims, systems or"
                " responses; give the same claims",
            )
        ids, is_judged = judgements.claims["claim_id"], judgements.label >= 0
        if annotations is not None:
            labels = pd.Series(judgements.label, index=ids)
            is_judged |= ids.isin(
                find_undecided_claims(rule, annotations, labels.where(labels >= 0)).index
            ).to_numpy()
        ids = ids[is_judged]
        strange = ids[~ids.isin(self.rows["claim_id"])]
        if len(strange):
            raise _refuse(
                self.source,
                f"{len(strange)} of {len(ids)} labels are of claims that were not drawn"
                f" ({', '.join(map(repr, strange.head(3)))}): how they came to be labelled is not"
                " known, so no estimate can use them",
            )


def _refuse(source: str | Path, problem: str) -> InputError:
    return InputError(str(source), [Problem(problem)])


def read_sample(path: str | Path) -> LabelSample:
    """Read a sample file. Raises `InputError` where it is none, or where its rows are not as they
    were written."""
    try:
        file = pq.ParquetFile(path)
        check_parquet_unpacked_size(Path(path), file)
        table = file.read()
    except FileNotFoundError:
        raise _refuse(path, "no such file") from None
    except (pa.ArrowException, OSError):
        raise _refuse(
            path, "not a readable Parquet file: expected one that `sample` wrote"
        ) from None
    metadata = (table.schema.metadata or {}).get(_METADATA_KEY)
    if metadata is None:
        raise _refuse(
            path,
            "this is not a sample: expected a file that `factaudit sample` wrote, which says how"
            " its claims were drawn",
        )
    try:
        about = json.loads(metadata)
        fields: dict[str, Any] = {
            k: tuple(v) if isinstance(v, list) else v for k, v in about["plan"].items()
        }
        plan = SamplingPlan(**fields)
        checksum, is_known = about["rows"], about["schema"] == SAMPLE_SCHEMA
    except (ValueError, KeyError, TypeError):
        is_known = False
    if not is_known or tuple(table.column_names) != SAMPLE_COLUMNS:
        raise _refuse(
            path,
            "another version of factaudit wrote this sample; draw a new one with `factaudit"
            " sample`",
        )
    rows = table.to_pandas()
    if _checksum_rows(rows) != checksum:
        raise _refuse(
            path,
            "the rows of this sample were changed after they were drawn, so its labels are no"
            " longer a random sample; use the file as it was written",
        )
    return LabelSample(rows, plan, str(path))


def draw_sample(
    judgements: Judgements,
    evaluators: Sequence[str],
    budget: int,
    *,
    level: str = "claim",
    strata: Sequence[str] = (),
    seed: int = 0,
    phases: int = 2,
    annotators: int = 1,
    overlap: float = 0.0,
    is_at_random: bool = False,
) -> LabelSample:
    """Draw the first phase of a budget of labels (all of it, where one phase is better or
    ``phases`` is 1).

    judgements: labels in it are not looked at; budget: claims (or responses, by ``level``) over all
    datasets;
    is_at_random: every claim of a dataset with the same chance, in one phase.
    """
    if level not in LEVELS:
        raise UsageError(f"unknown level {level!r}{suggest_known_name(level, LEVELS)}")
    if not 0 <= overlap <= 1:
        raise UsageError(f"expected an overlap from 0 to 1, found {overlap}")
    corpora = list(build_corpora(judgements, level, evaluators, strata))
    shares = _split_budget(budget, corpora)
    draws: PhaseDraws = {}
    for corpus in corpora:
        share, sizes = min(shares[corpus.dataset], len(corpus.error)), corpus.system_sizes
        random = _phase_generator(seed, corpus, 0)
        if is_at_random:
            systems = sampling.Strata(corpus.system, sizes, sizes.astype(np.float64))
            draw = systems.draw(systems.allocate(share, 1), 0, random)
            shares[corpus.dataset] = len(draw.rows)
        else:
            first = (
                share if phases == 1 else sampling.first_phase_budget(share, len(corpus.systems))
            )
            draw = sampling.draw_first_phase(
                1 - corpus.score[0], corpus.system, first, random, corpus.stratum, first < share
            )
        draws[corpus.dataset] = corpus, draw
    plan = SamplingPlan(
        budget=budget,
        level=level,
        evaluators=tuple(evaluators),
        strata=tuple(strata),
        corpus=_digest_claims(judgements),
        shares=shares,
        drawn=({name: len(draw.rows) for name, (_, draw) in draws.items()},),
        seeds=(seed,),
        annotators=annotators,
        overlap=overlap,
    )
    return LabelSample(_tabulate(judgements, draws, plan, {}), plan)


def draw_next_phase(
    sample: LabelSample,
    judgements: Judgements,
    extra_labels: int = 0,
    seed: int = 0,
    annotations: pd.DataFrame | None = None,
    rule: str = "majority",
) -> LabelSample:
    """The next phase: what remains of the budget and ``extra_labels`` on top of it, where the fit
    so far is unsure.

    judgements: with the labels so far, made of ``annotations`` by ``rule``. The rows that were
    drawn before stay as they are.
    """
    plan = sample.plan
    sample.check_matches(judgements, annotations, rule)
    corpora = list(build_corpora(judgements, plan.level, plan.evaluators, plan.strata))
    added = _split_budget(extra_labels, corpora) if extra_labels else {}
    draws: PhaseDraws = {}
    for corpus in corpora:
        name, before = corpus.dataset, sample.find_draw(corpus, judgements)
        size = min(
            plan.count_remaining_labels(name) + added.get(name, 0),
            len(corpus.error) - len(before.rows),
        )
        if size < 1:
            continue
        if not corpus.is_labelled.any():
            raise UsageError(
                f"{name}: no label was found: the second phase is drawn with the labels of the"
                " first; name them with --label-file"
            )
        p, random = (
            Estimation(corpus, before).error_probabilities,
            _phase_generator(seed, corpus, len(plan.drawn)),
        )
        draws[name] = corpus, sampling.draw_next_phase(p, corpus.system, before, size, random)
    if not draws:
        raise UsageError("the budget of this sample is used up; --more N adds N labels to it")
    plan = replace(
        plan,
        budget=plan.budget + extra_labels,
        shares={name: share + added.get(name, 0) for name, share in plan.shares.items()},
        drawn=(*plan.drawn, {name: len(draw.rows) for name, (_, draw) in draws.items()}),
        seeds=(*plan.seeds, seed),
    )
    offsets = {
        str(name): int(rows["stratum"].max()) + 1 for name, rows in sample.rows.groupby("dataset")
    }
    table = _tabulate(judgements, draws, plan, offsets)
    table["order"] += int(sample.rows["order"].max()) + 1
    return LabelSample(pd.concat([sample.rows, table], ignore_index=True), plan)


def _split_budget(budget: int, corpora: Sequence[Corpus]) -> dict[str, int]:
    """A budget split over datasets in proportion to their systems."""
    systems = np.array([len(corpus.systems) for corpus in corpora])
    if budget < systems.sum():
        raise UsageError(
            f"{budget} labels are too few for {systems.sum()} systems: expected at least one each"
        )
    ends = np.floor(np.cumsum(systems) * budget / systems.sum() + 1e-9).astype(int)
    return {
        corpus.dataset: int(n) for corpus, n in zip(corpora, np.diff(ends, prepend=0), strict=True)
    }


def _tabulate(
    judgements: Judgements,
    draws: PhaseDraws,
    plan: SamplingPlan,
    stratum_offsets: Mapping[str, int],
) -> pd.DataFrame:
    """The rows of one phase: every claim of what was drawn."""
    parts = []
    for dataset, (corpus, draw) in draws.items():
        claims = np.flatnonzero(np.isin(corpus.unit_of_claim, draw.rows))
        place = np.empty(len(corpus.error), dtype=np.int64)
        place[draw.rows] = np.arange(len(draw.rows))
        at = place[corpus.unit_of_claim[claims]]
        part = judgements.claims.iloc[claims][["claim_id", "dataset", "system"]].astype(object)
        parts.append(
            part.assign(
                stratum=draw.stratum[at] + stratum_offsets.get(dataset, 0),
                probability=draw.inclusion_probability[at],
                order=0,
                phase=len(plan.drawn) - 1,
                frame=draw.frame_size[at],
                unit=draw.rows[at],
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
    rows["annotators"] = _assign_annotators(rank[order], plan, random)
    return rows[list(SAMPLE_COLUMNS)]


def _assign_annotators(
    unit_rank: np.ndarray, plan: SamplingPlan, random: np.random.Generator
) -> list[str]:
    """Whose each row is, as numbers from 1: everybody's for a share ``overlap`` of the units, else
    one's in turn."""
    n = int(unit_rank.max(initial=-1)) + 1
    everybody = " ".join(str(number + 1) for number in range(plan.annotators))
    shared = np.zeros(n, dtype=bool)
    shared[random.choice(n, int(np.ceil(plan.overlap * n)), replace=False)] = True
    turn = np.cumsum(~shared) % plan.annotators
    return [everybody if shared[unit] else str(turn[unit] + 1) for unit in unit_rank]


def _phase_generator(seed: int, corpus: Corpus, phase: int) -> np.random.Generator:
    return np.random.default_rng([seed, phase, int(hash_texts(corpus.dataset, "sample"), 16)])


def _digest_claims(judgements: Judgements) -> str:
    """A checksum of which claims there are, of which system and response: not of their order, texts
    or labels."""
    names = ("claim_id", "dataset", "system", "response_id")
    columns = [make_arrow_text(judgements.claims[name]).fill_null("\0") for name in names]
    rows = pc.binary_join_element_wise(*columns, pa.scalar("\x1f", pa.large_string()))
    return hash_texts("\n".join(sorted(rows.to_pylist())))


def _checksum_rows(rows: pd.DataFrame) -> str:
    # Python's own numbers, whose text is the same in every version of pandas.
    columns = (
        rows[column].astype(object).where(rows[column].notna(), None) for column in SAMPLE_COLUMNS
    )
    return hash_texts(json.dumps([list(row) for row in zip(*columns, strict=True)]), length=64)
