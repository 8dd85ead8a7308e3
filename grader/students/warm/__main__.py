"""`python -m grader.students.warm`: the warm process; `grader check` starts it."""

from grader.students.warm.warm_process import main

if __name__ == "__main__":
    main()
