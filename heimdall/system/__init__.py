"""The operating system and the process: paths, cores, clocks, priorities, threads, faults."""
