"""Bad input to every command: what is wrong is said in one message that names the place, and nothing is left behind.

A case is a command, its exit code, and what the message says. The files in `FILES` are there; ``OUT`` is a folder that
does not exist yet, and must not hold what looks finished afterwards.
"""

from __future__ import annotations

import gzip
import json
import sqlite3
from pathlib import Path

import pandas as pd
import pytest

from factaudit.cli import main

DEEP = "[" * 100_000
BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{new}: &{new} [{', '.join(['*' + old] * 9)}]\n" for old, new in zip("abcdefghi", "bcdefghij", strict=True)
)
CLAIM = {"claim_id": "a", "dataset": "D", "system": "x", "claim": "It rains.", "doc": "Rain.", "label": 1}
OTHER = CLAIM | {"claim_id": "b", "system": "y", "label": 0}
VERDICT = {"claim_id": "a", "evaluator": "e", "score": 0.9}
RESPONSE = {"topic": "Rain", "output": "It rains.", "facts": ["It rains."]}
RATES = {"dataset": "D", "evaluator": "e", "n": 2, "n_unscored": 0, "bacc": 0.5, "tpr": 0.5, "tnr": None}
RESULTS = {"schema": "factaudit.results/2", "signature": "s", "about": {}, "audits": {}}


def lines(*rows: dict) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def cut(text: str) -> bytes:
    whole = gzip.compress(text.encode() * 50)
    return whole[: len(whole) // 2]


FILES: dict[str, str | bytes] = {
    "claims.jsonl": lines(CLAIM, OTHER),
    "verdicts.jsonl": lines(VERDICT, VERDICT | {"claim_id": "b", "score": 0.1}),
    "pages.jsonl": lines({"title": "Rain", "text": "It rains."}),
    "responses.jsonl": lines(RESPONSE),
    "good.yaml": "claims: claims.jsonl\nverdicts: verdicts.jsonl\nreplicates: 0\n",
    # tables
    "empty.jsonl": "",
    "blank.jsonl": "\n\n",
    "cut.jsonl": lines(CLAIM) + '{"claim_id": "b", "da',
    "cut.jsonl.gz": cut(lines(CLAIM)),
    "cut.csv.gz": cut("dataset,claim\nD,x\n"),
    "fake.jsonl.gz": lines(CLAIM),
    "deep.jsonl": DEEP + "\n",
    "deepdoc.jsonl": '{"dataset": "D", "claim": "x", "extra": ' + DEEP + "\n",
    "latin.jsonl": '{"dataset": "D", "claim": "caf\xe9"}\n'.encode("latin-1"),
    "latin.csv": "dataset,claim\nD,caf\xe9\n".encode("latin-1"),
    "array.jsonl": "[1, 2]\n",
    "number.jsonl": "17\n",
    "twokeys.jsonl": '{"dataset": "D", "dataset": "E", "claim": "x"}\n',
    "surrogate.jsonl": '{"dataset": "D", "claim": "\\ud800"}\n',
    "noclaim.jsonl": lines({"dataset": "D", "text": "x"}),
    "nullclaim.jsonl": lines(CLAIM | {"claim": None}),
    "blankclaim.jsonl": lines(CLAIM | {"claim": "  "}),
    "listclaim.jsonl": lines(CLAIM | {"claim": ["x"]}),
    "label2.jsonl": lines(CLAIM | {"label": 2}),
    "labelyes.jsonl": lines(CLAIM | {"label": "maybe so"}),
    "twice.jsonl": lines(CLAIM, CLAIM),
    "macro.jsonl": lines(CLAIM | {"dataset": "__macro__"}),
    "allsystems.jsonl": lines(CLAIM | {"system": "__all__"}),
    "cv.jsonl": lines(VERDICT | {"evaluator": "__cv__"}),
    "abstained.jsonl": lines(CLAIM | {"abstained": 1}),
    "score2.jsonl": lines(VERDICT | {"score": 1.5}),
    "scorenan.csv": "claim_id,evaluator,score\na,e,nan\n",
    "scoretext.jsonl": lines(VERDICT | {"score": "high"}),
    "noscore.jsonl": lines({"claim_id": "a", "evaluator": "e"}),
    "nullscore.jsonl": lines(VERDICT | {"score": None}),
    "status.jsonl": lines(VERDICT | {"status": "fine"}),
    "repeat.jsonl": lines(VERDICT | {"repeat": -1}),
    "vtwice.jsonl": lines(VERDICT, VERDICT),
    "unknown.jsonl": lines(VERDICT | {"claim_id": "zzz"}),
    "chunks.jsonl": lines(VERDICT | {"chunk_scores": [0.1, 7]}),
    "ragged.csv": "dataset,claim\nD,x,y\n",
    "open.csv": 'dataset,claim\nD,"x\n',
    "header.csv": "dataset,dataset,claim\nD,D,x\n",
    "onlyheader.csv": "dataset,claim\n",
    "not.parquet": "no parquet",
    "nul.csv": b"dataset,claim\nD,a\0b\n",
    "table.xyz": "x",
    "failed.jsonl": lines(VERDICT | {"score": None, "status": "error"}),
    "nodoc.jsonl": lines(CLAIM | {"doc": None}),
    # experiments
    "empty.yaml": "",
    "tab.yaml": "claims:\n\t- x\n",
    "list.yaml": "- claims.jsonl\n",
    "number.yaml": "7\n",
    "bomb.yaml": BOMB + "claims: *j\n",
    "self.yaml": "claims: &a [claims.jsonl, *a]\n",
    "deep.yaml": "claims: " + "[" * 3000,
    "tag.yaml": "claims: !!python/object/apply:os.system ['true']\n",
    "date.yaml": "claims: claims.jsonl\ntitle: 2024-13-01\n",
    "latin.yaml": "title: caf\xe9\n".encode("latin-1"),
    "control.yaml": b"title: a\x07b\n",
    "twice.yaml": "claims: claims.jsonl\nseed: 1\nseed: 2\n",
    "key.yaml": "claims: claims.jsonl\naudit: [rates]\n",
    "noclaims.yaml": "title: T\n",
    "gone.yaml": "claims: gone.jsonl\n",
    "folder.yaml": "claims: .\n",
    "seed.yaml": "claims: claims.jsonl\nseed: many\n",
    "confidence.yaml": "claims: claims.jsonl\nverdicts: verdicts.jsonl\nconfidence: 1.5\n",
    "replicates.yaml": "claims: claims.jsonl\nverdicts: verdicts.jsonl\nreplicates: 1000000000000\n",
    "cost.yaml": "claims: claims.jsonl\nmax_cost: -1\n",
    "nothing.yaml": "claims: claims.jsonl\n",
    "audit.yaml": "claims: claims.jsonl\nverdicts: verdicts.jsonl\naudits: [rats]\n",
    "option.yaml": "claims: claims.jsonl\nverdicts: verdicts.jsonl\naudits: [adjustment: {levels: [clam]}]\n",
    "evaluator.yaml": "claims: claims.jsonl\nevaluators: [rogue2]\n",
    "evaluators.yaml": "claims: claims.jsonl\nevaluators: [rouge2, rouge2]\n",
    "named.yaml": "claims: claims.jsonl\nevaluators: [rouge2: {name: __all__}]\n",
    "stored.yaml": "claims: claims.jsonl\nevaluators:\n  - rouge2\n  - stored: {path: gone.jsonl}\n",
    "data.yaml": "claims: ${data}/claims.jsonl\n",
    "format.yaml": "claims: {format: wise, source: claims.jsonl}\n",
    "apikey.yaml": "claims: claims.jsonl\nevaluators: [llm: {model: m, api_key: sk-verysecretverysecret}]\n",
    "params.yaml": "claims: claims.jsonl\nevaluators: [llm: {model: m, params: {api_key: sk-verysecretverysecret}}]\n",
    "header.yaml": "claims: claims.jsonl\nevaluators: [llm: {model: m, params: {h: {Authorization: secretword}}}]\n",
    "query.yaml": "claims: claims.jsonl\nevaluators: [llm: {model: m, base_url: 'https://h/v1?key=secretword'}]\n",
    "password.yaml": "claims: claims.jsonl\nevaluators: [llm: {model: m, base_url: 'https://u:secretword@h/v1'}]\n",
    "url.yaml": "claims: claims.jsonl\nevaluators: [llm: {model: m, base_url: 'ftp://h'}]\n",
    "engine.yaml": "factscore: {responses: gone.jsonl}\n",
    "enginekey.yaml": "factscore: {responses: responses.jsonl, gama: 3}\n",
    "mapping.yaml": "colums: {claim: text}\n",
    "badmapping.yaml": "columns: [\n",
    # engines
    "nooutput.jsonl": lines({"topic": "Rain"}),
    "numberoutput.jsonl": lines({"topic": "Rain", "output": 7}),
    "cutresponses.jsonl.gz": cut(lines(RESPONSE)),
    "demos.json": "[1]",
    "deepdemos.json": DEEP,
    "notext.jsonl": lines({"title": "Rain"}),
    "nulltext.jsonl": lines({"title": "Rain", "text": None}),
    "notitle.jsonl": lines({"text": "It rains."}),
    "both.jsonl": lines({"title": "Rain", "text": "x", "passages": ["y"]}),
    "separator.jsonl": lines({"title": "Rain", "text": "a####SPECIAL####SEPARATOR####b"}),
    "cutpages.jsonl.gz": cut(lines({"title": "Rain", "text": "It rains."})),
    "deeppages.jsonl": '{"title": "Rain", "text": ' + DEEP + "\n",
    "notes.txt": "My notes.\n",
    "notes.db": "My notes.\n",
    "prices.csv": "model,input\nm,1\n",
}
RUNS: dict[str, str] = {
    "none": "",
    "brackets": DEEP,
    "words": "results",
    "nan": json.dumps(RESULTS | {"audits": {"rates": [{"tpr": float("nan")}]}}),
    "schema": json.dumps(RESULTS | {"schema": "other/2"}),
    "list": "[]",
    "nokeys": json.dumps({"schema": "factaudit.results/2"}),
    "audits": json.dumps(RESULTS | {"audits": []}),
    "name": json.dumps(RESULTS | {"audits": {"../../x": []}}),
    "bare": json.dumps(RESULTS),
}

#: What stands for the longest parts of many commands.
ABBREVIATIONS = {
    "SCORE": "score responses.jsonl --knowledge pages.jsonl --out OUT",
    "BY_OVERLAP": "--knowledge pages.jsonl --verifier rouge2 --out OUT",
    "JUDGE": "judge claims.jsonl --out OUT.csv",
}
CASES: list[tuple[str, int, str]] = [
    ("inspect gone.csv", 1, "gone.csv: no such file"),
    ("inspect .", 1, ".: this is a folder, expected a file"),
    ("inspect table.xyz", 1, "table.xyz: expected a name that ends in .csv, .tsv, .txt, .json, .jsonl,"),
    ("inspect empty.jsonl", 1, "empty.jsonl: the file is empty"),
    ("inspect blank.jsonl", 1, "blank.jsonl: nothing in it is mapped: it has no column"),
    ("inspect cut.jsonl", 1, "cut.jsonl: line 2: the last line is cut off (the file was not written to its"),
    ("inspect cut.jsonl.gz", 1, "cut.jsonl.gz: not a whole gzip file"),
    ("inspect cut.csv.gz", 1, "cut.csv.gz: cannot be read"),
    ("inspect fake.jsonl.gz", 1, "fake.jsonl.gz: not a whole gzip file (Not a gzipped file (b'{\"'))"),
    ("inspect deep.jsonl", 1, "deep.jsonl: line 1: not JSON: maximum recursion depth exceeded while"),
    ("inspect deepdoc.jsonl", 1, "deepdoc.jsonl: line 1: not JSON: maximum recursion depth exceeded while"),
    ("inspect latin.jsonl", 1, "latin.jsonl: line 1: not UTF-8 text; save the file as UTF-8"),
    ("inspect array.jsonl", 1, "array.jsonl: line 1: expected a JSON object, found list"),
    ("inspect number.jsonl", 1, "number.jsonl: line 1: expected a JSON object, found int"),
    ("inspect twokeys.jsonl", 1, "twokeys.jsonl: line 1: not JSON: the key 'dataset' is there twice"),
    ("inspect surrogate.jsonl", 1, "surrogate.jsonl: line 1: not Unicode text: it has half of a surrogate"),
    ("run good.yaml --set claims=noclaim.jsonl --out OUT", 1, "noclaim.jsonl: column 'claim': the column is missing"),
    (
        "run good.yaml --set claims=nullclaim.jsonl --out OUT",
        1,
        "nullclaim.jsonl: line 1, column 'claim': expected text, found none",
    ),
    (
        "run good.yaml --set claims=blankclaim.jsonl --out OUT",
        1,
        "blankclaim.jsonl: line 1, column 'claim': expected text, found none",
    ),
    (
        "run good.yaml --set claims=listclaim.jsonl --out OUT",
        1,
        "listclaim.jsonl: line 1, column 'claim': expected text, found ['x']",
    ),
    (
        "run good.yaml --set claims=label2.jsonl --out OUT",
        1,
        "label2.jsonl: line 1, column 'label': expected 1 (attributable), 0",
    ),
    (
        "run good.yaml --set claims=labelyes.jsonl --out OUT",
        1,
        "labelyes.jsonl: line 1, column 'label': expected 1 (attributable), 0",
    ),
    (
        "run good.yaml --set claims=twice.jsonl --out OUT",
        1,
        "twice.jsonl: line 2, column 'claim_id': expected unique ids, but 'a' is",
    ),
    (
        "run good.yaml --set claims=macro.jsonl --out OUT",
        1,
        "macro.jsonl: line 1, column 'dataset': expected another name: results have",
    ),
    (
        "run good.yaml --set claims=allsystems.jsonl --out OUT",
        1,
        "allsystems.jsonl: line 1, column 'system': expected another name:",
    ),
    ("inspect cv.jsonl", 1, "cv.jsonl: line 1, column 'evaluator': expected another name: results have this"),
    (
        "run good.yaml --set claims=abstained.jsonl --out OUT",
        1,
        "line 1, column 'claim': expected nothing where abstained is set, found",
    ),
    ("inspect score2.jsonl", 1, "score2.jsonl: line 1, column 'score': expected a number"),
    ("inspect scorenan.csv", 1, "scorenan.csv: row 1, column 'score': expected a number"),
    ("inspect scoretext.jsonl", 1, "scoretext.jsonl: line 1, column 'score': expected a"),
    ("run good.yaml --set verdicts=noscore.jsonl --out OUT", 1, "noscore.jsonl: expected a column 'score' or a column"),
    ("inspect nullscore.jsonl", 1, "nullscore.jsonl: line 1, column 'prediction': no score"),
    ("inspect status.jsonl", 1, "status.jsonl: line 1, column 'status': expected one of ok, unparsed,"),
    ("inspect repeat.jsonl", 1, "repeat.jsonl: line 1, column 'repeat': expected a whole number from 0 on,"),
    ("inspect vtwice.jsonl", 1, "vtwice.jsonl: line 2, column 'claim_id': expected one verdict per claim"),
    ("inspect claims.jsonl unknown.jsonl", 1, "unknown.jsonl: line 1, column 'claim_id': expected"),
    ("inspect chunks.jsonl", 1, "chunks.jsonl: line 1, column 'chunk_scores': expected a list of numbers"),
    ("inspect ragged.csv", 1, "ragged.csv: row 1: expected 2 columns, as in the header, found 3"),
    ("run good.yaml --set claims=open.csv --out OUT", 1, "open.csv: line 2: a quoted cell is not closed"),
    ("inspect header.csv", 1, "header.csv: column 'dataset': the column is there twice"),
    ("inspect onlyheader.csv", 1, "onlyheader.csv: the file has no rows"),
    ("inspect not.parquet", 1, "not.parquet: not a readable Parquet file (Parquet magic bytes not found in"),
    ("run good.yaml --set claims=bytes.parquet --out OUT", 1, "row 1, column 'dataset': expected text, found 1.5"),
    ("inspect claims.jsonl --columns colums=x", 2, "--columns: no column 'colums' of claims or verdicts"),
    ("inspect claims.jsonl --columns gone.yaml", 2, "gone.yaml, claims: Extra inputs are not permitted"),
    ("inspect claims.jsonl --columns mapping.yaml", 2, "mapping.yaml, colums: Extra inputs are not permitted"),
    (
        "inspect claims.jsonl --columns badmapping.yaml",
        2,
        "badmapping.yaml: not YAML: while parsing a flow node",
    ),
    ("inspect claims.jsonl --columns bomb.yaml", 2, "bomb.yaml: not YAML: expected at most 20 aliases"),
    ("run gone.yaml --out OUT", 1, "gone.yaml: line 1: no such file: HERE/gone.jsonl (paths are relative to HERE)"),
    ("run empty.yaml --out OUT", 1, "empty.yaml: the file is empty"),
    ("run tab.yaml --out OUT", 1, "tab.yaml: line 2: not YAML: found character '\\t' that cannot start any"),
    ("run list.yaml --out OUT", 1, "list.yaml: line 1: expected keys and values, found list"),
    ("run number.yaml --out OUT", 1, "number.yaml: line 1: expected keys and values, found int"),
    ("run bomb.yaml --out OUT", 1, "bomb.yaml: not YAML: expected at most 20 aliases"),
    ("run self.yaml --out OUT", 1, "line 1: claims.1: expected a valid string, found"),
    ("run deep.yaml --out OUT", 1, "deep.yaml: not YAML: maximum recursion depth exceeded"),
    ("run tag.yaml --out OUT", 1, "tag.yaml: line 1: not YAML: could not determine a constructor for the tag"),
    ("run date.yaml --out OUT", 1, "date.yaml: line 1: not YAML: month must be in 1..12"),
    ("run latin.yaml --out OUT", 1, "latin.yaml: not UTF-8 text (invalid continuation byte)"),
    ("run control.yaml --out OUT", 1, "control.yaml: not YAML: unacceptable character #x0007: special"),
    ("run twice.yaml --out OUT", 1, "twice.yaml: line 3: the key 'seed' is there twice"),
    ("run key.yaml --out OUT", 1, "key.yaml: line 2: unknown key 'audit' (did you mean 'audits'?)"),
    ("run noclaims.yaml --out OUT", 1, "noclaims.yaml: line 1: expected claims (or counts, or tables), found none"),
    ("run folder.yaml --out OUT", 1, "folder.yaml: line 1: HERE is a folder, expected a file (or a format and"),
    ("run seed.yaml --out OUT", 1, "seed.yaml: line 2: seed: expected a valid integer, unable to parse"),
    ("run confidence.yaml --out OUT", 1, "confidence.yaml: line 3: confidence: expected less than 1, found"),
    ("run replicates.yaml --out OUT", 1, "replicates.yaml: line 3: replicates: expected less than or equal"),
    ("run cost.yaml --out OUT", 1, "cost.yaml: line 2: max_cost: expected greater than 0, found -1"),
    ("run nothing.yaml --out OUT", 2, "nothing to audit: expected verdicts, evaluators, or a claims format"),
    ("run audit.yaml --out OUT", 1, "audit.yaml: line 3: unknown audit 'rats' (did you mean 'rates'?)"),
    ("run evaluator.yaml --out OUT", 1, "evaluator.yaml: line 2: unknown evaluator 'rogue2'"),
    ("run evaluators.yaml --out OUT", 2, "two evaluators are called 'rouge2': give one of them another with"),
    ("run named.yaml --out OUT", 1, "named.yaml: line 2: evaluator 'rouge2', option name: '__all__' is reserved"),
    ("run stored.yaml --out OUT", 1, "line 4: no such file: HERE/gone.jsonl (paths are relative to HERE)"),
    ("run data.yaml --out OUT", 1, "data.yaml: line 1: ${data} is used, but 'data' is not set (--set"),
    ("run format.yaml --out OUT", 1, "format.yaml: line 1: unknown format 'wise' (did you mean 'wice'?)"),
    ("run apikey.yaml --out OUT", 1, "apikey.yaml: line 2: evaluator 'llm' has no option 'api_key'"),
    ("run params.yaml --out OUT", 1, "params.yaml: line 2: params: 'api_key' looks like a secret, and"),
    ("run header.yaml --out OUT", 1, "header.yaml: line 2: params: 'h.Authorization' looks like a secret,"),
    ("run query.yaml --out OUT", 1, "query.yaml: line 2: base_url: expected an address without password or"),
    ("run password.yaml --out OUT", 1, "password.yaml: line 2: base_url: expected an address without"),
    ("run url.yaml --out OUT", 1, "url.yaml: line 2: base_url: expected 'local' or an address like"),
    ("run engine.yaml --out OUT", 1, "engine.yaml: line 1: no such file: HERE/gone.jsonl (paths are relative to HERE)"),
    ("run enginekey.yaml --out OUT", 1, "enginekey.yaml: line 1: unknown key 'factscore.gama'"),
    ("run good.yaml --out OUT --set seed", 2, "--set seed: expected KEY=VALUE"),
    ("run good.yaml --out OUT --set seed=[", 2, "--set seed=[: the value is not YAML"),
    ("run good.yaml --out OUT --set replicates=1000000000000", 1, "good.yaml: --set replicates: replicates:"),
    ("run good.yaml --out claims.jsonl", 1, "claims.jsonl: cannot be written to (Not a directory)"),
    ("audit gone.jsonl verdicts.jsonl --out OUT", 1, "gone.jsonl: no such file"),
    ("audit claims.jsonl gone.jsonl --out OUT", 1, "gone.jsonl: no such file"),
    ("audit claims.jsonl --out OUT", 2, "nothing to audit: expected verdicts, evaluators, or a claims format"),
    ("estimate claims.jsonl --out OUT", 2, "nothing to estimate from: expected verdicts, evaluators, or a claims"),
    ("audit claims.jsonl unknown.jsonl --out OUT", 1, "unknown.jsonl: line 1, column 'claim_id': expected"),
    ("audit claims.jsonl verdicts.jsonl --out OUT --replicates 1000000000000", 2, "Invalid value for '--replicates':"),
    ("audit claims.jsonl verdicts.jsonl --out OUT --replicates -1", 2, "Invalid value for '--replicates': -1 is"),
    ("audit claims.jsonl verdicts.jsonl --out OUT --seed -1", 2, "Invalid value for '--seed': -1 is not in"),
    ("audit macro.jsonl verdicts.jsonl --out OUT", 1, "macro.jsonl: line 1, column 'dataset': expected"),
    (
        "audit claims.jsonl failed.jsonl --out OUT --replicates 0",
        1,
        "no verdict has a prediction (1 error)",
    ),
    ("judge claims.jsonl --evaluator rouge2 --out OUT.txt", 1, "out.txt: expected a name that ends in"),
    ("JUDGE --evaluator rogue2", 2, "unknown evaluator 'rogue2'"),
    ("JUDGE --evaluator chunked:evaluator=rouge2,size=9", 2, "so it comes last"),
    ("JUDGE --evaluator rouge2:x", 2, "evaluator 'rouge2:x': expected"),
    ("JUDGE --evaluator random:seed=x", 2, "evaluator 'random', option seed: Input"),
    ("JUDGE --evaluator rouge2:threshold=7", 2, "evaluator 'rouge2', option threshold:"),
    ("JUDGE --evaluator rouge2:name=__all__", 2, "evaluator 'rouge2', option name:"),
    ("JUDGE --evaluator rouge2 --evaluator rouge2", 2, "two evaluators are called 'rouge2':"),
    ("JUDGE --evaluator stored:path=gone.csv", 2, "evaluator 'stored': no verdicts file"),
    ("JUDGE --evaluator stored:path=claims.jsonl", 1, "column 'evaluator': the column is"),
    ("JUDGE --evaluator stored:path=verdicts.jsonl,evaluator=f", 2, "verdicts.jsonl holds no verdicts of 'f'"),
    ("JUDGE --evaluator llm", 2, "option model: expected the name of a model"),
    ("JUDGE --evaluator llm:model=m,base_url=nowhere", 2, "base_url: expected 'local' or an"),
    ("JUDGE --evaluator llm:model=m,base_url=https://h/?key=secretword", 2, "base_url: expected an address without"),
    ("JUDGE --evaluator llm:model=m,template=gone.yaml", 2, "template gone.yaml: expected a mapping"),
    ("JUDGE --evaluator llm:model=m,template=bomb.yaml", 2, "template bomb.yaml: not YAML: expected at most 20"),
    (
        "JUDGE --evaluator llm:model=m,params.api_key=sk-verysecretverysecret",
        2,
        "params: 'api_key' looks like a secret,",
    ),
    ("JUDGE --evaluator llm:model=m,base_url=local", 2, "base_url: local: expected the path of a"),
    ("JUDGE --evaluator llm:model=m,prices=prices.csv", 1, "prices.csv: row 1, column 'output':"),
    ("JUDGE --evaluator nothing.here:Metric", 2, "evaluator nothing.here:Metric: cannot"),
    ("JUDGE --evaluator chunked:size=0,evaluator=rouge2", 2, "chunked: expected a size of at least 1,"),
    ("JUDGE --evaluator ensemble:evaluators=rouge2", 2, "ensemble: expected at least two"),
    ("judge verdicts.jsonl --evaluator rouge2 --out OUT.csv", 2, "verdicts.jsonl: no claims in it;"),
    ("judge claims.jsonl --evaluator rouge2 --out claims.jsonl/v.csv", 1, "claims.jsonl/.v.csv.journal: cannot be"),
    ("judge nodoc.jsonl --evaluator rouge2 --out OUT.csv", 1, "no claim was scored: no document"),
    ("adjust claims.jsonl verdicts.jsonl --calibrate nobody", 2, "unknown system 'nobody' (known: x, y)"),
    ("adjust claims.jsonl verdicts.jsonl --calibrate x --evaluator f", 2, "no evaluator or column 'f' in it"),
    ("adjust claims.jsonl verdicts.jsonl --calibrate x --level word", 2, "Invalid value for '--level': 'word' is"),
    ("adjust claims.jsonl verdicts.jsonl --calibrate x --out OUT.txt", 1, "out.txt: expected a name that ends in"),
    ("adjust claims.jsonl gone.jsonl --calibrate x", 1, "gone.jsonl: no such file"),
    ("convert wise claims.jsonl --out OUT.csv", 2, "unknown format 'wise' (did you mean 'wice'?)"),
    ("convert wice gone --out OUT.csv", 1, "gone: no such file"),
    ("convert wice deep.jsonl --out OUT.csv", 1, "deep.jsonl: line 1: not JSON: maximum recursion depth"),
    ("convert wice claims.jsonl --out OUT.csv", 1, "line 1, column 'evidence': the field is missing"),
    ("convert wice claims.jsonl --option lvl=1 --out OUT.csv", 2, "format 'wice' has no option 'lvl' (did"),
    ("convert wice claims.jsonl --option level --out OUT.csv", 2, "--option level: expected KEY=VALUE"),
    ("convert ragtruth claims.jsonl --out OUT.csv", 1, "line 1, column 'id': the field is missing"),
    ("convert lfqa demos.json --out OUT.csv", 1, "demos.json: item 1: expected a valid dictionary or"),
    ("convert lfqa deepdemos.json --out OUT.csv", 1, "deepdemos.json: line 1: not JSON: nested too deeply at"),
    ("convert aggrefact-scores deepdemos.json --out OUT.csv", 1, "deepdemos.json: line 1: not JSON: nested"),
    ("convert aggrefact-scores demos.json --out OUT.csv", 1, "demos.json: expected a valid dictionary, found"),
    ("convert tofueval not.parquet --out OUT.csv", 1, "not.parquet: expected mediasum or meetingbank in the"),
    (
        "convert aggrefact claims.jsonl --option join=tofueval --out OUT.csv",
        2,
        "join 'tofueval': expected FORMAT:PATH,",
    ),
    (
        "convert aggrefact claims.jsonl --option join=tofueval:gone --out OUT.csv",
        1,
        "gone: expected mediasum or meetingbank",
    ),
    ("convert inspect notes.txt --out OUT.csv", 1, "notes.txt: not a log of Inspect that can be read (File"),
    ("convert inspect notes.db --out OUT.csv", 1, "notes.db: not a log of Inspect that can be read (File is"),
    ("convert deepeval deepdemos.json --out OUT.csv", 1, "deepdemos.json: line 1: not JSON: nested too"),
    ("convert ragas ragged.csv --out OUT.csv", 1, "ragged.csv: row 1: expected 2 columns, as in the header,"),
    ("convert promptfoo deepdemos.json --out OUT.csv", 1, "deepdemos.json: line 1: not JSON: nested too"),
    ("convert lm-eval deep.jsonl --out OUT.csv", 1, "deep.jsonl: line 1: not JSON: maximum recursion depth"),
    ("convert merging-facts deepdemos.json --out OUT.csv", 1, "deepdemos.json: line 1: not JSON: nested too"),
    ("convert score-csv ragged.csv --out OUT.csv", 2, "format 'score-csv' needs the option 'dataset': the"),
    ("convert score-csv onlyheader.csv --option dataset=d --out OUT.csv", 1, "onlyheader.csv: the file has no rows"),
    ("inspect gone.csv", 1, "gone.csv: no such file"),
    ("inspect .", 1, ".: this is a folder, expected a file"),
    ("inspect notes.db", 1, "notes.db: expected a name that ends in .csv, .tsv, .txt, .json, .jsonl,"),
    ("inspect cut.jsonl.gz", 1, "cut.jsonl.gz: not a whole gzip file"),
    ("inspect cut.csv.gz", 1, "cut.csv.gz: cannot be read"),
    ("inspect deep.jsonl", 1, "deep.jsonl: line 1: not JSON: maximum recursion depth exceeded while decoding"),
    ("inspect deepdemos.json", 1, "deepdemos.json: line 1: not JSON: nested too deeply"),
    ("inspect not.parquet", 1, "not.parquet: not a readable Parquet file (Parquet magic bytes not found in"),
    ("score gone.jsonl BY_OVERLAP", 1, "gone.jsonl: no such file"),
    ("score responses.jsonl --knowledge gone.db --verifier rouge2 --out OUT", 1, "gone.db: no such knowledge source"),
    (
        "score responses.jsonl --knowledge notes.db --verifier rouge2 --out OUT",
        1,
        "notes.db: not usable as a knowledge",
    ),
    (
        "score responses.jsonl --knowledge other.sqlite --verifier rouge2 --out OUT",
        1,
        "other.sqlite: not usable as a knowledge",
    ),
    (
        "score responses.jsonl --knowledge nulltext.jsonl --verifier rouge2 --out OUT",
        1,
        "nulltext.jsonl: line 1: expected one of",
    ),
    ("SCORE", 2, "the verifier 'retrieval' needs an LLM;"),
    ("SCORE --verifier rogue2", 2, "unknown evaluator 'rogue2'"),
    ("score nooutput.jsonl BY_OVERLAP", 1, "nooutput.jsonl: line 1, column"),
    ("score numberoutput.jsonl BY_OVERLAP", 2, "facts are to be had from the responses:"),
    ("score cutresponses.jsonl.gz BY_OVERLAP", 1, "cutresponses.jsonl.gz: line 1: not a"),
    ("score deep.jsonl BY_OVERLAP", 1, "deep.jsonl: line 1: not JSON: nested"),
    ("score empty.jsonl BY_OVERLAP", 1, "empty.jsonl: the file is empty"),
    ("SCORE --verifier rouge2 --set gama=3", 2, "unknown key 'factscore.gama' (did you"),
    ("SCORE --verifier rouge2 --set k=0", 2, "factscore.k: expected greater than or"),
    ("SCORE --verifier rouge2 --set replicates=1000000000000", 2, "replicates: expected less than or equal"),
    ("SCORE --verifier rouge2 --max-cost 0", 2, "Invalid value for '--max-cost': 0.0 is"),
    ("SCORE --llm m:params.api_key=sk-verysecretverysecret", 2, "factscore.llm: params: 'api_key' looks"),
    ("SCORE --llm m:base_url=https://u:secretword@h", 2, "factscore.llm: base_url: expected an"),
    ("SCORE --llm m:concurrency=0", 2, "factscore.llm: concurrency: expected"),
    ("SCORE --llm m --demos demos.json", 1, "demos.json: expected an object of"),
    ("SCORE --llm m --demos deepdemos.json", 1, "deepdemos.json: not a readable file of"),
    ("SCORE --llm m --demos gone.json", 1, "gone.json: not a readable file of"),
    ("score --dfactscore gone.jsonl BY_OVERLAP --grouper given", 1, "gone.jsonl: no such file"),
    ("score --dfactscore responses.jsonl BY_OVERLAP --grouper herd", 2, "dfactscore.groupers.0: expected"),
    ("score --dfactscore responses.jsonl BY_OVERLAP", 2, "the grouper 'llm' needs an LLM; without"),
    ("score --dfactscore nooutput.jsonl BY_OVERLAP --grouper given", 1, "nooutput.jsonl: line 1, column"),
    ("score --dfactscore deepdemos.json BY_OVERLAP --grouper given", 1, "deepdemos.json: line 1: not JSON:"),
    ("knowledge gone.jsonl --out OUT.db", 1, "gone.jsonl: no such file"),
    ("knowledge notext.jsonl --out OUT.db", 1, "notext.jsonl: line 1: expected one of text, passages"),
    ("knowledge nulltext.jsonl --out OUT.db", 1, "nulltext.jsonl: line 1: expected one of text,"),
    ("knowledge notitle.jsonl --out OUT.db", 1, "notitle.jsonl: line 1, column 'title': expected a"),
    ("knowledge both.jsonl --out OUT.db", 1, "both.jsonl: line 1: expected one of text, passages and"),
    ("knowledge separator.jsonl --out OUT.db", 1, "separator.jsonl: line 1, column 'text': holds the"),
    ("knowledge cutpages.jsonl.gz --out OUT.db", 1, "cutpages.jsonl.gz: line 1: not a whole gzip file"),
    ("knowledge deeppages.jsonl --out OUT.db", 1, "deeppages.jsonl: line 1: not JSON: nested too"),
    (
        "knowledge empty.jsonl --out OUT.db",
        1,
        "empty.jsonl: the file has no page; expected one JSON object per line, with title and text",
    ),
    ("knowledge pages.jsonl --out OUT.db --passage-tokens 0", 2, "Invalid value for '--passage-tokens': 0"),
    ("inspect gone.db", 1, "gone.db: no such file"),
    ("inspect other.sqlite", 1, "other.sqlite: not usable as a knowledge source: of another schema:"),
    ("inspect notes.db --show Rain", 1, "notes.db: not usable as a knowledge source: not an SQLite file"),
    (
        "export runs/none --to report",
        1,
        "runs/none: this is not a run folder: it has no results.json",
    ),
    ("export runs/brackets --to report", 1, "runs/brackets/results.json: not JSON: maximum recursion depth exceeded"),
    (
        "export runs/words --to report",
        1,
        "runs/words/results.json: not JSON: Expecting value: line 1 column 1 (char 0)",
    ),
    ("export runs/nan --to report", 1, "runs/nan/results.json: not JSON: NaN is no figure: an undefined one is null"),
    ("export runs/schema --to report", 1, "runs/schema/results.json: expected the schema 'factaudit.results/2', found"),
    (
        "export runs/list --to report",
        1,
        "runs/list/results.json: expected the schema 'factaudit.results/2', found None",
    ),
    ("export runs/audits --to report", 1, "runs/audits/results.json: expected the keys that a run writes: signature, "),
    ("export runs/name --to report", 1, "runs/name/results.json: expected audit names of letters, digits and _, found"),
    (
        "export claims.jsonl --to report",
        1,
        "claims.jsonl: this is not a run folder: it has no results.json",
    ),
    ("diff runs/nokeys runs/none", 2, "expected the keys that a run writes: signature, about, audits,"),
    ("diff runs/brackets runs/nokeys", 2, "runs/brackets/results.json: not JSON: maximum recursion depth"),
    ("run --dry-run gone.yaml", 1, "gone.yaml: line 1: no such file: HERE/gone.jsonl (paths are relative to HERE)"),
    ("run --dry-run bomb.yaml", 1, "bomb.yaml: not YAML: expected at most 20 aliases"),
    ("run --dry-run enginekey.yaml", 1, "enginekey.yaml: line 1: unknown key 'factscore.gama' (did you mean 'gamma'?)"),
    ("list evaluator", 2, "Invalid value for '{evaluators|audits|formats|data|groupers|replies}': 'evaluator' is not"),
    ("runn", 2, "no command 'runn' (did you mean 'run'?)"),
    ("estimate gone.parquet verdicts.jsonl --label-file claims.jsonl", 2, "Missing option '--out'."),
    ("sample claims.jsonl gone.jsonl --out OUT.parquet -n 2", 2, "No such option"),
    ("labels gone.csv --out OUT.jsonl", 1, "gone.csv: no such file"),
    ("labels deep.jsonl --out OUT.jsonl", 1, "deep.jsonl: line 1: not JSON: maximum recursion depth exceeded"),
    ("estimate --help-me", 2, "No such option"),
    (
        "export runs/none --to latex",
        1,
        "runs/none: this is not a run folder: it has no results.json",
    ),
    (
        "export runs/gone --to latex",
        1,
        "runs/gone: this is not a run folder: it has no results.json",
    ),
    ("export runs/nan --to latex --out OUT", 1, "runs/nan/results.json: not JSON: NaN is no figure: an undefined"),
    (
        "export runs/bare --to leaderboard --out OUT",
        1,
        "runs/bare: the run has no audit 'rates', which a leaderboard shows",
    ),
    ("export runs/bare --to jsonl --out OUT", 1, "runs/bare: the run folder has no claims.parquet: there are no"),
    ("export runs/bare --to latx", 2, "Invalid value for '--to': 'latx' is not one of"),
    ("export runs/bare", 2, "Missing option '--to'. Choose from:"),
    ("export --to leaderboard --out OUT", 2, "Missing argument 'RUN...'."),
    ("export runs/bare --to leaderboard", 2, "--to leaderboard needs --out"),
    (
        "export runs/none --to leaderboard --out OUT",
        1,
        "runs/none: this is not a run folder: it has no results.json",
    ),
    (
        "export runs/bare --to leaderboard --out OUT",
        1,
        "runs/bare: the run has no audit 'rates', which a leaderboard shows; run it again with this audit",
    ),
    (
        "inspect claims.jsonl --columns gold=label",
        2,
        "--columns: no column 'gold' of claims or verdicts: the name of ours stands first",
    ),
]

#: These commands did their work, and say with the exit code that it came to nothing.
FAILED = (
    "no claim was scored: no document",
    "no verdict has a prediction (1 error)",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("bad")
    for name, content in FILES.items():
        (made / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    for name, text in RUNS.items():
        (made / "runs" / name).mkdir(parents=True)
        if text:
            (made / "runs" / name / "results.json").write_text(text)
    pd.DataFrame({"dataset": [1.5], "claim": [b"\xff"]}).to_parquet(made / "bytes.parquet")
    with sqlite3.connect(made / "other.sqlite") as other:
        other.execute("CREATE TABLE mine (x)")
        other.execute("INSERT INTO mine VALUES (1)")
    (made / "old.sqlite").write_bytes((made / "other.sqlite").read_bytes()[:4000] + b"\xff" * 4192)
    return made


def contents(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.parametrize(("command", "code", "said"), CASES, ids=[case[0] for case in CASES])
def test_bad_input_is_said_and_changes_nothing(folder, tmp_path, monkeypatch, capsys, command, code, said):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("FACTAUDIT_CACHE", str(tmp_path / "cache.sqlite"))
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    before = contents(folder)
    for short, whole in ABBREVIATIONS.items():
        command = command.replace(short, whole)
    with pytest.raises(SystemExit) as stop:
        main([part.replace("OUT", str(tmp_path / "out")) for part in command.split()])
    out, err = capsys.readouterr()
    err = err.replace(str(folder.resolve()), "HERE")
    assert (stop.value.code, said in err) == (code, True), err
    for never in ("Traceback", "This is a bug", "stopped", "secretword", "verysecret"):
        assert never not in out + err
    assert not set(err) & {chr(number) for number in range(32) if number not in (9, 10)}
    assert len(err) < 4000
    assert contents(folder) == before
    # Left is only what a later, right command goes on from; and, of a run whose every verdict failed, what says so.
    finished = [path for path in tmp_path.rglob("*") if path.suffix in (".parquet", ".html", ".db", ".csv", ".jsonl")]
    assert all(".work" in path.parts or "journal" in path.parent.name for path in finished) or said in FAILED
