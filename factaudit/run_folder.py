"""What all experiments share: settings, the run folder held, calls counted over resumed runs, `experiment.yaml`."""

from __future__ import annotations

import json
import os
import platform
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from pydantic import BaseModel, ConfigDict, Field

from factaudit.arrays.judgements import Judgements
from factaudit.audit import list_computable_audits
from factaudit.audit.audit_options import read_audit_names_and_options
from factaudit.audit.core.audit_declaration import Audit
from factaudit.errors import FactauditError, Problem, UsageError
from factaudit.evaluators.judging import make_named_evaluator
from factaudit.evaluators.registry import find_evaluator_path_options
from factaudit.files import (
    TEMPORARY_PREFIX,
    delete_abandoned_temporaries,
    hold_folder_lock,
    resolve_path,
    write_json,
    write_text,
)
from factaudit.results import Results, Row, compare
from factaudit.signature import compute_file_checksum, hash_texts, make_signature
from factaudit.spec_string import parse_spec_string
from factaudit.version import __version__
from factaudit.yaml_file import YamlFile, YamlPlace
from factaudit.yaml_paths import YamlPathKind, YamlPaths

#: More would take hours and move no digit that is shown.
MAX_REPLICATES = 1_000_000


class RunSettings(BaseModel):
    """What every experiment YAML may say. Paths are relative to the YAML's folder; ``${data}`` stands for ``data``."""

    model_config = ConfigDict(extra="forbid", coerce_numbers_to_str=True)

    title: str = "Evaluators compared"
    data: str | None = None
    audits: list[str | dict[str, dict[str, Any] | None]] | None = None
    replicates: int = Field(default=2000, ge=0, le=MAX_REPLICATES)
    confidence: float = Field(default=0.95, gt=0, lt=1)
    seed: int = Field(default=0, ge=0)
    #: What is asked of an evaluator before the report says yes (`factaudit.audit.core.decision_limits.DecisionLimits`).
    decisions: dict[str, float] = Field(default_factory=dict)
    #: By evaluator the data sets that it was trained on, or how their names begin: the first screen warns of them.
    trained_on: dict[str, list[str]] = Field(default_factory=dict)
    max_cost: float | None = Field(default=None, gt=0)
    #: What a run that has ended was made with, which `write_experiment_yaml` notes; another run does not read it.
    made_with: dict[str, Any] | None = Field(default=None, exclude=True)

    @property
    def compare_arguments(self) -> dict[str, Any]:
        """What `factaudit.results.compare` and those like it take of these."""
        names = ("audits", "title", "seed", "replicates", "confidence", "decisions", "trained_on")
        return {name: getattr(self, name) for name in names}


def check_run_audit_specs(
    file: YamlFile, problems: list[Problem], audits: Sequence[str | dict[str, Any]] | None
) -> None:
    """Find misspelt audits before an hour of judging, not after."""
    named: list[str | dict[str, Any]] = []
    for number, audit in enumerate(audits or ()):
        found = len(problems)
        collect_run_spec_problem(file, problems, read_audit_names_and_options, [*named, audit], "audits", number)
        if len(problems) == found:
            named.append(audit)


def collect_run_spec_problem(
    file: YamlFile, problems: list[Problem], checker: Callable[[Any], object], spec: Any, *place: str | int
) -> None:
    """Call ``checker`` with a value; where it is refused, that is a problem at its line."""
    try:
        checker(spec)
    except UsageError as error:
        problems.append(file.problem(str(error), place))


def resolve_run_evaluator_paths(
    paths: YamlPaths, spec: str | dict[str, dict[str, Any] | None], *place: str | int
) -> str | dict[str, dict[str, Any] | None]:
    """An evaluator as a YAML names it, its options' paths made absolute; what is wrong with it is a problem."""
    try:
        spec = _resolve_run_spec_paths(paths, spec, place)
    except UsageError as error:
        paths.problems.append(paths.file.problem(str(error), place))
    else:
        collect_run_spec_problem(paths.file, paths.problems, make_named_evaluator, spec, *place)
    return spec


