"""Judges a machine: a fixed programme, one TOML file of what came of it (``heimdall devices
--measure``), which is a row of docs/laboratory/devices.md and a device that can be
simulated elsewhere."""
