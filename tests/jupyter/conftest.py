"""A folder as the course hands it out, in which a notebook works."""

from pathlib import Path

import pytest

from grader.course.student_template import write_template


@pytest.fixture(scope="session")
def handed_out(course_root: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What students receive; not to be written to."""
    folder = tmp_path_factory.mktemp("handed out")
    write_template(course_root / "reference" / "vit_defects", folder, course_root / "datasets")
    return folder
