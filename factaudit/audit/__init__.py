"""Which audits are there? Every file here that declares one, and those of other packages.

Each computes rows from claims and verdicts, with no evaluator at hand, and says what it computes
(`factaudit.audit.core.audit_declaration`). Adding an audit is adding its file.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from pydantic import ValidationError

from factaudit.audit.core.audit_declaration import Audit
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.checks import Check
from factaudit.audit.core.result_rows import Row
from factaudit.errors import UsageError, suggest_known_name

#: Distributions add audits of their own under this entry point group: ``name = "package.module"``,
#: a module with ``AUDIT`` or ``AUDITS``, or ``"package.module:AUDIT"``.
AUDIT_ENTRY_POINTS = "factaudit.audits"


#: The order of the report, of lists and of findings; audits that are not named here come last, by
#: name.
REPORT_ORDER = (
    "estimate_summary",
    "estimates",
    "estimate_ranks",
    "estimate_differences",
    "factscore",
    "dfactscore",
    "dfactscore_gap",
    "dfactscore_linking",
    "dfactscore_elsewhere",
    "factscore_agreement",
    "citations",
    "decomposition",
    "sensitivity",
    "retrieval",
    "rates",
    "differences",
    "discrimination",
    "triage",
    "consistency",
    "quantification",
    "headroom",
    "ranking",
    "ranking_pairs",
    "surface_bias",
    "covariates",
    "chunking",
    "chunking_rates",
    "adjustment",
    "invariance",
    "stability",
    "agreement",
    "ceiling",
    "grades",
)


def load_builtin_audits() -> list[Audit]:
    """The audits that the files of this package declare, in the order of the report."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    return _sort_audits([audit for module in modules for audit in _list_declared_audits(module)])


@cache
def load_all_audits() -> dict[str, Audit]:
    """All audits by name, in the order of the report; a third-party one cannot replace one of ours.

    The tables that only engines write are among them: they have no ``compute``. A package whose
    audits cannot be loaded is left out with a warning.
    """
    found = {audit.name: audit for audit in load_builtin_audits()}
    for point in sorted(entry_points(group=AUDIT_ENTRY_POINTS), key=lambda p: p.name):
        try:
            theirs = _list_declared_audits(point.load())
        except Exception as error:
            package = point.dist.name if point.dist else point.value
            warnings.warn(f"audits of the package {package} are left out: {error}", stacklevel=2)
            continue
        found = {audit.name: audit for audit in theirs} | found
    return {audit.name: audit for audit in _sort_audits(found.values())}


def _sort_audits(audits: Iterable[Audit]) -> list[Audit]:
    places = {name: place for place, name in enumerate(REPORT_ORDER)}
    return sorted(audits, key=lambda audit: (places.get(audit.name, len(places)), audit.name))


def list_computable_audits() -> dict[str, Audit]:
    """Those of `load_all_audits` that can be computed from claims and verdicts."""
    return {name: audit for name, audit in load_all_audits().items() if audit.compute is not None}


def _list_declared_audits(source: ModuleType | Any) -> list[Audit]:
    """The audits of a module, or what an entry point names: an audit or several."""
    if isinstance(source, ModuleType):
        source = (
            *getattr(source, "AUDITS", ()),
            *([source.AUDIT] if hasattr(source, "AUDIT") else ()),
        )
    audits = [source] if isinstance(source, Audit) else list(source)
    for audit in audits:
        if not isinstance(audit, Audit):
            raise TypeError(f"expected an Audit, found {audit!r}")
    return audits


def run_audit_checks(
    audit_rows: Mapping[str, Sequence[Row]], about: Mapping[str, Any] | None = None
) -> tuple[list[Row], dict[str, int]]:
    """The findings of all checks in the order of the audits, as ``results.json`` has them; and how
    many tests each check made, by its id.

    audit_rows: rows by audit name. about: that of the results, with the evaluators (one without any
    row gets a finding, floors such as ``always-yes`` get none) and the number of clusters.
    """
    run = AuditedRun(audit_rows, about or {})
    found = [one for check in list_checks() for one in run.find(check)]
    n_tests = {one.id: one.row["n_tests"] for one in found if one.row["n_tests"]}
    return [one.as_dict() for one in found if one.severity is not None], n_tests


def list_checks() -> list[Check]:
    """All checks, in the order of the audits."""
    return [check for audit in load_all_audits().values() for check in audit.checks]


def read_audit_names_and_options(
    audits: Sequence[str | Mapping[str, Any]] | None,
) -> dict[str, dict[str, Any]]:
    """Names and options of audits, checked against the audits' own keyword arguments; None means
    all, by default.

    Raises `UsageError` naming the audit, the option and what was expected.
    """
    known = list_computable_audits()
    if audits is None:
        return {name: {} for name in known}
    chosen: dict[str, dict[str, Any]] = {}
    for item in audits:
        if not isinstance(item, str) and len(item) != 1:
            raise UsageError(f"audit: expected one NAME: {{options}}, found {dict(item)!r}")
        name, given = (item, {}) if isinstance(item, str) else next(iter(item.items()))
        if name not in known:
            raise UsageError(f"unknown audit {name!r}{suggest_known_name(name, list(known))}")
        if name in chosen:
            raise UsageError(f"audit {name!r} is named twice")
        model = known[name].options_model()
        for key in given or {}:
            if key not in model.model_fields:
                hint = suggest_known_name(key, list(model.model_fields))
                raise UsageError(f"audit {name!r} has no option {key!r}{hint}")
        try:
            chosen[name] = model(**(given or {})).model_dump(exclude_unset=True)
        except ValidationError as error:
            first = error.errors()[0]
            where = ".".join(map(str, first["loc"]))
            raise UsageError(
                f"audit {name!r}, option {where}: {first['msg']}, found {first.get('input')!r}"
            ) from None
    return chosen


def choose_supported_audits(
    audits: Sequence[str | Mapping[str, Any]] | None, able: Sequence[str], refusal: str
) -> dict[str, dict[str, Any]]:
    """`read_audit_names_and_options` of audits, by default all that are ``able``; `UsageError`
    where one is not."""
    chosen = read_audit_names_and_options(able if audits is None else audits)
    for name in chosen:
        if name not in able:
            raise UsageError(f"audit {name!r} {refusal} can be computed {', '.join(able)}")
    return chosen
