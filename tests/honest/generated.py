"""A class of honest students: correct submissions that differ as widely as those of honest students do.

    python tests/honest/generated.py FOLDER [--count 100] [--seed 1] [--checkpoints]
    python tests/honest/generated.py --table         how often each piece occurs

Each submission is composed of pieces, one for every choice that a student makes (how attention is written,
how the epochs are run, which language the comments have, ...). The pieces lie in `pieces/<choice>.txt`:

    #@ name             begins a piece; what follows until the next one is its code
    #@ weight: 2        it is taken twice as often as the others (1 is the default)
    #@ only: ipynb      it needs a notebook
    #@ needs: import math; from einops import rearrange
    #@ define: A__ = b  what the placeholder A__ stands for in the whole submission
    #@ drops: STEP__    it cannot be combined with an optimizer that has a schedule
    #@ where: end       of an extra: the place at which it is put in
    #@ times: 6         of an extra: how many of a hundred students have it

Placeholders end in two underscores: names (`MODEL__`, `DEV__`), expressions (`KW__`: the model's arguments)
and values (`V_DIM__`). All is dealt out with a fixed seed, so the same call writes the same class. In a class
of a hundred every piece occurs.
"""

import argparse
import ast
import base64
import json
import random
import re
import sys
import tomllib
import zlib
from collections import Counter
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path

HERE = Path(__file__).resolve().parent
PIECES = HERE / "pieces"
GRADED = ("PreNorm", "FeedForward", "Attention", "Transformer", "ViT", "train_epoch", "evaluate")
PLOTS = ("plot_confusion_matrix", "plot_classwise_predictions")

# The choices of which every student makes exactly one, and the file of each.
CHOICES = [
    *("setup", "config", "split", "data", "look"),
    *("prenorm", "feedforward", "attention", "transformer", "vit"),
    *("train_epoch", "evaluate", "confusion", "classwise"),
    *("build", "optimizer", "loop", "save", "curves"),
]

# Choices that have no code of their own: name -> how often it is taken among a hundred (relative).
SCRIPT_STYLES = {
    "format": {
        "plain": 40,
        "two_spaces": 6,
        "tabs": 3,
        "crlf": 4,
        "byte_order_mark": 2,
        "trailing_spaces": 5,
    },
    "structure": {"top_level": 32, "main_function": 14, "guarded_block": 8, "called_main": 6},
    "separators": {"percent_cells": 12, "lines": 12, "hashes": 8, "comments": 14, "strings": 6, "none": 8},
}
NOTEBOOK_STYLES = {
    "format": {"jupyter": 14, "colab": 10, "one_string": 6, "without_outputs": 6, "with_ids": 4},
    "structure": {"top_level": 40},
    "separators": {"cells": 26, "cells_per_section": 14},
}
COMMON_STYLES = {
    "imports": {"template": 25, "grouped": 15, "one_line": 15, "in_place": 20, "with_fallback": 8, "star": 8},
    "order": {"template": 40, "parts_first": 25, "functions_first": 20, "plots_first": 15},
    "parts_order": {"template": 75, "reversed": 10, "attention_first": 15},
    "language": {"english": 35, "persian": 25, "german": 12, "latex": 12, "silent": 16},
    "docstrings": {"none": 35, "short": 35, "template": 20, "numpy": 10},
    "names": {"template": 45, "short": 20, "long": 15, "old": 20},
    "modules": {"template": 50, "t": 30, "qualified": 20},
}
NAMES = {
    "template": ["train_loader", "test_loader", "train_set", "test_set", "class_names", "model", "optimizer"],
    "short": ["train_dl", "test_dl", "train_ds", "test_ds", "classes", "net", "opt_"],
    "long": [
        "training_data_loader",
        "testing_data_loader",
        "training_dataset",
        "testing_dataset",
        "names_of_classes",
        "vit_model",
        "vit_optimizer",
    ],
    "old": ["trainloader", "testloader", "trainset", "testset", "class_names", "vit", "optimizer"],
}
NAME_MARKS = ["TRAINLD__", "TESTLD__", "TRAINSET__", "TESTSET__", "NAMES__", "MODEL__", "OPT__"]
HISTORIES = {
    "template": ("train_loss_history", "test_loss_history"),
    "short": ("tr_losses", "te_losses"),
    "long": ("losses_during_training", "losses_during_testing"),
    "old": ("train_losses", "test_losses"),
}
MODULES = {
    "template": ("transforms", "datasets", "from torchvision import datasets, transforms"),
    "t": ("T", "datasets", "import torchvision.transforms as T\nfrom torchvision import datasets"),
    "qualified": ("torchvision.transforms", "torchvision.datasets", "import torchvision"),
}
PIXEL = base64.b64encode(
    b"\x89PNG\r\n\x1a\n\x00\x00\x00\rIHDR\x00\x00\x00\x01\x00\x00\x00\x01\x08\x00\x00\x00\x00:~\x9bU"
    b"\x00\x00\x00\nIDATx\x9cc\xf8\x0f\x00\x01\x01\x01\x00\x1b\xb6\xeeV\x00\x00\x00\x00IEND\xaeB`\x82"
).decode()


