//! What is said of accounts, sessions and passwords.

use super::Arg::{Number, Text};

messages! { ACCOUNTS:
    NO_ACCOUNT: "NoAccount" Failed Both [Text("ACCOUNT")]
        "no account is named \"%1\"",
        "list accounts with: palisade account list",
        "Names of accounts are told apart by upper and lower case, too.";
    ACCOUNT_EXISTS: "AccountExists" Failed Daemon [Text("ACCOUNT")]
        "account \"%1\" exists already",
        "choose another name, or give the account a new password: palisade account passwd %1",
        "Each name stands for one account.";
    ACCOUNTS_FULL: "AccountsFull" Failed Daemon [Number("MOST")]
        "there are %1 accounts already",
        "delete one that nobody uses: palisade account list",
        "The daemon keeps so many accounts at most.";
    LAST_ADMINISTRATOR: "LastAdministrator" Refused Daemon []
        "no Administrator that is enabled would be left",
        "first create one, or enable one: palisade account create NAME --role Administrator",
        "Where there are accounts, one of them is an Administrator that is enabled: without one \
         nobody could manage the others over the network. So the first account is an \
         Administrator, too.";
    SAME_PASSWORD: "SamePassword" Usage Daemon []
        "the new password is the old one",
        "choose another password",
        "The account has to change its password before it can do anything else. To give the same \
         one again changes nothing.";
    PASSWORDS_BUSY: "PasswordsBusy" Failed Daemon []
        "the daemon has too many passwords to compute",
        "try again in some seconds",
        "What is kept of a password takes time and memory to compute, so one is computed at a time \
         and few wait. Many logins at one time may be somebody who guesses: palisade audit list \
         says from where.";
    ACCOUNTS_NOT_READ: "AccountsNotRead" Failed Daemon [Text("PROBLEM")]
        "accounts can't be read: %1",
        "put a good copy of the file there, or remove it, and start the daemon again",
        "The file of accounts in the state directory is not what the daemon writes. It is left as \
         it is, and nobody can log in. The daemon's socket works as before.";
    ACCOUNTS_NOT_WRITTEN: "AccountsNotWritten" Failed Daemon [Text("PROBLEM")]
        "accounts can't be written: %1",
        "see to the file system of the state directory",
        "A change of accounts or sessions counts once it is in the state directory. It could not \
         be written there.";
    ACCOUNTS_LATE: "AccountsLate" Failed Daemon [Text("PROBLEM")]
        "it is not known whether accounts could be written: %1",
        "see to the file system of the state directory, then look: palisade account list",
        "A change of accounts or sessions is being written to the state directory, and its file \
         system does not answer. If the file system does, the change comes about then. Other \
         changes wait for it.";
    ACCOUNTS_UNWRITTEN: "AccountsUnwritten" Failed Daemon [Text("PROBLEM")]
        "the change counts, but is not in the file of accounts: %1",
        "see to the file system of the state directory: the daemon tries again every 10 s",
        "What takes something away counts at once: an account that is deleted, disabled or may do \
         less, a new password, a session that is ended. While the file of accounts can't be written \
         a daemon that starts anew does not know of it.";
    NO_STATE: "NoStateDirectory" Failed Daemon []
        "the daemon has no state directory",
        "name one with `state = \"DIR\"` in the configuration, and start the daemon again",
        "Accounts, sessions and the certificate of HTTPS are kept in the state directory. Without \
         one the daemon serves its socket only.";
    LOGIN_LOCKED: "LoginLocked" Refused Daemon [Number("SECONDS")]
        "too many logins failed: the next can be tried in %1 s",
        "wait, or use the daemon's socket on its own machine, where who has a role never waits",
        "After five wrong passwords of one account from one address, or twenty from one address, \
         the next has to wait, and longer each time, at most 15 minutes. An account that is tried \
         from many addresses waits at most 30 seconds at those where it never logged in; where it \
         did, it waits for its own wrong passwords only, at most 30 seconds.";
    PASSWORD_NOT_READ: "PasswordNotRead" Failed Command [Text("PROBLEM")]
        "the password can't be read: %1",
        "type it at a terminal, or give it on the standard input with --password-stdin",
        "A password is never an argument of a command: everybody on the machine can read those.";
    PASSWORDS_DIFFER: "PasswordsDiffer" Usage Command []
        "the two passwords differ",
        "repeat the command",
        "A new password is typed twice, as nobody sees it.";
}
