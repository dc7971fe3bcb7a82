"""Rates from few labels: hierarchical logistic regression and post-stratification (Gelman & Little
1997).

logit P(error) = a + β·covariates + u_system, where the system effects u are shrunk as much as the
labels ask for. Labels that were drawn by the scores need no weights: given scores and system, being
labelled carries no information. Of three systems or more one may be apart from the others, and is
then shrunk less (a mixture in place of the normal distribution of effects): the lowest or the
highest, whose labels say how probable that is.

The posterior is integrated over a grid of the effects' scale τ, and over which system is apart. For
each: the mode (Newton), a Laplace weight, and draws from a t distribution with five degrees of
freedom around the mode, weighted by posterior over proposal. 1,000 of all draws are resampled by
their weights, and each is a rate of every system.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
import scipy

from factaudit.stats import divide_or_undefined

#: Scores are kept this far from 0 and 1 before their logit is taken.
_LOGIT_MARGIN = 0.001
#: Prior mean and standard deviation of the shared covariate's slope, and standard deviation of all
#: others'.
SHARED_COVARIATE_PRIOR = (1.4, 1.2)
OTHER_COVARIATE_SD = 0.5
#: Standard deviation of the slopes of covariates that are 1 or 0: a lacking score, a stratum.
INDICATOR_COVARIATE_SD = 1.0
#: Systems' means of the shared covariate that differ by less than this (in standard deviations of
#: claims) tell little.
_SYSTEM_MEAN_NOISE = 0.1
#: Standard deviations of the system effects that the posterior is integrated over; τ ~
#: half-Cauchy(1).
EFFECT_SCALES = (0.1, 0.3, 0.6, 1.0, 1.5, 2.2, 3.2)
#: One system may be apart from the others, and then has an effect of this standard deviation. The
#: prior probability ½ is split evenly over all S systems, but only the lowest and the highest one
#: are tried: together they have 1/S, so that "one is apart" has the prior odds 2/S (a probability
#: of 9 % at 20 systems, 40 % at three).
APART_PROBABILITY = 0.5
APART_SCALE = 2.0
#: Draws that are kept, and proposals for them: doubled while the effective number of the proposals
#: is too low.
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
N_FOLDS = 5
#: Claims whose probabilities are computed at a time: with 1,000 draws they stay in the processor's
#: cache.
_BLOCK_SIZE = 256


def risk_logit(score: np.ndarray) -> np.ndarray:
    """logit(1 − score) of support in [0, 1], kept finite; elementwise, NaN where missing."""
    return scipy.special.logit(np.clip(1 - score, _LOGIT_MARGIN, 1 - _LOGIT_MARGIN))


# ---- covariates


@dataclass(frozen=True)
class Covariates:
    """K covariates of N claims, values float64 (N, K), and the normal prior of each slope:
    prior_mean, prior_sd (K,).

    The first is what the evaluators share, with the main one counted double; greater means more
    likely an error.
    """

    values: np.ndarray
    prior_mean: np.ndarray
    prior_sd: np.ndarray
    names: tuple[str, ...]


def make_covariates(
    score: np.ndarray,
    evaluators: Sequence[str],
    strata: np.ndarray | None = None,
    system: np.ndarray | None = None,
) -> Covariates:
    """Covariates of N claims from scores: float64 (E, N), support for the claim, NaN where missing;
    the main one first.

    An evaluator whose scores are all equal or all missing has no covariate. Where some scores of an
    evaluator are missing, the median stands in, and an indicator says for which claims: they may
    hold more or fewer errors. strata: int (N,), codes from 0; each value gets an indicator. system:
    int (N,), codes from 0; the mean of the shared column over each system's claims is a covariate,
    too: where scores tell errors in all systems alike, a system with more errors has more than its
    claims' own scores say (Mundlak 1978; Bafumi & Gelman 2006).

    >>> make_covariates(np.array([[0.9, 0.1, 0.5], [0.8, np.nan, 0.4]]), ["a", "b"]).names
    ('shared', 'a', 'b', 'b missing')
    >>> alike = make_covariates(np.array([[0.9, 0.1, 0.9, 0.1], [0.9, 0.1, 0.1, 0.9]]), ["a", "b"])
    >>> alike.values[:, 0].round(2).tolist()
    [-1.21, 1.21, -0.5, 0.5]
    """
    standardised = {name: _standardise(row) for name, row in zip(evaluators, score, strict=True)}
    known = {name: column for name, column in standardised.items() if column is not None}
    columns: list[tuple[str, np.ndarray, float, float]] = []
    if known:
        together = np.mean(list(known.values()), axis=0)
        spread = together.std()
        together = together / spread if spread > 0 else together
        shared = (together + known.get(evaluators[0], together)) / 2
        columns.append(("shared", shared, *SHARED_COVARIATE_PRIOR))
        if system is not None:
            mean = (np.bincount(system, shared) / np.maximum(np.bincount(system), 1))[system]
            if (spread := mean.std()) > 1e-9:
                columns.append(
                    (
                        "system mean",
                        mean / np.hypot(spread, _SYSTEM_MEAN_NOISE),
                        0.0,
                        OTHER_COVARIATE_SD,
                    )
                )
        if len(known) > 1:
            columns += [
                (name, column - shared, 0.0, OTHER_COVARIATE_SD) for name, column in known.items()
            ]
    indicators = {
        f"{name} missing": np.isnan(row) for name, row in zip(evaluators, score, strict=True)
    }
    indicators = {name: one for name, one in indicators.items() if 0 < one.mean() < 1}
    if strata is not None:
        indicators |= {f"stratum {code}": strata == code for code in range(int(strata.max()) + 1)}
    columns += [
        (name, one - one.mean(), 0.0, INDICATOR_COVARIATE_SD) for name, one in indicators.items()
    ]
    names, values, means, deviations = zip(*columns, strict=True) if columns else ((), (), (), ())
    return Covariates(
        values=np.stack(values, axis=1) if columns else np.zeros((score.shape[1], 0)),
        prior_mean=np.array(means),
        prior_sd=np.array(deviations),
        names=tuple(names),
    )


def _standardise(score: np.ndarray) -> np.ndarray | None:
    """`risk_logit` with mean 0 and variance 1, missing ones at the median: (N,); None where nothing
    varies."""
    logit = risk_logit(score)
    known = ~np.isnan(logit)
    if not known.any():
        return None
    logit[~known] = np.median(logit[known])
    spread = logit.std()
    return (logit - logit.mean()) / spread if spread > 1e-9 else None


# ---- regression


@dataclass(frozen=True)
class PosteriorMode:
    """The mode of the posterior at one τ (``effect_scale``), with one system ``apart`` from the
    others or none.

    parameters: (P,), intercept, K slopes, S system effects; cholesky_factor: (P, P), lower, of
    minus the Hessian at the mode; log_weight: of Laplace.
    """

    effect_scale: float
    parameters: np.ndarray
    cholesky_factor: np.ndarray
    log_weight: float
    apart: int | None = None


@dataclass(frozen=True)
class PosteriorDraws:
    """D draws: intercept (D,), slopes (D, K), system_effects (D, S), effect_scale (D,).

    n_effective_proposals: Kish's effective number of the weighted proposals; modes: one per element
    of `EFFECT_SCALES`, and as many with the lowest and with the highest of three systems or more
    apart.
    """

    intercept: np.ndarray
    slopes: np.ndarray
    system_effects: np.ndarray
    effect_scale: np.ndarray
    n_effective_proposals: float
    modes: tuple[PosteriorMode, ...] = ()


@dataclass(frozen=True)
class HierarchicalRegression:
    """The model of n labels among the N claims of S systems.

    covariates: of the N claims; system: int (N,), 0..n_systems-1; rows: int (n,), the labelled
    claims, and error: float64 (n,), 1 or 0. label_weight: how many independent labels one is worth:
    less than 1 where labels of one response are alike. The effect of a system without labels comes
    from the prior alone.

    >>> covariates = make_covariates(np.linspace(0.05, 0.95, 40)[None], ["e"])
    >>> rows = np.arange(0, 40, 2)
    >>> systems, error = np.arange(40) % 4 // 2, (rows < 20).astype(float)
    >>> model = HierarchicalRegression(covariates, systems, rows, error, 2)
    >>> draws = model.draw(np.random.default_rng(0))
    >>> draws.slopes.shape, draws.system_effects.shape, bool((draws.slopes[:, 0] > 0).mean() > 0.99)
    ((1000, 1), (1000, 2), True)
    """

    covariates: Covariates
    system: np.ndarray
    rows: np.ndarray
    error: np.ndarray
    n_systems: int
    label_weight: float = 1.0

    @cached_property
    def _design(self) -> np.ndarray:
        """float64 (n, P): of each label 1, its covariates, and its system."""
        is_system = self.system[self.rows, None] == np.arange(self.n_systems)
        return np.column_stack(
            [np.ones(len(self.rows)), self.covariates.values[self.rows], is_system]
        )

    @cached_property
    def _prior_mean(self) -> np.ndarray:
        return np.concatenate([[0.0], self.covariates.prior_mean, np.zeros(self.n_systems)])

    def _prior_precision(self, effect_scale: float, apart: int | None) -> np.ndarray:
        effects = np.full(self.n_systems, effect_scale)
        if apart is not None:
            effects[apart] = APART_SCALE
        return 1 / np.concatenate([[INTERCEPT_SD], self.covariates.prior_sd, effects]) ** 2

    def _log_posterior(
        self, parameters: np.ndarray, effect_scale: float, apart: int | None
    ) -> np.ndarray:
        """Up to a constant that is the same for every τ and system apart: (...) of (..., P)
        parameters."""
        precision = self._prior_precision(effect_scale, apart)
        eta = parameters @ self._design.T
        # log(1 + exp(η)) in functions that are computed many at a time; `logaddexp` takes five
        # times as long.
        likelihood = self.label_weight * (
            eta @ self.error - (np.maximum(eta, 0) + np.log(1 + np.exp(-np.abs(eta)))).sum(-1)
        )
        prior = (
            -0.5 * ((parameters - self._prior_mean) ** 2 @ precision)
            + 0.5 * np.log(precision).sum()
        )
        prior = prior + np.log(
            1 - APART_PROBABILITY if apart is None else APART_PROBABILITY / self.n_systems
        )
        # Half-Cauchy(1) on points that are about evenly spaced in log τ.
        log_posterior: np.ndarray = (
            likelihood + prior + np.log(effect_scale) - np.log1p(effect_scale**2)
        )
        return log_posterior

    def find_mode(
        self, effect_scale: float, start: np.ndarray | None = None, apart: int | None = None
    ) -> PosteriorMode:
        """Newton with step halving: a full step may leave the basin where labels are few or
        one-sided."""
        precision = self._prior_precision(effect_scale, apart)
        theta = self._prior_mean if start is None else start
        value = float(self._log_posterior(theta, effect_scale, apart))
        for _ in range(_MAX_NEWTON_STEPS):
            gradient, factor = self._gradient_and_cholesky(theta, precision)
            if np.abs(gradient).max() < GRADIENT_TOLERANCE:
                break
            step = np.linalg.solve(factor.T, np.linalg.solve(factor, gradient))
            size = 1.0
            while size > 1e-10:
                tried = theta + size * step
                found = float(self._log_posterior(tried, effect_scale, apart))
                if found >= value:
                    break
                size /= 2
            else:
                break  # no step in floating point goes further up
            theta, value = tried, found
        factor = self._gradient_and_cholesky(theta, precision)[1]
        return PosteriorMode(
            effect_scale, theta, factor, float(value - np.log(np.diag(factor)).sum()), apart
        )

    def _gradient_and_cholesky(
        self, parameters: np.ndarray, precision: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        p = scipy.special.expit(self._design @ parameters)
        gradient = self.label_weight * (self._design.T @ (self.error - p)) - precision * (
            parameters - self._prior_mean
        )
        hessian = (self._design * (self.label_weight * p * (1 - p))[:, None]).T @ self._design
        hessian[np.diag_indices_from(hessian)] += precision
        return gradient, np.linalg.cholesky(hessian)

    def error_probabilities(self, mode: PosteriorMode) -> np.ndarray:
        """P(error) of all claims at a mode: float64 (N,)."""
        n_fixed = 1 + self.covariates.values.shape[1]
        intercept, slopes, effects = (
            mode.parameters[0],
            mode.parameters[1:n_fixed],
            mode.parameters[n_fixed:],
        )
        return scipy.special.expit(
            intercept + self.covariates.values @ slopes + effects[self.system]
        )

    def draw(self, random: np.random.Generator) -> PosteriorDraws:
        """`N_DRAWS` draws from the posterior."""
        modes = self._find_modes()
        theta, which, log_weights = self._propose(modes, random, N_PROPOSALS)
        while True:
            weights = np.exp(log_weights - log_weights.max())
            effective = float(weights.sum() ** 2 / (weights**2).sum())
            if effective >= MIN_EFFECTIVE_PROPOSALS or len(theta) >= MAX_N_PROPOSALS:
                break
            more = self._propose(modes, random, len(theta))
            theta, which, log_weights = map(
                np.concatenate, zip((theta, which, log_weights), more, strict=True)
            )
        # Systematic resampling, in random order.
        points = (np.arange(N_DRAWS) + random.random()) / N_DRAWS
        kept = np.searchsorted(np.cumsum(weights) / weights.sum(), points)
        kept = random.permutation(np.minimum(kept, len(weights) - 1))
        # All proposals estimate the mean better than those kept: the error that resampling adds to
        # it is subtracted.
        theta, which = (
            theta[kept] + weights @ theta / weights.sum() - theta[kept].mean(0),
            which[kept],
        )
        end = theta.shape[1] - self.n_systems
        scales = np.array([mode.effect_scale for mode in modes])[which]
        return PosteriorDraws(
            theta[:, 0], theta[:, 1:end], theta[:, end:], scales, effective, tuple(modes)
        )

    def _find_modes(self) -> list[PosteriorMode]:
        """The mode at every τ, each started from its neighbour's; then with the lowest and the
        highest system apart.

        Each of these has the prior probability `APART_PROBABILITY` / S; what the systems between
        them have is left out.
        """
        modes: list[PosteriorMode] = []
        for tau in EFFECT_SCALES:
            modes.append(self.find_mode(tau, modes[-1].parameters if modes else None))
        if self.n_systems < 3:
            return modes
        effects = max(modes, key=lambda mode: mode.log_weight).parameters[-self.n_systems :]
        return modes + [
            self.find_mode(mode.effect_scale, mode.parameters, int(apart))
            for apart in (effects.argmin(), effects.argmax())
            for mode in modes
        ]

    def _propose(
        self, modes: list[PosteriorMode], random: np.random.Generator, n_proposals: int
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Proposals (m, P), the index of each one's mode (m,), and log(posterior / proposal) (m,)
        up to a constant."""
        log_weights = np.array([mode.log_weight for mode in modes])
        # No τ gets less than a hundredth: where the Laplace weight is wrong, the importance weights
        # can still say so.
        shares = np.maximum(np.exp(log_weights - log_weights.max()), 0.01)
        shares /= shares.sum()
        ends = np.floor(np.append(0, np.cumsum(shares)) * n_proposals + 0.5).astype(int)
        which = np.repeat(np.arange(len(modes)), np.diff(ends))
        m, n_parameters = len(which), len(self._prior_mean)
        # Neighbours mirror each other at the mode (antithetic): nearly linear functions have hardly
        # any noise.
        half = (m + 1) // 2
        normal = np.repeat(random.standard_normal((half, n_parameters)), 2, axis=0)[:m]
        normal[1::2] *= -1
        stretch = np.repeat(np.sqrt(_T_DEGREES / random.chisquare(_T_DEGREES, half)), 2)[:m]
        distance = (normal**2).sum(1) * stretch**2
        theta, target, scale = np.empty_like(normal), np.empty(m), np.empty(m)
        for at, mode in enumerate(modes):
            here = which == at
            steps = np.linalg.solve(
                mode.cholesky_factor.T, (normal[here] * stretch[here, None]).T
            ).T
            theta[here] = mode.parameters + steps
            target[here] = self._log_posterior(theta[here], mode.effect_scale, mode.apart)
            scale[here] = np.log(np.diag(mode.cholesky_factor)).sum()
        proposal = np.log(shares[which]) + scale
        proposal -= 0.5 * (_T_DEGREES + n_parameters) * np.log1p(distance / _T_DEGREES)
        return theta, which, target - proposal

    def cross_fit(
        self, effect_scale: float, random: np.random.Generator
    ) -> tuple[np.ndarray, np.ndarray]:
        """Predicted P(error) of all N claims, the mean over folds, and of the n labelled ones by
        folds without them.

        These are the predictions of regression-PPI (Angelopoulos et al. 2023; Chernozhukov et al.
        2018), at one τ.
        """
        n = len(self.rows)
        fold, order = np.empty(n, dtype=np.int64), random.permutation(n)
        # Each system's labels are spread over the folds.
        order = order[np.argsort(self.system[self.rows][order], kind="stable")]
        fold[order] = np.arange(n) % N_FOLDS
        everywhere, held_out = np.zeros(len(self.system)), np.empty(n)
        numbers = np.unique(fold)
        for number in numbers:
            inside = fold == number
            rest = replace(
                self, rows=self.rows[~inside], error=self.error[~inside], label_weight=1.0
            )
            p = self.error_probabilities(rest.find_mode(effect_scale))
            everywhere += p / len(numbers)
            held_out[inside] = p[self.rows[inside]]
        return everywhere, held_out


