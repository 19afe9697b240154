//! What a request asks for, and whether it may be asked: pure checks.
//!
//! Invariant: an [`Action`] lies inside the export as it was at the time of the check, is
//! aligned to its blocks, and carries no flag that was not negotiated.

use crate::limits::{REQUEST_BYTES_MAX, UNFRAGMENTED_BYTES};
use crate::wire::{ErrorCode, Request, command, command_flag};
use io::BlockError;

/// What both sides agreed on in the handshake.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Terms {
    /// Replies to reads are structured.
    pub structured: bool,
    /// The client selected `base:allocation`.
    pub allocation: bool,
}

/// The export as it is now.
#[derive(Clone, Copy, Debug)]
pub struct Extent {
    /// Its bytes.
    pub bytes: u64,
    /// Its smallest unit of I/O, a power of two.
    pub block_bytes: u32,
}

/// A request that may be carried out; the range is the request's unless given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Action {
    /// Nothing to do: success.
    Nothing,
    /// Read the range.
    Read,
    /// Write the payload to the range.
    Write {
        /// Durable before the reply.
        fua: bool,
    },
    /// Make completed writes durable.
    Flush,
    /// Give up the whole blocks inside the range.
    Trim {
        /// First block's offset.
        offset: u64,
        /// Bytes of whole blocks.
        bytes: u64,
        /// Durable before the reply.
        fua: bool,
    },
    /// Make the range read as zeros.
    WriteZeroes {
        /// Durable before the reply.
        fua: bool,
    },
    /// Tell which parts of the range are allocated.
    BlockStatus,
}

/// Why a request was not, or not wholly, carried out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Refusal {
    /// For the client.
    pub code: ErrorCode,
    /// For people.
    pub message: &'static str,
    /// Where in the export, if the error has a place.
    pub offset: Option<u64>,
}

impl Refusal {
    const fn new(code: ErrorCode, message: &'static str) -> Self {
        Self { code, message, offset: None }
    }

    /// The refusal for an error of the volume (proto.md, "Error values").
    pub fn of(error: BlockError, kind: u16) -> Self {
        match error {
            BlockError::Bounds => past_end(kind),
            BlockError::Unavailable => {
                Self::new(ErrorCode::Io, "blocks unavailable: too many drives missing")
            }
            BlockError::Stopped => Self::new(ErrorCode::Shutdown, "volume stopped"),
        }
    }

    /// The same with a place.
    pub fn at(self, offset: u64) -> Self {
        Self { offset: Some(offset), ..self }
    }
}

fn past_end(kind: u16) -> Refusal {
    let code = match kind {
        command::WRITE | command::WRITE_ZEROES => ErrorCode::NoSpace,
        _ => ErrorCode::Invalid,
    };
    Refusal::new(code, "range outside the export")
}

fn invalid(message: &'static str) -> Refusal {
    Refusal::new(ErrorCode::Invalid, message)
}

/// Decides what to do for a request. `NBD_CMD_DISC` and writes that are too long never come
/// here: they end the connection.
pub fn admit(request: &Request, extent: Extent, terms: Terms) -> Result<Action, Refusal> {
    check_flags(request, terms)?;
    let fua = request.flags & command_flag::FUA != 0;
    match request.kind {
        command::FLUSH if request.offset == 0 && request.bytes == 0 => Ok(Action::Flush),
        command::FLUSH => Err(invalid("flush takes no range")),
        command::READ => {
            check_read(request)?;
            check_range(request, extent, Action::Read)
        }
        command::WRITE => check_range(request, extent, Action::Write { fua }),
        command::WRITE_ZEROES if request.flags & command_flag::FAST_ZERO != 0 => {
            Err(Refusal::new(ErrorCode::NotSupported, "zeroing is not faster than writing"))
        }
        command::WRITE_ZEROES => check_range(request, extent, Action::WriteZeroes { fua }),
        command::TRIM => trim(request, extent, fua),
        command::BLOCK_STATUS if !terms.allocation => {
            Err(invalid("no metadata context was selected"))
        }
        command::BLOCK_STATUS if request.bytes == 0 => Err(invalid("empty range")),
        command::BLOCK_STATUS => check_range(request, extent, Action::BlockStatus),
        _ => Err(invalid("unknown command")),
    }
}

/// "Command flags": a flag that is not documented for a command is an error; FUA is allowed on
/// every command.
fn check_flags(request: &Request, terms: Terms) -> Result<(), Refusal> {
    let more = match request.kind {
        command::READ if terms.structured => command_flag::DF,
        command::WRITE_ZEROES => command_flag::NO_HOLE | command_flag::FAST_ZERO,
        command::BLOCK_STATUS => command_flag::REQ_ONE,
        _ => 0,
    };
    if request.flags & !(command_flag::FUA | more) == 0 {
        Ok(())
    } else {
        Err(invalid("flag not allowed for this command"))
    }
}

fn check_read(request: &Request) -> Result<(), Refusal> {
    if request.bytes > REQUEST_BYTES_MAX {
        return Err(invalid("longer than the maximum block size"));
    }
    if request.flags & command_flag::DF != 0 && request.bytes > UNFRAGMENTED_BYTES {
        return Err(Refusal::new(ErrorCode::Overflow, "too long for one chunk"));
    }
    Ok(())
}

