//! Views for tests: of a seed, always the same, and as varied as views can be.

#[path = "sample/hardware.rs"]
pub mod hardware;
#[path = "sample/shares.rs"]
mod shares;

use crate::access::{Role, Session};
use crate::events::smtp::{Authentication, Mail, Plain, Protocol};
use crate::events::{Event, Policy, Standing, Subscription};
use crate::view::*;
use std::sync::Arc;

/// Numbers that look random (splitmix64).
pub struct Random(u64);

impl Random {
    /// Those of a seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// One of so many numbers.
    pub fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn chance(&mut self) -> bool {
        self.below(2) == 0
    }

    /// Mostly small; now and then as large as a number of JSON's usual readers.
    fn number(&mut self) -> u64 {
        match self.below(4) {
            0 => 0,
            1 => self.below(10),
            2 => self.below(1 << 40),
            _ => self.below(1 << 53),
        }
    }

    fn pick<T: Clone>(&mut self, all: &[T]) -> T {
        let at = self.below(all.len() as u64) as usize;
        all[at].clone()
    }

    fn maybe<T>(&mut self, make: impl FnOnce(&mut Self) -> T) -> Option<T> {
        self.chance().then(|| make(self))
    }

    fn several<T>(&mut self, most: u64, mut make: impl FnMut(&mut Self, u64) -> T) -> Vec<T> {
        let count = self.below(most + 1);
        (0..count).map(|number| make(self, number)).collect()
    }

    fn uuid(&mut self) -> String {
        let (a, b) = (self.next(), self.next());
        let (c, d, e) = (a >> 16 & 0xffff, a & 0xfff, b >> 48 & 0x3fff);
        format!("{:08x}-{c:04x}-4{d:03x}-{:04x}-{:012x}", a >> 32, e | 0x8000, b & 0xffff_ffff_ffff)
    }

    fn text(&mut self) -> String {
        self.pick(&[
            "tank",
            "a b",
            "ä/ö",
            "x:y",
            "100%",
            "\"quoted\"",
            "..",
            "new\nline",
            "?q=1#f",
            "日本",
        ])
        .to_owned()
    }

    fn moment(&mut self) -> u64 {
        self.below(4_000_000_000)
    }
}

fn slow(random: &mut Random, _: u64) -> SlowRequest {
    SlowRequest {
        id: random.uuid(),
        method: "POST".to_owned(),
        uri: "/redfish/v1".to_owned(),
        began: random.moment(),
        ended: random.maybe(|random| (random.moment(), random.chance())),
    }
}

/// A view, of the seed's numbers.
pub fn view(seed: u64) -> View {
    let random = &mut Random::new(seed);
    let drives: Vec<KnownDrive> = random.several(12, drive);
    let mut jobs = Vec::new();
    let arrays = random.several(4, |random, _| array(random, &drives, &mut jobs));
    jobs.extend(random.several(3, ended));
    let surroundings = hardware::surroundings(random, &drives).into();
    View {
        server: Server {
            name: random.text(),
            uuid: random.uuid(),
            now: random.moment(),
            since: random.moment(),
            confirms: random.chance(),
            open_metrics: random.chance(),
        },
        status: Status {
            version: "0.1.0".to_owned(),
            pid: random.below(1 << 22) as u32,
            cores: random.below(64) as u16,
            ready: random.chance(),
            parity: parity(random),
            memory: Memory {
                io_flusher: random.chance(),
                locked: random.chance(),
                left_to_gpu: random.chance(),
                problem: random.maybe(Random::text),
            },
            arrays,
            next: random.several(3, |r, _| Next { what: r.text(), action: r.text() }),
            state: Kept {
                directory: random.maybe(Random::text),
                problem: random.maybe(Random::text),
            },
        },
        drives,
        jobs,
        log: log(random).into(),
        tasks: random.several(2, slow),
        access: Arc::new(access(random)),
        https: Arc::new(https(random)),
        counters: Arc::default(),
        events: Arc::new(events(random)),
        ports: random.several(2, |random, _| port(random)),
        surroundings,
        alerts: Arc::new(Alerts { alerts: random.several(3, alert) }),
        past: Default::default(),
    }
}

