//! Why the demo ended early. Each message says what happened; [`DemoError::advice`] what to do.

use std::path::{Path, PathBuf};

/// What went wrong.
#[derive(Debug)]
pub enum DemoError {
    /// The options can't be carried out.
    Usage(String),
    /// Programs of other people that the demo needs are not there, with the package of each.
    Missing(Vec<(&'static str, &'static str)>),
    /// Only root can do it.
    NotRoot,
    /// A program ended with a failure: its command line, how it ended, what it said.
    Command {
        /// The command line.
        command: String,
        /// How it ended.
        ended: String,
        /// Its standard error.
        said: String,
    },
    /// A file can't be used.
    File(PathBuf, std::io::Error),
    /// What came back is not what went in, or not what it should be.
    Wrong(String),
    /// Somebody asked the demo to end.
    Interrupted,
}

impl DemoError {
    /// For `map_err`: a failed operation on `path`.
    pub fn file(path: &Path) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.to_owned();
        move |error| Self::File(path, error)
    }

    /// What to do next, one line.
    pub fn advice(&self) -> String {
        match self {
            Self::Usage(_) => "see `palisade demo --help`".into(),
            Self::Missing(programs) => {
                let mut packages: Vec<_> = programs.iter().map(|(_, package)| *package).collect();
                packages.dedup();
                let packages = packages.join(" ");
                format!(
                    "install them; on Debian and Ubuntu: apt-get install {packages} (script/demo \
                     does that)"
                )
            }
            Self::NotRoot => {
                "start it as root: sudo palisade demo --share (script/demo does that)".into()
            }
            Self::File(..) => "name a writable folder with --dir".into(),
            Self::Command { .. } | Self::Wrong(_) => {
                "repeat it with --dir DIR to keep the drives, and report it with this message"
                    .into()
            }
            Self::Interrupted => "start it again".into(),
        }
    }
}

impl std::fmt::Display for DemoError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Usage(problem) | Self::Wrong(problem) => f.write_str(problem),
            Self::Missing(programs) => {
                let told = programs.iter().map(|(name, package)| format!("{name} ({package})"));
                write!(f, "these programs are missing: {}", told.collect::<Vec<_>>().join(", "))
            }
            Self::Command { command, ended, said } => {
                write!(
                    f,
                    "`{command}` {ended}: {}",
                    if said.is_empty() { "no message" } else { said }
                )
            }
            Self::NotRoot => f.write_str("only root may mount a file system"),
            Self::File(path, error) => write!(f, "{}: {error}", path.display()),
            Self::Interrupted => f.write_str("interrupted"),
        }
    }
}
