//! One machine's connection.

use crate::map::{self, Map};
use crate::{Cores, Ring};
use core::fmt;
use rustix::net::{RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendFlags, recvmsg, send};
use std::fs::File;
use std::io::{self, IoSliceMut, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, MutexGuard};
use vhost::VhostUserMemoryRegionBase;
use vhost::vhost_user::message::{
    VhostTransferStateDirection, VhostTransferStatePhase, VhostUserConfigFlags, VhostUserInflight,
    VhostUserLog, VhostUserMemoryRegion, VhostUserProtocolFeatures, VhostUserShMemConfig,
    VhostUserSharedMsg, VhostUserSingleMemoryRegion, VhostUserVirtioFeatures,
    VhostUserVringAddrFlags, VhostUserVringState,
};
use vhost::vhost_user::{
    BackendReqHandler, Error, GpuBackend, Result, VhostUserBackendReqHandlerMut,
};
use vhost_user::flight;
use vhost_user::limits::{RING_MAX, RINGS};
use vhost_user::ring::Place;
use vhost_user::wire::{CONFIG, feature};

/// `VHOST_USER_SET_BACKEND_REQ_FD`.
const SET_CHANNEL: u32 = 21;
/// `VHOST_USER_BACKEND_CONFIG_CHANGE_MSG`, as a message: its number, the protocol's version, no
/// bytes.
const CONFIG_CHANGED: [u8; 12] = [2, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0];
/// Bytes of a message's head.
const HEAD: usize = 12;

/// What a machine wants can't be: why.
#[derive(Debug)]
pub struct Refused(pub String);

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl core::error::Error for Refused {}

impl From<Refused> for Error {
    fn from(refused: Refused) -> Self {
        Self::ReqHandlerError(io::Error::other(refused))
    }
}

fn refused<T>(why: &str) -> Result<T> {
    Err(Refused(why.to_owned()).into())
}

/// A bell: an eventfd, which nobody waits for but who asks to.
fn bell(file: File) -> Result<File> {
    let path = format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&file));
    let failed = |error: &dyn fmt::Display| Refused(format!("a bell: {error}"));
    let name = std::fs::read_link(path).map_err(|error| failed(&error))?;
    if name.to_str() != Some("anon_inode:[eventfd]") {
        return refused("a bell that is no eventfd");
    }
    let flags = rustix::fs::fcntl_getfl(&file).map_err(|error| failed(&error))?;
    rustix::fs::fcntl_setfl(&file, flags | rustix::fs::OFlags::NONBLOCK)
        .map_err(|error| failed(&error))?;
    Ok(file)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|error| error.into_inner())
}

/// A machine's bell, which it may replace at any time.
#[derive(Clone, Default)]
pub struct Caller(Arc<Mutex<Option<File>>>);

impl Caller {
    /// Rings it, if there is one.
    pub fn ring(&self) {
        if let Some(bell) = &*lock(&self.0) {
            // One that is full has been rung. Any number that is not 0 does.
            let _ = (&*bell).write(&1u64.to_le_bytes());
        }
    }
}

/// A machine's connection, as others have it.
#[derive(Clone)]
pub struct Line {
    socket: Arc<UnixStream>,
    channel: Arc<Mutex<Option<OwnedFd>>>,
}

impl Line {
    /// Of a machine that has connected.
    pub fn new(socket: UnixStream) -> Self {
        Self { socket: Arc::new(socket), channel: Arc::default() }
    }

    /// Whether it is the same connection.
    pub fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.socket, &other.socket)
    }

    /// Tells the machine that the device is otherwise than it was, if it has asked for that.
    pub fn changed(&self) {
        if let Some(channel) = &*lock(&self.channel) {
            // One that takes nothing has enough to look at.
            let flags = SendFlags::DONTWAIT | SendFlags::NOSIGNAL;
            let _ = send(channel, &CONFIG_CHANGED, flags);
        }
    }

    /// Ends the connection.
    pub fn end(&self) {
        let _ = self.socket.shutdown(std::net::Shutdown::Both);
    }

    /// Looks at the message that comes next, which stays there; keeps the descriptor by which the
    /// machine is told of changes, if that is it: `vhost` gives no way to say so.
    fn look_ahead(&self) -> io::Result<()> {
        let mut room = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(32))];
        let mut beside = RecvAncillaryBuffer::new(&mut room);
        let mut head = [0; HEAD];
        let flags = RecvFlags::PEEK | RecvFlags::CMSG_CLOEXEC;
        let socket = self.socket.as_fd();
        let bytes = loop {
            match recvmsg(socket, &mut [IoSliceMut::new(&mut head)], &mut beside, flags) {
                Err(rustix::io::Errno::INTR) => {}
                told => break told?.bytes,
            }
        };
        let is_channel = bytes >= 4 && head[..4] == SET_CHANNEL.to_le_bytes();
        for message in beside.drain() {
            if let RecvAncillaryMessage::ScmRights(mut own) = message
                && is_channel
            {
                *lock(&self.channel) = own.next();
            }
        }
        Ok(())
    }
}

