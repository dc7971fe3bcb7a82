"""Which audits does a run ask for, and are their options valid? Checked before anything is
computed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

from factaudit.audit import list_computable_audits
from factaudit.errors import UsageError, suggest_known_name


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
