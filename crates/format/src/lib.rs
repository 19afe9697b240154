//! The on-disk format: superblock, array record; encode, decode, verify, assemble.
