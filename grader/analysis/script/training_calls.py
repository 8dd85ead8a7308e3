"""Which calls train, and which only plot.

Training is recognized by use: `step`, `backward`, `fit`, the graded training function, or code that calls
these.

Tests: tests/training/test_replay.py, tests/analysis/script/test_which_model_counts.py
"""

import ast

from grader.analysis.effects import Effect
from grader.analysis.script.definitions import Definitions
from grader.analysis.script.script_inputs import ScriptInputs
from grader.analysis.syntax_trees import walk


class TrainingCalls:
    """Tells what calls of one program do."""

    def __init__(self, inputs: ScriptInputs, definitions: Definitions) -> None:
        self._inputs = inputs
        self._definitions = definitions

    def trains(self, call: ast.Call) -> bool:
        """Whether a call trains: a step, a backward pass, a function that does, or is handed over."""
        return self._trains(call, set())

    def _trains(self, call: ast.Call, methods: set[str]) -> bool:
        """The same; methods of these names are looked into already, and may call each other in circles."""
        name = call.func
        if any(self._function_trains(handed, set()) for handed in _handed_over(call)):
            return True
        if isinstance(name, ast.Attribute):
            if name.attr in ("backward", "step", "fit"):
                return True
            if name.attr in methods:
                return False
            methods.add(name.attr)
            return any(
                self._trains(inner, methods)
                for _, method in self._definitions.methods(name.attr)
                for inner in walk(method)
                if isinstance(inner, ast.Call)
            )
        if not isinstance(name, ast.Name):
            return False
        if name.id == self._inputs.trainer:
            return True
        if name.id in self._inputs.kinds or name.id not in self._definitions:
            return False
        return bool(self._inputs.effects.of_function(name.id) & Effect.TRAIN) and self._function_trains(
            name.id, set()
        )

    def _function_trains(self, function: str, visited: set[str]) -> bool:
        """Whether a function steps, through what it calls: measuring alone is not training."""
        if function in visited:
            return False
        visited.add(function)
        if function == self._inputs.trainer:
            return True
        if self._inputs.kinds.get(function) == "class" or function not in self._definitions:
            return False
        return self._code_trains(self._definitions.unit(function).node, visited)

    def _code_trains(self, node: ast.AST, visited: set[str]) -> bool:
        """Whether code steps when it is executed, through functions and methods that it calls."""
        for call in walk(node):
            if not isinstance(call, ast.Call):
                continue
            called = [call.func.id] if isinstance(call.func, ast.Name) else []
            if any(self._function_trains(name, visited) for name in (*called, *_handed_over(call))):
                return True
            if not isinstance(call.func, ast.Attribute):
                continue
            name = call.func.attr
            if name in ("backward", "step", "fit"):
                return True
            if f".{name}" not in visited:
                visited.add(f".{name}")
                if any(self._code_trains(method, visited) for _, method in self._definitions.methods(name)):
                    return True
        return False

    def trains_within(self, expression: ast.expr) -> bool:
        """Whether a training is computed in an expression, by a graded function, too: `plot(fit(model))`."""
        return any(
            self.trains(call)
            or (isinstance(call.func, ast.Name) and self._function_trains(call.func.id, set()))
            for call in walk(expression)
            if isinstance(call, ast.Call)
        )

    def plots(self, name: str) -> bool:
        """Whether a function plots, and trains nothing."""
        if name not in self._definitions or self._definitions.function(name) is None:
            return False
        reached = [
            self._definitions.unit(helper)
            for helper in self._definitions.used([name])
            if helper in self._definitions
        ]
        effects = Effect.NONE
        for home in reached:
            for call in walk(home.node):
                if isinstance(call, ast.Call):
                    effects |= self._inputs.effects.of_call(call)
        return bool(effects & Effect.PLOT) and not self._function_trains(name, set())

    def only_plots(self, call: ast.Call) -> bool:
        """Whether a call is one of a function that does."""
        return isinstance(call.func, ast.Name) and self.plots(call.func.id)

    def is_step(self, call: ast.Call) -> bool:
        """Whether a call is an optimizer's or a schedule's step, and not one of the student's own methods."""
        if not isinstance(call.func, ast.Attribute) or call.func.attr not in ("step", "backward"):
            return False
        return not self._definitions.methods(call.func.attr)


def _handed_over(call: ast.Call) -> list[str]:
    """The names that a call is given as arguments: a function among them may be called."""
    arguments = (*call.args, *(keyword.value for keyword in call.keywords))
    return [argument.id for argument in arguments if isinstance(argument, ast.Name)]