/// What is known of a ring.
#[derive(Default)]
struct Known {
    requests: u16,
    /// Where descriptors, offers and answers are in the machine.
    places: Option<[u64; 3]>,
    taken: u16,
    kick: Option<File>,
    call: Caller,
    is_enabled: bool,
    is_served: bool,
}

struct Session<C: Cores> {
    cores: C,
    line: Line,
    features: u64,
    map: Option<Map>,
    rings: Vec<Known>,
    /// Of what is under way: for how many rings of how many requests.
    kept: Option<(vhost_user::Memory, (u16, u16))>,
}

/// Talks with a machine until its connection ends; its rings are then served no more.
///
/// # Errors
/// Why it was ended here.
pub fn talk(line: &Line, cores: impl Cores) -> core::result::Result<(), String> {
    let socket = line.socket.try_clone().map_err(|error| error.to_string())?;
    let rings = (0..RINGS).map(|_| Known::default()).collect();
    let own = line.clone();
    let session = Session { cores, line: own, features: 0, map: None, rings, kept: None };
    let session = Arc::new(Mutex::new(session));
    let mut handler = BackendReqHandler::from_stream(socket, session.clone());
    let outcome = loop {
        if line.look_ahead().is_err() {
            break Ok(());
        }
        match handler.handle_request() {
            Ok(()) => {}
            Err(Error::Disconnected | Error::PartialMessage | Error::SocketBroken(_)) => {
                break Ok(());
            }
            Err(error) => break Err(error.to_string()),
        }
    };
    line.end();
    lock(&session).stop_all();
    outcome
}

impl<C: Cores> Session<C> {
    fn ring(&mut self, index: u32) -> Result<&mut Known> {
        let known = usize::try_from(index).ok().and_then(|index| self.rings.get_mut(index));
        known.ok_or_else(|| Refused(format!("there is no ring {index}")).into())
    }

    /// Serves a ring, if all is known of it.
    fn serve(&mut self, index: u32) -> Result<()> {
        let (features, kept) = (self.features, self.kept.clone());
        let memory = self.map.as_ref().map(|map| map.memory.clone());
        let ring = self.ring(index)?;
        let (Some(memory), Some(places), Some(kick)) = (memory, ring.places, &ring.kick) else {
            return Ok(());
        };
        if ring.is_served || !ring.is_enabled || ring.requests == 0 {
            return Ok(());
        }
        let kick = kick.try_clone().map_err(|error| Refused(error.to_string()))?.into();
        let (requests, taken, call) = (ring.requests, ring.taken, ring.call.clone());
        let [descriptors, offered, answered] = places;
        let event_index = features & feature::EVENT_INDEX != 0;
        let write_through = features & feature::FLUSH == 0;
        let place =
            Place { requests, descriptors, offered, answered, taken, event_index, write_through };
        let number = index as u16;
        let kept = match kept {
            Some((memory, (rings, most))) if number < rings && requests <= most => {
                Some((memory, (number, most)))
            }
            Some(_) => return refused("what is under way is of other rings"),
            None => None,
        };
        let ring = Ring { memory, place, kept, kick, call };
        self.cores.serve(number, ring).map_err(Refused)?;
        // It may be otherwise than when the machine had it last.
        if self.rings.iter().all(|ring| !ring.is_served) {
            self.line.changed();
        }
        self.ring(index)?.is_served = true;
        Ok(())
    }

    fn serve_all(&mut self) -> Result<()> {
        (0..self.rings.len() as u32).try_for_each(|index| self.serve(index))
    }

