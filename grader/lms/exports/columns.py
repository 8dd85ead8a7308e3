"""A column of an LMS's table, by its name."""

from collections.abc import Callable, Sequence

from grader.domain.errors import UsageError
from grader.files.csv_text import CsvText


def the_column(
    table: CsvText, wanted: str, among: Sequence[int], names: Callable[[str], Sequence[str]]
) -> int:
    """The one column that is meant.

    Args:
        wanted: A name; case and space around it do not matter.
        among: The columns that come into question.
        names: Header -> what a column with that header may be called.

    Raises:
        UsageError: None is meant, or several are.
    """
    asked = wanted.strip().casefold()
    found = [at for at in among if asked in (name.casefold() for name in names(table.header[at]))]
    if len(found) == 1:
        return found[0]
    known = ", ".join(f"'{table.header[at]}'" for at in among) or "none that may hold grades"
    what = f"has no column '{wanted}'" if not found else f"has {len(found)} columns '{wanted}'"
    raise UsageError(f"{table.name} {what}. Name one by --column; there are: {known}.")
