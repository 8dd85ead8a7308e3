"""What a worker gets of a source's text: what is executed, on its own lines, and nothing else to read."""

import ast
import io
import textwrap
import tokenize
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from grader.analysis.bare_text import DOCSTRING, DOCSTRINGS, BareTexts
from grader.domain.analyzed_program import Program

ROOT = Path(__file__).parents[2]


def bare(text: str) -> str:
    return BareTexts().text(textwrap.dedent(text).strip("\n"))


def comments(text: str) -> list[str]:
    tokens = tokenize.generate_tokens(io.StringIO(text).readline)
    return [token.string for token in tokens if token.type == tokenize.COMMENT]


def executed(text: str) -> str:
    """The syntax tree with the lines of its statements, without constants that nothing uses."""
    tree = ast.parse(text)
    lines = [node.lineno for node in ast.walk(tree) if isinstance(node, ast.stmt)]
    for node in ast.walk(tree):
        for body in (getattr(node, name, None) for name in ("body", "orelse", "finalbody")):
            for place, each in enumerate(body if isinstance(body, list) else []):
                if isinstance(each, ast.Expr) and isinstance(each.value, ast.Constant):
                    body[place] = ast.Pass()
    return f"{lines} {ast.dump(tree)}"


SOURCES = sorted(
    [
        *(ROOT / "grader").rglob("*.py"),
        *ROOT.glob("reference/*/forms/*.py"),
        *(ROOT / "tests" / "training" / "styles").glob("*.py"),
        ROOT / "reference" / "vit_defects" / "solution.py",
    ]
)


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.slow) for part in range(1, 12))])
def test_real_code_executes_the_same_on_the_same_lines(part: int) -> None:
    for path in SOURCES[part::12]:
        text = path.read_text(encoding="utf-8").rstrip("\n")
        made = BareTexts().text(text)
        assert executed(made) == executed(text), path
        assert made.count("\n") == text.count("\n"), path
        assert comments(made) == [], path


def test_comments_and_unused_texts_are_gone_and_spaces_are_as_always() -> None:
    """Not even the number of blanks is left to read."""
    text = """
        class A:   # a comment
            x   =   (1 ,\t2)  # another
            'a text that nothing uses'
            b'and another'; 7
            # a whole line
            def f( self , *a , k = -1 , ** b ) :
                return  a [ 0 : -1 ] , not( k ) , { 'x' : - k , **b } , lambda *q : q
        """
    assert bare(text).split("\n") == [
        "class A:",
        "    x = (1, 2)",
        "    pass",
        "    pass; pass",
        "",
        "    def f(self, *a, k=-1, **b):",
        "        return a[0:-1], not (k), {'x': -k, **b}, lambda *q: q",
    ]


def test_lines_stay_where_statements_go_over_several() -> None:
    text = """
        def f(x):
            y = x + \\
                1  # why
            z = [
                # nothing here

                y,  # here
            ]
            ("a text "
             "in brackets")
            '''of
            three
            lines'''; z += 1

            return z
        """
    made = bare(text).split("\n")
    assert made[1:3] == ["    y = x + \\", "        1"]
    assert (made[6].strip(), made[14].strip()) == ("y,", "return z")
    assert "text" not in "".join(made) and "three" not in "".join(made)


def test_a_long_docstring_is_cut_and_a_short_one_stays_as_it_is() -> None:
    long = "Many words. " * 100
    text = f"class A:\n    '''{long}\n    and more\n    '''\n\n"
    made = BareTexts().text(text + "    def f(self):\n        '''Short.\n\n        More.'''")
    tree = ast.parse(made).body[0]
    assert isinstance(tree, ast.ClassDef) and isinstance(tree.body[1], ast.FunctionDef)
    assert ast.get_docstring(tree, clean=False) == long[:DOCSTRING]
    assert ast.get_docstring(tree.body[1], clean=False) == "Short.\n\n        More."
    assert tree.body[1].lineno == 6


def test_no_example_in_a_docstring_is_cut_in_half() -> None:
    """A program may run them: what is left of one would fail."""
    examples = [f">>> double({number})\n{2 * number}" for number in range(100)]
    text = 'def double(x):\n    """\n' + "\n".join(examples) + '\n    """\n'
    kept = ast.get_docstring(ast.parse(BareTexts().text(text)).body[0], clean=False)  # type: ignore[arg-type]
    assert kept is not None and 20 < kept.count(">>>") < 100
    assert kept.strip() == "\n".join(examples[: kept.count(">>>")])


