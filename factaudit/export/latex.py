r"""Tables for papers (booktabs), and a methods paragraph. Bold only where the best is clear against every other."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from factaudit.audit.core.figure_formatting import PERCENT_COLUMN, format_audit_figure
from factaudit.audit.core.result_rows import MACRO_MEAN
from factaudit.audit.input_description import FLOOR_EVALUATORS
from factaudit.files import write_text
from factaudit.results import Results, Row
from factaudit.tables import STATUSES
from factaudit.text.display_text import format_count

_RATE_HEADINGS = {"bacc": "BAcc", "tpr": "TPR", "tnr": "TNR", "ppr": "PPR"}
_LATEX_ESCAPES = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--"}
_LATEX_ESCAPES |= {letter: "\\" + letter for letter in "&%$#_{}"}


def export_latex(run_dir: Path, out: Path) -> list[Path]:
    """Write ``rates.tex``, ``error_rates.tex`` (where there are systems) and ``methods.tex``.

    A table needs ``\\usepackage{booktabs}``. Intervals stand under their figures, unscored claims in a column.
    """
    results = Results.load(run_dir)
    texts = {
        "rates": _render_latex_rates_table(results),
        "error_rates": _render_latex_error_rates_table(results),
        "methods": compose_latex_methods_paragraph(results) + "\n",
    }
    paths = []
    for name, text in texts.items():
        if text:
            write_text(out / f"{name}.tex", f"% factaudit, {results.signature}\n{text}")
            paths.append(out / f"{name}.tex")
    return paths


def escape_latex(text: str) -> str:
    r"""Text as LaTeX prints it.

    >>> escape_latex("a_b & 5 %")
    'a\\_b \\& 5 \\%'
    """
    return "".join(_LATEX_ESCAPES.get(letter, letter) for letter in text)


def find_best_evaluator_for_latex(results: Results, dataset: str) -> str | None:
    """The evaluator whose BAcc is higher than every other's beyond chance (audit ``differences``); None without one.

    Floors count as others, never as the best.
    """
    names = [row["evaluator"] for row in results.rows("rates", dataset=dataset) if row["bacc"] is not None]
    better: dict[str, set[str]] = {name: set() for name in names}
    rows = results.audits.get("differences", [])
    for row in rows:
        if row["dataset"] != dataset or row.get("key") != "bacc" or row.get("difference_low") is None:
            continue
        a, b = row["evaluator_a"], row["evaluator_b"]
        if row["difference_low"] > 0:
            better.setdefault(a, set()).add(b)
        elif row["difference_high"] < 0:
            better.setdefault(b, set()).add(a)
    floors = {each["name"] for each in results.about.get("evaluators", []) if each.get("floor")}
    found = [name for name in names if len(names) > 1 and better[name] >= set(names) - {name} and name not in floors]
    return next((name for name in found if not name.startswith(FLOOR_EVALUATORS)), None)


def _render_latex_rates_table(results: Results) -> str:
    if not results.audits.get("rates"):
        return ""
    datasets = list(dict.fromkeys(row["dataset"] for row in results.audits["rates"]))
    unscored = any(row["n_unscored"] for row in results.audits["rates"])
    lines = []
    for dataset in datasets:
        best = find_best_evaluator_for_latex(results, dataset)
        lines += [
            rf"\multicolumn{{{1 + len(_RATE_HEADINGS) + unscored}}}{{l}}{{\emph{{{_render_dataset_name(dataset)}}}}}\\"
        ]
        for row in results.rows("rates", dataset=dataset):
            cells = [
                _render_latex_cell(row, key, bold=key == "bacc" and row["evaluator"] == best) for key in _RATE_HEADINGS
            ]
            name = escape_latex(str(row["evaluator"]))
            lines.append(_render_latex_row([name, *cells, *([f"{row['n_unscored']:,}"] if unscored else [])]))
        lines.append(r"\addlinespace")
    heads = ["Evaluator", *(f"{name} (\\%)" for name in _RATE_HEADINGS.values()), *(["unscored"] if unscored else [])]
    level = f"{100 * results.about.get('confidence', 0.95):.4g}"
    has_intervals = any(row.get("bacc_low") is not None for row in results.audits["rates"])
    note = "Rates of the evaluators"
    note += rf", with {level}\,\% intervals. Bold: higher than every other beyond chance." if has_intervals else "."
    return _render_latex_table(heads, lines[:-1], note, "rates")


def _render_latex_error_rates_table(results: Results) -> str:
    rows = [row for row in results.audits.get("quantification", []) if not str(row["system"]).startswith("__")]
    if not rows:
        return ""
    level = "claim" if any(row["level"] == "claim" for row in rows) else "response"
    rows = [row for row in rows if row["level"] == level and not str(row["dataset"]).startswith("__")]
    evaluators = [name for name in results.evaluators if any(row["evaluator"] == name for row in rows)]
    lines: list[str] = []
    for dataset in dict.fromkeys(row["dataset"] for row in rows):
        lines.append(rf"\multicolumn{{{2 + len(evaluators)}}}{{l}}{{\emph{{{_render_dataset_name(dataset)}}}}}\\")
        mine = [row for row in rows if row["dataset"] == dataset]
        for system in dict.fromkeys(row["system"] for row in mine):
            by = {row["evaluator"]: row for row in mine if row["system"] == system}
            labelled = _render_latex_cell(next(iter(by.values())), "labelled_error_rate")
            predicted = [_render_latex_cell(by.get(name, {}), "predicted_error_rate") for name in evaluators]
            lines.append(_render_latex_row([escape_latex(str(system)), labelled, *predicted]))
        lines.append(r"\addlinespace")
    heads = ["System", "labelled (\\%)", *map(escape_latex, evaluators)]
    note = f"Error rates of the systems ({level} level), as labelled and as each evaluator predicts them."
    return _render_latex_table(heads, lines[:-1], note, "error-rates")


def _render_latex_table(column_headings: Sequence[str], table_lines: Sequence[str], caption: str, label: str) -> str:
    return "\n".join(
        [
            r"\begin{table}",
            r"\centering\small",
            rf"\caption{{{caption}}}\label{{tab:{label}}}",
            rf"\begin{{tabular}}{{l{'r' * (len(column_headings) - 1)}}}",
            r"\toprule",
            _render_latex_row(column_headings),
            r"\midrule",
            *table_lines,
            r"\bottomrule",
            r"\end{tabular}",
            r"\end{table}",
            "",
        ]
    )


def _render_latex_row(cells: Sequence[str]) -> str:
    return " & ".join(cells) + r" \\"


def _render_latex_cell(row: Mapping[str, object], key: str, bold: bool = False) -> str:
    value, low, high = (row.get(f"{key}{end}") for end in ("", "_low", "_high"))
    if not isinstance(value, float | int):
        return "--"
    text = format_audit_figure(PERCENT_COLUMN, value)
    text = rf"\textbf{{{text}}}" if bold else text
    if isinstance(low, float | int) and isinstance(high, float | int):
        ends = "--".join(format_audit_figure(PERCENT_COLUMN, end) for end in (low, high))
        text += rf" {{\scriptsize ({ends})}}"
    return text


def _render_dataset_name(dataset: str) -> str:
    return "mean over data sets" if dataset == MACRO_MEAN else escape_latex(dataset)


def compose_latex_methods_paragraph(results: Results) -> str:
    """A paragraph on how the figures were computed, to paste into a paper: only what the run says of itself."""
    about: Row = results.about
    claims = about.get("claims") or []
    n, labelled = (sum(row[key] for row in claims) for key in ("n_claims", "n_labelled"))
    names = [row["name"] for row in about.get("evaluators", [])]
    level = f"{100 * about.get('confidence', 0.95):.4g}"
    told = about.get("evaluators", [])
    missing = {each: sum(row.get(f"n_{each}") or 0 for row in told) for each in STATUSES if each != "ok"}
    size = (
        f" on {n:,} claims of {format_count(len(claims), 'data set')}, {labelled:,} of them labelled" if claims else ""
    )
    text = (
        rf"We audited {format_count(len(names), 'evaluator')} ({escape_latex(', '.join(names))}) with factaudit "
        rf"{escape_latex(str(about.get('factaudit', '')))}{size}. TPR and TNR are the shares of attributable and of "
        rf"unattributable claims that an evaluator recognises, BAcc is their mean."
    )
    if about.get("replicates"):
        text += (
            rf" Intervals ({level}\,\%) take the claims of a document as one cluster; bootstraps have "
            f"{about['replicates']:,} replicates (seed {about.get('seed')})."
        )
    if any(missing.values()):
        kinds = ", ".join(f"{number:,} {status}" for status, number in missing.items() if number)
        text += f" Verdicts without a prediction ({kinds}) count neither as right nor as wrong."
    wrapped = re.sub(r"([|:,])", r"\1\\allowbreak{}", escape_latex(results.signature))
    return rf"{text} Signature: \texttt{{{wrapped}}}."