fn access(random: &mut Random) -> Access {
    let accounts = random.several(3, |random, number| Account {
        name: format!("a.{number}"),
        role: random.pick(&Role::ALL),
        enabled: random.chance(),
        must_change: random.chance(),
        generation: random.below(1000),
    });
    let sessions = random.several(3, |random, number| Session {
        id: random.uuid(),
        account: format!("a.{number}"),
        began: random.moment(),
        from: random.pick(&["10.0.0.1", "fe80::1", "socket"]).to_owned(),
    });
    Access { accounts, sessions, ..Access::default() }
}

fn events(random: &mut Random) -> Shown {
    let first = 1 + random.below(1000);
    let entries = random.several(4, |random, at| {
        let stopped = &crate::messages::ARRAY_STOPPED;
        let origin = random.pick(&[crate::service::uri::MANAGER, "/redfish/v1/gone", ""]);
        let event = Event::new(stopped, &[&random.text()], origin);
        Arc::new(Event { id: first + at, at: random.moment(), ..event })
    });
    let subscriptions = random.several(3, |random, _| Subscription {
        id: random.uuid(),
        context: random.maybe(Random::text),
        destination: random
            .pick(&["https://receiver.example/a", "mailto:ana@example.org", ""])
            .to_owned(),
        verify: random.chance(),
        policy: random.pick(&Policy::ALL),
        standing: Standing {
            problem: random.maybe(Random::text),
            is_suspended: random.chance(),
            delivered: random.number(),
            dropped: random.number(),
            dropped_at: random.maybe(Random::moment),
        },
        ..Subscription::default()
    });
    let entries = Arc::new(entries.into());
    let (is_kept, mail) = (random.chance(), Arc::new(mail(random)));
    Shown { entries, is_kept, subscriptions: Arc::new(subscriptions), mail }
}

fn mail(random: &mut Random) -> Mail {
    Mail {
        plain: Plain {
            is_enabled: random.chance(),
            server: random.pick(&["", "mail.example", "::1"]).to_owned(),
            port: random.below(1 << 16) as u16,
            from: random.pick(&["", "palisade@example.org"]).to_owned(),
            protocol: random.pick(&Protocol::ALL),
            authentication: random.pick(&Authentication::ALL),
            user: random.pick(&["", "palisade"]).to_owned(),
        },
        has_password: random.chance(),
        server: "mail.example:25".to_owned(),
        problem: random.maybe(Random::text),
    }
}

fn alert(random: &mut Random, number: u64) -> Alert {
    let text = random.text();
    let degraded = crate::messages::ARRAY_DEGRADED;
    Alert {
        id: (number + 1).to_string(),
        message: degraded.name.to_owned(),
        args: vec![text.clone()],
        severity: random.pick(&[Health::Warning, Health::Critical]),
        what: degraded.text(core::slice::from_ref(&text)),
        action: degraded.advice(core::slice::from_ref(&text)),
        of: random.pick(&[crate::service::uri::MANAGER, "/redfish/v1/gone"]).to_owned(),
        name: text,
        raised: random.moment(),
        acknowledged: random.maybe(|random| (random.moment(), random.text())),
    }
}

fn log(random: &mut Random) -> Log {
    let first = 1 + random.below(1000);
    let entries = random.several(4, |random, at| {
        Entry {
            number: first + at,
            time: random.moment(),
            who: random.text(),
            from: random.pick(&["socket", "", "192.0.2.1"]).to_owned(),
            request: random.text(),
            what: random.text(),
            result: random.pick(&[
                Ending::Intent,
                Ending::Ok,
                Ending::Refused,
                Ending::Failed,
                Ending::NotKnown,
            ]),
            message: random.maybe(|_| "Palisade.1.0.Failed".to_owned()),
            of: random.maybe(Random::number),
        }
        .into()
    });
    Log { entries: entries.into(), most: 4096, is_kept: random.chance() }
}

fn parity(random: &mut Random) -> Parity {
    Parity {
        placement: random.pick(&["cpu", "gpu", "auto"]).to_owned(),
        kernel: "avx2".to_owned(),
        gpu: random.maybe(Random::text),
        problem: random.maybe(Random::text),
        gpu_suspect: random.chance(),
        gpu_jobs: random.number(),
        gpu_bytes: random.number(),
        gpu_undone: random.number(),
        gpu_checked: random.number(),
        gpu_shared_bytes: random.number(),
        gpu_kept_bytes: random.number(),
    }
}

