//! What a controller is asked of itself and of its namespaces, over its admin queue.
//!
//! A controller is asked in this order: its capabilities; then it is enabled; then what it is, how
//! many queues it gives, and what its namespaces are.

use crate::limits::DATA_MOST;
use crate::queue::Shape;
use crate::requests::{Asked, Outcome, Requests, Ticket, What};
use core::future::{Future, poll_fn};
use io::{BufMut, DriveError, Env, Gather, Pool};
use nvme::command::Command;
use nvme::drive::{self, Controller, Fabric, Identifiers, Namespace};
use nvme::fabrics::{Property, property};
use nvme::identify::{BYTES, has_no_cache};
use nvme::log::{self, AccessGroup, DISCOVERY_ENTRY_BYTES, Place, page};
use nvme::request::Request;
use nvme::reset::{self, Instance};
use nvme::sgl::Sgl;
use nvme::status::Status;
use std::rc::Rc;
use thiserror::Error;
use units::Nanos;

/// How often it is looked whether a controller is ready.
const LOOK: Nanos = Nanos::from_millis(5);
/// The controller is to be enabled: entries of 64 and 16 bytes, the NVM command set (Base, figure
/// 46).
const ENABLED: u64 = 0x46_0001;
/// Namespaces that are looked at, at most: of a controller that has more the first ones are.
const NAMESPACES_MOST: usize = 4096;
/// Bytes of the page of resets that are read: more than one entry for each path.
const RESETS_BYTES: u32 = 8 + 8 * 255;

/// Entries of the discovery page that are read, at most.
pub const PLACES_MOST: u64 = 4096;
/// How often the discovery page is read that changes meanwhile.
const TRIES: usize = 5;

/// Why something is not known of a controller.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Error)]
pub enum AdminError {
    /// The connection ended.
    #[error("the connection ended before it was answered")]
    Ended,
    /// The controller refused it.
    #[error("{}", .0.words())]
    Refused(Status),
    /// It did not become ready in the time that it says it needs.
    #[error("the controller does not become ready")]
    NotReady,
    /// It failed (Base, CSTS.CFS).
    #[error("the controller says that it has failed")]
    Failed,
}

/// What a controller is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Info {
    /// Its names, and what it can do.
    pub controller: Controller,
    /// How it wants to be used.
    pub fabric: Fabric,
    /// Entries of a queue, at most (CAP.MQES, counted from 1).
    pub entries_most: u32,
    /// Bytes of its smallest page (CAP.MPSMIN), in which its largest transfer is told.
    page_bytes: u32,
}

impl Info {
    /// What commands of an I/O queue of so many entries may be like.
    pub fn shape(&self, entries: u16) -> Shape {
        let page = u64::from(self.page_bytes);
        let by_page = match u32::from(self.controller.transfer_shift) {
            0 => DATA_MOST.into(),
            // Beyond that it is no limit.
            shift => page << shift.min(20),
        };
        let commands = match self.fabric.commands_most {
            0 => entries,
            most => entries.min(most),
        };
        let data_most = by_page.min(DATA_MOST.into()) as u32;
        Shape { commands, data_most, capsule_data: self.fabric.capsule_data }
    }
}

/// What commands of an admin queue may be like: nothing is written there.
pub(crate) const SHAPE: Shape = Shape { commands: 32, data_most: DATA_MOST, capsule_data: 0 };

/// The admin queue of a controller, from the side of who asks. What is asked once its connection
/// has ended is refused.
#[derive(Clone, Default)]
pub struct Admin {
    requests: Rc<Requests>,
}

impl Admin {
    /// What its queue carries.
    pub(crate) fn requests(&self) -> Rc<Requests> {
        self.requests.clone()
    }

    /// Asks, with `bytes` bytes of data from the controller: what the completion gave back, and the
    /// data.
    async fn own(&self, command: Command, bytes: u32) -> Result<(u64, Option<BufMut>), AdminError> {
        let into = (bytes > 0).then(|| Pool::single(bytes as usize));
        let asked = Asked {
            namespace: command.namespace(),
            by: None,
            lapse: 0,
            what: What::Own(command),
            offset: 0,
            bytes: bytes.into(),
            shift: 0,
            data: Gather::new(),
            into,
        };
        let Outcome { result, into, answer } = outcome(&self.requests, asked).await;
        match result {
            Ok(()) => Ok((answer.value, into)),
            Err(DriveError::Gone) if answer.status.is_success() => Err(AdminError::Ended),
            Err(_) => Err(AdminError::Refused(answer.status)),
        }
    }

