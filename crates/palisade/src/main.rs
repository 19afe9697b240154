//! The palisade program: daemon and command line.
fn main() {}