@dataclass
class Piece:
    """One way to write one thing."""

    name: str
    code: str = ""
    weight: int = 1
    only: str = ""
    needs: list[str] = field(default_factory=list)
    define: dict[str, str] = field(default_factory=dict)
    drops: str = ""
    where: str = ""
    times: int = 0


@dataclass
class Student:
    """One student: the id, the file's kind, what was chosen, and the numbers."""

    student_id: str
    kind: str
    choices: dict[str, str]
    extras: list[str]
    values: dict[str, str]

    def pieces(self) -> list[str]:
        """All that the submission is made of, as `choice:piece`."""
        return [f"{choice}:{name}" for choice, name in self.choices.items()] + [
            f"extra:{name}" for name in self.extras
        ]


@cache
def pieces(choice: str) -> dict[str, Piece]:
    """The pieces of one file, by name."""
    found: dict[str, Piece] = {}
    piece = None
    for line in (PIECES / f"{choice}.txt").read_text(encoding="utf-8").splitlines():
        if not line.startswith("#@"):
            if piece is not None:
                piece.code += line + "\n"
            continue
        key, colon, value = line[2:].strip().partition(":")
        value = value.strip()
        if not colon:
            piece = found[key] = Piece(key)
        elif key == "needs":
            piece.needs = [need.strip() for need in value.split(";")]
        elif key == "define":
            mark, _, meaning = value.partition(" = ")
            piece.define[mark] = meaning
        elif key in ("weight", "times"):
            setattr(piece, key, int(value))
        else:
            setattr(piece, key, value)
    for piece in found.values():
        piece.code = piece.code.strip("\n")
    return found


def deal(shares: dict[str, int], count: int, rng: random.Random) -> list[str]:
    """`count` names, as close to their shares as whole numbers allow, none missing where there is room."""
    total = sum(shares.values())
    exact = {name: count * share / total for name, share in shares.items()}
    dealt = {
        name: max(1, int(value)) if count >= len(shares) else int(value) for name, value in exact.items()
    }
    names = list(shares)
    while sum(dealt.values()) < count:
        dealt[max(names, key=lambda name: exact[name] - dealt[name])] += 1
    while sum(dealt.values()) > count:
        dealt[max(names, key=lambda name: (dealt[name] > 1, dealt[name] - exact[name]))] -= 1
    deck = [name for name in names for _ in range(dealt[name])]
    rng.shuffle(deck)
    return deck


def students(count: int = 100, seed: int = 1) -> list[Student]:
    """The class, without its code."""
    ids = random.Random(f"{seed} ids").sample(range(400100000, 403999999), count)
    kinds = deal({"py": 60, "ipynb": 40}, count, random.Random(f"{seed} kinds"))
    chosen: list[dict[str, str]] = [{} for _ in range(count)]
    for kind, styles, header in (
        ("py", SCRIPT_STYLES, "headers"),
        ("ipynb", NOTEBOOK_STYLES, "notebook_headers"),
    ):
        members = [index for index in range(count) if kinds[index] == kind]
        decks = dict(styles)
        decks[header] = {piece.name: piece.weight for piece in pieces(header).values()}
        for choice in CHOICES:
            # what needs a notebook is dealt to notebooks, at the same rate as the rest is to all
            decks[choice] = {p.name: p.weight for p in pieces(choice).values() if p.only in ("", kind)}
        for choice, shares in decks.items():
            dealt = deal(shares, len(members), random.Random(f"{seed} {kind} {choice}"))
            for index, name in zip(members, dealt, strict=True):
                chosen[index][choice] = name
    for choice, shares in COMMON_STYLES.items():
        for index, name in enumerate(deal(shares, count, random.Random(f"{seed} {choice}"))):
            chosen[index][choice] = name
    _without_clashes(chosen)

    extras: list[list[str]] = [[] for _ in range(count)]
    for piece in pieces("extras").values():
        rng = random.Random(f"{seed} extra {piece.name}")
        for index in rng.sample(range(count), min(count, max(1, round(piece.times * count / 100)))):
            extras[index].append(piece.name)
    return [
        Student(str(number), kind, choices, own, _values(random.Random(f"{seed} values {number}")))
        for number, kind, choices, own in zip(ids, kinds, chosen, extras, strict=True)
    ]


