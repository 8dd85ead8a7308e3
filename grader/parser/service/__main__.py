"""`python -m grader.parser.service [--views]`: the parsers' host."""

from grader.parser.service.parser_host import main

if __name__ == "__main__":
    main()
