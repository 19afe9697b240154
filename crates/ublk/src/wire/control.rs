//! Commands to `/dev/ublk-control`: a device is added, set up, started, recovered, stopped and
//! deleted. Each is a `ublksrv_ctrl_cmd`, in an entry of 128 bytes, with a buffer for some.

/// Bytes of what a command says.
pub const COMMAND: usize = 32;
/// Bytes of what is told of a device: `ublksrv_ctrl_dev_info`.
pub const INFO: usize = 64;
/// Bytes of its parameters, as far as they are set here: `ublk_params` up to those of discard.
pub const PARAMETERS: usize = 60;

/// `_IOR` or `_IOWR('u', NUMBER, struct ublksrv_ctrl_cmd)`.
const fn code(direction: u32, number: u32) -> u32 {
    direction << 30 | (COMMAND as u32) << 16 | 0x75 << 8 | number
}

/// What a command does.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Code {
    /// Tells what the kernel can do (8 bytes).
    Features,
    /// Tells of a device ([`INFO`] bytes).
    Info,
    /// Makes one; its number is told in the same bytes.
    Add,
    /// Says what it is like ([`PARAMETERS`] bytes).
    SetParameters,
    /// Shows it, once every request was asked for by the process `data`.
    Start,
    /// Its server has gone: another may come.
    BeginRecovery,
    /// Another has come, the process `data`.
    EndRecovery,
    /// Ends it: requests that wait get errors.
    Stop,
    /// Forgets it, once nobody has it open any more, for which it does not wait.
    Delete,
}

impl Code {
    /// Its number.
    pub const fn number(self) -> u32 {
        match self {
            Self::Features => code(2, 0x13),
            Self::Info => code(2, 0x02),
            Self::Add => code(3, 0x04),
            Self::SetParameters => code(3, 0x08),
            Self::Start => code(3, 0x06),
            Self::BeginRecovery => code(3, 0x10),
            Self::EndRecovery => code(3, 0x11),
            Self::Stop => code(3, 0x07),
            Self::Delete => code(2, 0x14),
        }
    }
}

/// No queue is meant, or no device is known yet.
pub const NONE: u32 = u32::MAX;

/// A command's bytes: for which device, with which buffer.
pub fn command(device: u32, (address, bytes): (u64, u16), data: u64) -> [u8; COMMAND] {
    let mut all = [0; COMMAND];
    all[..4].copy_from_slice(&device.to_le_bytes());
    all[4..6].copy_from_slice(&u16::MAX.to_le_bytes());
    all[6..8].copy_from_slice(&bytes.to_le_bytes());
    all[8..16].copy_from_slice(&address.to_le_bytes());
    all[16..24].copy_from_slice(&data.to_le_bytes());
    all
}

/// What a server can do.
pub mod feature {
    /// A device outlives its server (`UBLK_F_USER_RECOVERY`).
    pub const RECOVERY: u64 = 1 << 3;
    /// What the server had not answered is asked again (`UBLK_F_USER_RECOVERY_REISSUE`).
    pub const REISSUE: u64 = 1 << 4;
    /// Commands have the numbers of ioctl (`UBLK_F_CMD_IOCTL_ENCODE`).
    pub const ENCODED: u64 = 1 << 6;
    /// Payload is copied by the server (`UBLK_F_USER_COPY`).
    pub const USER_COPY: u64 = 1 << 7;
    /// All that is needed here.
    pub const NEEDED: u64 = RECOVERY | REISSUE | ENCODED | USER_COPY;
}

/// How a device is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum DeviceState {
    /// It is not shown.
    Dead,
    /// It is served.
    Live,
    /// Its server has gone, and requests wait for another.
    Quiesced,
    /// What else there may be.
    Other(u16),
}

/// What is told of a device.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Info {
    /// Its queues.
    pub queues: u16,
    /// Requests of each.
    pub depth: u16,
    /// How it is.
    pub state: DeviceState,
    /// Most bytes of a request.
    pub bytes_most: u32,
    /// Its number, or [`NONE`].
    pub device: u32,
    /// The process that serves it.
    pub server: i32,
    /// What its server can do ([`feature`]).
    pub features: u64,
    /// What its server keeps there.
    pub own: u64,
}

impl Info {
    /// Its bytes.
    pub fn encode(&self) -> [u8; INFO] {
        let state = match self.state {
            DeviceState::Dead => 0,
            DeviceState::Live => 1,
            DeviceState::Quiesced => 2,
            DeviceState::Other(state) => state,
        };
        let mut all = [0; INFO];
        all[..2].copy_from_slice(&self.queues.to_le_bytes());
        all[2..4].copy_from_slice(&self.depth.to_le_bytes());
        all[4..6].copy_from_slice(&state.to_le_bytes());
        all[8..12].copy_from_slice(&self.bytes_most.to_le_bytes());
        all[12..16].copy_from_slice(&self.device.to_le_bytes());
        all[16..20].copy_from_slice(&self.server.to_le_bytes());
        all[24..32].copy_from_slice(&self.features.to_le_bytes());
        all[32..40].copy_from_slice(&self.own.to_le_bytes());
        all
    }

