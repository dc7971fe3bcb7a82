r"""How does a run become tables for a paper (booktabs) and a paragraph on methods?"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from factaudit.audit.core.result_rows import MACRO_MEAN, is_total_key
from factaudit.audit.core.wording import PERCENT_COLUMN, format_audit_figure
from factaudit.files import write_text
from factaudit.results import Results
from factaudit.tables import STATUSES
from factaudit.text.display_text import format_count

_RATE_HEADINGS = {"bacc": "BAcc", "tpr": "TPR", "tnr": "TNR", "ppr": "PPR"}
_LATEX_ESCAPES = {
    "\\": r"\textbackslash{}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "–": "--",
}
_LATEX_ESCAPES |= {letter: "\\" + letter for letter in "&%$#_{}"}


def export_latex(run_dir: Path, out: Path) -> list[Path]:
    """Write ``rates.tex``, ``error_rates.tex`` (where there are systems) and ``methods.tex``.

    A table needs ``\\usepackage{booktabs}``. Intervals stand beside their figures, unscored claims
    in a column.
    """
    results = Results.load(run_dir)
    texts = {
        "rates": _render_rates_table(results),
        "error_rates": _render_error_rates_table(results),
        "methods": compose_latex_methods_paragraph(results) + "\n",
    }
    paths = []
    for name, text in texts.items():
        if text:
            write_text(out / f"{name}.tex", f"% factaudit, {results.signature}\n{text}")
            paths.append(out / f"{name}.tex")
    return paths


def escape_latex(text: str) -> str:
    r"""Text with the characters escaped that LaTeX would interpret.

    >>> escape_latex("a_b & 5 %")
    'a\\_b \\& 5 \\%'
    """
    return "".join(_LATEX_ESCAPES.get(letter, letter) for letter in text)


def _render_rates_table(results: Results) -> str:
    rows = results.audits.get("rates") or []
    has_unscored = any(row["n_unscored"] for row in rows)
    blocks: dict[str, list[list[str]]] = {}
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        for row in results.rows("rates", dataset=dataset):
            figures = [_render_figure(row, key) for key in _RATE_HEADINGS]
            unscored = [f"{row['n_unscored']:,}"] if has_unscored else []
            blocks.setdefault(dataset, []).append(
                [escape_latex(str(row["evaluator"])), *figures, *unscored]
            )
    heads = [
        "Evaluator",
        *(f"{name} (\\%)" for name in _RATE_HEADINGS.values()),
        *["unscored"] * has_unscored,
    ]
    note = "Rates of the evaluators"
    if any(row.get("bacc_low") is not None for row in rows):
        note += rf", with {100 * results.about.get('confidence', 0.95):.4g}\,\% intervals"
    return _render_table(heads, blocks, f"{note}.", "rates")


def _render_error_rates_table(results: Results) -> str:
    rows = [
        row for row in results.audits.get("quantification") or [] if not is_total_key(row["system"])
    ]
    level = "claim" if any(row["level"] == "claim" for row in rows) else "response"
    by_place: dict[tuple[str, str], dict[str, Mapping[str, object]]] = {}
    for row in rows:
        if row["level"] == level and not is_total_key(row["dataset"]):
            by_place.setdefault((row["dataset"], str(row["system"])), {})[row["evaluator"]] = row
    evaluators = [
        name for name in results.evaluators if any(name in found for found in by_place.values())
    ]
    blocks: dict[str, list[list[str]]] = {}
    for (dataset, system), found in by_place.items():
        labelled = _render_figure(next(iter(found.values())), "labelled_error_rate")
        predicted = [
            _render_figure(found.get(name, {}), "predicted_error_rate") for name in evaluators
        ]
        blocks.setdefault(dataset, []).append([escape_latex(system), labelled, *predicted])
    note = (
        f"Error rates of the systems ({level} level), as labelled and as each evaluator predicts"
        " them."
    )
    return _render_table(
        ["System", "labelled (\\%)", *map(escape_latex, evaluators)], blocks, note, "error-rates"
    )


def _render_table(
    heads: Sequence[str], blocks: Mapping[str, Sequence[Sequence[str]]], caption: str, label: str
) -> str:
    """A table in which the lines of each data set stand under its name; empty if there are no
    lines."""
    if not blocks:
        return ""
    lines = []
    for dataset, rows in blocks.items():
        name = "mean over data sets" if dataset == MACRO_MEAN else escape_latex(dataset)
        lines.append(rf"\multicolumn{{{len(heads)}}}{{l}}{{\emph{{{name}}}}}\\")
        lines += [*(" & ".join(row) + r" \\" for row in rows), r"\addlinespace"]
    body = "\n".join(lines[:-1])
    return rf"""\begin{{table}}
\centering\small
\caption{{{caption}}}\label{{tab:{label}}}
\begin{{tabular}}{{l{"r" * (len(heads) - 1)}}}
\toprule
{" & ".join(heads)} \\
\midrule
{body}
\bottomrule
\end{{tabular}}
\end{{table}}
"""


def _render_figure(row: Mapping[str, object], key: str) -> str:
    value, low, high = (row.get(f"{key}{end}") for end in ("", "_low", "_high"))
    if value is None:
        return "--"
    text = format_audit_figure(PERCENT_COLUMN, value)
    if low is None or high is None:
        return text
    ends = "--".join(format_audit_figure(PERCENT_COLUMN, end) for end in (low, high))
    return rf"{text} {{\scriptsize ({ends})}}"


def compose_latex_methods_paragraph(results: Results) -> str:
    """A paragraph about how the figures were computed, to paste into a paper. It states only what
    the run records."""
    about = results.about
    claims, told = about.get("claims") or [], about.get("evaluators") or []
    n, labelled = (sum(row[key] for row in claims) for key in ("n_claims", "n_labelled"))
    size = (
        f" on {n:,} claims of {format_count(len(claims), 'data set')}, {labelled:,} of them"
        " labelled" * bool(claims)
    )
    names = escape_latex(", ".join(results.evaluators))
    text = (
        rf"We audited {format_count(len(told), 'evaluator')} ({names}) with factaudit "
        rf"{escape_latex(str(about.get('factaudit', '')))}{size}. TPR and TNR are the shares of"
        r" attributable and of "
        "unattributable claims that an evaluator recognises, BAcc is their mean."
    )
    if about.get("replicates"):
        level = f"{100 * about.get('confidence', 0.95):.4g}"
        text += (
            rf" Intervals ({level}\,\%) take the claims of a document as one cluster; "
            f"bootstraps have {about['replicates']:,} replicates (seed {about.get('seed')})."
        )
    missing = {
        each: sum(row.get(f"n_{each}") or 0 for row in told) for each in STATUSES if each != "ok"
    }
    if kinds := ", ".join(f"{number:,} {status}" for status, number in missing.items() if number):
        text += f" Verdicts without a prediction ({kinds}) count neither as right nor as wrong."
    wrapped = re.sub(r"([|:,])", r"\1\\allowbreak{}", escape_latex(results.signature))
    return rf"{text} Signature: \texttt{{{wrapped}}}."
