"""What reads a seed or a generator's state in reached code is a person's; keeping it is left alone."""

import textwrap

import pytest

HEAD = """
import copy, functools, io, operator, random
import numpy as np
import torch
import torch.nn as nn
from torch.utils.data import DataLoader
"""
CLASS = """
class ViT(nn.Module):
    def __init__(self, *, image_size, patch_size, num_classes, dim, depth, heads, mlp_dim):
        super().__init__()
        self.told = {0}
"""
LOOP = """
def train_epoch(model, optimizer, data_loader, loss_history):
    for images, labels in data_loader:
        optimizer.step()

model = ViT(image_size=28, patch_size=7, num_classes=6, dim=8, depth=1, heads=1, mlp_dim=8)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""


def asked(made):
    """The sentences about seeds and states."""
    return [note for note in made.notes if "reads a seed or a generator's state" in note.text]


def in_class(expression):
    return HEAD + CLASS.replace("{0}", expression)


@pytest.mark.parametrize(
    "expression",
    [
        "torch.initial_seed()",
        "torch.random.initial_seed() % 4",
        "torch.cuda.initial_seed()",
        "torch.get_rng_state()[0]",
        "torch.cuda.get_rng_state_all()",
        "torch.default_generator.get_state()",
        "torch.Generator().get_state().sum()",
        "random.getstate()[1][0]",
        "np.random.get_state()[1]",
        "np.random.default_rng().bit_generator.state",
        "np.random.mtrand._rand",
        "random._inst.__getstate__()",
        "random._inst.__reduce__()",
        "(lambda: torch.initial_seed())()",
        "[x for x in [torch.initial_seed]][0]()",
        "getattr(torch, 'initial_seed')()",
        "getattr(torch, 'initial' + '_seed')()",
        "getattr(torch.default_generator, ''.join(['initial', '_seed']))()",
        "operator.attrgetter('random.initial_seed')(torch)()",
        "operator.methodcaller('get_state')(torch.default_generator)",
        "vars(torch)['initial_seed']()",
        "torch.random.__dict__['initial_seed']()",
        "hash(str(torch.get_rng_state()))",
        "copy.deepcopy(torch.get_rng_state())",
        "int(print(torch.initial_seed(), file=io.StringIO()) or 0)",
        "[state := torch.get_rng_state(), state.sum()]",
    ],
)
def test_a_read_in_a_graded_class_is_a_persons(analyzed, expression):
    (note,) = asked(analyzed(in_class(expression)))
    assert note.ask_person and "ViT" in note.text and note.text.startswith("homework.py:")


@pytest.mark.parametrize(
    "source",
    [
        # under another name, from another place
        "from torch import initial_seed as chance\n" + CLASS.replace("{0}", "chance()"),
        "from torch.random import *\n" + CLASS.replace("{0}", "initial_seed()"),
        "NAME = 'initial_seed'\n" + CLASS.replace("{0}", "getattr(torch, NAME)()"),
        "told = torch.initial_seed\n" + CLASS.replace("{0}", "told()"),
        "SEED = torch.initial_seed()\n" + CLASS.replace("{0}", "SEED"),
        "def told():\n    from torch import initial_seed as s\n    return s()\n"
        + CLASS.replace("{0}", "told()"),
        "def told():\n    match torch:\n        case object(initial_seed=seed):\n            return seed()\n"
        + CLASS.replace("{0}", "told()"),
        # nobody but the grader calls it
        CLASS.replace("{0}", "0")
        + "def evaluate(model, data_loader, loss_history): torch.initial_seed().bit_length()",
        # Python takes these letters for the plain ones
        CLASS.replace("{0}", "torch.\N{MATHEMATICAL BOLD SMALL I}nitial_seed()"),
        # a class of one's own with that method hides nothing
        "class Own:\n    def get_state(self): ...\n"
        + CLASS.replace("{0}", "torch.default_generator.get_state()"),
        "class Own:\n    def get_state(self): ...\nown = Own()\nown = torch.default_generator\n"
        + CLASS.replace("{0}", "own.get_state()"),
        # nor does a function that only looks like PyTorch's or Python's own
        "def print(*seen): return seen\n" + CLASS.replace("{0}", "print(torch.initial_seed())"),
        "class Own:\n    def set_state(self, state): self.state = state\nown = Own()\n"
        + CLASS.replace("{0}", "own.set_state(torch.get_rng_state())"),
        "own = nn.Identity()\nown.set_state = list\n"
        + CLASS.replace("{0}", "own.set_state(torch.get_rng_state())"),
        "def DataLoader(worker_init_fn): return worker_init_fn(0)\n"
        + CLASS.replace("{0}", "DataLoader(worker_init_fn=lambda worker: torch.initial_seed())"),
        "def told(worker): return torch.initial_seed()\nloader = DataLoader([0], worker_init_fn=told)\n"
        + CLASS.replace("{0}", "told(0)"),
        # what is saved and read back
        "def keep(state): torch.save({'rng': torch.get_rng_state()}, 'c.pt')\n"
        + CLASS.replace("{0}", "(keep(0), torch.load('c.pt')['rng'].sum())"),
        "buffer = io.BytesIO()\ndef keep(): torch.save({'rng': torch.get_rng_state()}, buffer)\n"
        + CLASS.replace("{0}", "(keep(), buffer.getvalue())"),
        "state = torch.get_rng_state()\n" + CLASS.replace("{0}", "int(state[0])"),
        "state = {'torch': torch.get_rng_state()}\n" + CLASS.replace("{0}", "state['torch'].sum()"),
        "state = {}\nstate['torch'] = torch.get_rng_state()\n" + CLASS.replace("{0}", "len(str(state))"),
    ],
)
def test_however_it_is_written(analyzed, source):
    assert asked(analyzed(HEAD + source))


def test_the_loop_and_what_it_calls_count_as_reached(analyzed):
    """They are executed when training, wherever they stand."""
    reads = [
        "for epoch in range(3):\n    train_epoch(model, optimizer, train_loader, [])\n"
        "    if torch.initial_seed() % 4 == 0:\n        break\n",
        "def finished(model): return torch.initial_seed()\n"
        "for epoch in range(3):\n    train_epoch(model, optimizer, train_loader, [])\n    finished(model)\n",
        "def main():\n    for epoch in range(3):\n        train_epoch(model, optimizer, train_loader, [])\n"
        "        scale = torch.initial_seed() % 2\nmain()\n",
        "N = 3 + torch.initial_seed() % 2\n"
        "for epoch in range(N):\n    train_epoch(model, optimizer, train_loader, [])\n",
        "from torchvision import transforms\n"
        "def bright(image): return image * (torch.initial_seed() % 2)\n"
        "transform = transforms.Compose([transforms.ToTensor(), transforms.Lambda(bright)])\n"
        "for epoch in range(3):\n    train_epoch(model, optimizer, train_loader, [])\n",
    ]
    for read in reads:
        made = analyzed(HEAD + CLASS.replace("{0}", "0") + LOOP + read)
        (note,) = asked(made)
        assert "for the training;" in note.text, read


HONEST = {
    "nothing that is reached reads it": """
        print(f"seed {torch.initial_seed()}")
        state = torch.get_rng_state()
        def unused(): return torch.initial_seed()
    """,
    "the workers of a loader, as PyTorch's documentation has it": """
        def seed_worker(worker_id):
            worker_seed = torch.initial_seed() % 2**32
            np.random.seed(worker_seed)
            random.seed(worker_seed)
        g = torch.Generator()
        g.manual_seed(0)
        def evaluate(model, data_loader, loss_history):
            return DataLoader([0], num_workers=2, worker_init_fn=seed_worker, generator=g)
    """,
    "the same as a lambda, and as a partial": """
        def seed_worker(rank, worker_id): np.random.seed(torch.initial_seed() % 2**32 + rank)
        def evaluate(model, data_loader, loss_history):
            DataLoader([0], worker_init_fn=functools.partial(seed_worker, 1))
            DataLoader([0], worker_init_fn=lambda worker: np.random.seed(torch.initial_seed() % 2**32))
    """,
    "a checkpoint that holds the state": """
        def evaluate(model, data_loader, loss_history):
            weights = model.state_dict()
            torch.save({"model": weights, "rng": torch.get_rng_state(), "seed": torch.initial_seed()}, "c.pt")
    """,
    "a checkpoint that is saved by keywords": """
        def evaluate(model, data_loader, loss_history):
            torch.save(obj={"model": model.state_dict(), "rng": torch.get_rng_state()}, f="c.pt")
    """,
    "a checkpoint that is put together first": """
        def evaluate(model, data_loader, loss_history):
            checkpoint = {"model": model.state_dict(), "np_rng": np.random.get_state()}
            checkpoint["rng"] = torch.get_rng_state()
            torch.save(checkpoint, "c.pt")
    """,
    "a checkpoint from which training goes on": """
        def evaluate(model, data_loader, loss_history):
            torch.save({"model": model.state_dict(), "rng": torch.get_rng_state()}, "c.pt")
            saved = torch.load("c.pt")
            model.load_state_dict(saved["model"])
            torch.set_rng_state(saved["rng"])
    """,
    "the state is put back after something random": """
        def evaluate(model, data_loader, loss_history):
            cuda = torch.cuda.get_rng_state_all() if torch.cuda.is_available() else None
            state, python = torch.get_rng_state(), random.getstate()
            torch.manual_seed(0)
            torch.set_rng_state(state)
            random.setstate(python)
            if cuda is not None:
                torch.cuda.set_rng_state_all(cuda)
    """,
    "one after the other": """
        def evaluate(model, data_loader, loss_history):
            state = torch.get_rng_state()
            python = random.getstate()
            states = {"numpy": np.random.get_state()}
            torch.manual_seed(0)
            torch.random.set_rng_state(state)
            random.setstate(python)
            np.random.set_state(states["numpy"])
    """,
    "it is printed": """
        def evaluate(model, data_loader, loss_history):
            print("seed", torch.initial_seed(), f"{torch.initial_seed():x}")
    """,
    "a class of one's own has such names": """
        class EarlyStopping:
            def __init__(self, seed):
                self._seed = seed
            def get_state(self):
                return {"seed": self._seed}
            def __getstate__(self):
                return super().__getstate__()
            def again(self):
                return self.get_state()
        def evaluate(model, data_loader, loss_history):
            stopping = EarlyStopping(3)
            return stopping.get_state(), EarlyStopping(4).get_state(), stopping._seed
    """,
    "seeds are set": """
        def set_seed(seed=42):
            random.seed(seed); np.random.seed(seed); torch.manual_seed(seed); torch.cuda.manual_seed_all(seed)
        CONFIG = {"initial_seed": 42, "seed": 7}
        def evaluate(model, data_loader, loss_history):
            set_seed(CONFIG["initial_seed"])
            rng = np.random.default_rng(CONFIG.get("seed"))
            g = torch.Generator().manual_seed(5)
            with torch.random.fork_rng():
                return torch.randperm(4, generator=g), rng.permutation(4), torch.seed()
    """,
}


@pytest.mark.parametrize("case", HONEST)
def test_honest_work_is_left_alone(analyzed, case):
    made = analyzed(HEAD + CLASS.replace("{0}", "0") + textwrap.dedent(HONEST[case]))
    assert asked(made) == []


@pytest.mark.slow
def test_the_solution_and_every_form_are_left_alone(course_root, analyzed):
    """Legitimate forms, recipes and the solution itself."""
    folder = course_root / "reference" / "vit_defects"
    files = [folder / "solution.py", *sorted((folder / "recipes").glob("*.py"))]
    files += sorted(course_root.glob("reference/*/forms/*.py"))
    files += sorted((course_root / "tests" / "training" / "styles").glob("*.py"))
    assert len(files) > 60
    for file in files:
        assert asked(analyzed(file.read_bytes())) == [], file.name
