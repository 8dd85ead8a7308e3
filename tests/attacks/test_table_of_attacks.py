"""The table in docs/security.md is that of the attacks."""


def test_the_table_is_up_to_date(attack_modules, course_root):
    page = (course_root / "docs" / "security.md").read_text(encoding="utf-8")
    renewed = attack_modules("table").with_table(page)
    assert page == renewed, "run: python tests/attacks/table.py docs/security.md"


def test_the_list_of_issue_4_is_there_and_more(attack_modules):
    """The 67 attacks of the list, and at least 15 more, none twice."""
    every = (
        *attack_modules("attack").attacks(),
        *attack_modules("uploads").UPLOADS,
        *attack_modules("impostors").IMPOSTORS,
        *attack_modules("retried").RETRIED,
        *attack_modules("called").CALL_ATTACKS,
    )
    numbers = [each.number for each in every]
    assert len(numbers) == len(set(numbers)) >= 67 + 15
    assert set(range(1, 68)) <= set(numbers)
