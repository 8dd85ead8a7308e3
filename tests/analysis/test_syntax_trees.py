"""The walks over syntax trees visit what `ast` visits, in its order, without contexts."""

import ast
import gc
import weakref
from pathlib import Path

import pytest

from grader.analysis.syntax_trees import (
    bound_names,
    calls,
    children,
    copied,
    statements_within,
    text_of,
    walk,
)

SOURCES = sorted((Path(__file__).parents[1] / "training" / "styles").glob("*.py"))[:5]


def without_contexts(nodes):
    return [node for node in nodes if not isinstance(node, ast.expr_context)]


@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.stem)
def test_walks_visit_what_ast_visits_in_its_order(source):
    tree = ast.parse(source.read_text(encoding="utf-8"))
    nodes = walk(tree)
    assert list(nodes) == without_contexts(ast.walk(tree))
    assert all(list(children(node)) == without_contexts(ast.iter_child_nodes(node)) for node in nodes)


def test_a_node_that_was_made_without_all_its_fields_can_be_walked():
    call = ast.Call(func=ast.Name("f", ast.Load()))
    assert walk(call) == (call, call.func)


def test_what_inner_definitions_hold_is_not_in_a_block():
    tree = ast.parse("for x in a():\n    def f():\n        return b()\n    y = c(lambda: d())\n")
    loop = tree.body[0]
    assert [type(node).__name__ for node in statements_within(loop)] == ["For", "FunctionDef", "Assign"]
    assert {ast.unparse(call.func) for call in calls(loop)} == {"a", "c"}
    assert bound_names([loop]) == ({"x", "f", "y"}, set())


def test_a_copy_can_be_changed_though_the_tree_remembers_what_is_below_it():
    tree = ast.parse("total = first(second(x))")
    before, text = walk(tree), text_of(tree)
    copy = copied(tree)
    copy.body[0].value.args = [ast.Constant(1)]
    assert text_of(copy) == "total = first(1)" and len(walk(copy)) < len(before)
    assert [call.func.id for call in calls(copy)] == ["first"]
    assert (walk(tree), text_of(tree)) == (before, text)
    assert not {*map(id, before)} & {*map(id, walk(copy))}
    assert copy.body[0].value.lineno == 1


def test_a_tree_that_was_walked_is_gone_when_nobody_holds_it():
    """Without the collector: it may wait for a long time."""

    class Watched(ast.Module):
        """A node that a weak reference can point to."""

    tree = Watched(ast.parse("def f():\n    return g(h(1))\nf()\n").body, [])
    held = weakref.ref(tree)
    gc.disable()
    try:
        for walked in (walk, statements_within, calls, children, text_of):
            for node in walk(tree):
                walked(node)
        del tree, node
        assert held() is None
    finally:
        gc.enable()
