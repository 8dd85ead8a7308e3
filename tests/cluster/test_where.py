"""What `--cluster` may say, and one sentence for whatever it may not."""

from pathlib import Path

import pytest

from grader.cluster.where import (
    Address,
    LocalNode,
    SlurmJobs,
    SshHost,
    SshHosts,
    seconds_of_walltime,
    where,
)
from grader.domain.errors import UsageError


def test_a_process_on_this_machine() -> None:
    assert where("local") == LocalNode()


@pytest.mark.parametrize(
    "url", ["tls://scheduler.example.org:8786", "tls://[::1]:1", "tcp://127.0.0.1:8786", "tcp://localhost:1"]
)
def test_a_cluster_that_is_there(url: str) -> None:
    assert where(url) == Address(url)


@pytest.mark.parametrize("url", ["tls://", "tls://host", "tls://host:port", "tcp://127.0.0.1"])
def test_what_is_no_address(url: str) -> None:
    with pytest.raises(UsageError, match=r"is no address\. Write it like tls://"):
        where(url)


def test_without_tls_nothing_leaves_the_machine() -> None:
    with pytest.raises(UsageError, match="without TLS anybody on the way could read submissions"):
        where("tcp://192.0.2.1:8786")


def test_hosts_of_ssh(tmp_path: Path) -> None:
    path = tmp_path / "hosts.txt"
    path.write_text(
        "# the lab\n\nta@lab1.example.org\nlab2 jobs=4  # a small one\n"
        "lab3 python='/opt/my grader/bin/python' jobs=8\n",
        encoding="utf-8",
    )
    assert where(f"ssh:{path}") == SshHosts(
        (
            SshHost("ta@lab1.example.org"),
            SshHost("lab2", 4),
            SshHost("lab3", 8, "/opt/my grader/bin/python"),
        )
    )


def test_a_list_of_hosts_as_people_write_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With the mark of an editor, and with their homes."""
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "hosts.txt").write_text("lab1 python=~/grader/bin/python\n", encoding="utf-8-sig")
    assert where("ssh:~/hosts.txt") == SshHosts((SshHost("lab1", python="grader/bin/python"),))


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        ("", "names no host. Write one on each line"),
        ("lab1 cores=4", "hosts.txt:1: 'cores=4' is no setting of a host"),
        ("lab1 jobs=many", "hosts.txt:1: jobs=many is no number of submissions at once"),
        ("-oProxyCommand=anything", "hosts.txt:1: '-oProxyCommand=anything' is no host"),
        ("lab1 python='", "hosts.txt:1: cannot be read"),
        ("lab1\nlab1", "lab1 is named twice"),
    ],
)
def test_a_list_of_hosts_that_cannot_be_used(tmp_path: Path, line: str, sentence: str) -> None:
    path = tmp_path / "hosts.txt"
    path.write_text(line, encoding="utf-8")
    with pytest.raises(UsageError, match=sentence):
        where(f"ssh:{path}")


def test_a_list_of_hosts_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"cannot be read .* a text file with a host on each line"):
        where(f"ssh:{tmp_path / 'none.txt'}")


def test_jobs_of_slurm() -> None:
    assert where("slurm") == SlurmJobs()
    assert where("slurm:nodes=5, cores=8,memory=16GB,walltime=4:00:00,gpus=1") == SlurmJobs(
        nodes=5, cores=8, memory="16GB", walltime="4:00:00", gpus=1
    )


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nodes", "'nodes' is no setting. Write it like nodes=5"),
        ("nodes=none", "'nodes' cannot be none"),
        ("nodes=0", "'nodes' cannot be 0"),
        ("walltime=soon", "'walltime' cannot be soon"),
        ("walltime=5", "walltime=5 is less than 10 minutes"),
        ("memory=16", "'memory' cannot be 16"),
        ("memory=much", "'memory' cannot be much"),
        ('extra=--comment="a night', "'extra' cannot be --comment=\"a night .No closing quotation"),
        ("queue=gpu", "'queue' is not known. The settings are nodes, cores,"),
    ],
)
def test_settings_of_slurm_that_cannot_be_used(text: str, sentence: str) -> None:
    with pytest.raises(UsageError, match=sentence):
        where(f"slurm:{text}")


@pytest.mark.parametrize("text", ["", "lsf", "http://host:1", "ssh", "Local"])
def test_what_is_no_place(text: str) -> None:
    with pytest.raises(UsageError):
        where(text)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("30", 1800),
        ("1:30", 90),
        ("4:00:00", 14_400),
        ("1-12", 129_600),
        ("1-12:30", 131_400),
        ("2-00:00:01", 172_801),
    ],
)
def test_a_walltime_as_slurm_reads_it(text: str, seconds: int) -> None:
    """As `man sbatch` lists the forms of --time."""
    assert seconds_of_walltime(text) == seconds
