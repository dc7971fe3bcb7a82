"""How many labels an interval takes, as `factaudit sample --plan` says it on a terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from factaudit.cli.terminal import print_line
from factaudit.text.display_text import format_count


def display_label_plan(
    plan_rows: Sequence[dict[str, Any]], width: float, seconds_per_label: float, has_pilot: bool
) -> None:
    """Widths by number of labels, the mean over systems, and the labels that the wanted width takes."""
    from factaudit.estimate.label_budget_plan import (
        N_WORLDS,
        PLANNED_WAYS,
        WORLD_QUANTILES,
        interpolate_label_budget_for_width,
    )

    quantiles = " to ".join(f"{100 * end:g}" for end in WORLD_QUANTILES)
    in_brackets = f"(in brackets: the {quantiles} % quantiles of {N_WORLDS} simulated worlds)"

    for dataset in dict.fromkeys(row["dataset"] for row in plan_rows):
        mine = [row for row in plan_rows if row["dataset"] == dataset]
        if unfit := list(dict.fromkeys(row["system"] for row in mine if row["reason"])):
            print_line(f"\nBeware: with this TPR and TNR no error rate gives the share of claims of {', '.join(unfit)}")
            print_line(f"that {mine[0]['evaluator']} calls errors: the widths of {dataset} are rough at best.")
        print_line(f"\n{dataset}, number of labels: mean width of the 95 % intervals in points")
        print_line(in_brackets)
        for method in PLANNED_WAYS:
            known = [
                row
                for row in mine
                if row["method"] == method and row["system"] == "__mean__" and row["width"] is not None
            ]
            cells = [
                f"{row['n_labels']:,}: "
                + "{:.1f} ({:.1f}–{:.1f})".format(*(100 * row[f"width{end}"] for end in ("", "_low", "_high")))
                for row in known
            ]
            print_line(f"  {method:<15} {'   '.join(cells) or 'no interval: fewer than 10 labels a system'}")
            middle, low, high = interpolate_label_budget_for_width(mine, method, width)
            if middle is not None:
                span = f"{low or middle:,.0f} to {f'{high:,.0f}' if high else 'more than planned for'}"
                hours = middle * seconds_per_label / 3600
                pace = f"{hours:.1f} hours at {seconds_per_label:g} seconds a label"
                print_line(f"  {'':<15} {100 * width:g} points: about {middle:,.0f} labels ({span}), {pace}")
            elif known:  # of more labels no width may be known
                most = format_count(max(row["n_labels"] for row in known), "label")
                print_line(f"  {'':<15} {100 * width:g} points: not reached with up to {most}")
    if has_pilot:
        print_line(
            "\nOn each set measured, 8 to 13 of 14 pilots of 66 labels told the width at 200 labels within 25 %:"
        )
        print_line("take the range, and plan again on the way.")
    else:
        main = plan_rows[0]["evaluator"]
        print_line(f"\nFrom stated TPR and TNR, taken for those of {main} (--main) on all systems:")
        print_line("a pilot of 50 labels knows more.")
