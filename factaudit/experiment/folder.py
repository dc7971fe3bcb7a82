"""What do all experiments share? Settings, counts of calls over resumed runs, `experiment.yaml` and
the run folder.

`RunFolder` is the only writer of run folders. It locks the folder for one process, keeps one
experiment from replacing the results of another, recognises a run in which nothing has changed, and
ends every kind of run.
"""

from __future__ import annotations

import json
import os
import re
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from factaudit.errors import UsageError
from factaudit.experiment.unchanged import list_versions, read_run_record
from factaudit.files import (
    TEMPORARY_PREFIX,
    delete_abandoned_temporaries,
    hold_folder_lock,
    resolve_path,
    write_json,
    write_text,
)
from factaudit.publications.register import read_publication_citation, recognise_publications
from factaudit.report.rendering import render_report
from factaudit.report.results_json import write_results_json
from factaudit.results import Results, Row
from factaudit.signature import compute_file_checksum

if TYPE_CHECKING:
    from factaudit.report.claim_browser import ClaimBrowser

#: A larger number would take hours and change no digit that is shown.
MAX_REPLICATES = 1_000_000


class RunSettings(BaseModel):
    """The settings that every experiment YAML may have. Paths are relative to the YAML's folder;
    ``${data}`` stands for the value of ``data``."""

    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

    title: str = "Evaluators compared"
    data: str | None = None
    audits: list[str | dict[str, dict[str, Any] | None]] | None = None
    replicates: int = Field(default=2000, ge=0, le=MAX_REPLICATES)
    confidence: float = Field(default=0.95, gt=0, lt=1)
    seed: int = Field(default=0, ge=0)
    #: The limits that an evaluator must meet before the report says yes
    #: (`factaudit.audit.core.audited_run.DecisionLimits`).
    require: dict[str, float] = Field(default_factory=dict)
    #: For each evaluator: the data sets that it was trained on, or the beginnings of their names.
    #: The first screen warns about them.
    trained_on: dict[str, list[str]] = Field(default_factory=dict)
    max_cost: float | None = Field(default=None, gt=0)
    #: What a finished run was made with; `RunFolder.finish` records it, and a new run ignores it.
    made_with: dict[str, Any] | None = Field(default=None, exclude=True)

    @property
    def compare_arguments(self) -> dict[str, Any]:
        """The settings that `factaudit.results.compare` and similar functions take."""
        names = ("audits", "title", "seed", "replicates", "confidence", "require", "trained_on")
        return {name: getattr(self, name) for name in names}

    def run_into(
        self, out: Path, *, progress: bool, overwrite: bool, say: Callable[[str], None]
    ) -> Results:
        """Run the experiment and write its run folder. See `factaudit.experiment.run` for the
        arguments."""
        raise NotImplementedError

    def estimate_cost(self) -> list[Row]:
        """The most that the calls will cost: one row for each evaluator or step that asks a
        language model. Nothing is sent.

        Rows are those of `factaudit.llm.cost.estimate_llm_judging_cost`.
        """
        raise NotImplementedError


#: The file in a run folder that holds the experiment and can be run again.
EXPERIMENT_FILE = "experiment.yaml"
#: The page that `factaudit view` writes.
CLAIM_PAGE = "claims.html"
#: The page on which one more person labels the claims that annotators dispute.
DISPUTED_PAGE = "disputed.html"
#: The files and folders that runs, including those of engines, write at the top of a run folder.
_RUN_FILES = (
    *(
        "claims.parquet",
        "verdicts.parquet",
        "annotations.parquet",
        "counts.parquet",
        "matrix.parquet",
    ),
    *(
        "variant_claims.parquet",
        "variant_verdicts.parquet",
        "responses.jsonl",
        "citations.jsonl",
    ),
    *("results.json", "report.html", EXPERIMENT_FILE, CLAIM_PAGE, DISPUTED_PAGE),
)
_RUN_FOLDERS = ("tables", "figures", ".work")


