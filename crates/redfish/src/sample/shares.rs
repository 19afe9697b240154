//! File systems and shares for tests.

use super::Random;
use crate::view::*;

/// File systems of some of an array's volumes, or of one that is not known now.
pub fn filesystems(random: &mut Random, array: &str, volumes: &[Volume]) -> Vec<FileSystem> {
    let own = |volume: &Volume| (volume.name.clone(), volume.uuid.clone());
    let mut all: Vec<_> = volumes.iter().map(own).filter(|_| random.chance()).collect();
    if volumes.is_empty() && random.chance() {
        all.push((random.text(), random.uuid()));
    }
    all.into_iter().map(|volume| filesystem(random, array, volume)).collect()
}

fn filesystem(random: &mut Random, array: &str, (volume, uuid): (String, String)) -> FileSystem {
    let mut shares = random.several(3, share);
    shares.sort_by(|a, b| a.name.cmp(&b.name));
    FileSystem {
        array: array.to_owned(),
        volume,
        volume_uuid: uuid,
        kind: random.maybe(|random| random.pick(&["xfs", "ext4"]).to_owned()),
        mounted: random.chance(),
        read_only: random.chance(),
        size_bytes: random.maybe(Random::number),
        used_bytes: random.maybe(Random::number),
        smb_listen: random.pick(&["[::]:445", "10.0.0.1:445"]).to_owned(),
        nfs_listen: random.pick(&["[::]:2049", "10.0.0.1:2049"]).to_owned(),
        users: random.several(2, |random, number| ShareUser {
            name: random.pick(&["alice", "bob"]).to_owned(),
            uid: 70_001 + number as u32,
        }),
        health: super::health(random),
        shares,
    }
}

fn share(random: &mut Random, number: u64) -> Share {
    let kinds: &[Protocol] =
        random.pick(&[&[Protocol::Smb][..], &[Protocol::Nfs], &[Protocol::Smb, Protocol::Nfs]]);
    Share {
        name: format!("{}{number}", random.text()),
        read_only: random.chance(),
        smb_users: random.several(2, |random, _| random.pick(&["alice", "bob:ro"]).to_owned()),
        nfs_clients: random
            .several(2, |random, _| random.pick(&["10.0.0.0/24", "fe80::/10:ro"]).to_owned()),
        protocols: kinds.iter().map(|kind| protocol(random, *kind)).collect(),
    }
}

fn protocol(random: &mut Random, protocol: Protocol) -> ShareProtocol {
    ShareProtocol {
        protocol,
        server: random.pick(&["samba", "nfs-ganesha"]).to_owned(),
        version: random.maybe(|_| "4.22.4".to_owned()),
        url: random.text(),
        clients: random.several(2, |random, _| random.pick(&["192.0.2.7", "fe80::1"]).to_owned()),
        health: super::health(random),
    }
}
