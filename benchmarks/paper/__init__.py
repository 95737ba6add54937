"""docs/paper.md: every number of the Heimdall paper's measurements, simulated and live.

``values``     values.toml: what the paper says, and where a run here shows the same
``runs``       the runs behind it; ``observed`` what one showed
``networks``   single networks: how they are cut, and what that costs
``simulated``  all of it on a phone's profile; ``live`` on this machine
``accuracy``   Table 4, from the latencies of either
``sweep``      past the paper: frame rates, sizes and numbers of DNNs
``page``       the Markdown
"""
