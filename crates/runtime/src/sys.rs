//! Thin, safe wrappers of the system calls that the standard library does not offer.
//!
//! Invariant: every function takes borrowed descriptors and slices, so that nothing outlives the
//! call; errors are `io::Error` with the kernel's number.
#![allow(unsafe_code)]

use std::io::{self, IoSlice};
use std::os::fd::{AsRawFd, BorrowedFd, FromRawFd, OwnedFd, RawFd};

/// The kernel's answer as a result.
fn check(answer: isize) -> io::Result<usize> {
    if answer < 0 { Err(io::Error::last_os_error()) } else { Ok(answer.unsigned_abs()) }
}

/// Takes ownership of a descriptor that the kernel just made.
fn own(answer: libc::c_int) -> io::Result<OwnedFd> {
    check(answer as isize)?;
    // SAFETY: the kernel returned a new descriptor and nobody else knows it.
    Ok(unsafe { OwnedFd::from_raw_fd(answer) })
}

/// A non-blocking eventfd.
pub(crate) fn eventfd() -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    own(unsafe { libc::eventfd(0, libc::EFD_CLOEXEC | libc::EFD_NONBLOCK) })
}

/// Makes an eventfd readable.
pub(crate) fn eventfd_write(fd: &OwnedFd) {
    let one = 1u64;
    // SAFETY: 8 readable bytes.
    unsafe { libc::write(fd.as_raw_fd(), (&raw const one).cast(), 8) };
}

/// Makes an eventfd unreadable.
pub(crate) fn eventfd_read(fd: &OwnedFd) {
    let mut count = 0u64;
    // SAFETY: 8 writable bytes.
    unsafe { libc::read(fd.as_raw_fd(), (&raw mut count).cast(), 8) };
}

/// An epoll instance.
pub(crate) fn epoll() -> io::Result<OwnedFd> {
    // SAFETY: no pointers.
    own(unsafe { libc::epoll_create1(libc::EPOLL_CLOEXEC) })
}

/// `epoll_ctl`; `events` 0 with `EPOLL_CTL_DEL`.
pub(crate) fn epoll_ctl(
    epoll: &OwnedFd,
    op: libc::c_int,
    fd: RawFd,
    events: u32,
) -> io::Result<()> {
    let mut event = libc::epoll_event { events, u64: fd as u64 };
    // SAFETY: `event` lives through the call.
    let answer = unsafe { libc::epoll_ctl(epoll.as_raw_fd(), op, fd, &mut event) };
    check(answer as isize).map(drop)
}

/// `epoll_pwait2`'s job with a nanosecond timeout rounded up to milliseconds; `None` waits
/// for ever. Interruptions return no events.
pub(crate) fn epoll_wait(
    epoll: &OwnedFd,
    events: &mut [libc::epoll_event],
    timeout: Option<u64>,
) -> usize {
    let millis = timeout.map_or(-1, |n| n.div_ceil(1_000_000).min(i32::MAX as u64) as i32);
    // SAFETY: the pointer and the count describe `events`.
    let answer = unsafe {
        libc::epoll_wait(epoll.as_raw_fd(), events.as_mut_ptr(), events.len() as i32, millis)
    };
    check(answer as isize).unwrap_or(0)
}

/// Receives what is there; `WouldBlock` if nothing is.
pub(crate) fn receive(fd: BorrowedFd<'_>, into: &mut [u8]) -> io::Result<usize> {
    // SAFETY: the pointer and the length describe `into`.
    check(unsafe {
        libc::recv(fd.as_raw_fd(), into.as_mut_ptr().cast(), into.len(), libc::MSG_DONTWAIT)
    })
}

/// Sends what fits, without a signal on a broken pipe; `WouldBlock` if nothing does.
pub(crate) fn send(fd: BorrowedFd<'_>, data: &[IoSlice<'_>]) -> io::Result<usize> {
    // SAFETY: an all-zero `msghdr` is valid.
    let mut message: libc::msghdr = unsafe { core::mem::zeroed() };
    message.msg_iov = data.as_ptr().cast_mut().cast();
    message.msg_iovlen = data.len().min(libc::UIO_MAXIOV as usize) as _;
    let flags = libc::MSG_DONTWAIT | libc::MSG_NOSIGNAL;
    // SAFETY: `IoSlice` has `iovec`'s layout; the kernel only reads through `msg_iov`.
    check(unsafe { libc::sendmsg(fd.as_raw_fd(), &message, flags) })
}