def _without_clashes(chosen: list[dict[str, str]]) -> None:
    """Exchanges optimizers between students until no schedule meets a loop that has no place for it."""

    def clashes(choices: dict[str, str], optimizer: str) -> bool:
        needs = "STEP__" in pieces("optimizer")[optimizer].define
        return needs and bool(pieces("loop")[choices["loop"]].drops)

    for mine in chosen:
        if not clashes(mine, mine["optimizer"]):
            continue
        for other in chosen:
            if not clashes(mine, other["optimizer"]) and not clashes(other, mine["optimizer"]):
                mine["optimizer"], other["optimizer"] = other["optimizer"], mine["optimizer"]
                break


def _values(rng: random.Random) -> dict[str, str]:
    size, patch = rng.choice([(28, 4), (28, 4), (28, 7), (32, 4), (32, 8)])
    dim = rng.choice([32, 48, 64])
    mean, deviation = rng.choice([(0.5, 0.5), (0.5, 0.5), (0.5, 0.5), (0.5021, 0.2098), (0.496, 0.213)])
    return {
        "V_SIZE__": str(size),
        "V_PATCH__": str(patch),
        "V_DIM__": str(dim),
        "V_DEPTH__": str(rng.choice([2, 3, 4])),
        "V_HEADS__": str(rng.choice([2, 4, 4, 8])),
        "V_DHEAD__": str(rng.choice([8, 16, 16, 32])),
        "V_MLP__": str(dim * rng.choice([1, 2, 2, 4])),
        "V_POOL__": rng.choice(["cls", "cls", "mean"]),
        "V_DROP__": rng.choice(["0.0", "0.1", "0.1", "0.2"]),
        "V_BATCH__": str(rng.choice([16, 32, 32, 64])),
        "V_LR__": rng.choice(["1e-3", "0.001", "5e-4", "3e-4", "0.0015"]),
        "V_EPOCHS__": str(rng.choice([2, 2, 3])),
        "MEAN__": str(mean),
        "STD__": str(deviation),
        "ROOT__": rng.choice(["data", "data", "dataset_split", "steel"]),
    }


# --- from choices to code --------------------------------------------------------------------------------


@dataclass
class Section:
    """A part of a submission: what it is about, its code, and what it imports."""

    about: str
    code: str
    needs: list[str]
    is_script: bool = False  # below the guard, where there is one


