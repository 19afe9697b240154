//! Tests of the choice of a kernel and of the fence around bad ones.

use super::*;
use crate::job::Job;

/// The choice among this processor's kernels.
fn choose(forced: Option<&str>) -> Selection {
    select(CANDIDATES, &TABLES, forced.map(str::to_owned))
}

#[test]
fn first_usable_is_chosen() {
    let selection = choose(None);
    let first = selection.standings.iter().find(|(_, s)| *s == Standing::Usable);
    assert_eq!(selection.chosen.map(|k| k.name()).ok(), first.map(|(name, _)| *name));
    assert!(selection.standings.iter().all(|(_, s)| *s != Standing::Failed));
}

#[test]
fn forced_kernel_is_chosen() {
    for (name, standing) in choose(None).standings {
        let chosen = choose(Some(name)).chosen.map(|kernel| kernel.name());
        match standing {
            Standing::Usable => assert_eq!(chosen, Ok(name)),
            other => assert_eq!(chosen, Err(SelectError::Unusable(name, other))),
        }
    }
}

#[test]
fn unknown_kernel_is_refused() {
    let error = choose(Some("abacus")).chosen.map(|kernel| kernel.name());
    assert_eq!(error, Err(SelectError::Unknown("abacus".to_owned())));
    assert!(error.unwrap_err().to_string().contains("portable"));
}

/// A kernel that leaves its outputs as they are.
fn idle(_: Job<'_>, _: &Tables) -> Option<usize> {
    None
}

#[test]
fn wrong_kernel_is_fenced_off_loudly() {
    let broken = Candidate { name: "broken", supported: || true, run: idle };
    let candidates = [broken, portable::CANDIDATE];
    let selection = select(&candidates, &TABLES, None);
    assert_eq!(selection.chosen.map(|kernel| kernel.name()), Ok("portable"));
    let standings = [("broken", Standing::Failed), ("portable", Standing::Usable)];
    assert_eq!(selection.standings, standings);
    let warnings = warnings_of(&selection.standings);
    assert_eq!(warnings.len(), 1);
    assert!(warnings[0].contains("broken"), "{warnings:?}");

    let forced = select(&candidates, &TABLES, Some("broken".to_owned())).chosen;
    let error = SelectError::Unusable("broken", Standing::Failed);
    assert_eq!(forced.map(|kernel| kernel.name()), Err(error));
    let alone = select(&[broken], &TABLES, None).chosen;
    assert_eq!(alone.map(|kernel| kernel.name()), Err(SelectError::NoneUsable));
}

#[test]
fn planted_fault_in_any_table_is_found() {
    for (constant, entry) in [(0, 9), (1, 1), (2, 15), (29, 16 + 7), (142, 3), (255, 31), (77, 16)]
    {
        let mut tables = TABLES.clone();
        tables.nibbles[constant][entry] ^= 0x10;
        tables.matrices[constant] ^= 1 << (2 * entry);
        let tables: &'static Tables = Box::leak(Box::new(tables));
        for kernel in all_supported_over(tables) {
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
    for kernel in all_supported() {
        assert_eq!(standing(Some(&kernel)), Standing::Usable, "{}", kernel.name());
    }
}

/// The environment variable in which an emulator's caller names it.
const EMULATOR: &str = "PALISADE_EMULATOR";

/// Says for each kernel how the tests of this crate ran it; `script/test` collects the lines.
#[test]
fn account_of_kernels() {
    let way = if std::env::var_os(EMULATOR).is_some() { "emulated" } else { "natively" };
    for &candidate in CANDIDATES {
        match Kernel::probe(candidate, &TABLES) {
            Some(_) => println!("parity kernel {}: {way}", candidate.name),
            None => println!("parity kernel {}: not here", candidate.name),
        }
    }
    for model in models() {
        let name = model.name.strip_suffix("-model").expect("a model's kernel is named so");
        assert!(CANDIDATES.iter().any(|candidate| candidate.name == name));
        println!("parity kernel {name}: model");
    }
}
