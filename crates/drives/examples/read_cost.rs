//! What a drive's 4K random read costs over a bare `pread` on a RAM-backed file: median of
//! interleaved rounds. `cargo run --release -p palisade-drives --example read_cost [DIRECTORY]`

use io::{Drive, Env as _, Pool};
use palisade_drives::{Env, OpenOptions, SharedDrive};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::Instant;

const BYTES: u64 = 1 << 30;
const READS: u64 = 200_000;
const ROUNDS: usize = 11;

fn next(seed: &mut u64) -> u64 {
    *seed = seed.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
    (*seed >> 33) % (BYTES / 4096) * 4096
}

fn per_read(start: Instant) -> f64 {
    start.elapsed().as_nanos() as f64 / READS as f64
}

fn bare(file: &std::fs::File, pool: &Pool, seed: &mut u64) -> f64 {
    let mut buffer = pool.take(4096).expect("the pool has a piece");
    let start = Instant::now();
    for _ in 0..READS {
        file.read_exact_at(&mut buffer, next(seed)).expect("the file can be read");
    }
    per_read(start)
}

async fn through_drive(drive: &impl Drive, pool: &Pool, seed: &mut u64) -> f64 {
    let mut buffer = pool.take(4096).expect("the pool has a piece");
    let start = Instant::now();
    for _ in 0..READS {
        let result;
        (result, buffer) = drive.read(next(seed), buffer).await;
        result.expect("the drive can be read");
    }
    per_read(start)
}

fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

fn main() {
    let dir = std::env::args().nth(1).unwrap_or_else(|| "/dev/shm".into());
    let file = tempfile::NamedTempFile::new_in(Path::new(&dir)).expect("a file can be made");
    let piece: Vec<u8> = (0..1 << 20).map(|n: u32| (n.wrapping_mul(n) >> 5) as u8).collect();
    for n in 0..BYTES >> 20 {
        file.as_file().write_all_at(&piece, n << 20).expect("the file can be filled");
    }
    let drive = SharedDrive::open(file.path(), &OpenOptions::default()).expect("it opens");
    runtime::run_single(async move |env: Env<()>| {
        let (drive, pool) = (env.bind(&drive), Pool::new(4096, 4));
        let (mut bares, mut drives, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for round in 0..ROUNDS as u64 {
            let (mut one, mut two) = (round, round);
            let plain = bare(file.as_file(), &pool, &mut one);
            let ours = through_drive(&drive, &pool, &mut two).await;
            bares.push(plain);
            drives.push(ours);
            ratios.push(ours - plain);
        }
        println!(
            "bare pread {:.0} ns, through the drive {:.0} ns, median difference {:.1} ns",
            median(&mut bares),
            median(&mut drives),
            median(&mut ratios)
        );
    });
}
