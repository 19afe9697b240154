//! Manual pages: one for each command, made of the definitions that `--help` shows.
//!
//! Purpose: `script/package` runs the test here that writes them, with [`PLACE`] set, and packs
//! what it wrote. So what makes pages is no part of the program that people run.

use crate::Arguments;
use clap::{Command, CommandFactory};
use clap_mangen::Man;
use std::collections::BTreeMap;

/// The variable that names a directory for the pages.
const PLACE: &str = "PALISADE_MAN";

/// The variable that says of which day they are.
const DATE: &str = "PALISADE_MAN_DATE";

/// The page of each command, by its file's name.
fn pages() -> BTreeMap<String, String> {
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    let mut pages = BTreeMap::new();
    add(&command, None, &mut pages);
    pages
}

/// Adds the pages of a command and of those below it.
fn add(command: &Command, above: Option<&str>, pages: &mut BTreeMap<String, String>) {
    let name = command.get_display_name().unwrap_or(command.get_name()).to_owned();
    let man = Man::new(command.clone())
        .title(name.to_uppercase())
        .date(std::env::var(DATE).unwrap_or_default())
        .source(concat!("Palisade ", env!("CARGO_PKG_VERSION")))
        .manual("Palisade");
    let mut text = Vec::new();
    man.render(&mut text).expect("into memory");
    let mut text = tidied(&String::from_utf8(text).expect("text"));
    if let Some(above) = above {
        text.push_str(&format!(".SH \"SEE ALSO\"\n.BR {} (1)\n", above.replace('-', "\\-")));
    }
    pages.insert(format!("{name}.1"), text);
    for own in command.get_subcommands().filter(|own| !own.is_hide_set()) {
        add(own, Some(&name), pages);
    }
}

/// A page without what mandoc warns of: breaks beside an empty line, which breaks by itself, and
/// blanks at the end of a line.
fn tidied(text: &str) -> String {
    let lines: String = text.lines().map(|line| format!("{}\n", line.trim_end())).collect();
    lines.replace(".br\n\n.br\n", ".sp\n")
}

/// Commands that are shown, this one and those below it.
fn count(command: &Command) -> usize {
    let shown = command.get_subcommands().filter(|own| !own.is_hide_set());
    shown.map(count).sum::<usize>() + 1
}

#[test]
fn every_command_has_a_page() {
    let pages = pages();
    let mut command = Arguments::command().disable_help_subcommand(true);
    command.build();
    assert_eq!(pages.len(), count(&command));
    let create = &pages["palisade-array-create.1"];
    for word in [".TH", "PALISADE-ARRAY-CREATE 1", ".SH NAME", "palisade array create", "level"] {
        assert!(create.contains(word), "{word}: {create}");
    }
    assert!(create.ends_with(".SH \"SEE ALSO\"\n.BR palisade\\-array (1)\n"), "{create}");
    let own = &pages["palisade.1"];
    assert!(own.contains("palisade\\-array(1)") && own.contains("Exit status: 0 done"), "{own}");
    for (name, text) in &pages {
        assert!(!text.contains(".br\n\n") && !text.contains("\n\n.br"), "{name}");
        assert!(text.lines().all(|line| line == line.trim_end()), "{name}");
    }
    if let Some(place) = std::env::var_os(PLACE) {
        for (name, text) in pages {
            std::fs::write(std::path::Path::new(&place).join(name), text).expect("written");
        }
    }
}
