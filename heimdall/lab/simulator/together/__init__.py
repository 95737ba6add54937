"""GPUs that run operators of several networks at the same time, in virtual time (TOP, TPDS '25)."""
