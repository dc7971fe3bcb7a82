"""Hierarchical (multilevel) logistic regression of few labels on the scores of many claims (Gelman & Little 1997).

logit P(error) = a + β·covariates + u_system, where the system effects u are shrunk as much as the labels ask for.
Labels that were drawn by the scores need no weights: given scores and system, being labelled carries no information.
Of three systems or more one may be apart from the others, and is then shrunk less (a mixture in place of the normal
distribution of effects): the lowest or the highest, whose labels say how probable that is.

The posterior is integrated over a grid of the effects' scale τ, and over which system is apart. For each: the mode
(Newton), a Laplace weight, and draws from a t distribution with five degrees of freedom around the mode, weighted by
posterior over proposal. 1,000 of all draws are resampled by their weights.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from factaudit.stats.score_covariates import ScoreCovariates

#: Standard deviations of the system effects that the posterior is integrated over; τ ~ half-Cauchy(1).
EFFECT_SCALES = (0.1, 0.3, 0.6, 1.0, 1.5, 2.2, 3.2)
#: One system may be apart from the others, and then has an effect of this standard deviation. The prior probability ½
#: is split evenly over all S systems, but only the lowest and the highest one are tried: together they have 1/S, so
#: that "one is apart" has the prior odds 2/S (a probability of 9 % at 20 systems, 40 % at three).
APART_PROBABILITY = 0.5
APART_SCALE = 2.0
#: Draws that are kept, and proposals for them: doubled while the effective number of the proposals is too low.
N_DRAWS = 1000
N_PROPOSALS = 5 * N_DRAWS
MIN_EFFECTIVE_PROPOSALS = 500
MAX_N_PROPOSALS = 32 * N_PROPOSALS
#: Newton stops where no element of the gradient is above this.
GRADIENT_TOLERANCE = 1e-6
#: Standard deviation of the intercept's prior.
INTERCEPT_SD = 5.0
_T_DEGREES = 5
_MAX_NEWTON_STEPS = 200


@dataclass(frozen=True)
class PosteriorMode:
    """The mode of the posterior at one τ (``effect_scale``), with one system ``apart`` from the others or none.

    parameters: (P,), intercept, K slopes, S system effects; cholesky_factor: (P, P), lower, of minus the Hessian at the
    mode; log_weight: of Laplace.
    """

    effect_scale: float
    parameters: np.ndarray
    cholesky_factor: np.ndarray
    log_weight: float
    apart: int | None = None


@dataclass(frozen=True)
class PosteriorDraws:
    """D draws: intercept (D,), slopes (D, K), system_effects (D, S), effect_scale (D,).

    n_effective_proposals: Kish's effective number of the weighted proposals; modes: one per element of `EFFECT_SCALES`,
    and as many with the lowest and with the highest of three systems or more apart.
    """

    intercept: np.ndarray
    slopes: np.ndarray
    system_effects: np.ndarray
    effect_scale: np.ndarray
    n_effective_proposals: float
    modes: tuple[PosteriorMode, ...]

    @classmethod
    def join(cls, parts: Sequence[PosteriorDraws]) -> PosteriorDraws:
        """The draws of several fits as one; the least effective number, and the modes of the first."""
        return cls(
            np.concatenate([part.intercept for part in parts]),
            np.concatenate([part.slopes for part in parts]),
            np.concatenate([part.system_effects for part in parts]),
            np.concatenate([part.effect_scale for part in parts]),
            min(part.n_effective_proposals for part in parts),
            parts[0].modes,
        )


@dataclass(frozen=True)
class _HierarchicalRegressionData:
    """The labelled claims: design (n, P) with columns 1, K scores, S systems; error (n,) 1 or 0; priors (P,).

    label_weight: how many independent labels one label is worth: less than 1 where labels of one response are alike.
    """

    design: np.ndarray
    error: np.ndarray
    prior_mean: np.ndarray
    prior_sd: np.ndarray
    n_systems: int
    label_weight: float

    @classmethod
    def from_covariates(
        cls,
        covariates: ScoreCovariates,
        labelled_rows: np.ndarray,
        system: np.ndarray,
        error: np.ndarray,
        n_systems: int,
        label_weight: float,
    ) -> _HierarchicalRegressionData:
        n_fixed = 1 + len(covariates.prior_mean)
        design = np.zeros((len(labelled_rows), n_fixed + n_systems))
        design[:, 0] = 1
        design[:, 1:n_fixed] = covariates.values[labelled_rows]
        design[np.arange(len(labelled_rows)), n_fixed + system] = 1
        effects = np.zeros(n_systems)
        return cls(
            design=design,
            error=error.astype(np.float64),
            prior_mean=np.concatenate([[0.0], covariates.prior_mean, effects]),
            prior_sd=np.concatenate([[INTERCEPT_SD], covariates.prior_sd, effects]),
            n_systems=n_systems,
            label_weight=label_weight,
        )

    def prior_precision(self, effect_scale: float, apart: int | None = None) -> np.ndarray:
        sd = self.prior_sd.copy()
        effects = sd[len(sd) - self.n_systems :]
        effects[:] = effect_scale
        if apart is not None:
            effects[apart] = APART_SCALE
        return 1 / sd**2

    def log_posterior(self, parameters: np.ndarray, effect_scale: float, apart: int | None = None) -> np.ndarray:
        """Up to a constant that is the same for every τ and system apart: (...) of (..., P) parameters."""
        precision = self.prior_precision(effect_scale, apart)
        eta = parameters @ self.design.T
        # log(1 + exp(η)) in functions that are computed many at a time; `logaddexp` takes five times as long.
        likelihood = self.label_weight * (
            eta @ self.error - (np.maximum(eta, 0) + np.log(1 + np.exp(-np.abs(eta)))).sum(-1)
        )
        prior = -0.5 * ((parameters - self.prior_mean) ** 2 @ precision) + 0.5 * np.log(precision).sum()
        prior = prior + np.log(1 - APART_PROBABILITY if apart is None else APART_PROBABILITY / self.n_systems)
        # Half-Cauchy(1) on points that are about evenly spaced in log τ.
        log_posterior: np.ndarray = likelihood + prior + np.log(effect_scale) - np.log1p(effect_scale**2)
        return log_posterior

    def find_mode(self, effect_scale: float, start: np.ndarray, apart: int | None = None) -> PosteriorMode:
        """Newton with step halving: a full step may leave the basin where labels are few or one-sided."""
        precision = self.prior_precision(effect_scale, apart)
        theta, value = start, float(self.log_posterior(start, effect_scale, apart))
        for _ in range(_MAX_NEWTON_STEPS):
            gradient, factor = self._gradient_and_cholesky(theta, precision)
            if np.abs(gradient).max() < GRADIENT_TOLERANCE:
                break
            step = np.linalg.solve(factor.T, np.linalg.solve(factor, gradient))
            size = 1.0
            while size > 1e-10:
                tried = theta + size * step
                found = float(self.log_posterior(tried, effect_scale, apart))
                if found >= value:
                    break
                size /= 2
            else:
                break  # no step in floating point goes further up
            theta, value = tried, found
        gradient, factor = self._gradient_and_cholesky(theta, precision)
        weight = value - np.log(np.diag(factor)).sum()
        return PosteriorMode(effect_scale, theta, factor, float(weight), apart)

    def _gradient_and_cholesky(self, parameters: np.ndarray, precision: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p = stable_logistic(self.design @ parameters)
        gradient = self.label_weight * (self.design.T @ (self.error - p)) - precision * (parameters - self.prior_mean)
        hessian = (self.design * (self.label_weight * p * (1 - p))[:, None]).T @ self.design
        hessian[np.diag_indices_from(hessian)] += precision
        return gradient, np.linalg.cholesky(hessian)


def fit_hierarchical_regression(
    covariates: ScoreCovariates,
    labelled_rows: np.ndarray,
    system: np.ndarray,
    error: np.ndarray,
    n_systems: int,
    random: np.random.Generator,
    n_draws: int = N_DRAWS,
    label_weight: float = 1.0,
) -> PosteriorDraws:
    """Fit the model on n labelled claims and draw from its posterior.

    covariates: of N claims; labelled_rows: int (n,), positions among the N; system: int (n,), 0..n_systems-1, and
    error: float64 (n,), 1 or 0, of the labelled claims; label_weight: how many independent labels one label is worth.
    The effect of a system without labels comes from the prior alone.

    >>> from factaudit.stats.score_covariates import build_score_covariates
    >>> covariates = build_score_covariates(np.linspace(0.05, 0.95, 40)[None], ["e"])
    >>> rows = np.arange(0, 40, 2)
    >>> draws = fit_hierarchical_regression(
    ...     covariates, rows, rows % 4 // 2, (rows < 20).astype(float), n_systems=2, random=np.random.default_rng(0)
    ... )
    >>> draws.slopes.shape, draws.system_effects.shape, bool((draws.slopes[:, 0] > 0).mean() > 0.99)
    ((1000, 1), (1000, 2), True)
    """
    model = _HierarchicalRegressionData.from_covariates(
        covariates, labelled_rows, system, error, n_systems, label_weight
    )
    modes = _find_posterior_modes(model)
    modes += _find_modes_with_a_system_apart(model, modes)
    theta, which, log_weights = _propose_posterior_draws(model, modes, random, max(N_PROPOSALS, 5 * n_draws))
    while (effective := _effective_sample_size(log_weights)) < MIN_EFFECTIVE_PROPOSALS and len(theta) < MAX_N_PROPOSALS:
        more = _propose_posterior_draws(model, modes, random, len(theta))
        theta, which, log_weights = (
            np.concatenate(pair) for pair in zip((theta, which, log_weights), more, strict=True)
        )
    weights = np.exp(log_weights - log_weights.max())
    kept = _resample_weighted_proposals(weights, n_draws, random)
    # All proposals estimate the mean better than those kept: the error that resampling adds to it is subtracted.
    theta, which = theta[kept] + weights @ theta / weights.sum() - theta[kept].mean(0), which[kept]
    end = theta.shape[1] - n_systems
    return PosteriorDraws(
        theta[:, 0],
        theta[:, 1:end],
        theta[:, end:],
        np.array([mode.effect_scale for mode in modes])[which],
        effective,
        tuple(modes),
    )


def _find_posterior_modes(model: _HierarchicalRegressionData) -> list[PosteriorMode]:
    """The mode at every τ, each started from its neighbour's."""
    modes: list[PosteriorMode] = []
    start = model.prior_mean
    for tau in EFFECT_SCALES:
        modes.append(model.find_mode(tau, start))
        start = modes[-1].parameters
    return modes


