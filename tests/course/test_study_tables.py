"""`[study]`: what contradicts it is told."""

from pathlib import Path

import pytest

from grader.course.assignment_file import read_assignment
from grader.domain.errors import CourseError

CIFAR = Path(__file__).parents[2] / "reference" / "vit_cifar10"


def test_the_columns_are_what_the_call_names() -> None:
    study = read_assignment(CIFAR).study
    assert study is not None
    assert study.columns == ("patch_size", "dim", "depth", "heads", "mlp_ratio", "positions", "epochs")
    assert study.call.given["loaders"] == {"train": "{batches}", "validation": "{validation_batches}"}


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("[study]  ", '[study] # \nfile = "tables"\n#', "file = 'tables' is not a role"),
        ('depth = "{depth}"', 'depht = "{depth}"', "'depht' is not a parameter of VisionTransformer"),
        ('by = "study"', 'by = "person"', ""),
        ("[study]  ", "[other]  ", "other"),
    ],
)
def test_contradictions_are_told(tmp_path: Path, old: str, new: str, said: str) -> None:
    folder = tmp_path / "vit_cifar10"
    folder.mkdir()
    for path in ("checks", "solution.py"):
        (folder / path).symlink_to(CIFAR / path)
    text = (CIFAR / "assignment.toml").read_text(encoding="utf-8")
    assert old in text
    text = text.replace(old, new, 1)
    if "tables" in new:
        text = text.replace('file = "study"', "", 1)
    (folder / "assignment.toml").write_text(text, encoding="utf-8")
    if not said:
        assert read_assignment(folder).rubric
        return
    with pytest.raises(CourseError) as raised:
        read_assignment(folder)
    assert said in str(raised.value)
