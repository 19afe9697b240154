//! The real runtime: one single-threaded executor per core, io_uring, timers, mailboxes.
