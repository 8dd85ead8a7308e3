"""Audit hook: reports introspection, and the execution of code that is not in the source.

Python raises audit events before such things happen, and a hook for them cannot be removed. What the hook
needs is sealed in its code. It goes by who caused an event: those that libraries cause for themselves are not
reported. It forbids nothing except another hook; people look at the notes.

Tests: tests/worker/test_watch.py
"""

import sys
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from types import CodeType
from typing import Any

from grader.domain.program_run import Prying
from grader.worker.name_patterns import inside
from grader.worker.sealed_functions import Lines, sealed

# attributes by which functions, frames and classes are taken apart or reassembled
READ = frozenset(
    {
        *("__code__", "f_code", "tb_frame", "gi_frame", "gi_code", "cr_frame", "cr_code", "ag_frame"),
        *("ag_code", "__defaults__", "__kwdefaults__"),
    }
)
WRITTEN = frozenset({"__code__", "__defaults__", "__kwdefaults__", "__bases__"})
# Python's own modules that do what they are asked: their caller counts
EXECUTING = (
    *("timeit", "code", "codeop", "runpy", "bdb", "pdb", "profile", "cProfile", "trace", "doctest"),
    *("typing", "inspect"),
)
ANNOTATING = "typing"  # it compiles all annotations that are texts, and executes them only when asked to
OPENING = (
    *("linecache", "inspect", "tokenize", "pkgutil", "pathlib", "pathlib/_local", "pathlib/_abc"),
    *("codecs", "os", "shutil", "zipimport", "fileinput"),
    *("importlib/__init__", "importlib/resources/_common"),
)
LOOKING = ("inspect", "traceback")
PICKLES = ("pickle", "shelve", "_compat_pickle")
NATIVE = ("ctypes/__init__", "ctypes/util")
IMPORTING = ("importlib/__init__", "pkgutil", "pydoc")
PROCESS = ("/proc/self", "/proc/thread-self", "/dev/fd")  # the process's own memory and descriptors

Condition = Callable[[tuple[Any, ...]], Any]


@dataclass(frozen=True)
class _Rule:
    """What is reported of an event.

    Attributes:
        document: The report, with places for the file and the line.
        through: Files of code that may lie between the event and its cause; None: it is reported whoever
            caused it.
        condition: On the event's arguments.
    """

    document: bytes
    through: frozenset[str] | None = frozenset()
    condition: Condition | None = None


def listen(
    tell: Callable[[bytes], None],
    asked_by: Callable[..., Any],
    lines: Lines,
    patterns: Sequence[str],
    watched_files: Collection[str],
) -> None:
    """Report all prying to the judge from now on, until the process ends.

    Args:
        tell: Writes a document to the judge, sealed.
        asked_by: Finds for whom a frame works, sealed.
        lines: How lines are distinguished.
        patterns: What is forbidden.
        watched_files: Of the modules in which forbidden parts are defined.
    """
    rules = {
        event: tuple((rule.document, rule.through, rule.condition) for rule in event_rules)
        for event, event_rules in _rules(lines, patterns, watched_files).items()
    }
    busy: set[int] = set()
    hear = sealed(
        _hear,
        "prying",
        rules_of=rules.get,
        tell=tell,
        asked_by=asked_by,
        nobody=sealed(_nobody, "nobody"),
        file_of=dict(lines.files).get,
        libraries=lines.libraries,
        frame=sys._getframe,
        thread=threading.get_ident,
        busy=busy,
        refused=RuntimeError,
    )
    sys.addaudithook(hear)


def _hear(event: str, args: tuple[Any, ...]) -> None:
    rules_of: Any = "sealed:rules_of"
    rules = rules_of(event)
    if rules is None:
        return
    thread: Any = "sealed:thread"
    busy: Any = "sealed:busy"
    me = thread()
    if me in busy:
        return  # what happens in here is not news
    busy.add(me)
    try:
        for document, through, condition in rules:
            if condition is not None and not condition(args):
                continue
            frame: Any = "sealed:frame"
            file_of: Any = "sealed:file_of"
            tell: Any = "sealed:tell"
            caller = frame(1)
            if through is None:
                asked_by: Any = "sealed:asked_by"
                _, file, line = asked_by(caller, "sealed:nobody")
                tell(document % (file, line))
                continue
            name = caller.f_code.co_filename
            while name in through and caller.f_back is not None:
                caller = caller.f_back
                name = caller.f_code.co_filename
            if not name.startswith("sealed:libraries"):
                tell(document % (file_of(name, b'""'), caller.f_lineno or 0))
    finally:
        busy.discard(me)
    if event == "sys.addaudithook":
        refused: Any = "sealed:refused"
        raise refused  # another hook would be shown what this one holds


