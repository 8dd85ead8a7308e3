"""Entry point `python -m grader.judge FOLDER`: the judge host of the assignment in a folder.

`judge_host` decides what it does.

Tests: tests/grading/test_limits_by_name.py
"""

from grader.judge.judge_host import main

if __name__ == "__main__":
    main()
