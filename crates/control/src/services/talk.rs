//! What the daemon and `palisade services` say to each other, on its socket: [`::services::wire`].

use services::wire::{Frame, Order, Receiver, Word};
use std::io::{self, ErrorKind};
use std::os::fd::{AsFd, OwnedFd};
use std::path::Path;
use std::time::Duration;
use tokio::io::Interest;
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

/// How long it may take to take what is said.
const PATIENCE: Duration = Duration::from_secs(30);
/// How long accepting rests after an error.
pub const REST: Duration = Duration::from_millis(100);

/// Tells whoever comes that another is there.
pub async fn refuse_others(listener: &UnixListener) {
    loop {
        if let Ok((stream, _)) = listener.accept().await {
            let order = Order::Refused("another `palisade services` serves this daemon".to_owned());
            let _ = timeout(REST, send(&stream, &order)).await;
        } else {
            tokio::time::sleep(REST).await;
        }
    }
}

/// Sends an order.
///
/// # Errors
/// What the kernel says; it does not take it in time.
pub async fn send(stream: &UnixStream, order: &Order) -> io::Result<()> {
    let mut frame = Frame::new(order)?;
    let whole = async {
        loop {
            stream.writable().await?;
            match stream.try_io(Interest::WRITABLE, || frame.send(stream.as_fd(), &[])) {
                Ok(true) => return Ok(()),
                Ok(false) => {}
                Err(error) if error.kind() == ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
    };
    timeout(PATIENCE, whole).await.unwrap_or(Err(ErrorKind::TimedOut.into()))
}

/// Waits for a frame; what is received of it so far stays in `receiver`.
///
/// # Errors
/// What the kernel says, or that it is no such frame.
pub async fn receive(
    stream: &UnixStream,
    receiver: &mut Receiver,
) -> io::Result<(Word, Vec<OwnedFd>)> {
    loop {
        stream.readable().await?;
        match stream.try_io(Interest::READABLE, || receiver.receive(stream.as_fd())) {
            Ok(Some(frame)) => return Ok(frame),
            Ok(None) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Takes the socket for `palisade services`, beside that of the interface.
///
/// # Errors
/// It can't be had.
pub async fn listen(interface: &Path) -> io::Result<UnixListener> {
    use std::os::unix::fs::PermissionsExt;
    let path = services::socket(interface);
    let listener = crate::address::unix_listener(&path).await?;
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600))?;
    Ok(listener)
}
