//! Erasure codes over GF(2^8) for RAID: generate, update, recover, verify.
