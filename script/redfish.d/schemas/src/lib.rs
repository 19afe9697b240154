//! Nothing: the package is there for what it fetches.