/// Accepts a connection, non-blocking and closed on exec.
pub(crate) fn accept(fd: BorrowedFd<'_>) -> io::Result<OwnedFd> {
    let flags = libc::SOCK_NONBLOCK | libc::SOCK_CLOEXEC;
    // SAFETY: null addresses are allowed.
    own(unsafe {
        libc::accept4(fd.as_raw_fd(), core::ptr::null_mut(), core::ptr::null_mut(), flags)
    })
}

/// Whether something keeps the machine's clock right, by the kernel's word (adjtimex(2)): a clock
/// that nobody has set for long, or ever, counts as not kept.
///
/// # Errors
/// The kernel's.
pub fn is_clock_kept() -> io::Result<bool> {
    // SAFETY: an all-zero `timex` is valid, and asks only.
    let mut clock: libc::timex = unsafe { core::mem::zeroed() };
    // SAFETY: `clock` lives through the call.
    let state = check(unsafe { libc::adjtimex(&raw mut clock) } as isize)?;
    Ok(state != libc::TIME_ERROR.unsigned_abs() as usize)
}

/// Sets an option of a socket. Sockets that have no such option refuse, which is fine.
fn set_option(fd: BorrowedFd<'_>, level: libc::c_int, option: libc::c_int, value: libc::c_int) {
    // SAFETY: the pointer and the size describe `value`.
    unsafe {
        libc::setsockopt(
            fd.as_raw_fd(),
            level,
            option,
            (&raw const value).cast(),
            size_of::<libc::c_int>() as _,
        )
    };
}

/// Sends small messages at once (TCP_NODELAY).
pub(crate) fn no_delay(fd: BorrowedFd<'_>) {
    set_option(fd, libc::IPPROTO_TCP, libc::TCP_NODELAY, 1);
}

/// Seconds of silence after which TCP asks the peer whether it is there.
const ASK_AFTER: libc::c_int = 60;
/// Seconds between two such questions.
const ASK_EVERY: libc::c_int = 10;
/// Questions without an answer after which the connection ends.
const ASK_TIMES: libc::c_int = 6;

/// Ends a silent connection whose peer has vanished, within two minutes. While bytes wait to be
/// acknowledged the kernel's retransmissions decide, a quarter of an hour. `TCP_USER_TIMEOUT` would
/// make that shorter, but would also end the connections of those who are there and do not read.
pub(crate) fn keep_alive(fd: BorrowedFd<'_>) {
    set_option(fd, libc::IPPROTO_TCP, libc::TCP_KEEPIDLE, ASK_AFTER);
    set_option(fd, libc::IPPROTO_TCP, libc::TCP_KEEPINTVL, ASK_EVERY);
    set_option(fd, libc::IPPROTO_TCP, libc::TCP_KEEPCNT, ASK_TIMES);
    set_option(fd, libc::SOL_SOCKET, libc::SO_KEEPALIVE, 1);
}

/// Ends both directions of a connection.
pub(crate) fn shutdown(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_RDWR) } as isize).map(drop)
}

/// Whether the peer has ended its direction, or the connection, whatever is left to be received.
pub(crate) fn is_over(fd: BorrowedFd<'_>) -> bool {
    let mut asked = libc::pollfd { fd: fd.as_raw_fd(), events: libc::POLLRDHUP, revents: 0 };
    // SAFETY: the pointer and the count describe `asked`; without a timeout it does not wait.
    let told = unsafe { libc::poll(&raw mut asked, 1, 0) };
    told > 0 && asked.revents != 0
}

/// Whether something went wrong at the other end for good (poll(2): `POLLERR`, `POLLHUP`).
pub(crate) fn has_failed(fd: BorrowedFd<'_>) -> bool {
    let mut asked = libc::pollfd { fd: fd.as_raw_fd(), events: 0, revents: 0 };
    // SAFETY: the pointer and the count describe `asked`; without a timeout it does not wait.
    let told = unsafe { libc::poll(&raw mut asked, 1, 0) };
    told > 0 && asked.revents != 0
}

