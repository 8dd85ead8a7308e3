"""Makes a class of the homework in `<assignment>/correct` or `<assignment>/mistaken`.

    python -m tests.unseen.build vit_cifar10/correct DESTINATION

Each folder has the code (`homework.py`, further modules, or `homework.ipynb`), the tables that it wrote, and
`truth.md`: its style, or the one mistake in it. Student ids are numbers by the order of the folders' names.
"""

import re
import sys
from pathlib import Path

from grader.course.assignment_file import read_assignment
from tests.submissions.build import pdf

HERE = Path(__file__).parent
FIRST_ID = {
    "vit_cifar10/correct": 400102001,
    "vit_cifar10/mistaken": 400103001,
    "vit_finetune/correct": 400104001,
    "vit_finetune/mistaken": 400105001,
    "vit_defects/mistaken": 400106001,
    "vit_defects/correct": 400107001,
}
# whose points a person decides: a fit that trains by itself cannot be given scripted epochs, an encoder that
# is a fold over stacked numbers has no modules, and what was measured on data is not there in checks
LEFT_TO_A_PERSON = {
    "vit_defects": {
        "jax_params_tree": "ViT",
        "sampler_follows_the_recall": "plot_classwise_predictions",
    },
    "vit_finetune": {
        "fastai_callbacks": "fit",
        "features_of_the_frozen_backbone_kept": "fit",
        "hf_trainer_state": "fit",
    },
}
OWN_ID = re.compile(r"\b40010[2-7]0\d\d\b")


def homeworks(group: str) -> dict[str, Path]:
    """The folders of a group, `vit_cifar10/correct`, by the ids of those who hand them in."""
    folders = sorted(path for path in (HERE / group).iterdir() if path.is_dir())
    first = FIRST_ID[group]
    return {str(first + number): folder for number, folder in enumerate(folders)}


def build(group: str, destination: Path) -> list[Path]:
    """Writes what is handed in to `destination/<student_id>/`, and returns the folders."""
    assignment = read_assignment(HERE.parents[1] / "reference" / group.partition("/")[0])
    built = []
    for student_id, folder in homeworks(group).items():
        target = destination / student_id
        target.mkdir(parents=True)
        for asked in assignment.asked_files:
            for path in found(folder, asked.role):
                text = OWN_ID.sub(student_id, path.read_text(encoding="utf-8"))
                (target / asked.name(student_id, path.suffix)).write_text(text, encoding="utf-8")
            if asked.role == "report":
                report = pdf(f"Report of student {student_id}")
                (target / asked.name(student_id, ".pdf")).write_bytes(report)
        for module in folder.rglob("*.py"):
            if module.stem != "homework":
                place = target / module.relative_to(folder)
                place.parent.mkdir(exist_ok=True)
                place.write_bytes(module.read_bytes())
        built.append(target)
    return built


def found(folder: Path, role: str) -> list[Path]:
    """The files of a role; weights are not among them."""
    stem = "homework" if role == "code" else role
    return [path for path in folder.glob(f"{stem}.*") if path.suffix in (".py", ".ipynb", ".csv")]


if __name__ == "__main__":
    for each in build(sys.argv[1], Path(sys.argv[2])):
        print(each)
