"""The page to label on: one HTML file that opens offline, with no script but its own and no way to
the network.

Texts are data: they stand in a JSON block and reach the page as text nodes. A content security
policy by hashes lets nothing else run or load.
"""

from __future__ import annotations

import base64
import hashlib
import json
from pathlib import Path

import numpy as np
import pandas as pd
from jinja2 import Environment, StrictUndefined
from markupsafe import Markup

from factaudit.errors import InputError, Problem
from factaudit.estimate.sample import LabelSample
from factaudit.files import write_text
from factaudit.signature import hash_texts
from factaudit.tables import find_claim_positions
from factaudit.tables.schema import is_text_placeholder

_PAGE_FOLDER = Path(__file__).parent


def write_labelling_pages(
    sample: LabelSample, claims: pd.DataFrame, path: Path, seed: int = 0
) -> list[Path]:
    """Write a page for each annotator of a sample's last phase; returns their paths.

    With several annotators the pages are called ``<path>-1.html``, ``<path>-2.html``, ... Raises
    `InputError` where ``path`` is not HTML, or where the claims of the sample have no text.
    """
    _check_html_suffix(path)
    rows = sample.rows[sample.rows["phase"] == len(sample.plan.drawn) - 1]
    paths = []
    for number in range(1, sample.plan.annotators + 1):
        mine = rows[[str(number) in whose.split() for whose in rows["annotators"]]]
        drawn = claims.iloc[find_claim_positions(claims, mine["claim_id"])]
        several = sample.plan.annotators > 1
        target = path.with_name(f"{path.stem}-{number}{path.suffix}") if several else path
        together = sample.plan.level == "response"
        paths.append(write_labelling_page(drawn, target, f"annotator-{number}", seed, together))
    return paths


def write_labelling_page(
    claims: pd.DataFrame, path: Path, annotator: str, seed: int = 0, by_response: bool = False
) -> Path:
    """Write the page of one annotator; the order is shuffled by seed and annotator (whole responses
    together)."""
    _check_html_suffix(path)
    if not has_texts(claims):
        raise InputError(
            str(path),
            [
                Problem(
                    "the claims have no text to show on a page; name its column with --claim COLUMN"
                )
            ],
        )
    shuffled = _shuffle_claims(claims, annotator, seed, by_response)
    write_text(path, render_labelling_page(shuffled, annotator, path.stem))
    return path


def has_texts(claims: pd.DataFrame) -> bool:
    """Whether every claim has a text that a page can show."""
    texts = claims["claim"]
    return not (texts.isna().any() or texts.map(is_text_placeholder).any())


def render_labelling_page(claims: pd.DataFrame, annotator: str, name: str) -> str:
    """The page's HTML: claims in their order, nothing of systems or verdicts. Its labels are saved
    under its name."""
    documents = claims["doc"].astype(object).where(claims["doc"].notna(), "")
    codes, texts = pd.factorize(documents)
    ids = claims["claim_id"].tolist()
    data = {
        "page": hash_texts(annotator, *ids),
        "name": name,
        "annotator": annotator,
        "docs": [str(text) for text in texts],
        "claims": [
            {"id": claim_id, "claim": claim, "doc": int(doc)}
            for claim_id, claim, doc in zip(ids, claims["claim"], codes, strict=True)
        ],
    }
    # In a script block of data only "</script" and "<!--" could end it: no "<" is left. So nothing
    # else is escaped.
    text = json.dumps(data, ensure_ascii=False).replace("<", "\\u003c")
    script, style = (
        (_PAGE_FOLDER / name).read_text(encoding="utf-8") for name in ("page.js", "page.css")
    )
    environment = Environment(autoescape=True, undefined=StrictUndefined)
    template = environment.from_string((_PAGE_FOLDER / "page.html.j2").read_text(encoding="utf-8"))
    return template.render(
        script=Markup(script),
        style=Markup(style),
        data=Markup(text),
        script_hash=_hash_for_security_policy(script),
        style_hash=_hash_for_security_policy(style),
        n_claims=len(claims),
    )


def _hash_for_security_policy(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _check_html_suffix(path: Path) -> None:
    if path.suffix.lower() not in (".html", ".htm"):
        raise InputError(str(path), [Problem("expected a name that ends in .html")])


def _shuffle_claims(
    claims: pd.DataFrame, annotator: str, seed: int, by_response: bool
) -> pd.DataFrame:
    random = np.random.default_rng([seed, int(hash_texts(annotator), 16)])
    claims = claims.sort_values("claim_id")
    if not by_response:
        return claims.iloc[random.permutation(len(claims))]
    keys = claims[["dataset", "system", "response_id"]].astype("str")
    unit = keys.groupby(list(keys), sort=True, dropna=False).ngroup().to_numpy()
    return claims.iloc[np.argsort(random.permutation(int(unit.max()) + 1)[unit], kind="stable")]
