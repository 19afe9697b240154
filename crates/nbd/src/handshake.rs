//! The handshake: greeting, then options until one chooses an export.
//!
//! States: *greeting* (server speaks, client answers with its flags) → *haggling* (option and
//! replies, at most [`OPTIONS`] times) → *agreed* (`NBD_OPT_GO` or `NBD_OPT_EXPORT_NAME` named
//! an export) or *ended* (abort, broken framing, closed). An option whose data make no sense
//! gets an error reply and haggling goes on, as its framing is intact.
//!
//! Invariant: a metadata context counts only for the export it was selected for.

use crate::command::Terms;
use crate::limits::{NAME_BYTES, OPTION_BYTES, OPTIONS, REQUEST_BYTES_MAX};
use crate::wire::{self, Fields, OptionHeader, info, option, option_reply, transmission_flag};
use crate::{Closed, EndReason, Exports, Transport, Violation};
use front::Fence;
use io::Blocks;
use std::io::IoSlice;
use std::sync::Arc;

/// The outcome: what is served and how.
pub(crate) struct Agreed<V> {
    pub volume: V,
    pub fence: Arc<Fence>,
    pub terms: Terms,
}

impl From<Closed> for EndReason {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

impl From<Violation> for EndReason {
    fn from(violation: Violation) -> Self {
        Self::Violation(violation)
    }
}

/// An export that was opened: its volume and that one's fence.
type Opened<V> = (V, Arc<Fence>);

/// An error reply to an option.
struct Error(u32, &'static str);

const MALFORMED: Error = Error(option_reply::ERR_INVALID, "the option is malformed");
const UNKNOWN_EXPORT: Error = Error(option_reply::ERR_UNKNOWN, "there is no such export");

/// What an option leads to.
enum Next<V> {
    Haggle,
    Enter(V),
    End(EndReason),
}

/// Runs the handshake. `scratch` has room for [`OPTION_BYTES`].
pub(crate) async fn negotiate<T: Transport, X: Exports>(
    transport: &T,
    exports: &X,
    scratch: &mut [u8],
) -> Result<Agreed<X::Volume>, EndReason> {
    let flags = greet(transport).await?;
    let mut haggle = Haggle {
        exports,
        no_zeroes: flags & wire::FLAG_NO_ZEROES != 0,
        structured: false,
        allocation_of: None,
        out: Vec::new(),
    };
    for _ in 0..OPTIONS {
        let mut raw = [0; wire::OPTION_HEADER_BYTES];
        transport.read_exact(&mut raw).await?;
        let header = OptionHeader::decode(&raw).ok_or(Violation::OptionMagic)?;
        let bytes = header.bytes as usize;
        if bytes > OPTION_BYTES {
            return Err(Violation::OptionTooLong.into());
        }
        let data = &mut scratch[..bytes];
        transport.read_exact(data).await?;
        if flags & wire::FLAG_FIXED_NEWSTYLE == 0 && header.option != option::EXPORT_NAME {
            return Err(Violation::NotFixedNewstyle.into());
        }
        let next = haggle.option(header.option, data);
        if !haggle.out.is_empty() {
            transport.write_all(&mut [IoSlice::new(&haggle.out)]).await?;
            haggle.out.clear();
        }
        match next {
            Next::Haggle => {}
            Next::Enter(agreed) => return Ok(agreed),
            Next::End(reason) => return Err(reason),
        }
    }
    Err(Violation::TooManyOptions.into())
}

/// "Newstyle negotiation": sends the greeting, gives the client's flags.
async fn greet<T: Transport>(transport: &T) -> Result<u16, EndReason> {
    let offered = wire::FLAG_FIXED_NEWSTYLE | wire::FLAG_NO_ZEROES;
    let mut greeting = [0; 18];
    greeting[..8].copy_from_slice(&wire::INIT_MAGIC.to_be_bytes());
    greeting[8..16].copy_from_slice(&wire::OPTION_MAGIC.to_be_bytes());
    greeting[16..].copy_from_slice(&offered.to_be_bytes());
    transport.write_all(&mut [IoSlice::new(&greeting)]).await?;
    let mut raw = [0; 4];
    transport.read_exact(&mut raw).await?;
    let flags = u32::from_be_bytes(raw);
    match u16::try_from(flags) {
        Ok(flags) if flags & !offered == 0 => Ok(flags),
        _ => Err(Violation::ClientFlags.into()),
    }
}

/// The state between options.
struct Haggle<'a, X> {
    exports: &'a X,
    no_zeroes: bool,
    structured: bool,
    /// The export, by its own name, for which `base:allocation` was selected.
    allocation_of: Option<String>,
    /// Replies to the option at hand.
    out: Vec<u8>,
}

impl<X: Exports> Haggle<'_, X> {
    fn option(&mut self, code: u32, data: &[u8]) -> Next<Agreed<X::Volume>> {
        let outcome = match code {
            option::EXPORT_NAME => return self.export_name(data),
            option::ABORT => {
                self.reply(code, option_reply::ACK, &[]);
                return Next::End(EndReason::Aborted);
            }
            option::GO => match self.info(code, data) {
                Ok(agreed) => {
                    self.reply(code, option_reply::ACK, &[]);
                    return Next::Enter(agreed);
                }
                Err(error) => Err(error),
            },
            option::INFO => self.info(code, data).map(|_| ()),
            option::LIST => self.list(data),
            option::STRUCTURED_REPLY => self.structured_reply(data),
            option::LIST_META_CONTEXT | option::SET_META_CONTEXT => self.contexts(code, data),
            option::STARTTLS => {
                Err(Error(option_reply::ERR_POLICY, "TLS is not offered on this socket"))
            }
            _ => Err(Error(option_reply::ERR_UNSUP, "this option is not supported")),
        };
        match outcome {
            Ok(()) => self.reply(code, option_reply::ACK, &[]),
            Err(Error(kind, text)) => self.reply(code, kind, &[text.as_bytes()]),
        }
        Next::Haggle
    }

