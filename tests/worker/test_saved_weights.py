"""What a script saves is there for it, under each name, and on no disk."""

import os
import shutil
from pathlib import Path

import pytest
import torch
from torch import nn

from grader.worker.saved_weights import Saved, states_in, weights_in_memory


def test_what_is_saved_is_there_until_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a text or a path, renamed, asked for, and in a folder that does not exist."""
    monkeypatch.chdir(tmp_path)
    real = torch.save, torch.load, os.replace, os.path.exists, Path.exists
    saved: dict[str, Saved] = {}
    model = nn.Linear(2, 1)
    with weights_in_memory(saved):
        assert not Path("best.pth").exists()
        torch.save(obj=model.state_dict(), f="best.pth")
        torch.save({"epoch": 3, "model": model.state_dict()}, Path("out", "last.tmp"))
        Path("out", "last.tmp").replace("out/last.pt")
        assert os.path.exists("best.pth") and os.path.isfile(tmp_path / "best.pth")  # noqa: PTH110, PTH113
        shutil.copyfile("best.pth", "model_best.pth")
        shutil.move("model_best.pth", "model_kept.pth")
        os.rename("never_written.json", "history.json")  # noqa: PTH104 - what makes it was left out
        assert Path("model_kept.pth").exists() and not Path("model_best.pth").exists()
        assert Path("out/last.pt").is_file() and not Path("out/last.tmp").exists()
        assert torch.load("out/last.pt")["epoch"] == 3
        with pytest.raises(FileNotFoundError):
            torch.load("other.pth")
    assert [Path(path).name for path in saved] == ["best.pth", "last.pt", "model_kept.pth"]
    assert all(len(list(states_in(kept.value))) == 1 for kept in saved.values())
    assert not list(tmp_path.iterdir())
    assert real == (torch.save, torch.load, os.replace, os.path.exists, Path.exists)