    /// Stops a ring, if it is served.
    fn stop(&mut self, index: u32) -> Result<()> {
        if self.ring(index)?.is_served {
            let taken = self.cores.stop(index as u16);
            let ring = self.ring(index)?;
            ring.is_served = false;
            ring.taken = taken.ok_or_else(|| Refused("who served it has gone".to_owned()))?;
        }
        Ok(())
    }

    fn stop_all(&mut self) {
        for index in 0..self.rings.len() as u32 {
            let _ = self.stop(index);
        }
    }
}

impl<C: Cores> VhostUserBackendReqHandlerMut for Session<C> {
    fn set_owner(&mut self) -> Result<()> {
        Ok(())
    }

    fn reset_owner(&mut self) -> Result<()> {
        self.stop_all();
        Ok(())
    }

    fn reset_device(&mut self) -> Result<()> {
        self.stop_all();
        self.rings.iter_mut().for_each(|ring| *ring = Known::default());
        Ok(())
    }

    fn get_features(&mut self) -> Result<u64> {
        Ok(feature::OFFERED | VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits())
    }

    fn set_features(&mut self, features: u64) -> Result<()> {
        let all = feature::OFFERED | VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits();
        if features & !all != 0 {
            return refused("features that were not offered");
        }
        self.stop_all();
        self.features = features;
        // Without that part of the protocol rings are enabled from the start.
        if features & VhostUserVirtioFeatures::PROTOCOL_FEATURES.bits() == 0 {
            self.rings.iter_mut().for_each(|ring| ring.is_enabled = true);
        }
        self.serve_all()
    }

    fn set_mem_table(
        &mut self,
        parts: &[VhostUserMemoryRegion],
        files: Vec<File>,
        _postcopy: Option<bool>,
    ) -> Result<Option<Vec<VhostUserMemoryRegionBase>>> {
        self.stop_all();
        self.map = Some(Map::new(parts, files)?);
        self.serve_all()?;
        Ok(None)
    }

    fn set_vring_num(&mut self, index: u32, requests: u32) -> Result<()> {
        match u16::try_from(requests) {
            Ok(requests) if requests.is_power_of_two() && requests <= RING_MAX => {
                self.stop(index)?;
                self.ring(index)?.requests = requests;
                self.serve(index)
            }
            _ => refused("a ring of that size"),
        }
    }

    fn set_vring_addr(
        &mut self,
        index: u32,
        flags: VhostUserVringAddrFlags,
        descriptors: u64,
        answered: u64,
        offered: u64,
        _log: u64,
    ) -> Result<()> {
        if !flags.is_empty() {
            return refused("a log of what is written");
        }
        let Some(map) = &self.map else { return refused("a ring before memory") };
        let all = [descriptors, offered, answered].map(|address| map.of_machine(address));
        let [Some(descriptors), Some(offered), Some(answered)] = all else {
            return refused("a ring outside of memory");
        };
        self.stop(index)?;
        self.ring(index)?.places = Some([descriptors, offered, answered]);
        self.serve(index)
    }

    fn set_vring_base(&mut self, index: u32, taken: u32) -> Result<()> {
        // Rings of a kind that is not offered say more there.
        self.stop(index)?;
        self.ring(index)?.taken = taken as u16;
        self.serve(index)
    }

    fn get_vring_base(&mut self, index: u32) -> Result<VhostUserVringState> {
        self.stop(index)?;
        let ring = self.ring(index)?;
        // It is still until there is a new bell.
        ring.kick = None;
        Ok(VhostUserVringState::new(index, ring.taken.into()))
    }

    fn set_vring_kick(&mut self, index: u8, kick: Option<File>) -> Result<()> {
        let index = index.into();
        self.stop(index)?;
        let Some(kick) = kick else { return refused("a ring without a bell") };
        self.ring(index)?.kick = Some(bell(kick)?);
        self.serve(index)
    }

    fn set_vring_call(&mut self, index: u8, call: Option<File>) -> Result<()> {
        let call = call.map(bell).transpose()?;
        let ring = self.ring(index.into())?;
        *lock(&ring.call.0) = call;
        // What was answered meanwhile has rung another bell.
        ring.call.ring();
        Ok(())
    }

