"""Makes odd versions of a homework: one part gives what nobody plans for, such as nothing, NaN or a text.

A check may fail for them, or ask a person; it must not break. Much of it happens: a function whose `return`
is missing, a division by zero, a file that a spreadsheet has saved.
"""

import ast
import random
import textwrap
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial

from grader.course.composing import composed
from grader.course.homework_versions import HomeworkVersion, Kind
from grader.domain.assignment import Assignment, Component

Make = Callable[[], HomeworkVersion]

SEED = 20  # of the sample: the same versions every time, so that a failure can be reproduced

# What the part gives, by the name of the version: code that may call `right`, the part as it should be.
_GIVEN: Mapping[str, str] = {
    "nothing": "None",
    "its_input": "args[0] if args else None",
    "text": "'text'",
    "true": "True",
    "one": "1",
    "nan": "float('nan')",
    "whole_number_of_many_digits": "10**400",
    "object": "object()",
    "class": "dict",
    "empty_list": "[]",
    "empty_dictionary": "{}",
    "nested_list": "[[[[right(*args, **kwargs)]]]]",
    "pair_of_results": "(right(*args, **kwargs),) * 2",
    "list_of_rows": "_listed(right(*args, **kwargs))",
    "generator": "(each for each in [right(*args, **kwargs)])",
    "result_in_a_dictionary": "{'result': right(*args, **kwargs)}",
    "result_as_text": "str(right(*args, **kwargs))",
    "noise_like_its_input": "_changed(args[0] if args else None, _noise)",
    "zeros_like_its_input": "_changed(args[0] if args else None, lambda value: value * 0)",
}
# What becomes of each tensor, array and number of the right result, `value`.
_CHANGED: Mapping[str, str] = {
    "zeros": "value * 0",
    "ones": "value * 0 + 1",
    "noise": "_noise(value)",
    "nans": "value * float('nan')",
    "infinities": "value + float('inf')",
    "huge_numbers": "value * 1e30",
    "negated_numbers": "value * -1",
    "whole_numbers": "value.long() if hasattr(value, 'long') else value.astype(int)",
    "doubles": "value.double() if hasattr(value, 'double') else value.astype('float64')",
    "halves": "value.half() if hasattr(value, 'half') else value.astype('float16')",
    "numbers_without_gradient": "value.detach() if hasattr(value, 'detach') else value",
    "empty_result": "value[:0] if len(value.shape) else value",
    "first_alone": "value[:1] if len(value.shape) else value",
    "last_axis_of_one": "value[..., :1] if len(value.shape) else value",
    "further_axis": "value[None]",
    "one_axis": "value.reshape(-1)",
    "one_number": "value.reshape(-1)[:1].reshape(())",
    "twice_as_long": "value[[*range(len(value))] * 2] if len(value.shape) else value",
    "reversed_order": "value[[*range(len(value))][::-1]] if len(value.shape) else value",
}
# What the part does.
_DONE: Mapping[str, str] = {
    "raises": "raise ValueError('odd')",
    "exits": "raise SystemExit(3)",
    "calls_itself": "return again(*args, **kwargs)",
    "leaves_gradients_off": "import torch\ntorch.set_grad_enabled(False)\nreturn right(*args, **kwargs)",
    "uses_up_its_arguments": (
        "for each in args:\n"
        "    if hasattr(each, '__iter__'):\n"
        "        list(each)\n"
        "return right(*args, **kwargs)"
    ),
    "draws_an_empty_figure": (
        "import matplotlib.pyplot as plt\nfigure = plt.figure()\nplt.show()\nreturn figure"
    ),
    "draws_empty_axes": (
        "import matplotlib.pyplot as plt\nfigure, axes = plt.subplots(2, 3)\nplt.show()\nreturn figure"
    ),
    "draws_something_odd": (
        "import matplotlib.pyplot as plt\n"
        "import numpy\n"
        "figure, axes = plt.subplots(1, 3)\n"
        "axes[0].imshow(numpy.random.rand(3, 3))\n"
        "axes[1].plot([float('nan')], [float('inf')], label='')\n"
        "axes[2].bar(['a'], [float('nan')])\n"
        "axes[0].set_title('nan')\n"
        "axes[1].legend()\n"
        "plt.show()\n"
        "return figure"
    ),
}
# What a class does: it makes its parts and does not use them.
_DONE_BY_CLASSES: Mapping[str, str] = {
    "gives_zeros_of_its_last_layer": (
        "layers = [each for each in self.modules() if hasattr(each, 'out_features')]\n"
        "return args[0].new_zeros(len(args[0]), layers[-1].out_features)"
    ),
    "gives_noise_of_its_last_layer": (
        "layers = [each for each in self.modules() if hasattr(each, 'out_features')]\n"
        "return _noise(args[0].new_zeros(len(args[0]), layers[-1].out_features))"
    ),
}
# What becomes of a file that is handed in: code that makes it from its text.
_WRITTEN: Mapping[str, str] = {
    "nothing": "''",
    "its_first_line": "text.split('\\n')[0]",
    "no_first_line": "'\\n'.join(text.split('\\n')[1:])",
    "zero_bytes": "'\\0' * 50",
    "one_long_line": "'a,' * 100_000",
    "everything_twice": "text * 2",
    "semicolons": "text.replace(',', ';')",
    "tabs": "text.replace(',', '\\t')",
    "spaces_around_commas": "text.replace(',', ' , ')",
    "quotes": "re.sub('[^,\\n]+', lambda found: f'\"{found[0]}\"', text)",
    "lines_of_windows": "'\\ufeff' + text.replace('\\n', '\\r\\n')",
    "empty_lines": "text.replace('\\n', '\\n\\n')",
    "lines_in_another_order": "'\\n'.join(sorted(text.split('\\n'), reverse=True))",
    "further_column": "text.replace('\\n', ',x\\n')",
    "no_last_column": "re.sub(',[^,\\n]*$', '', text, flags=re.MULTILINE)",
    "capitals": "text.upper()",
    "words_for_numbers": "re.sub(r'\\d+', 'many', text)",
    "nans": "re.sub(r'\\d+\\.\\d+', 'nan', text)",
    "infinities": "re.sub(r'\\d+\\.\\d+', '1e999', text)",
    "negated_numbers": "re.sub(r'(\\d+\\.\\d+)', r'-\\1', text)",
    "percent": "re.sub(r'0\\.(\\d\\d)', r'\\1%', text)",
    "eastern_digits": "text.translate({48 + digit: 0x6F0 + digit for digit in range(10)})",
}
_HELP = '''
def _changed(value, change):
    """The value with each tensor, array and number in it changed."""
    import numpy

    if hasattr(value, "shape") and hasattr(value, "dtype"):
        return change(value)
    if isinstance(value, dict):
        return {name: _changed(each, change) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_changed(each, change) for each in value]
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        return change(numpy.asarray(float(value))).tolist()
    return value


def _noise(value):
    """Random numbers of the same shape."""
    import numpy

    numbers = numpy.random.rand(*value.shape)
    return value.new_tensor(numbers) if hasattr(value, "new_tensor") else numbers


def _listed(value):
    """A list of what is in the value, or of the value."""
    try:
        return list(value)
    except TypeError:
        return [value]
'''