    /// Asks what only reads, or is of the controller's own settings.
    ///
    /// # Errors
    /// It is refused, or the connection ends.
    pub async fn ask(&self, request: Request) -> Result<(u64, Option<BufMut>), AdminError> {
        let command = Command::new(request.opcode, 0, request.namespace, Sgl::Other(0));
        self.own(command.with_dwords(request.dwords), request.bytes()).await
    }

    async fn identify(&self, request: Request) -> Result<[u8; BYTES], AdminError> {
        let (_, data) = self.ask(request).await?;
        let data = data.expect("data was asked for");
        Ok(*first(&data))
    }

    async fn property(&self, offset: u32, wide: bool) -> Result<u64, AdminError> {
        let command = Property { offset, wide, value: 0 }.encode(0, false);
        Ok(self.own(command, 0).await?.0)
    }

    /// Enables the controller and asks what it is.
    ///
    /// # Errors
    /// Why it is of no use.
    pub async fn enable<E: Env>(&self, env: &E) -> Result<Info, AdminError> {
        let capabilities = self.property(property::CAPABILITIES, true).await?;
        let enable = Property { offset: property::CONFIGURATION, wide: false, value: ENABLED };
        self.own(enable.encode(0, true), 0).await?;
        // CAP.TO counts half seconds (Base, figure 36).
        let most = Nanos::from_millis(500 * (capabilities >> 24 & 0xff).max(1));
        let begun = env.now();
        loop {
            let status = self.property(property::STATUS, false).await?;
            if status & 0b10 != 0 {
                return Err(AdminError::Failed);
            }
            if status & 1 == 1 {
                break;
            }
            if env.now().since(begun) > most {
                return Err(AdminError::NotReady);
            }
            env.sleep(LOOK).await;
        }
        let b = self.identify(Request::identify_controller()).await?;
        Ok(Info {
            controller: Controller::decode(&b),
            fabric: Fabric::decode(&b),
            entries_most: (capabilities & 0xffff) as u32 + 1,
            page_bytes: 4096 << (capabilities >> 48 & 0xf),
        })
    }

    /// How many I/O queues the controller gives, of so many that are wanted.
    ///
    /// # Errors
    /// As [`Admin::ask`].
    pub async fn queues(&self, wanted: u16) -> Result<u16, AdminError> {
        let (value, _) = self.ask(Request::set_queues(wanted)).await?;
        let given = (value & 0xffff).min(value >> 16 & 0xffff) + 1;
        Ok(given.min(wanted.into()) as u16)
    }

    /// The namespaces that the controller has, in ascending order.
    ///
    /// # Errors
    /// As [`Admin::ask`].
    pub async fn namespaces(&self) -> Result<Vec<u32>, AdminError> {
        let mut all: Vec<u32> = Vec::new();
        while all.len() < NAMESPACES_MOST {
            let after = all.last().copied().unwrap_or(0);
            let b = self.identify(Request::active_namespaces(after)).await?;
            let before = all.len();
            // In ascending order, or it would never end.
            all.extend(drive::namespaces(&b).filter(|id| *id > after));
            if all.len() < before + BYTES / 4 {
                break;
            }
        }
        all.is_sorted().then_some(all).ok_or(AdminError::Refused(Status::INTERNAL))
    }

    /// What a namespace is, and what it is known by.
    ///
    /// # Errors
    /// As [`Admin::ask`].
    pub async fn namespace(&self, id: u32) -> Result<(Namespace, Identifiers), AdminError> {
        let namespace = Namespace::decode(&self.identify(Request::identify_namespace(id)).await?);
        let known = match self.identify(Request::namespace_descriptors(id)).await {
            Ok(b) => Identifiers::decode(&b),
            // Controllers before version 1.3 have no such list.
            Err(AdminError::Refused(_)) => Identifiers::default(),
            Err(error) => return Err(error),
        };
        let or = |has: [u8; 16], other: [u8; 16]| if has == [0; 16] { other } else { has };
        let known = Identifiers { nguid: or(known.nguid, namespace.nguid), ..known };
        Ok((namespace, known))
    }

