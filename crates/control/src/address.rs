//! Where exports listen, and what they are called: `ADDR:PORT`, `unix:PATH`, qualified names.

use ::iscsi::{Identity, UNIT};
use ::nvme::nqn::Nqn;
use format::{ExportAddress, Listener};
use redfish::messages as say;
use redfish::messages::Entry;
use redfish::view::Error;
use rustix::fs::{Mode, OFlags};
use std::collections::BTreeSet;
use std::fs::{File, Permissions};
use std::io::ErrorKind;
use std::net::SocketAddr;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::path::{Component, Path};
use tokio::net::{TcpListener, UnixListener};
use units::{Uuid, Wwpn};

/// What the names of subsystems at Fibre Channel ports begin with: a volume's own by other ways has
/// another name, as hosts take controllers of one name for one subsystem's.
const FC_SUBSYSTEM: &str = "nqn.2024-07.internal.palisade:fc:";

/// The name of a volume's subsystem at a Fibre Channel port.
pub fn fc_subsystem(volume: Uuid) -> String {
    format!("{FC_SUBSYSTEM}{volume}")
}

/// An open listening socket.
pub enum Bound {
    /// TCP.
    Tcp(TcpListener),
    /// A Unix socket.
    Unix(UnixListener),
}

/// Reads an address as people write it.
pub fn parse(text: &str) -> Result<ExportAddress, Error> {
    let hint = "say --nbd ADDR:PORT (127.0.0.1:10809) or --nbd unix:/absolute/path";
    let wrong = |what: &str| wrong(text, what, hint);
    if text.len() > format::limits::ADDRESS_MAX || text.chars().any(char::is_control) {
        return Err(wrong("it is too long or has control characters"));
    }
    if let Some(path) = text.strip_prefix("unix:") {
        if !path.starts_with('/') {
            return Err(wrong("the path of the socket is not absolute"));
        }
        return Ok(ExportAddress::NbdUnix(path.to_owned()));
    }
    tcp_parts(text).map_err(wrong)?;
    Ok(ExportAddress::NbdTcp(text.to_owned()))
}

fn wrong(text: &str, what: &str, hint: &str) -> Error {
    Error::new(&say::BAD_ADDRESS, &[&text, &what]).advise(hint)
}

/// Host and port of `ADDR:PORT`, or what is wrong with it.
fn tcp_parts(text: &str) -> Result<(&str, u16), &'static str> {
    if text.len() > format::limits::ADDRESS_MAX || text.chars().any(char::is_control) {
        return Err("it is too long or has control characters");
    }
    match text.rsplit_once(':') {
        None | Some((_, "")) => Err("it has no port"),
        Some(("", _)) => Err("it has no host before the port"),
        Some((host, port)) => match port.parse() {
            Ok(port) => Ok((host, port)),
            Err(_) => Err("its port is not a number from 0 to 65535"),
        },
    }
}

/// Checks the path of a volume's file.
pub fn check_file(path: &str) -> Result<(), Error> {
    check_path(path).map_err(|what| Error::new(&say::BAD_FILE, &[&path, &what]))
}

/// Checks the path of a socket for a virtual machine.
pub fn check_socket(path: &str) -> Result<(), Error> {
    let hint = "use --vhost-user with an absolute path, such as /run/palisade/machines/vm.sock";
    check_path(path).map_err(|what| wrong(path, what, hint))
}

fn check_path(path: &str) -> Result<(), &'static str> {
    let what = if path.len() > format::limits::ADDRESS_MAX {
        "it is too long"
    } else if path.chars().any(char::is_control) {
        "it has control characters"
    } else if !Path::new(path).is_absolute() {
        "it is not absolute"
    } else if Path::new(path).components().any(|part| part == Component::ParentDir) {
        "it goes up with .."
    } else if path.ends_with('/') {
        "it names a directory"
    } else {
        return Ok(());
    };
    Err(what)
}