def sections(student: Student) -> list[Section]:
    """The submission's parts in the order of the file, all placeholders replaced."""
    marks = _marks(student)

    def made(about: str, choice: str, script: bool = False, name: str | None = None) -> Section:
        piece = pieces(choice)[name or student.choices[choice]]
        code = "" if piece.code == "pass" else _replaced(piece.code, marks)
        return Section(about, code, piece.needs, script)

    def extras(where: str, about: str, script: bool = False) -> list[Section]:
        chosen = [pieces("extras")[name] for name in student.extras]
        return [made(about, "extras", script, piece.name) for piece in chosen if piece.where == where]

    def graded(choice: str, name: str) -> Section:
        section = made(name, choice)
        section.code = _documented(section.code, name, student)
        return section

    settings = [made("setup", "setup"), *extras("imports", "setup"), made("setup", "config")]
    data = [
        made("data", "split", True),
        made("data", "data", True),
        *extras("data", "data", True),
        made("look", "look", True),
    ]
    parts = [graded(name.lower(), name) for name in GRADED[:5]]
    if student.choices["parts_order"] == "reversed":
        parts.reverse()
    elif student.choices["parts_order"] == "attention_first":
        parts = [parts[2], parts[1], parts[0], *parts[3:]]
    parts[0].about = "model"
    model = [*parts, *extras("defs", "checks")]
    functions = [graded("train_epoch", "train_epoch"), graded("evaluate", "evaluate")]
    if student.choices["order"] in ("functions_first", "plots_first"):
        functions.reverse()
    functions[0].about = "train"
    plots = [graded("confusion", PLOTS[0]), graded("classwise", PLOTS[1])]
    run = [
        *extras("before_build", "run", True),
        made("run", "build", True),
        *extras("built", "built", True),
        made("optimizer", "optimizer", True),
        made("loop", "loop", True),
    ]
    after = [made("save", "save", True), made("curves", "curves", True)]
    shown = _replaced(
        "plot_confusion_matrix(MODEL__, TESTLD__, NAMES__)\n"
        "plot_classwise_predictions(MODEL__, TESTLD__, NAMES__)",
        marks,
    )
    figures = [Section("plots", shown, [], True)]
    ending = extras("end", "end", True)
    bottom = extras("bottom", "bottom")

    order = student.choices["order"]
    if order == "template":
        made_up = [*settings, *data, *model, *functions, *run, *after, *plots, *figures, *ending]
    elif order == "parts_first":
        made_up = [*settings, *model, *functions, *data, *run, *after, *plots, *figures, *ending]
    elif order == "functions_first":
        made_up = [*settings, *functions, *model, *plots, *data, *run, *after, *figures, *ending]
    else:
        made_up = [*settings, *plots, *functions, *model, *data, *run, *after, *figures, *ending]
    return [section for section in [*made_up, *bottom] if section.code]


def _marks(student: Student) -> dict[str, str]:
    names = student.choices["names"]
    marks = {
        **student.values,
        **dict(zip(NAME_MARKS, NAMES[names], strict=True)),
        **dict(zip(("TRH__", "TEH__"), HISTORIES[names], strict=True)),
        "EVALLD__": "TESTLD__",
        "TF__": MODULES[student.choices["modules"]][0],
        "DS__": MODULES[student.choices["modules"]][1],
        "ID_FA__": student.student_id.translate(str.maketrans("0123456789", "۰۱۲۳۴۵۶۷۸۹")),
    }
    for choice in CHOICES:
        marks.update(pieces(choice)[student.choices[choice]].define)
    step = "" if pieces("loop")[student.choices["loop"]].drops else marks.get("STEP__", "")
    marks["STEP__"] = step
    marks["STEPFIT__"] = step.replace("TEH__", "test_hist")
    marks["SCHED__"] = "scheduler" if step else "None"
    marks["ID__"] = student.student_id
    return marks


def _replaced(code: str, marks: dict[str, str]) -> str:
    for mark in ("STEP__", "STEPFIT__"):
        if not marks[mark]:
            code = re.sub(rf"^ *{mark}\n?", "", code, flags=re.MULTILINE)
    code = code.replace("ID_FA__", marks["ID_FA__"]).replace("ID___Lab8", marks["ID__"] + "_Lab8")
    pattern = re.compile(r"(?<![A-Za-z0-9])(?:" + "|".join(sorted(marks, key=len, reverse=True)) + r")")
    while (changed := pattern.sub(lambda found: marks[found[0]], code)) != code:
        code = changed
    return code


@cache
def _template_docstrings() -> dict[str, str]:
    path = HERE.parents[1] / "template" / "vit_defects" / "homework.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    return {
        node.name: ast.get_docstring(node, clean=True) or "" for node in tree.body if hasattr(node, "name")
    }


@cache
def _texts() -> dict:
    return tomllib.loads((PIECES / "texts.toml").read_text(encoding="utf-8"))


