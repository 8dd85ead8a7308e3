"""What is told of weights that are not there: the same sentence, and of hidden images nothing."""

import pytest

from grader.domain.analyzed_program import Program
from grader.domain.formatting import Said
from grader.protocol.replies import Problem
from grader.protocol.worker_reports import not_provided, raised_in_training


def told(wanted: str, source: str, *, own: bool) -> str:
    """What a training says of weights that were asked for."""
    problem = Problem(raised_for(wanted), Said("dog cat dog"), wanted=wanted)
    program = Program("homework.py", source={"homework.py": source})
    return raised_in_training(problem, program, own=own, assignment="some_lab")


def raised_for(wanted: str) -> str:
    """The exception that is raised where there is no such file."""
    return "URLError" if "/" in wanted else "FileNotFoundError"


HUB = "huggingface/owner/net/model.safetensors"


@pytest.mark.parametrize(
    ("wanted", "source", "is_told"),
    [
        ("torch/hub/checkpoints/vit.pth", 'from_url("https://a.org/vit.pth")', True),
        ("torch/hub/checkpoints/dog-cat-dog.pth", 'from_url("https://a.org/vit.pth")', False),
        (HUB, 'hf_hub_download("owner/net", "model.safetensors")', True),
        (HUB, 'create_model("hf-hub:owner/net", pretrained=True)', True),
        (HUB, 'create_model("net", pretrained=True)', False),
        ("huggingface/owner/net/dog.bin", 'hf_hub_download("owner/net", name)', False),
        ("vit.pth", 'torch.load("vit.pth")', True),
        ("dog.pth", 'torch.load("vit.pth")', False),
    ],
)
def test_a_training_names_a_file_that_the_source_names(wanted: str, source: str, is_told: bool) -> None:
    """On a student's own machine nothing is hidden."""
    kind = "an error" if "/" in wanted else "FileNotFoundError"
    assert told(wanted, source, own=True) == f"{kind}: {not_provided(wanted, 'some_lab')}"
    of_hidden = told(wanted, source, own=False)
    assert of_hidden == f"{kind}: {not_provided(wanted if is_told else '', 'some_lab')}"
    assert is_told or "dog" not in of_hidden
    assert "reference/some_lab/provided/" in of_hidden
