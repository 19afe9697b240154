//! Where exports listen: `ADDR:PORT` or `unix:PATH`.

use crate::api::Error;
use format::ExportAddress;
use std::io::ErrorKind;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use tokio::net::{TcpListener, UnixListener};

/// An open listening socket.
pub enum Listener {
    /// TCP.
    Tcp(TcpListener),
    /// A Unix socket.
    Unix(UnixListener),
}

/// Reads an address as people write it.
pub fn parse(text: &str) -> Result<ExportAddress, Error> {
    let wrong = |what: &str| {
        Error::usage(
            format!("\"{text}\" is no address to listen on: {what}"),
            "say --nbd ADDR:PORT (127.0.0.1:10809) or --nbd unix:/absolute/path",
        )
    };
    if text.len() > format::limits::ADDRESS_MAX || text.chars().any(char::is_control) {
        return Err(wrong("it is too long or holds control characters"));
    }
    if let Some(path) = text.strip_prefix("unix:") {
        if !path.starts_with('/') {
            return Err(wrong("the path of the socket is not absolute"));
        }
        return Ok(ExportAddress::NbdUnix(path.to_owned()));
    }
    match text.rsplit_once(':') {
        None | Some((_, "")) => Err(wrong("it has no port")),
        Some(("", _)) => Err(wrong("it has no host before the port")),
        Some((_, port)) if port.parse::<u16>().is_err() => {
            Err(wrong("its port is no number from 0 to 65535"))
        }
        Some(_) => Ok(ExportAddress::NbdTcp(text.to_owned())),
    }
}

/// An address as people write it.
pub fn text(address: &ExportAddress) -> String {
    match address {
        ExportAddress::NbdTcp(address) => address.clone(),
        ExportAddress::NbdUnix(path) => format!("unix:{path}"),
    }
}

/// How clients name an export (the NBD URI specification, doc/uri.md of NetworkBlockDevice).
/// Names of arrays and volumes need no quoting; a path may.
pub fn uri(address: &ExportAddress, export: &str) -> String {
    match address {
        ExportAddress::NbdTcp(address) => format!("nbd://{address}/{export}"),
        ExportAddress::NbdUnix(path) => format!("nbd+unix:///{export}?socket={}", quoted(path)),
    }
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

/// Listens; answers with the address in use (a port 0 becomes a real one).
pub async fn listen(address: &ExportAddress) -> Result<(Listener, ExportAddress), Error> {
    let refused = |error: std::io::Error| {
        Error::failed(
            format!("can't listen on {}: {error}", text(address)),
            "choose another address, or end what uses it",
        )
    };
    match address {
        ExportAddress::NbdTcp(host) => {
            let listener = TcpListener::bind(host.as_str()).await.map_err(refused)?;
            let port = listener.local_addr().map_err(refused)?.port();
            let name = host.rsplit_once(':').map_or(host.as_str(), |(name, _)| name);
            Ok((Listener::Tcp(listener), ExportAddress::NbdTcp(format!("{name}:{port}"))))
        }
        ExportAddress::NbdUnix(path) => {
            let listener = unix_listener(Path::new(path)).await.map_err(refused)?;
            Ok((Listener::Unix(listener), address.clone()))
        }
    }
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
    fn uris_name_the_export() {
        let tcp = ExportAddress::NbdTcp("127.0.0.1:10809".into());
        assert_eq!(uri(&tcp, "a/v"), "nbd://127.0.0.1:10809/a/v");
        let unix = ExportAddress::NbdUnix("/run/a b".into());
        assert_eq!(uri(&unix, "a/v"), "nbd+unix:///a/v?socket=/run/a%20b");
    }
}
