"""What `grader check` is asked about: the words behind it. Imported before a warm process is asked."""

from collections.abc import Sequence
from pathlib import Path

from grader.domain.errors import UsageError


def part_and_its_file(words: Sequence[str]) -> tuple[str, Path | None]:
    """The part that is asked for (empty: all), and the file (None: the homework of the folder).

    A single word is a part if it is written like a name and no file is called so.

    Raises:
        UsageError: There are more words than two.
    """
    if len(words) > 2:
        raise UsageError(
            f"grader check takes a part and a file, and got {len(words)} words. "
            "Give them like this: grader check Attention homework.py"
        )
    if len(words) == 2:
        return words[0], Path(words[1])
    if words and (not words[0].isidentifier() or Path(words[0]).exists()):
        return "", Path(words[0])
    return (words[0] if words else ""), None