/// `FUSE_DEV_IOC_CLONE`: `_IOR(229, 0, u32)` (include/uapi/linux/fuse.h).
const CLONE: libc::c_ulong = 0x8004_e500;

/// Has a fresh descriptor of `/dev/fuse` ask for the requests of a mounted one, too.
pub(crate) fn clone_request_device(
    mounted: BorrowedFd<'_>,
    fresh: BorrowedFd<'_>,
) -> io::Result<()> {
    let number = mounted.as_raw_fd().unsigned_abs();
    // SAFETY: the kernel reads the number's four bytes, which live through the call.
    let answer = unsafe { libc::ioctl(fresh.as_raw_fd(), CLONE as _, &raw const number) };
    check(answer as isize).map(drop)
}

/// Memory that the kernel writes and this process reads, as long as it is here.
pub(crate) struct Shown {
    at: *const u8,
    bytes: usize,
}

// SAFETY: it is memory of the process, which every thread may read.
unsafe impl Send for Shown {}

impl Shown {
    /// Maps so many bytes of a device, from some byte on.
    pub(crate) fn map(fd: BorrowedFd<'_>, offset: u64, bytes: usize) -> io::Result<Self> {
        let (kind, none) = (libc::MAP_SHARED | libc::MAP_POPULATE, core::ptr::null_mut());
        let offset = offset as libc::off_t;
        // SAFETY: a fresh place of the kernel's choice, which nobody else knows.
        let at = unsafe { libc::mmap(none, bytes, libc::PROT_READ, kind, fd.as_raw_fd(), offset) };
        match at {
            libc::MAP_FAILED => Err(io::Error::last_os_error()),
            at => Ok(Self { at: at.cast_const().cast(), bytes }),
        }
    }

    /// Some bytes of it, as they are now.
    ///
    /// # Panics
    /// Not all of them are there.
    pub(crate) fn read<const N: usize>(&self, at: usize) -> [u8; N] {
        assert!(at.checked_add(N).is_some_and(|end| end <= self.bytes));
        // SAFETY: the bytes are mapped. The kernel may write them meanwhile: whoever reads asks
        // only for what the kernel has said to be there.
        core::array::from_fn(|byte| unsafe { self.at.add(at + byte).read_volatile() })
    }
}

impl Drop for Shown {
    fn drop(&mut self) {
        // SAFETY: it was mapped so, and nobody reads it any more.
        unsafe { libc::munmap(self.at.cast_mut().cast(), self.bytes) };
    }
}

/// Bytes of a page.
pub(crate) fn page_bytes() -> u64 {
    // SAFETY: no pointers.
    u64::try_from(unsafe { libc::sysconf(libc::_SC_PAGESIZE) }).unwrap_or(4096)
}

/// Ends the direction to the peer.
pub(crate) fn shutdown_sending(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no pointers.
    check(unsafe { libc::shutdown(fd.as_raw_fd(), libc::SHUT_WR) } as isize).map(drop)
}

/// The groups that the process at the other end of a Unix socket was in, besides its own group,
/// when it connected (socket(7), `SO_PEERGROUPS`).
///
/// # Errors
/// The kernel's: the socket is no connected one of a Unix domain.
pub fn peer_groups(fd: BorrowedFd<'_>) -> io::Result<Vec<u32>> {
    // Most processes are in fewer; the kernel says how many there are.
    let mut groups: Vec<libc::gid_t> = vec![0; 64];
    loop {
        let mut size = size_of_val(groups.as_slice()) as libc::socklen_t;
        // SAFETY: the pointer and `size` describe `groups`; the kernel writes no more than that.
        let answer = unsafe {
            libc::getsockopt(
                fd.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_PEERGROUPS,
                groups.as_mut_ptr().cast(),
                &raw mut size,
            )
        };
        let count = size as usize / size_of::<libc::gid_t>();
        match check(answer as isize) {
            Ok(_) => {
                groups.truncate(count);
                return Ok(groups);
            }
            Err(error) if error.raw_os_error() == Some(libc::ERANGE) && count > groups.len() => {
                groups.resize(count, 0);
            }
            Err(error) => return Err(error),
        }
    }
}

