"""docs/statistics.md, made from the docstrings of `factaudit.stats`.

    python tests/statistics_page.py docs/statistics.md

Coverage is read from what the scripts of tests/validity printed: ``coverage.md`` there (``covering.py``, ``means.py``,
``group_differences.py``, ``grade_intervals.py``), ``coverage_few_labels.json`` (``few_labels.py``) and
``coverage_triage.json`` (``triage.py``); false alarms of findings from ``findings.json`` (``findings.py``).
"""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path
from statistics import median
from typing import Any

ROOT = Path(__file__).parents[1]
VALIDITY = ROOT / "tests" / "validity"

HEAD = """\
# Statistics

<!-- Made by `python tests/statistics_page.py docs/statistics.md` from factaudit/stats: change it there. -->

`factaudit.stats` takes arrays and gives arrays. It knows nothing of claims, evaluators or tables, and works alone:

```python
from factaudit.stats import ClusterCounts, estimate_clustered_proportions
```

Letters in shapes: n units, C clusters, k rows of counts, G groups, S systems, J proportions, B or b replicates. An
undefined figure is NaN. Every example here runs as a test.

*Measured coverage* is the share of simulated benchmarks in which an interval of 95 % held the true figure; of a test,
the share in which it did not reject a true hypothesis at 5 %. `tests/validity/covering.py` printed it ({replicates}
replicates in each of {regimes} regimes: clusters of 1, 5 and 20, 20 to 200 documents, 2 % errors, balanced accuracy of
50 and 98 %, uneven and shifted data, ties), and `means.py`, `group_differences.py`, `grade_intervals.py` and
`few_labels.py` beside it.
"""

FALSE_ALARMS_HEAD = """\
## False alarms of findings

How often each check of [the audits](audits.md#findings) warned where nothing is wrong, in % of {runs} simulated runs a
world (5 % are allowed; two standard errors more are {at_most:.1f} %), and its power: how often it warned where one
thing is wrong. `python tests/validity/findings.py` prints it; `tests/validity/finding_worlds.py` has the worlds.
{worlds}
`adjustment` is drawn with 6 systems at most.

| check | false alarms, % of runs in each world | power, % of {power_runs} runs |
|---|---|---|
"""

#: The rows of coverage.md that tell of a function.
FIGURES = {
    "clustered_proportions.estimate_clustered_proportions": r"(T|P)[PN]R [ab]|labelled a|.* rate.*",
    "mover.mover_proportion_sum": r"(BAcc|gap) [ab]",
    "mover.mover_weighted_sum": r"mean BAcc [ab]",
    "mover.least_proportion_interval": r"(predicted )?headroom( [ab])?",
    "mover.discordant_difference_interval": r"difference of (BAcc|bias)",
    "mover.error_balance_interval": r"bias [ab]",
    "agreement.intersection_over_union_interval": r"IoU.*",
    "agreement.kappa_interval": r"kappa",
    "homogeneity_test.rao_scott_homogeneity_test": r"transfer test [ab]",
    "rank_correlation.fisher_z_interval": r"r over systems",
    "rank_correlation.kendall_tau_interval": r"tau",
    "roc.RocRankedScores": r"AUC|average precision",
    "cluster_jackknife.jackknife_slope_interval": r"slope of.*",
    "adjusted_counts.adjust_counts": r"adjusted count",
    "permutation.studentised_permutation_p": r"test of equal BAcc",
    "clustered_means.clustered_mean_difference": r"mean difference",
    "bounded_means.bounded_mean_interval": r"mean over responses.*",
    "bounded_means.bounded_change_interval": r"change over responses.*",
    "clustered_means.clustered_mean": r"mean difference of grades",
    "clustered_means.clustered_positive_mean": r"MAE",
    "grade_agreement.weighted_kappa_interval": r"weighted κ",
    "grade_agreement.correlation_influence_interval": r"ρ|α|α of annotators|ceiling",
    "grade_agreement.difference_influence_interval": r"room",
    "slice_comparison.estimate_slice_and_rest_proportions": r"BAcc of a slice.*",
    "standardised_difference.standardised_difference": r"difference of groups.*",
}


def read_coverage(text: str) -> tuple[int, int, dict[str, list[float]]]:
    """The replicates, the number of regimes, and each figure's percentages over regimes."""
    shares: dict[str, list[float]] = {}
    regimes = 0
    for line in text.splitlines():
        name, *cells = [cell.strip(" *") for cell in line.strip("|").split("|")]
        numbers = [float(cell) for cell in cells if re.fullmatch(r"[\d.]+", cell)]
        if numbers:
            shares[name] = numbers
            regimes = max(regimes, len(cells))
    found = re.search(r"([\d,]+) replicates each", text)
    assert found is not None
    return int(found[1].replace(",", "")), regimes, shares