@dataclass
class RunFolder:
    """A run folder that is being written: ``with RunFolder.open(out, sources) as run:
    run.finish(experiment, results)``.

    work: its folder ``.work``, for journals.
    """

    path: Path
    sources: Sequence[str] = ()
    say: Callable[[str], None] = lambda text: None

    @classmethod
    @contextmanager
    def open(
        cls,
        path: str | Path,
        sources: Iterable[str | Path] = (),
        *,
        overwrite: bool = False,
        say: Callable[[str], None] = lambda text: None,
    ) -> Iterator[RunFolder]:
        """Lock a run folder for this process and remove what a killed process left half-written.

        sources: everything that the run reads. Raises `UsageError` if the run would overwrite one
        of its sources, or if the folder holds the results of other sources and ``overwrite`` is not
        set.
        """
        folder = Path(path)
        listed = sorted(
            str(one) if "://" in str(one) else str(resolve_path(Path(one))) for one in sources
        )
        check_run_spares_inputs(folder, [one for one in listed if "://" not in one])
        # Paths are relative to the run folder, so that a project that was moved or copied counts as
        # the same experiment.
        whole = str(resolve_path(folder))
        run = cls(
            folder, [one if "://" in one else os.path.relpath(one, whole) for one in listed], say
        )
        if listed and not overwrite:
            run._check_is_of_same_sources()
        with hold_folder_lock(run.work, str(folder)):
            # The folder may contain more than this run, for example other run folders.
            delete_abandoned_temporaries(folder.glob(f"{TEMPORARY_PREFIX}*"))
            for name in _RUN_FOLDERS:
                delete_abandoned_temporaries((folder / name).rglob(f"{TEMPORARY_PREFIX}*"))
            yield run

    @property
    def work(self) -> Path:
        return self.path / ".work"

    def _check_is_of_same_sources(self) -> None:
        """Raise `UsageError` if the folder holds an experiment with other sources."""
        told: Any = None
        with suppress(OSError, ValueError, yaml.YAMLError):
            told = yaml.safe_load((self.path / EXPERIMENT_FILE).read_text(encoding="utf-8"))
        theirs = (told.get("made_with") or {}).get("sources") if isinstance(told, dict) else None
        if theirs is None and (self.path / EXPERIMENT_FILE).is_file():
            raise UsageError(
                f"{self.path} holds an {EXPERIMENT_FILE} that no run wrote, and a run writes one:"
                " name another folder with --out, or replace it with --overwrite"
            )
        if theirs is None:  # a run that was made by Python code has no experiment to write
            theirs = read_run_record(self.path).get("sources")
        if (self.path / "results.json").is_file() and theirs != self.sources:
            of = f" (of {', '.join(map(str, theirs))})" if theirs else ""
            raise UsageError(
                f"{self.path} holds the results of another experiment{of}: name another folder with"
                " --out, or replace them with --overwrite"
            )

    def finish(
        self,
        experiment: BaseModel | None,
        results: Results,
        *,
        claim_browser: ClaimBrowser | None = None,
        provenance: Sequence[Row] = (),
    ) -> Results:
        """Write ``experiment.yaml``, ``results.json`` and the report, say where the report is, and
        return the results.

        experiment: its resolved settings, with which `factaudit run` gives the same figures again;
        None if there are none, for example if Python code calls an engine.
        claim_browser: the claims in the folder, if they are available.
        provenance: where the tables and evaluators come from.
        """
        if experiment is not None:
            made_with = {
                "signature": results.signature,
                "sources": list(self.sources),
                "inputs": results.about["inputs"],
                "provenance": list(provenance),
                "evaluators": {
                    row["name"]: row["signature"] for row in results.about["evaluators"]
                },
                "models": {
                    row["evaluator"]: row["served"] for row in results.calls if row.get("served")
                },
                "versions": list_versions(),
            }
            content = experiment.model_dump(mode="json", exclude_none=True) | {
                "made_with": made_with
            }
            write_text(
                self.path / EXPERIMENT_FILE,
                yaml.safe_dump(content, sort_keys=False, allow_unicode=True),
            )
        write_results_json(self.path, results.to_dict())
        if published := recognise_publications(results.about["inputs"]):
            write_text(
                self.path / "references.bib", "\n".join(map(read_publication_citation, published))
            )
        self.render(claim_browser=claim_browser)
        self.say(f"report    {self.path / 'report.html'}")
        return results

    def render(self, *, png: bool = False, claim_browser: ClaimBrowser | None = None) -> list[Path]:
        """Render the report of ``results.json``, with PNGs of its figures if asked for, and record
        the files of the run.

        Tables and figures of an earlier run that this one does not have are removed.
        """
        (self.path / CLAIM_PAGE).unlink(missing_ok=True)  # it shows the claims of the earlier run
        paths = render_report(self.path, png=png, claim_browser=claim_browser)
        names = {path.relative_to(self.path).as_posix() for path in paths}
        names |= {name for name in _RUN_FILES if (self.path / name).is_file()}
        record = read_run_record(self.path)
        for name in set(record.get("files", {})) - names:
            if re.fullmatch(r"(tables|figures)/[\w-][\w.-]*", name):
                (self.path / name).unlink(missing_ok=True)
        files = {name: compute_file_checksum(self.path / name) for name in sorted(names)}
        kept = {"sources": list(self.sources)} if self.sources else record
        write_json(self.work / "run.json", {**kept, "files": files})
        return paths