# ---- post-stratification


def poststratify(
    posterior: PosteriorDraws,
    covariates: Covariates,
    system: np.ndarray,
    error: np.ndarray,
    random: np.random.Generator,
) -> np.ndarray:
    """Draws of the error rate of each system: float64 (D, S), NaN for a system without claims.

    system: int (N,), codes from 0; error: float64 (N,), 1, 0 or NaN where not labelled. The rate is
    that of these claims: the labelled errors plus N(Σp, Σp(1 − p)) over the other claims.

    Two labelled claims and 98 others with P(error) = 1/2:

    >>> slopes, effects = np.zeros((1000, 0)), np.zeros((1000, 1))
    >>> posterior = PosteriorDraws(np.zeros(1000), slopes, effects, np.ones(1000), 1e3)
    >>> covariates = Covariates(np.zeros((100, 0)), np.zeros(0), np.zeros(0), ())
    >>> error = np.where(np.arange(100) < 2, 1.0, np.nan)
    >>> systems, rng = np.zeros(100, int), np.random.default_rng(0)
    >>> draws = poststratify(posterior, covariates, systems, error, rng)
    >>> f"{draws.mean():.2f} ± {draws.std():.2f}"
    '0.51 ± 0.05'
    """
    n_draws, n_systems = posterior.system_effects.shape
    errors, variance = np.zeros((2, n_draws, n_systems))
    slopes = posterior.slopes.T.astype(np.float32)
    base = (posterior.intercept[:, None] + posterior.system_effects).T.astype(np.float32)  # (S, D)
    order = np.argsort(system, kind="stable")
    for start in range(0, len(order), _BLOCK_SIZE):
        rows = order[start : start + _BLOCK_SIZE]
        here = system[rows]
        starts = np.flatnonzero(np.diff(here, prepend=-1))
        at = here[starts]
        known = ~np.isnan(error[rows])
        p = 1 / (1 + np.exp(-(covariates.values[rows].astype(np.float32) @ slopes + base[here])))
        p[known] = error[rows[known], None]
        errors[:, at] += np.add.reduceat(p, starts, axis=0).T
        variance[:, at] += np.add.reduceat(p * (1 - p), starts, axis=0).T
    errors += random.standard_normal(errors.shape) * np.sqrt(variance)
    total = np.bincount(system, minlength=n_systems)
    return divide_or_undefined(np.clip(errors, 0, total), total)


def posterior_error_probabilities(
    posterior: PosteriorDraws, covariates: Covariates, system: np.ndarray
) -> np.ndarray:
    """P(error) of each claim, the mean over the draws: float64 (N,). system: int (N,)."""
    base = (posterior.intercept[:, None] + posterior.system_effects).T
    found = np.empty(len(system))
    for start in range(0, len(system), _BLOCK_SIZE):
        rows = slice(start, start + _BLOCK_SIZE)
        found[rows] = scipy.special.expit(
            covariates.values[rows] @ posterior.slopes.T + base[system[rows]]
        ).mean(1)
    return found