def _resolve_run_spec_paths(paths: YamlPaths, spec: Any, place: YamlPlace) -> Any:
    if isinstance(spec, list):
        return [_resolve_run_spec_paths(paths, one, (*place, at)) for at, one in enumerate(spec)]
    if isinstance(spec, str):
        name, given = parse_spec_string(spec)
    elif isinstance(spec, dict) and len(spec) == 1 and isinstance(next(iter(spec.values())), dict):
        name, given = next(iter(spec.items()))
    else:
        return spec
    kinds = find_evaluator_path_options(name)
    changed = {}
    for key, value in given.items():
        if kinds.get(key) is YamlPathKind.EVALUATORS:
            inner = value.split("+") if isinstance(value, str) and name == "ensemble" else value
            resolved = _resolve_run_spec_paths(paths, inner, (*place, name, key))
            changed[key] = value if resolved == inner else resolved
        else:
            changed[key] = paths.resolve_option(kinds.get(key), value, (*place, name, key))
    return spec if changed == given else {name: changed}


#: The experiment of a run folder: it can be run again.
EXPERIMENT_FILE = "experiment.yaml"
#: What runs write at the top of their folders, those of the engines included, and the folders that are theirs alone.
_RUN_FILES = (
    *("claims.parquet", "verdicts.parquet", "annotations.parquet", "matrix.parquet"),
    *("variant_claims.parquet", "variant_verdicts.parquet", "responses.jsonl", "citations.jsonl", "summary.json"),
    *("results.json", "report.html", EXPERIMENT_FILE),
)
_RUN_FOLDERS = ("tables", "figures", ".work")


def list_run_files(folder: Path) -> list[str]:
    """The files at the top of a run folder that are there and a run's."""
    return [name for name in _RUN_FILES if (folder / name).is_file()]


@contextmanager
def lock_run_folder_for_writing(folder: Path, inputs: Iterable[str | Path] = ()) -> Iterator[Path]:
    """Hold a run folder as the only process, without what a killed one was writing; gives its ``.work``.

    Raises `UsageError` where the run would write over one of its inputs.
    """
    check_run_spares_inputs(folder, inputs)
    work = folder / ".work"
    with hold_folder_lock(work, str(folder)):
        # The folder itself may hold more than this run, other run folders among it.
        delete_abandoned_temporaries(folder.glob(f"{TEMPORARY_PREFIX}*"))
        for name in _RUN_FOLDERS:
            delete_abandoned_temporaries((folder / name).rglob(f"{TEMPORARY_PREFIX}*"))
        yield work


def claim_run_folder(folder: Path, sources: Iterable[str | Path], *, overwrite: bool = False) -> None:
    """Note in a run folder what its run is of, so that no other experiment replaces its results unasked.

    sources: the tables, responses or YAML that the run is of. Raises `UsageError` where the folder holds results of
    other sources, unless ``overwrite`` says that they may go, or where the run would write over one of them.
    """
    sources = list(sources)
    check_run_spares_inputs(folder, [source for source in sources if "://" not in str(source)])
    note = folder / ".work" / "sources.json"
    if (folder / EXPERIMENT_FILE).is_file() and not note.is_file() and not overwrite:
        raise UsageError(
            f"{folder} holds an {EXPERIMENT_FILE} that no run wrote, and a run writes one: name another folder with "
            "--out, or replace it with --overwrite"
        )
    top = resolve_path(folder)
    # Relative to the run folder: a project that is moved with its runs keeps them.
    mine = sorted(
        str(source) if "://" in str(source) else os.path.relpath(resolve_path(Path(source)), top) for source in sources
    )
    if (folder / "results.json").is_file() and not overwrite:
        theirs = None
        with suppress(OSError, ValueError):  # missing, or damaged: nothing says that they are of the same
            theirs = json.loads(note.read_text(encoding="utf-8"))
        if theirs != mine:
            of = (
                f" (of {', '.join(os.path.normpath(top / str(one)) for one in theirs)})"
                if isinstance(theirs, list)
                else ""
            )
            raise UsageError(
                f"{folder} holds the results of another experiment{of}: name another folder with --out, or replace "
                "them with --overwrite"
            )
    try:
        note.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FactauditError(f"{folder}: cannot be written to ({error.strerror})") from error
    write_json(note, mine)


