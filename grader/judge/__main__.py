"""`python -m grader.judge FOLDER`: the judge host of the assignment in a folder."""

from grader.judge.host import main

if __name__ == "__main__":
    main()
