//! Why a shelf does not do what it was asked.

/// Why.
#[derive(Debug, thiserror::Error)]
pub enum ShelfError {
    /// It was asked for what is not there, or can't be.
    #[error("{0}")]
    Usage(String),
    /// It could not be done.
    #[error("{0}")]
    Failed(String),
}

impl ShelfError {
    /// What the system refused, and what was wanted of it.
    pub(crate) fn of(what: impl core::fmt::Display, error: &std::io::Error) -> Self {
        Self::Failed(format!("{what}: {error}"))
    }
}
