"""The attacks: what each tries, what stops it, and what must come of it.

An attack in code is a file of `code/`; its docstring says what must come of it:

    Tries to read the secret by its path.       what is tried: the first sentence
                                                (further sentences explain)
    Stopped by: a root of its own               the layer or rule
    Outcome: nothing is found                   one of OUTCOMES
    Fails: evaluate                             the components that must lose their weightiest checks
    Says: FileNotFoundError                     a regular expression for what a failed check's message says:
                                                the proof that the attack was carried out
    Runs: PreNorm evaluate                      the components that are examined; those that are not under
                                                `Fails` must have full marks
    Notes: a person should look                 a regular expression for what the report notes
    Twice: yes                                  it is run again, to find what the first run left
    Root only: why                              it is not tried as an ordinary user

The rest is put into the correct solution, in the place of the definitions with the same names. It may use the
names of `KNOWN`: the attacker knows where everything lies. A file's number is that of the list of attacks in
issue 4, from 68 on those that were added.

An attack in files is a row of `uploads.py`.
"""

import ast
import re
from dataclasses import dataclass
from pathlib import Path

CODE = Path(__file__).parent / "code"

OUTCOMES = {
    "nothing is found": "what is sought is not there; the component that sought it fails",
    "nothing happens": "what is tried is refused or has no effect; the honest parts keep their points",
    "its component fails": "the dishonest component loses its points, the others keep theirs",
    "all fails": "every component that needs the damaged file loses its points",
    "refused": "the file is not taken, with a sentence; nothing of it is executed",
    "a person looks": "it is noted in the report for a person",
    "undecided": "no points are given or taken: a person decides",
}
FIELDS = ("Stopped by", "Outcome", "Fails", "Says", "Runs", "Notes", "Twice", "Root only")

# what every attack may name; `planted` finds the planted secrets in whatever it is given
KNOWN = """
SECRET_FILE = {secret_file!r}
COURSE = {course!r}
NEIGHBOR = {neighbor!r}
RESULTS = {results!r}
HOST_PID = {host_pid!r}


def planted(found):
    import re
    return "found " + str(sorted(set(re.findall("planted-[0-9a-f]+", str(found)))))


"""


@dataclass(frozen=True)
class Attack:
    """One attack on the grader by code.

    Attributes:
        number: In the list of attacks.
        tries: What it tries, in a sentence.
        stopped_by: The layer or rule that stops it.
        outcome: One of OUTCOMES.
        fails: Components that must lose their weightiest checks.
        says: What a failed check's message must match.
        runs: The components that are examined.
        notes: What the report must note.
        twice: It is run again.
        root_only: Why it is not tried as an ordinary user; empty when it is.
        source: Definitions for the solution.
    """

    number: int
    name: str
    tries: str
    stopped_by: str
    outcome: str
    fails: tuple[str, ...]
    says: str
    runs: tuple[str, ...]
    notes: str
    twice: bool
    root_only: str
    source: str

    @property
    def group(self) -> str:
        """`slow` for what hangs or fills the memory until a limit ends it."""
        return "slow" if re.search(r"did not return|memory", self.says) else "quick"


def attacks() -> tuple[Attack, ...]:
    """All attacks in code, by number."""
    return tuple(attack(path) for path in sorted(CODE.glob("*.py")))


def attack(path: Path) -> Attack:
    """The attack in a file.

    Raises:
        ValueError: Its docstring does not say what it should.
    """
    text = path.read_text(encoding="utf-8")
    docstring = ast.get_docstring(ast.parse(text)) or ""
    told = dict(re.findall(rf"^({'|'.join(FIELDS)}): (.+)$", docstring, re.MULTILINE))
    number, _, name = path.stem.partition("_")
    if told.get("Outcome") not in OUTCOMES or "Stopped by" not in told or not number.isdigit():
        raise ValueError(f"code/{path.name}: its docstring names no known outcome, or not what stops it.")
    fails = tuple(told.get("Fails", "").split())
    runs = tuple(told.get("Runs", "PreNorm evaluate").split())
    if not set(fails) <= set(runs):
        raise ValueError(f"code/{path.name}: what fails is not among what runs.")
    return Attack(
        number=int(number),
        name=name,
        tries=first_sentence(docstring),
        stopped_by=told["Stopped by"],
        outcome=told["Outcome"],
        fails=fails,
        says=told.get("Says", ""),
        runs=runs,
        notes=told.get("Notes", ""),
        twice="Twice" in told,
        root_only=told.get("Root only", ""),
        source=text,
    )


def first_sentence(docstring: str) -> str:
    """The first sentence of a text, on one line, without its full stop."""
    paragraph = " ".join(docstring.strip().split("\n\n")[0].split())
    return re.split(r"(?<=\.) ", paragraph)[0].removesuffix(".")
