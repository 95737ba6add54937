"""The frame loop, and what drives it: live, or without pictures."""
