"""docs/cluster.md names the settings that there are, and its list of hosts is one."""

import re
import textwrap
from pathlib import Path

import dask.config
import dask_jobqueue  # noqa: F401 - for its settings
import pytest

from grader.cluster.where import SlurmJobs, SshHosts, where

TEXT = (Path(__file__).parents[2] / "docs/cluster.md").read_text("utf-8")


def test_its_list_of_hosts_is_one(tmp_path: Path) -> None:
    [block] = re.findall(r"^ *```hosts\n(.*?)^ *```$", TEXT, re.MULTILINE | re.DOTALL)
    (tmp_path / "hosts.txt").write_text(textwrap.dedent(block), encoding="utf-8")
    hosts = where(f"ssh:{tmp_path / 'hosts.txt'}")
    assert isinstance(hosts, SshHosts)
    assert [(host.name, host.jobs) for host in hosts.hosts] == [
        ("ta@lab1", None),
        ("ta@lab2", 4),
        ("gpu-box", None),
    ]
    assert all(host.python.endswith("/bin/python") for host in hosts.hosts)


def test_every_setting_of_slurm_is_in_its_table_with_its_default() -> None:
    rows = TEXT.partition("| setting | says | otherwise |")[2].partition("\n\n")[0].splitlines()[2:]
    cells = [[cell.strip() for cell in row.strip("|").split("|")] for row in rows]
    named = {name: row[2] for row in cells for name in re.findall(r"`(\w+)`", row[0])}
    assert named.keys() == SlurmJobs.model_fields.keys()
    assert int(named["nodes"]) == SlurmJobs().nodes and int(named["gpus"]) == SlurmJobs().gpus
    assert named["walltime"] == "30 minutes" and dask.config.get("jobqueue.slurm.walltime") == "00:30:00"


@pytest.mark.parametrize("command", re.findall(r"--cluster (slurm:\S+)", TEXT))
def test_its_settings_can_be_read(command: str) -> None:
    assert isinstance(where(command), SlurmJobs)
