"""A course that hands out another edition of an assignment of ours."""

import shutil
from pathlib import Path

ROOT = Path(__file__).parents[1]
OURS = 'edition = ["laptop", "full"]'


def course_in_edition(destination: Path, *names: str) -> Path:
    """Copies the course with `vit_cifar10` alone, chooses these names, and returns the course's folder."""
    course = destination / "course"
    shutil.copytree(ROOT / "reference" / "vit_cifar10", course / "reference" / "vit_cifar10")
    shutil.copytree(ROOT / "datasets", course / "datasets")
    shutil.copy(ROOT / "course.toml", course)
    path = course / "reference" / "vit_cifar10" / "assignment.toml"
    text = path.read_text(encoding="utf-8")
    assert text.count(OURS) == 1
    edition = ", ".join(f'"{name}"' for name in names)
    path.write_text(text.replace(OURS, f"edition = [{edition}]"), encoding="utf-8")
    return course