    fn reply(&mut self, code: u32, kind: u32, parts: &[&[u8]]) {
        wire::option_reply(&mut self.out, code, kind, parts);
    }

    /// The export a client means, with its own name.
    fn find(&self, name: &[u8]) -> Option<(String, Opened<X::Volume>)> {
        let name = core::str::from_utf8(name).ok()?;
        if let Some(opened) = self.exports.open(name) {
            return Some((name.to_owned(), opened));
        }
        if !name.is_empty() {
            return None;
        }
        let mut names = self.exports.list();
        let only = names.pop().filter(|_| names.is_empty())?;
        let opened = self.exports.open(&only)?;
        Some((only, opened))
    }

    fn flags(&self) -> u16 {
        use transmission_flag as flag;
        let always = flag::HAS_FLAGS | flag::FLUSH | flag::FUA | flag::TRIM;
        let always = always | flag::WRITE_ZEROES | flag::MULTI_CONN | flag::FAST_ZERO;
        if self.structured { always | flag::DF } else { always }
    }

    fn agree(&self, name: &str, (volume, fence): Opened<X::Volume>) -> Agreed<X::Volume> {
        let allocation = self.allocation_of.as_deref() == Some(name);
        Agreed { volume, fence, terms: Terms { structured: self.structured, allocation } }
    }

    /// `NBD_OPT_EXPORT_NAME`: succeeds or ends the session.
    fn export_name(&mut self, name: &[u8]) -> Next<Agreed<X::Volume>> {
        let found = if name.len() <= NAME_BYTES { self.find(name) } else { None };
        let Some((name, opened)) = found else {
            return Next::End(EndReason::UnknownExport);
        };
        self.out.extend_from_slice(&opened.0.bytes().to_be_bytes());
        self.out.extend_from_slice(&self.flags().to_be_bytes());
        if !self.no_zeroes {
            self.out.extend_from_slice(&[0; wire::EXPORT_NAME_ZEROES]);
        }
        Next::Enter(self.agree(&name, opened))
    }

