"""Entry point `python -m grader.worker`: the worker host, or with `--local` a single worker.

A single worker talks on stdin and stdout. `worker_host` decides what either does.

Tests: tests/grading/test_limits_by_name.py, tests/distribution/test_installed.py
"""

from grader.worker.worker_host import main

if __name__ == "__main__":
    main()
