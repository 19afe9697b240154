//! What is said where several servers reach the same drives.

use super::Arg::Text;

messages! { OWNERS:
    TAKEN_OVER: "TakenOver" Refused Daemon [Text("HOST")]
        "taken over by %1",
        "stop it on that server, then: palisade array assemble NAME",
        "Another server has taken the array over: it found no sign of life of this one for some \
         time, and a person had it do so. This server has ended all exports of the array, and \
         reads and writes nothing of it any more.";
    HOST_ID_TAKEN: "HostIdTaken" Refused Daemon [Text("HOST-ID"), Text("PATH")]
        "another Palisade daemon of this machine has the host id %1 (%2 is locked)",
        "stop that daemon, or set a hostnqn and a hostid of its own in [fabrics] for each, then \
         restart this one",
        "Servers that reach the same drives know each other by their host ids. Two daemons with \
         one host id would take each other's arrays for their own. So a daemon that has a shared \
         array locks a file that is named by its host id.";
    SERVER_NOT_KNOWN: "ServerNotKnown" Refused Daemon [Text("PROBLEM")]
        "this server can't be told from others: %1",
        "set hostnqn and hostid in [fabrics], make /proc readable for the daemon, then try again",
        "Servers that reach the same drives know each other by a host id, and a start of a server \
         by the kernel's boot id. Without both this server can't have a shared array.";
    DRIVE_OF_SERVER: "DriveOfServer" Refused Daemon
        [Text("PATH"), Text("ARRAY"), Text("HOST")]
        "%1 is a drive of array \"%2\", which is in use by host %3",
        "use another drive; or stop the array on that server; if that server is dead, take the \
         array over first: palisade array assemble NAME --take-over",
        "Another server has the array, and may read and write the drive at this moment. It is not \
         erased here, not even where it is named to be overwritten.";
    ARRAY_OF_SERVER: "ArrayOfServer" Refused Daemon [Text("ARRAY"), Text("HOST")]
        "array \"%1\" is in use by host %2, and can't be deleted here",
        "delete it on that server; if that server is dead, take the array over first: palisade \
         array assemble NAME --take-over",
        "Another server has the array, and may read and write its drives at this moment.";
    OWNER_ON_DRIVE: "OwnerOnDrive" Refused Command
        [Text("PATH"), Text("ARRAY"), Text("HOST-ID")]
        "%1 is a drive of array \"%2\", which the host with the id %3 has",
        "start the daemon, which knows whether that is this server, then repeat the command",
        "The record says that a server has the array, and that other servers may reach its \
         drives. Without a daemon nobody knows whether that server is this one, nor whether it \
         is running.";
}
