"""The JSON schema of experiment YAMLs, for editors: made of the models that read them, so it cannot fall behind."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from factaudit.audit import list_computable_audits
from factaudit.datasets import FORMATS
from factaudit.engines.dfactscore.experiment import DFactScoreExperiment
from factaudit.engines.factscore.experiment import FactScoreExperiment
from factaudit.engines.verify_with_caution.experiment import VerifyWithCautionExperiment
from factaudit.evaluators.registry import list_evaluators
from factaudit.experiment import Experiment

#: The kinds of experiment, by the block that tells them apart (None: a comparison of evaluators).
EXPERIMENT_MODELS: dict[str | None, type[BaseModel]] = {
    None: Experiment,
    "factscore": FactScoreExperiment,
    "dfactscore": DFactScoreExperiment,
    "verify_with_caution": VerifyWithCautionExperiment,
}
#: Keys that take one item where the model has a list (`factaudit.yaml_file.YamlFile.wrap_in_lists`).
_KEYS_OF_ONE_OR_MANY = (
    *("claims", "verdicts", "evaluators", "audits", "source", "responses", "biographies", "groupers"),
    *("published", "citations", "verifiers", "annotations", "label_rules"),
)
_KEY_DESCRIPTIONS = {
    "title": "The report's heading.",
    "data": "A folder; ${data} in a path stands for it. --set data=FOLDER gives another.",
    "claims": "Files of claims (Parquet, JSONL, CSV, ...), or a published format: {format: tofueval, source: [paths]}.",
    "counts": "A table of error rates (dataset, system, evaluator, n, labelled_error_rate, ...), in place of claims.",
    "verdicts": "Files of what evaluators said already.",
    "annotations": "Files of what people said of the claims (claim_id, annotator, label or grade).",
    "label_rules": "How annotators' labels become one: the first makes the labels, all stand beside each other.",
    "limit_documents": "Of each data set only the claims of its first so many documents: a trial before a costly run.",
    "perturb": "Variants of the claims, in which rules change one thing: {kinds: [...], per_kind: 25}, or {} for all.",
    "evaluators": "Evaluators to run: NAME, 'NAME:key=value', or {NAME: {key: value}}.",
    "trained_on": "By evaluator the data sets that it was trained on: {minicheck: [RAGTruth]}. The first screen warns.",
    "mapping": "How files whose columns are not ours are read: auto, or what `factaudit inspect --write` wrote.",
    "estimate": "Error rates of systems from few labels.",
    "audits": "Only these audits, with their options. By default all that apply.",
    "replicates": "Bootstrap replicates; 0 for no intervals.",
    "confidence": "Of all intervals.",
    "seed": "Of every random step.",
    "max_cost": "US dollars that all calls together may cost, over resumed runs too.",
    "factscore": "FActScore of responses: decompose, retrieve, verify.",
    "dfactscore": "D-FActScore of biographies, or the published decisions.",
    "verify_with_caution": "The paper's figures from its printed tables.",
}


def make_experiment_schema() -> dict[str, Any]:
    """A schema (JSON Schema 2020-12) of every experiment YAML; which kind one is, its block says."""
    definitions: dict[str, Any] = {}
    branches: list[tuple[str | None, dict[str, Any]]] = []
    for block, model in EXPERIMENT_MODELS.items():
        schema = model.model_json_schema(by_alias=True)
        definitions |= schema.pop("$defs", {})
        branches.append((block, schema))
    for schema in (*definitions.values(), *(schema for _, schema in branches)):
        if "properties" in schema:
            _relax_experiment_object_schema(schema)
    whole: dict[str, Any] = branches[0][1]
    for block, schema in reversed(branches[1:]):
        whole = {"if": {"required": [block]}, "then": schema, "else": whole}
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "factaudit experiment",
        "type": "object",
        **whole,
        "$defs": definitions,
    }


def _relax_experiment_object_schema(object_schema: dict[str, Any]) -> None:
    """Say what the keys mean, and take whatever the YAML's reader takes for them."""
    keys = object_schema["properties"]
    if "verifiers" in keys:
        keys["verifier"] = dict(keys["verifiers"]["items"])
    for name, key in keys.items():
        if name in _KEY_DESCRIPTIONS:
            key["description"] = _KEY_DESCRIPTIONS[name]
        if name in ("evaluators", "verifiers") and "items" in key:
            key["items"] = {"anyOf": [{"enum": [*list_evaluators()]}, *key["items"]["anyOf"]]}
        if name == "audits":
            key.pop("anyOf")
            key |= {"type": "array", "items": _make_audits_schema()}
        if name == "format" and "source" in keys:
            key["enum"] = list(FORMATS)
        if name in _KEYS_OF_ONE_OR_MANY and key.get("type") == "array":
            many = {part: key.pop(part) for part in ("type", "items", "minItems") if part in key}
            key["anyOf"] = [many, many["items"]]
        if key.get("type") == "string":  # `title: 2024` and `model: 4` are text that looks like a number
            key["type"] = ["string", "number"]


def _make_audits_schema() -> dict[str, Any]:
    """An audit by name, or with its options."""
    options = {}
    for name, audit in list_computable_audits().items():
        own = audit.options_model().model_json_schema()
        for key, text in audit.options.items():
            own["properties"][key]["description"] = text
        options[name] = {"description": audit.question, "anyOf": [{"type": "null"}, _inline_schema_references(own)]}
    one = {"type": "object", "properties": options, "additionalProperties": False, "maxProperties": 1}
    return {"anyOf": [{"enum": list(options)}, one]}


def _inline_schema_references(options_schema: dict[str, Any]) -> dict[str, Any]:
    """An options model without references: it stands deep inside another schema."""
    definitions = options_schema.pop("$defs", {})

    def put(value: Any) -> Any:
        if isinstance(value, dict):
            if "$ref" in value:
                return put(definitions[value["$ref"].rpartition("/")[2]])
            return {key: put(one) for key, one in value.items()}
        return [put(one) for one in value] if isinstance(value, list) else value

    return put(options_schema)