def _rules(
    lines: Lines, patterns: Sequence[str], watched_files: Collection[str]
) -> Mapping[str, tuple[_Rule, ...]]:
    """Event -> what is reported of it."""
    text = _Rule(_seen_document(Prying.DYNAMIC_CODE), _files(EXECUTING))
    compiled = _Rule(_seen_document(Prying.DYNAMIC_CODE), _files([m for m in EXECUTING if m != ANNOTATING]))
    again = sealed(_executes, "again", files=frozenset(watched_files), kind=type, code=CodeType)
    code = (_Rule(_seen_document(Prying.CODE_OBJECTS)),)
    frames = (_Rule(_seen_document(Prying.FRAMES), _files(LOOKING)),)
    objects = (_Rule(_seen_document(Prying.OBJECTS)),)
    native = (_Rule(_seen_document(Prying.MEMORY), _files(NATIVE)),)
    written = (
        _Rule(_seen_document(Prying.CODE_OBJECTS), condition=sealed(_named, "written", names=WRITTEN)),
    )
    return {
        "exec": (text, _Rule(_seen_document(Prying.SECOND_COPY), None, again)),
        "compile": (compiled,),
        **dict.fromkeys(("code.__new__", "function.__new__", "marshal.loads", "marshal.load"), code),
        "object.__getattr__": (
            _Rule(_seen_document(Prying.CODE_OBJECTS), condition=sealed(_named, "read", names=READ)),
        ),
        **dict.fromkeys(("object.__setattr__", "object.__delattr__"), written),
        **dict.fromkeys(("sys._getframe", "sys._current_frames", "sys._current_exceptions"), frames),
        **dict.fromkeys(("sys.settrace", "sys.setprofile", "sys.monitoring.register_callback"), frames),
        "sys.addaudithook": (_Rule(_seen_document(Prying.FRAMES), None),),
        **dict.fromkeys(("gc.get_objects", "gc.get_referrers", "gc.get_referents"), objects),
        "pickle.find_class": (
            _Rule(_seen_document(Prying.UNPICKLING), _files(PICKLES)),
            _Rule(
                _seen_document(Prying.UNPICKLING),
                None,
                sealed(_unpickles, "unpickled", **_names_in(patterns)),
            ),
        ),
        **dict.fromkeys(("ctypes.dlopen", "ctypes.dlsym", "ctypes.call_function"), native),
        **dict.fromkeys(("ctypes.addressof", "ctypes.cdata", "ctypes.cdata/buffer"), native),
        **dict.fromkeys(("ctypes.string_at", "ctypes.PyObj_FromPtr"), native),
        "open": (
            _Rule(_seen_document(Prying.LIBRARY_SOURCE), _files(OPENING), _path_begins(lines.folders)),
            _Rule(_seen_document(Prying.MEMORY), _files(OPENING), _path_begins(PROCESS)),
        ),
        "import": tuple(
            _Rule(
                b'{"$kind":"Imported","pattern":%d,"file":%%b,"line":%%d}' % number,
                _files(IMPORTING),
                sealed(_imports, "imports", **_names_in([pattern])),
            )
            for number, pattern in enumerate(patterns)
        ),
    }


def _seen_document(kind: Prying) -> bytes:
    return b'{"$kind":"Seen","prying":"%b","file":%%b,"line":%%d}' % kind.value.encode()


def _files(modules: Sequence[str]) -> frozenset[str]:
    """The files of some modules of the standard library."""
    folder = threading.__file__.removesuffix("threading.py")
    return frozenset(f"{folder}{name}.py" for name in modules)


def _names_in(patterns: Sequence[str]) -> Mapping[str, Any]:
    """What a condition asks about a dotted name: whether it matches one of the patterns, or is inside one."""
    asked = inside(patterns)
    return {
        "exact": str.__str__,  # a name may be of a class of the student's, which answers as it likes
        "begins": str.startswith,
        "names": asked.names,
        "starts": asked.starts,
        "matches": asked.matches,
    }


def _path_begins(starts: tuple[str, ...]) -> Condition:
    """A condition: whether the path that is opened begins like this."""
    encoded = tuple(start.encode() for start in starts)
    return sealed(_begins, "begins", kind=type, text=str, data=bytes, starts=starts, encoded=encoded)


# --- templates of conditions ------------------------------------------------------------------------------


def _begins(args: tuple[Any, ...]) -> bool:
    kind: Any = "sealed:kind"
    text: Any = "sealed:text"
    data: Any = "sealed:data"
    path = args[0]
    if kind(path) is text:
        begins: bool = path.startswith("sealed:starts")
        return begins
    return kind(path) is data and path.startswith("sealed:encoded")


def _named(args: tuple[Any, ...]) -> bool:
    return args[1] in "sealed:names"


def _executes(args: tuple[Any, ...]) -> bool:
    kind: Any = "sealed:kind"
    code: Any = "sealed:code"
    return kind(args[0]) is code and args[0].co_filename in "sealed:files"


def _unpickles(args: tuple[Any, ...]) -> bool:
    exact: Any = "sealed:exact"
    begins: Any = "sealed:begins"
    matches: Any = "sealed:matches"
    module, name = args
    name = exact(module) + "." + exact(name)
    return name in "sealed:names" or begins(name, "sealed:starts") or matches(name) is not None


def _imports(args: tuple[Any, ...]) -> bool:
    exact: Any = "sealed:exact"
    begins: Any = "sealed:begins"
    matches: Any = "sealed:matches"
    name = exact(args[0])
    return name in "sealed:names" or begins(name, "sealed:starts") or matches(name) is not None


def _nobody(name: str) -> None:
    return None