fn drive(random: &mut Random, number: u64) -> KnownDrive {
    use DriveState::*;
    let uuid = "uuid.ba1f1d94-1d0c-4a25-8d55-6f1e4a1f9d10";
    let kinds = ["eui.0025385b01404d3e", "naa.5000c500a1b2c3d4", uuid, "uuid.x", "nvme.1-2"];
    KnownDrive {
        remote: None,
        id: format!("drive.{number}~2"),
        wwid: random.maybe(|r| r.pick(&kinds).to_owned()),
        model: random.maybe(Random::text),
        is_file: random.chance(),
        hardware: hardware::of_drive(random).into(),
        drive: Drive {
            path: format!("/dev/{}{number}", random.pick(&["nvme", "disk/by-id/ä ", "loop"])),
            serial: random.pick(&["", "S1", "s p%"]).to_owned(),
            bytes: random.number(),
            block_bytes: random.pick(&[0, 512, 4096]),
            state: random.pick(&[InUse, Found, Failed, Foreign, Free, Unusable]),
            array: random.maybe(Random::text),
            slot: random.maybe(|r| r.below(24) as u16),
            signature: random.maybe(Random::text),
            problem: random.maybe(Random::text),
        },
    }
}

fn array(random: &mut Random, drives: &[KnownDrive], jobs: &mut Vec<Job>) -> Array {
    use ArrayState::*;
    let (name, uuid) = (random.text(), random.uuid());
    let size_bytes = random.number();
    let volumes = random.several(4, |random, number| Volume {
        array: name.clone(),
        name: format!("{}{number}", random.text()),
        uuid: random.uuid(),
        size_bytes: random.number(),
    });
    let own = random.several(3, |random, _| Job {
        id: random.uuid(),
        array: uuid.clone(),
        task: task(random, &name),
        began: random.moment(),
        ended: None,
    });
    let waiting = random.below(own.len() as u64 + 1) / 2;
    let listed = own.len() - waiting as usize;
    let tasks = own.iter().take(listed).map(|job| job.task.clone()).collect();
    jobs.extend(own);
    let mut number = 0;
    let exports = random.several(4, |random, _| {
        number += 1 + random.below(3) as u32;
        export(random, &name, &volumes, number)
    });
    Array {
        level: random.pick(&["0", "1", "5", "6", "10", "jbod"]).to_owned(),
        state: random.pick(&[Optimal, Degraded, Failed, Stopped]),
        strip_bytes: random.pick(&[4096, 65536]),
        block_bytes: random.pick(&[512, 4096]),
        size_bytes,
        free_bytes: random.below(size_bytes + 1),
        epoch: random.number(),
        unclean: random.chance(),
        crash_safe: random.maybe(Random::chance),
        problem: random.maybe(Random::text),
        warnings: random.several(2, |random, _| random.text()),
        slots: random.several(6, |random, number| slot(random, drives, number as u16)),
        tasks,
        last_scrub: random.maybe(last_scrub),
        unreadable: random.several(3, |random, _| unreadable(random, &volumes)),
        region_map: random.maybe(|random| RegionMap {
            written_bytes: random.number(),
            dirty_regions: random.number(),
            lost_pages: random.number(),
            parts: RegionParts {
                regions: random.number(),
                written_percents: random.several(4, |_, number| number as u8),
                dirty_regions: random.several(4, |random, _| random.number()),
            },
        }),
        drive_io: random.several(3, drive_io),
        shared: random.chance(),
        owner: random.maybe(|random| Owner {
            host_id: random.uuid(),
            boot_id: random.uuid(),
            name: random.text(),
            own: random.chance(),
            heartbeat_age_ms: random.maybe(Random::number),
        }),
        filesystems: shares::filesystems(random, &name, &volumes),
        volumes,
        exports,
        name,
        uuid,
    }
}

fn slot(random: &mut Random, drives: &[KnownDrive], slot: u16) -> SlotInfo {
    use SlotState::*;
    let known = |random: &mut Random| match drives {
        [] => "/dev/gone".to_owned(),
        some => random.pick(some).drive.path,
    };
    SlotInfo {
        slot,
        drive: random.maybe(known),
        serial: random.text(),
        state: random.pick(&[InSync, Rebuilding, Failed, Missing]),
        read_errors: random.number(),
        rewritten: random.number(),
        wrong_strips: random.number(),
        failures: random.number(),
        timeouts: random.number(),
        reason: random.maybe(Random::text),
        quarantined: random.chance(),
    }
}

