"""Tables past memory: queries give what arrays give, to the last digit, and refuse what tables in memory refuse."""

from __future__ import annotations

import contextlib
import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from click.testing import CliRunner
from report_results import read_report_text

from factaudit.arrays.judgements import Judgements
from factaudit.audit import list_computable_audits
from factaudit.audit.quantification import compute_quantification_bias
from factaudit.cli.app import cli
from factaudit.errors import FactauditError, InputError, UsageError
from factaudit.estimate.rate_estimation import estimate_rates, estimate_rates_past_memory
from factaudit.experiment import Experiment, run
from factaudit.sql import source_tables
from factaudit.sql.spark import SparkEngine
from factaudit.sql.sql_tallies import SqlTallies
from factaudit.sql.table_join import join_source_tables
from factaudit.stats.cluster_bootstrap import ClusterBootstrap
from factaudit.tables import STATUSES, validate_claims, validate_verdicts
from factaudit.tables.annotations import validate_annotations

duckdb = pytest.importorskip("duckdb", reason="needs the [duckdb] extra")

ASKING = [name for name, audit in list_computable_audits().items() if audit.tallies]
BY = {"rates": [("dataset",), ("task", "dataset"), ()], "quantification": [("dataset",), ("dataset", "topic")]}


def messy(seed: int, n: int = 400) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Claims with and without documents, responses, systems and labels; verdicts with gaps, guesses and repeats."""
    random = np.random.default_rng(seed)

    def some(values: np.ndarray, share: float) -> np.ndarray:
        return np.where(random.random(n) < share, None, values.astype(object))

    response = random.integers(0, n // 4, n)
    claims = pd.DataFrame(
        {
            "claim_id": [f"c{i:04}" for i in random.permutation(n)],
            "dataset": np.array(["b", "a", "ä"])[response % 3],
            "system": [None if r % 11 == 0 else f"s{r % 4}" for r in response],
            "response_id": [None if r % 7 == 0 else str(r) for r in response],
            # Mostly one document to a response; some name several, some none.
            "doc_id": some(np.where(random.random(n) < 0.1, random.integers(0, 9, n), response // 3).astype(str), 0.1),
            "task": some(np.array(["x", "y"])[random.integers(0, 2, n)], 0.2),
            "topic": [f"t{r % 5}" for r in response],
            "claim": "text",
            "label": some(random.integers(0, 2, n), 0.2),
            "abstained": None,
        }
    )
    lone = {"claim_id": "lone", "dataset": "a", "system": "s1", "response_id": "silent", "abstained": 1, "topic": "t0"}
    claims = pd.concat([claims, pd.DataFrame([lone])], ignore_index=True)
    parts = []
    for name in ("e2", "e1", "e3"):
        score = np.round(random.random(n), 2)
        status = np.array(STATUSES, dtype=object)[random.choice(5, n, p=[0.8, 0.08, 0.04, 0.04, 0.04])]
        guessed = (status == "unparsed") & (random.random(n) < 0.5) & (name != "e3")
        parts.append(
            pd.DataFrame(
                {
                    "claim_id": claims["claim_id"][:n],
                    "evaluator": name,
                    "score": np.where(status == "ok", score, np.nan),
                    "prediction": np.where(guessed, 1.0, np.nan),
                    "status": status,
                    "repeat": 0,
                }
            ).sample(frac=0.95, random_state=seed)
        )
    parts.append(parts[0].head(50).assign(repeat=1, prediction=0, status="ok"))
    return claims, pd.concat(parts, ignore_index=True)


def written(folder: Path, claims: pd.DataFrame, verdicts: pd.DataFrame) -> source_tables.SourceTables:
    claims.to_parquet(folder / "claims.parquet")
    half = len(verdicts) // 2
    verdicts[:half].to_parquet(folder / "verdicts-1.parquet")
    verdicts[half:].to_parquet(folder / "verdicts-2.parquet")
    return source_tables.find_parquet_tables_for_sql(
        [str(folder / "claims.parquet")], [str(folder / "verdicts-*.parquet")]
    )


@pytest.fixture(scope="module", params=[0, 1])
def both(request, tmp_path_factory):
    """The same tables as arrays, and as held by DuckDB."""
    tmp_path = tmp_path_factory.mktemp("both")
    claims, verdicts = messy(request.param)
    known = validate_claims(claims)
    judged = Judgements.join(known, validate_verdicts(verdicts, claims=known))
    tables = written(tmp_path, claims, verdicts)
    engine = tables.open_engine(tmp_path)
    yield judged, SqlTallies(engine, join_source_tables(engine, tables, ("task", "topic"), with_scores=True))
    engine.close()


@pytest.mark.parametrize("name", ASKING)
def test_queries_give_what_arrays_give_to_the_last_digit(both, name):
    judged, stored = both
    compute = list_computable_audits()[name].compute
    for by in BY.get(name, [None]):
        options = {} if by is None else {"by": by}
        for intervals in (None, ClusterBootstrap(200)):
            expected = compute(judged, **options, intervals=intervals)
            assert compute(stored, **options, intervals=intervals) == expected
            assert len(expected) > 2


def test_tables_are_joined_and_claims_read_in_parts_with_the_same_result(tmp_path, monkeypatch):
    claims, verdicts = messy(6)
    known = validate_claims(claims)
    judged = Judgements.join(known, validate_verdicts(verdicts, claims=known))
    tables = written(tmp_path, claims, verdicts)
    monkeypatch.setattr("factaudit.sql.sql_engine._ROWS_PER_JOIN", 300)
    monkeypatch.setattr("factaudit.sql.sql_tallies._ROWS_PER_READ", 20)
    engine = tables.open_engine(tmp_path)
    assert len(engine.find_part_bounds(tables.claims, "claim_id", 1600)) == 5
    stored = SqlTallies(engine, join_source_tables(engine, tables, with_scores=True))
    for name in ("rates", "adjusted_bias"):
        compute = list_computable_audits()[name].compute
        assert compute(stored, intervals=ClusterBootstrap(50)) == compute(judged, intervals=ClusterBootstrap(50))
    monkeypatch.setattr("factaudit.sql.sql_tallies._MAX_CLAIM_KINDS", 20)
    with pytest.raises(FactauditError, match="e1 has more than 20 different scores on the claims of a: too many to"):
        list_computable_audits()["adjustment"].compute(SqlTallies(engine, stored.join_summary))
    engine.close()


@pytest.mark.parametrize("mixed", [False, True])
def test_ids_may_be_numbers_and_columns_without_a_value(tmp_path, monkeypatch, mixed):
    claims, verdicts = messy(9, 200)
    claims = claims[claims["claim_id"] != "lone"].assign(system=None)  # nor is any "abstained"
    number = {name: at * 37 % 1009 for at, name in enumerate(claims["claim_id"])}
    claims["claim_id"], verdicts["claim_id"] = (table["claim_id"].map(number) for table in (claims, verdicts))
    if mixed:
        verdicts["claim_id"] = verdicts["claim_id"].astype(str)
    known = validate_claims(claims)
    judged = Judgements.join(known, validate_verdicts(verdicts, claims=known))
    monkeypatch.setattr("factaudit.sql.sql_engine._ROWS_PER_JOIN", 300)
    tables = written(tmp_path, claims, verdicts)
    engine = tables.open_engine(tmp_path)
    stored = SqlTallies(engine, join_source_tables(engine, tables))
    assert list_computable_audits()["rates"].compute(stored) == list_computable_audits()["rates"].compute(judged)
    engine.close()


@pytest.mark.parametrize("lacking", ["label", "system"])
def test_nothing_to_calibrate_on_is_no_error(tmp_path, lacking):
    claims, verdicts = messy(8, 60)
    claims.loc[claims["dataset"] == "a", lacking] = None
    known = validate_claims(claims)
    judged = Judgements.join(known, validate_verdicts(verdicts, claims=known))
    tables = written(tmp_path, claims, verdicts)
    engine = tables.open_engine(tmp_path)
    stored = SqlTallies(engine, join_source_tables(engine, tables, with_scores=True))
    for name in ("adjustment", "adjusted_bias"):
        compute = list_computable_audits()[name].compute
        assert compute(stored, intervals=ClusterBootstrap(20)) == compute(judged, intervals=ClusterBootstrap(20))
    engine.close()


@pytest.mark.parametrize("lacking", ["label", "system"])
def test_tables_of_which_no_group_of_systems_can_be_compared_are_audited(tmp_path, lacking):
    """Queries about no group at all are not sent: they ended with the engine's parser error."""
    claims, verdicts = messy(10, 60)
    claims[lacking] = None if lacking == "system" else pd.array([None] * len(claims), dtype="Int8")
    known = validate_claims(claims)
    judged = Judgements.join(known, validate_verdicts(verdicts, claims=known))
    tables = written(tmp_path, claims, verdicts)
    engine = tables.open_engine(tmp_path)
    stored = SqlTallies(engine, join_source_tables(engine, tables, with_scores=True))
    for name in ASKING:
        compute = list_computable_audits()[name].compute
        found = compute(stored, intervals=ClusterBootstrap(20))
        assert found == compute(judged, intervals=ClusterBootstrap(20)), name
    engine.close()


