//! A progress bar on standard error, where that is a terminal; nothing elsewhere.

use std::io::{IsTerminal, Write};

/// Cells of the bar.
const WIDTH: u64 = 40;

/// A bar; erased when dropped.
#[derive(Debug)]
pub struct Bar {
    label: &'static str,
    shown: bool,
}

impl Bar {
    /// A bar with a word before it; nothing is drawn yet.
    pub fn new(label: &'static str) -> Self {
        Self { label, shown: false }
    }

    /// Draws `done` of `total`.
    pub fn draw(&mut self, done: u64, total: u64) {
        let mut out = std::io::stderr().lock();
        if out.is_terminal() {
            self.shown = true;
            let _ = write!(out, "\r{}", line(self.label, done, total));
            let _ = out.flush();
        }
    }
}

impl Drop for Bar {
    fn drop(&mut self) {
        if self.shown {
            // Back to the first column, and erase to the end of the line (ECMA-48).
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

fn line(label: &str, done: u64, total: u64) -> String {
    let total = total.max(1);
    let full = (done.min(total) * WIDTH / total) as usize;
    let percent = done.min(total) * 100 / total;
    let bar = format!("{}{}", "#".repeat(full), ".".repeat(WIDTH as usize - full));
    format!("  {label:<8} [{bar}] {percent:>3} %")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bars_have_one_width() {
        for (done, total) in [(0, 0), (0, 10), (5, 10), (10, 10), (11, 10)] {
            assert_eq!(line("rebuild", done, total).len(), line("rebuild", 0, 1).len());
        }
        assert!(line("rebuild", 5, 10).contains(" 50 %"));
    }
}