def odd_versions(
    assignment: Assignment, reference: HomeworkVersion, count: int
) -> tuple[HomeworkVersion, ...]:
    """A sample of odd versions that takes each part in turn.

    Args:
        reference: The homework, of which one part is changed.
        count: How many versions; fewer if there are not as many.
    """
    generator, by_part = random.Random(SEED), {}
    tree = ast.parse(reference.source)
    for component in assignment.components:
        by_part[component.name] = list(_of_part(component, reference, tree))
        generator.shuffle(by_part[component.name])
    sample: list[Make] = []
    while len(sample) < count and any(by_part.values()):
        in_turn = [versions for versions in by_part.values() if versions]
        sample.extend(versions.pop() for versions in in_turn[: count - len(sample)])
    return tuple(make() for make in sample)


def _of_part(component: Component, reference: HomeworkVersion, tree: ast.Module) -> Iterator[Make]:
    """All odd versions of a part, each made when it is wanted."""
    if component.is_file:
        for name, code in _WRITTEN.items():
            changes = f"import re\n\n\ndef {component.name}(text):\n    return {code}\n"
            yield partial(_version, component, f"{component.name}_with_{name}", reference.source, changes)
        return
    methods = _methods(component, tree)
    for name, body in _bodies(is_class=bool(methods)):
        code = _odd_class(component.name, methods, body) if methods else _odd_function(component.name, body)
        yield partial(_composed_version, component, f"{component.name}_{name}", reference.source, code)


def _methods(component: Component, tree: ast.Module) -> tuple[str, ...]:
    """The methods of a class that others call; of a class that is imported, `forward`. None: a function."""
    if component.kind != "class":
        return ()
    own = [
        each.name
        for node in tree.body
        if isinstance(node, ast.ClassDef) and node.name == component.name
        for each in node.body
        if isinstance(each, ast.FunctionDef) and not each.name.startswith("_") and not each.decorator_list
    ]
    return tuple(own) or ("forward",)


def _version(component: Component, name: str, source: str, changes: str = "") -> HomeworkVersion:
    return HomeworkVersion(
        Kind.ODD, name, f"an odd {component.name}", source, (component.name,), changes=changes
    )


def _composed_version(component: Component, name: str, source: str, code: str) -> HomeworkVersion:
    return _version(component, name, composed(source, code, after=True))


def _bodies(*, is_class: bool) -> Iterator[tuple[str, str]]:
    """(the name of a version, the body of the part)."""
    for name, value in _GIVEN.items():
        yield f"gives_{name}", f"return {value}"
    for name, value in _CHANGED.items():
        yield f"gives_{name}", f"return _changed(right(*args, **kwargs), lambda value: {value})"
    yield from _DONE.items()
    if is_class:
        yield from _DONE_BY_CLASSES.items()


def _odd_function(name: str, body: str) -> str:
    """The definition of the odd part, which calls the right one."""
    body = f"right, again = _right_{name}, {name}\n{body}"
    function = f"def {name}(*args, **kwargs):\n{textwrap.indent(body, ' ' * 4)}\n"
    return f"{_HELP}\n\n_right_{name} = {name}\n\n\n{function}"


def _odd_class(name: str, methods: Sequence[str], body: str) -> str:
    """The definition of the odd part, which derives from the right one."""
    code = f"{_HELP}\n\nclass {name}({name}):\n"
    for method in methods:
        own = f"right, again = super().{method}, self.{method}\n{body}"
        code += f"    def {method}(self, *args, **kwargs):\n{textwrap.indent(own, ' ' * 8)}\n\n"
    return code