def test_error_rates_are_estimated_as_from_arrays(tmp_path, monkeypatch):
    claims, verdicts = messy(7)
    del claims["task"]  # as a column without values
    known = validate_claims(claims)
    random = np.random.default_rng(0)
    chosen = known.dropna(subset="label")["claim_id"].sample(120, random_state=0)
    mine = pd.DataFrame({"claim_id": chosen, "annotator": "me", "label": random.integers(0, 2, 120)})
    options = {"main": "e2", "covariates": ["e3", "e1"], "strata": ["task", "topic"], "seed": 3}
    tables = written(tmp_path, claims, verdicts)
    engine = tables.open_engine(tmp_path)
    stored = SqlTallies(engine, join_source_tables(engine, tables, ["topic"], with_scores=True, with_ids=True))
    for said in (None, validate_annotations(mine)):
        standard = validate_verdicts(verdicts, claims=known)
        expected = estimate_rates(known, standard, annotations=said, **options).audits()
        found = estimate_rates_past_memory(stored, annotations=said, **options).audits()
        assert found == expected
        assert len(found["estimates"]) > 50
    with pytest.raises(UsageError, match="expected main, one of e1, e2, e3: tables past memory have no first"):
        estimate_rates_past_memory(stored)
    mine["claim_id"] = [*chosen[1:], "nobody's"]
    with pytest.raises(UsageError, match=r"1 annotated claims are not in the claims table \(\"nobody's\"\)"):
        estimate_rates_past_memory(stored, annotations=validate_annotations(mine), main="e1")
    monkeypatch.setattr("factaudit.sql.estimation_queries._MAX_UNIT_NUMBERS", 100)
    with pytest.raises(FactauditError, match=r"claims of a under 3 evaluators are .*more than 5\): name fewer"):
        estimate_rates_past_memory(stored, main="e1")
    engine.close()


