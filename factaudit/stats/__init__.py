"""Statistics of arrays, usable alone: nothing here knows claims, evaluators or rows.

One file for each method. Each name is imported when it is first used (PEP 562):

>>> from factaudit.stats import wilson_interval

Arguments and results are numpy arrays; docstrings give their shapes: n units, C clusters, k rows of counts, G groups, S
systems, B or b replicates. A figure that is undefined is NaN.
"""

from importlib import import_module
from typing import Any

#: The public names of each file.
_NAMES = {
    "active_inference": "uncertainty_sampling_probabilities active_inference_mean",
    "adjusted_counts": "adjust_counts",
    "agreement": "intersection_over_union_interval kappa_interval has_constant_rater krippendorff_alpha",
    "allocation": (
        "AllocationStrata stratify_for_allocation allocate_labels_to_strata draw_allocated_labels "
        "allocate_first_phase_budget "
        "allocate_first_phase allocate_further_phase allocate_shared_documents"
    ),
    "annotator_errors": "count_overlapping_claims draw_true_errors",
    "bacc_threshold": "CrossValidatedThreshold cross_validate_threshold find_best_bacc_threshold",
    "bounded_means": "bounded_mean_interval bounded_change_interval",
    "budget_interpolation": "interpolate_budget",
    "cluster_bootstrap": "ClusterBootstrap",
    "cluster_jackknife": "jackknife_slope_interval jackknife_pair_mean_p",
    "clustered_means": "ClusteredMean clustered_mean clustered_mean_difference clustered_positive_mean",
    "clustered_pair_test": "clustered_pair_p_values",
    "clustered_proportions": (
        "ClusterCounts count_codes_by_cluster GroupClusterPairs ClusteredProportions "
        "estimate_clustered_proportions wilson_interval student_t_quantile"
    ),
    "confidence_sequences": (
        "LabelLookBlock ConfidenceSequence confidence_sequence log_betting_capital log_directional_capital"
    ),
    "cross_fitting": "cross_fit_error_probabilities",
    "difference_estimator": "difference_estimate",
    "distinct_rows": (
        "count_distinct_rows rank_distinct_rows count_distinct_clusters rank_distinct_integers "
        "encode_distinct_integer_pairs"
    ),
    "document_split": "split_documents link_claims_of_document_or_response",
    "grade_agreement": (
        "InfluenceStatistic quadratic_weighted_kappa weighted_kappa_interval spearman_rank_correlation "
        "ordinal_krippendorff_alpha correlation_influence_interval difference_influence_interval"
    ),
    "group_score_test": "GroupScoreTest group_score_test",
    "hierarchical_regression": (
        "PosteriorMode PosteriorDraws fit_hierarchical_regression fit_posterior_mode error_probabilities_at_mode "
        "stable_logistic"
    ),
    "homogeneity_test": "HomogeneityTest permutation_homogeneity_p rao_scott_homogeneity_test",
    "mover": (
        "mover_weighted_sum mover_proportion_sum least_proportion_interval discordant_difference_interval "
        "error_balance_interval"
    ),
    "multiplicity": (
        "benjamini_hochberg_adjusted_p cauchy_combined_p holm_adjusted_p p_value_of_interval "
        "select_rejectable_tests share_confidence_over_looks sign_test_p"
    ),
    "noise_floor": "NoiseFloor estimate_noise_floor",
    "nominal_agreement": "AgreementCoefficient nominal_agreement",
    "permutation": "studentised_permutation_p",
    "pooled_threshold": "pooled_prediction_error_rates fit_pooled_threshold error_rates_at_pooled_threshold",
    "posterior_comparison": (
        "posterior_interval PosteriorRanks rank_posterior_draws lowest_rate_interval selected_rate_interval "
        "wrong_direction_probabilities select_directed_pairs compact_letter_display"
    ),
    "poststratification": (
        "UndecidedLabelDraws poststratify_error_rates bayesian_bootstrap_gamma_shape posterior_error_probabilities"
    ),
    "prediction_powered": "prediction_powered_mean stratified_prediction_powered_mean",
    "proportion_test": "fisher_exact_p pairwise_probability_worse two_proportion_power two_proportion_z_test",
    "random_number_cache": "can_cache_random_numbers cache_random_numbers",
    "rank_correlation": (
        "soft_pairwise_accuracy kendall_tau_interval fisher_z_interval kendall_tau pearson_r bootstrap_pearson_interval"
    ),
    "roc": "RocCurveEstimate order_roc_scores_by_group RocTiedScores RocRankedScores",
    "risk_control": (
        "RiskCurve control_passing_errors run_fixed_sequence error_share_p_values error_share_upper_limits "
        "plan_labels_to_pass can_labels_let_claims_pass are_labels_clustered"
    ),
    "score_combination": (
        "ScoreStandardiser fit_combination_weights fit_error_odds cross_fit_combined_risk split_cluster_folds"
    ),
    "rogan_gladen": (
        "RoganGladenConfusion can_accuracy_give_predicted_share estimate_rogan_gladen_confusion "
        "rogan_gladen_error_rate rogan_gladen_error_probabilities"
    ),
    "score_covariates": "ScoreCovariates build_score_covariates standardise_score_logits",
    "slice_comparison": "count_slice_and_rest_hits estimate_slice_and_rest_proportions",
    "slope_moments": "least_squares_slope compute_slope_moments slope_moments_by_cluster bound_slopes_over_missing",
    "stratified_sampling": (
        "StratifiedDraw assume_simple_random_draw StratifiedMean estimate_stratified_mean "
        "stratified_label_weights cluster_design_effect"
    ),
    "standardised_difference": "StandardisedDifference standardised_difference",
    "stratified_wilson": "stratified_wilson_interval wilson_share_interval",
    "superpopulation_variance": "superpopulation_variance",
    "threshold_calibration": (
        "CandidateThresholds tune_calibration_threshold narrowest_integer_type cumulate_threshold_weights_in_place "
        "list_candidate_thresholds ThresholdCalibratedErrorRates calibrate_error_rates_at_thresholds "
        "mean_over_threshold_calibrations "
        "bias_after_calibration_on_one_system"
    ),
    "undefined_values": "none_if_undefined name_ends divide_or_undefined",
}
_FILES = {name: file for file, names in _NAMES.items() for name in names.split()}
__all__ = sorted(_FILES)


def __getattr__(name: str) -> Any:
    if name not in _FILES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(f"{__name__}.{_FILES[name]}"), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
