"""Which model counts, where a program trains several, and what is read of that."""

import textwrap

import pytest

from grader.analysis import program
from grader.domain.analyzed_program import Script
from grader.domain.assignment import Component, ProgramRules
from grader.domain.measure import ProgramRoles

COMPONENTS = (
    Component("ViT", "class", "*, dim"),
    Component("train_epoch", "function", "model, optimizer, data_loader, loss_history"),
    Component("plot_predictions", "function", "model, data_loader"),
)
HEAD = """\
import torch
from torch import nn, optim
import matplotlib.pyplot as plt
class ViT(nn.Module):
    pass
def train_epoch(model, optimizer, data_loader, loss_history):
    for images, labels in data_loader:
        optimizer.step()
def plot_predictions(model, data_loader):
    plt.imshow(model)
first = ViT(dim=1)
second = ViT(dim=2)
one = optim.SGD(first.parameters(), lr=0.1)
two = optim.SGD(second.parameters(), lr=0.1)
for epoch in range(2):
    train_epoch(first, one, train_loader, [])
for epoch in range(3):
    train_epoch(second, two, train_loader, [])
"""
FIRST_LOOP, SECOND_LOOP = 15, 17


def script(text: str, roles: ProgramRoles = ProgramRoles()) -> Script:  # noqa: B008 - it is frozen
    source = HEAD + textwrap.dedent(text)
    return program("homework.py", source.encode(), ProgramRules(COMPONENTS, (), "_handed_in", roles)).script


def of(found: Script) -> tuple[str, int]:
    """The model that counts, and the line of the loop that trains it."""
    (loop,) = found.loops
    (left,) = found.left_alone
    assert {loop.place.line, left.place.line} == {FIRST_LOOP, SECOND_LOOP}
    return found.model, loop.place.line


def test_it_is_what_was_trained_last() -> None:
    assert of(script("")) == ("second", SECOND_LOOP)


def test_it_is_the_only_one_that_is_saved() -> None:
    assert of(script("torch.save(first.state_dict(), 'a.pth')")) == ("first", FIRST_LOOP)


def test_it_is_the_one_that_is_drawn() -> None:
    found = script("torch.save(second.state_dict(), 'a.pth')\nplot_predictions(first, test_loader)")
    assert of(found) == ("first", FIRST_LOOP)


@pytest.mark.parametrize(
    "name",
    [
        "'1_handed_in.pth'",
        "f'{student}_handed_in.pth'",
        "os.path.join('out', NUMBER + '_handed_in.pth')",
        "'{}_handed_in.pth'.format(NUMBER)",
        "'%s_handed_in.pth' % NUMBER",
    ],
)
def test_it_is_the_one_that_is_saved_under_the_checkpoints_name(name: str) -> None:
    found = script(
        f"""
        torch.save(first.state_dict(), {name})
        torch.save(second.state_dict(), 'other.pth')
        plot_predictions(second, test_loader)
        """
    )
    assert of(found) == ("first", FIRST_LOOP)


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            """
            torch.save(obj=first.state_dict(), f='1_handed_in.pth')
            torch.save(second.state_dict(), 'b.pth')
            """,
            id="all by keyword",
        ),
        pytest.param(
            """
            torch.save(first.state_dict(), _use_new_zipfile_serialization=False, f='1_handed_in.pth')
            torch.save(second.state_dict(), 'b.pth')
            """,
            id="another keyword first",
        ),
        pytest.param(
            """
            def keep(path, net):
                torch.save(net.state_dict(), path)
            keep('1_handed_in.pth', first)
            keep('b.pth', second)
            """,
            id="helper",
        ),
        pytest.param(
            """
            def keep(net, path):
                torch.save(net.state_dict(), f=path)
            keep(first, '1_handed_in.pth')
            keep(second, path='b.pth')
            """,
            id="helper that saves by keyword",
        ),
        pytest.param(
            """
            def name_of(kind):
                return "{}{}.pth".format(input(), kind)
            torch.save(first.state_dict(), name_of('_handed_in'))
            torch.save(second.state_dict(), name_of('b'))
            """,
            id="function that makes the name",
        ),
        pytest.param(
            """
            def keep(net, stem):
                path = os.path.join(FOLDER, stem + '.pth')
                torch.save(net.state_dict(), path)
            keep(first, '1_handed_in')
            keep(second, 'b')
            """,
            id="helper that makes the name",
        ),
        pytest.param(
            """
            def keep(net, *, path):
                torch.save(net.state_dict(), path)
            keep(first, path='1_handed_in.pth')
            keep(second, path='b.pth')
            """,
            id="helper that is called by keyword",
        ),
        pytest.param(
            """
            def keep(path, net):
                torch.save(net.state_dict(), path)
            def keep_all(net, where):
                keep(where, net)
            keep_all(first, '1_handed_in.pth')
            keep_all(second, 'b.pth')
            """,
            id="helper of a helper",
        ),
        pytest.param(
            """
            def keep(net):
                path = 'b.pth'
                torch.save(net.state_dict(), path)
            def keep_as(net, path):
                keep(net)
            torch.save(first.state_dict(), '1_handed_in.pth')
            keep_as(second, '2_handed_in.pth')
            """,
            id="a name within a helper is not a helper's parameter",
        ),
    ],
)
def test_it_is_found_by_that_name_however_it_is_saved(text: str) -> None:
    assert of(script(text)) == ("first", FIRST_LOOP)


def test_a_remark_chooses() -> None:
    text = "torch.save(second.state_dict(), '1_handed_in.pth')\nfinal = first  # grader: final\n"
    assert script(text).loops[0].place.line == FIRST_LOOP


def test_the_assignment_may_state_it() -> None:
    text = "torch.save(second.state_dict(), '1_handed_in.pth')"
    assert of(script(text, ProgramRoles(final="first"))) == ("first", FIRST_LOOP)
    # a variable that no use makes a model states nothing
    assert of(script(text, ProgramRoles(final="epoch"))) == ("second", SECOND_LOOP)


def test_without_a_training_there_is_no_script() -> None:
    assert program("homework.py", b"x = 1\n", ProgramRules(COMPONENTS)).script.missing
