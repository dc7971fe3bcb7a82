"""What people said, put together: ``labels``."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from factaudit.cli.options import PATH, RULE, SEED, example
from factaudit.cli.show import show_agreement
from factaudit.cli.terminal import say
from factaudit.cli.verb import Verb, answer
from factaudit.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd


@click.command(
    cls=Verb,
    gives={
        "out": "string: the annotations together",
        "agreement": "array: per pair of annotators (__all__: all of them): n, percent, kappa, alpha; _low and _high",
        "rule": "string: how labels were made",
        "labels": "object: attributable, unattributable and without, how many; of the rule mean: mean and without",
        "disagreements": "array: the claim_id of claims with both labels",
        "page": "string or null: the page to adjudicate on",
    },
    short_help="Merge annotations: agreement, disagreements, labels.",
    epilog=example(
        "factaudit labels ann.csv ben.csv --claims claims.parquet --out labels.parquet --page disagree.html"
    ),
)
@click.argument("annotations", type=PATH, nargs=-1, required=True)
@click.option("--out", type=PATH, required=True, help="The annotations together: .parquet, .jsonl[.gz] or .csv[.gz].")
@click.option("--claims", type=PATH, help="The claims that they are of: checked, and needed for --page.")
@RULE
@click.option("--grade", "grades", multiple=True, metavar="WORD=1|0|", help="What a grade means: partially=0.")
@click.option("--page", type=PATH, help="A page with what annotators disagree on, to adjudicate: .html.")
@SEED
def labels(
    annotations: tuple[Path, ...],
    out: Path,
    claims: Path | None,
    rule: str,
    grades: Sequence[str],
    page: Path | None,
    seed: int,
) -> None:
    """Merge annotation files, say how far the annotators agree, and make labels of them by a rule."""
    from factaudit.estimate.agreement import agreement, disagreements
    from factaudit.files import spare
    from factaudit.tables import read_claims, suffix, write_table
    from factaudit.tables.annotations import judgements, labels_by, read_annotations

    suffix(out)
    spare([*annotations, *([claims] if claims else [])], out, page)
    if page is not None and claims is None:
        raise UsageError("--page shows the claims: name them with --claims")
    table = None if claims is None else read_claims(claims)
    together = read_annotations(*annotations, claims=table)
    judged = judgements(together, _grades(grades))
    made = labels_by(rule, judged)
    write_table(together, out)
    split = disagreements(judged)
    rows = agreement(judged, seed=seed)
    show_agreement(rows, made, rule, len(split))
    say(str(out))
    if page is not None and table is not None and len(split):
        from factaudit.estimate.page import write_page

        write_page(table[table["claim_id"].isin(split)], page, "adjudicator", seed)
        say(str(page))
    elif page is not None:
        page = None
        say("no disagreement: no page to write")
    found: dict[str, Any] = {"without": int(made.isna().sum())}
    found |= {"mean": float(made.mean())} if rule == "mean" else _labels(made)
    told = {"agreement": rows, "rule": rule, "labels": found, "disagreements": list(split)}
    answer({"out": out, "page": page, **told})


def _labels(made: pd.Series) -> dict[str, int]:
    return {"attributable": int((made == 1).sum()), "unattributable": int((made == 0).sum())}


def _grades(given: Sequence[str]) -> dict[str, int | None] | None:
    found: dict[str, int | None] = {}
    for text in given:
        name, equals, value = text.rpartition("=")
        if not equals or value not in ("1", "0", ""):
            raise UsageError(f"expected GRADE=1, GRADE=0 or GRADE= (no label), found {text!r}")
        found[name] = int(value) if value else None
    return found or None
