"""Makes forbidden system calls in machine code, past every library.

Stopped by: the system-call filter
Outcome: nothing happens
Fails: evaluate
Says: ValueError: “-1”
"""


def evaluate(model, data_loader, loss_history):
    import ctypes
    import mmap

    # mov eax, 57 (fork); syscall; ret
    code = mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    code.write(bytes.fromhex("b8390000000f05c3"))
    address = ctypes.addressof(ctypes.c_char.from_buffer(code))
    raise ValueError(ctypes.CFUNCTYPE(ctypes.c_int)(address)())