def test_where_no_claim_has_a_system_none_is_left_out_of_the_estimates(tmp_path):
    claims, verdicts = messy(7)
    del claims["system"]
    known = validate_claims(claims)
    tables = written(tmp_path, claims, verdicts)
    engine = tables.open_engine(tmp_path)
    stored = SqlTallies(engine, join_source_tables(engine, tables, [], with_scores=True, with_ids=True))
    options = {"main": "e1", "covariates": [], "strata": [], "seed": 3}
    expected = estimate_rates(known, validate_verdicts(verdicts, claims=known), **options).audits()
    assert estimate_rates_past_memory(stored, **options).audits() == expected
    assert not any("without a system" in (row["reason"] or "") for row in expected["estimate_summary"])
    engine.close()


def test_what_is_said_of_the_tables_is_the_same(both):
    from factaudit.audit.input_description import describe_audit_inputs

    judged, stored = both
    claims, evaluators = describe_audit_inputs(judged, judged.evaluators, {})
    told = stored.describe_tables()
    without = [{key: value for key, value in row.items() if key != "task"} for row in claims]
    assert [{key: value for key, value in row.items() if key != "task"} for row in told[0]] == without
    for mine, row in zip(told[1], evaluators, strict=True):
        assert mine == {key: row[key] for key in mine}


