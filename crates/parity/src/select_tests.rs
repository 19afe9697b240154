//! Tests of the choice of a kernel and of the fence around bad ones.

use super::*;
use crate::tables::Tables;

#[test]
fn first_usable_is_chosen() {
    let selection = select(None);
    let first = selection.standings.iter().find(|(_, s)| *s == Standing::Usable);
    assert_eq!(selection.chosen.map(|k| k.name()).ok(), first.map(|(name, _)| *name));
    assert!(selection.standings.iter().all(|(_, s)| *s != Standing::Failed));
}

#[test]
fn forced_kernel_is_chosen() {
    for (name, standing) in select(None).standings {
        let chosen = select(Some(name.to_owned())).chosen.map(|kernel| kernel.name());
        match standing {
            Standing::Usable => assert_eq!(chosen, Ok(name)),
            other => assert_eq!(chosen, Err(SelectError::Unusable(name, other))),
        }
    }
}

#[test]
fn unknown_kernel_is_refused() {
    let error = select(Some("abacus".to_owned())).chosen.map(|kernel| kernel.name());
    assert_eq!(error, Err(SelectError::Unknown("abacus".to_owned())));
    assert!(error.unwrap_err().to_string().contains("portable"));
}

/// Every kernel this processor can run, over `tables`.
fn probed(tables: &'static Tables) -> impl Iterator<Item = Kernel> {
    CANDIDATES.iter().filter_map(move |&c| Kernel::probe(c, tables))
}

#[test]
fn planted_fault_in_any_table_is_found() {
    for (constant, entry) in [(1, 1), (2, 15), (29, 16 + 7), (142, 3), (255, 31), (77, 16)] {
        let mut tables = TABLES.clone();
        tables.nibbles[constant][entry] ^= 0x10;
        tables.matrices[constant] ^= 1 << (2 * entry);
        let tables: &'static Tables = Box::leak(Box::new(tables));
        for kernel in probed(tables) {
            assert_eq!(
                standing(Some(&kernel)),
                Standing::Failed,
                "{} with entry {entry} of {constant} wrong",
                kernel.name()
            );
        }
    }
}

#[test]
fn right_tables_pass() {
    for kernel in probed(&TABLES) {
        assert_eq!(standing(Some(&kernel)), Standing::Usable, "{}", kernel.name());
    }
}