    /// `NBD_OPT_INFO` and `NBD_OPT_GO`: the information, without the final acknowledgement.
    fn info(&mut self, code: u32, data: &[u8]) -> Result<Agreed<X::Volume>, Error> {
        let mut fields = Fields(data);
        let name = fields.string().ok_or(MALFORMED)?;
        let asked = fields.u16().ok_or(MALFORMED)?;
        let asked = fields.bytes(usize::from(asked) * 2).ok_or(MALFORMED)?;
        finished(&fields)?;
        check_name(name)?;
        let (name, opened) = self.find(name).ok_or(UNKNOWN_EXPORT)?;
        self.describe(code, &opened.0);
        if asked.chunks_exact(2).any(|kind| kind == info::NAME.to_be_bytes()) {
            let kind = info::NAME.to_be_bytes();
            self.reply(code, option_reply::INFO, &[&kind, name.as_bytes()]);
        }
        Ok(self.agree(&name, opened))
    }

    /// Size, flags and block sizes. Block sizes are told whether asked for or not, as they are
    /// not the protocol's defaults.
    fn describe(&mut self, code: u32, volume: &X::Volume) {
        let (size, flags) = (volume.bytes().to_be_bytes(), self.flags().to_be_bytes());
        let kind = info::EXPORT.to_be_bytes();
        self.reply(code, option_reply::INFO, &[&kind, &size, &flags]);
        let [minimum, preferred, maximum] = block_sizes(volume).map(u32::to_be_bytes);
        let kind = info::BLOCK_SIZE.to_be_bytes();
        self.reply(code, option_reply::INFO, &[&kind, &minimum, &preferred, &maximum]);
    }

    fn list(&mut self, data: &[u8]) -> Result<(), Error> {
        finished(&Fields(data))?;
        for name in self.exports.list() {
            let bytes = (name.len() as u32).to_be_bytes();
            self.reply(option::LIST, option_reply::SERVER, &[&bytes, name.as_bytes()]);
        }
        Ok(())
    }

    fn structured_reply(&mut self, data: &[u8]) -> Result<(), Error> {
        finished(&Fields(data))?;
        self.structured = true;
        Ok(())
    }

    /// `NBD_OPT_LIST_META_CONTEXT` and `NBD_OPT_SET_META_CONTEXT`. Listing without a query lists
    /// all; selecting without a query selects none.
    fn contexts(&mut self, code: u32, data: &[u8]) -> Result<(), Error> {
        let set = code == option::SET_META_CONTEXT;
        if set {
            self.allocation_of = None;
        }
        if !self.structured {
            let text = "structured replies must be negotiated first";
            return Err(Error(option_reply::ERR_INVALID, text));
        }
        let mut fields = Fields(data);
        let name = fields.string().ok_or(MALFORMED)?;
        let queries = fields.u32().ok_or(MALFORMED)?;
        let mut matched = !set && queries == 0;
        for _ in 0..queries {
            let query = fields.string().ok_or(MALFORMED)?;
            matched |= query == wire::BASE_ALLOCATION;
            matched |= !set && query == wire::BASE_NAMESPACE;
        }
        finished(&fields)?;
        check_name(name)?;
        let (name, _) = self.find(name).ok_or(UNKNOWN_EXPORT)?;
        if matched {
            let id = if set { wire::BASE_ALLOCATION_ID } else { 0 };
            let parts = [&id.to_be_bytes()[..], wire::BASE_ALLOCATION];
            self.reply(code, option_reply::META_CONTEXT, &parts);
            if set {
                self.allocation_of = Some(name);
            }
        }
        Ok(())
    }
}

fn finished(fields: &Fields<'_>) -> Result<(), Error> {
    if fields.0.is_empty() { Ok(()) } else { Err(MALFORMED) }
}

fn check_name(name: &[u8]) -> Result<(), Error> {
    if name.len() <= NAME_BYTES {
        Ok(())
    } else {
        Err(Error(option_reply::ERR_TOO_BIG, "the export name is too long"))
    }
}

/// "Block size constraints": minimum = one block, preferred = one strip as a power of two (a
/// stripe often is none), maximum = what one request may carry.
fn block_sizes(volume: &impl Blocks) -> [u32; 3] {
    let minimum = volume.block_bytes();
    let strip = volume.strip_bytes().clamp(1, REQUEST_BYTES_MAX);
    let preferred = (1 << strip.ilog2()).max(minimum).max(512);
    [minimum, preferred, REQUEST_BYTES_MAX]
}
