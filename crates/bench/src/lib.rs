//! Load generator, procedures and reports.
