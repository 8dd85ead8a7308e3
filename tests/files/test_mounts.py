"""Whether a path lies on a network file system."""

from pathlib import Path

import pytest

from grader.domain.errors import UsageError
from grader.files.mounts import network_file_system
from grader.gradebook import Gradebook

MOUNTS = r"""22 27 0:21 / / rw,relatime - ext4 /dev/sda1 rw
30 22 0:40 / /home rw,relatime shared:5 - nfs4 server:/home rw
31 30 0:41 / /home/ta1/local rw - xfs /dev/sdb1 rw
32 22 0:42 / /mnt/with\040space rw - fuse.sshfs me@host:/ rw
33 22 0:43 / /mnt/other rw - fuse.ntfs /dev/sdc1 rw
34 22 0:44 / /share rw - cifs //server/share rw
malformed
"""


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("/home/ta1/results/gradebook.sqlite", "nfs4"),
        ("/home/ta1/local/results", ""),
        ("/homework/results", ""),
        ("/mnt/with space/results", "fuse.sshfs"),
        ("/mnt/other/results", ""),
        ("/share", "cifs"),
        ("/", ""),
    ],
)
def test_the_longest_mount_decides(path: str, kind: str) -> None:
    assert network_file_system(Path(path), MOUNTS) == kind


def test_a_gradebook_on_a_network_file_system_is_refused_with_the_reason(
    graded_class: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with Gradebook(graded_class) as book:
        book.require_local()
        monkeypatch.setattr("grader.gradebook.database.network_file_system", lambda _: "nfs4")
        with pytest.raises(UsageError, match=r"network file system \(nfs4\).*disk of this machine"):
            book.require_local()
    Gradebook(graded_class, "postgresql://host/grades").require_local()
