//! What it costs that exports and shares are looked after which nobody uses: CPU time of `palisade
//! services` and of all that it has begun, of one core's, over some seconds, three times.
//!
//! Every export is asked every ten seconds how it is, as a client does: of that there is one in
//! each ten seconds, at whatever moment it comes. Servers count, too, and what has ended meanwhile.
//! The daemon's part has no goal: its data core looks after drives besides.

use super::Run;
use super::place::{Place, free_port};
use super::tree::Tree;
use crate::error::{BenchError, is_to_go_on};
use crate::remote::process::{PATIENCE, failed};
use crate::report::{Goal, Table};
use crate::stats::Spread;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};
use units::MIB;

const ROUNDS: usize = 3;
/// Bytes of a volume that is exported, and of one that has a file system.
const EXPORTED: u64 = 8 * MIB;
const SHARED: u64 = 64 * MIB;
/// Between two looks at whether it is to end, or all is well.
const LOOK: Duration = Duration::from_millis(50);

/// Makes what is there: devices, and shares by both protocols, of one volume.
fn make(run: &Run<'_>, place: &Place) -> Result<(), BenchError> {
    for n in 0..run.options.exports {
        is_to_go_on(&run.options.stop)?;
        let volume = place.volume(&format!("device-{n}"), EXPORTED)?;
        place.command(&["export", "create", &volume, "--local"])?;
    }
    let volume = place.volume("files", SHARED)?;
    let [smb, nfs] = [free_port()?.to_string(), free_port()?.to_string()];
    for n in 0..run.options.shares {
        is_to_go_on(&run.options.stop)?;
        let name = format!("share-{n}");
        let mut words = vec!["share", "create", &name, "--volume", &volume, "--smb", "--nfs"];
        words.extend(["--nfs-client", "127.0.0.0/8"]);
        if n == 0 {
            words.extend(["--format", "ext4", "--smb-listen", &smb, "--nfs-listen", &nfs]);
        }
        place.command(&words)?;
    }
    Ok(())
}

/// Lets so much time pass.
fn wait(run: &Run<'_>) -> Result<Duration, BenchError> {
    let begun = Instant::now();
    loop {
        is_to_go_on(&run.options.stop)?;
        let left = run.options.idle.saturating_sub(begun.elapsed());
        if left.is_zero() {
            return Ok(begun.elapsed());
        }
        // What is measured is a time in which nothing happens.
        std::thread::sleep(left.min(LOOK));
    }
}

/// Waits until all are well: what is begun, or tried again, is not idle.
fn settle(run: &Run<'_>, place: &Place) -> Result<(), BenchError> {
    let end = Instant::now() + PATIENCE;
    loop {
        is_to_go_on(&run.options.stop)?;
        match place.ill()? {
            None => return Ok(()),
            Some(ill) if Instant::now() >= end => return Err(failed("what nobody uses", &ill)),
            Some(_) => std::thread::sleep(LOOK),
        }
    }
}

/// Measures it.
pub fn measure(run: &mut Run<'_>, place: &Place) -> Result<(), BenchError> {
    let (exports, shares) = (run.options.exports, run.options.shares);
    (run.progress)(&format!("{exports} devices and {shares} shares that nobody uses"));
    make(run, place)?;
    let (mut all, mut daemons) = (Vec::new(), Vec::new());
    let mut by: BTreeMap<String, Vec<f64>> = BTreeMap::new();
    settle(run, place)?;
    for _ in 0..ROUNDS {
        let [tree, daemon] = [place.services(), Tree::of(place.daemon())];
        let passed = wait(run)?.as_secs_f64();
        let share = |time: Duration| time.as_secs_f64() / passed;
        let after = place.services();
        let (begun, ended) = (tree.shares(), after.shares());
        let taken = ended.since(begun);
        all.push(share(taken.sum()));
        let served = Tree::of(place.daemon()).shares().since(daemon.shares());
        daemons.push(share(served.sum()));
        by.entry("palisade services".to_owned()).or_default().push(share(taken.own));
        by.entry("programs that ask".to_owned()).or_default().push(share(taken.ended));
        let before = tree.by_name();
        for (name, time) in after.by_name() {
            let known = before.get(&name).copied().unwrap_or_default();
            by.entry(name).or_default().push(share(time.saturating_sub(known)));
        }
    }
    if let Some(ill) = place.ill()? {
        return Err(failed("what nobody uses", &ill));
    }
    let goal = Some(Goal::AtMost(0.01));
    run.report.add("services-idle-cpu", "ratio", Spread::of(all), goal);
    run.report.add("services-idle-daemon-cpu", "ratio", Spread::of(daemons), None);
    let row = |(name, parts): (String, Vec<f64>)| {
        let median = Spread::of(parts).map(|own| own.median);
        vec![name.into(), median.into()]
    };
    run.report.tables.push(Table {
        name: "services-idle".to_owned(),
        title: format!("share of a core, {exports} devices and {shares} shares"),
        columns: vec!["who".to_owned(), "share".to_owned()],
        rows: by.into_iter().map(row).collect(),
        source: String::new(),
    });
    Ok(())
}
