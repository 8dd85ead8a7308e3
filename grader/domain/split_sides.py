"""Which side of a split, training or test, the words of a name, path or expression show.

Students name loaders, data sets, folders and parameters as they like. Validation counts as test: it is what
the student's code measures on. What shows nothing has no side, and who asks decides then.

Tests: tests/domain/test_split_sides.py
"""

import re

WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")
TRAINING = re.compile(r".*(?<!s)train.*|fit.*|trn.*|tr")
TEST = re.compile(
    r"[a-z]?(test|tst).*|[a-z]?eval.*|[a-z]?val(id.*|set.*|load.*|data.*|dl|ds|split|gen.*|dir|path|im.*|iter.*)?|dev(set|load.*|data|dl|ds)?"
    r"|hold(out)?|te|va|vl"
)


def split_side(text: str) -> str | None:
    """The side that a text shows, `train` or `test`; None if it shows none.

    Of a path the last part that shows one counts: "/home/dev/data/train" is of the training. Within a part,
    training comes first: "train_val_split".
    """
    for part in reversed(re.split(r"[/\\]", text)):
        words = [word.lower() for word in WORD.findall(part)]
        if any(TRAINING.fullmatch(word) for word in words):
            return "train"
        if any(TEST.fullmatch(word) for word in words):
            return "test"
    return None
