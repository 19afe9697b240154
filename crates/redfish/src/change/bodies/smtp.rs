//! What a change of how mail is sent takes.

use super::{Property, Takes, may};

/// The properties of `SMTP`.
pub(super) const SMTP: &[Property] = &[
    may("ServiceEnabled", Takes::Truth, "Whether mail is sent."),
    may("ServerAddress", Takes::Text, "The server's name or address."),
    may("Port", Takes::Whole(1, 65_535), "The server's port; that of the protocol if absent."),
    may("FromAddress", Takes::Address, "The sender's address."),
    may(
        "ConnectionProtocol",
        Takes::Word(
            "SMTPConnectionProtocol",
            &[
                ("None", "Without TLS."),
                ("AutoDetect", "By TLS where the server offers it."),
                ("StartTLS", "By TLS that begins with a command."),
                ("TLS_SSL", "By TLS from the beginning."),
            ],
        ),
        "How the connection is protected.",
    ),
    may(
        "Authentication",
        Takes::Word(
            "SMTPAuthenticationMethods",
            &[
                ("None", "The daemon does not log in."),
                ("AutoDetect", "As the server offers it."),
                ("Plain", "By PLAIN."),
            ],
        ),
        "How the daemon logs in.",
    ),
    may("Username", Takes::Text, "As whom."),
    may("Password", Takes::Secret, "The password. It is never shown."),
];