/// Checks `ADDR:PORT` of an export over NVMe/TCP.
pub fn check_tcp(text: &str, option: &str) -> Result<(), Error> {
    let hint = format!("use {option} ADDR:PORT, such as 192.0.2.1:4420");
    tcp_parts(text).map(|_| ()).map_err(|what| wrong(text, what, &hint))
}

/// An IP address with a port, at which a server of others is to listen.
///
/// # Errors
/// It is none: `entry` says so, of the text and why.
pub fn of_server(text: &str, entry: &'static Entry) -> Result<SocketAddr, Error> {
    let wrong = |what: &str| Error::new(entry, &[&text, &what]);
    let own: SocketAddr = text.parse().map_err(|_| wrong("it is no IP address with a port"))?;
    if let SocketAddr::V6(v6) = own
        && v6.scope_id() != 0
    {
        return Err(wrong("it is of one interface (%)"));
    }
    if own.port() == 0 { Err(wrong("its port is 0")) } else { Ok(own) }
}

/// Checks `ADDR:PORT` that hosts are told to connect to: they take it as it is, and look no names
/// up.
pub fn check_advertise(text: &str) -> Result<(), Error> {
    check_tcp(text, "--advertise")?;
    let what = match text.parse::<SocketAddr>() {
        Err(_) => "hosts need an IP address (IPv6 in brackets), not a name",
        Ok(address) if address.port() == 0 => "hosts can't connect to port 0",
        Ok(address) if address.ip().is_unspecified() => "hosts can't connect to all addresses",
        Ok(_) => return Ok(()),
    };
    let hint = "use --advertise ADDR:PORT with the address by which hosts reach this machine; \
                without it hosts are told the address that they connected to";
    Err(wrong(text, what, hint))
}

/// What hosts are told of `ADDR:PORT`: address and port apart.
pub fn told(text: &str) -> (Option<String>, u16) {
    match tcp_parts(text) {
        Ok((host, port)) => (Some(host.trim_matches(['[', ']']).to_owned()), port),
        Err(_) => (None, 0),
    }
}

/// What hosts are told of a listener.
fn told_of(listener: &Listener) -> &str {
    listener.advertise.as_deref().unwrap_or(&listener.address)
}

/// What hosts are told instead of these, in their order; empty if nothing else.
pub fn told_instead(listeners: &[Listener]) -> Vec<String> {
    let is_told = listeners.iter().any(|listener| listener.advertise.is_some());
    let told = || listeners.iter().map(|listener| told_of(listener).to_owned());
    if is_told { told().collect() } else { Vec::new() }
}

/// A qualified name of NVMe.
pub fn nqn(text: &str) -> Result<Nqn, Error> {
    Nqn::new(text).map_err(|why| Error::new(&say::BAD_NQN, &[&text, &why]))
}

/// What an export's listeners are known by.
pub fn keys(address: &ExportAddress) -> Vec<String> {
    match address {
        ExportAddress::NvmeTcp(export) => {
            let all = export.listeners.iter().map(|listener| listener.address.clone());
            all.collect::<BTreeSet<_>>().into_iter().collect()
        }
        other => vec![text(other)],
    }
}

/// An address as people write it.
pub fn text(address: &ExportAddress) -> String {
    match address {
        ExportAddress::NbdTcp(address) => address.clone(),
        ExportAddress::NbdUnix(path) => format!("unix:{path}"),
        ExportAddress::NvmeTcp(_) => keys(address).join(", "),
        ExportAddress::Iscsi(iscsi) => {
            let all = iscsi.portals.iter().map(|portal| portal.address.as_str());
            all.collect::<Vec<_>>().join(", ")
        }
        ExportAddress::Fc(own) => format!("{}, LUN {}", own.port, own.unit),
        ExportAddress::NvmeFc(own) => own.port.to_string(),
        ExportAddress::Shares(own) => own.listens().collect::<Vec<_>>().join(", "),
        ExportAddress::Device | ExportAddress::Ublk => "this machine".to_owned(),
        ExportAddress::File(path) => path.clone(),
        ExportAddress::VhostUser(path) => format!("vhost-user:{path}"),
    }
}

