"""Lists of introspective names, and which of them an honest homework may use.

Code that resolves computed names can reach everything; code that reaches frames, code objects or the
collector can change everything. `docs/security.md` lists what is allowed. `suspicious_code` decides whether
something graded reaches such a name.

Tests: tests/analysis/test_prying.py
"""

import re
from collections.abc import Callable, Iterable
from fnmatch import translate
from functools import lru_cache
from typing import Any

Matches = Callable[[str], Any]

# Python's own functions that execute text or list names
EXECUTING = frozenset({"exec", "eval", "compile", "__import__", "breakpoint"})
# functions that look up a name in their first argument, and those that find a module or object by its name
LOOKING_UP = frozenset({"getattr", "getattr_static", "__getattribute__", "__getattr__"})
FINDING = frozenset(
    {
        *("import_module", "__import__", "find_spec", "resolve_name", "locate", "import_string"),
        *("load_object", "import_item", "import_from_string", "import_class", "import_object"),
    }
)
EVALUATING = "eval_str"  # with this argument, `inspect` executes the texts of annotations
MODELS = frozenset({"get_model", "get_model_builder"})  # of torchvision.models, by a name
GETTERS = frozenset(
    {"attrgetter", "methodcaller"}
)  # make functions that look up the name that they are given
# attributes that are suspicious on any object
ATTRIBUTES = frozenset(
    {
        # functions, methods, classes
        *("__code__", "__closure__", "__globals__", "__builtins__", "__defaults__", "__kwdefaults__"),
        *("cell_contents", "__wrapped__", "__func__", "__self__", "__subclasses__", "__mro__", "mro"),
        *("__base__", "__bases__", "__reduce__", "__reduce_ex__", "__getattribute__"),
        # frames, generators, code
        *("f_back", "f_globals", "f_locals", "f_builtins", "f_code", "f_trace", "tb_frame", "gi_frame"),
        *("gi_code", "gi_yieldfrom", "cr_frame", "cr_code", "cr_await", "ag_frame", "ag_code", "ag_await"),
        *("co_consts", "co_code", "co_names", "co_varnames", "co_freevars", "co_cellvars", "co_linetable"),
        # modules
        *("__loader__", "__spec__", "__path__", "__cached__"),
        *("sys", "_sys", "gc", "builtins", "_os"),
        # names that only modules that look into the program have
        *("_getframe", "currentframe", "get_objects", "get_referrers", "get_referents", "walk_stack"),
        *("getclosurevars", "getattr_static", "settrace", "setprofile", "addaudithook", "meta_path"),
    }
)
# builtin functions that must not be handed on as values
BUILTINS = frozenset({"getattr", "setattr", "delattr", "vars", "globals", "locals"})
# modules that must not be handed on as values
MODULES = frozenset(
    {
        *("sys", "os", "gc", "inspect", "builtins", "importlib", "ctypes", "types", "operator", "pickle"),
        *("marshal", "traceback", "code", "linecache", "copyreg", "pkgutil", "pydoc", "runpy", "timeit"),
    }
)
DEFINED = frozenset({"__reduce__", "__reduce_ex__"})  # methods that name what is called on copying
# a library's file, where its source can be read
FILES = frozenset({"__file__", "__path__", "__cached__"})

