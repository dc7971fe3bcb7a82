"""Which evaluators and which findings of two runs are the same ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from factaudit.audit import load_all_audits
from factaudit.audit.core.audit_declaration import AuditedRun
from factaudit.errors import UsageError, suggest_known_name
from factaudit.results import Results, Row


def parse_run_matching_pairs(texts: Sequence[str], first: Results, second: Results) -> dict[str, str]:
    """``OLD=NEW`` as {old: new}; a name may have ``=`` in it. Raises `UsageError` where no such two evaluators are."""
    found = {}
    for text in texts:
        parts = text.split("=")
        splits = [("=".join(parts[:at]), "=".join(parts[at:])) for at in range(1, len(parts))]
        if not splits:
            raise UsageError(f"--pair: expected OLD=NEW, found {text!r}")
        known = [pair for pair in splits if pair[0] in first.evaluators and pair[1] in second.evaluators]
        old, new = next(iter(known or splits))
        if old in found:
            raise UsageError(f"--pair: expected each evaluator once, found {old!r} twice")
        found[old] = new
    return found


def match_evaluators_of_runs(first: Results, second: Results, pairs: Mapping[str, str]) -> list[Row]:
    """Which evaluator before is which one after: {before, after, by}.

    By the pairs that are named, then by equal names, then, where one is left on either side (floors apart), these two.
    Raises `UsageError` for a name that a run does not have, or that stands in two pairs.
    """
    for results, side, names in ((first, "before", list(pairs)), (second, "after", list(pairs.values()))):
        for name in names:
            if name not in results.evaluators:
                raise UsageError(f"--pair: no evaluator {name!r} {side}{suggest_known_name(name, results.evaluators)}")
            if names.count(name) > 1:
                raise UsageError(f"--pair: expected each evaluator once, found {name!r} twice")
    taken = set(pairs.values())
    matched = [{"before": old, "after": new, "by": "option"} for old, new in pairs.items()]
    matched += [
        {"before": name, "after": name, "by": "name"}
        for name in first.evaluators
        if name in second.evaluators and name not in pairs and name not in taken
    ]
    done = [{pair[side] for pair in matched} for side in ("before", "after")]
    left = [
        [name for name in results.evaluators if name not in already and name not in list_floor_names(results)]
        for results, already in zip((first, second), done, strict=True)
    ]
    if len(left[0]) == len(left[1]) == 1:
        matched.append({"before": left[0][0], "after": left[1][0], "by": "left over"})
    order = {name: place for place, name in enumerate(first.evaluators)}
    return sorted(matched, key=lambda pair: order[pair["before"]])


def check_runs_share_evaluators(first: Results, second: Results, matched: Sequence[Row]) -> None:
    """Raise `UsageError` where no evaluator but floors is in both runs."""
    floors = [list_floor_names(results) for results in (first, second)]
    judges = [
        [name for name in results.evaluators if name not in mine]
        for results, mine in zip((first, second), floors, strict=True)
    ]
    only_floors = all(pair["before"] in floors[0] for pair in matched)
    if not matched or (only_floors and any(judges)):
        told = [", ".join(names) or "none" for names in judges]
        raise UsageError(
            f"nothing to compare: the evaluators are {told[0]} before and {told[1]} after. Name the pairs that are one "
            "evaluator with --pair OLD=NEW"
        )


def list_floor_names(results: Results) -> set[str]:
    """The evaluators of a run that read nothing."""
    return AuditedRun({}, results.about).floors


def compare_findings_of_runs(
    first: Results, second: Results, new_names: Mapping[str, str]
) -> tuple[list[Row], list[int]]:
    """The findings that changed (``change`` says how), and how many of each run cannot be compared.

    A finding is that of the same check and evaluators; what it is most about (a data set) may be another place.
    """
    audit_of = {check.id: name for name, audit in load_all_audits().items() for check in audit.checks}
    lists: list[dict[tuple[str, str | None], list[Row]]] = []
    not_compared = [0, 0]
    for results, other, names in (
        (first, second, dict(new_names)),
        (second, first, {name: name for name in new_names.values()}),
    ):
        kept: dict[tuple[str, str | None], list[Row]] = {}
        for finding in results.finding_rows:
            audit, evaluator = audit_of.get(finding["id"]), finding["evaluator"]
            parts = [] if evaluator is None else evaluator.split(" / ")
            if (audit is not None and audit not in other.audits) or any(part not in names for part in parts):
                not_compared[len(lists)] += 1
                continue
            pair = " / ".join(sorted(names[part] for part in parts)) if parts else None
            kept.setdefault((finding["id"], pair), []).append(finding)
        lists.append(kept)
    rows = []
    for key in dict.fromkeys([*lists[1], *lists[0]]):
        before, after = lists[0].get(key, []), lists[1].get(key, [])
        rows += _match_findings_of_runs(before, after)
    order = ("new", "changed", "moved", "gone", "restated")
    return sorted(rows, key=lambda row: order.index(row["change"])), not_compared


def _match_findings_of_runs(before: Sequence[Row], after: Sequence[Row]) -> list[Row]:
    """The changes among the findings of one check and evaluator: the same place first, then in their order."""
    left, rest, rows = list(before), [], []
    for finding in after:
        same = next((each for each in left if each["dataset"] == finding["dataset"]), None)
        if same is None:
            rest.append(finding)
        else:
            left.remove(same)
            rows += _classify_finding_change(same, finding)
    for finding in rest:
        rows += _classify_finding_change(left.pop(0), finding) if left else [{"change": "new", **finding}]
    return [*rows, *({"change": "gone", **finding} for finding in left)]


def _classify_finding_change(before: Row, after: Row) -> list[Row]:
    """changed (in severity), moved (to another data set) or restated (its words or figures alone); else no row.

    A severity that fell is no fault that shrank: "warn" says that a finding is in doubt, or that nothing is known.
    """
    told = {**after, "statement_before": before["statement"], "dataset_before": before["dataset"]}
    if before["severity"] != after["severity"]:
        return [{"change": "changed", **told, "severity_before": before["severity"]}]
    if before["dataset"] != after["dataset"]:
        return [{"change": "moved", **told}]
    known = before["statement"]
    # The evaluator's name is no figure: where it is another one, the rest is compared.
    if before["evaluator"] and after["evaluator"]:
        known = known.replace(before["evaluator"], after["evaluator"])
    return [{"change": "restated", **told}] if known != after["statement"] else []
