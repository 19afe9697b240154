//! What the field's documents publish, from one file that cites each figure. It stands beside ours
//! in tables, and never among results.

use serde::Deserialize;
use std::collections::BTreeMap;

/// The file.
const FILE: &str = include_str!("../../data/published.json");

/// All of it.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published {
    /// The documents, by the letter that figures name them with.
    pub documents: BTreeMap<String, String>,
    /// Their figures.
    pub figures: Vec<Figure>,
}

/// One number.
#[derive(Clone, PartialEq, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Figure {
    /// The document's letter.
    pub document: String,
    /// The figure or table in it.
    pub figure: String,
    /// What was measured.
    pub what: String,
    /// On which side of the figure.
    pub side: String,
    /// The number.
    pub value: f64,
    /// Its unit.
    pub unit: String,
    /// Drives of the array, where the figure tells.
    #[serde(default)]
    pub drives: Option<u32>,
}

impl Published {
    /// The file's content.
    ///
    /// # Panics
    /// If the file that was built in is wrong: a test reads it.
    pub fn all() -> Self {
        serde_json::from_str(FILE).expect("the file of published figures is read by a test")
    }

    /// A number, if it was published.
    pub fn find(&self, figure: &str, what: &str, side: &str) -> Option<&Figure> {
        let is_it = |own: &&Figure| own.figure == figure && own.what == what && own.side == side;
        self.figures.iter().find(is_it)
    }

    /// A figure's document by its title, and its name.
    pub fn source(&self, document: &str, figure: &str) -> String {
        let title = self.documents.get(document).map_or(document, String::as_str);
        format!("{title}, {figure}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const UNITS: [&str; 10] =
        ["MIOPS", "IOPS", "GB/s", "MiB/s", "ms", "%", "of baseline", "ratio", "hours", "minutes"];

    #[test]
    fn each_figure_is_there_once_and_names_its_document() {
        let all = Published::all();
        for figure in &all.figures {
            assert!(all.documents.contains_key(&figure.document), "{figure:?}");
            assert!(figure.value > 0.0 && UNITS.contains(&figure.unit.as_str()), "{figure:?}");
            let same = |own: &&Figure| {
                (&own.document, &own.figure, &own.what, &own.side)
                    == (&figure.document, &figure.figure, &figure.what, &figure.side)
            };
            assert_eq!(all.figures.iter().filter(same).count(), 1, "{figure:?}");
        }
        let found = all.find("Figure 8", "4k-random-mixed", "SupremeRAID").map(|own| own.value);
        assert_eq!(found, Some(6.17));
    }
}
