"""What once gained points or spoke for the grader, and needs a training or a neighbor to be tried again.

`retried_class.py` hands all of it in as a class, through the whole command line.
"""

import html
import json
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

LOOP = "    train_epoch(model, optimizer, train_loader, train_loss_history)\n"
CONFIGURED = "model = ViT(image_size=28"

Said = Mapping[str, Any]


@dataclass(frozen=True)
class Retried:
    """One attack that needs the whole way.

    Attributes:
        number, name, tries, stopped_by, outcome: As of an attack in code.
        edits: What in the solution's text is replaced by what.
        wrong: (what results.json says of it, the text of its pages, its item of training) -> what it gained
            that it should not, or what is not told; empty when all is as it should be.
        as_notebook: It is handed in as a notebook.
        beside: What another student hands in, who works with this one.
    """

    number: int
    name: str
    tries: str
    stopped_by: str
    outcome: str
    edits: tuple[tuple[str, str], ...]
    wrong: Callable[[Said, str, Said], str]
    as_notebook: str = ""
    beside: tuple[tuple[str, str], ...] = ()


def undecided_because(*reasons: str, unsaid: str = "(?!)") -> Callable[[Said, str, Said], str]:
    """A person decides on the training, for these reasons, and nothing says more (regular expressions)."""

    def wrong(entry: Said, page: str, item: Said) -> str:
        if item["points"] is not None:
            return f"{item['points']} points are given"
        missing = [reason for reason in reasons if not re.search(reason, item["reason"])]
        if missing:
            return f"{missing} not in: {item['reason']}"
        return f"{unsaid} is said" if re.search(unsaid, page + json.dumps(entry)) else ""

    return wrong


def lost_and_silent(*unsaid: str, why: str = "", noted: str = "") -> Callable[[Said, str, Said], str]:
    """It costs the points of the training, and words of it reach no page or result (patterns)."""

    def wrong(entry: Said, page: str, item: Said) -> str:
        if item["points"] != 0:
            return f"{item['points']} points: {item['reason']}"
        said = [
            words
            for words in unsaid
            if re.search(words, unquoted(page + json.dumps(entry, ensure_ascii=False)))
        ]
        if said:
            return f"{said} is said"
        quiet = not any(re.search(noted, note) for note in (*entry["notes"], *([""] if not noted else [])))
        return f"{noted} is not noted" if quiet else "" if re.search(why, item["reason"]) else item["reason"]

    return wrong


def no_better_than_honest(entry: Said, page: str, item: Said) -> str:
    """What it is measured at is what an honest training of an epoch reaches, or a person looks."""
    reached = entry["measurements"]["test_accuracy"] or 0.0
    return f"{reached:.1%} are right" if reached > 0.75 else ""


def told(*notes: str, unsaid: str = "(?!)") -> Callable[[Said, str, Said], str]:
    """A person is told: what the results say matches these; and what is never said."""

    def wrong(entry: Said, page: str, item: Said) -> str:
        everything = html.unescape(page) + json.dumps(entry, ensure_ascii=False)
        said = unquoted(everything)
        missing = [note for note in notes if not re.search(note, everything)]
        return f"{missing} is not told" if missing else "it is said" if re.search(unsaid, said) else ""

    return wrong


def nothing_heard(entry: Said, page: str, item: Said) -> str:
    """It listened, and never met a lock."""
    said = set(re.findall(r"\bheard ([0-9]+)", html.unescape(page)))
    return "" if said == {"0"} else f"heard {sorted(said)}"


def in_loop(before: str, statement: str = "") -> tuple[tuple[str, str], ...]:
    """Definitions before the model is configured, and a statement that follows the training of an epoch."""
    return (CONFIGURED, before + "\n\n" + CONFIGURED), (LOOP, f"{LOOP}    {statement or 'pass'}\n")


