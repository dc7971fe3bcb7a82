"""The experiment on files as MF publish them (theirs: test_shipped_experiments), and what is wrong with a YAML."""

from __future__ import annotations

from pathlib import Path

import pytest

from factaudit.errors import InputError
from factaudit.experiment import read_experiment


def test_a_wrong_experiment_is_said_by_line(tmp_path: Path) -> None:
    path = tmp_path / "e.yaml"
    path.write_text("dfactscore:\n  published: x.json\n  knowlege: y\n")
    with pytest.raises(InputError, match=r"line 3.*knowlege"):
        read_experiment(path)
    path.write_text("dfactscore:\n  biographies: x.jsonl\n  groupers: giwen\n")
    with pytest.raises(InputError, match="line 3"):
        read_experiment(path)
    path.write_text("dfactscore:\n  biographies: e.yaml\n  verifier: unigran\naudits: [rate]\n")
    with pytest.raises(InputError, match=r"line 3.*did you mean 'unigram'[\s\S]*line 4: unknown audit"):
        read_experiment(path)
    path.write_text("dfactscore:\n  biographies: x.jsonl\n")
    with pytest.raises(InputError, match="line 2: no such file"):
        read_experiment(path)
    path.write_text("dfactscore:\n  biographies: ${data}/x.jsonl\n")
    with pytest.raises(InputError, match="'data' is not set"):
        read_experiment(path)
