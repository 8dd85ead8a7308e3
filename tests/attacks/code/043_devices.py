"""Opens devices: disks, /dev/kvm, /dev/fuse, memory.

Stopped by: a root file system of its own
Outcome: nothing happens
Fails: evaluate
Says: PermissionError|ValueError: \\(\\[\\],
"""


def evaluate(model, data_loader, loss_history):
    import os

    raise ValueError(
        [
            name
            for name in ("kvm", "fuse", "mem", "sda", "vda", "tty", "net/tun")
            if os.path.exists(f"/dev/{name}")
        ],
        sorted(os.listdir("/dev")),
    )
