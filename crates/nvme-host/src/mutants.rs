//! Known bugs that can be switched on, one at a time, to prove that trials of arrays behind a shelf
//! would catch them.
//!
//! Without the feature `mutants`, which only `cargo xtask` asks for, [`is`] is a constant `false`
//! and nothing of this is left in the product.

units::mutants! {
    FenceOff = "fence-off": "a change that was not answered is sent again at once, though the \
        first may still be carried out";
    FenceShort = "fence-short": "a fence ends long before the controller has given up what it was \
        sent";
    AnaIgnored = "ana-ignored": "what a controller says of its ways to namespaces counts for \
        nothing";
    CacheForgotten = "cache-forgotten": "a drive goes on that may have lost its power, and what \
        was in its cache (row 4)";
    IoBeforeQueues = "io-before-queues": "requests are given to a path before it has an I/O queue \
        (row 27)";
}