def test_all_docstrings_of_a_program_are_bounded_together() -> None:
    """Else forty functions with a docstring each would be a long text."""
    text = "\n".join(f"def f{number}():\n    '''{number:03}{'x' * 200}'''" for number in range(40))
    kept = [ast.get_docstring(node) for node in ast.parse(BareTexts().text(text)).body]  # type: ignore[arg-type]
    assert sum(len(each or "") for each in kept) == DOCSTRINGS
    assert kept[0] == "000" + "x" * 200 and kept[-1] == ""


def test_a_docstring_says_nothing_by_its_spelling() -> None:
    """Of the text `a` there are thousands of spellings, and getsource shows which."""
    spelled = "".join(rf"\x{ord(letter):02x}" for letter in "some words that are spelled in a rare way")
    assert bare(f"def f():\n    '{spelled}'") == "def f():\n    'some words that are spelled in a rare way'"


@pytest.mark.parametrize(
    "text",
    [
        "from . import x",
        "from .. import x",
        "from ...a import (b, c)",
        "x = 1 .real if 1 else 2.",
        'f"{x!r:>{width}} {y = }" f"{z}"',
        "f'''{\nx\n}'''",
        "match (x):\n    case [1, {'a': b, **c}] | A(d=2) if -e: pass\n    case _: ...",
        "@ a . b\n@(c)\nasync def f(a, /, b: int = -1, *, c) -> d: await a; yield",
        "x: int = - 1 ** - 2 @ y // z >> 1 & ~ w",
        "a, * b = * c , d [..., 1 :: 2, : -1]",
        "if a: pass\nelif not b: pass\nelse: del c, d\n",
        "try: pass\nexcept* A as b: raise B from None\nfinally: return",
        "print(* a, sep='', ** b); assert x, 'y'; global g",
        "lambda: (yield)",
        "x = 'a' 'b' if u'd' else rb'c' b''",
        "with (a as b, c): nonlocal d",
        "x = 1e400 - 1e400 + 0xFF + 1_000 + 1j",
        "ℌ = ª = 1",
        "def f():\n\tif x:\n\t\treturn [\n  1]\n\telse: return 'x'\n",
    ],
)
def test_rare_syntax_executes_the_same(text: str) -> None:
    assert executed(bare(text)) == executed(text)
    assert bare(bare(text)) == bare(text)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(SOURCES), min_size=1, max_size=2), st.integers(0, 9))
def test_spaces_of_any_width_make_no_difference(paths: list[Path], width: int) -> None:
    text = paths[0].read_text(encoding="utf-8")[:3000].rsplit("\n\n\n", 1)[0]
    try:
        ast.parse(text)
    except SyntaxError:
        return
    wide = text.replace(" = ", " " * (width + 1) + "=" + " " * width).replace(", ", "," + " " * width)
    try:
        same = ast.dump(ast.parse(wide)) == ast.dump(ast.parse(text))
    except SyntaxError:
        return
    if same:  # and not within a text
        assert BareTexts().text(wide) == BareTexts().text(text)


def test_statements_of_a_program_are_bare_wherever_they_come_from(analyzed) -> None:
    """Those that are executed on loading, for the recipe, and the student's own loop."""
    made: Program = analyzed(
        """
        import torch  # SECRET

        class ViT(torch.nn.Module):  # SECRET
            pass

        def train_epoch(model, optimizer, data_loader, loss_history):
            "SECRET"[0]  # SECRET
            "SECRET"

        WIDTH = 3  # SECRET
        model = ViT(dim=WIDTH,  # SECRET
                    depth=2)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  # SECRET

        def main():
            for epoch in range(3):  # SECRET
                # SECRET
                train_epoch(model, optimizer, train_loader, [])
            "SECRET"
        main()
        """
    )
    assert made.script.statements
    texts = "\n".join(made.executed_texts)
    assert texts.count("SECRET") == 1 and '"SECRET"[0]' in texts, texts
    assert made.source is not None and made.source["homework.py"].count("# SECRET") == 8
