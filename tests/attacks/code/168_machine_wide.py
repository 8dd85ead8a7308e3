"""Reads what /proc, /sys, devices and calls tell of the whole machine: load, memory, files, dates, messages.

Stopped by: of /proc and /sys there are facts that do not change; devices are mounted read-only; the filter
Outcome: nothing is found
Fails: evaluate
Says: ValueError: “\\[\\]”
"""


def evaluate(model, data_loader, loss_history):
    import ctypes
    import os
    import time

    def said():
        return {name: open(name).read() for name in ("/proc/meminfo", "/proc/stat", "/proc/self/maps")}

    before, found = said(), []
    memory = bytearray(os.urandom(1)) * 60_000_000
    end = time.monotonic() + 0.2
    while time.monotonic() < end:
        pass
    if said() != before:
        found.append("the machine's counts move")
    del memory
    for path in (
        *("loadavg", "uptime", "vmstat", "interrupts", "softirqs", "schedstat", "locks", "keys", "key-users"),
        *("sys/fs/file-nr", "sys/fs/inode-nr", "sys/fs/dentry-state", "sys/fs/pipe-user-pages-soft"),
        *("sys/kernel/random/entropy_avail", "sys/kernel/pid_max", "sys/kernel/ns_last_pid", "diskstats"),
        *(
            "pressure/cpu",
            "pressure/memory",
            "sysvipc/shm",
            "net/unix",
            "slabinfo",
            "self/smaps",
            "self/pagemap",
        ),
        *("self/numa_maps", "self/cgroup", "self/mountinfo", "self/sched", "self/schedstat", "self/io"),
    ):
        if os.path.exists(f"/proc/{path}"):
            found.append(path)
    for path in (
        "fs/cgroup",
        "kernel",
        "block",
        "class",
        "devices/system/cpu/cpu0/cpufreq",
        "devices/virtual",
    ):
        if os.path.exists(f"/sys/{path}"):
            found.append(path)
    for device in ("null", "zero", "full", "random", "urandom"):
        try:
            os.utime(f"/dev/{device}", (1, 1))
            found.append(f"dates of {device}")
        except OSError:
            pass
    libc = ctypes.CDLL(None, use_errno=True)
    room = ctypes.create_string_buffer(400)
    for name, number in (
        *(
            ("sysinfo", 99),
            ("syslog", 103),
            ("inotify_init1", 294),
            ("fanotify_init", 300),
            ("quotactl", 179),
        ),
        *(("shmget", 29), ("semget", 64), ("msgget", 68), ("mq_open", 240), ("socket", 41), ("add_key", 248)),
        *(
            ("keyctl", 250),
            ("memfd_create", 319),
            ("timer_create", 222),
            ("setpriority", 141),
            ("utime", 132),
        ),
        *(("perf_event_open", 298), ("move_pages", 279), ("chmod", 90), ("link", 86), ("symlink", 88)),
    ):
        if libc.syscall(number, room, 0, 0, 0, 0, 0) != -1 or ctypes.get_errno() != 1:
            found.append((name, ctypes.get_errno()))
    raise ValueError(found)
