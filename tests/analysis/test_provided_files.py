"""Statements that read a file that is there wherever they are executed are executed on loading."""

from dataclasses import replace

import pytest

from grader.analysis import program
from grader.domain.analyzed_program import Program
from grader.domain.assignment import Component, ProgramRules
from grader.domain.assignment_files import ProvidedFile

RULES = ProgramRules(
    (Component("Net", "class", "text"),), provided=("corpus.txt", "tiny.pth", "vocab.json", "x.npz", "x.csv")
)
HEAD = """
import json
import numpy as np
import pandas as pd
import torch
from pathlib import Path
from torch import nn

class Net(nn.Module):
    def forward(self, x):
        return x, VALUE

"""


def read(text: str, rules: ProgramRules = RULES) -> Program:
    """What a source is read as."""
    return program("homework.py", (HEAD + text).encode(), rules)


def kept(text: str) -> bool:
    """Whether VALUE is there after loading."""
    found = read(text)
    return any("VALUE" in statement.binds for statement in found.statements) and not found.unresolved


@pytest.mark.parametrize(
    "text",
    [
        'VALUE = open("corpus.txt").read()',
        'VALUE = open("./corpus.txt", "r", encoding="utf-8").read()',
        'VALUE = open(file="corpus.txt", mode="rb").read()',
        'VALUE = Path("corpus.txt").read_text(encoding="utf-8")',
        'NAME = "corpus.txt"\nVALUE = open(NAME).read()',
        'with open("corpus.txt") as file:\n    VALUE = file.read()',
        'with open("vocab.json") as file:\n    VALUE = json.load(file)',
        'VALUE = json.load(open("vocab.json"))',
        'VALUE = torch.load("tiny.pth", map_location="cpu", weights_only=True)',
        'VALUE = torch.load(f="tiny.pth", weights_only=True)',
        'VALUE = np.load("x.npz")["a"]',
        'VALUE = np.loadtxt("x.csv", delimiter=",")',
        'VALUE = pd.read_csv("x.csv")["a"].tolist()',
        'def corpus():\n    with open("corpus.txt") as file:\n        return file.read()\n\nVALUE = corpus()',
        'state = torch.load("tiny.pth", weights_only=True)\nlayer = nn.Linear(2, 2)\n'
        "layer.load_state_dict(state)\nVALUE = layer.weight.detach()",
    ],
)
def test_what_reads_a_provided_file_is_kept(text: str) -> None:
    assert kept(text)


@pytest.mark.parametrize(
    "text",
    [
        'VALUE = open("mine.txt").read()',
        'VALUE = open("data/corpus.txt").read()',
        'VALUE = open("corpus.txt", "w").write("x")',
        'VALUE = open("corpus.txt", "r+").read()',
        'VALUE = open("corpus.txt", mode).read()',
        "VALUE = open(name).read()",
        'VALUE = torch.save({}, "tiny.pth")',
        'VALUE = Path("corpus.txt").write_text("x")',
        'VALUE = Path("corpus.txt").unlink()',
        'VALUE = open("corpus.txt").read() + open("mine.txt").read()',
        'with open("corpus.txt") as a, open("mine.json") as b:\n    VALUE = json.load(b)',
        'with open("mine.json") as file:\n    VALUE = json.load(file)',
        'def corpus(name):\n    return open(name).read()\n\nVALUE = corpus("corpus.txt")',
    ],
)
def test_what_does_more_than_that_is_left_out(text: str) -> None:
    found = read(text)
    assert not kept(text)
    assert any(one.reason == "it reads or writes files" for one in found.omissions)


def test_the_same_line_of_another_cell_is_another_statement() -> None:
    """Both are the first line of their cell."""
    import nbformat

    cells = [HEAD, 'VALUE = open("corpus.txt").read()', 'OTHER = open("mine.txt").read()\nVALUE = OTHER']
    made = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in cells])
    found = program("homework.ipynb", nbformat.writes(made).encode(), RULES)
    bound = {name for statement in found.statements for name in statement.binds}
    assert "VALUE" in bound and "OTHER" not in bound


def test_what_nobody_graded_needs_is_kept_for_the_training() -> None:
    found = read('VALUE = 1\nwith open("vocab.json") as file:\n    SETTINGS = json.load(file)\n')
    assert any("SETTINGS" in statement.binds for statement in found.statements)


def test_nothing_is_read_where_nothing_is_provided() -> None:
    found = read('VALUE = open("corpus.txt").read()', replace(RULES, provided=()))
    assert found.unresolved == (("Net", "VALUE"),)


def test_a_download_that_is_there_is_nothing_to_look_at() -> None:
    text = (
        'VALUE = 1\ndef load(x):\n    return torch.hub.load_state_dict_from_url("https://a.org/b/vit.pth")\n'
    )
    rules = ProgramRules((*RULES.components, Component("load", "function", "x")), provided=("tiny.pth",))
    assert [note.ask_person for note in read(text, rules).notes] == [True]
    assert not read(text, replace(rules, cached=("vit.pth",))).notes
    assert read(text, replace(rules, cached=("other.pth",))).notes


@pytest.mark.parametrize(
    ("text", "is_kept"),
    [
        ('VALUE = torch.hub.load_state_dict_from_url("https://a.org/b/vit.pth")', True),
        ('VALUE = torch.hub.load_state_dict_from_url("https://a.org/b/other.pth")', True),
        ('VALUE = hf_hub_download("owner/net", "model.safetensors")', True),
        ('VALUE = torch.load(hf_hub_download("owner/net", "model.safetensors"))', True),
        ('VALUE = torch.load(hf_hub_download(filename="model.safetensors", repo_id="owner/net"))', True),
        ('path = hf_hub_download("owner/net", "model.safetensors")\nVALUE = torch.load(path)', True),
        ('path = hf_hub_download("owner/other", "model.safetensors")\nVALUE = torch.load(path)', False),
        (
            'path = hf_hub_download("owner/net", "x")\nif path:\n    path = "y"\nVALUE = torch.load(path)',
            False,
        ),
        ('VALUE = torch.load(hf_hub_download("owner/other", "model.safetensors"))', False),
        ('VALUE = torch.load("b/vit.pth")', False),
        ('VALUE = torch.hub.load("owner/net", "model")', False),
        ('VALUE = requests.get("https://a.org/b/vit.pth")', False),
    ],
)
def test_what_a_library_looks_for_in_its_cache_is_executed_on_loading(text: str, is_kept: bool) -> None:
    """What is not provided as well: it says so at once."""
    rules = replace(RULES, cached=("vit.pth", "model.safetensors", "owner/net"))
    found = read(f"import requests\nfrom huggingface_hub import hf_hub_download\n{text}\n", rules)
    assert any("VALUE" in statement.binds for statement in found.statements) is is_kept
    assert not is_kept or not found.unresolved


def test_a_download_that_nobody_graded_needs_is_executed_where_it_is_provided() -> None:
    text = 'VALUE = 1\nSTATE = torch.hub.load_state_dict_from_url("https://a.org/b/vit.pth?download=1")\n'
    for cached in (("vit.pth",), ()):
        found = read(text, replace(RULES, cached=cached))
        assert any("STATE" in statement.binds for statement in found.statements) is bool(cached)


def test_the_names_in_caches() -> None:
    places = (
        *("torch/hub/checkpoints/vit.pth", "huggingface/owner/net/model.safetensors"),
        "huggingface/hub/models--owner--more/snapshots/abc/model.safetensors",
    )
    names = ProvidedFile("vit.bin", "0" * 64, places).cached_names
    assert names == ("vit.pth", "model.safetensors", "owner/net", "owner/more")