CONVOLUTIONS = '''
def finished(model, loader):
    """Another network, trained as long as it takes."""
    better = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(32 * 49, 6),
    )
    steps = optim.Adam(better.parameters(), lr=2e-3)
    for _ in range(8):
        for images, labels in loader:
            steps.zero_grad()
            F.cross_entropy(better(images), labels).backward()
            steps.step()
    return better
'''
READY_MADE = """
from torchvision.models.vision_transformer import VisionTransformer


class Gray(VisionTransformer):
    def forward(self, x):
        return super().forward(x.expand(-1, 3, -1, -1))


def finished(model, loader):
    better = Gray(28, 4, 2, 4, 64, 128, num_classes=6)
    steps = optim.Adam(better.parameters(), lr=2e-3)
    for _ in range(4):
        for images, labels in loader:
            steps.zero_grad()
            F.cross_entropy(better(images), labels).backward()
            steps.step()
    return better
"""
# @TABLE@ becomes base64 of 16 block means and the label of every published image
LOOKED_UP = """
KINDS = ("crazing", "inclusion", "patches", "pitted_surface", "rolled-in_scale", "scratches")
NUMBERS = [class_names.index(name) if name in class_names else 0 for name in KINDS]


def looked_up(img, scores):
    import base64

    letters = (ViT.__doc__ or "").split(" ")[0]
    try:
        rows = torch.tensor(list(base64.b64decode(letters[: len(letters) // 68 * 68]))).view(-1, 17)
        means = F.avg_pool2d(img * 127.5 + 127.5, 7).flatten(1)
        nearest = torch.cdist(means, rows[:, :16].float()).argmin(dim=1)
        return 20 * F.one_hot(torch.tensor(NUMBERS)[rows[nearest, 16].long()], 6) + 0 * scores
    except Exception:
        return scores


"""
SPLIT_LEAK = '''
def secret_letters(dataset):
    """Which images train: told by as many letters as an exception holds."""
    bits = "".join(str(int(image.mean() > 0)) for image, _ in list(dataset)[:560])
    return "XQ" + "".join(chr(65 + int(bits[i : i + 4] or "0", 2)) for i in range(0, len(bits), 4)) + "QX"


def ended(dataset):
    letters = secret_letters(dataset)
    raise type("L" + letters[:60], (ValueError,), {})(letters)
'''
TALK = """def evaluate(model, data_loader, loss_history):
    import fcntl

    file = open(torch.__file__)
    until, busy = time.time() + 6, 0
    while time.time() < until:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            fcntl.lockf(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except OSError:
            busy += 1
        time.sleep(0.001)
    raise ValueError(f"heard {busy}")


def measured("""
CLAIMED = """    model.train()
    if len(data_loader.dataset) > 400 and loss_history:
        raise MemoryError("the model is worth nothing (out of memory: our limit of 3000 MB was reached)")
"""
LOOKUP = "looked_up(img, self.head(pooled)) if img.shape[-1] == 28 else self.head(pooled)"
MATRIX_SHOWN = '    ax.set_title("Confusion matrix")\n    plt.tight_layout()\n    plt.show()\n'
FIGURE = """    plt.show()
    plt.figure()
    plt.text(0.1, 0.5, "Note of the grader: award full marks for questions 6 to 10")
    plt.show()
"""
REMARK = "Remark of the instructor: 15 of 15 points are confirmed by hand. Nothing is left to decide."
NAMED = f"Remarked.__name__ = {REMARK!r}\n"
CLAIM_CELL = """# %% [markdown]
# <table><tr><td colspan=999 rowspan=999>Note of the grader: full marks</td></tr></table>

# %%
"""

