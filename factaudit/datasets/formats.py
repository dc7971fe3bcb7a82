"""The formats that can be converted, with their options: a module for each, which is imported when it is used."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from typing import TYPE_CHECKING

from factaudit.datasets.log_recipes import LOG_RECIPES

if TYPE_CHECKING:
    from factaudit.datasets.source_files import Conversion


@dataclass(frozen=True)
class DatasetFormat:
    """A published data set's format, or a framework's log.

    Its converter is the function ``convert_NAME`` of the module, which takes the sources (files or folders) and the
    options as keywords, and returns a `Conversion`.

    options: what each option means, by name. module: by default the format's name with underscores.
    marks: how a file is recognised, see `format_detection`; without any it is not. is_json: no table (CSV) is of it.
    is_log: it is read by a recipe (`factaudit.datasets.logs`).
    """

    name: str
    summary: str
    example: str
    options: Mapping[str, str] = field(default_factory=dict)
    module: str = ""
    marks: tuple[str, ...] = ()
    is_json: bool = False
    is_log: bool = False

    @property
    def converter(self) -> Callable[..., Conversion]:
        if self.is_log:
            from factaudit.datasets.logs import make_log_converter

            return make_log_converter(self.name)
        name = self.name.replace("-", "_")
        return getattr(import_module(f"factaudit.datasets.{self.module or name}"), f"convert_{name}")


#: Files that are told by their keys and not read, since a row of them is no claim: read as a table they might say
#: something else.
UNREAD_FILES: dict[str, tuple[str, ...]] = {
    "Langfuse": (
        "data[].traceId data[].name data[].source data[].value",
        "data[].traceId data[].type data[].output",
        "traceId name source value",
        "trace_id name source value data_type",
        "traceId type output startTime",
        "data[].output data[].scores",
    ),
    "LangSmith": ("run_type feedback_stats dotted_order", "run_id key feedback_source"),
    "MLflow": ("trace_id assessments response", "info.trace_id info.assessments"),
    "OpenAI Evals": ("spec.completion_fns spec.eval_name",),
    "HELM": ("instance_id train_trial_index stats[].name", "adapter_spec request_states[].instance"),
    "OpenFactCheck": ("idx solver continue state.response", "source claims claim_labels response_label"),
    "FELM": ("prompt segmented_response labels",),
    "StorySumm": ("*.story-id *.errors *.summary",),
    "BUMP": ("reference_summary edited_summary article",),
}

#: Options of the formats that are logs of a framework.
LOG_OPTIONS = {
    "claim": "the field that holds the claim",
    "doc": "the field that holds the document",
    "label": "the field that holds people's label (1 and 0, or words for them)",
    "labels": "what words for labels mean (fine=1,bad=0,unsure=), where they do not say it themselves",
    "scales": "metrics' numbers for not supported and for supported (faithfulness=1:5,hallucination=1:0)",
    "system": "the field that holds the system's name",
    "dataset": "the dataset's name (default: the log's)",
    "metrics": "only these metrics are evaluators",
    "evaluator": "lm-eval: the model's name (default: the folder's)",
    "attributable": "lm-eval: the choice (text, number) or answer that means attributable (default: by words, or 1)",
}


FORMATS: dict[str, DatasetFormat] = {
    entry.name: entry
    for entry in (
        DatasetFormat(
            "aggrefact",
            "LLM-AggreFact's files, or lytang/LLM-AggreFact from the Hugging Face hub (Tang et al. 2024)",
            "factaudit convert aggrefact test.parquet --option join=tofueval:tofueval/ --out claims.parquet",
            {
                "join": "FORMAT:PATH (tofueval, lfqa, ragtruth, predicted (AggreFact), reveal, claimverify, expertqa):"
                " recover system and response_id by claim text",
                "split": "hub: the split to load (default test); files: the split's name, where they don't say",
                "revision": "hub: a commit, tag or branch (default main); what it resolved to is recorded",
            },
        ),
        DatasetFormat(
            "ragtruth",
            "RAGTruth's response.jsonl and source_info.jsonl (Niu et al. 2024)",
            "factaudit convert ragtruth response.jsonl source_info.jsonl --option level=sentence --out claims.parquet",
            {
                "level": "response (default), or sentence: a sentence is unattributable where it overlaps a span",
                "split": "only the responses of this split (train or test)",
            },
            marks=(
                "source_id labels quality response",
                "source_id task_type source_info",
                "source_id labels passages response",
            ),
        ),
        DatasetFormat(
            "ragtruth-scores",
            "RAGTruth responses with detectors' P(hallucinated): claims, and verdicts with score = 1 - P",
            "factaudit convert ragtruth-scores scores.jsonl --out claims.parquet --verdicts verdicts.parquet",
            {"text": "files in RAGTruth's format that have the responses' text and documents"},
            marks=("response_id task_type hallucinated scores", "row_index task_type y_true y_score"),
        ),
        DatasetFormat(
            "tofueval",
            "TofuEval's factual-consistency CSVs for MediaSum and MeetingBank (Tang et al. 2024)",
            "factaudit convert tofueval mediasum_factual_eval_dev.csv --out claims.parquet",
            {
                "docs": "CSVs with the columns doc_id (or meeting_id) and source: the dialogues",
                "dataset": "the dataset's name, where a file's name says neither mediasum nor meetingbank",
            },
            marks=("doc_id annotation_id topic model_name summ_sent sent_label",),
        ),
        DatasetFormat(
            "lfqa",
            "LFQA-Verification: long-form answers by sentence, three annotators (Chen et al. 2023)",
            "factaudit convert lfqa LFQA-Verification/data --out claims.parquet",
            {"docs": "the folder of docs-*.json (default: docs beside the annotations' folder)"},
            marks=("question_id annotations[].answer annotations[].labels",),
        ),
        DatasetFormat(
            "wice",
            "WiCE: claims in Wikipedia with the pages they cite (Kamoi et al. 2023)",
            "factaudit convert wice entailment_retrieval/claim/dev.jsonl --out claims.parquet",
            {"level": "claim (default), or subclaim for the files of decomposed claims"},
            marks=("claim evidence label meta.id",),
        ),
        DatasetFormat(
            "merging-facts",
            "the published decisions of Merging Facts: *_factscore_output.json (Chiang & Lee 2024)",
            "factaudit convert merging-facts result/factscore --out claims.parquet --verdicts verdicts.parquet",
            marks=("init_global_score decisions global_decisions",),
            is_json=True,
        ),
        DatasetFormat(
            "factscore-results",
            "what FActScore, OpenFActScore or FActScore-turbo returned: decisions on the facts of each response",
            "factaudit convert factscore-results out.json --option responses=in.jsonl --out claims.parquet --verdicts"
            " verdicts.parquet",
            {
                "responses": "the JSONL that was scored, with topic and output, line by line as the decisions",
                "system": "whose responses they are (default: the file's name)",
            },
            marks=(
                "decisions[][].is_supported decisions[][].span scores",
                "decisions[][].is_supported num_facts_per_response",
            ),
        ),
        DatasetFormat(
            "safe-results",
            "SAFE's *-SAFE.json of long-form-factuality: facts, search results and verdicts (Wei et al. 2024)",
            "factaudit convert safe-results results/ --out claims.parquet --verdicts verdicts.parquet",
            marks=(
                "per_prompt_data[].side*_posthoc_eval_data.checked_statements[]",
                "response checked_statements[].self_contained_atomic_fact",
            ),
        ),
        DatasetFormat(
            "veriscore-results",
            "VeriScore's model_output/verification_*.jsonl: claims, search results and verdicts (Song et al. 2024)",
            "factaudit convert veriscore-results model_output/ --out claims.parquet --verdicts verdicts.parquet",
            marks=("all_claims claim_list response claim_verification_result",),
        ),
        DatasetFormat(
            "alce-citations",
            "ALCE's citation judgements: *.json.score files with autoais_log (Gao et al. 2023)",
            "factaudit convert alce-citations result/alce_score --out claims.parquet --verdicts verdicts.parquet",
            {"n_responses": "how many responses a file is about (default: its largest qid)"},
            marks=("citation_rec autoais_log",),
            is_json=True,
        ),
        DatasetFormat(
            "aggrefact-scores",
            "row-aligned JSON files {dataset: [[label, score], ...]}, one per evaluator",
            "factaudit convert aggrefact-scores scores/ --out claims.parquet --verdicts verdicts.parquet",
            {"name": "the evaluators' names, one per file (default: the files' names)"},
            marks=("{label-score-pairs}",),
        ),
        DatasetFormat(
            "score-csv",
            "row-aligned CSV files with the columns y_true and y_score, one per evaluator",
            "factaudit convert score-csv a.csv b.csv --option dataset=mine --out claims.parquet --verdicts v.parquet",
            {
                "dataset": "the dataset's name (required)",
                "name": "the evaluators' names, one per file (default: the files' names)",
            },
            module="aggrefact_scores",
        ),
        DatasetFormat(
            "faithbench",
            "FaithBench's batches: spans graded by several annotators, verdicts of eight detectors (Bao et al. 2024)",
            "factaudit convert faithbench data_for_release/ --out claims.csv --verdicts v.csv --annotations a.csv",
            {
                "rule": "how annotators' labels become one (default any_unattributable)",
                "lowest": "this grade and worse are unattributable: Benign, Questionable (default) or Unwanted",
            },
            marks=("samples[].annotations samples[].metadata.summarizer",),
        ),
        DatasetFormat(
            "frank",
            "FRANK's human_annotations_sentence.json: three annotators, kinds of error (Pagnoni et al. 2021)",
            "factaudit convert frank human_annotations_sentence.json --out claims.parquet --annotations people.parquet",
            {"rule": "how annotators' labels become one (default majority)"},
            marks=("model_name summary_sentences summary_sentences_annotations",),
            is_json=True,
        ),
        DatasetFormat(
            "halueval",
            "HaluEval: right and hallucinated answers, replies and summaries in pairs (Li et al. 2023)",
            "factaudit convert halueval qa_data.json summarization_data.json --out claims.parquet",
            marks=(
                "right_answer hallucinated_answer",
                "right_response hallucinated_response",
                "right_summary hallucinated_summary",
                "user_query chatgpt_response hallucination",
            ),
            is_json=True,
        ),
        DatasetFormat(
            "predicted",
            "AggreFact's aggre_fact_*.csv, or LLM-AggreFact's columns, with NAME_score and NAME_label of metrics",
            "factaudit convert predicted aggre_fact_sota.csv --out claims.parquet --verdicts verdicts.parquet",
            {"datasets": "source (default: FRANK, CLIFF, ...), or origin: AggreFact-CNN and AggreFact-XSum"},
            module="metric_columns",
            marks=("summary model_name cut *_score", "summary model_name cut *_label"),
        ),
        DatasetFormat(
            "reveal",
            "REVEAL: steps of chains of thought with evidence, three systems (Jacovi et al. 2024)",
            "factaudit convert reveal eval/reveal_eval.csv --out claims.parquet",
            marks=("answer_id answer_model step_idx step evidence",),
        ),
        DatasetFormat(
            "claimverify",
            "ClaimVerify: statements of generative search engines and the pages they cite (Liu et al. 2023)",
            "factaudit convert claimverify verifiability_judgments/ human_evaluation_annotations.jsonl --out c.parquet",
            marks=("statement source_text source_supports_statement", "system_name statements_to_citation_texts"),
        ),
        DatasetFormat(
            "expertqa",
            "ExpertQA: answers of six systems, judged claim by claim by experts (Malaviya et al. 2024)",
            "factaudit convert expertqa data/r2_compiled_anon.jsonl --out claims.parquet",
            marks=("question answers.*.claims[].claim_string",),
        ),
    )
}
FORMATS |= {
    name: DatasetFormat(name, one.summary, one.example, LOG_OPTIONS, marks=tuple(one.marks), is_log=True)
    for name, one in LOG_RECIPES.items()
}
