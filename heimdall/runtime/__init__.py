"""A run: the loop of frames, what drives it, and what it opens, measures and shows."""