/// How clients name an export (the NBD URI specification, doc/uri.md of NetworkBlockDevice).
/// Names of arrays and volumes need no quoting; a path may. Over NVMe/TCP it is that of the NVM
/// Express Boot Specification (section 1.5.7): `nvme+tcp://ADDR:PORT/SUBSYSTEM/NAMESPACE`; over
/// iSCSI that of libiscsi: `iscsi://ADDR:PORT/TARGET/LUN`. For Fibre Channel there is none: alike,
/// it is `fc://PORT/LUN` or `nvme+fc://PORT/SUBSYSTEM/NAMESPACE`, a port without its colons.
pub fn uri(address: &ExportAddress, export: &str, volume: Uuid) -> String {
    match address {
        ExportAddress::NbdTcp(address) => format!("nbd://{address}/{export}"),
        ExportAddress::NbdUnix(path) => format!("nbd+unix:///{export}?socket={}", quoted(path)),
        ExportAddress::NvmeTcp(nvme) => {
            let first = nvme.listeners.first().map_or("", told_of);
            format!("nvme+tcp://{first}/{}/{}", nvme.subsystem, nvme.nsid)
        }
        ExportAddress::Iscsi(iscsi) => {
            let first = iscsi.portals.first().map_or("", told_of);
            format!("iscsi://{first}/{}/{UNIT}", Identity::of(volume).target)
        }
        ExportAddress::Fc(own) => format!("fc://{}/{}", plain(own.port), own.unit),
        ExportAddress::NvmeFc(own) => {
            format!("nvme+fc://{}/{}/1", plain(own.port), fc_subsystem(volume))
        }
        ExportAddress::Device | ExportAddress::Ublk => format!("{}/{export}", services::LINKS),
        ExportAddress::File(path) => format!("file://{}", quoted(path)),
        ExportAddress::VhostUser(path) => format!("vhost-user:{}", quoted(path)),
        // It is of no block protocol: each share has URLs of its own.
        ExportAddress::Shares(_) => String::new(),
    }
}

/// The digits of a port's name alone.
fn plain(port: Wwpn) -> String {
    port.to_string().replace(':', "")
}

fn quoted(path: &str) -> String {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b"-._~/:@".contains(&b);
    path.bytes().fold(String::new(), |mut text, byte| {
        if plain(byte) {
            text.push(char::from(byte));
        } else {
            text.push_str(&format!("%{byte:02X}"));
        }
        text
    })
}

/// Listens on the Unix socket of an export.
pub async fn listen_unix(path: &str) -> Result<(Bound, ExportAddress), Error> {
    let address = ExportAddress::NbdUnix(path.to_owned());
    let listener = unix_listener(Path::new(path)).await;
    let listener = listener.map_err(|error| busy(&text(&address), &error))?;
    Ok((Bound::Unix(listener), address))
}

/// Listens on the Unix socket of a virtual machine. The program that runs it seldom runs as the
/// daemon's user: who may come is the socket's group, which it has from its folder where that has
/// the set-group-ID bit (inode(7)), and else from the daemon.
pub async fn listen_machine(path: &str) -> Result<Bound, Error> {
    let address = ExportAddress::VhostUser(path.to_owned());
    let failed = |error| busy(&text(&address), &error);
    let listener = unix_listener(Path::new(path)).await.map_err(failed)?;
    let own = socket_at(Path::new(path)).map_err(failed)?;
    set_mode(&own, 0o660).map_err(failed)?;
    Ok(Bound::Unix(listener))
}

/// The socket that has a path, not where it leads.
///
/// # Errors
/// `AlreadyExists` if something else has it.
pub fn socket_at(path: &Path) -> std::io::Result<File> {
    let flags = OFlags::PATH | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let own = File::from(rustix::fs::open(path, flags, Mode::empty())?);
    if own.metadata()?.file_type().is_socket() { Ok(own) } else { Err(something_else()) }
}

