//! The NBD front end: newstyle handshake, structured replies, many clients.