def _find_modes_with_a_system_apart(
    model: _HierarchicalRegressionData, modes: list[PosteriorMode]
) -> list[PosteriorMode]:
    """The modes at every τ with the lowest system apart from the others, and with the highest.

    Each has the prior probability `APART_PROBABILITY` / S; what the S − 2 systems between them have is left out.
    """
    if model.n_systems < 3:
        return []
    effects = max(modes, key=lambda mode: mode.log_weight).parameters[-model.n_systems :]
    return [
        model.find_mode(mode.effect_scale, mode.parameters, int(apart))
        for apart in (effects.argmin(), effects.argmax())
        for mode in modes
    ]


def fit_posterior_mode(
    covariates: ScoreCovariates,
    labelled_rows: np.ndarray,
    system: np.ndarray,
    error: np.ndarray,
    n_systems: int,
    effect_scale: float | None = None,
    label_weight: float = 1.0,
) -> PosteriorMode:
    """The mode at one τ, or (None) at the τ with the greatest Laplace weight; arguments as of the regression's fit.

    >>> from factaudit.stats.score_covariates import build_score_covariates
    >>> covariates = build_score_covariates(np.linspace(0.05, 0.95, 40)[None], ["e"])
    >>> rows = np.arange(0, 40, 2)
    >>> mode = fit_posterior_mode(covariates, rows, np.zeros(20, int), (rows < 20).astype(float), 1, effect_scale=1.0)
    >>> error_probabilities_at_mode(mode, covariates, np.zeros(40, int), np.array([0, 39])).round(2).tolist()
    [1.0, 0.0]
    """
    model = _HierarchicalRegressionData.from_covariates(
        covariates, labelled_rows, system, error, n_systems, label_weight
    )
    if effect_scale is not None:
        return model.find_mode(effect_scale, model.prior_mean)
    return max(_find_posterior_modes(model), key=lambda mode: mode.log_weight)


