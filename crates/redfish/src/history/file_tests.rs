//! The file: what is no such file is refused, and nothing that is read does harm.

use super::super::tests::World;
use super::*;
use crate::sample::Random;

fn written() -> Vec<u8> {
    let mut world = World::new(1, 3, 2, 2);
    let mut history = History::default();
    for _ in 0..130 {
        history.sample(&world.go_on(1, |_| true));
    }
    let mut bytes = Vec::new();
    let put = |piece: &[u8]| {
        bytes.extend_from_slice(piece);
        Ok::<_, ()>(())
    };
    write(&Past::new(history), put).expect("written");
    bytes
}

/// With the digest that fits what is before it.
fn sealed(mut bytes: Vec<u8>) -> Vec<u8> {
    bytes.truncate(bytes.len().saturating_sub(DIGEST));
    let digest = Sha256::digest(&bytes);
    bytes.extend(digest);
    bytes
}

#[test]
fn what_is_no_file_of_the_past_is_refused() {
    let whole = written();
    assert!(History::read(&whole).is_ok());
    assert_eq!(History::read(b"").err(), Some(Strange::Foreign));
    assert_eq!(History::read(b"{}").err(), Some(Strange::Foreign));
    let mut other = whole.clone();
    other[MAGIC.len()] = 2;
    assert_eq!(History::read(&sealed(other)).err(), Some(Strange::Version(2)));
    for length in (MAGIC.len()..whole.len()).step_by(101) {
        assert_eq!(History::read(&whole[..length]).err(), Some(Strange::Damaged), "{length}");
    }
    for at in (MAGIC.len() + 4..whole.len()).step_by(97) {
        let mut damaged = whole.clone();
        damaged[at] ^= 1;
        assert_eq!(History::read(&damaged).err(), Some(Strange::Damaged), "{at}");
    }
    let mut longer = whole.clone();
    longer.truncate(whole.len() - DIGEST);
    longer.extend([0; DIGEST + 1]);
    assert_eq!(History::read(&sealed(longer)).err(), Some(Strange::Damaged));
}

#[test]
fn whatever_a_file_holds_it_does_no_harm() {
    let whole = written();
    let random = &mut Random::new(3);
    let mut read = 0;
    for _ in 0..2000 {
        let mut bytes = whole.clone();
        for _ in 0..=random.below(3) {
            let at =
                MAGIC.len() + 4 + random.below((whole.len() - MAGIC.len() - 4) as u64) as usize;
            bytes[at] = random.below(256) as u8;
        }
        if random.below(4) == 0 {
            bytes
                .truncate(MAGIC.len() + 4 + random.below(whole.len() as u64 / 2) as usize + DIGEST);
        }
        let Ok(mut history) = History::read(&sealed(bytes)) else { continue };
        read += 1;
        assert!(history.bytes() <= super::super::BYTES);
        let mut world = World::new(2, 3, 2, 2);
        for _ in 0..3 {
            history.sample(&world.go_on(61, |_| true));
        }
        for key in history.objects.keys() {
            for step in Step::ALL {
                assert!(history.points(key, step).is_some());
            }
        }
    }
    assert!(read > 100, "{read}");
}
