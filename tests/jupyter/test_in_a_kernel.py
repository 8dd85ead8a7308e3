"""Checks in a real kernel, by the messages that a front end gets."""

import os
import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from jupyter_client.blocking.client import BlockingKernelClient
from jupyter_client.manager import KernelManager

from grader.analysis.notebook import OWN_CHECK

pytestmark = pytest.mark.slow
SECONDS = 240

ATTENTION = """%%check Attention
class Attention(nn.Module):
    def __init__(self, dim, heads=4, dim_head=64, dropout=0.0):
        super().__init__()
        self.heads, inner = heads, heads * dim_head
        self.qkv = nn.Linear(dim, 3 * inner, bias=False)
        self.out, self.dropout = nn.Linear(inner, dim), nn.Dropout(dropout)

    def forward(self, x):
        q, k, v = (rearrange(t, "b n (h d) -> b h n d", h=self.heads) for t in self.qkv(x).chunk(3, -1))
        weights = (q @ k.transpose(-1, -2) / q.shape[-1] ** 0.5).softmax(-1)
        print("a line of the cell's")
        return self.dropout(self.out(rearrange(weights @ v, "b h n d -> b n (h d)")))
print("executed")
"""


@dataclass(frozen=True)
class Shown:
    """What a front end gets of a cell.

    Attributes:
        status: `ok` or `error`.
        messages: (type, content), in their order.
    """

    status: str
    messages: list[tuple[str, dict[str, Any]]]

    def of(self, *kinds: str) -> list[dict[str, Any]]:
        """The contents of the messages of these types."""
        return [content for kind, content in self.messages if kind in kinds]

    @property
    def check(self) -> dict[str, Any]:
        """The output that a check left: its MIME bundle and metadata."""
        [first] = self.of("display_data")
        updates = self.of("update_display_data")
        assert {each["transient"]["display_id"] for each in updates} == {first["transient"]["display_id"]}
        return updates[-1]


Run = Callable[..., Shown]


@pytest.fixture(scope="module")
def run(handed_out: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Run]:
    """Execute a cell in a kernel, which works in a copy of what students receive, without the homework."""
    folder = tmp_path_factory.mktemp("desk") / "vit"
    shutil.copytree(handed_out, folder, ignore=shutil.ignore_patterns("homework.*"))
    manager = KernelManager()
    manager.kernel_spec.argv[0] = sys.executable
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GRADER_")}
    manager.start_kernel(cwd=str(folder), env={**environment, "IPYTHONDIR": str(folder.parent / "ipython")})
    client = manager.client()
    client.start_channels()
    try:
        client.wait_for_ready(timeout=SECONDS)
        yield lambda text, cell: shown(client, text, cell)
    finally:
        client.stop_channels()
        manager.shutdown_kernel(now=True)
        manager.cleanup_resources()


def shown(client: BlockingKernelClient, text: str, cell: str) -> Shown:
    """Send a cell, with its id as JupyterLab does, and wait until the kernel is idle again."""
    content = {"code": text, "silent": False, "store_history": True, "allow_stdin": False}
    message = client.session.msg("execute_request", content, metadata={"cellId": cell})
    client.shell_channel.send(message)
    messages: list[tuple[str, dict[str, Any]]] = []
    while ("status", {"execution_state": "idle"}) not in messages:
        got = client.get_iopub_msg(timeout=SECONDS)
        if got["parent_header"].get("msg_id") == message["header"]["msg_id"]:
            messages.append((got["msg_type"], got["content"]))
    while (reply := client.get_shell_msg(timeout=SECONDS))["parent_header"]["msg_id"] != message["header"][
        "msg_id"
    ]:
        pass  # an answer to one of those that asked whether the kernel is there
    return Shown(reply["content"]["status"], messages)


def test_a_student_checks_what_is_executed(run: Run) -> None:
    """One story: the parts of it need the kernel as those before left it."""
    assert (
        run("import grader\nimport torch\nfrom torch import nn\nfrom einops import rearrange", "a").status
        == "ok"
    )

    missing = run('grader.check("Attention")', "b")
    bundle = missing.check["data"]
    assert set(bundle) == {"text/plain", "text/html"} and missing.check["metadata"] == {OWN_CHECK: True}
    assert "`Attention`" in bundle["text/plain"] and bundle["text/html"].startswith('<div class="vit-grader"')
    assert bundle["text/plain"].splitlines()[-1].startswith("✗ 0 of ")
    assert not missing.of("execute_result", "stream"), "it is shown once, without frames of a spinner"

    broken = run(ATTENTION.replace("class", "1 / 0\nclass", 1), "c")
    assert broken.status == "error" and not broken.of("display_data")
    [error] = broken.of("error")
    assert error["ename"] == "ZeroDivisionError" and "line 2" in "".join(error["traceback"])

    wrong = run(ATTENTION.replace("softmax(-1)", "softmax(0)"), "c")
    assert wrong.status == "ok" and "Attention never mixes the images" in wrong.check["data"]["text/plain"]
    assert "✗" in wrong.check["data"]["text/plain"]

    right = run(ATTENTION, "c")
    assert [each["text"] for each in right.of("stream")] == ["executed\n"]
    assert right.check["data"]["text/plain"].splitlines()[-1].endswith("public checks of `Attention` pass.")
    assert right.check["data"]["text/plain"].splitlines()[-1].startswith("✓ All ")
    assert "✗" not in right.check["data"]["text/plain"], "the cell counts as it was executed last"

    result = run('r = grader.check("Attention"); r.passed, {f.component for f in r.findings}', "d")
    assert result.of("execute_result")[0]["data"]["text/plain"] == "(True, {'Attention'})"

    unknown = run('grader.check("Atention")', "e").check["data"]
    assert "Is `Attention` meant?" in unknown["text/plain"] and "<code" in unknown["text/html"]