FLAGGED = (
    # the running program
    *("gc.get_*", "gc.callbacks*", "sys._*", "sys.modules*", "sys.meta_path*", "sys.path_hooks*"),
    *("sys.path_importer_cache*", "sys.settrace*", "sys.setprofile*", "sys.gettrace*", "sys.getprofile*"),
    *("sys.monitoring*", "sys.addaudithook*", "sys.last_*", "inspect.*", "dis.*", "opcode.*", "symtable.*"),
    *("traceback.walk_*", "traceback.extract_stack", "traceback.StackSummary*", "threading.settrace*"),
    *("threading.setprofile*", "threading._*", "builtins.*", "__builtins__*", "weakref.getweakrefs"),
    *("tracemalloc.*", "trace.*", "bdb.*", "pdb.*", "faulthandler.*"),
    # text and code that is executed
    *("code.*", "codeop.*", "timeit.*", "runpy.*", "doctest.*", "cProfile.run*", "profile.run*"),
    *("rlcompleter.*", "ast.*", "typing.get_type_hints", "typing.ForwardRef*", "typing._*"),
    *("typing_extensions.get_type_hints", "annotationlib.*", "string.Formatter*", "_string.*"),
    *("get_ipython*", "IPython.core*", "IPython.get_ipython*", "pandas.eval", "numexpr.*", "sympy.*"),
    *("numpy.testing*", "numpy.f2py*", "numpy.ctypeslib*", "torch.fx*", "torch.export*", "torch.library*"),
    *("torch.jit.CompilationUnit*", "torch.jit.load", "torch.overrides*", "torch.utils.benchmark*"),
    *("torch.utils.cpp_extension*", "torch.utils.bundled_inputs*", "torch.classes*", "torch.package*"),
    *("torch.hub.load*", "torch.hub.help", "torch.hub.list", "torch._C*", "torch._VF*", "torch._ops*"),
    # names that are resolved
    *("importlib.*", "imp.*", "pkgutil.*", "pkg_resources*", "pydoc.*", "zipimport.*", "modulefinder.*"),
    *("logging.config*", "unittest.mock*", "unittest.loader*", "unittest.TestLoader*", "hydra.utils*"),
    *("unittest.defaultTestLoader*", "_frozen_importlib*", "_imp.*"),
    # pickles
    *("pickle.*", "_pickle*", "cPickle*", "dill*", "cloudpickle*", "joblib.load", "shelve*", "marshal*"),
    *("copyreg*", "pandas.read_pickle"),
    # source
    *("linecache.*", "tokenize.*", "sysconfig.*", "site.*"),
    # what lies below Python
    *("ctypes*", "_ctypes*", "cffi*", "mmap*", "fcntl*", "socket.*", "os.dup*", "os.pipe*", "os.write"),
    *("os.read", "os.close", "os.closerange", "os.open", "os.fdopen", "os.sendfile", "os.memfd*"),
    *("_thread*", "_testcapi*", "_testinternalcapi*", "_xxsubinterpreters*", "_interp*", "test.*"),
    "concurrent.interpreters*",
)
# calling one of these builds a function or a module by hand; `isinstance()` with them is harmless
MADE = ("types.FunctionType", "types.LambdaType", "types.CodeType", "types.CellType", "types.ModuleType")
# exceptions to these: they look only at the student's own code, or only describe
ALLOWED = (
    *("inspect.signature", "inspect.Parameter*", "inspect.Signature*", "inspect.is*", "inspect.cleandoc"),
    *("ast.literal_eval", "timeit.default_timer", "pickle.dump*", "pickle.HIGHEST_PROTOCOL"),
    *("pickle.DEFAULT_PROTOCOL", "importlib.import_module", "importlib.util.find_spec"),
    *("importlib.metadata.version", "importlib.metadata", "importlib.util", "builtins.print"),
)
# private modules of libraries that tutorials recommend: these are permitted
PERMITTED_PRIVATE = (
    *("torch.utils.data._utils.collate*", "torch._six*", "torch.nn.modules._functions*"),
    *(
        "torch._dynamo.config*",
        "torch._dynamo.reset",
        "torch._dynamo.disable",
        "torch._dynamo.allow_in_graph",
    ),
    *("torch._functorch.config*", "torch._inductor.config*", "torchvision.models._utils*"),
)
# modules that can be reached through every module that imports them: `torch.nn.functional.torch`
SHARED = {
    **{name: name for name in ("torch", "torchvision", "sys", "os", "gc", "inspect", "types", "builtins")},
    **{name: name for name in ("importlib", "pickle", "ctypes", "operator", "traceback", "linecache")},
    **{name: name for name in ("marshal", "copyreg", "typing", "ast", "code", "threading", "numpy")},
    "nn": "torch.nn",
    "F": "torch.nn.functional",
    "np": "numpy",
}


def any_of(patterns: Iterable[str]) -> Matches:
    """A test whether a name matches one of several patterns, which are compiled once for all forks."""
    return re.compile("|".join(map(translate, patterns))).match


_is_flagged, _is_allowed, _is_permitted_private = any_of(FLAGGED), any_of(ALLOWED), any_of(PERMITTED_PRIVATE)
is_made = any_of(MADE)


@lru_cache(maxsize=4096)
def homes(dotted: str) -> tuple[str, ...]:
    """A dotted name, and its names by way of the modules in it: `torch.nn.functional.sys.modules`."""
    parts = dotted.split(".")
    shared = [SHARED.get(part) or SHARED.get(part.removeprefix("_")) for part in parts]
    shared_homes = (
        ".".join((module, *parts[place + 1 :])) for place, module in enumerate(shared) if module and place
    )
    return tuple(dict.fromkeys((dotted, *shared_homes)))


@lru_cache(maxsize=4096)
def is_flagged(dotted: str) -> bool:
    """Whether a dotted name is one that a person should look at."""
    return any(_is_flagged(name) and not _is_allowed(name) for name in homes(dotted))


@lru_cache(maxsize=4096)
def is_private(dotted: str, roots: frozenset[str]) -> bool:
    """Whether a dotted name leads into a private module of one of these libraries.

    Args:
        roots: The libraries' top-level names.
    """
    return any(
        name.partition(".")[0] in roots
        and any(part.startswith("_") and not part.startswith("__") for part in name.split(".")[:-1])
        and not _is_permitted_private(name)
        for name in homes(dotted)
    )
