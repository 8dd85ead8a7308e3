"""What is kept about a person, handed out to the person, and forgotten: the only deletion that there is."""
