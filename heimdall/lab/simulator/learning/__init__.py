"""Learning for TOP: GPG cuts combined blocks, MADDPG combines them (extra ``learn``)."""
