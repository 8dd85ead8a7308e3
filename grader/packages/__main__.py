"""`python -m grader.packages KIND ROOT`: what the other grader starts, inside a package."""

import sys
from pathlib import Path


def main(arguments: list[str]) -> None:
    """Be the parent of a run, or, with `--into FILE`, the process that grades."""
    kind, root = arguments[0], Path(arguments[1])
    if "--into" in arguments:
        from grader.packages.graded_submission import grade_into

        grade_into(kind, root, Path(arguments[arguments.index("--into") + 1]))
    else:
        from grader.packages.parent_process import supervised_run

        supervised_run(kind, root)


if __name__ == "__main__":
    main(sys.argv[1:])