def error_probabilities_at_mode(
    mode: PosteriorMode, covariates: ScoreCovariates, system: np.ndarray, rows: np.ndarray | None = None
) -> np.ndarray:
    """P(error) at a mode, of all claims or of some rows: float64 (N,) or (n,). system: int (N,).

    A slope of 1 on a covariate of 0, and a system effect of 0.5:

    >>> mode = PosteriorMode(1.0, np.array([-0.5, 1.0, 0.5]), np.eye(3), 0.0, 0.0)
    >>> covariates = ScoreCovariates(np.zeros((1, 1)), np.zeros(1), np.ones(1), ("shared",))
    >>> error_probabilities_at_mode(mode, covariates, np.zeros(1, int)).tolist()
    [0.5]
    """
    values, codes = (covariates.values, system) if rows is None else (covariates.values[rows], system[rows])
    n_fixed = 1 + values.shape[1]
    return stable_logistic(mode.parameters[0] + values @ mode.parameters[1:n_fixed] + mode.parameters[n_fixed:][codes])


def _propose_posterior_draws(
    model: _HierarchicalRegressionData, modes: list[PosteriorMode], random: np.random.Generator, n_proposals: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Proposals (m, P), the index of each one's mode (m,), and log(posterior / proposal) (m,) up to a constant."""
    log_weights = np.array([mode.log_weight for mode in modes])
    # No τ gets less than a hundredth: where the Laplace weight is wrong, the importance weights can still say so.
    shares = np.maximum(np.exp(log_weights - log_weights.max()), 0.01)
    shares /= shares.sum()
    which = np.repeat(
        np.arange(len(modes)), np.diff(np.floor(np.append(0, np.cumsum(shares)) * n_proposals + 0.5)).astype(int)
    )
    n_parameters = len(model.prior_mean)
    # Neighbours mirror each other at the mode (antithetic): nearly linear functions have hardly any noise.
    half = (len(which) + 1) // 2
    sign = np.where(np.arange(len(which)) % 2, -1.0, 1.0)
    normal = np.repeat(random.standard_normal((half, n_parameters)), 2, axis=0)[: len(which)] * sign[:, None]
    stretch = np.repeat(np.sqrt(_T_DEGREES / random.chisquare(_T_DEGREES, half)), 2)[: len(which)]
    distance = (normal**2).sum(1) * stretch**2
    theta = np.empty_like(normal)
    target = np.empty(len(which))
    for at, mode in enumerate(modes):
        here = which == at
        theta[here] = (
            mode.parameters + np.linalg.solve(mode.cholesky_factor.T, (normal[here] * stretch[here, None]).T).T
        )
        target[here] = model.log_posterior(theta[here], mode.effect_scale, mode.apart)
    scale = np.array([np.log(np.diag(mode.cholesky_factor)).sum() for mode in modes])
    proposal = np.log(shares[which]) + scale[which]
    proposal -= 0.5 * (_T_DEGREES + n_parameters) * np.log1p(distance / _T_DEGREES)
    return theta, which, target - proposal


def _effective_sample_size(log_weights: np.ndarray) -> float:
    """Kish's effective number of weighted draws."""
    weights = np.exp(log_weights - log_weights.max())
    return float(weights.sum() ** 2 / (weights**2).sum())


def _resample_weighted_proposals(weights: np.ndarray, size: int, random: np.random.Generator) -> np.ndarray:
    """Systematic resampling, in random order: int (size,)."""
    points = (np.arange(size) + random.random()) / size
    kept = np.searchsorted(np.cumsum(weights) / weights.sum(), points)
    return random.permutation(np.minimum(kept, len(weights) - 1))


def stable_logistic(values: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(−x)) without overflow, elementwise.

    >>> stable_logistic(np.array([-800.0, 0.0, 800.0])).tolist()
    [0.0, 0.5, 1.0]
    """
    return 0.5 * (1 + np.tanh(0.5 * values))
