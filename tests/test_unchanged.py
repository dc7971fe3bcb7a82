"""A run folder in which nothing has changed is left as it is; what has changed is made again, and nothing besides."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from report_results import make_results

from factaudit import experiment, run_reuse
from factaudit.evaluators.base import Verdict
from factaudit.experiment import Experiment
from factaudit.report import rendering
from factaudit.results import Results
from factaudit.run_reuse import refresh_report_of_reused_run, write_run_results_and_report


def test_what_is_rendered_is_not_rendered_again(tmp_path, monkeypatch):
    """Until the results, a table that the report shows, a written file or the code differ."""
    rendered = []

    def counting(folder, **options):
        rendered.append(folder)
        return render(folder, **options)

    render = run_reuse.render_report
    monkeypatch.setattr(run_reuse, "render_report", counting)
    about = {"title": "t", "factaudit": "0", "seed": 0, "replicates": 0, "claims": [], "evaluators": [], "inputs": []}
    results = Results("s", about, {"one": [{"n": 1}], "two": [{"n": 2}]})
    write_run_results_and_report(tmp_path, results)
    write_run_results_and_report(tmp_path, results)
    assert len(rendered) == 1
    before = (tmp_path / "report.html").read_bytes()
    (tmp_path / "report.html").write_text("damaged")
    write_run_results_and_report(tmp_path, results)
    assert len(rendered) == 2
    assert (tmp_path / "report.html").read_bytes() == before
    (tmp_path / "tables" / "two.csv").unlink()
    write_run_results_and_report(tmp_path, results)
    assert (tmp_path / "tables" / "two.csv").is_file()
    (tmp_path / "claims.parquet").write_bytes(b"other claims")
    write_run_results_and_report(tmp_path, results)
    assert len(rendered) == 4
    write_run_results_and_report(tmp_path, replace(results, audits={"one": [{"n": 2}]}))
    assert len(rendered) == 5
    assert not (tmp_path / "tables" / "two.csv").exists()
    monkeypatch.setattr(run_reuse, "digest_package_code_for_run_reuse", lambda: "another version")
    write_run_results_and_report(tmp_path, replace(results, audits={"one": [{"n": 2}]}))
    assert len(rendered) == 6


@pytest.fixture
def drawn(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The figures that were drawn, by the names of their files."""
    names: list[str] = []
    draw = rendering.draw_report_figure_files

    def counting(picture, folder, kinds):
        names.extend(f"{picture.stem}.{kind}" for kind in kinds)
        draw(picture, folder, kinds)

    monkeypatch.setattr(rendering, "draw_report_figure_files", counting)
    return names


def test_a_figure_is_drawn_again_where_its_rows_or_its_file_changed(tmp_path: Path, drawn: list[str]) -> None:
    found = make_results(2, 2)
    kept = {name: found["audits"][name] for name in ("rates", "headroom")}
    results = Results("s", found["about"], kept)
    write_run_results_and_report(tmp_path, results)
    assert "rates.svg" in drawn
    assert not any(name.endswith(".png") for name in drawn)
    before = {path: path.read_bytes() for path in (tmp_path / "figures").iterdir()}
    drawn.clear()
    write_run_results_and_report(tmp_path, replace(results, audits={**kept, "headroom": kept["headroom"][:-1]}))
    assert drawn
    assert all(name.startswith("headroom") for name in drawn)
    write_run_results_and_report(tmp_path, results)
    drawn.clear()
    (tmp_path / "figures" / "rates.svg").write_text("damaged")
    write_run_results_and_report(tmp_path, results)
    assert drawn == ["rates.svg"]
    assert {path: path.read_bytes() for path in (tmp_path / "figures").iterdir()} == before


def test_pngs_are_written_on_demand_and_go_when_they_would_be_stale(tmp_path: Path, drawn: list[str]) -> None:
    found = make_results(2, 2)
    results = Results("s", found["about"], {"rates": found["audits"]["rates"]})
    write_run_results_and_report(tmp_path, results)
    drawn.clear()
    written = refresh_report_of_reused_run(tmp_path, png=True)
    assert drawn == ["rates.png"]
    assert {"rates.svg", "rates.png", "report.html"} <= {path.name for path in written}
    write_run_results_and_report(tmp_path, results)
    refresh_report_of_reused_run(tmp_path, png=True)
    assert drawn == ["rates.png"]
    write_run_results_and_report(tmp_path, replace(results, audits={"rates": found["audits"]["rates"][:-1]}))
    assert not (tmp_path / "figures" / "rates.png").exists()


@pytest.fixture
def asked(tmp_path: Path) -> Experiment:
    claims = [{"claim_id": str(n), "dataset": "d", "claim": f"a {n}", "doc": "a", "label": n % 2} for n in range(20)]
    (tmp_path / "claims.jsonl").write_text("".join(json.dumps(row) + "\n" for row in claims))
    return Experiment(claims=[str(tmp_path / "claims.jsonl")], evaluators=["unigram"], audits=["rates"], replicates=0)


def test_a_run_with_nothing_changed_only_checks(
    tmp_path: Path, asked: Experiment, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    said: list[str] = []
    first = experiment.run(asked, out, say=said.append)
    read = []
    inputs = experiment.read_experiment_inputs

    def reading(one, evaluators):
        read.append(one)
        return inputs(one, evaluators)

    monkeypatch.setattr(experiment, "read_experiment_inputs", reading)
    again: list[str] = []
    assert experiment.run(asked, out, say=again.append) == first
    assert not read
    assert again == [*said[:-1], f"unchanged {out / 'report.html'}"]
    # Whatever changes, it is a run again: a setting, an input, a file of the run folder, the code.
    experiment.run(asked.model_copy(update={"seed": 1}), out)
    experiment.run(asked, out)
    assert len(read) == 2
    (out / "verdicts.parquet").unlink()
    experiment.run(asked, out)
    assert len(read) == 3
    claims = tmp_path / "claims.jsonl"
    claims.write_text(claims.read_text().replace("a 3", "b 3"))
    assert experiment.run(asked, out).signature != first.signature
    (out / ".work" / "run.json").write_text("[damaged")
    experiment.run(asked, out)
    monkeypatch.setattr(run_reuse, "digest_package_code_for_run_reuse", lambda: "another version")
    experiment.run(asked, out)
    assert len(read) == 6


def test_what_failed_is_asked_for_again(tmp_path: Path, asked: Experiment) -> None:
    calls = []

    class Failing:
        signature = "failing"
        verdict_name = "failing"

        def judge(self, claims):
            for claim in claims:
                calls.append(claim.claim_id)
                yield Verdict(claim.claim_id, status="error", raw="no line")

    original = experiment.make_named_evaluator
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(experiment, "make_named_evaluator", lambda spec: original(Failing()))
        experiment.run(asked, tmp_path / "run")
        experiment.run(asked, tmp_path / "run")
    assert len(calls) == 40
