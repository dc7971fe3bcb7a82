"""How many labels does an interval of a given width take? The sampling plan is tried on simulated worlds.

A *world* gives every claim a label: drawn from the model that is fitted to a pilot's labels, or (without a pilot) from
stated TPR and TNR. In each world claims are drawn and rates are estimated as they would be, for several budgets. The
range over worlds is reported, because one pilot cannot tell which world is the real one.

Real labels follow no model, so the worlds promise intervals that are too narrow (RAGTruth Summary: 0.87 of the width
that came). With a pilot all widths are therefore scaled by the pilot's own intervals over those of the same claims in
the worlds.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pandas as pd

from factaudit.audit.core.result_rows import Row
from factaudit.blas_threads import use_one_blas_thread
from factaudit.errors import UsageError
from factaudit.estimate.comparison_draws import COMPARED_WAYS
from factaudit.estimate.estimation_case import RateEstimationCase, RateEstimationOptions
from factaudit.estimate.estimation_methods import ESTIMATION_METHODS
from factaudit.estimate.label_sample import LabelSample, check_label_sample_matches
from factaudit.estimate.rate_estimation import choose_estimation_covariates, join_claims_for_estimation
from factaudit.estimate.scored_corpus import ScoredCorpus, build_scored_corpora
from factaudit.stats.allocation import allocate_first_phase, allocate_first_phase_budget, allocate_further_phase
from factaudit.stats.budget_interpolation import interpolate_budget
from factaudit.stats.hierarchical_regression import stable_logistic
from factaudit.stats.rogan_gladen import can_accuracy_give_predicted_share, rogan_gladen_error_probabilities
from factaudit.stats.stratified_sampling import StratifiedDraw, assume_simple_random_draw
from factaudit.stats.undefined_values import none_if_undefined

BUDGETS = (50, 100, 200, 400, 800)
N_WORLDS = 8
#: Methods whose intervals are planned for, and other ways to draw labels and estimate from them.
PLANNED_METHODS = ("hierarchical", "regression-ppi", "labels")
PLANNED_WAYS = (*PLANNED_METHODS, *COMPARED_WAYS)
#: The range that is reported: these quantiles over worlds.
WORLD_QUANTILES = (0.1, 0.9)


@dataclass(frozen=True)
class BudgetPlanAccuracy:
    """TPR and TNR of the main evaluator as the user states them."""

    tpr: float
    tnr: float

    def __post_init__(self) -> None:
        if not (0 <= self.tpr <= 1 and 0 <= self.tnr <= 1 and self.tpr + self.tnr > 1):
            raise UsageError(
                f"expected TPR and TNR from 0 to 1 that are together above 1, found {self.tpr} and {self.tnr}"
            )


@use_one_blas_thread()
def simulate_budget_interval_widths(
    corpus: ScoredCorpus,
    pilot: RateEstimationCase | BudgetPlanAccuracy,
    options: RateEstimationOptions,
    budgets: Sequence[int] = BUDGETS,
    n_worlds: int = N_WORLDS,
    seconds_per_label: float = 60.0,
) -> list[Row]:
    """Rows of budget, system (``__mean__``: the mean over systems) and method: the interval's width, and its range.

    evaluator (the main one), n_labels, width (mean over worlds), width_low, width_high, hours, reason (why the stated
    accuracy cannot be that of a system: its width is of no use). Budgets below two labels a system, or above the number
    of claims, are left out. A width is null where the method gives no interval.
    """
    used = [budget for budget in budgets if 2 * len(corpus.systems) <= budget <= len(corpus.error)]
    if not used:
        raise UsageError(
            f"{corpus.dataset}: no budget fits {len(corpus.systems)} systems with {len(corpus.error)} claims"
        )
    unfit = _explain_unfit_accuracy(corpus, pilot) if isinstance(pilot, BudgetPlanAccuracy) else {}
    widths: dict[tuple[int, str], list[np.ndarray]] = {(b, m): [] for b in used for m in PLANNED_WAYS}
    imagined: dict[str, list[float]] = {method: [] for method in PLANNED_METHODS}
    for at, drawn in enumerate(_simulate_budget_worlds(corpus, pilot, options, n_worlds)):
        world = replace(corpus, error=np.where(np.isnan(corpus.error), drawn, corpus.error))
        for budget in used:
            case = simulate_labelling_budget(world, budget, replace(options, seed=options.seed + at))
            for method in PLANNED_METHODS:
                widths[budget, method].append(_interval_widths(method, case))
            for way, (_, method) in COMPARED_WAYS.items():
                case = simulate_compared_way(way, world, budget, replace(options, seed=options.seed + at))
                widths[budget, way].append(_interval_widths(method, case))
        if isinstance(pilot, RateEstimationCase):
            again = reveal_labels_of_drawn_claims(replace(corpus, error=drawn), pilot.draw, options)
            for method in PLANNED_METHODS:
                imagined[method].append(float(_interval_widths(method, again).mean()))
    scales = dict.fromkeys(PLANNED_WAYS, 1.0)
    if isinstance(pilot, RateEstimationCase):
        for method in PLANNED_METHODS:
            scale = float(_interval_widths(method, pilot).mean()) / float(np.mean(imagined[method]))
            if np.isfinite(scale):  # from too few labels there is no interval, and no scale
                scales[method] = scale
        # The pilot was not drawn as the other ways draw: they are scaled as the labels' own intervals are.
        scales |= dict.fromkeys(COMPARED_WAYS, scales["labels"])
    rows = []
    for budget, method in widths:
        found = np.stack(widths[budget, method]) * scales[method]
        names = [*corpus.systems, "__mean__"]
        columns = [*found.T, found.mean(1)]
        for name, values in zip(names, columns, strict=True):
            row: Row = {"dataset": corpus.dataset, "level": corpus.level, "system": name, "method": method}
            row |= {"evaluator": corpus.evaluators[0], "reason": unfit.get(name)}
            row |= {"n_labels": budget, "hours": budget * seconds_per_label / 3600}
            low, high = np.quantile(values, WORLD_QUANTILES)
            rows.append(
                row
                | {
                    "width": none_if_undefined(values.mean()),
                    "width_low": none_if_undefined(low),
                    "width_high": none_if_undefined(high),
                }
            )
    return rows


def _explain_unfit_accuracy(corpus: ScoredCorpus, accuracy: BudgetPlanAccuracy) -> dict[str, str]:
    """Of systems whose share of predicted errors the stated TPR and TNR cannot give: which share it is.

    Raises `UsageError` where that of all claims together is such: every width would be of rates that cannot be.
    """
    prediction, main = corpus.prediction[0], corpus.evaluators[0]
    unfit: dict[str, str] = {}
    for at, name in [*enumerate(corpus.systems), (None, None)]:
        said = prediction[(prediction >= 0) & ((at is None) | (corpus.system == at))]
        share = float((said == 0).mean()) if len(said) else np.nan
        if not len(said) or can_accuracy_give_predicted_share(share, len(said), accuracy.tpr, accuracy.tnr):
            continue
        tpr, tnr, low = (f"{100 * one:.3g} %" for one in (accuracy.tpr, accuracy.tnr, 1 - accuracy.tpr))
        why = (
            f"{main} calls {100 * share:.1f} % of the claims errors: with TPR {tpr} and TNR {tnr} it would call {low} "
        )
        why += f"to {tnr}, whatever their error rate"
        if name is None:
            raise UsageError(
                f"{corpus.dataset}: {why}. Name the evaluator whose TPR and TNR they are (--main), or label a pilot"
            )
        unfit[name] = why
    return unfit


def plan_label_budgets(
    claims: pd.DataFrame,
    verdicts: pd.DataFrame,
    *,
    annotations: pd.DataFrame | None = None,
    sample: LabelSample | None = None,
    stated_accuracy: BudgetPlanAccuracy | None = None,
    rule: str = "majority",
    main: str | None = None,
    covariates: Sequence[str] | None = None,
    strata: Sequence[str] = (),
    level: str = "claim",
    target: str = "corpus",
    budgets: Sequence[int] = BUDGETS,
    seconds_per_label: float = 60.0,
    seed: int = 0,
) -> list[Row]:
    """`simulate_budget_interval_widths` of every dataset, from tables; the other arguments are those of
    `estimate_rates`.

    Raises `UsageError` where there is neither a label nor a stated TPR and TNR.
    """
    judgements = join_claims_for_estimation(claims, verdicts, annotations, rule)
    if sample is not None:
        check_label_sample_matches(sample, judgements, annotations, rule)
    options = RateEstimationOptions(target=target, seed=seed)
    rows: list[Row] = []
    for corpus in build_scored_corpora(
        judgements, level, choose_estimation_covariates(judgements, verdicts, main, covariates), strata
    ):
        draw = (
            assume_simple_random_draw(corpus.is_labelled, corpus.system)
            if sample is None
            else sample.corpus_draw(corpus, judgements)
        )
        pilot = RateEstimationCase(corpus, draw, options)
        if stated_accuracy is None and not len(pilot.labelled_rows):
            raise UsageError(f"{corpus.dataset}: no label to plan by: give a pilot's labels, or state TPR and TNR")
        rows += simulate_budget_interval_widths(
            corpus, stated_accuracy or pilot, options, budgets, seconds_per_label=seconds_per_label
        )
    return rows


def interpolate_label_budget_for_width(
    budget_rows: Sequence[Row], method: str, width: float
) -> tuple[float | None, float | None, float | None]:
    """Labels in all for a mean width: by the mean over worlds, and by the ends of its range; None beyond the plan."""
    mine = [
        row
        for row in budget_rows
        if row["system"] == "__mean__" and row["method"] == method and row["width"] is not None
    ]
    n_labels = [row["n_labels"] for row in mine]
    middle, low, high = (
        interpolate_budget(n_labels, [row[key] for row in mine], width) for key in ("width", "width_low", "width_high")
    )
    return middle, low, high


def list_planned_label_budgets_for_width(budget_rows: Sequence[Row], width: float) -> list[Row]:
    """`interpolate_label_budget_for_width` of every dataset and method: n_labels, n_labels_low, n_labels_high."""
    found = []
    for dataset in dict.fromkeys(row["dataset"] for row in budget_rows):
        mine = [row for row in budget_rows if row["dataset"] == dataset]
        for method in PLANNED_WAYS:
            middle, low, high = interpolate_label_budget_for_width(mine, method, width)
            labels = {"n_labels": middle, "n_labels_low": low, "n_labels_high": high}
            found.append({"dataset": dataset, "method": method, "width": width, **labels})
    return found


def simulate_labelling_budget(world: ScoredCorpus, budget: int, options: RateEstimationOptions) -> RateEstimationCase:
    """Draw a budget from a corpus whose labels are all known, in the phases that `sample` would, and label it."""
    random = np.random.default_rng([options.seed, budget])
    first = allocate_first_phase_budget(budget, len(world.systems))
    draw = allocate_first_phase(1 - world.score[0], world.system, first, random, world.stratum, first < budget)
    case = reveal_labels_of_drawn_claims(world, draw, options)
    if first < budget:
        draw = draw.append(allocate_further_phase(case.error_probabilities, world.system, draw, budget - first, random))
        case = reveal_labels_of_drawn_claims(world, draw, options)
    return case


def simulate_compared_way(
    way: str, world: ScoredCorpus, budget: int, options: RateEstimationOptions
) -> RateEstimationCase:
    """A corpus whose labels are all known, with the labels that another way draws (`COMPARED_WAYS`)."""
    random = np.random.default_rng([options.seed, budget, list(COMPARED_WAYS).index(way)])
    return reveal_labels_of_drawn_claims(world, COMPARED_WAYS[way][0](world, budget, random), options)


def reveal_labels_of_drawn_claims(
    world: ScoredCorpus, draw: StratifiedDraw, options: RateEstimationOptions
) -> RateEstimationCase:
    """A corpus whose labels are all known, with those of the drawn claims alone."""
    known = np.full(len(world.error), np.nan)
    known[draw.rows] = world.error[draw.rows]
    return RateEstimationCase(replace(world, error=known), draw, options)


def _interval_widths(method: str, estimation: RateEstimationCase) -> np.ndarray:
    """float64 (S,): the width of each system's interval; NaN where the method gives none."""
    return np.array([one.high - one.low for one in ESTIMATION_METHODS[method](estimation)])


def _simulate_budget_worlds(
    corpus: ScoredCorpus, pilot: RateEstimationCase | BudgetPlanAccuracy, options: RateEstimationOptions, n_worlds: int
) -> Iterator[np.ndarray]:
    """Labels (N,) of every claim, also of those with a label of their own, ``n_worlds`` times."""
    random = np.random.default_rng([options.seed, 7])
    if isinstance(pilot, BudgetPlanAccuracy):
        p = rogan_gladen_error_probabilities(
            corpus.prediction[0], corpus.system, len(corpus.systems), pilot.tpr, pilot.tnr
        )
        for _ in range(n_worlds):
            yield (random.random(len(p)) < p).astype(np.float64)
        return
    posterior = pilot.posterior
    for at in np.linspace(0, len(posterior.intercept) - 1, n_worlds).astype(int):
        eta = posterior.intercept[at] + pilot.covariates.values @ posterior.slopes[at]
        drawn = random.random(len(eta)) < stable_logistic(eta + posterior.system_effects[at][corpus.system])
        yield drawn.astype(np.float64)
