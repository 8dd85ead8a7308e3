"""`python -m grader.worker`: the worker host, or with `--local` a single worker on stdin and stdout."""

from grader.worker.host import main

if __name__ == "__main__":
    main()
