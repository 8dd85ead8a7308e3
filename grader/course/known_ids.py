"""Ids of students in tables that people keep, as the ids under which results are listed.

Spreadsheets drop leading zeros, and an LMS tells no small letters from large ones. An id that is written like
a known one stands for it, unless several are, there or in the table. It never decides whose
a submission is. Tests: `tests/course/test_term_files.py`.
"""

from collections.abc import Collection, Iterable


class KnownIds:
    """The ids under which results are listed.

    Args:
        ids: All of them.
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self._alike = _by_form(ids)

    def of_table(self, table: Collection[str]) -> dict[str, str]:
        """Each id of a table -> the known id that is meant; the id itself where none is."""
        in_table = _by_form(table)
        return {one: self._meant(one, in_table[id_form(one)]) for one in table}

    def _meant(self, given: str, alike_in_table: Collection[str]) -> str:
        alike = self._alike.get(id_form(given), [])
        is_clear = len(alike) == 1 and len(alike_in_table) == 1
        return alike[0] if is_clear else given


def _by_form(ids: Iterable[str]) -> dict[str, list[str]]:
    """Form -> the different ids that are written like it."""
    by_form: dict[str, list[str]] = {}
    for one in sorted(set(ids)):
        by_form.setdefault(id_form(one), []).append(one)
    return by_form


def id_form(student_id: str) -> str:
    """What ids have in common that are written alike: small letters, and no leading zeros of a number."""
    folded = student_id.casefold()
    return folded.lstrip("0") if folded.isdecimal() else folded
