//! The deterministic runtime: seeded executor, simulated drives and faults, workloads, oracles.
