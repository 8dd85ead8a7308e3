"""What was seen while a submission's code ran, in sentences."""

from grader.domain.evidence import Evidence
from grader.domain.note import Note
from grader.domain.watch import Pried, Prying, Watched

WORDS = {
    Prying.DYNAMIC_CODE: "executes text or code that the source does not show",
    Prying.CODE_OBJECTS: "reads, makes or replaces the code of functions",
    Prying.FRAMES: "looks at running functions and their variables",
    Prying.OBJECTS: "asks Python's collector for objects",
    Prying.UNPICKLING: "unpickles data that names what is to be called",
    Prying.LIBRARY_SOURCE: "opens a library's file",
    Prying.SECOND_COPY: "executes a library's module a second time",
    Prying.MEMORY: "reaches memory or descriptors past Python",
}


def watch_notes(evidence: Evidence) -> tuple[Note, ...]:
    """What a person should look at: where code pried, and what is not known of it."""
    sentences = looks(Watched((), evidence.pried, evidence.unproven))
    return tuple(Note(sentence, ask_person=True) for sentence in sentences)


def looks(watched: Watched) -> tuple[str, ...]:
    """The same of what was seen of one submission's workers, in sentences."""
    pried = dict.fromkeys(map(pried_sentence, watched.pried))
    return (*pried, *map(unproven_sentence, watched.unproven))


def pried_sentence(pried: Pried) -> str:
    """`homework.py:41: the code executes text ...; a person should look at what it does.`"""
    where = f"{pried.place}: " if pried.place is not None else ""
    start = "when it ran, the code" if where else "When it ran, the code"
    return f"{where}{start} {WORDS[pried.kind]} ({pried.stage}); a person should look at what it does."


def unproven_sentence(stage: str) -> str:
    """That it is not known what the code used at a stage."""
    return (
        f"After {stage}, the watch for forbidden parts did not answer as it should: what the code used is "
        "not known. A person should look at the source."
    )
