"""What did groupers do to the facts of biographies, and do they agree? The D-FActScore engine writes this table."""

from __future__ import annotations

from factaudit.audit.core.audit_declaration import Audit, AuditedRun, Column, pick_shared_columns
from factaudit.audit.core.finding_parts import MIN_SHARE_COUNT
from factaudit.audit.core.result_rows import Row
from factaudit.audit.core.statements import Statement, join_statements, make_statement

_CHANGES_DESCRIPTION = "facts that the reply changed, left out, invented or repeated"
_GIVEN_GROUPS_DESCRIPTION = (
    "compared with the given groups: responses compared, responses with the same groups, and facts in corresponding"
    " groups"
)
_FIRST_GROUPER_DESCRIPTION = "the same, compared with the first grouper"


def state_shares_merged_by_other_groups(audited_run: AuditedRun, row: Row) -> Statement | str:
    """The share of merged responses where the facts are grouped otherwise: it is as much the grouper's; "" where none.

    The best link of each group hides what groups too fine split, and groups too coarse have more of others' facts.
    """
    keys = ("dataset", "evaluator", "system", "link")
    alike = [one for one in audited_run.rows("dfactscore_linking") if all(one[key] == row[key] for key in keys)]
    listed = []
    for one in alike[1:]:
        if one["share_merged"] is None:
            continue
        text, n_decided = "{name} {one.share_merged:percent}", one["n_answered"] - one["n_undecided"]
        if n_decided < MIN_SHARE_COUNT:
            text = "{name} {one.n_merged:number} of {one.n_decided:number}"
            one = one | {"n_merged": round(one["share_merged"] * n_decided), "n_decided": n_decided}
        listed.append(make_statement(text, name=one["grouper"].removeprefix("group_"), one=one))
    return make_statement(" (with other groups of facts: {all})", all=join_statements(listed, ", ")) if listed else ""


AUDIT = Audit(
    name="dfactscore_grouping",
    after="retrieval",
    title="What the groupers did",
    question="What did the groupers do with the facts, and do they agree?",
    source="MF App. C",
    text="Every fact ends in exactly one group, whatever the reply says.",
    formula=(
        "Same: share of responses with exactly the same groups. Agreement: share of facts in corresponding "
        "groups, averaged over responses."
    ),
    columns={
        "grouper": Column("grouper", "text", "how facts were grouped", key=True),
        "n_responses": Column("responses", "count", "responses with facts, and responses without usable groups"),
        "n_failed": Column(
            "ungrouped", "count", "responses with facts, and responses without usable groups", shown="any"
        ),
        "n_single": Column("in one group", "count", "responses whose facts are all in one group", shown=False),
        "n_changed": Column("changed", "count", _CHANGES_DESCRIPTION, shown="any"),
        "n_dropped": Column("dropped", "count", _CHANGES_DESCRIPTION, shown="any"),
        "n_invented": Column("invented", "count", _CHANGES_DESCRIPTION, shown="any"),
        "n_repeated": Column("repeated", "count", _CHANGES_DESCRIPTION, shown="any"),
        "n_compared_given": Column("compared with given", "count", _GIVEN_GROUPS_DESCRIPTION, shown="any"),
        "same_as_given": Column("same as given", "percent", _GIVEN_GROUPS_DESCRIPTION),
        "agreement_given": Column("agreement with given", "percent", _GIVEN_GROUPS_DESCRIPTION),
        "n_compared_first": Column("compared with the first", "count", _FIRST_GROUPER_DESCRIPTION, shown=False),
        "same_as_first": Column("same as the first", "percent", _FIRST_GROUPER_DESCRIPTION),
        "agreement_first": Column("agreement with the first", "percent", _FIRST_GROUPER_DESCRIPTION),
        **pick_shared_columns("reason"),
    },
    compute=None,
)
