"""Which file of weights was asked for, by what libraries raise where nothing can be downloaded."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
import torchvision

from grader.domain.formatting import Said
from grader.protocol.replies import Problem
from grader.sandbox.readable_files import GivenFiles, cache_environment, lay_out_cache, remove_cache
from grader.worker.student_faults import wanted_file


@pytest.fixture(autouse=True)
def _offline(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty cache that can be written to, as root can write to any."""
    cache = tmp_path / "cache"
    (cache / "torch" / "hub" / "checkpoints").mkdir(parents=True)
    for name, value in cache_environment(cache).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(tmp_path)


def raised(call: Callable[[], object]) -> Exception:
    """What a call raises."""
    try:
        call()
    except Exception as error:  # noqa: BLE001
        return error
    raise AssertionError("nothing was raised")


URL = "https://example.org/weights/scale-v2.pth?download=1"


def test_torch_hub_asks_for_a_file_of_its_cache() -> None:
    assert wanted_file(raised(lambda: torch.hub.load_state_dict_from_url(URL))) == (
        "torch/hub/checkpoints/scale-v2.pth"
    )
    other = raised(lambda: torch.hub.load_state_dict_from_url(URL, file_name="mine.pth"))
    assert wanted_file(other) == "torch/hub/checkpoints/mine.pth"
    beside = raised(lambda: torch.hub.load_state_dict_from_url(URL, model_dir="."))
    assert wanted_file(beside) == "scale-v2.pth"


def test_torchvision_asks_for_the_file_of_its_weights() -> None:
    error = raised(lambda: torchvision.models.vit_b_16(weights="DEFAULT"))
    assert wanted_file(error) == "torch/hub/checkpoints/vit_b_16-c867db91.pth"


def test_a_cache_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = tmp_path / "read-only"
    lay_out_cache(GivenFiles(), cache)
    monkeypatch.setenv("TORCH_HOME", str(cache / "torch"))
    try:
        error = raised(lambda: torch.hub.load_state_dict_from_url(URL))
        assert wanted_file(error) == "torch/hub/checkpoints/scale-v2.pth"
        assert not list((cache / "torch" / "hub" / "checkpoints").iterdir())
    finally:
        remove_cache(cache)


def test_what_raised_it_is_found_behind_what_was_made_of_it() -> None:
    def wrapped() -> None:
        try:
            torch.hub.load_state_dict_from_url(URL)
        except OSError as error:
            raise RuntimeError("no weights") from error

    assert wanted_file(raised(wrapped)) == "torch/hub/checkpoints/scale-v2.pth"


@pytest.mark.parametrize(
    ("call", "wanted"),
    [
        (lambda: torch.load("vit.pth"), "vit.pth"),
        (lambda: torch.load("/content/drive/My Drive/vit.pth"), "vit.pth"),
        (lambda: Path("vit.safetensors").read_bytes(), "vit.safetensors"),
        (lambda: Path("numbers.csv").read_bytes(), ""),
        (lambda: {}["vit.pth"], ""),
        (lambda: torch.zeros(2) @ torch.zeros(3), ""),
    ],
)
def test_a_file_of_the_working_folder(call: Callable[[], object], wanted: str) -> None:
    assert wanted_file(raised(call)) == wanted


def test_the_hub_of_hugging_face_asks_for_a_repository_and_a_file() -> None:
    hub = pytest.importorskip(
        "huggingface_hub", reason="huggingface_hub is not installed (extra: finetuning)"
    )
    error = raised(lambda: hub.hf_hub_download("owner/net", "weights.bin", cache_dir="hub"))
    assert wanted_file(error) == "huggingface/owner/net/weights.bin"
    error = raised(lambda: hub.hf_hub_download("owner/net", "a.bin", subfolder="sub", cache_dir="hub"))
    assert wanted_file(error) == "huggingface/owner/net/sub/a.bin"
    assert wanted_file(raised(lambda: hub.snapshot_download("owner/net", cache_dir="hub"))) == (
        "huggingface/owner/net"
    )


def test_timm_asks_for_what_it_asks_for_first() -> None:
    timm = pytest.importorskip("timm", reason="timm is not installed (extra: finetuning)")
    error = raised(lambda: timm.create_model("vit_tiny_patch16_224", pretrained=True))
    name = "timm/vit_tiny_patch16_224.augreg_in21k_ft_in1k"
    assert wanted_file(error) == f"huggingface/{name}/model.safetensors"


def test_an_exception_that_answers_for_itself_is_asked_nothing() -> None:
    class Odd(FileNotFoundError):
        def __str__(self) -> str:
            raise ValueError

        @property
        def __cause__(self) -> object:  # type: ignore[override]
            raise ValueError

    assert wanted_file(Odd()) == ""
    circle = OSError("one")
    circle.__context__ = OSError("two")
    circle.__context__.__context__ = circle
    assert wanted_file(circle) == ""


@pytest.mark.parametrize(
    "said", ["a b.pth", "../x.pth", "/x.pth", "x\n.pth", "“.pth", "x" * 161, "`x`", "a//b"]
)
def test_what_is_no_place_is_not_told(said: str) -> None:
    """A worker may say anything."""
    assert Problem("OSError", Said(""), wanted=said).wanted == ""
    assert Problem("OSError", Said(""), wanted="torch/hub/checkpoints/vit.pth").wanted
