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

from factaudit.audit.core.audit_declaration import Audit, declare_unknown_audit
from factaudit.audit.core.audited_run import AuditedRun
from factaudit.audit.core.result_rows import Row

#: Distributions add audits of their own under this entry point group: ``name = "package.module"``,
#: a module with ``AUDIT`` or ``AUDITS``, or ``"package.module:AUDIT"``.
AUDIT_ENTRY_POINTS = "factaudit.audits"


#: The order of the report, of lists and of findings; audits that are not named here come last, by
#: name.
REPORT_ORDER = (
    *(
        "estimate_summary",
        "estimates",
        "estimate_ranks",
        "estimate_differences",
        "factscore",
        "dfactscore",
    ),
    *(
        "dfactscore_gap",
        "dfactscore_linking",
        "dfactscore_elsewhere",
        "factscore_agreement",
    ),
    *("citations", "decomposition", "sensitivity", "retrieval", "rates"),
    *(
        "differences",
        "discrimination",
        "triage",
        "consistency",
        "quantification",
        "headroom",
        "ranking",
    ),
    *(
        "ranking_pairs",
        "surface_bias",
        "covariates",
        "chunking",
        "chunking_rates",
        "adjustment",
    ),
    *("invariance", "stability", "agreement", "ceiling", "grades"),
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


def make_audited_run(
    audit_rows: Mapping[str, Sequence[Row]], about: Mapping[str, Any] | None = None
) -> AuditedRun:
    """A run's rows by audit as checks and sentences read them, with the columns that the audits
    declare."""
    columns = {
        name: audit.columns for name, audit in load_all_audits().items() if name in audit_rows
    }
    return AuditedRun(audit_rows, about or {}, columns)


def find_audit_declarations(audit_rows: Mapping[str, Sequence[Row]]) -> list[Audit]:
    """What is known of the audits of a run folder, in the order of the report, unknown ones
    last."""
    places = {name: place for place, name in enumerate(load_all_audits())}
    names = sorted(audit_rows, key=lambda name: places.get(name, len(places)))
    return [find_audit_declaration(name, audit_rows[name]) for name in names]


def list_computable_audits() -> dict[str, Audit]:
    """Those of `load_all_audits` that can be computed from claims and verdicts."""
    return {name: audit for name, audit in load_all_audits().items() if audit.compute is not None}


def find_audit_declaration(audit_name: str, rows: Sequence[Row] = ()) -> Audit:
    """What is known of an audit whose rows are in a run folder; if it is not installed, what its
    rows show."""
    return load_all_audits().get(audit_name) or declare_unknown_audit(audit_name, rows)


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
