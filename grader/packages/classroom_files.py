"""The workflow of GitHub Classroom: public checks only, since it runs in the student's own repository.

Whoever can push there can read everything that the workflow reads, and change it. So nothing of the course
travels: the workflow runs what students have anyway. It never gives points of the rubric.
"""

import re
from collections.abc import Iterable

from grader.domain.assignment import Assignment
from grader.domain.errors import UsageError
from grader.packages.install_scripts import Sources, python_version
from grader.packages.package_contents import PINS, torch_requirements

WORKFLOW = ".github/workflows/classroom.yml"
_CHECK_MINUTES = 10


def classroom_workflow(assignment: Assignment, sources: Sources, wheel: str) -> str:
    """The workflow: one test for each part that public checks judge.

    Args:
        sources: Where the runner gets its libraries from.
        wheel: The name of the wheel, which lies in the repository as students received it.

    Raises:
        UsageError: No part has public checks.
    """
    public = {check.component for check in assignment.checks if check.public}
    parts = [part.name for part in assignment.components if part.name in public and part.kind != "file"]
    if not parts:
        raise UsageError(f"{assignment.id}: no part has public checks, so the workflow would check nothing.")
    steps = _steps(parts)
    tests = "\n".join(_test(part, step) for part, step in steps.items())
    results = "\n".join(
        f'          {step.upper()}_RESULTS: "${{{{steps.{step}.outputs.result}}}}"' for step in steps.values()
    )
    return f"""# Public checks only: this repository is the student's, and hidden checks could be read in it.
# The points say how many parts pass their public checks; they are no grade. Not tried on GitHub yet.
name: Public checks
on: [push, workflow_dispatch]
permissions:
  checks: write
  actions: read
  contents: read
jobs:
  public-checks:
    runs-on: ubuntu-latest
    if: github.actor != 'github-classroom[bot]'
    steps:
      - uses: actions/checkout@v4
      - uses: actions/setup-python@v5
        with:
          python-version: "{python_version()}"
      - name: Install
        run: |
          python -m pip install --index-url {sources.torch_index} {torch_requirements()}
          python -m pip install --index-url {sources.index} --constraint .github/{PINS} ./{wheel}
{tests}
      - name: Results
        uses: classroom-resources/autograding-grading-reporter@v1
        env:
{results}
        with:
          runners: {",".join(steps.values())}
"""


def _test(part: str, step: str) -> str:
    return f"""      - name: {part}
        id: {step}
        uses: classroom-resources/autograding-command-grader@v1
        with:
          test-name: "{part}"
          command: "python -m grader check {part} --no-try --no-warm"
          timeout: {_CHECK_MINUTES}
          max-score: 1"""


def _steps(parts: Iterable[str]) -> dict[str, str]:
    """Part -> the name of its step, which a variable is called after: small letters, and no name twice."""
    steps: dict[str, str] = {}
    for part in parts:
        step = re.sub("[^a-z0-9_]", "_", part.lower())  # a name in Python may have other letters
        while step in steps.values():
            step += "_"
        steps[part] = step
    return steps
