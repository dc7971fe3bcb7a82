"""Claims of systems of different families and of different kinds, and grades: for audits of what
bends an evaluator.

Documents are easy or hard, so that verdicts on one document go together; nothing else tells of a
verdict in null worlds.
"""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pandas as pd
from finding_worlds import ClaimUnits, Tables, World, draw_units
from scipy.optimize import brentq
from scipy.special import ndtri
from scipy.stats import multivariate_normal

import factaudit as fa
from factaudit.audit.grades import LEAST_RANK_CORRELATION

#: How often a correct claim is rejected.
FALSE_ALARMS = 0.15


def draw_flags(
    units: ClaimUnits, sees: float | np.ndarray, alarms: float | np.ndarray, spread: float = 0.1
) -> np.ndarray:
    """bool (n,): whether an evaluator rejects a claim: sees, alarms: its chances on errors and on
    correct claims."""
    place = units.dataset * units.world.documents + units.document
    hard = units.random.uniform(-spread, spread, place.max() + 1)[place]
    return units.draw_slips(np.clip(np.where(units.is_error, sees, alarms) + hard, 0, 1))


#: Families of systems, the number of errors that each makes compared with the mean, and judges.
FAMILIES = {"gpt": 0.5, "claude": 1.0, "llama": 1.5}


def draw_families(world: World, random: np.random.Generator) -> Tables:
    """Systems of three families, one with fewer errors, and a judge of each; claims of four kinds
    from ten sources."""
    names = list(FAMILIES)
    units = draw_units(replace(world, seen=1.0), random)
    family = units.system % len(names)
    rate = world.error * np.array(list(FAMILIES.values()))[family]
    units = replace(units, is_error=units.draw_slips(rate))
    kind, source = random.integers(0, 4, units.size), units.document % 10
    verdicts = []
    for at in range(world.evaluators):
        sees, alarms = np.full(units.size, world.seen), np.full(units.size, FALSE_ALARMS)
        if at == 0 and world.effect == "worse on a kind":
            sees = np.where(kind == 0, sees - world.size, sees)
        verdicts.append(units.make_verdicts(f"{names[at]}-judge", draw_flags(units, sees, alarms)))
    table = units.make_claims(
        (~units.is_error).astype(int),
        kind=np.array(list("abcd"))[kind],
        source=np.char.add("source ", source.astype(str)),
        age=random.integers(0, 60, units.size),
    )
    table["system"] = [f"{names[f]}-{s}" for f, s in zip(family, units.system, strict=True)]
    return {
        "claims": fa.validate_claims(table),
        "verdicts": fa.validate_verdicts(pd.concat(verdicts, ignore_index=True)),
    }


#: The share of each grade from 1 to 5 that people give.
PEOPLES_GRADES = np.full(5, 0.2)
#: Judges' grades are on average higher than people's by this share of the scale's length.
GRADE_SHIFT = 0.05


def raise_grades(shift: float) -> np.ndarray:
    """The shares of grades whose mean is higher than people's by so much of the scale: more of the
    best grade."""
    return PEOPLES_GRADES + shift * 2 * np.array([-0.2, -0.2, -0.2, -0.2, 0.8])


@cache
def find_latent_correlation(rank_correlation: float, shift: float) -> float:
    """The correlation of two normal qualities whose grades have this Spearman's ρ."""
    edges = [
        ndtri(np.r_[1e-12, np.cumsum(each)[:-1], 1 - 1e-12])
        for each in (PEOPLES_GRADES, raise_grades(shift))
    ]
    ranks = [np.cumsum(each) - each / 2 for each in (PEOPLES_GRADES, raise_grades(shift))]
    points = np.stack(np.meshgrid(*edges, indexing="ij"), -1)

    def compute_rho(correlation: float) -> float:
        below = multivariate_normal([0, 0], [[1, correlation], [correlation, 1]]).cdf(points)
        table = np.diff(np.diff(below, axis=0), axis=1)
        scaled = [rank - 0.5 for rank in ranks]
        spread = [table.sum(1 - at) @ scaled[at] ** 2 for at in (0, 1)]
        return float(scaled[0] @ table @ scaled[1] / np.sqrt(spread[0] * spread[1]))

    return (
        brentq(lambda each: compute_rho(each) - rank_correlation, -0.1, 0.999)
        if rank_correlation
        else 0.0
    )


def draw_graded_claims(world: World, random: np.random.Generator) -> Tables:
    """People's grades from 1 to 5 and judges', which are a little higher: Spearman's ρ stands at
    the limit of the check.

    Documents are good or bad, and judges are mistaken of whole documents.
    """
    units = draw_units(replace(world, seen=1.0), random)
    place = units.dataset * world.documents + units.document
    shared = np.sqrt(world.shared)

    def draw_quality() -> np.ndarray:
        return shared * random.normal(size=place.max() + 1)[place] + np.sqrt(
            1 - shared**2
        ) * random.normal(size=units.size)

    quality = draw_quality()
    claims = units.make_claims((~units.is_error).astype(int)).assign(label=pd.NA)
    claims["grade"] = 1 + np.searchsorted(ndtri(np.cumsum(PEOPLES_GRADES)[:-1]), quality)
    verdicts = []
    for at in range(world.evaluators):
        rho = LEAST_RANK_CORRELATION
        if at == 0 and world.effect == "unrelated grades":
            rho = 0.0
        correlation = find_latent_correlation(rho, GRADE_SHIFT)
        own = correlation * quality + np.sqrt(1 - correlation**2) * draw_quality()
        grade = 1 + np.searchsorted(ndtri(np.cumsum(raise_grades(GRADE_SHIFT))[:-1]), own)
        told = units.make_verdicts(f"e{at}", grade < 3)
        verdicts.append(told.assign(grade=grade))
    return {
        "claims": fa.validate_claims(claims),
        "verdicts": fa.validate_verdicts(pd.concat(verdicts, ignore_index=True)),
    }
