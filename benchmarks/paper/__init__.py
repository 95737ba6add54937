"""docs/laboratory/paper.md: every number of the Heimdall paper's measurements, simulated and live.

``values``       values.toml: what the paper says and claims, and where a run here shows the same
``runs``         the runs behind it; ``observed`` what one showed
``kept``         results, kept as they come; what is not there yet runs in parallel processes
``networks``     single networks: how they are cut, and what that costs
``simulated``    all of it on a phone's profile, over seeds; ``live`` on this machine, in turns
``derived``      numbers that follow from several runs
``accuracy``     Table 4, from the latencies of either
``sensitivity``  over which range of an assumption a headline holds; ``ranges`` its picture
``contest``      stronger baselines, in one table
``sweep``        past the paper: frame rates, sizes and numbers of DNNs
``pictures``     the figures; ``excerpts`` those of utility and occupancy
``page``         the Markdown, with what ``text/`` says between the tables
"""