def _documented(code: str, name: str, student: Student) -> str:
    """The code with a docstring in the graded part, as the student writes docstrings."""
    style, language = student.choices["docstrings"], student.choices["language"]
    node = next(n for n in ast.parse(code).body if getattr(n, "name", "") == name)
    if style == "none" or language == "silent" or ast.get_docstring(node):
        return code
    short = _texts()[language]["doc"][name]
    if style == "template":
        text = _template_docstrings()[name]
    elif style == "numpy":
        arguments = [a.arg for n in ast.walk(node) if isinstance(n, ast.FunctionDef) for a in n.args.args]
        listed = [a for a in dict.fromkeys(arguments) if a not in ("self", "x", "img")][:8]
        text = "\n".join([short, "", "Parameters", "----------", *(f"{a} : see the handout" for a in listed)])
    else:
        text = short
    raw = "r" if "\\" in text else ""
    quoted = [f'    {raw}"""{text}"""'] if "\n" not in text else []
    if not quoted:
        first, *others = text.split("\n")
        quoted = [f'    {raw}"""{first}', *(f"    {line}".rstrip() for line in others), '    """']
    body = node.body[0]
    at = min([body.lineno, *(d.lineno for d in getattr(body, "decorator_list", []))]) - 1
    lines = code.split("\n")
    while at > 0 and lines[at - 1].lstrip().startswith("#"):
        at -= 1
    return "\n".join([*lines[:at], *quoted, *lines[at:]])


BASE_IMPORTS = [
    "import torch",
    "import torch.nn.functional as F",
    "import matplotlib.pyplot as plt",
    "from torch import nn, optim",
    "from torch.utils.data import DataLoader",
]
EINOPS = ["from einops import rearrange, repeat", "from einops.layers.torch import Rearrange"]


def _imports(student: Student, needs: list[str]) -> str:
    """The imports on top, in the student's style."""
    style = student.choices["imports"]
    modules = MODULES[student.choices["modules"]][2].split("\n")
    wanted = list(dict.fromkeys([*BASE_IMPORTS, *EINOPS, *modules, *needs]))
    stars = [line for line in wanted if line.endswith("*")]
    wanted = [*stars, *(line for line in wanted if line not in stars)]
    if style == "template":
        given = [
            "import random",
            "import shutil",
            "import time",
            "import zipfile",
            "from pathlib import Path",
            "",
            "import matplotlib.pyplot as plt",
            "import seaborn as sns",
            "import torch",
            "import torch.nn.functional as F",
            *EINOPS,
            "from sklearn.metrics import confusion_matrix",
            "from torch import nn, optim",
            "from torch.utils.data import DataLoader",
        ]
        return "\n".join([*stars, *given, *(line for line in wanted if line not in {*given, *stars})])
    if style == "one_line":
        plain = [line[7:] for line in wanted if re.fullmatch(r"import [a-z_]+", line)]
        others = [line for line in wanted if not re.fullmatch(r"import [a-z_]+", line)]
        return "\n".join([*stars, "import " + ", ".join(plain), *(o for o in others if o not in stars)])
    if style == "with_fallback":
        kept = [line for line in wanted if line not in EINOPS]
        return "\n".join(
            [
                *kept,
                "",
                "try:",
                *(f"    {line}" for line in EINOPS),
                "except ImportError:",
                "    import subprocess, sys",
                '    subprocess.check_call([sys.executable, "-m", "pip", "install", "einops"])',
                *(f"    {line}" for line in EINOPS),
            ]
        )
    if style == "star":
        extra = ["from torch.nn import *", "from math import *"]
        return "\n".join([*extra, *(line for line in wanted if line not in extra)])
    if style == "grouped":
        library = sorted(line for line in wanted if _is_standard(line))
        others = sorted(line for line in wanted if not _is_standard(line) and line not in stars)
        return "\n".join([*stars, *library, "", *others])
    return "\n".join(wanted)


def _is_standard(line: str) -> bool:
    return line.split()[1].split(".")[0] in sys.stdlib_module_names


def _with_imports(student: Student) -> list[Section]:
    """The sections with one of imports in front, or with the imports where they are needed."""
    found = sections(student)
    if student.choices["imports"] == "in_place":
        seen: set[str] = set()
        for section in found:
            new = [need for need in section.needs if need not in seen]
            # below a guard an import would be a local name, so others import it again
            seen.update([] if section.is_script else new)
            head, body = _cell_magic(section.code)
            stars = [] if not section.is_script else [need for need in new if need.endswith("*")]
            section.code = head + "\n".join(
                [*(n for n in new if n not in stars), *([""] if new else []), body]
            )
        needs: list[str] = []
    else:
        needs = [need for section in found for need in section.needs]
    return [Section("setup", _imports(student, needs), []), *found]


def _cell_magic(code: str) -> tuple[str, str]:
    if code.startswith("%%"):
        head, _, body = code.partition("\n")
        return head + "\n", body
    return "", code