def test_a_response_whose_claims_are_in_several_groups_is_refused_by_both(both):
    for each in both:
        with pytest.raises(UsageError, match="claims of one response differ in task: use levels"):
            each.make_groups("response", ("task",))
        with pytest.raises(UsageError, match="no column 'colour'"):
            each.make_groups("claim", ("colour",))


WRONG = [
    ("claims", {"label": 2}, "column 'label': expected 1 (attributable), 0 or nothing, found '2.0'"),
    ("claims", {"claim_id": None}, "column 'claim_id': expected an id, found none"),
    ("claims", {"claim_id": "c1"}, "column 'claim_id': expected unique ids, but 'c1' is there 2 times"),
    ("claims", {"dataset": "__macro__"}, "column 'dataset': expected another name: results have this one"),
    ("claims", {"dataset": " "}, "column 'dataset': expected text, found none"),
    ("verdicts", {"claim_id": "c9"}, "column 'claim_id': expected the id of a claim, but 'c9' is none in"),
    ("verdicts", {"claim_id": "c1"}, "expected one verdict per claim and evaluator, but 'e' has 2 on 'c1'"),
    ("verdicts", {"score": 1.5}, "column 'score': expected a number from 0 to 1, or nothing, found '1.5'"),
    ("verdicts", {"prediction": 3}, "column 'prediction': expected 1, 0 or nothing, found '3.0'"),
    ("verdicts", {"status": "fine"}, "column 'status': expected one of ok, unparsed, refused, error, skipped, found"),
    ("verdicts", {"score": None, "prediction": None}, "column 'prediction': no score and no prediction"),
    ("verdicts", {"evaluator": "__all__"}, "column 'evaluator': expected another name"),
    ("verdicts", {"repeat": 0.5}, "column 'repeat': expected a whole number from 0 on, or nothing, found '0.5'"),
]


@pytest.mark.parametrize(("table", "change", "message"), WRONG)
def test_what_is_wrong_is_said_with_table_column_and_row(tmp_path, table, change, message):
    tables = {
        "claims": pd.DataFrame({"claim_id": ["c1", "c2", "c3"], "dataset": "d", "label": [1.0, 0.0, None]}),
        "verdicts": pd.DataFrame(
            {"claim_id": ["c1", "c2", "c3"], "evaluator": "e", "score": [0.1, 0.9, 0.5]}
            | {"prediction": [np.nan, 1, 1], "status": "ok", "repeat": [0.0, 0.0, 0.0]}
        ),
    }
    for column, value in change.items():
        tables[table].loc[2, column] = value
    found = written(tmp_path, tables["claims"], tables["verdicts"])
    engine = found.open_engine(tmp_path)
    with pytest.raises(InputError) as raised:
        join_source_tables(engine, found)
    engine.close()
    assert message in str(raised.value)
    assert str(raised.value).startswith(str(tmp_path / table))


@pytest.mark.parametrize("column", ["my task", "x; DROP TABLE claims", 'a"b'])
def test_a_column_that_engines_quote_differently_is_refused(tmp_path, column):
    claims = pd.DataFrame({"claim_id": ["c1"], "dataset": "d", "label": [1.0], column: "v"})
    found = written(tmp_path, claims, pd.DataFrame({"claim_id": ["c1"], "evaluator": "e", "score": [0.1]}))
    engine = found.open_engine(tmp_path)
    with pytest.raises(InputError, match="expected a name of letters, digits and underscores to group by"):
        join_source_tables(engine, found, [column])
    engine.close()


def database(folder: Path) -> str:
    """The address of a database that has what the files in a folder have."""
    with duckdb.connect(str(folder / "mine.db")) as connection:
        connection.execute("CREATE SCHEMA judged")
        connection.execute(f"CREATE TABLE my_claims AS SELECT * FROM read_parquet('{folder}/claims.parquet')")
        connection.execute(f"CREATE TABLE judged.one AS SELECT * FROM read_parquet('{folder}/verdicts-*.parquet')")
    return "mine.db?claims=my_claims&verdicts=judged.one"


