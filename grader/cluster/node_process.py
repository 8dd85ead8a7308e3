"""A node's own process, as SSH or Slurm starts it: `python -m grader.cluster.node_process`.

It learns where to connect and how from one line on its standard input, or from its environment, never from
its arguments, which other users could read. It ends when the coordinator is gone.
"""

import asyncio
import base64
import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from distributed import Nanny

from grader.cluster.own_folders import DASK, own_folder
from grader.cluster.servers import QuietWorker, configure, joined_security
from grader.grading.devices import allowed_gpus

ORDER_VARIABLE = "GRADER_NODE_ORDER"
_PART = "/gpu"  # before the number of a GPU in a node's name: no host has it in its own
_ID = re.compile(r"\(UUID: ((?:GPU|MIG)-[^)\s]+)\)")


def main() -> None:
    """Run until the coordinator, or whoever started this, ends it."""
    packed = os.environ.pop(ORDER_VARIABLE, "")
    watch_input = not packed
    order = json.loads(base64.b64decode(packed) if packed else sys.stdin.readline())
    configure()
    asyncio.run(_run(order, watch_input=watch_input))


def packed_order(order: Mapping[str, Any]) -> str:
    """An order as a value of `ORDER_VARIABLE`."""
    return base64.b64encode(json.dumps(order).encode()).decode()


async def _run(order: Mapping[str, Any], *, watch_input: bool) -> None:
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, over.set)

    def read_input() -> None:
        if not os.read(sys.stdin.fileno(), 1024):
            over.set()

    if watch_input:
        loop.add_reader(sys.stdin.fileno(), read_input)

    async def ended(nannies: list[Nanny]) -> None:
        for nanny in nannies:
            await nanny.finished()
        over.set()

    with own_folder(DASK) as folder:
        # whatever becomes of this process and those that it starts, what they write goes with the folder
        os.environ["TMPDIR"] = tempfile.tempdir = str(folder)
        async with contextlib.AsyncExitStack() as stack:
            nannies = [await stack.enter_async_context(nanny) for nanny in _nannies(order, str(folder))]
            waiting = asyncio.ensure_future(ended(nannies))
            await over.wait()
            waiting.cancel()


def _nannies(order: Mapping[str, Any], folder: str) -> list[Nanny]:
    """One for each GPU, which is its own; one where there is none."""
    jobs = order["jobs"] or len(os.sched_getaffinity(0))
    gpus: list[str | None] = [*_gpus()] or [None]
    return [
        Nanny(
            order["scheduler"],
            name=order["name"] if len(gpus) == 1 else f"{order['name']}{_PART}{place}",
            nthreads=max(jobs // len(gpus), 1),
            host=_own_address(order["scheduler"]),
            protocol="tls://",
            security=joined_security(order["credentials"]),
            worker_class=QuietWorker,
            dashboard=False,
            memory_limit=0,
            local_directory=folder,
            death_timeout=120,
            env={} if gpu is None else {"CUDA_VISIBLE_DEVICES": gpu},
        )
        for place, gpu in enumerate(gpus)
    ]


def _gpus() -> list[str]:
    """The GPUs that this process may use, or the parts that they are divided into, as CUDA names them."""
    allowed = allowed_gpus()
    if allowed is not None:
        return allowed
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        listed = subprocess.run(["nvidia-smi", "-L"], capture_output=True, text=True, check=True, timeout=60)
        return listed_gpus(listed.stdout)
    return []


def listed_gpus(text: str) -> list[str]:
    """The ids of the GPUs that `nvidia-smi -L` lists; of a divided one (MIG) those of its parts.

    Not their numbers, which CUDA may give in another order.
    """
    gpus: list[list[str]] = []
    for line in text.splitlines():
        kind, gpu = line.split(maxsplit=1)[:1], _ID.search(line)
        if gpu is not None and kind == ["GPU"]:
            gpus.append([gpu[1]])
        elif gpu is not None and kind == ["MIG"] and gpus:
            gpus[-1].append(gpu[1])
    return [part for gpu, *parts in gpus for part in parts or [gpu]]


def machine_of(node: str) -> str:
    """The machine of a node, by its name: several have one if each has a GPU of its own."""
    machine, part, place = node.rpartition(_PART)
    return machine if part and place.isdecimal() else node


def _own_address(scheduler: str) -> str:
    return address_towards(urlsplit(scheduler).hostname or "localhost")


def address_towards(host: str) -> str:
    """This machine's address as another one sees it; no packet is sent for it.

    Raises:
        OSError: The other one's name is not known, or no way leads there.
    """
    family, kind, _, _, target = socket.getaddrinfo(host, 9, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind) as asked:
        asked.connect(target)
        return str(asked.getsockname()[0])


if __name__ == "__main__":
    main()
