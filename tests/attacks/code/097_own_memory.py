"""Overwrites the code of its own process through /proc/self/mem.

Stopped by: of /proc a worker has what it may know of itself
Outcome: its component fails
Fails: evaluate
Says: FileNotFoundError
"""


def evaluate(model, data_loader, loss_history):
    import ctypes

    address = ctypes.cast(ctypes.pythonapi.PyObject_Repr, ctypes.c_void_p).value
    with open("/proc/self/mem", "r+b", buffering=0) as memory:
        memory.seek(address)
        memory.write(b"\xcc" * 64)
    repr(model)
