"""How many labels for how narrow an interval? By labelling imagined worlds with the sampling plan itself.

A *world* gives every claim a label: drawn from the model as a pilot's labels leave it, or (without a pilot) from stated
TPR and TNR. In each world claims are drawn and rates estimated as they would be, for a number of budgets. What worlds
disagree on is the range that is told: one pilot cannot know which of them it lives in.

Real labels follow no model, so worlds imagined from one promise too narrow intervals (RAGTruth Summary: 0.87 of what
came). With a pilot all widths are therefore scaled: by its own intervals over those of its claims in the worlds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from factaudit.audit.core.rows import Row, number
from factaudit.errors import UsageError
from factaudit.estimate.allocate import draw_first, draw_more, first_budget
from factaudit.estimate.case import Case, Settings
from factaudit.estimate.columns import guess_of
from factaudit.estimate.corpus import Corpus, corpora
from factaudit.estimate.design import Draw, random_draw
from factaudit.estimate.hierarchical import expit
from factaudit.estimate.methods import METHODS
from factaudit.estimate.run import chosen_evaluators, labelled
from factaudit.estimate.sample import Sample, check_corpus
from factaudit.threads import one_thread

BUDGETS = (50, 100, 200, 400, 800)
WORLDS = 8
#: Methods whose intervals are planned for.
PLANNED = ("hierarchical", "regression-ppi", "labels")
#: The range that is told: these quantiles over worlds.
RANGE = (0.1, 0.9)


@dataclass(frozen=True)
class Stated:
    """TPR and TNR of the main evaluator as the user states them."""

    tpr: float
    tnr: float

    def __post_init__(self) -> None:
        if not (0 <= self.tpr <= 1 and 0 <= self.tnr <= 1 and self.tpr + self.tnr > 1):
            raise UsageError(
                f"expected TPR and TNR from 0 to 1 that are together above 1, found {self.tpr} and {self.tnr}"
            )


@one_thread()
def plan_rows(
    corpus: Corpus,
    known: Case | Stated,
    settings: Settings,
    budgets: Sequence[int] = BUDGETS,
    worlds: int = WORLDS,
    seconds_per_label: float = 60.0,
) -> list[Row]:
    """Rows of budget, system (``__mean__``: the mean over systems) and method: the interval's width, and its range.

    n_labels, width (mean over worlds), width_low, width_high, hours. Budgets below two labels a system, or above the
    number of claims, are left out. A width is null where the method gives no interval.
    """
    used = [budget for budget in budgets if 2 * len(corpus.systems) <= budget <= len(corpus.error)]
    if not used:
        raise UsageError(
            f"{corpus.dataset}: no budget fits {len(corpus.systems)} systems with {len(corpus.error)} claims"
        )
    widths: dict[tuple[int, str], list[np.ndarray]] = {(b, m): [] for b in used for m in PLANNED}
    imagined: dict[str, list[float]] = {method: [] for method in PLANNED}
    for at, drawn in enumerate(_worlds(corpus, known, settings, worlds)):
        world = replace(corpus, error=np.where(np.isnan(corpus.error), drawn, corpus.error))
        for budget in used:
            case = draw_and_label(world, budget, replace(settings, seed=settings.seed + at))
            for method in PLANNED:
                widths[budget, method].append(_widths(method, case))
        if isinstance(known, Case):
            again = _labelled(replace(corpus, error=drawn), known.draw, settings)
            for method in PLANNED:
                imagined[method].append(float(_widths(method, again).mean()))
    scales = dict.fromkeys(PLANNED, 1.0)
    if isinstance(known, Case):
        for method in PLANNED:
            scale = float(_widths(method, known).mean()) / float(np.mean(imagined[method]))
            if np.isfinite(scale):  # no interval from so few labels: as the worlds tell
                scales[method] = scale
    rows = []
    for budget, method in widths:
        found = np.stack(widths[budget, method]) * scales[method]
        names = [*corpus.systems, "__mean__"]
        columns = [*found.T, found.mean(1)]
        for name, values in zip(names, columns, strict=True):
            row: Row = {"dataset": corpus.dataset, "level": corpus.level, "system": name, "method": method}
            row |= {"n_labels": budget, "hours": budget * seconds_per_label / 3600}
            low, high = np.quantile(values, RANGE)
            rows.append(row | {"width": number(values.mean()), "width_low": number(low), "width_high": number(high)})
    return rows


def plan_rates(
    claims: pd.DataFrame,
    verdicts: pd.DataFrame,
    *,
    annotations: pd.DataFrame | None = None,
    sample: Sample | None = None,
    stated: Stated | None = None,
    rule: str = "majority",
    main: str | None = None,
    covariates: Sequence[str] | None = None,
    strata: Sequence[str] = (),
    level: str = "claim",
    target: str = "corpus",
    budgets: Sequence[int] = BUDGETS,
    worlds: int = WORLDS,
    seconds_per_label: float = 60.0,
    seed: int = 0,
) -> list[Row]:
    """`plan_rows` of every dataset, from tables; the other arguments are those of `estimate_rates`.

    Raises `UsageError` where there is neither a label nor a stated TPR and TNR.
    """
    judged = labelled(claims, verdicts, annotations, rule)
    if sample is not None:
        check_corpus(sample, judged)
        sample.check_labels(judged.claims["claim_id"][judged.label >= 0])
    settings = Settings(target=target, seed=seed)
    rows: list[Row] = []
    for corpus in corpora(judged, level, chosen_evaluators(judged, verdicts, main, covariates), strata):
        draw = random_draw(corpus.labelled, corpus.system) if sample is None else sample.draw(corpus, judged)
        pilot = Case(corpus, draw, settings)
        if stated is None and not len(pilot.rows):
            raise UsageError(f"{corpus.dataset}: no label to plan by: give a pilot's labels, or state TPR and TNR")
        rows += plan_rows(corpus, stated or pilot, settings, budgets, worlds, seconds_per_label)
    return rows


def labels_for(rows: Sequence[Row], method: str, width: float) -> tuple[float | None, float | None, float | None]:
    """Labels in all for a mean width: as the mean over worlds tells, and the ends of its range; None beyond the plan.

    Between budgets, widths are taken as straight lines of the logarithms.
    """
    mine = [row for row in rows if row["system"] == "__mean__" and row["method"] == method and row["width"] is not None]
    found: list[float | None] = []
    for key in ("width", "width_low", "width_high"):
        x = np.log([row["n_labels"] for row in mine])
        y = np.log(np.maximum([row[key] for row in mine], 1e-9))
        below = np.flatnonzero(y <= np.log(width))
        if not len(below):
            found.append(None)
            continue
        at = int(below[0])
        if at == 0:
            found.append(float(np.exp(x[0])))
            continue
        share = (y[at - 1] - np.log(width)) / (y[at - 1] - y[at])
        found.append(float(np.exp(x[at - 1] + share * (x[at] - x[at - 1]))))
    middle, low, high = found
    return middle, low, high


def planned_labels(rows: Sequence[Row], width: float) -> list[Row]:
    """`labels_for` of every dataset and method: n_labels, n_labels_low, n_labels_high."""
    found = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        mine = [row for row in rows if row["dataset"] == dataset]
        for method in PLANNED:
            middle, low, high = labels_for(mine, method, width)
            told = {"n_labels": middle, "n_labels_low": low, "n_labels_high": high}
            found.append({"dataset": dataset, "method": method, "width": width, **told})
    return found


def draw_and_label(world: Corpus, budget: int, settings: Settings) -> Case:
    """Draw a budget from a corpus whose labels are all known, in the phases that `sample` would, and label it."""
    random = np.random.default_rng([settings.seed, budget])
    first = first_budget(budget, len(world.systems))
    draw = draw_first(guess_of(world.score[0]), world.system, first, random, world.stratum, first < budget)
    case = _labelled(world, draw, settings)
    if first < budget:
        draw = draw.then(draw_more(case.fitted, world.system, draw, budget - first, random))
        case = _labelled(world, draw, settings)
    return case


def _labelled(world: Corpus, draw: Draw, settings: Settings) -> Case:
    known = np.full(len(world.error), np.nan)
    known[draw.row] = world.error[draw.row]
    return Case(replace(world, error=known), draw, settings)


def _widths(method: str, case: Case) -> np.ndarray:
    """Of each system's interval; NaN where the method gives none."""
    return np.array([one.high - one.low for one in METHODS[method](case)])


