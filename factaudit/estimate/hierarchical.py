"""The hierarchical model: multilevel regression and post-stratification of few labels over many scores.

Gelman & Little 1997, with the scores of evaluators as covariates: logit P(error) = a + β·columns + u_system, the system
effects u shrunk as much as the labels ask for. Labels that were drawn by the scores need no weights here: given scores
and system, which claims were labelled tells nothing more.

The posterior is integrated over a grid of the effects' scale τ: at each a mode (Newton), a Laplace weight, draws from a
t distribution with five degrees of freedom around it, weighted by posterior over proposal, and 1,000 of them resampled.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from factaudit.estimate.columns import Columns

#: Standard deviations of the system effects that the posterior is integrated over; τ ~ half-Cauchy(1).
TAUS = (0.1, 0.3, 0.6, 1.0, 1.5, 2.2, 3.2)
#: Draws that are kept, and proposals made for them; more while the effective number of the proposals is too low.
DRAWS = 1000
PROPOSALS = 5 * DRAWS
MIN_EFFECTIVE = 500
MAX_PROPOSALS = 32 * PROPOSALS
#: Newton stops where no element of the gradient is above this.
TOLERANCE = 1e-6
#: Standard deviation of the intercept's prior.
INTERCEPT_SD = 5.0
_DEGREES = 5
_MAX_STEPS = 200


@dataclass(frozen=True)
class Mode:
    """The posterior at one τ: its mode, the Cholesky factor of minus the Hessian there, and log Laplace weight.

    theta: (P,) intercept, K coefficients, S system effects; factor: (P, P), lower; gradient: greatest |element| left.
    """

    tau: float
    theta: np.ndarray
    factor: np.ndarray
    log_weight: float
    gradient: float


@dataclass(frozen=True)
class Posterior:
    """D draws: intercept (D,), slopes (D, K), effects (D, S), tau (D,); ``effective``: the proposals' effective number.

    ``modes`` has one `Mode` per element of `TAUS`.
    """

    intercept: np.ndarray
    slopes: np.ndarray
    effects: np.ndarray
    tau: np.ndarray
    effective: float
    modes: tuple[Mode, ...]


@dataclass(frozen=True)
class _Model:
    """The labelled claims: design (n, P) with columns 1, K scores, S systems; error (n,) 1 or 0; prior (P,) each.

    ``weight``: how many independent labels one label is worth, 1 or (where labels of one response are alike) less.
    """

    design: np.ndarray
    error: np.ndarray
    mean: np.ndarray
    sd: np.ndarray
    n_systems: int
    weight: float

    @classmethod
    def of(
        cls,
        columns: Columns,
        rows: np.ndarray,
        system: np.ndarray,
        error: np.ndarray,
        n_systems: int,
        weight: float,
    ) -> _Model:
        n_fixed = 1 + len(columns.mean)
        design = np.zeros((len(rows), n_fixed + n_systems))
        design[:, 0] = 1
        design[:, 1:n_fixed] = columns.values[rows]
        design[np.arange(len(rows)), n_fixed + system] = 1
        effects = np.zeros(n_systems)
        return cls(
            design=design,
            error=error.astype(np.float64),
            mean=np.concatenate([[0.0], columns.mean, effects]),
            sd=np.concatenate([[INTERCEPT_SD], columns.sd, effects]),
            n_systems=n_systems,
            weight=weight,
        )

    def precision(self, tau: float) -> np.ndarray:
        sd = self.sd.copy()
        sd[len(sd) - self.n_systems :] = tau
        return 1 / sd**2

    def log_posterior(self, theta: np.ndarray, tau: float) -> np.ndarray:
        """Up to a constant that is the same for every τ: (...) of (..., P) parameters."""
        precision = self.precision(tau)
        eta = theta @ self.design.T
        # log(1 + exp(η)) in functions that are computed many at a time; `logaddexp` takes five times as long.
        likelihood = self.weight * (eta @ self.error - (np.maximum(eta, 0) + np.log(1 + np.exp(-np.abs(eta)))).sum(-1))
        prior = -0.5 * ((theta - self.mean) ** 2 @ precision) + 0.5 * np.log(precision).sum()
        # Half-Cauchy(1) on points that are about evenly spaced in log τ.
        return likelihood + prior + np.log(tau) - np.log1p(tau**2)

    def mode(self, tau: float, start: np.ndarray) -> Mode:
        """Newton with step halving: a full step may leave the basin where labels are few or one-sided."""
        precision = self.precision(tau)
        theta, value = start, float(self.log_posterior(start, tau))
        for _ in range(_MAX_STEPS):
            gradient, factor = self._slope(theta, precision)
            if np.abs(gradient).max() < TOLERANCE:
                break
            step = np.linalg.solve(factor.T, np.linalg.solve(factor, gradient))
            size = 1.0
            while size > 1e-10:
                tried = theta + size * step
                found = float(self.log_posterior(tried, tau))
                if found >= value:
                    break
                size /= 2
            else:
                break  # no step in floating point goes further up
            theta, value = tried, found
        gradient, factor = self._slope(theta, precision)
        weight = value - np.log(np.diag(factor)).sum()
        return Mode(tau, theta, factor, float(weight), float(np.abs(gradient).max()))

    def _slope(self, theta: np.ndarray, precision: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        p = expit(self.design @ theta)
        gradient = self.weight * (self.design.T @ (self.error - p)) - precision * (theta - self.mean)
        hessian = (self.design * (self.weight * p * (1 - p))[:, None]).T @ self.design
        hessian[np.diag_indices_from(hessian)] += precision
        return gradient, np.linalg.cholesky(hessian)


def fit(
    columns: Columns,
    rows: np.ndarray,
    system: np.ndarray,
    error: np.ndarray,
    n_systems: int,
    random: np.random.Generator,
    draws: int = DRAWS,
    weight: float = 1.0,
) -> Posterior:
    """Fit the model on labelled claims and draw from its posterior.

    rows: int (n,), the labelled claims' rows in ``columns``; system: int (n,), 0..n_systems-1; error: (n,), 1 where a
    claim is unattributable; weight: how many independent labels one label is worth. A system without labels has its
    effect from the prior alone.
    """
    model = _Model.of(columns, rows, system, error, n_systems, weight)
    modes = find_modes(model)
    theta, which, log_weights = _propose(model, modes, random, max(PROPOSALS, 5 * draws))
    while (effective := _effective(log_weights)) < MIN_EFFECTIVE and len(theta) < MAX_PROPOSALS:
        more = _propose(model, modes, random, len(theta))
        theta, which, log_weights = (
            np.concatenate(pair) for pair in zip((theta, which, log_weights), more, strict=True)
        )
    weights = np.exp(log_weights - log_weights.max())
    kept = _resample(weights, draws, random)
    # What chance resampling adds to the mean is taken off again: all proposals tell it better than those kept.
    theta, which = theta[kept] + weights @ theta / weights.sum() - theta[kept].mean(0), which[kept]
    end = theta.shape[1] - n_systems
    return Posterior(theta[:, 0], theta[:, 1:end], theta[:, end:], np.array(TAUS)[which], effective, tuple(modes))


def find_modes(model: _Model) -> list[Mode]:
    """The mode at every τ, each started from its neighbour's."""
    modes: list[Mode] = []
    start = model.mean
    for tau in TAUS:
        modes.append(model.mode(tau, start))
        start = modes[-1].theta
    return modes