fn check_inside(request: &Request, extent: Extent) -> Result<u64, Refusal> {
    let end = request.offset.checked_add(u64::from(request.bytes));
    end.filter(|end| *end <= extent.bytes).ok_or(past_end(request.kind))
}

fn check_range(request: &Request, extent: Extent, action: Action) -> Result<Action, Refusal> {
    check_inside(request, extent)?;
    let block = u64::from(extent.block_bytes);
    if !request.offset.is_multiple_of(block) || !u64::from(request.bytes).is_multiple_of(block) {
        return Err(invalid("not aligned to the minimum block size"));
    }
    Ok(if request.bytes == 0 { Action::Nothing } else { action })
}

/// A trim is a hint: the parts of blocks at its ends are left alone.
fn trim(request: &Request, extent: Extent, fua: bool) -> Result<Action, Refusal> {
    let end = check_inside(request, extent)?;
    let block = u64::from(extent.block_bytes);
    let end = end - end % block;
    match request.offset.checked_next_multiple_of(block) {
        Some(offset) if offset < end => Ok(Action::Trim { offset, bytes: end - offset, fua }),
        _ => Ok(Action::Nothing),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const EXTENT: Extent = Extent { bytes: 1 << 20, block_bytes: 4096 };
    const ALL: Terms = Terms { structured: true, allocation: true };

    fn ask(kind: u16, flags: u16, offset: u64, bytes: u32) -> Result<Action, ErrorCode> {
        let request = Request { flags, kind, cookie: 0, offset, bytes };
        admit(&request, EXTENT, ALL).map_err(|refusal| refusal.code)
    }

    #[test]
    fn ranges_are_checked_against_end_and_blocks() {
        assert_eq!(ask(command::READ, 0, (1 << 20) - 4096, 4096), Ok(Action::Read));
        assert_eq!(ask(command::READ, 0, 1 << 20, 4096), Err(ErrorCode::Invalid));
        assert_eq!(ask(command::WRITE, 0, 1 << 20, 4096), Err(ErrorCode::NoSpace));
        assert_eq!(ask(command::WRITE_ZEROES, 0, u64::MAX, 4096), Err(ErrorCode::NoSpace));
        assert_eq!(ask(command::TRIM, 0, u64::MAX, u32::MAX), Err(ErrorCode::Invalid));
        assert_eq!(ask(command::READ, 0, 512, 4096), Err(ErrorCode::Invalid));
        assert_eq!(ask(command::WRITE, 0, 0, 512), Err(ErrorCode::Invalid));
        assert_eq!(ask(command::WRITE, 0, 0, 0), Ok(Action::Nothing));
        assert_eq!(ask(command::BLOCK_STATUS, 0, 0, 0), Err(ErrorCode::Invalid));
    }

    #[test]
    fn flags_must_belong_to_the_command() {
        let fua = command_flag::FUA;
        assert_eq!(ask(command::WRITE, fua, 0, 4096), Ok(Action::Write { fua: true }));
        assert_eq!(ask(command::READ, fua, 0, 4096), Ok(Action::Read));
        assert_eq!(ask(command::WRITE, command_flag::DF, 0, 4096), Err(ErrorCode::Invalid));
        assert_eq!(ask(command::READ, command_flag::DF, 0, 65536), Ok(Action::Read));
        assert_eq!(ask(command::READ, command_flag::DF, 0, 69632), Err(ErrorCode::Overflow));
        let fast = command_flag::FAST_ZERO;
        assert_eq!(ask(command::WRITE_ZEROES, fast, 0, 4096), Err(ErrorCode::NotSupported));
        assert_eq!(ask(command::READ, 1 << 15, 0, 4096), Err(ErrorCode::Invalid));
        let df = Request { flags: 4, kind: 0, cookie: 0, offset: 0, bytes: 4096 };
        assert!(admit(&df, EXTENT, Terms::default()).is_err());
    }

    #[test]
    fn a_trim_shrinks_to_whole_blocks() {
        let whole = Action::Trim { offset: 4096, bytes: 4096, fua: false };
        assert_eq!(ask(command::TRIM, 0, 1, 8192 + 5), Ok(whole));
        assert_eq!(ask(command::TRIM, 0, 4096, 4096), Ok(whole));
        assert_eq!(ask(command::TRIM, 0, 1, 8000), Ok(Action::Nothing));
        assert_eq!(ask(command::TRIM, 0, (1 << 20) - 1, 1), Ok(Action::Nothing));
    }

    #[test]
    fn status_needs_a_context_and_unknown_commands_are_refused() {
        let status =
            Request { flags: 8, kind: command::BLOCK_STATUS, cookie: 0, offset: 0, bytes: 4096 };
        assert_eq!(admit(&status, EXTENT, ALL), Ok(Action::BlockStatus));
        let terms = Terms { structured: true, allocation: false };
        assert!(admit(&status, EXTENT, terms).is_err());
        assert_eq!(ask(5, 0, 0, 4096), Err(ErrorCode::Invalid));
        assert_eq!(ask(command::FLUSH, 0, 0, 1), Err(ErrorCode::Invalid));
    }
}