/// What has a socket's path now is another thing.
pub fn something_else() -> std::io::Error {
    std::io::Error::new(ErrorKind::AlreadyExists, "something else is there")
}

/// Says who may use what [`socket_at`] gave, whatever has its path by now.
///
/// # Errors
/// What the kernel says.
pub fn set_mode(socket: &File, mode: u32) -> std::io::Result<()> {
    // What the descriptor is open for is what has this path.
    let path = format!("/proc/self/fd/{}", socket.as_raw_fd());
    std::fs::set_permissions(path, Permissions::from_mode(mode))
}

fn busy(address: &str, error: &std::io::Error) -> Error {
    Error::new(&say::CANNOT_LISTEN, &[&address, &error])
}

/// Listens on `ADDR:PORT`, which stands for one of `at`; answers with the same and the real port,
/// and the socket's own address.
pub async fn listen_tcp(
    host: &str,
    at: &[SocketAddr],
) -> Result<(TcpListener, String, SocketAddr), Error> {
    let listener = TcpListener::bind(at).await.map_err(|error| busy(host, &error))?;
    let bound = listener.local_addr().map_err(|error| busy(host, &error))?;
    let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
    Ok((listener, format!("{name}:{}", bound.port()), bound))
}

/// Listens on a Unix socket; a socket that nobody answers on is replaced.
///
/// # Errors
/// `AddrInUse` if somebody answers there, `AlreadyExists` if something else than a socket is.
pub async fn unix_listener(path: &Path) -> std::io::Result<UnixListener> {
    match UnixListener::bind(path) {
        Err(error) if error.kind() == ErrorKind::AddrInUse => {}
        other => return other,
    }
    if !std::fs::symlink_metadata(path)?.file_type().is_socket() {
        return Err(std::io::Error::new(
            ErrorKind::AlreadyExists,
            "something else than a socket is there",
        ));
    }
    match tokio::net::UnixStream::connect(path).await {
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => {}
        Err(error) if error.kind() != ErrorKind::WouldBlock => return Err(error),
        // Somebody answers, or has so many clients that they queue.
        _ => return Err(ErrorKind::AddrInUse.into()),
    }
    std::fs::remove_file(path)?;
    UnixListener::bind(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_round_trip() {
        for address in ["127.0.0.1:10809", "[::1]:1", "host:65535", "unix:/run/a b.sock"] {
            assert_eq!(text(&parse(address).expect(address)), address);
        }
        for address in ["", "10809", ":1", "host:", "host:65536", "unix:a.sock", "unix:"] {
            assert!(parse(address).is_err(), "{address}");
        }
        for (address, what) in [("here", "no port"), ("1.2.3.4:99999", "65535"), (":1", "host")] {
            let error = parse(address).expect_err(address).error;
            assert!(error.contains(what), "{error}");
        }
    }

    #[test]
    fn what_hosts_are_told_is_where_they_can_connect() {
        for address in ["192.0.2.1:4420", "[2001:db8::1]:4420"] {
            check_advertise(address).expect(address);
        }
        let wrong = [("nas:4420", "not a name"), ("192.0.2.1:0", "port 0"), ("here", "no port")];
        let anywhere = [("0.0.0.0:1", "all addresses"), ("[::]:1", "all addresses")];
        for (address, what) in wrong.into_iter().chain(anywhere) {
            let error = check_advertise(address).expect_err(address);
            assert!(error.error.contains(what), "{}", error.error);
            assert!(error.hint.contains("--advertise"), "{}", error.hint);
        }
    }

    #[test]
    fn uris_name_the_export() {
        let tcp = ExportAddress::NbdTcp("127.0.0.1:10809".into());
        assert_eq!(uri(&tcp, "a/v", Uuid::NIL), "nbd://127.0.0.1:10809/a/v");
        let unix = ExportAddress::NbdUnix("/run/a b".into());
        assert_eq!(uri(&unix, "a/v", Uuid::NIL), "nbd+unix:///a/v?socket=/run/a%20b");
    }
}
