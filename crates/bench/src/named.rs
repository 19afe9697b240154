//! Parts of a procedure that are measured alone, by the names that they have on the command line.

/// The one with this name.
///
/// # Errors
/// There is none; which there are.
pub fn by_name<T: Copy>(all: &[(&'static str, T)], text: &str) -> Result<T, String> {
    let found = all.iter().find(|(name, _)| *name == text);
    found.map(|(_, part)| *part).ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|(name, _)| *name).collect();
        format!("there is no such part; use {}", names.join(", "))
    })
}

/// The name of one.
pub fn name_of<T: PartialEq>(all: &[(&'static str, T)], part: &T) -> &'static str {
    all.iter().find(|(_, own)| own == part).map_or("", |(name, _)| name)
}
