//! How a subsystem is to be connected, where somebody wants it otherwise than the fabric has it.
//!
//! Invariant: a subsystem has one host and one set of settings, whatever path it is reached by: its
//! fences are as long as its keep-alive timeout says. So who asks for others is refused once it is
//! connected.

use nvme_host::{HostIdentity, Settings, Subsystem};
use units::Nanos;

/// What is wanted. `None` is as the fabric has it; of a subsystem that is connected, as that has
/// it.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wishes {
    /// Who this host is there.
    pub host: Option<HostIdentity>,
    /// Entries of an I/O queue.
    pub entries: Option<u16>,
    /// Whether headers have digests.
    pub header_digest: Option<bool>,
    /// Whether data has digests.
    pub data_digest: Option<bool>,
    /// The keep-alive timeout.
    pub keep_alive: Option<Nanos>,
    /// From a try to connect to the next.
    pub reconnect_delay: Option<Nanos>,
    /// How long requests wait for a path.
    pub fast_io_fail: Option<Nanos>,
    /// How long it is tried to connect anew.
    pub controller_loss: Option<Nanos>,
}

impl Wishes {
    /// What is wanted, and for the rest these.
    pub(super) fn over(
        &self,
        host: &HostIdentity,
        settings: &Settings,
    ) -> (HostIdentity, Settings) {
        let mut own = *settings;
        own.entries = self.entries.unwrap_or(own.entries);
        own.digests.header = self.header_digest.unwrap_or(own.digests.header);
        own.digests.data = self.data_digest.unwrap_or(own.digests.data);
        own.keep_alive = self.keep_alive.unwrap_or(own.keep_alive);
        own.reconnect_delay = self.reconnect_delay.unwrap_or(own.reconnect_delay);
        own.fast_io_fail = self.fast_io_fail.unwrap_or(own.fast_io_fail);
        own.controller_loss = self.controller_loss.unwrap_or(own.controller_loss);
        (self.host.clone().unwrap_or_else(|| host.clone()), own)
    }

    /// What a subsystem has otherwise than wanted, if anything, by nvme-cli's name for it.
    pub(super) fn unmet(&self, subsystem: &Subsystem) -> Option<&'static str> {
        let Subsystem { host: has_host, settings: has, .. } = subsystem;
        let (host, own) = self.over(has_host, has);
        let all = [
            ("hostnqn", host.nqn == has_host.nqn),
            ("hostid", host.id == has_host.id),
            ("queue_size", own.entries == has.entries),
            ("hdr_digest", own.digests.header == has.digests.header),
            ("data_digest", own.digests.data == has.digests.data),
            ("keep_alive_tmo", own.keep_alive == has.keep_alive),
            ("reconnect_delay", own.reconnect_delay == has.reconnect_delay),
            ("fast_io_fail_tmo", own.fast_io_fail == has.fast_io_fail),
            ("ctrl_loss_tmo", own.controller_loss == has.controller_loss),
        ];
        all.into_iter().find(|(_, is_met)| !is_met).map(|(name, _)| name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nvme::nqn::Nqn;

    #[test]
    fn each_wish_is_taken_and_missed_by_its_name() {
        let host = |name: &str, id| HostIdentity { nqn: Nqn::new(name).unwrap(), id: [id; 16] };
        let usual = host("nqn.2026-11.org.example:h", 1);
        let subsystem = Subsystem::new(usual.nqn.clone(), usual.clone(), Settings::default());
        let none = Wishes::default;
        assert_eq!(none().over(&usual, &Settings::default()), (usual.clone(), Settings::default()));
        let other = host("nqn.2026-11.org.example:other", 1);
        let same = host("nqn.2026-11.org.example:h", 2);
        let time = Some(Nanos::from_millis(17_000));
        for (name, wish) in [
            ("hostnqn", Wishes { host: Some(other), ..none() }),
            ("hostid", Wishes { host: Some(same), ..none() }),
            ("queue_size", Wishes { entries: Some(77), ..none() }),
            ("hdr_digest", Wishes { header_digest: Some(true), ..none() }),
            ("data_digest", Wishes { data_digest: Some(true), ..none() }),
            ("keep_alive_tmo", Wishes { keep_alive: time, ..none() }),
            ("reconnect_delay", Wishes { reconnect_delay: time, ..none() }),
            ("fast_io_fail_tmo", Wishes { fast_io_fail: time, ..none() }),
            ("ctrl_loss_tmo", Wishes { controller_loss: time, ..none() }),
        ] {
            assert_eq!(wish.unmet(&subsystem), Some(name));
            let (host, settings) = wish.over(&usual, &Settings::default());
            let met = Subsystem::new(usual.nqn.clone(), host, settings);
            assert_eq!((wish.unmet(&met), none().unmet(&met)), (None, None), "{name}");
        }
        // Also what is said is met where it is so already.
        let said = Wishes { host: Some(usual), data_digest: Some(false), ..none() };
        assert_eq!(said.unmet(&subsystem), None);
    }
}
