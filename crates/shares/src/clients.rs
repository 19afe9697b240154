//! Who has a connection to a server of this machine, as the kernel knows it (proc(5),
//! `/proc/net/tcp`).

use std::collections::BTreeSet;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A connection that is there, in those files (`TCP_ESTABLISHED`).
const ESTABLISHED: &str = "01";

/// Connections to ports here: the port, and the address that has it. It takes the kernel long to
/// list them, so that they are asked for once for several ports.
///
/// # Errors
/// They can't be read.
pub fn all() -> io::Result<Vec<(u16, IpAddr)>> {
    let mut all = Vec::new();
    for path in ["/proc/self/net/tcp", "/proc/self/net/tcp6"] {
        match std::fs::read_to_string(path) {
            Ok(text) => all.extend(text.lines().filter_map(client)),
            // Without IPv6.
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Ok(all)
}

/// The addresses of these that have a connection to a port, each once.
pub fn to(port: u16, all: &[(u16, IpAddr)]) -> Vec<IpAddr> {
    let own = all.iter().filter(|(own, _)| *own == port).map(|(_, address)| *address);
    own.collect::<BTreeSet<IpAddr>>().into_iter().collect()
}

/// Addresses that have a connection to a port here.
///
/// # Errors
/// They can't be read.
pub fn of(port: u16) -> io::Result<Vec<IpAddr>> {
    Ok(to(port, &all()?))
}

fn client(line: &str) -> Option<(u16, IpAddr)> {
    let mut fields = line.split_whitespace().skip(1);
    let (own, other, state) = (fields.next()?, fields.next()?, fields.next()?);
    let own = u16::from_str_radix(own.split_once(':')?.1, 16).ok()?;
    let address = || address(other.split_once(':')?.0);
    Some((own, (state == ESTABLISHED).then(address).flatten()?))
}

/// An address: words of 32 bits, each as the machine has it in memory.
fn address(hex: &str) -> Option<IpAddr> {
    let words: Option<Vec<u32>> = hex
        .as_bytes()
        .chunks(8)
        .map(|word| u32::from_str_radix(core::str::from_utf8(word).ok()?, 16).ok())
        .collect();
    // On the wire they are big-endian.
    let wire = |word: u32| if cfg!(target_endian = "little") { word.swap_bytes() } else { word };
    match words?[..] {
        [own] => Some(Ipv4Addr::from_bits(wire(own)).into()),
        [a, b, c, d] => {
            let bits = [a, b, c, d]
                .into_iter()
                .fold(0, |bits: u128, own| bits << 32 | u128::from(wire(own)));
            Some(IpAddr::from(Ipv6Addr::from_bits(bits)).to_canonical())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{TcpListener, TcpStream};

    #[test]
    fn who_is_connected_is_known() {
        for (here, told) in [("127.0.0.1:0", "127.0.0.1"), ("[::1]:0", "::1")] {
            let Ok(listener) = TcpListener::bind(here) else { continue };
            let address = listener.local_addr().expect("known");
            assert_eq!(of(address.port()).expect("read"), [] as [IpAddr; 0]);
            let client = TcpStream::connect(address).expect("connected");
            let server = listener.accept().expect("accepted");
            let told: IpAddr = told.parse().expect("an address");
            assert_eq!(of(address.port()).expect("read"), [told]);
            drop((client, server));
        }
        let mapped = address("0000000000000000FFFF00000100007F");
        if cfg!(target_endian = "little") {
            assert_eq!(mapped, Some(Ipv4Addr::LOCALHOST.into()));
        }
        assert_eq!(address("x"), None);
    }
}