def _worlds(corpus: Corpus, known: Case | Stated, settings: Settings, worlds: int) -> Iterator[np.ndarray]:
    """Imagined labels (N,) of every claim, those with a label of their own too, ``worlds`` times."""
    random = np.random.default_rng([settings.seed, 7])
    if isinstance(known, Stated):
        p = _stated(corpus, known)
        for _ in range(worlds):
            yield (random.random(len(p)) < p).astype(np.float64)
        return
    posterior = known.posterior
    for at in np.linspace(0, len(posterior.intercept) - 1, worlds).astype(int):
        eta = posterior.intercept[at] + known.columns.values @ posterior.slopes[at]
        drawn = random.random(len(eta)) < expit(eta + posterior.effects[at][corpus.system])
        yield drawn.astype(np.float64)


def _stated(corpus: Corpus, known: Stated) -> np.ndarray:
    """P(error) of each claim by its prediction, from each system's rate as Rogan & Gladen would mend it."""
    prediction = corpus.prediction[0]
    p = np.full(len(prediction), 0.5)
    for system in range(len(corpus.systems)):
        mine = (corpus.system == system) & (prediction >= 0)
        if not mine.any():
            continue
        predicted = float((prediction[mine] == 0).mean())
        rate = float(np.clip((predicted + known.tpr - 1) / (known.tpr + known.tnr - 1), 0.005, 0.995))
        of_zero = known.tnr * rate / max(known.tnr * rate + (1 - known.tpr) * (1 - rate), 1e-9)
        of_one = (1 - known.tnr) * rate / max((1 - known.tnr) * rate + known.tpr * (1 - rate), 1e-9)
        p[mine] = np.where(prediction[mine] == 0, of_zero, of_one)
        p[(corpus.system == system) & (prediction < 0)] = rate
    return p
