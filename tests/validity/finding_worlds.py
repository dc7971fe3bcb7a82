"""Claims, verdicts and what people said in which nothing is wrong, or one thing is, for each kind
of audit.

A family is what some audits need: systems, repeats, annotators, twins, chunks, biographies. Each
draws a run of a `World`; the null worlds stand at the limit that a check tests wherever it has one.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd
from scipy.optimize import brentq

import factaudit as fa
from factaudit.arrays.biographies import SupportMatrix
from factaudit.arrays.biography_scores import (
    estimate_merged_beyond_noise,
    score_biography,
    summarise_biography_scores,
)
from factaudit.audit.core.audited_run import MAX_FLIP_RATE, DecisionLimits
from factaudit.audit.sensitivity import MAX_CHANGE
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.tables.annotations import validate_annotations

Row = dict[str, Any]
Tables = dict[str, pd.DataFrame]


@dataclass(frozen=True)
class World:
    """error: the share of wrong claims; shared: how far claims of a document go together (0: not at
    all)."""

    name: str
    datasets: int = 2
    systems: int = 6
    documents: int = 50
    claims: int = 1
    error: float = 0.25
    shared: float = 0.0
    #: How probably an error is seen, by the labels and by each evaluator.
    seen: float = 0.7
    evaluators: int = 3
    #: What is wrong ("" for nothing), and by how much.
    effect: str = ""
    size: float = 0.0
    #: The checks that the world was made for; of others it says nothing. Empty: all.
    made_for: tuple[str, ...] = ()


@dataclass(frozen=True)
class ClaimUnits:
    """A row per claim: whose it is, and whether it is wrong in truth."""

    world: World
    dataset: np.ndarray
    system: np.ndarray
    document: np.ndarray
    is_error: np.ndarray
    random: np.random.Generator

    @property
    def size(self) -> int:
        return len(self.dataset)

    @property
    def response(self) -> np.ndarray:
        world = self.world
        return (self.dataset * world.systems + self.system) * world.documents + self.document

    def draw_slips(self, probability: float | np.ndarray) -> np.ndarray:
        """bool (n,): whether something happens to a claim; to all claims of a response alike as far
        as they go together."""
        if not self.world.shared:
            return self.random.random(self.size) < probability
        common = self.random.random(int(self.response.max()) + 1)[self.response]
        follows = self.random.random(self.size) < self.world.shared
        return np.where(follows, common, self.random.random(self.size)) < probability

    def make_claims(self, label: np.ndarray, **columns: Any) -> pd.DataFrame:
        table = pd.DataFrame({"claim_id": np.arange(self.size).astype(str), "label": label})
        table["dataset"] = np.array([f"d{at}" for at in range(self.world.datasets)])[self.dataset]
        table["system"] = np.array([f"s{at:02}" for at in range(self.world.systems)])[self.system]
        table["response_id"] = self.response.astype(str)
        table["doc_id"] = self.document.astype(str)
        return fa.validate_claims(table.assign(**({"claim": "a claim"} | columns)))

    def make_verdicts(
        self, name: str, is_wrong: np.ndarray, score: np.ndarray | None = None
    ) -> pd.DataFrame:
        table = pd.DataFrame({"claim_id": np.arange(self.size).astype(str), "evaluator": name})
        return table.assign(
            **({"prediction": (~is_wrong).astype(int)} if score is None else {"score": score})
        )


def draw_units(world: World, random: np.random.Generator) -> ClaimUnits:
    ranges = (
        range(world.datasets),
        range(world.systems),
        range(world.documents),
        range(world.claims),
    )
    dataset, system, document, _ = (each.ravel() for each in np.meshgrid(*ranges, indexing="ij"))
    units = ClaimUnits(world, dataset, system, document, np.zeros(len(dataset), dtype=bool), random)
    rate = np.full(units.size, world.error)
    if world.effect in ("reversed", "labels alone"):
        rate[system >= world.systems // 2] += world.size
    return replace(units, is_error=units.draw_slips(np.minimum(rate / world.seen, 1)))


# ---- evaluators on systems

_WORDS = "abcdefghi"


def draw_systems(world: World, random: np.random.Generator) -> Tables:
    """Labels and predictions are exchangeable: each sees an error with the same chance.

    So no rate is biased and evaluators are alike. TPR and TNR are 20 points apart (the limit
    itself) or less, systems are alike, and words tell nothing.
    """
    units = draw_units(world, random)
    n, late = units.size, units.system >= world.systems // 2
    wrong = units.is_error & (random.random(n) < world.seen)
    words = random.integers(0, 9, n)  # how many of a claim's words stand in its document
    verdicts = []
    for at in range(world.evaluators):
        said = units.is_error & (random.random(n) < world.seen)
        score = None
        if world.effect == "labels alone":
            said = random.random(n) < world.error
        elif at == 0 and world.effect:
            said, score = _disturb_evaluator(units, wrong, said, late, words)
        elif world.effect == "reversed":
            said = random.random(n) < np.where(late, world.error, world.error + world.size)
        elif at == 1 and world.effect == "one leans":
            # BAcc is that of the first, TPR and TNR are the same.
            said = wrong ^ (random.random(n) < 0.2)
        elif at == 1 and world.effect == "opposite habits":
            # As far from BAcc 1 as the first, on the other side.
            said = wrong & (random.random(n) < world.size)
        elif at == 1 and world.effect == "other errors":
            said = wrong & (words >= 4)
        if score is None:
            score = np.where(said, 0.1, 0.6) + 0.3 * random.random(n)
        verdicts.append(units.make_verdicts(f"e{at}", said, score))
    claims = units.make_claims(
        (~wrong).astype(int),
        doc=" ".join(_WORDS),
        claim=[" ".join([*_WORDS[: k + 1], *"qrstuvwxy"[k:]]) for k in words],
    )
    return {
        "claims": claims,
        "verdicts": fa.validate_verdicts(pd.concat(verdicts, ignore_index=True)),
    }


def _disturb_evaluator(
    units: ClaimUnits, wrong: np.ndarray, said: np.ndarray, late: np.ndarray, words: np.ndarray
) -> tuple[np.ndarray, np.ndarray | None]:
    """What the first evaluator says where something is wrong with it, and its scores where they
    have a part."""
    world, random, n = units.world, units.random, units.size
    size, chance = world.size, units.random.random(units.size)
    # As many errors are predicted as labelled: an error rate is raised or lowered by the size of
    # the effect.
    raised, lowered = (
        said | (chance < size / (1 - world.error)),
        said & (chance > size / world.error),
    )
    if world.effect == "one leans":
        return said, None
    if world.effect == "misses errors":
        return said & (chance < size), None
    if world.effect == "opposite habits":
        return wrong | (chance < 1 - size), None
    if world.effect == "one system off":
        return np.where(units.system == 0, raised, said), None
    if world.effect == "all systems off":
        return raised, None
    if world.effect == "systems off to two sides":
        return np.where(late, raised, lowered), None
    if world.effect == "errors heaped in responses":
        # Labels: all claims of a response are wrong together; predictions: as many, one by one.
        return chance < wrong.mean(), None
    if world.effect == "reversed":
        return random.random(n) < np.where(late, world.error, world.error + size), None
    if world.effect == "threshold too low":
        return said, np.clip(np.where(wrong, 0.55, 0.85) + 0.1 * random.normal(size=n), 0, 1)
    if world.effect == "other errors":
        return wrong & (words < 4), None
    raise ValueError(world.effect)


# ---- repeats, twins, chunks, people


def draw_repeats(world: World, random: np.random.Generator) -> Tables:
    """Evaluators asked three times, of whose verdicts as many differ as are allowed."""
    units = draw_units(world, random)
    changes = world.size if world.effect else MAX_FLIP_RATE
    slip = (1 - (1 - 2 * changes) ** 0.5) / 2  # of two verdicts exactly one slipped: 2 q (1 - q)
    verdicts = []
    for at in range(world.evaluators):
        for repeat in range(3):
            said = units.is_error ^ units.draw_slips(slip if at == 0 or not world.effect else 0.01)
            verdicts.append(units.make_verdicts(f"e{at}", said).assign(repeat=repeat))
    claims = units.make_claims((~units.is_error).astype(int))
    return {
        "claims": claims,
        "verdicts": fa.validate_verdicts(pd.concat(verdicts, ignore_index=True)),
    }


def draw_variants(world: World, random: np.random.Generator) -> Tables:
    """Responses of four facts by a base and three variants, of which two move each score by as much
    as is allowed.

    moves: one variant moves scores by more.
    """
    system, document, fact = (
        one.ravel()
        for one in np.meshgrid(*map(np.arange, (world.systems, world.documents, 4)), indexing="ij")
    )
    rows = []
    for dataset in range(world.datasets):
        # What makes one topic harder than another is the same for all systems and variants.
        topic = random.normal(0, 0.15, world.documents)[document]
        for variant, move in (
            ("base", 0.0),
            ("same", 0.0),
            ("up", MAX_CHANGE),
            ("down", -MAX_CHANGE),
        ):
            if variant == "down" and world.effect == "moves":
                move = -world.size
            share = 1 - world.error - 0.1 + topic + move
            rows.append(
                pd.DataFrame(
                    {
                        "dataset": f"d{dataset}",
                        "variant": variant,
                        "system": np.char.add("s", system.astype(str)),
                        "response_id": [f"{s}-{d}" for s, d in zip(system, document, strict=True)],
                        "topic": np.char.add("t", document.astype(str)),
                        "fact_id": fact.astype(str),
                        "said": random.random(len(fact)) < share,
                    }
                )
            )
    claims = pd.concat(rows, ignore_index=True).assign(claim="a claim", label=None)
    claims["claim_id"] = np.arange(len(claims)).astype(str)
    verdicts = claims[["claim_id"]].assign(
        evaluator="e0", prediction=claims.pop("said").astype(int), status="ok"
    )
    return {"claims": fa.validate_claims(claims), "verdicts": fa.validate_verdicts(verdicts)}


def draw_rewordings(world: World, random: np.random.Generator) -> Tables:
    """Claims with two variants that mean the same and two that do not; as many verdicts fail as are
    allowed."""
    units = draw_units(world, random)
    ids = np.arange(units.size).astype(str)
    claims = units.make_claims(np.ones(units.size, dtype=int))
    allowed = {"same": MAX_FLIP_RATE, "changed": 1 - DecisionLimits().min_rate}
    tables, passed = (
        [claims.assign(variant_of=None, kind=None, expected=None)],
        np.zeros(units.size, dtype=bool),
    )
    verdicts = [units.make_verdicts(f"e{at}", passed) for at in range(world.evaluators)]
    for expected, rate in allowed.items():
        for kind in ("a", "b"):
            made = [f"{each}-{expected}-{kind}" for each in ids]
            columns = {
                "variant_of": ids,
                "kind": f"{expected} {kind}",
                "expected": expected,
                "label": None,
            }
            tables.append(claims.assign(claim_id=made, **columns))
            for at in range(world.evaluators):
                is_off = at == 0 and kind == "a" and world.effect == expected
                fails = units.draw_slips(
                    world.size if is_off else rate if not world.effect else rate / 2
                )
                says_zero = fails if expected == "same" else ~fails
                verdicts.append(units.make_verdicts(f"e{at}", says_zero).assign(claim_id=made))
    return {
        "claims": fa.validate_claims(pd.concat(tables, ignore_index=True)),
        "verdicts": fa.validate_verdicts(pd.concat(verdicts, ignore_index=True)),
    }


def draw_chunks(world: World, random: np.random.Generator) -> Tables:
    """Documents of two chunks, claims within one or across both; chunks turn one tenth of either
    kind to 0."""
    units = draw_units(world, random)
    across = random.random(units.size) < 0.5
    verdicts = []
    for at in range(world.evaluators):
        rejected = np.full(units.size, 0.1)
        if at == 0 and world.effect:
            rejected[across] += world.size
        slipped = units.draw_slips(rejected)
        verdicts.append(units.make_verdicts(f"e{at}", units.is_error))
        verdicts.append(units.make_verdicts(f"chunked-e{at}", units.is_error | slipped))
    words = np.where(across, "cat sat a dog", "the cat sat")
    claims = units.make_claims(
        (~units.is_error).astype(int), doc="The cat sat. A dog ran.", claim=words
    )
    return {
        "claims": claims,
        "verdicts": fa.validate_verdicts(pd.concat(verdicts, ignore_index=True)),
    }


#: So many people judge each claim.
N_ANNOTATORS = 3


def _annotator_bacc(accuracy: float, error: float) -> float:
    """BAcc of one annotator against two others who agree, all of them right with this chance."""
    hits = []
    for share in (1 - error, error):
        both_right, both_wrong = share * accuracy**2, (1 - share) * (1 - accuracy) ** 2
        hits.append(
            (both_right * accuracy + both_wrong * (1 - accuracy)) / (both_right + both_wrong)
        )
    return sum(hits) / 2


def draw_annotated(world: World, random: np.random.Generator) -> Tables:
    """Three people, whose BAcc against each other is what is asked of an evaluator, and evaluators
    as good as they."""
    units = draw_units(replace(world, seen=1.0), random)
    asked = world.size if world.effect == "people disagree" else DecisionLimits().min_rate
    accuracy = brentq(lambda one: _annotator_bacc(one, world.error) - asked, 0.5, 1)
    said = [units.is_error ^ (random.random(units.size) > accuracy) for _ in range(N_ANNOTATORS)]
    objections = np.sum(said, axis=0)
    verdicts = []
    for at in range(world.evaluators):
        wrong = units.is_error ^ units.draw_slips(1 - accuracy)
        verdicts.append(units.make_verdicts(f"e{at}", wrong))
    people = [
        pd.DataFrame(
            {
                "claim_id": np.arange(units.size).astype(str),
                "annotator": f"p{at}",
                "label": (~one).astype(int),
            }
        )
        for at, one in enumerate(said)
    ]
    return {
        "claims": units.make_claims((objections < 2).astype(int)),
        "verdicts": fa.validate_verdicts(pd.concat(verdicts, ignore_index=True)),
        "annotations": validate_annotations(pd.concat(people, ignore_index=True)),
    }


# ---- biographies


def draw_biography_rows(world: World, random: np.random.Generator) -> list[Row]:
    """Rows of `dfactscore`: responses of 10 facts with 4 candidates of one name, judged by a
    verifier that errs.

    It finds an error supported with a chance of a fifth of the world's errors, on decoys as on
    other candidates.
    """
    rows = []
    errs = world.error / 5
    intervals = ClusterBootstrap(replicates=100, seed=int(random.integers(1 << 30)))
    for system in range(world.systems):
        responses = []
        for _ in range(world.documents):
            cells = (random.random((10, 4)) < errs).astype(np.int8)
            owner = np.zeros(10, dtype=int)
            owner[:3] = int(random.random() < world.size)
            cells[np.arange(10), owner] = random.random(10) < 0.95
            hits = int((random.random(10) < errs).sum())
            one = SupportMatrix(
                people=tuple("ABCD"),
                prediction=cells,
                score=cells.astype(float),
                unsure=np.zeros_like(cells, dtype=bool),
                group=np.zeros(10, dtype=int),
                own=np.ones(10, dtype=bool),
                false_cells=(10, hits),
            )
            responses.append(score_biography(one, gamma=0))
        key: Row = {"dataset": "d", "evaluator": "e", "system": f"s{system:02}"}
        noise = estimate_merged_beyond_noise(responses, intervals)
        rows.append(key | summarise_biography_scores(responses, intervals) | noise)
    return rows
