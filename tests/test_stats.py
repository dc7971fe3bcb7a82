"""`factaudit.stats` stands alone: what it imports, what it exports, and that its examples run."""

from __future__ import annotations

import ast
import doctest
from importlib import import_module
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import scipy

import factaudit.stats
from factaudit.stats.clustered_means import clustered_mean
from factaudit.stats.clustered_pair_test import clustered_pair_p_values

FOLDER = Path(factaudit.stats.__file__).parent
FILES = sorted(path.stem for path in FOLDER.glob("*.py") if path.stem != "__init__")


def public_definitions(file: str) -> list[ast.FunctionDef | ast.ClassDef]:
    tree = ast.parse((FOLDER / f"{file}.py").read_text(encoding="utf-8"))
    found = [node for node in tree.body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    return [node for node in found if not node.name.startswith("_")]


@pytest.mark.parametrize("file", FILES)
def test_the_examples_run_and_every_function_has_one(file):
    assert doctest.testmod(import_module(f"factaudit.stats.{file}")).failed == 0
    functions = [node for node in public_definitions(file) if isinstance(node, ast.FunctionDef)]
    assert [node.name for node in functions if ">>>" not in (ast.get_docstring(node) or "")] == []


def test_the_interval_of_a_mean_is_that_of_the_means_of_equal_clusters():
    cluster, values = np.repeat(np.arange(12), 4), np.random.default_rng(3).normal(size=48)
    found = clustered_mean(values, cluster)
    assert found.high - found.low == pytest.approx(2 * 2.200985 * values.reshape(12, 4).mean(1).std(ddof=1) / 12**0.5)
    # Units of one cluster only, or none: there is nothing to leave out.
    alone = clustered_mean(values[:4], cluster[:4])
    assert (alone.n_clusters, np.isnan([alone.low, alone.high]).all()) == (1, True)
    assert np.isnan(clustered_mean(np.array([np.nan]), np.array([0])).point)


def test_an_effective_number_that_rounding_made_less_is_whole() -> None:
    point, clusters = np.array([[1 / 150, 5 / 150]]), np.full((1, 2), 150.0)
    exact, rounded = (
        clustered_pair_p_values(SimpleNamespace(point=point, effective_n=n, n_clusters=clusters)).item()
        for n in (np.array([[150.0, 150.0]]), np.array([[150.0, 150 - 1e-10]]))
    )
    assert exact == rounded == pytest.approx(scipy.stats.fisher_exact([[1, 149], [5, 145]])[1])