/// Makes a descriptor non-blocking.
pub(crate) fn set_nonblocking(fd: BorrowedFd<'_>) -> io::Result<()> {
    // SAFETY: no pointers.
    let flags = check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_GETFL) } as isize)?;
    let flags = flags as libc::c_int | libc::O_NONBLOCK;
    // SAFETY: no pointers.
    check(unsafe { libc::fcntl(fd.as_raw_fd(), libc::F_SETFL, flags) } as isize).map(drop)
}

/// A random number from the kernel.
pub(crate) fn random() -> u64 {
    let mut value = 0u64;
    // SAFETY: 8 writable bytes.
    let got = unsafe { libc::getrandom((&raw mut value).cast(), 8, 0) };
    assert_eq!(got, 8, "the kernel gives random numbers");
    value
}

/// Pins the calling thread to the `nth` of the CPUs it may use (counted round and round).
pub(crate) fn pin_to(nth: usize) -> io::Result<()> {
    // SAFETY: an all-zero set is valid and empty.
    let mut allowed: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    let size = size_of::<libc::cpu_set_t>();
    // SAFETY: `allowed` is `size` writable bytes.
    check(unsafe { libc::sched_getaffinity(0, size, &mut allowed) } as isize)?;
    // SAFETY: every index is below CPU_SETSIZE.
    let is_set = |cpu: &usize| unsafe { libc::CPU_ISSET(*cpu, &allowed) };
    let cpus: Vec<usize> = (0..libc::CPU_SETSIZE as usize).filter(is_set).collect();
    // SAFETY: as above.
    let mut one: libc::cpu_set_t = unsafe { core::mem::zeroed() };
    // SAFETY: the index came from a set of the same size.
    unsafe { libc::CPU_SET(cpus[nth % cpus.len()], &mut one) };
    // SAFETY: `one` is `size` readable bytes.
    check(unsafe { libc::sched_setaffinity(0, size, &one) } as isize).map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};
    use std::os::fd::AsFd;

    fn option(fd: BorrowedFd<'_>, level: libc::c_int, option: libc::c_int) -> libc::c_int {
        let (mut value, mut bytes) = (0, size_of::<libc::c_int>() as libc::socklen_t);
        // SAFETY: the pointers and the size describe `value` and `bytes`.
        let answer = unsafe {
            let value = (&raw mut value).cast();
            libc::getsockopt(fd.as_raw_fd(), level, option, value, &raw mut bytes)
        };
        check(answer as isize).expect("TCP has it");
        value
    }

    /// A peer that vanishes without a word is noticed.
    #[test]
    fn a_silent_peer_is_asked_whether_it_is_there() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let stream = TcpStream::connect(listener.local_addr().expect("told")).expect("connected");
        let of = |level, name| option(stream.as_fd(), level, name);
        assert_eq!(of(libc::SOL_SOCKET, libc::SO_KEEPALIVE), 0);
        keep_alive(stream.as_fd());
        assert_eq!(of(libc::SOL_SOCKET, libc::SO_KEEPALIVE), 1);
        let tcp = |name| of(libc::IPPROTO_TCP, name);
        assert_eq!((tcp(libc::TCP_KEEPIDLE), tcp(libc::TCP_KEEPINTVL)), (60, 10));
        assert_eq!(tcp(libc::TCP_KEEPCNT), 6);
    }

    #[test]
    fn a_peers_groups_are_told() {
        let (own, _other) = std::os::unix::net::UnixStream::pair().expect("a pair");
        let mut told = peer_groups(own.as_fd()).expect("told");
        told.sort_unstable();
        let status = std::fs::read_to_string("/proc/self/status").expect("read");
        let line = status.lines().find_map(|line| line.strip_prefix("Groups:")).expect("a line");
        let mut own: Vec<u32> =
            line.split_whitespace().map(|group| group.parse().expect("a number")).collect();
        own.sort_unstable();
        assert_eq!(told, own);
        let tcp = TcpListener::bind("127.0.0.1:0").expect("bound");
        assert!(peer_groups(tcp.as_fd()).is_err());
    }
}
