//! What the command line says by itself.

use super::Arg::{Number, Text};

messages! { COMMAND:
    NO_DAEMON: "NoDaemon" Failed Command [Text("SOCKET")]
        "no daemon answers on %1",
        "start it with: palisade serve --config FILE; or name its socket with --socket PATH",
        "Commands ask the daemon over its socket: that of --socket, else of the variable \
         PALISADE_SOCKET, else /run/palisade/palisade.sock; or by HTTPS, where --url or the \
         variable PALISADE_URL says so. The exit status is 4.";
    RELEASE_SERVED: "ReleaseServed" Refused Command [Text("VOLUME"), Text("DEVICE")]
        "the device of %1 is served: %2",
        "delete the export while nobody uses it: palisade export list",
        "Only a device whose daemon is gone is released: whoever waits for it gets errors.";
    RELEASE_FAILED: "ReleaseFailed" Failed Command [Text("VOLUME"), Text("PROBLEM")]
        "the device of %1 can't be released: %2",
        "mend that, and try again; what is served is shown by: palisade export list",
        "The device is known by its link in /dev/palisade. One that this program did not make is \
         left alone.";
    SERVICES_CANNOT_RUN: "ServicesCannotRun" Failed Command [Text("PROBLEM")]
        "`palisade services` can't run: %1",
        "run it as root, once for each daemon",
        "It mounts volumes as files and makes loop devices, which root alone may do. It has a \
         directory of its own, which `services` in the configuration names.";
    SECRET_NOT_READ: "SecretNotRead" Failed Command [Text("FILE"), Text("PROBLEM")]
        "%1: %2",
        "write the secret to a file that only you can read, as its only line, or use \
         --secret-file - and standard input",
        "Secrets stand in no command line: others on the machine can read those.";
    SOCKET_FORBIDDEN: "SocketForbidden" Failed Command [Text("SOCKET"), Text("PROBLEM")]
        "%1: %2",
        "run as root, or as a member of the socket's group",
        "The socket's file says which accounts may ask the daemon.";
    SOCKET_FAILED: "SocketFailed" Failed Command [Text("SOCKET"), Text("PROBLEM")]
        "%1: %2",
        "name the daemon's socket with --socket PATH",
        "What is at this path can't be connected to.";
    NO_ANSWER: "NoAnswer" Failed Command [Text("PROBLEM")]
        "the daemon did not answer: %1",
        "read the daemon's log; daemon and command line must be of one release",
        "The connection broke, or the answer was none that this release knows. Whether a change \
         was made is seen with: palisade status.";
    STRANGE_ANSWER: "StrangeAnswer" Failed Command [Text("PROBLEM")]
        "the daemon's answer can't be read: %1",
        "check that the daemon and this command are of the same version",
        "A resource lacks what the command needs of it.";
    TOO_MANY_CLIENTS: "TooManyClients" Failed Command []
        "the daemon serves as many clients as it can",
        "try again when another client has gone",
        "The number of connections is limited, so that management never takes what I/O needs.";
    COMMAND_CANNOT_START: "CommandCannotStart" Failed Command [Text("PROBLEM")]
        "this command can't start: %1",
        "raise the limits of your account (ulimit -a)",
        "The system gave the command too little: threads, open files or memory.";
    CONFIG_NOT_READ: "ConfigNotRead" Failed Command [Text("FILE"), Text("PROBLEM")]
        "%1: %2",
        "name a readable file with --config",
        "The configuration is a file of TOML (docs/operating.md).";
    CONFIG_WRONG: "ConfigWrong" Failed Command [Text("FILE"), Text("PROBLEM")]
        "%1: %2",
        "correct the file; its keys are socket, cores, drives = [\"PATH\", …], drive_deadline_ms, \
         drive_wait_ms, parity, parity_check, confirm and state",
        "The file is no TOML, or has a key that is unknown or whose value can't be. A key with a \
         slip would else be left out without a word.";
    UNCONFIRMED: "Unconfirmed" Refused Command [Text("WHAT")]
        "%1",
        "to do it, repeat the command with --yes",
        "What destroys data is done only where it is said twice.";
    NOT_TYPED: "NotTyped" Refused Command [Text("WORD")]
        "nothing is done: what was typed is not %1",
        "repeat the command, and type the name; or give --yes",
        "A command that destroys data asks for the name of what it destroys, which nobody types by \
         accident.";
    PLAN_OUTDATED: "PlanOutdated" Refused Command []
        "nothing is done: what this destroys is no longer what it was a moment ago",
        "look at what it would destroy now, and repeat the command if you mean that",
        "Between the question and its answer another command changed an array, a volume or a drive \
         that this one is about.";
    TASK_PAUSED: "TaskPaused" Failed Command [Text("TASK"), Text("ARRAY"), Text("ID")]
        "the %1 of array %2 is paused",
        "resume it with: palisade task resume %3",
        "To wait for a task that a person paused would never end.";
    TASK_STUCK: "TaskStuck" Failed Command [Text("TASK"), Text("ARRAY"), Text("PROBLEM")]
        "the %1 of array %2 is stuck: %3",
        "bring missing drives back, or write the unreadable blocks anew; the task then goes on by \
         itself",
        "The task can't go on by itself: blocks that it needs can't be read from any drive.";
    TASK_LASTS: "TaskLasts" Failed Command [Text("TASK"), Text("ARRAY"), Text("PERCENT")]
        "the %1 of array %2 has not ended: it is at %3",
        "wait longer with --timeout, or watch it with: palisade status --watch",
        "The time that --timeout gave is over. The task goes on.";
    OVERWRITE_NAMES_OTHER: "OverwriteNamesOther" Usage Command [Text("OTHER"), Text("PATH")]
        "--overwrite names %1, the drive is %2",
        "use --overwrite %2",
        "To erase a drive with something else on it, it is named twice, and both have to agree.";
    RECORD_DAMAGED: "RecordDamaged" Failed Command [Text("PATH"), Text("PROBLEM")]
        "%1: %2",
        "list the drives of arrays with: palisade drive list",
        "The drive has records, and none of them can be used by this release.";
    NO_PALISADE_RECORD: "NoPalisadeRecord" Failed Command [Text("PATH"), Text("CONTENT")]
        "%1 has no Palisade record; it holds %2",
        "list the drives of arrays with: palisade drive list",
        "The drive is none of an array's, or was erased.";
    NO_SUCH_MESSAGE: "NoSuchMessage" Usage Command [Text("WORD")]
        "no message is named \"%1\"",
        "list all messages with: palisade explain",
        "Messages are named as errors name them, with or without Palisade.1.0 before it.";
    BAD_URL: "BadUrl" Usage Command [Text("URL"), Text("PROBLEM")]
        "%1 is no URL of a daemon: %2",
        "use https://HOST:PORT, as the daemon's configuration has it in https",
        "A daemon on another machine is named by where its HTTPS listens. There is no way in \
         without TLS.";
    NOT_REACHED: "NotReached" Failed Command [Text("URL"), Text("PROBLEM")]
        "no daemon answers at %1: %2",
        "check the address, the network, and that HTTPS is on: palisade status, on the daemon's \
         own machine, says why it is not",
        "HTTPS is off until the configuration says where it listens (https) and an account \
         exists. The exit status is 4.";
    CERTIFICATE_CHANGED: "CertificateChanged" Refused Command
        [Text("URL"), Text("SHOWN"), Text("KNOWN")]
        "the certificate of %1 has another key than the known one; its SHA-256 fingerprint is %2, \
         and that of the known one %3",
        "if the daemon's log names the first one, take it with: palisade login %1 --fingerprint \
         %2",
        "The daemon keeps its key when it renews its certificate. A person may have replaced \
         both; the daemon's log then has the new fingerprint. If it does not, somebody else \
         answers in its place. Nothing was sent: neither password nor token.";
    CERTIFICATE_NOT_TRUSTED: "CertificateNotTrusted" Refused Command [Text("URL"), Text("SHOWN")]
        "nobody has said that the certificate of %1 is the right one; its SHA-256 fingerprint is \
         %2",
        "compare it with the daemon's log; if they agree, repeat the command with --fingerprint \
         %2",
        "The first login takes the certificate on a person's word: yes on a terminal, or \
         --fingerprint. From then on it is known.";
    NOT_LOGGED_IN: "NotLoggedIn" Failed Command [Text("URL")]
        "nobody is logged in at %1",
        "log in with: palisade login %1",
        "Over the network the daemon knows accounts only. A login keeps the daemon's fingerprint \
         and a session, of this user on this machine.";
    SESSION_ENDED: "SessionEnded" Failed Command [Text("URL")]
        "the session at %1 has ended",
        "log in again with: palisade login %1",
        "A session ends when nobody used it for as long as SessionTimeout says (half an hour at \
         first), when its account has a new password or is deleted, and when somebody deletes it.";
    USER_NOT_GIVEN: "UserNotGiven" Usage Command []
        "it is not said who logs in",
        "name the account with --user NAME",
        "On a terminal the name is asked for; a script has to give it.";
    LOGINS_FAILED: "LoginsFailed" Failed Command [Text("FILE"), Text("PROBLEM")]
        "%1: %2",
        "see to this file's or directory's mode and owner, or log in anew: it is moved aside then",
        "Logins are kept in $XDG_STATE_HOME/palisade/logins.json, else \
         ~/.local/state/palisade/logins.json, which has to be its user's alone: who has a token \
         of it is let in.";
    REQUEST_WRONG: "RequestWrong" Usage Command [Text("REQUEST"), Text("PROBLEM")]
        "%1 can't be sent: %2",
        "give a method, a path and perhaps a body of JSON: palisade api PATCH PATH '{…}'",
        "The body is JSON: literal, @FILE, or - for the standard input.";
    TEST_NOT_DELIVERED: "TestNotDelivered" Failed Command [Number("RECIPIENTS")]
        "the test did not reach %1 of those who are told of alerts",
        "see to what is listed, then try again",
        "`palisade alert test` sends a message to each recipient of mail and each receiver of a \
         subscription, and waits until each has taken it or it is known why not.";
    NO_RECIPIENT: "NoRecipient" Failed Command [Text("ADDRESS")]
        "no mail is sent to %1",
        "see who is told with: palisade alert mail",
        "`palisade alert mail --remove` takes an address that is told of alerts.";
}
