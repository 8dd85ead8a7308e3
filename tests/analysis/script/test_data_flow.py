"""What single statements read before they bind it, and which files they save and load."""

import ast
import textwrap

import pytest

from grader.analysis.script.data_flow import READ_BY_UNKNOWN_LOAD, WRITTEN_BY_UNKNOWN_SAVE, exposed, files_of


def read_first(text: str) -> frozenset[str]:
    """The names that a function's body reads first, as the body of an `if` that binds nothing."""
    (node,) = ast.parse("if condition:\n" + textwrap.indent(textwrap.dedent(text), "    ")).body
    return exposed(node) - {"condition"}


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("match kind:\n    case 'a':\n        rate = 1\nprint(rate)", {"kind", "print", "rate"}),
        (
            "match kind:\n    case 'a':\n        rate = 1\n    case _:\n        rate = 2\nprint(rate)",
            {"kind", "print"},
        ),
        (
            "match kind:\n    case 'a':\n        rate = 1\n    case _:\n        other = 2\nprint(rate)",
            {"kind", "print", "rate"},
        ),
        (
            "match kind:\n    case 'a':\n        rate = 1\n    case _ if on:\n        rate = 2\nprint(rate)",
            {"kind", "on", "print", "rate"},
        ),
        ("match kind:\n    case rate:\n        pass\nprint(rate)", {"kind", "print"}),
        ("match kind:\n    case 'a':\n        first = rate\n    case _:\n        rate = 2", {"kind", "rate"}),
    ],
)
def test_a_name_is_bound_by_a_match_if_all_its_ways_bind_it(text: str, names: set[str]) -> None:
    """As by an `if`: without a case that is certain to match, it may bind nothing."""
    assert read_first(text) == names


def test_what_a_pattern_captures_is_bound_in_its_case_alone() -> None:
    """In a sequence, a mapping, an object, a guard; the class is read."""
    text = """
    match found:
        case [first, *rest] if first > least:
            print(first, rest)
        case {"rate": rate, **others}:
            print(rate, others)
        case Found(value=value) as whole:
            print(value, whole)
    print(value)
    """
    assert read_first(text) == {"found", "least", "print", "Found", "value"}


def test_an_if_binds_what_both_branches_bind() -> None:
    """Not what one of them does."""
    assert read_first("if late:\n    rate = 1\nelse:\n    rate = 2\nprint(rate)") == {"late", "print"}
    assert "rate" in read_first("if late:\n    rate = 1\nprint(rate)")


def test_unknown_files_depend_on_all_saves_and_feed_all_loads() -> None:
    """A load and a save of one name meet; those of two names do not."""

    def files(text: str) -> tuple[frozenset[str], frozenset[str]]:
        found = files_of(ast.parse(text).body)
        return found.read, found.written

    (read, _), (_, written) = files("torch.load('a.pth')"), files("torch.save(state, 'a.pth')")
    assert files("torch.load(f='a.pth')")[0] == files("torch.load(map_location='cpu', f='a.pth')")[0] == read
    assert files("torch.save(obj=state, f='a.pth')")[1] == files("torch.save(state, f='a.pth')")[1] == written
    assert files("torch.load(*given)") == files("torch.load(f=path)") == files("torch.load(path)")
    assert files("torch.save(*given)") == files("torch.save(obj=state, f=path)")
    (other, _), (_, any_written) = files("torch.load('b.pth')"), files("torch.save(state, path)")
    (any_read, _) = files("torch.load(path)")
    assert read & written and not other & written
    assert any_read & written and any_read & any_written and read & any_written
    assert any_read == {READ_BY_UNKNOWN_LOAD}
    assert any_written == {READ_BY_UNKNOWN_LOAD, WRITTEN_BY_UNKNOWN_SAVE}
