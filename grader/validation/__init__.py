"""The assignment grades itself: the reference earns all, every mistake is named, every form passes."""
