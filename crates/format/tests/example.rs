//! The worked example of `docs/format.md`: its bytes are a record slot, and say what it says.

use layout::Level;
use palisade_format::{SlotState, decode, encode};
use units::{MIB, Slot};

/// The bytes of the page's example; what no line gives is zeros.
fn example() -> Vec<u8> {
    let page = include_str!("../../../docs/format.md");
    let (_, behind) = page.split_once("## Example\n").expect("the page has an example");
    let (section, _) = behind.split_once("\n## ").expect("more sections follow");
    let mut image = vec![0; 4096];
    let mut lines = 0;
    for line in section.lines().filter(|line| line.contains('`') && line.starts_with("| ")) {
        let cells: Vec<&str> = line.split('|').map(str::trim).collect();
        let at: usize = cells[1].parse().expect("an offset");
        let bytes = cells[2].trim_matches('`').split(' ');
        for (to, byte) in image[at..].iter_mut().zip(bytes) {
            assert_eq!(*to, 0, "byte {at} is said twice");
            *to = u8::from_str_radix(byte, 16).expect("hex");
        }
        lines += 1;
    }
    assert!(lines > 20, "{lines} lines of bytes");
    image
}

#[test]
fn the_example_of_the_document_is_a_record() {
    let image = example();
    let record = decode(&image).expect("the page's bytes are a record");
    assert_eq!((record.name.as_str(), record.level, record.sequence), ("a", Level::Raid1, 2));
    assert_eq!((record.this_slot, record.zeroed, record.block_bytes), (Slot(0), true, 4096));
    assert_eq!((record.data_offset, record.data_bytes), (3 * MIB, 2 * MIB));
    assert_eq!(record.ranges[0].descriptor.strip_bytes, 65536);
    assert!(
        record.slots.iter().all(|slot| slot.state == SlotState::InSync && slot.last.id == 0x1111)
    );
    assert_eq!(encode(&record), image);
}
