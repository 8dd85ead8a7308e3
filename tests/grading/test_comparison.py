"""What students received is nobody's own: also the modules and the weights that are provided."""

from pathlib import Path

from grader.course.assignment_file import read_assignment
from grader.grading.comparison import handed_out
from grader.similarity.compared_pairs import own
from grader.similarity.normalized_code import read_code, units_not_given


def test_provided_modules_and_weights_are_handed_out(course_root: Path) -> None:
    """Students paste the module into a notebook, and all of them begin with the weights."""
    assignment = read_assignment(course_root / "reference" / "vit_finetune")
    given = handed_out(assignment)
    assert [len(weights.sizes) for weights in given.weights] == [54]
    (module,) = (file for file in assignment.provided if file.code)
    assert own(units_not_given(read_code(module.name, module.code), given.forms)).size == 0