def check_run_spares_inputs(folder: Path, inputs: Iterable[str | Path]) -> None:
    """Raise `UsageError` where a run into ``folder`` would write over one of its inputs."""
    top = resolve_path(folder)
    for path in map(Path, inputs):
        place = resolve_path(path)
        inside = place.relative_to(top).parts if place.is_relative_to(top) else ()
        if inside[:1] in {(name,) for name in _RUN_FOLDERS} or inside in {(name,) for name in _RUN_FILES}:
            raise UsageError(f"{path}: the run would write over what it reads; give another run folder than {folder}")


@contextmanager
def count_run_llm_calls(
    callers: Iterable[tuple[str, Any]], calls_path: Path, max_cost: float | None = None
) -> Iterator[list[Row]]:
    """Count what is asked and paid inside the block, together with what earlier runs into this folder did.

    The list that this gives is filled at the end, however that comes: a row per caller. What was sent stands in a
    ledger (`factaudit.llm.ledger`) from before each send on: what a killed process may have paid counts too.

    Args:
        callers: names, and what may count calls (``usage``) and heed a limit (``budget``); what does neither is left
            out.
        calls_path: where cached calls are kept from run to run; the ledger stands beside it.
        max_cost: US dollars that all the callers may spend together, in all runs into this folder; None leaves the
            callers' own limits.
    """
    named = [(name, caller) for name, caller in callers if getattr(caller, "usage", None) is not None]
    if not named:
        yield []
        return
    from factaudit.llm.cost import LLMCostBudget
    from factaudit.llm.ledger import CallLedger, make_empty_account_row

    ledger = CallLedger(calls_path.with_name("ledger.sqlite"))
    ledger.settle_ended_processes()
    whole = LLMCostBudget(max_cost, ledger=ledger)
    before: dict[str, Row] = json.loads(calls_path.read_text(encoding="utf-8")) if calls_path.exists() else {}
    same: Counter[str] = Counter()
    counting: dict[str, tuple[str, Any, int]] = {}
    earlier: list[tuple[Any, Any, str]] = []
    for name, caller in named:
        key = f"{name}|{caller.signature}"
        account = f"{key}#{same[key]}"
        same[key] += 1
        counting[account] = name, caller, caller.usage.cached_calls
        earlier.append((caller.usage, getattr(caller, "budget", None), caller.usage.account))
        caller.usage.account = account
        caller.usage.served.clear()
        caller.usage.forget_cached_replies()
        if hasattr(caller, "budget"):
            own = caller.budget
            caller.budget = (
                whole if own is None or max_cost is not None else LLMCostBudget(own.max_cost, own.prices, ledger)
            )
    rows: list[Row] = []
    try:
        yield rows
    finally:
        paid = ledger.summarise_accounts()
        after: dict[str, Row] = dict(before)
        for account, (name, caller, cached) in counting.items():
            cached_calls = before.get(account, {"cached_calls": 0})["cached_calls"] + caller.usage.cached_calls - cached
            after[account] = {"cached_calls": cached_calls}
            served = sorted({*ledger.list_serving_models(account), *caller.usage.served})
            told = {"cached_calls": cached_calls, "served": ", ".join(served) or None, **caller.usage.cached_row()}
            rows.append({"evaluator": name, **paid.get(account, make_empty_account_row()), **told})
        for (usage, budget, account), (_, caller) in zip(earlier, named, strict=True):
            usage.account = account
            if hasattr(caller, "budget"):
                caller.budget = budget
        if after != before:
            write_json(calls_path, after)
        ledger.close()