def source(student: Student) -> str:
    """The submitted file's text."""
    return _notebook(student) if student.kind == "ipynb" else _script(student)


def _title(student: Student, about: str) -> tuple[str, str]:
    if student.choices["language"] == "silent":
        return "", ""
    texts = _texts()[student.choices["language"]]
    return texts["titles"].get(about, ""), texts["remarks"].get(about, "")


def _separator(style: str, title: str, remark: str) -> str:
    if style == "percent_cells":
        text = f"# %% [markdown]\n# ## {title}\n" + (f"#\n# {remark}\n" if remark else "") if title else ""
        return f"{text}\n# %%\n"
    if not title:
        return ""
    if style == "lines":
        return f"# {'-' * 78}\n# {title}\n# {'-' * 78}\n" + (f"# {remark}\n" if remark else "")
    if style == "hashes":
        return f"{'#' * 80}\n### {title:<73}###\n{'#' * 80}\n"
    if style == "strings":
        raw = "r" if "\\" in remark else ""
        return f'{raw}"""## {title}\n\n{remark}\n"""\n\n' if remark else f'"""## {title}"""\n\n'
    return f"# {title}\n" + (f"# {remark}\n" if remark else "") if style == "comments" else ""


def _script(student: Student) -> str:
    header = pieces("headers")[student.choices["headers"]]
    marks = _marks(student)
    structure = student.choices["structure"]
    seen: set[str] = set()
    top: list[str] = [] if header.code == "pass" else [_replaced(header.code, marks)]
    below: list[str] = []
    for section in _with_imports(student):
        about = section.about if section.about not in seen else ""
        seen.add(section.about)
        title = _separator(student.choices["separators"], *_title(student, about))
        if structure == "top_level" or not section.is_script:
            # what stands behind the script part stays behind it
            (below if section.about == "bottom" else top).append(title + section.code)
            continue
        code = section.code
        if structure != "guarded_block":
            classes, code = _hoisted(code)
            if classes:
                imports = [need for need in section.needs if code.startswith(need) or f"\n{need}\n" in code]
                code = "\n".join(line for line in code.split("\n") if line not in imports)
                top.append("\n".join([*imports, *([""] if imports else []), classes]))
        quiet = title if title.startswith("#") else ""
        below.append(_indented(quiet + code))
    if structure == "top_level":
        text = "\n\n\n".join([*top, *below])
    else:
        bottom = [part for part in below if not part.startswith("    ")]
        body = "\n\n".join(part for part in below if part.startswith("    "))
        if structure == "main_function":
            block = f'def main():\n{body}\n\n\nif __name__ == "__main__":\n    main()'
        elif structure == "called_main":
            block = f"def run_everything():\n{body}\n    return 0\n\n\nrun_everything()"
        else:
            block = f"if __name__ == '__main__':\n{body}"
        text = "\n\n\n".join([*top, block, *bottom])
    return _formatted(text.rstrip() + "\n", student.choices["format"])


def _hoisted(code: str) -> tuple[str, str]:
    """Classes and the rest: in a file with a main function, students write classes outside of it."""
    lines = code.split("\n")
    taken: set[int] = set()
    classes = []
    for node in ast.parse(code).body:
        if isinstance(node, ast.ClassDef):
            span = range(min([node.lineno, *(d.lineno for d in node.decorator_list)]) - 1, node.end_lineno)
            classes.append("\n".join(lines[i] for i in span))
            taken.update(span)
    rest = "\n".join(line for i, line in enumerate(lines) if i not in taken).strip("\n")
    return "\n\n\n".join(classes), re.sub(r"\n{3,}", "\n\n", rest)


def _indented(code: str) -> str:
    return "\n".join(f"    {line}" if line.strip() else "" for line in code.strip("\n").split("\n"))


