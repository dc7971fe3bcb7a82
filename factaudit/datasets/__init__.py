"""Converters: published data sets as claims (and verdicts), one module per upstream format."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from factaudit.errors import UsageError, hint

if TYPE_CHECKING:
    from factaudit.datasets.sources import Conversion


@dataclass(frozen=True)
class Format:
    """One upstream format. Its module is imported only when it is used.

    The function takes the sources (files or folders) and the options as keywords, and returns a `Conversion`.
    options: what each option means, by name.
    """

    name: str
    module: str
    summary: str
    example: str
    options: Mapping[str, str] = field(default_factory=dict)

    @property
    def function(self) -> Callable[..., Conversion]:
        return import_module(f"factaudit.datasets.{self.module}").convert


#: Options of the formats that are logs of a framework.
LOG_OPTIONS = {
    "claim": "the field that holds the claim",
    "doc": "the field that holds the document",
    "label": "the field that holds people's label (1 and 0, or words for them)",
    "system": "the field that holds the system's name",
    "dataset": "the dataset's name (default: the log's)",
    "metrics": "only these metrics are evaluators",
}
FORMATS: dict[str, Format] = {
    entry.name: entry
    for entry in (
        Format(
            "aggrefact",
            "aggrefact",
            "LLM-AggreFact's files, or lytang/LLM-AggreFact from the Hugging Face hub (Tang et al. 2024)",
            "factaudit convert aggrefact test.parquet --join tofueval:tofueval/ --out claims.parquet",
            {
                "join": "FORMAT:PATH (tofueval, lfqa or ragtruth): recover system and response_id by claim text",
                "split": "hub: the split to load (default test); files: the split's name, where they don't say",
                "revision": "hub: a commit, tag or branch (default main); what it resolved to is recorded",
            },
        ),
        Format(
            "ragtruth",
            "ragtruth",
            "RAGTruth's response.jsonl and source_info.jsonl (Niu et al. 2024)",
            "factaudit convert ragtruth response.jsonl source_info.jsonl --option level=sentence --out claims.parquet",
            {
                "level": "response (default), or sentence: a sentence is unattributable where it overlaps a span",
                "split": "only the responses of this split (train or test)",
            },
        ),
        Format(
            "ragtruth-scores",
            "ragtruth_scores",
            "RAGTruth responses with detectors' P(hallucinated): claims, and verdicts with score = 1 - P",
            "factaudit convert ragtruth-scores scores.jsonl --out claims.parquet --verdicts verdicts.parquet",
            {"text": "files in RAGTruth's format that have the responses' text and documents"},
        ),
        Format(
            "tofueval",
            "tofueval",
            "TofuEval's factual-consistency CSVs for MediaSum and MeetingBank (Tang et al. 2024)",
            "factaudit convert tofueval mediasum_factual_eval_dev.csv --out claims.parquet",
            {
                "docs": "CSVs with the columns doc_id (or meeting_id) and source: the dialogues",
                "dataset": "the dataset's name, where a file's name says neither mediasum nor meetingbank",
            },
        ),
        Format(
            "lfqa",
            "lfqa",
            "LFQA-Verification: long-form answers by sentence, three annotators (Chen et al. 2023)",
            "factaudit convert lfqa LFQA-Verification/data --out claims.parquet",
            {"docs": "the folder of docs-*.json (default: docs beside the annotations' folder)"},
        ),
        Format(
            "wice",
            "wice",
            "WiCE: claims in Wikipedia with the pages they cite (Kamoi et al. 2023)",
            "factaudit convert wice entailment_retrieval/claim/dev.jsonl --out claims.parquet",
            {"level": "claim (default), or subclaim for the files of decomposed claims"},
        ),
        Format(
            "merging-facts",
            "merging_facts",
            "the published decisions of Merging Facts: *_factscore_output.json (Chiang & Lee 2024)",
            "factaudit convert merging-facts result/factscore --out claims.parquet --verdicts verdicts.parquet",
        ),
        Format(
            "alce-citations",
            "alce",
            "ALCE's citation judgements: *.json.score files with autoais_log (Gao et al. 2023)",
            "factaudit convert alce-citations result/alce_score --out claims.parquet --verdicts verdicts.parquet",
            {"n_responses": "how many responses a file is about (default: its largest qid)"},
        ),
        Format(
            "aggrefact-scores",
            "aggrefact_scores",
            "row-aligned JSON files {dataset: [[label, score], ...]}, one per evaluator",
            "factaudit convert aggrefact-scores scores/ --out claims.parquet --verdicts verdicts.parquet",
            {"name": "the evaluators' names, one per file (default: the files' names)"},
        ),
        Format(
            "score-csv",
            "score_csv",
            "row-aligned CSV files with the columns y_true and y_score, one per evaluator",
            "factaudit convert score-csv a.csv b.csv --option dataset=mine --out claims.parquet --verdicts v.parquet",
            {
                "dataset": "the dataset's name (required)",
                "name": "the evaluators' names, one per file (default: the files' names)",
            },
        ),
        Format(
            "faithbench",
            "faithbench",
            "FaithBench's batches: spans graded by several annotators, verdicts of eight detectors (Bao et al. 2024)",
            "factaudit convert faithbench data_for_release/ --out claims.csv --verdicts v.csv --annotations a.csv",
            {
                "rule": "how annotators' labels become one (default any_unattributable)",
                "lowest": "this grade and worse are unattributable: Benign, Questionable (default) or Unwanted",
            },
        ),
        Format(
            "storysumm",
            "storysumm",
            "StorySumm: sentences and whole summaries of stories, both levels in one run (Subbiah et al. 2024)",
            "factaudit convert storysumm storysumm.json --option predictions=predicted_labels/ --out claims.parquet",
            {
                "level": "both (default), sentence or summary",
                "predictions": "files or folders of evaluators/predicted_labels: verdicts",
            },
        ),
        Format(
            "frank",
            "frank",
            "FRANK's human_annotations_sentence.json: three annotators, kinds of error (Pagnoni et al. 2021)",
            "factaudit convert frank human_annotations_sentence.json --out claims.parquet --annotations people.parquet",
            {"rule": "how annotators' labels become one (default majority)"},
        ),
        Format(
            "bump",
            "bump",
            "BUMP: summaries and their minimally changed twins, with metrics' scores (Ma et al. 2023)",
            "factaudit convert bump task1_dataset.json --out claims.parquet --verdicts verdicts.parquet",
        ),
        Format(
            "halueval",
            "halueval",
            "HaluEval: right and hallucinated answers, replies and summaries in pairs (Li et al. 2023)",
            "factaudit convert halueval qa_data.json summarization_data.json --out claims.parquet",
        ),
        Format(
            "felm",
            "felm",
            "FELM: ChatGPT's answers by segment, in five domains (Chen et al. 2023)",
            "factaudit convert felm data/wk.jsonl data/science.jsonl --out claims.parquet",
        ),
        Format(
            "factbench",
            "factbench",
            "FactBench of OpenFactCheck: claims of four sources, and checkers' results (Wang et al. 2024)",
            "factaudit convert factbench Factbench.jsonl --out claims.parquet",
            {"predictions": "OpenFactCheck's result files, one checker each: verdicts"},
        ),
        Format(
            "predicted",
            "predicted",
            "AggreFact's aggre_fact_*.csv, or LLM-AggreFact's columns, with NAME_score and NAME_label of metrics",
            "factaudit convert predicted aggre_fact_sota.csv --out claims.parquet --verdicts verdicts.parquet",
        ),
        Format(
            "inspect",
            "inspect_log",
            "logs of Inspect (inspect_ai), .eval or .json: a scorer is an evaluator",
            "factaudit convert inspect log.eval --option doc=metadata.context --out claims.parquet --verdicts v.csv",
            LOG_OPTIONS,
        ),
        Format(
            "lm-eval",
            "lm_eval_log",
            "samples of lm-evaluation-harness (--log_samples): the model is the evaluator, the target the label",
            "factaudit convert lm-eval samples_task.jsonl --option evaluator=llama --out claims.csv --verdicts v.csv",
            {key: text for key, text in LOG_OPTIONS.items() if key != "metrics"}
            | {
                "evaluator": "the model's name (default: the folder's)",
                "attributable": "the choice or answer that means attributable (default 1)",
            },
        ),
        Format(
            "deepeval",
            "deepeval_log",
            "test runs of DeepEval (JSON): a metric is an evaluator",
            "factaudit convert deepeval test_run.json --out claims.parquet --verdicts v.parquet",
            LOG_OPTIONS,
        ),
        Format(
            "promptfoo",
            "promptfoo_log",
            "results of promptfoo (JSON): an assertion with a metric is an evaluator, the provider the system",
            "factaudit convert promptfoo results.json --out claims.parquet --verdicts v.parquet",
            LOG_OPTIONS,
        ),
        Format(
            "ragas",
            "ragas_log",
            "results of ragas (to_pandas() as CSV, JSONL or Parquet): a metric is an evaluator",
            "factaudit convert ragas results.csv --out claims.parquet --verdicts v.parquet",
            LOG_OPTIONS,
        ),
        Format(
            "openai-evals",
            "openai_evals_log",
            "logs of OpenAI Evals (oaieval, JSONL of events): a grader, or the model that was asked, is the evaluator",
            "factaudit convert openai-evals log.jsonl --option samples=samples.jsonl --out claims.csv --verdicts v.csv",
            LOG_OPTIONS | {"samples": "the eval's samples (JSONL), whose fields are sample.NAME: the log has none"},
        ),
        Format(
            "phoenix",
            "phoenix_log",
            "evaluations of Arize Phoenix (evaluate_dataframe as CSV, JSONL or Parquet): a score is an evaluator's",
            "factaudit convert phoenix evaluated.jsonl --out claims.parquet --verdicts v.parquet",
            LOG_OPTIONS,
        ),
        Format(
            "trulens",
            "trulens_log",
            "records of TruLens (get_records_and_feedback as JSONL, CSV or Parquet): a feedback is an evaluator",
            "factaudit convert trulens records.jsonl --out claims.parquet --verdicts v.parquet",
            LOG_OPTIONS,
        ),
    )
}


def check_options(format: str, options: Iterable[str]) -> None:
    """Raise `UsageError`, with a hint, for an unknown format or an option that it does not have."""
    if format not in FORMATS:
        raise UsageError(f"unknown format {format!r}{hint(format, list(FORMATS))}")
    known = FORMATS[format].options
    for key in options:
        if key not in known:
            raise UsageError(f"format {format!r} has no option {key!r}" + (hint(key, list(known)) if known else ""))


def convert(format: str, sources: Sequence[str | Path], **options: Any) -> Conversion:
    """Convert sources (files or folders) of a registered format; see `FORMATS` for their options.

    Raises `UsageError` for an unknown format, option or value, and `InputError` naming file, row and column.
    """
    # pydantic is not needed to list the formats.
    from pydantic import ConfigDict, ValidationError, validate_call

    check_options(format, options)
    known = FORMATS[format].options
    if not sources:
        raise UsageError(f"format {format!r}: expected at least one file or folder")
    try:
        # `--option dataset=2024` is text that looks like a number.
        function = validate_call(config=ConfigDict(coerce_numbers_to_str=True))(FORMATS[format].function)
        return function([Path(source) for source in sources], **options)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        name = first["loc"][0]
        if first["type"].startswith("missing"):
            raise UsageError(f"format {format!r} needs the option {name!r}: {known[str(name)]}") from None
        expected = first["msg"].replace("Input should be", "expected")
        raise UsageError(f"format {format!r}, option {name!r}: {expected}, found {first['input']!r}") from None
