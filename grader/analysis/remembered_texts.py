"""What was found out about a statement's text is remembered, if the text is short.

The homeworks of a class share what was handed out, and the versions that `grader validate` tries share
nearly all of their text. Long texts are read anew each time, so that what is remembered has a limit.

Tests: tests/analysis/test_remembered_texts.py
"""

import functools
from collections.abc import Callable
from typing import Concatenate, ParamSpec, TypeVar

SHORT = 4000  # characters: a long function

Further = ParamSpec("Further")
Found = TypeVar("Found")


def remembered(
    number: int,
) -> Callable[[Callable[Concatenate[str, Further], Found]], Callable[Concatenate[str, Further], Found]]:
    """A decorator of functions of a text: they are called once for each of the latest short texts.

    Args:
        number: How many results are kept; nobody may change one.
    """

    def decorated(
        function: Callable[Concatenate[str, Further], Found],
    ) -> Callable[Concatenate[str, Further], Found]:
        kept = functools.lru_cache(maxsize=number)(function)

        def called(text: str, /, *args: Further.args, **kwargs: Further.kwargs) -> Found:
            if len(text) > SHORT:
                return function(text, *args, **kwargs)
            return kept(text, *args, **kwargs)  # type: ignore[arg-type]

        functools.update_wrapper(called, function)
        return called

    return decorated