def list_file_checksums(paths: Iterable[str | Path]) -> list[Row]:
    """The files behind the tables, as ``about["inputs"]`` and `experiment.yaml` have them."""
    return [{"path": str(path), "checksum": compute_file_checksum(Path(path))} for path in paths]


def sum_run_call_costs(calls: Sequence[Row]) -> float | None:
    """What the calls cost together, in US dollars; None where one has no price."""
    if any(row.get("cost") is None for row in calls):
        return None
    return sum(row["cost"] for row in calls)


def compare_run_tables(
    claims: pd.DataFrame,
    verdicts: pd.DataFrame,
    settings: Mapping[str, Any],
    *,
    audits: Sequence[str | Mapping[str, Any]] | None,
    engine_tables: tuple[pd.DataFrame, pd.DataFrame, Mapping[str, Row]],
    **options: Any,
) -> Results:
    """`factaudit.results.compare` for the tables of an engine, which may have no label, or no claim at all.

    settings: what the engine's own figures depend on besides the verdicts; it becomes part of the signature.
    engine_tables: the tables (they may be the same) that the engine's own audits read, and these with their options.
    Those that do not apply are left out. They come first; the others of ``audits``, by default all, only where there
    are labels. options: of `factaudit.results.compare`.
    """
    known = list_computable_audits()
    named = {} if audits is None else read_audit_names_and_options(audits)
    judged = Judgements.join(*engine_tables[:2])
    asked = {
        name: {**given, **named.get(name, {})}
        for name, given in engine_tables[2].items()
        if _can_apply_audit(known[name], judged)
    }
    results = compare(*engine_tables[:2], audits=[{name: given} for name, given in asked.items()], **options)
    if audits is None and claims["label"].notna().any():
        every = Judgements.join(claims, verdicts)
        named = {name: {} for name, one in known.items() if _can_apply_audit(one, every)}
    elif audits is None:
        named = {name: {} for name, one in known.items() if one.without_labels}
    rest = [{name: given} for name, given in named.items() if name not in engine_tables[2]]
    if rest and claims["claim"].notna().any():
        more = compare(claims, verdicts, audits=rest, **options)
        line = make_signature(results.signature, {"facts": hash_texts(more.signature)})
        about = more.about | {"n_tests": results.about["n_tests"] | more.about["n_tests"]}
        if not set(results.evaluators) & set(more.evaluators):  # what the others' verdicts are made of
            about["verifiers"] = results.about["evaluators"]
        results = Results(line, about, results.audits | more.audits, results.finding_rows + more.finding_rows)
    return replace(results, signature=make_signature(results.signature, settings)) if settings else results


def _can_apply_audit(audit: Audit, judged: Judgements) -> bool:
    return audit.applies is None or audit.applies(judged)


def write_experiment_yaml(
    folder: Path,
    experiment: BaseModel,
    results: Results,
    *,
    provenance: Sequence[Row] = (),
    packages: Sequence[str] = (),
) -> None:
    """Write ``experiment.yaml``: the resolved settings, by which `factaudit run` gives the same figures again.

    ``made_with`` has what gave them: signatures, checksums of the inputs, and versions of packages.
    """
    made_with = {
        "signature": results.signature,
        "inputs": results.about["inputs"],
        "provenance": list(provenance),
        "evaluators": {row["name"]: row["signature"] for row in results.about["evaluators"]},
        "models": {row["evaluator"]: row["served"] for row in results.calls if row.get("served")},
        "versions": {
            "factaudit": __version__,
            "python": platform.python_version(),
            **{package: version(package) for package in packages},
        },
    }
    content = experiment.model_dump(mode="json", exclude_none=True) | {"made_with": made_with}
    write_text(folder / EXPERIMENT_FILE, yaml.safe_dump(content, sort_keys=False, allow_unicode=True))
