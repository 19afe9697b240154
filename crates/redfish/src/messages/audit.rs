//! What is said of the state directory and the audit log.

use super::Arg::{Number, Text};

messages! { AUDIT:
    STATE_FAILED: "StateFailed" Failed Daemon [Text("DIR"), Text("PROBLEM")]
        "the state directory %1 can't be used: %2",
        "name a directory that the daemon may write with `state = \"DIR\"`",
        "The daemon could not make, open or lock the directory. It serves arrays all the same, on \
         its socket only, and keeps the audit log in memory.";
    STATE_TAKEN: "StateTaken" Failed Daemon [Text("DIR")]
        "another daemon uses the state directory %1",
        "stop it, or name another directory with `state = \"DIR\"`",
        "Accounts and the audit log are one daemon's. A daemon that has ended gives the directory \
         back by itself.";
    STATE_OWNED: "StateOwned" Refused Daemon [Text("DIR"), Number("OWNER"), Number("USER")]
        "the state directory %1 belongs to user %2, not to %3",
        "give it to the daemon's user: chown %3 %1",
        "Whoever owns the directory decides who may log in.";
    STATE_LOOSE: "StateLoose" Refused Daemon [Text("DIR")]
        "others may write the state directory %1",
        "look whether its files are yours, then: chmod 700 %1",
        "Whoever writes there decides who may log in, and what the audit log says.";
    STATE_FOREIGN: "StateForeign" Refused Daemon [Text("DIR"), Text("ENTRY")]
        "the state directory %1 has %2, which is not the daemon's",
        "name a directory that only the daemon uses with `state = \"DIR\"`",
        "The daemon closes its state directory to everybody else. A directory such as /var/lib \
         would be lost to all who use it, so it is left as it is.";
    AUDIT_NOT_READ: "AuditNotRead" Failed Both [Text("DIR"), Text("PROBLEM")]
        "the audit log in %1 can't be read: %2",
        "check the file system of the state directory, and read it as its owner",
        "A file of the log can't be opened or read. A daemon that starts keeps its log in memory \
         then, and leaves the files as they are.";
    ALERTS_NOT_READ: "AlertsNotRead" Failed Daemon [Text("PROBLEM")]
        "alerts, or how they are mailed, can't be read: %1",
        "repair or remove the file, then restart the daemon",
        "`alerts.json` and `mail.json` of the state directory are not what the daemon writes. \
         What is wrong is found anew, as other alerts; mail is not sent, and the files of mail \
         are left as they are.";
    EVENTS_NOT_READ: "EventsNotRead" Failed Daemon [Text("DIR"), Text("PROBLEM")]
        "the events in %1 can't be read or written: %2",
        "check the file system of the state directory, and start the daemon again",
        "Events are told all the same, and are kept in memory. Subscriptions end with the daemon.";
    HISTORY_NOT_READ: "HistoryNotRead" Failed Daemon [Text("DIR"), Text("PROBLEM")]
        "the past that charts show can't be read from %1: %2",
        "check the file system of the state directory, and start the daemon again",
        "The past begins anew and is kept in memory only. The file is left as it is.";
    HISTORY_SET_ASIDE: "HistorySetAside" Failed Daemon [Text("FILE"), Text("PROBLEM"), Text("NEW")]
        "%1 does not hold the past that charts show: %2; the file is %3 now",
        "remove the file that was set aside, if you do not need it",
        "The past begins anew. A file that was set aside before is replaced by the newer one.";
    SUBSCRIPTIONS_NOT_READ: "SubscriptionsNotRead" Failed Daemon [Text("PROBLEM")]
        "subscriptions to events can't be read: %1",
        "put a good copy of the file there, or remove it, and start the daemon again",
        "The file of subscriptions in the state directory is not what the daemon writes. It is \
         left as it is, and no receiver is told of events. Streams work as before.";
    SUBSCRIPTIONS_NOT_WRITTEN: "SubscriptionsNotWritten" Failed Daemon [Text("PROBLEM")]
        "subscriptions to events can't be written: %1",
        "see to the file system of the state directory",
        "A change of subscriptions counts once it is in the state directory. It could not be \
         written there.";
    AUDIT_BROKEN: "AuditBroken" Failed Command [Number("PLACES")]
        "the audit log is broken in %1 places",
        "keep a copy of the state directory, and find out who can write there",
        "A line was changed, taken away or put elsewhere, or lines were lost while the state \
         directory could not be written.";
}