def check_run_spares_inputs(folder: Path, inputs: Iterable[str | Path]) -> None:
    """Raise `UsageError` if a run into ``folder`` would overwrite one of its inputs."""
    top = resolve_path(folder)
    for path in map(Path, inputs):
        place = resolve_path(path)
        inside = place.relative_to(top).parts if place.is_relative_to(top) else ()
        if inside[:1] in {(name,) for name in _RUN_FOLDERS} or inside in {
            (name,) for name in _RUN_FILES
        }:
            raise UsageError(
                f"{path}: the run would write over what it reads; give another run folder than"
                f" {folder}"
            )


@contextmanager
def count_run_llm_calls(
    callers: Iterable[tuple[str, Any]], calls_path: Path, max_cost: float | None = None
) -> Iterator[list[Row]]:
    """Count the calls and their costs inside the block, together with those of earlier runs into
    this folder.

    The returned list is filled at the end, also after an error: one row per caller. Every call is
    recorded in the caller's cache (`factaudit.llm.store`) before it is sent, so calls that a killed
    process may have paid for count, too.

    Args:
      callers: by name, objects that may count calls (``usage``) and obey a limit (``budget``).
        Objects that do neither are left out.
      calls_path: where cached calls, and the money spent by the run, are kept from run to run.
        Calls of callers without a cache are kept in a store beside it.
      max_cost: US dollars that all callers together may spend, over all runs into this folder. None
        keeps the smallest of the callers' own limits.
    """
    named = [
        (name, caller) for name, caller in callers if getattr(caller, "usage", None) is not None
    ]
    if not named:
        yield []
        return
    from factaudit.llm.cost import LLMCostBudget
    from factaudit.llm.store import EMPTY_CALLER_ROW

    kept: dict[str, Any] = {"run": uuid.uuid4().hex, "caches": [], "callers": {}}
    if calls_path.exists():
        kept = json.loads(calls_path.read_text(encoding="utf-8"))
    limited = [caller for _, caller in named if hasattr(caller, "budget")]
    own = [caller.budget for caller in limited if caller.budget is not None]
    if max_cost is None:
        max_cost = min((one.max_cost for one in own if one.max_cost is not None), default=None)
    budget = LLMCostBudget(max_cost, run=kept["run"], path=calls_path.with_name("sends.sqlite"))
    caches = {
        str(path.absolute())
        for one in limited
        if (path := getattr(one, "cache_path", lambda: None)())
    }
    kept["caches"] = sorted({*kept["caches"], *caches})
    write_json(calls_path, kept)
    for path in [None, *filter(Path.exists, map(Path, kept["caches"]))]:
        budget.open_store(path).settle_abandoned_sends()
    same: Counter[str] = Counter()
    counting: list[tuple[str, str, Any, int]] = []
    earlier = [
        (caller, getattr(caller, "budget", None), caller.usage.caller) for _, caller in named
    ]
    for name, caller in named:
        signature = f"{name}|{caller.signature}"
        key = caller.usage.caller = f"{signature}#{same[signature]}"
        same[signature] += 1
        counting.append((key, name, caller, caller.usage.cached_calls))
        caller.usage.served.clear()
        caller.usage.kept = ()
        if hasattr(caller, "budget"):
            caller.budget = budget
    rows: list[Row] = []
    try:
        yield rows
    finally:
        paid = budget.summarise_callers()
        for key, name, caller, cached in counting:
            cached_calls = kept["callers"].get(key, 0) + caller.usage.cached_calls - cached
            kept["callers"][key] = cached_calls
            row = paid.get(key, EMPTY_CALLER_ROW)
            served = sorted(caller.usage.served)
            told = {"cached_calls": cached_calls, "served": ", ".join(served) or None}
            rows.append({"evaluator": name, **caller.usage.row(), **row, **told})
        for caller, before, usage_name in earlier:
            caller.usage.caller = usage_name
            if hasattr(caller, "budget"):
                caller.budget = before
        write_json(calls_path, kept)
        budget.close()


def list_file_checksums(paths: Iterable[str | Path]) -> list[Row]:
    """The files behind the tables, in the form of ``about["inputs"]`` and `experiment.yaml`."""
    return [{"path": str(path), "checksum": compute_file_checksum(Path(path))} for path in paths]


def sum_run_call_costs(calls: Sequence[Row]) -> float | None:
    """The total cost of the calls in US dollars; None if one of them has no known price."""
    if any(row.get("cost") is None for row in calls):
        return None
    return sum(row["cost"] for row in calls)