def point_fit(
    columns: Columns,
    rows: np.ndarray,
    system: np.ndarray,
    error: np.ndarray,
    n_systems: int,
    tau: float | None = None,
    weight: float = 1.0,
) -> Mode:
    """The mode at one τ, or at the one with the greatest Laplace weight: a fit with shrunk system effects."""
    model = _Model.of(columns, rows, system, error, n_systems, weight)
    if tau is not None:
        return model.mode(tau, model.mean)
    return max(find_modes(model), key=lambda mode: mode.log_weight)


def probabilities(mode: Mode, columns: Columns, system: np.ndarray, rows: np.ndarray | None = None) -> np.ndarray:
    """P(error) at a mode, of all claims or of some rows: float64 (N,) or (n,)."""
    values, codes = (columns.values, system) if rows is None else (columns.values[rows], system[rows])
    n_fixed = 1 + values.shape[1]
    return expit(mode.theta[0] + values @ mode.theta[1:n_fixed] + mode.theta[n_fixed:][codes])


def _propose(
    model: _Model, modes: list[Mode], random: np.random.Generator, size: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Proposals (size, P), the mode that each is from (size,), and log(posterior / proposal) up to a constant."""
    log_weights = np.array([mode.log_weight for mode in modes])
    # No τ gets less than a hundredth: where the Laplace weight is wrong, the importance weights can still say so.
    shares = np.maximum(np.exp(log_weights - log_weights.max()), 0.01)
    shares /= shares.sum()
    which = np.repeat(
        np.arange(len(modes)), np.diff(np.floor(np.append(0, np.cumsum(shares)) * size + 0.5)).astype(int)
    )
    n_parameters = len(model.mean)
    # Neighbours mirror each other at the mode: what is nearly linear in the parameters is nearly free of noise.
    half = (len(which) + 1) // 2
    sign = np.where(np.arange(len(which)) % 2, -1.0, 1.0)
    normal = np.repeat(random.standard_normal((half, n_parameters)), 2, axis=0)[: len(which)] * sign[:, None]
    stretch = np.repeat(np.sqrt(_DEGREES / random.chisquare(_DEGREES, half)), 2)[: len(which)]
    distance = (normal**2).sum(1) * stretch**2
    theta = np.empty_like(normal)
    target = np.empty(len(which))
    for at, mode in enumerate(modes):
        here = which == at
        theta[here] = mode.theta + np.linalg.solve(mode.factor.T, (normal[here] * stretch[here, None]).T).T
        target[here] = model.log_posterior(theta[here], mode.tau)
    scale = np.array([np.log(np.diag(mode.factor)).sum() for mode in modes])
    proposal = np.log(shares[which]) + scale[which]
    proposal -= 0.5 * (_DEGREES + n_parameters) * np.log1p(distance / _DEGREES)
    return theta, which, target - proposal


def _effective(log_weights: np.ndarray) -> float:
    """Kish's effective number of weighted draws."""
    weights = np.exp(log_weights - log_weights.max())
    return float(weights.sum() ** 2 / (weights**2).sum())


def _resample(weights: np.ndarray, size: int, random: np.random.Generator) -> np.ndarray:
    """Systematic resampling, in random order: int (size,)."""
    points = (np.arange(size) + random.random()) / size
    kept = np.searchsorted(np.cumsum(weights) / weights.sum(), points)
    return random.permutation(np.minimum(kept, len(weights) - 1))


def expit(values: np.ndarray) -> np.ndarray:
    """1 / (1 + exp(-x)) without overflow."""
    return 0.5 * (1 + np.tanh(0.5 * values))