    fn set_vring_err(&mut self, index: u8, _bell: Option<File>) -> Result<()> {
        self.ring(index.into()).map(drop)
    }

    fn get_protocol_features(&mut self) -> Result<VhostUserProtocolFeatures> {
        Ok(VhostUserProtocolFeatures::MQ
            | VhostUserProtocolFeatures::REPLY_ACK
            | VhostUserProtocolFeatures::BACKEND_REQ
            | VhostUserProtocolFeatures::CONFIG
            | VhostUserProtocolFeatures::INFLIGHT_SHMFD)
    }

    fn set_protocol_features(&mut self, _features: u64) -> Result<()> {
        Ok(())
    }

    fn get_queue_num(&mut self) -> Result<u64> {
        Ok(self.rings.len() as u64)
    }

    fn set_vring_enable(&mut self, index: u32, is_enabled: bool) -> Result<()> {
        if !is_enabled {
            self.stop(index)?;
        }
        self.ring(index)?.is_enabled = is_enabled;
        self.serve(index)
    }

    fn get_config(
        &mut self,
        offset: u32,
        bytes: u32,
        _flags: VhostUserConfigFlags,
    ) -> Result<Vec<u8>> {
        // Machines know of fields that this device has not: they are zeros.
        let mut all = self.cores.config().encode().to_vec();
        all.resize(CONFIG.max(256), 0);
        let begin = offset as usize;
        let end = begin.checked_add(bytes as usize);
        let part = end.and_then(|end| all.get(begin..end));
        part.map_or_else(|| refused("what the device does not tell"), |part| Ok(part.to_vec()))
    }

    fn set_config(
        &mut self,
        _offset: u32,
        _all: &[u8],
        _flags: VhostUserConfigFlags,
    ) -> Result<()> {
        refused("a change of what the device tells")
    }

    fn get_inflight_fd(&mut self, wanted: &VhostUserInflight) -> Result<(VhostUserInflight, File)> {
        let (rings, requests) = (wanted.num_queues, wanted.queue_size);
        if rings == 0 || rings > RINGS || !requests.is_power_of_two() || requests > RING_MAX {
            return refused("memory of such rings");
        }
        let bytes = u64::from(rings) * flight::bytes(requests);
        let file = map::fresh(bytes)?;
        Ok((VhostUserInflight::new(bytes, 0, rings, requests), file))
    }

    fn set_inflight_fd(&mut self, told: &VhostUserInflight, file: File) -> Result<()> {
        let (rings, requests) = (told.num_queues, told.queue_size);
        let bytes = u64::from(rings) * flight::bytes(requests);
        if told.mmap_size < bytes || rings == 0 {
            return refused("less memory than its rings need");
        }
        self.stop_all();
        let memory = map::alone(file, (told.mmap_offset, told.mmap_size))?;
        self.kept = Some((memory, (rings, requests)));
        self.serve_all()
    }

    fn get_max_mem_slots(&mut self) -> Result<u64> {
        refused("parts of memory one by one")
    }

    fn add_mem_region(
        &mut self,
        _region: &VhostUserSingleMemoryRegion,
        _file: File,
        _postcopy: Option<bool>,
    ) -> Result<Option<VhostUserMemoryRegionBase>> {
        refused("parts of memory one by one")
    }

    fn remove_mem_region(&mut self, _region: &VhostUserSingleMemoryRegion) -> Result<()> {
        refused("parts of memory one by one")
    }

    fn set_gpu_socket(&mut self, _backend: GpuBackend) -> Result<()> {
        refused("a socket for pictures")
    }

    fn get_shared_object(&mut self, _uuid: VhostUserSharedMsg) -> Result<File> {
        refused("objects that are shared")
    }

    fn set_device_state_fd(
        &mut self,
        _direction: VhostTransferStateDirection,
        _phase: VhostTransferStatePhase,
        _file: File,
    ) -> Result<Option<File>> {
        refused("a state to be moved")
    }

    fn check_device_state(&mut self) -> Result<()> {
        refused("a state to be moved")
    }

    fn get_shmem_config(&mut self) -> Result<VhostUserShMemConfig> {
        refused("more memory to be shared")
    }

    fn set_log_base(&mut self, _log: &VhostUserLog, _file: File) -> Result<()> {
        refused("a log of what is written")
    }
}