fn last_scrub(random: &mut Random) -> LastScrub {
    LastScrub {
        checked_bytes: random.number(),
        uncompared_bytes: random.maybe(Random::number),
        mismatches: random.number(),
        repaired: random.number(),
        unlocated: random.number(),
        unreadable: random.number(),
        ended: random.moment(),
    }
}

fn unreadable(random: &mut Random, volumes: &[Volume]) -> Unreadable {
    use UnreadableReason::*;
    Unreadable {
        volume: match volumes {
            [] => random.text(),
            some => random.pick(some).name,
        },
        offset: random.number(),
        length: random.number(),
        reason: random.pick(&[Media, Rebuild, Resync, Write, Crash]),
    }
}

fn drive_io(random: &mut Random, slot: u64) -> DriveIo {
    DriveIo {
        slot: slot as u16,
        reads: random.number(),
        writes: random.number(),
        flushes: random.number(),
        read_bytes: random.number(),
        write_bytes: random.number(),
        retries: random.number(),
    }
}

fn task(random: &mut Random, array: &str) -> Task {
    let (kind, word) = random.pick(&[
        (TaskKind::Rebuild, "rebuild"),
        (TaskKind::Resync, "resync"),
        (TaskKind::Scrub, "scrub"),
    ]);
    let total_bytes = random.number();
    let done_bytes = random.below(total_bytes + 1);
    Task {
        id: format!("{array}:{word}"),
        kind,
        done_bytes,
        total_bytes,
        progress: if total_bytes == 0 { 1.0 } else { done_bytes as f64 / total_bytes as f64 },
        seconds_left: random.maybe(|random| random.below(1 << 32)),
        state: random.pick(&[TaskState::Running, TaskState::Stuck, TaskState::Paused]),
        problem: random.maybe(Random::text),
        hindrance: random.maybe(|random| {
            use Hindrance::*;
            random.pick(&[Unreadable, Unavailable, ListFull])
        }),
    }
}

/// A job that is over, of an array that is gone.
fn ended(random: &mut Random, _: u64) -> Job {
    use JobEnd::*;
    let array = random.text();
    Job {
        id: random.uuid(),
        array: random.uuid(),
        task: task(random, &array),
        began: random.moment(),
        ended: Some((random.moment(), random.pick(&[Completed, Cancelled, Interrupted]))),
    }
}

/// Kinds of exports that are none over NVMe/TCP.
const KINDS: [ExportKind; 8] = [
    ExportKind::Nbd,
    ExportKind::Fuse,
    ExportKind::Loop,
    ExportKind::Ublk,
    ExportKind::VhostUser,
    ExportKind::Iscsi,
    ExportKind::Fc,
    ExportKind::NvmeFc,
];

fn export(random: &mut Random, array: &str, volumes: &[Volume], number: u32) -> Export {
    let volume = match volumes {
        [] => random.text(),
        some => random.pick(some).name,
    };
    let listener = |random: &mut Random| {
        random.pick(&["10.0.0.1:4420", "[fe80::1]:4420", "host:1", "0.0.0.0:0"]).to_owned()
    };
    let uuid = random.uuid();
    let nvme = random.maybe(|random| NvmeExport {
        subsystem: format!("nqn.2014-08.org.nvmexpress:uuid:{}", random.text()),
        nsid: random.below(1 << 32) as u32,
        nguid: uuid.replace('-', ""),
        uuid,
        listeners: random.several(3, |random, _| listener(random)),
        advertise: random.several(2, |random, _| listener(random)),
        hosts: random.several(3, |random, _| host(random, false)),
        any_host: random.chance(),
        connections: random
            .several(3, |random, _| Connection {
                host: host(random, true),
                controller: random.below(1 << 16) as u16,
                queues: random.below(64) as usize,
                address: random.text(),
                local_address: random.text(),
            })
            .into(),
    });
    let mut nbd = None;
    let kind = if nvme.is_some() { ExportKind::NvmeTcp } else { random.pick(&KINDS) };
    if kind == ExportKind::Nbd {
        let unix = "unix:/run/a b.sock".to_owned();
        nbd = Some(if random.chance() { unix } else { listener(random) });
    }
    let is_others = ["local", "iscsi", "fc"].contains(&kind.fabric());
    let is_device = [ExportKind::Loop, ExportKind::Ublk].contains(&kind);
    Export {
        kind,
        device: random.maybe(Random::text).filter(|_| is_device),
        link: random.maybe(Random::text).filter(|_| is_device),
        file: random.maybe(Random::text).filter(|_| kind == ExportKind::Fuse),
        socket: random.maybe(Random::text).filter(|_| kind == ExportKind::VhostUser),
        health: random.maybe(health).filter(|_| is_others),
        id: format!("{array}:{number}"),
        array: array.to_owned(),
        volume,
        clients: match &nbd {
            Some(_) => random.several(3, |random, _| client(random)),
            None => Vec::new(),
        },
        nbd,
        nvme,
        iscsi: (kind == ExportKind::Iscsi).then(|| iscsi(random)),
        fc: (kind.fabric() == "fc").then(|| fc(random, kind == ExportKind::NvmeFc)),
        uri: random.text(),
        serving: random.chance(),
        problem: random.maybe(Random::text),
    }
}

