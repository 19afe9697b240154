//! What the daemon says of names, tasks and itself.

use super::Arg::{Number, Text};

messages! { DAEMON:
    NO_ARRAY: "NoArray" Failed Both [Text("ARRAY")]
        "no array is named \"%1\"",
        "list arrays with: palisade array list",
        "Neither a running array nor a stopped one whose drives were found has this name or UUID. \
         If its drives were connected a moment ago, palisade drive list looks for them.";
    NAME_AMBIGUOUS: "NameAmbiguous" Refused Both [Text("ARRAY"), Text("UUID"), Text("OTHER")]
        "two arrays are named \"%1\": %2 and %3",
        "name the array by its UUID",
        "Drives of two machines may bring two arrays of one name. Nothing is done where it is not \
         certain which of them is meant.";
    ARRAY_NOT_RUNNING: "ArrayNotRunning" Failed Both [Text("ARRAY")]
        "array \"%1\" is not running",
        "start it with: palisade array assemble %1",
        "The array was found on its drives and is stopped: it was stopped by a command, or could \
         not be started. palisade status says why.";
    ARRAY_RUNNING: "ArrayRunning" Failed Both [Text("ARRAY")]
        "array \"%1\" is already running",
        "show it with: palisade array show %1",
        "There is nothing to start.";
    NO_EXPORT_ID: "NoExportId" Failed Both [Text("ID")]
        "no export has the ID \"%1\"",
        "list exports with: palisade export list",
        "The ID of an export is ARRAY:NUMBER, as palisade export list shows it.";
    NO_TASK_ID: "NoTaskId" Failed Both [Text("ID")]
        "there is no task \"%1\"",
        "list tasks with: palisade task list",
        "The ID of a task is ARRAY:KIND, such as tank:scrub. A task that has ended is none any \
         more.";
    TASK_ENDED: "TaskEnded" Failed Daemon [Text("ID")]
        "task %1 has ended",
        "list tasks with: palisade task list",
        "The job is kept for a day, and nothing can be done with it.";
    NAME_IS_UUID: "NameIsUuid" Usage Daemon [Text("ARRAY")]
        "\"%1\" is not a valid name: it reads as a UUID",
        "choose another name",
        "Arrays are also named by their UUIDs, and a name that reads as one could mean two \
         arrays.";
    NAME_TAKEN_STOPPED: "NameTakenStopped" Failed Daemon [Text("ARRAY"), Text("UUID")]
        "the name \"%1\" is taken by array %2, which is not running",
        "choose another name, or delete that array: palisade array delete %2 --yes",
        "An array of this name was found on drives of this machine. Two arrays of one name could \
         not be told apart by it.";
    BAD_LEVEL: "BadLevel" Usage Daemon [Text("LEVEL"), Text("PROBLEM")]
        "\"%1\": %2",
        "use one of these levels",
        "The level says how data is spread over the drives and how many of them may fail: 0 none, \
         1 all but one, 5 one, 6 two, 10 one of each pair.";
    CONFIRMATION_REQUIRED: "ConfirmationRequired" Refused Daemon []
        "the change destroys data, and nobody has confirmed it",
        "read the plan, then send the request again with its token in the header Palisade-Confirm",
        "A change that destroys data is carried out only for who has seen what is lost. The answer \
         has the plan and a token. The token is good once, for ten minutes, for the same request \
         of the same account. The command line does all of this by itself.";
    CONFIRMATION_NOT_VALID: "ConfirmationNotValid" Refused Daemon
        [Text("REASON")]
        "the token of the confirmation can't be used: %1",
        "read the plan, then send the request again with the plan's own token",
        "A token confirms one change: that for which it was given, once, for ten minutes, and for \
         the account that was given it. The answer has a new plan and a new token.";
    PLAN_CHANGED: "PlanChanged" Refused Daemon []
        "what the change is about is no longer as it was planned",
        "read the new plan, then send the request again with its token",
        "Between plan and confirmation an array, a volume or a drive has changed: the change could \
         destroy something else than was agreed to. Nothing was done. The answer has a new plan \
         and a new token.";
    CHANGE_UNDER_WAY: "ChangeUnderWay" Refused Daemon []
        "the change is still being carried out, and can't be stopped",
        "wait for its answer: GET the task monitor",
        "A task monitor can be deleted once the change that it is of has been answered.";
    STOPPING: "Stopping" Failed Daemon []
        "the daemon is stopping",
        "start it again",
        "The daemon was told to end while the request was carried out. Whether the request was \
         done is seen once it runs again.";
    ENGINE_STOPPED: "EngineStopped" Failed Daemon []
        "the engine stopped",
        "look at the daemon's messages",
        "The part of the daemon that does I/O has ended, as it does when the daemon is stopped.";
    CANNOT_START: "CannotStart" Failed Daemon [Text("PROBLEM")]
        "the daemon can't start: %1",
        "raise the limits of the daemon's account (ulimit -a)",
        "The system gave the daemon too little: threads, open files or locked memory.";
    PARITY_KERNEL: "ParityKernel" Failed Daemon [Text("PROBLEM"), Text("VARIABLE")]
        "%1",
        "unset %2 to use the best kernel that works",
        "Before it touches a drive the daemon tests the code that computes parity. The kernel that \
         the variable of the environment names is unknown, can't run on this machine or computes \
         wrong results.";
    DAEMON_RUNS: "DaemonRuns" Failed Daemon [Text("SOCKET")]
        "another daemon answers on %1",
        "stop it, or name another socket with --socket",
        "One socket has one daemon. systemctl status palisade shows the one of the service.";
    SOCKET_TAKEN: "SocketTaken" Failed Daemon [Text("SOCKET"), Text("PROBLEM")]
        "can't listen on %1: %2",
        "remove that file, or name another socket with --socket",
        "Something that is no socket lies where the socket is to be. It is not overwritten.";
    SOCKET_NOT_MADE: "SocketNotMade" Failed Daemon [Text("SOCKET"), Text("PROBLEM")]
        "can't listen on %1: %2",
        "run as root, or name a socket in a directory of yours with --socket",
        "The management socket could not be made there: the account may not write the directory, \
         or the path is too long.";
    ARRAY_NOT_STARTED: "ArrayNotStarted" Failed Daemon [Text("ARRAY"), Text("PROBLEM")]
        "array \"%1\" can't be started: %2",
        "see which drives are missing: palisade array show %1",
        "When the daemon starts it starts all arrays whose drives prove that all data is there. \
         What this one lacks is in the message, and palisade array assemble tells it again.";
    ARRAY_LACKS_DRIVES: "ArrayLacksDrives" Failed Daemon
        [Text("ARRAY"), Text("STATE"), Text("SLOTS"), Number("SLOT")]
        "array \"%1\" is %2: %3",
        "replace the drive with: palisade array replace %1 --slot %4 --with PATH",
        "The array was started without drives that had failed or are missing.";
    NO_ALERT: "NoAlert" Failed Daemon [Text("ALERT")]
        "there is no alert %1",
        "list those that stand with: palisade alert list",
        "An alert has a number, and stands until what is wrong is right. A number is never used \
         again.";
    MAIL_NOT_WRITTEN: "MailNotWritten" Failed Daemon [Text("PROBLEM")]
        "how mail is sent can't be written: %1",
        "check the file system of the state directory, then try again",
        "The mail server, its account and its password are in the file `mail.json` of the state \
         directory, which its owner alone can read. A change is in the file before it counts.";
}
