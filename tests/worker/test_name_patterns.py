"""Names match patterns of forbidden parts as `fnmatch` says, also those that answer for themselves."""

from fnmatch import fnmatchcase

import pytest

from grader.worker import audit_hook
from grader.worker.name_patterns import inside, matching
from grader.worker.sealed_functions import sealed

PATTERNS = ["timm", "torch.nn.Transformer*", "lightning*.EarlyStopping", "a.b?", "x[12]", "*", "", "a.*"]
NAMES = ["timm", "timmy", "timm.data", "torch.nn.Transformer", "torch.nn.TransformerEncoder", "torch.nn"]
NAMES += [
    "lightning.callbacks.EarlyStopping",
    "lightning.EarlyStopping.x",
    "a.bc",
    "a.b",
    "x1",
    "x3",
    "",
    ".",
]


def asked(name, patterns):
    condition = sealed(audit_hook._imports, "imports", **audit_hook._names_in(patterns))
    return bool(condition((name,)))


@pytest.mark.parametrize("pattern", PATTERNS)
def test_names_match_as_fnmatch_says(pattern):
    for name in NAMES:
        expected = fnmatchcase(name, pattern) or fnmatchcase(name, f"{pattern}.*")
        assert asked(name, [pattern]) == expected, name
    assert matching(dict.fromkeys(NAMES), pattern) == [each for each in NAMES if fnmatchcase(each, pattern)]


def test_several_patterns_are_asked_at_once():
    assert [name for name in NAMES if asked(name, ["timm", "a.b?"])] == ["timm", "timm.data", "a.bc"]
    assert not any(asked(name, []) for name in NAMES)
    assert inside(["timm", "x*"]).starts == ("timm.", "x")


class Lying(str):
    """A text of a student's that says that it is another one."""

    def startswith(self, *others):
        return False

    def __eq__(self, other):
        return False

    def __hash__(self):
        return 0

    def __str__(self):
        return "harmless"


@pytest.mark.parametrize("pattern", ["timm", "tim*", "ti*m"])
def test_a_text_of_another_class_is_read_as_what_it_holds(pattern):
    assert asked(Lying("timm"), [pattern])
    assert asked(Lying("timm.data"), [pattern]) == (pattern != "ti*m" or fnmatchcase("timm.data", "ti*m.*"))
    unpickled = sealed(audit_hook._unpickles, "unpickled", **audit_hook._names_in([pattern]))
    assert unpickled((Lying("timm"), Lying("Mixup")))


def test_what_is_no_text_matches_nothing():
    assert [*map(str.__str__, matching({5: 1, "timm": 2, Lying("timx"): 3}, "tim*"))] == ["timm", "timx"]
    assert matching({5: 1}, "ti?m") == matching({5: 1}, "timm") == []