@pytest.mark.slow
def test_an_experiment_reads_a_database_as_it_reads_files(tmp_path):
    written(tmp_path, *messy(2))
    common = "replicates: 0\naudits: [rates, {quantification: {by: [topic]}}]\n"
    common += "estimate: {main: e1, methods: [raw], levels: [claim]}\n"
    files = "claims: claims.parquet\nverdicts: [verdicts-1.parquet, verdicts-2.parquet]\nwhere: duckdb\n"
    found = []
    for name, text in (("files", files), ("tables", f"tables: duckdb:///{database(tmp_path)}\n")):
        (tmp_path / f"{name}.yaml").write_text(common + text)
        found.append(run(tmp_path / f"{name}.yaml", tmp_path / name))
    assert found[0].audits == found[1].audits
    assert {row["method"] for row in found[0].audits["estimates"]} == {"raw"}
    assert {row["topic"] for row in found[0].audits["quantification"]} == {f"t{i}" for i in range(5)}
    assert not (tmp_path / "tables" / "claims.parquet").exists()
    assert {path.name for path in (tmp_path / "tables" / ".work").iterdir()} == {"lock", "run.json", "sources.json"}


@pytest.mark.slow
def test_the_command_line_audits_a_database_by_its_address(tmp_path):
    written(tmp_path, *messy(2, 100))
    address = f"duckdb:///{tmp_path}/{database(tmp_path)}"
    args = ["audit", address, "--out", str(tmp_path / "run"), "--replicates", "0"]
    result = CliRunner().invoke(cli, args, catch_exceptions=False)
    assert result.exit_code == 0, result.output
    found = json.loads((tmp_path / "run" / "results.json").read_text())
    assert list(found["audits"]) == ASKING
    assert "Leaning on word overlap (surface_bias)" in found["sections"][0]["text"]
    assert "What was left out" in read_report_text(tmp_path / "run")


def test_what_cannot_be_done_past_memory_is_refused_by_name(tmp_path):
    claims, verdicts = messy(3, 40)
    written(tmp_path, claims, verdicts)
    files = {"claims": [str(tmp_path / "claims.parquet")], "verdicts": [str(tmp_path / "verdicts-1.parquet")]}
    with pytest.raises(UsageError, match="audit 'surface_bias' reads claims one by one: of tables past memory can be"):
        run(Experiment(**files, where="duckdb", audits=["rates", "surface_bias"]), tmp_path / "run")
    mixed = files | {"claims": [*files["claims"], {"format": "aggrefact", "source": files["claims"]}]}
    with pytest.raises(UsageError, match="reads Parquet files of claims and verdicts, no other format"):
        run(Experiment(**mixed, where="duckdb"), tmp_path / "run")
    with pytest.raises(ValueError, match="judges nothing"):
        Experiment(**files, where="duckdb", evaluators=["tfidf"])
    with pytest.raises(ValueError, match="a sample cannot be checked against all claims"):
        Experiment(**files, where="duckdb", estimate={"sample": "drawn.parquet"})
    with pytest.raises(ValueError, match="expected tables alone"):
        Experiment(**files, tables="duckdb:///x.db?claims=a&verdicts=b")
    for address in ("duckdb:///x.db?claims=a", "postgres:///x?claims=a&verdicts=b", "duckdb:///?claims=a&verdicts=b"):
        with pytest.raises(UsageError, match="expected duckdb:///path"):
            source_tables.parse_sql_database_address(address)
    with pytest.raises(InputError, match=r"no such file"):
        source_tables.parse_sql_database_address("duckdb:///nowhere.db?claims=a&verdicts=b").open_engine(tmp_path)
    (tmp_path / "no.db").write_text("no database, but a text that is long enough to be told from one")
    with pytest.raises(InputError, match="not a DuckDB database"):
        source_tables.parse_sql_database_address(f"duckdb:///{tmp_path}/no.db?claims=a&verdicts=b").open_engine(
            tmp_path
        )
    with pytest.raises(InputError, match="expected Parquet"):
        source_tables.find_parquet_tables_for_sql([__file__], [__file__])


