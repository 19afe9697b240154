//! Drive kinds: block device and file, memory, faulty.
