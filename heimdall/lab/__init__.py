"""The laboratory: what compares, simulates, trains and judges. No app needs it.

It joins Heimdall by the entry points that any other package has, and nothing outside imports it:

- `policies`   those of Band, SPLIT, Pantheon and TOP, and of what their papers compare with
- `exits`      early exits for networks: heads are trained, placed and judged
- `bench`      scenarios, and the systems that are compared on them; ``judge`` of machines
- `simulator`  the same coordinator on a virtual clock; ``learning`` of what runs together
- `cli`        its commands
- `scenarios`, `devices`  the papers' workloads, and the phones they were measured on
"""
