"""What did an evaluator say before? Verdicts that a file already has, as an evaluator."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from factaudit.errors import UsageError, suggest_known_name
from factaudit.evaluators.base import Claim, Verdict, evaluator
from factaudit.signature import compute_file_checksum, make_signature
from factaudit.tables import list_plain_rows, read_verdicts


@evaluator(
    "stored", needs="a verdicts file", example="stored:path=verdicts.parquet,evaluator=gpt-4o"
)
@dataclass(frozen=True)
class StoredVerdictsEvaluator:
    """Verdicts that a file already holds.

    path: the file (Parquet, JSONL or CSV). evaluator: whose verdicts; may be left out where the
    file has but one evaluator's. A claim that the file has no verdict on is skipped; verdicts on
    other claims, and repeats, are left out.

    Raises `UsageError` where there is no such file or evaluator, `InputError` where the file is no
    verdicts file.
    """

    path: Path
    evaluator: str | None = None

    def __post_init__(self) -> None:
        if not self.path.is_file():
            raise UsageError(f"evaluator 'stored': no verdicts file {self.path}")

    @property
    def verdict_name(self) -> str:
        """The evaluator's own name, else the file's; not the path, which is another on every
        machine."""
        return self.evaluator or self.path.name.partition(".")[0]

    @cached_property
    def signature(self) -> str:
        # The content, not the path: a file that was moved holds the same verdicts.
        return make_signature(
            "stored", {"evaluator": self.evaluator, "file": compute_file_checksum(self.path)}
        )

    def judge(self, claims: Iterable[Claim]) -> Iterator[Verdict]:
        table = read_verdicts(self.path)
        names = table["evaluator"].unique().tolist()
        wanted = self.evaluator
        if wanted is None and len(names) == 1:
            wanted = names[0]
        elif wanted is None:
            raise UsageError(
                f"{self.path} holds verdicts of {', '.join(names)}: say which (evaluator=NAME)"
            )
        elif wanted not in names:
            raise UsageError(
                f"{self.path} holds no verdicts of {wanted!r}{suggest_known_name(wanted, names)}"
            )
        mine = table[(table["evaluator"] == wanted) & (table["repeat"] == 0)].drop(
            columns=["evaluator", "repeat"]
        )
        found = {row["claim_id"]: Verdict(**row) for row in list_plain_rows(mine)}
        for claim in claims:
            missing = Verdict(
                claim.claim_id, status="skipped", raw=f"no verdict in {self.path.name}"
            )
            yield found.get(claim.claim_id, missing)