def _formatted(text: str, style: str) -> str:
    if style in ("two_spaces", "tabs"):

        def narrower(found: re.Match[str]) -> str:
            wide = len(found[0])
            return " " * (wide // 2) if style == "two_spaces" else "\t" * (wide // 4) + " " * (wide % 4)

        return re.sub(r"^ +", narrower, text, flags=re.MULTILINE)
    if style == "crlf":
        return text.replace("\n", "\r\n")
    if style == "byte_order_mark":
        return "\ufeff" + text
    if style == "trailing_spaces":
        return re.sub(r"([:,)])$", r"\1  ", text, flags=re.MULTILINE)
    return text


def _notebook(student: Student) -> str:
    style = student.choices["format"]
    marks = _marks(student)
    cells: list[dict] = []
    header = pieces("notebook_headers")[student.choices["notebook_headers"]].code
    if header and header != "pass":
        cells.append(_text_cell(_replaced(header, marks)))
    seen: set[str] = set()
    merged = student.choices["separators"] == "cells_per_section"
    for section in _with_imports(student):
        new = section.about not in seen
        seen.add(section.about)
        title, remark = _title(student, section.about if new else "")
        if title:
            cells.append(_text_cell(f"## {title}" + (f"\n\n{remark}" if remark else "")))
        previous = cells[-1] if cells else None
        magic = section.code.startswith("%%") or (previous and "".join(previous["source"]).startswith("%%"))
        if merged and not title and not new and previous and previous["cell_type"] == "code" and not magic:
            previous["source"] = previous["source"] + "\n\n" + section.code
            continue
        cells.append({"cell_type": "code", "metadata": {}, "source": section.code, "about": section.about})
    runs = 0
    rng = random.Random(f"outputs {student.student_id}")
    for number, cell in enumerate(cells):
        about = cell.pop("about", "")
        if cell["cell_type"] == "code":
            runs += 1 if style != "colab" else rng.choice([1, 1, 1, 2, 3])
            kept = style != "without_outputs"
            cell["execution_count"] = runs if kept else None
            cell["outputs"] = _outputs(about, cell["source"], student, rng, runs) if kept else []
        if style != "one_string":
            cell["source"] = cell["source"].splitlines(keepends=True)
        if style in ("colab", "with_ids"):
            cell["metadata"] = {"id": f"{zlib.crc32(f'{student.student_id} {number}'.encode()):08x}Kq_t"}
        if style in ("with_ids", "jupyter"):
            cell["id"] = f"{zlib.crc32(f'id {student.student_id} {number}'.encode()):08x}"
    metadata: dict = {
        "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
        "language_info": {"name": "python", "version": "3.11.7", "file_extension": ".py"},
    }
    if style == "colab":
        metadata = {
            "accelerator": "GPU",
            "colab": {"gpuType": "T4", "provenance": [], "toc_visible": True},
            "kernelspec": {"display_name": "Python 3", "name": "python3"},
            "language_info": {"name": "python"},
        }
    minor = 5 if style in ("with_ids", "jupyter") else 0 if style == "colab" else 4
    content = {"cells": cells, "metadata": metadata, "nbformat": 4, "nbformat_minor": minor}
    return json.dumps(content, indent=2 if style == "colab" else 1, ensure_ascii=style == "one_string") + "\n"


def _text_cell(text: str) -> dict:
    return {"cell_type": "markdown", "metadata": {}, "source": text}


def _outputs(about: str, code: str, student: Student, rng: random.Random, run: int) -> list[dict]:
    """What a run left behind: the progress of training, and figures."""
    outputs: list[dict] = []
    if about == "loop":
        lines, loss, accuracy = [], 1.84, rng.uniform(0.17, 0.2)
        for epoch in range(1, int(student.values["V_EPOCHS__"]) + 1):
            loss, accuracy = loss - rng.uniform(0.02, 0.09), accuracy + rng.uniform(0.0, 0.04)
            lines.append(f"Epoch {epoch}\n[    0/1260] loss {loss + 0.05:.4f}\n")
            right = round(540 * accuracy)
            lines.append(f"test loss {loss:.4f}, accuracy {right}/540 ({right / 5.4:.2f} %)\n")
        outputs.append({"name": "stdout", "output_type": "stream", "text": lines})
    if ("plt.show()" in code and "def " not in code) or about == "plots":
        outputs.append(
            {
                "data": {"image/png": PIXEL, "text/plain": ["<Figure size 640x480 with 1 Axes>"]},
                "metadata": {},
                "output_type": "display_data",
            }
        )
    if code.rstrip().endswith("\ndevice"):
        outputs.append(
            {
                "data": {"text/plain": ["device(type='cpu')"]},
                "execution_count": run,
                "metadata": {},
                "output_type": "execute_result",
            }
        )
    return outputs


def python_text(name: str, text: str) -> str:
    """A submission's code as one Python text: of a notebook the code cells, without magics."""
    if not name.endswith(".ipynb"):
        return text.removeprefix("\ufeff")
    cells = [cell for cell in json.loads(text)["cells"] if cell["cell_type"] == "code"]
    lines = [line for cell in cells for line in "".join(cell["source"]).split("\n")]
    return "\n".join("" if re.match(r"\s*[%!]", line) else line for line in lines)


# --- writing ------------------------------------------------------------------------------------------


def write(folder: Path, members: list[Student], checkpoints: bool = False) -> list[Path]:
    """Writes the uploads, one folder per student, and returns the code files."""
    sys.path.insert(0, str(HERE.parent / "submissions"))
    from build import STEM, pdf

    written = []
    for student in members:
        own = folder / student.student_id
        own.mkdir(parents=True, exist_ok=True)
        stem = STEM.format(student_id=student.student_id)
        text = source(student)
        file = own / f"{stem}.{student.kind}"
        file.write_bytes(text.encode("utf-8"))
        (own / f"{stem}.pdf").write_bytes(pdf(f"Report of student {student.student_id}"))
        if checkpoints:
            (own / f"{stem}.pth").write_bytes(_weights(student))
        written.append(file)
    return written


def _weights(student: Student) -> bytes:
    """The weights of the student's model as it is initialized."""
    import io

    import torch

    choices = dict(student.choices, imports="grouped", order="parts_first", language="silent")
    plain = Student(student.student_id, "py", choices, [], student.values)
    parts = [s for s in sections(plain) if s.about in ("model", *GRADED[:5])]
    config = _replaced(pieces("config")[choices["config"]].code, _marks(plain))
    needs = [need for s in parts for need in s.needs] + pieces("config")[choices["config"]].needs
    names: dict = {"__name__": "submission"}
    code = "\n\n".join([_imports(plain, needs), config, *(s.code for s in parts)])
    arguments, printed = sys.argv, sys.stdout
    sys.argv, sys.stdout = ["submission"], io.StringIO()
    try:
        exec(compile(code, "<submission>", "exec", dont_inherit=True), names)  # noqa: S102 - our own pieces
        torch.manual_seed(0)
        model = eval(_replaced("ViT(KW__)", _marks(plain)), names)  # noqa: S307 - as above
    finally:
        sys.argv, sys.stdout = arguments, printed
    buffer = io.BytesIO()
    torch.save(model.state_dict(), buffer)
    return buffer.getvalue()


def all_pieces() -> list[str]:
    """Every piece there is, as `choice:piece`."""
    found = [f"{choice}:{name}" for choice in CHOICES for name in pieces(choice)]
    found += [f"{choice}:{name}" for choice in ("headers", "notebook_headers") for name in pieces(choice)]
    for styles in (SCRIPT_STYLES, NOTEBOOK_STYLES, COMMON_STYLES):
        found += [f"{choice}:{name}" for choice, shares in styles.items() for name in shares]
    found += [f"extra:{name}" for name in pieces("extras")]
    return list(dict.fromkeys(found))


def table(members: list[Student]) -> str:
    """How often each piece occurs, a line for each choice."""
    counted = Counter(piece for student in members for piece in student.pieces())
    lines: dict[str, list[str]] = {}
    for piece in all_pieces():
        choice, _, name = piece.partition(":")
        lines.setdefault(choice, []).append(f"{name} {counted[piece]}")
    kinds = Counter(student.kind for student in members)
    first = "kind: " + ", ".join(f"{kind} {number}" for kind, number in sorted(kinds.items()))
    return "\n".join([first, *(f"{choice}: {', '.join(entries)}" for choice, entries in lines.items())])


def main() -> None:
    parser = argparse.ArgumentParser(description="Writes a class of honest, correct submissions.")
    parser.add_argument("folder", type=Path, nargs="?")
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--checkpoints", action="store_true", help="also the weights as initialized")
    parser.add_argument("--table", action="store_true", help="how often each piece occurs")
    asked = parser.parse_args()
    members = students(asked.count, asked.seed)
    if asked.table or asked.folder is None:
        print(table(members))
    if asked.folder is not None:
        print(f"{len(write(asked.folder, members, asked.checkpoints))} submissions are in {asked.folder}.")


if __name__ == "__main__":
    main()