    /// Of its bytes.
    pub fn decode(all: &[u8; INFO]) -> Self {
        let number = |at: usize, bytes: usize| {
            let own = all[at..at + bytes].iter().rev();
            own.fold(0, |sum: u64, byte| sum << 8 | u64::from(*byte))
        };
        let state = match number(4, 2) as u16 {
            0 => DeviceState::Dead,
            1 => DeviceState::Live,
            2 => DeviceState::Quiesced,
            other => DeviceState::Other(other),
        };
        Self {
            queues: number(0, 2) as u16,
            depth: number(2, 2) as u16,
            state,
            bytes_most: number(8, 4) as u32,
            device: number(12, 4) as u32,
            server: number(16, 4) as u32 as i32,
            features: number(24, 8),
            own: number(32, 8),
        }
    }
}

/// What a device is like.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Parameters {
    /// Its bytes.
    pub bytes: u64,
    /// Its smallest unit, a power of two.
    pub block_bytes: u32,
    /// What requests are best aligned to, a power of two.
    pub best_bytes: u32,
    /// Most bytes of a read or write.
    pub bytes_most: u32,
    /// Whether what was written needs a flush to be durable.
    pub volatile_cache: bool,
    /// What is given up as a whole.
    pub discard_bytes: u32,
    /// Most bytes that one request discards or makes zero.
    pub zeroed_most: u32,
}

/// `UBLK_ATTR_VOLATILE_CACHE` and `UBLK_ATTR_FUA`.
const CACHE: u32 = 1 << 2 | 1 << 3;
/// `UBLK_PARAM_TYPE_BASIC` and `UBLK_PARAM_TYPE_DISCARD`.
const TYPES: u32 = 1 | 1 << 1;

impl Parameters {
    /// Their bytes.
    pub fn encode(&self) -> [u8; PARAMETERS] {
        const SECTOR: u32 = super::SECTOR as u32;
        let shift = |bytes: u32| bytes.max(1).ilog2() as u8;
        let mut all = [0; PARAMETERS];
        let mut put = |at: usize, bytes: &[u8]| all[at..at + bytes.len()].copy_from_slice(bytes);
        put(0, &(PARAMETERS as u32).to_le_bytes());
        put(4, &TYPES.to_le_bytes());
        put(8, &if self.volatile_cache { CACHE } else { 0 }.to_le_bytes());
        let block = shift(self.block_bytes);
        put(12, &[block, block, shift(self.best_bytes), block]);
        put(16, &(self.bytes_most / SECTOR).to_le_bytes());
        put(24, &(self.bytes / u64::from(SECTOR)).to_le_bytes());
        put(44, &self.discard_bytes.to_le_bytes());
        put(48, &(self.zeroed_most / SECTOR).to_le_bytes());
        put(52, &(self.zeroed_most / SECTOR).to_le_bytes());
        put(56, &1u16.to_le_bytes());
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_those_of_the_header() {
        assert_eq!(Code::Add.number(), 0xc020_7504);
        assert_eq!(Code::Info.number(), 0x8020_7502);
        assert_eq!(Code::Features.number(), 0x8020_7513);
        assert_eq!(Code::Delete.number(), 0x8020_7514);
        let all = command(7, (0x1122, 64), 9);
        assert_eq!(all[..8], [7, 0, 0, 0, 0xff, 0xff, 64, 0]);
        assert_eq!((all[8..10].to_vec(), all[16]), (vec![0x22, 0x11], 9));
    }

    #[test]
    fn what_is_told_of_a_device_comes_back() {
        for state in
            [DeviceState::Dead, DeviceState::Live, DeviceState::Quiesced, DeviceState::Other(3)]
        {
            let info = Info {
                queues: 2,
                depth: 64,
                state,
                bytes_most: 1 << 20,
                device: NONE,
                server: -1,
                features: feature::NEEDED,
                own: 77,
            };
            assert_eq!(Info::decode(&info.encode()), info);
        }
    }

    #[test]
    fn parameters_have_their_places() {
        let own = Parameters {
            bytes: 1 << 30,
            block_bytes: 4096,
            best_bytes: 65_536,
            bytes_most: 1 << 20,
            volatile_cache: true,
            discard_bytes: 3 << 20,
            zeroed_most: 1 << 30,
        };
        let all = own.encode();
        assert_eq!(all[..12], [60, 0, 0, 0, 3, 0, 0, 0, 12, 0, 0, 0]);
        assert_eq!(all[12..16], [12, 12, 16, 12]);
        assert_eq!(all[16..20], 2048u32.to_le_bytes());
        assert_eq!(all[24..32], (1u64 << 21).to_le_bytes());
        assert_eq!(all[44..48], (3u32 << 20).to_le_bytes());
    }
}
