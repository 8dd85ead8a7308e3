"""What learning management systems call files, which lists they write and which uploads they read."""
