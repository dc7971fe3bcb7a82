"""What ``triage --then`` adds to `triage`: the second judge's verdicts, what its calls cost, and the comparison."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pandas as pd

from factaudit.cli.terminal import print_line

if TYPE_CHECKING:
    from factaudit.estimate.cascade import CascadeResults


def certify_cascade_for_command(
    claims: pd.DataFrame,
    verdicts: pd.DataFrame,
    then: str,
    call_cost: float | None,
    out: Path,
    settings: dict[str, Any],
) -> tuple[CascadeResults, str]:
    """Certify a cascade, and say how its calls are priced.

    A second judge that the verdicts have not is asked of the labelled claims first. Its verdicts are kept in
    ``then.parquet``; a journal in the folder's ``.work`` lets a run that was stopped go on.
    """
    from factaudit.estimate.cascade import certify_cascade
    from factaudit.evaluators.judging import judge, make_named_evaluator
    from factaudit.evaluators.judging_cost import estimate_evaluator_costs
    from factaudit.tables import merge_verdict_tables, write_table

    names = verdicts["evaluator"].unique().tolist()
    name, how_priced = then, ""
    if then not in names:
        second = make_named_evaluator(then)
        name = second.name
        if call_cost is None:
            rows = estimate_evaluator_costs([second], claims)
            calls = sum(row["calls"] for row in rows)
            if calls and all(row["cost"] is not None for row in rows):
                call_cost = sum(row["cost"] for row in rows) / calls
                how_priced = "; replies of full length"
        labelled = _list_labelled_claim_ids(claims, settings["annotations"])
        known = verdicts.loc[verdicts["evaluator"] == name, "claim_id"]
        missing = claims[claims["claim_id"].isin(labelled) & ~claims["claim_id"].isin(known)].reset_index(drop=True)
        if len(missing):
            print_line(f"asking {name} of {len(missing):,} labelled claims")
            judged = judge(missing, [second], journal=out / ".work" / "journal", progress=True)
            write_table(judged, out / "then.parquet")
            verdicts = merge_verdict_tables((verdicts, judged))
    results = certify_cascade(claims, verdicts, name, call_cost=call_cost, **settings)
    return results, how_priced


def _list_labelled_claim_ids(claims: pd.DataFrame, annotations: pd.DataFrame | None) -> pd.Series:
    return claims.loc[claims["label"].notna(), "claim_id"] if annotations is None else annotations["claim_id"]


def display_cascade_beside_single_judges(results: CascadeResults, how_priced: str) -> None:
    """A line for the first judges alone, the cascade, and the second judge of all claims."""
    ways, first, then = results.ways, results.rule.first, results.rule.then
    names = {"first": " + ".join(first), "cascade": "cascade", "second": f"{then} of all"}
    width = max(map(len, names.values()))
    print_line(f"{'':{width}}   asked       cost  to review   minutes")
    for row in ways:
        cost = "?" if row["cost"] is None else f"${row['cost']:,.2f}"
        minutes = "?" if row["minutes"] is None else f"{row['minutes']:,.0f}"
        about = "~" if row["is_estimated"] else ""
        review = f"{about}{row['n_review']:,}"
        print_line(f"{names[row['way']]:{width}}  {row['n_asked']:>6,} {cost:>10} {review:>10} {about + minutes:>9}")
    reasons = [row["reason"] for row in ways if row["reason"]]
    print_line(f"of all claims, those with labels included; asked: claims that {then} judges{how_priced}")
    print_line("; ".join(["each way is certified by itself, only the cascade is promised", *dict.fromkeys(reasons)]))
