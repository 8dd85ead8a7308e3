"""The untrusted end: opens hostile files in a locked-down process, which such a file may take over."""