fn iscsi(random: &mut Random) -> IscsiExport {
    let portal = |random: &mut Random, _| random.pick(&["10.0.0.1:3260", "[::]:3260"]).to_owned();
    let names = ["iqn.2026-11.example:a", "eui.02004567a425678d", "naa.52004567ba64678d"];
    let name = |random: &mut Random, _| random.pick(&names).to_owned();
    IscsiExport {
        target: format!("iqn.2026-11.example:{}", random.uuid()),
        unit: 1,
        portals: random.several(3, portal),
        advertise: random.several(2, portal),
        initiators: random.several(3, name),
        user: random.maybe(Random::text),
        server: random.maybe(|random| random.pick(&[IscsiServer::Lio, IscsiServer::Tgt])),
        sessions: random.several(3, name),
    }
}

fn fc(random: &mut Random, is_nvme: bool) -> FcExport {
    let names = ["20:00:00:25:b5:00:00:01", "20:00:00:25:b5:00:00:02"];
    let hosts = ["nqn.a:b", "nqn.a-b"];
    let all = if is_nvme { hosts } else { names };
    let name = |random: &mut Random, _| random.pick(&all).to_owned();
    FcExport {
        port: "20:00:00:25:b5:00:00:1f".to_owned(),
        initiators: random.several(3, name),
        unit: (!is_nvme).then(|| random.below(4095) as u16),
        subsystem: is_nvme.then(|| format!("nqn.2026-11.example:{}", random.uuid())),
        sessions: if is_nvme { Vec::new() } else { random.several(3, name) },
    }
}

fn port(random: &mut Random) -> FcPort {
    FcPort {
        name: "20:00:00:25:b5:00:00:1f".to_owned(),
        driver: random.pick(&["fcoe", "qla2xxx"]).to_owned(),
        state: random.pick(&["Online", "Linkdown"]).to_owned(),
        speed: random.text(),
    }
}

fn health(random: &mut Random) -> ExportHealth {
    use ServiceState::{Failed, Ok, Starting};
    ExportHealth {
        state: random.pick(&[Ok, Starting, Failed]),
        checked: random.maybe(Random::moment),
        problem: random.maybe(Random::text),
    }
}

/// A client over the network, or at a socket.
fn client(random: &mut Random) -> Client {
    match random.chance() {
        true => Client { address: "192.0.2.7".to_owned(), local_address: random.text() },
        false => Client::default(),
    }
}

/// The name of a host; one that is connected need not give any.
fn host(random: &mut Random, or_none: bool) -> String {
    let names = ["nqn.a:b", "nqn.a-b", "nqn.ä/ö", ""];
    random.pick(if or_none { &names } else { &names[..3] }).to_owned()
}

fn https(random: &mut Random) -> Https {
    let listeners = random.several(2, |_, number| format!("192.0.2.{number}:8443"));
    let problems = random.several(2, |random, _| Problem {
        since: u64::from(random.chance()),
        what: Error {
            error: random.text(),
            hint: random.text(),
            code: ErrorCode::Failed,
            name: "HttpsOff".into(),
            args: vec![random.text()],
        },
    });
    let certificate = random.maybe(|random| Certificate {
        pem: "-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n".to_owned(),
        serial: "01:02".to_owned(),
        fingerprint: "0A:0B".to_owned(),
        key: "0C:0D".to_owned(),
        subject: Named { common_name: random.text(), ..Named::default() },
        issuer: Named::default(),
        not_before: random.number(),
        not_after: random.number(),
        names: vec!["localhost".to_owned()],
        is_made: random.chance(),
    });
    Https { listeners, problems, certificate }
}
