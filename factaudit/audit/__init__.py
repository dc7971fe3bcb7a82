"""The audits by name: every file here that declares one, and those of other packages.

Each computes rows from claims and verdicts, with no evaluator at hand, and says what it computes
(`factaudit.audit.core.declare`). Adding an audit is adding its file; nothing else names it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pkgutil import iter_modules
from types import ModuleType
from typing import Any

from factaudit.audit.core.declare import Audit, undeclared
from factaudit.audit.core.rows import Row

#: Distributions add audits of their own under this entry point group: ``name = "package.module"``, a module with
#: ``AUDIT`` or ``AUDITS``, or ``"package.module:AUDIT"``.
ENTRY_POINTS = "factaudit.audits"


def own() -> list[Audit]:
    """The audits that the files of this package declare, in the order of the report."""
    modules = (import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__))
    return sorted((audit for module in modules for audit in _audits_of(module)), key=lambda audit: audit.place)


@cache
def declared() -> dict[str, Audit]:
    """All audits by name, in the order of the report; a third-party one cannot replace one of ours.

    The tables that only engines write are among them: they have no ``compute``. A package whose audits cannot be
    loaded is left out with a warning.
    """
    found = {audit.name: audit for audit in own()}
    for point in sorted(entry_points(group=ENTRY_POINTS), key=lambda p: p.name):
        try:
            theirs = list(_audits_of(point.load()))
        except Exception as error:
            package = point.dist.name if point.dist else point.value
            warnings.warn(f"audits of the package {package} are left out: {error}", stacklevel=2)
            continue
        for audit in theirs:
            found.setdefault(audit.name, audit)
    return dict(sorted(found.items(), key=lambda item: item[1].place))


def computable() -> dict[str, Audit]:
    """Those of `declared` that can be computed from claims and verdicts."""
    return {name: audit for name, audit in declared().items() if audit.compute is not None}


def declaration(name: str, rows: Sequence[Row] = ()) -> Audit:
    """What is known of an audit whose rows are in a run folder; if it is not installed, what its rows show."""
    return declared().get(name) or undeclared(name, rows)


def _audits_of(source: ModuleType | Any) -> Iterator[Audit]:
    """The audits of a module, or what an entry point names: an audit or several."""
    if isinstance(source, ModuleType):
        source = (*getattr(source, "AUDITS", ()), *filter(None, [getattr(source, "AUDIT", None)]))
    for audit in (source,) if isinstance(source, Audit) else source:
        if not isinstance(audit, Audit):
            raise TypeError(f"expected an Audit, found {audit!r}")
        yield audit