def coverage_sentence(figures: str, shares: dict[str, list[float]]) -> str:
    mine = {name: numbers for name, numbers in shares.items() if re.fullmatch(figures, name)}
    numbers = [one for each in mine.values() for one in each]
    spread = f"{min(numbers):.1f} to {max(numbers):.1f} %, median {median(numbers):.1f}"
    return f"{spread} ({len(numbers)} simulated cases: {', '.join(mine)})"


def render_statistics_page() -> str:
    replicates, regimes, shares = read_coverage((VALIDITY / "coverage.md").read_text(encoding="utf-8"))
    coverage = {name: coverage_sentence(figures, shares) for name, figures in FIGURES.items()}
    told = json.loads((VALIDITY / "coverage_few_labels.json").read_text(encoding="utf-8"))
    coverage |= {name: re.sub(r"^Measured coverage of the 95 % interval: ", "", text) for name, text in told.items()}
    coverage["risk_control.control_passing_errors"] = describe_broken_promises()
    parts = [HEAD.format(replicates=f"{replicates:,}", regimes=regimes), render_false_alarms()]
    names = set()
    for path in sorted((ROOT / "factaudit" / "stats").glob("*.py")):
        if path.stem == "__init__":
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        title, _, rest = (ast.get_docstring(tree) or "").partition("\n")
        parts.append(f"## {path.stem.replace('_', ' ').capitalize()}\n\n{render_docstring(title + rest_of(rest))}\n")
        for node in tree.body:
            if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
                name = f"{path.stem}.{node.name}"
                names.add(name)
                parts.append(
                    f"### `{node.name}`\n\n{render_signature(node)}{render_docstring(ast.get_docstring(node))}\n"
                )
                if name in coverage:
                    parts.append(f"*Measured coverage:* {coverage[name].rstrip('.')}.\n")
    assert set(coverage) <= names, f"coverage of what is not there: {sorted(set(coverage) - names)}"
    return "\n".join(parts)


def describe_broken_promises() -> str:
    rows = json.loads((VALIDITY / "coverage_triage.json").read_text(encoding="utf-8"))
    shares = [100 * row["broken"] for row in rows]
    return (
        f"a promise with a confidence of 90 % was broken in {min(shares):.1f} to {max(shares):.1f} % of draws, median "
        f"{median(shares):.1f} ({rows[0]['replicates']:,} draws in each of {len(rows)} regimes of "
        f"`tests/validity/triage.py`: {'; '.join(row['regime'] for row in rows)})"
    )


def render_false_alarms() -> str:
    rows = json.loads((VALIDITY / "findings.json").read_text(encoding="utf-8"))
    null, power = ([row for row in rows if row["kind"] == kind] for kind in ("null", "power"))
    worlds = [row["world"] for row in null if row["check"] == "gap"]
    runs = null[0]["runs"]
    head = FALSE_ALARMS_HEAD.format(
        runs=runs,
        at_most=100 * limit_of_false_alarms(runs),
        power_runs=power[0]["runs"],
        worlds=f"The worlds of all checks, in this order: {'; '.join(worlds)}. Others are named.",
    )

    def render_shares(mine: list[dict[str, Any]], is_named: bool) -> str:
        told = [f"{100 * row['warned'] / row['runs']:.1f}" for row in mine]
        return "; ".join(
            f"{share} ({row['world']})" if is_named else share for share, row in zip(told, mine, strict=True)
        )

    lines = []
    for check in dict.fromkeys(row["check"] for row in null):
        of_check = [row for row in null if row["check"] == check]
        shares = render_shares([row for row in of_check if row["world"] in worlds], False).replace(";", ",")
        halves = render_shares([row for row in of_check if row["world"] not in worlds], True)
        found = render_shares([row for row in power if row["check"] == check], True)
        lines.append(f"| `{check}` | {'; '.join(filter(None, [shares, halves]))} | {found} |")
    return head + "\n".join(lines) + "\n"


def limit_of_false_alarms(runs: int) -> float:
    """5 %, and two standard errors of so many runs."""
    return 0.05 + 2 * (0.05 * 0.95 / runs) ** 0.5


def rest_of(text: str) -> str:
    return f"\n{text}" if text else ""


def render_signature(node: ast.FunctionDef | ast.ClassDef) -> str:
    """A function's first line as code; of a class nothing."""
    if isinstance(node, ast.ClassDef):
        return ""
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    line = f"{node.name}({ast.unparse(node.args)}){returns}".replace("np.ndarray", "ndarray")
    return f"```text\n{line}\n```\n\n"


def render_docstring(text: str | None) -> str:
    """A docstring as Markdown: examples as code, double backticks as single ones."""
    blocks = []
    for block in (text or "").split("\n\n"):
        if block.lstrip().startswith(">>>"):
            blocks.append(f"```python\n{block}\n```")
        else:
            blocks.append(block.replace("``", "`").replace("<", "&lt;"))
    return "\n\n".join(blocks)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render_statistics_page(), encoding="utf-8")
