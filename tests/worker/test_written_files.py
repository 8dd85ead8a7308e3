"""What is written while a script is executed leaves nothing behind, and can be read meanwhile."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from grader.worker.written_files import written_apart


def test_what_is_written_is_read_again_and_gone_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever writes it, and by whatever path."""
    monkeypatch.chdir(tmp_path)
    Path("metrics.csv").write_text("mine\n")
    Path("log.txt").write_text("one\n")
    with written_apart():
        with open("metrics.csv", "w") as file:  # noqa: PTH123 - as students do
            file.write("of the trial\n")
        with open(file="log.txt", mode="a") as file:  # noqa: PTH123
            file.write("two\n")
        Path("notes.md").write_text("new")
        pd.DataFrame({"accuracy": [0.5]}).to_csv(tmp_path / "table.csv")
        np.save("weights.npy", np.ones(3))
        assert Path("metrics.csv").read_text() == "of the trial\n"
        assert Path("log.txt").read_text() == "one\ntwo\n"
        assert np.load("weights.npy").sum() == 3
        assert list(pd.read_csv("table.csv")["accuracy"]) == [0.5]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["log.txt", "metrics.csv"]
    assert Path("metrics.csv").read_text() == "mine\n"
    assert Path("log.txt").read_text() == "one\n"


def test_files_that_are_only_read_are_opened_where_they_are(tmp_path: Path) -> None:
    (tmp_path / "given.txt").write_text("given")
    with written_apart():
        assert (tmp_path / "given.txt").read_text() == "given"
        with pytest.raises(FileNotFoundError):
            (tmp_path / "none.txt").read_text()


def test_a_folder_that_nobody_made_is_there_for_what_is_written(tmp_path: Path) -> None:
    """`os.makedirs` is left out of a script, and the graded function that writes there is not."""
    with written_apart():
        (tmp_path / "out" / "metrics.csv").write_text("metric,value\n")
        assert (tmp_path / "out" / "metrics.csv").read_text() == "metric,value\n"
    assert not list(tmp_path.iterdir())