    /// Whether a namespace says that it has no volatile cache, whatever its controller says;
    /// `None`: it is not told.
    pub async fn has_no_cache(&self, id: u32) -> Result<Option<bool>, AdminError> {
        match self.identify(Request::identify_independent(id)).await {
            Ok(b) => Ok(Some(has_no_cache(&b))),
            // Controllers before version 2.0 have no such answer; others may not be ready.
            Err(AdminError::Refused(_)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Reads `bytes` bytes of a log page, from `offset` on.
    async fn log(&self, page: u8, offset: u64, bytes: u32) -> Result<BufMut, AdminError> {
        let (_, data) = self.ask(Request::log(page, offset, bytes)).await?;
        Ok(data.expect("data was asked for"))
    }

    /// What a discovery controller knows: its generation, and where subsystems are. As many as
    /// [`PLACES_MOST`].
    ///
    /// # Errors
    /// As [`Admin::ask`]; `Refused` with *discover restart* if it changes again and again.
    pub async fn discover(&self) -> Result<(u64, Vec<Place>), AdminError> {
        for _ in 0..TRIES {
            let head = self.log(page::DISCOVERY, 0, DISCOVERY_ENTRY_BYTES as u32).await?;
            let (generation, count) = log::discovery_head(first(&head));
            let mut places = Vec::new();
            for number in 0..count.min(PLACES_MOST) {
                let at = (1 + number) * DISCOVERY_ENTRY_BYTES as u64;
                let entry = self.log(page::DISCOVERY, at, DISCOVERY_ENTRY_BYTES as u32).await?;
                places.extend(log::places(&entry));
            }
            // The entries are of one moment if it has not changed meanwhile (Base, section 5.16).
            let head = self.log(page::DISCOVERY, 0, DISCOVERY_ENTRY_BYTES as u32).await?;
            if log::discovery_head(first(&head)).0 == generation {
                return Ok((generation, places));
            }
        }
        Err(AdminError::Refused(Status::DISCOVER_RESTART))
    }

    /// How the controller comes to its namespaces: a change count, and groups. `info` says how long
    /// the page can be.
    ///
    /// # Errors
    /// As [`Admin::ask`].
    pub async fn access(&self, info: &Info) -> Result<(u64, Vec<AccessGroup>), AdminError> {
        let fabric = &info.fabric;
        let namespaces = match fabric.namespaces_most {
            0 => info.controller.namespaces,
            most => most,
        };
        let bytes = 16 + 32 * u64::from(fabric.ana_groups) + 4 * u64::from(namespaces);
        let bytes = bytes.next_multiple_of(4).min(DATA_MOST.into()) as u32;
        let page = self.log(page::ANA, 0, bytes).await?;
        log::access(&page).ok_or(AdminError::Refused(Status::INVALID_LOG_PAGE))
    }

    /// Reads which namespaces have changed, so that the controller tells of the next change; where
    /// it has no such page it does that anyway.
    ///
    /// # Errors
    /// As [`Admin::ask`].
    pub async fn changed_namespaces(&self) -> Result<(), AdminError> {
        match self.log(page::CHANGED_NAMESPACES, 0, BYTES as u32).await {
            Ok(_) | Err(AdminError::Refused(_)) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Has another controller of this host's ended: true if it has, with all it began, else
    /// [`Admin::resets`] says what becomes of it.
    ///
    /// # Errors
    /// As [`Admin::ask`].
    pub async fn reset(&self, controller: Instance) -> Result<bool, AdminError> {
        let (value, _) = self.ask(Request::reset(controller)).await?;
        Ok(value & reset::IMMEDIATE != 0)
    }

    /// What has become of resets that this controller was asked for. What is over is told once.
    ///
    /// # Errors
    /// As [`Admin::ask`].
    pub async fn resets(&self) -> Result<Vec<reset::Entry>, AdminError> {
        let (_, data) = self.ask(Request::resets(RESETS_BYTES)).await?;
        Ok(reset::entries(&data.expect("data was asked for")))
    }

    /// Tells the controller that the host is there.
    ///
    /// # Errors
    /// As [`Admin::ask`].
    pub async fn keep_alive(&self) -> Result<(), AdminError> {
        self.ask(Request::keep_alive()).await.map(|_| ())
    }
}

fn first<const N: usize>(data: &BufMut) -> &[u8; N] {
    data.first_chunk().expect("as much as was asked for")
}

/// Begins a request and waits for its end.
pub(crate) fn outcome(requests: &Rc<Requests>, asked: Asked) -> impl Future<Output = Outcome> {
    let ticket = Waits { requests: requests.clone(), ticket: requests.ask(asked) };
    async move { poll_fn(|cx| ticket.requests.poll(ticket.ticket, cx)).await }
}

/// A ticket that is given back, whether its request has ended or not.
pub(crate) struct Waits {
    pub requests: Rc<Requests>,
    pub ticket: Ticket,
}

impl Drop for Waits {
    fn drop(&mut self) {
        self.requests.drop_ticket(self.ticket);
    }
}