def test_many_verdicts_are_read_by_queries_unless_somebody_says_otherwise(tmp_path, monkeypatch):
    claims, verdicts = messy(4, 60)
    written(tmp_path, claims, verdicts)
    files = [str(tmp_path / "claims.parquet")], [str(tmp_path / "verdicts-1.parquet")]
    said: list[str] = []
    assert source_tables.choose_sql_source_tables(None, *files, None, False, said.append) is None
    monkeypatch.setattr(source_tables, "MAX_VERDICTS_IN_MEMORY", 10)
    assert source_tables.choose_sql_source_tables(
        None, *files, None, False, said.append
    ) == source_tables.find_parquet_tables_for_sql(*files)
    assert "more than 10: read by DuckDB" in said[0]
    assert source_tables.choose_sql_source_tables(None, *files, None, True, said.append) is None
    assert (
        source_tables.choose_sql_source_tables(None, files[0], [str(tmp_path / "x.csv")], None, False, said.append)
        is None
    )


def test_too_many_clusters_to_resample_are_refused_with_what_to_do(both, monkeypatch):
    monkeypatch.setattr("factaudit.sql.sql_tallies._MAX_CLUSTER_NUMBERS", 10)
    with pytest.raises(FactauditError, match="are too many to resample in memory: leave the audit out, or"):
        list_computable_audits()["ranking"].compute(both[1], intervals=ClusterBootstrap(10))


@pytest.mark.slow
def test_spark_gives_what_arrays_give_by_the_same_queries(tmp_path):
    """With Java and `pip install pyspark`: too heavy for every test run."""
    sessions = pytest.importorskip("pyspark.sql", reason="needs pyspark")
    if shutil.which("java") is None:
        pytest.skip("needs Java")
    claims, verdicts = messy(5, 200)
    known = validate_claims(claims)
    judged = Judgements.join(known, validate_verdicts(verdicts, claims=known))
    written(tmp_path, claims, verdicts)
    builder = sessions.SparkSession.builder.master("local[1]").config("spark.sql.shuffle.partitions", 1)
    session = builder.config("spark.ui.enabled", "false").config("spark.driver.host", "127.0.0.1").getOrCreate()
    try:
        for name in ("claims", "verdicts"):
            session.read.parquet(str(tmp_path / f"{name}*.parquet")).createOrReplaceTempView(f"my_{name}")
        engine = SparkEngine(session, tmp_path / "kept")
        tables = source_tables.SourceTables("my_claims", "my_verdicts", "my_claims", "my_verdicts", ())
        stored = SqlTallies(engine, join_source_tables(engine, tables, with_scores=True))
        for name in ("rates", "quantification", "consistency", "adjusted_bias"):
            compute = list_computable_audits()[name].compute
            options = {"levels": ["claim"]} if name == "adjusted_bias" else {}  # each query takes Spark a second
            expected = compute(judged, **options, intervals=ClusterBootstrap(50))
            assert compute(stored, **options, intervals=ClusterBootstrap(50)) == expected
        with pytest.raises(InputError, match="cannot be read"):
            engine.read_column_kinds("nothing")
        engine.close()
    finally:
        session.stop()


def test_responses_whose_facts_stand_beside_several_people_are_no_responses_for_both(tmp_path):
    rows = [(f"r{one}", f"{one}.{fact}", person) for one in range(4) for fact in range(3) for person in ("A", "B")]
    rows += [("r9", f"9.{fact}", "A") for fact in range(3)] + [("r10", None, None)] * 2
    claims = pd.DataFrame(rows, columns=["response_id", "fact_id", "entity"])
    claims = claims.assign(claim_id=[f"c{at}" for at in range(len(rows))], dataset="d", claim="x", doc="y", system="s")
    claims["label"] = pd.array([None] * len(rows), dtype="Int64")
    said = np.arange(len(rows)) % 3 > 0
    verdicts = pd.DataFrame({"claim_id": claims["claim_id"], "evaluator": "e", "prediction": said.astype(int)})
    verdicts = verdicts.assign(score=np.nan, status="ok")
    known = validate_claims(claims)
    judged = Judgements.join(known, validate_verdicts(verdicts, claims=known))
    tables = written(tmp_path, claims, verdicts)
    with contextlib.closing(tables.open_engine(tmp_path)) as engine:
        held = SqlTallies(engine, join_source_tables(engine, tables, (), with_scores=True))
        found = compute_quantification_bias(held)
        assert found == compute_quantification_bias(judged)
        assert {row["n"] for row in found if row["level"] == "response"} == {2}
        assert held.describe_tables()[0][0]["n_responses"] == 6
