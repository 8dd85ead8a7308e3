"""Files as they are read and written: whole or not at all, byte for byte, typed."""