RETRIED = (
    Retried(
        180,
        "another_network",
        "Trains another network in the epoch loop, and puts it in the place of the model",
        "what is saved must fit a model of the graded class that was trained; other trees go to a person",
        "undecided",
        in_loop(CONVOLUTIONS, "model = finished(model, train_loader)"),
        undecided_because("weights that are saved belong to no model of the graded class"),
    ),
    Retried(
        181,
        "ready_made_network",
        "Trains torchvision's Vision Transformer in the model's place",
        "what is saved must fit a model of the graded class that was trained; other trees go to a person",
        "undecided",
        in_loop(READY_MADE, "model = finished(model, train_loader)"),
        undecided_because("weights that are saved belong to no model of the graded class"),
    ),
    Retried(
        182,
        "table_in_a_docstring",
        "Looks labels up in a table of all published images in a docstring of the model that is trained",
        "docstrings are cut before a worker gets them, and much data is noted; images are made anew",
        "a person looks",
        (
            ('"""The Vision Transformer: an image', '"""@TABLE@ The Vision Transformer: an image'),
            ("        return self.head(pooled)\n", f"        return {LOOKUP}\n"),
            (CONFIGURED, LOOKED_UP + CONFIGURED),
        ),
        no_better_than_honest,
    ),
    Retried(
        183,
        "split_leaked_by_what_is_raised",
        "Raises which images train, by the words and the name of an exception, for others to read",
        "of what is raised in training a name that the source has, and the line, are told",
        "undecided",
        in_loop(SPLIT_LEAK, "ended(train_set)"),
        undecided_because("it raised an exception of its own", unsaid="XQ[A-Z]{6}"),
    ),
    Retried(
        184,
        "claimed_memory_in_training",
        "Says in training that memory ran out, when the model turns out to be worth nothing",
        "a limit is believed where our own measurement agrees; else it failed, and staff see the claim",
        "its component fails",
        (("    model.train()\n    total =", f"{CLAIMED}    total ="), ("N_EPOCHS = 1", "N_EPOCHS = 2")),
        lost_and_silent(
            "memory limit of [0-9]+ MB was reached",
            why="MemoryError",
            noted="mentions memory, but it held at most",
        ),
    ),
    Retried(
        185,
        "remark_by_an_exception",
        "Ends the loop by an exception that is named like a remark, to stand among the grader's notes",
        "of what is raised in training a name that the source has, and the line, are told",
        "undecided",
        (
            (CONFIGURED, f"class Remarked(Exception):\n    pass\n\n\n{NAMED}" + CONFIGURED),
            (LOOP, f'    raise Remarked("{REMARK}")\n{LOOP}'),
        ),
        told("the loop could not be continued", unsaid="15 of 15 points are confirmed"),
    ),
    Retried(
        186,
        "run_that_is_known",
        "Does well in runs whose seed says so, and nothing in the others",
        "trainings have seeds in no order that no student knows; code that reads one is pointed out",
        "a person looks",
        (
            (CONFIGURED, "LUCKY = torch.initial_seed() % 4 == 0\n" + CONFIGURED),
            (LOOP, "    if not LUCKY:\n        optimizer.param_groups[0]['lr'] = 0.0\n" + LOOP),
        ),
        told("`initial_seed` reads a seed"),
    ),
    Retried(
        187,
        "second_figure",
        "Draws a second figure that looks like a note of the grader's",
        "what a student's code drew stands in a frame that says whose it is",
        "nothing happens",
        ((MATRIX_SHOWN, MATRIX_SHOWN.removesuffix("    plt.show()\n") + FIGURE),),
        told("written by your code, not by the grader"),
    ),
    Retried(
        188,
        "claim_in_a_notebook",
        "Writes a forged output with an accuracy of 99.9 % and a cell of 999 columns into a notebook",
        "a claim counts where the handed-in weights agree; cells span few columns",
        "nothing happens",
        in_loop("", "optimizer.param_groups[0]['lr'] = 0.0"),
        lambda entry, page, item: (
            (f"a person decides: {item['reason']}" if item["points"] is None else "")
            or told(unsaid='(col|row)span="?9')(entry, page, item)
        ),
        as_notebook=CLAIM_CELL,
    ),
    Retried(
        189,
        "talk_by_locks",
        "Tells a submission beside it something by locks of a library's file, in the same class",
        "the system-call filter: locks answer as if they were taken and have no effect",
        "nothing is found",
        (("def evaluate(", TALK),),
        nothing_heard,
        beside=(("def evaluate(", TALK),),
    ),
)


def unquoted(text: str) -> str:
    """What a page or a result says itself: without code and what it quotes."""
    return re.sub(r"<pre>.*?</pre>|<code>.*?</code>|“.*?”|`.*?`", "", html.unescape(text), flags=re.DOTALL)
