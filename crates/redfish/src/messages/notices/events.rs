//! What events tell: a row a kind of event.

use super::{Notice, Severity};
use crate::messages::Arg::{Number, Text};

notices! { EVENTS:
    DAEMON_STARTED: "DaemonStarted" Ok [Text("VERSION")]
        "the daemon %1 is ready",
        "nothing",
        "The start is over. Events that follow tell what is not as it should be already.";
    DAEMON_ENDS: "DaemonEnds" Ok []
        "the daemon ends",
        "nothing, if somebody stopped it",
        "The daemon was told to end. It stops all arrays cleanly, and closes all streams.";
    CONFIGURATION_RELOADED: "ConfigurationReloaded" Ok [Text("KEYS")]
        "the configuration was read again: %1",
        "nothing",
        "A signal SIGHUP made the daemon read its configuration. It says which keys it took, and \
         which need a restart.";
    CONFIGURATION_NOT_TAKEN: "ConfigurationNotTaken" Warning [Text("PROBLEM")]
        "the configuration was not taken: %1",
        "correct the file, look with: palisade check-config, and reload the daemon again",
        "The file has a mistake. The daemon goes on with the configuration that it has.";
    STATE_PROBLEM: "StateProblem" Warning [Text("PROBLEM")]
        "the state directory: %1",
        "see to the file system of the state directory",
        "Accounts, the audit log and events are kept there. Arrays are served all the same. What \
         can't be written waits in memory.";
    STATE_WELL: "StateWell" Ok []
        "the state directory can be written again",
        "nothing",
        "What waited in memory is in the state directory now.";
    CERTIFICATE_REPLACED: "CertificateReplaced" Ok [Text("FINGERPRINT")]
        "HTTPS shows another certificate, with the fingerprint %1",
        "give it to clients that were given the old one",
        "The certificate was replaced, or the daemon made a new one, with the same key, as the \
         old one ends soon or the machine has another name. The audit log says which. `palisade` \
         knows the daemon by its key, and asks for a login only where that is another.";
    GPU_SUSPECT: "GpuSuspect" Critical []
        "parity that the GPU computed may be wrong",
        "scrub the arrays with: palisade array scrub NAME, and use the CPU: parity = \"cpu\"",
        "The GPU and the CPU computed the same parity, and the results differ. The daemon does \
         not use the GPU any more.";
    ARRAY_CREATED: "ArrayCreated" Ok [Text("ARRAY"), Text("LEVEL")]
        "array %1 of level %2 is there",
        "nothing",
        "An array was created, and runs.";
    ARRAY_DELETED: "ArrayDeleted" Ok [Text("ARRAY")]
        "array %1 is deleted",
        "nothing",
        "The array is gone, and with it its volumes and exports.";
    ARRAY_FOUND: "ArrayFound" Ok [Text("ARRAY")]
        "array %1 was found on drives; it does not run",
        "start the array with: palisade array assemble %1",
        "Drives with the array's records came. The array may miss some of them yet.";
    ARRAY_GONE: "ArrayGone" Ok [Text("ARRAY")]
        "array %1, which did not run, is no longer there",
        "nothing, if its drives were taken out or wiped",
        "No drive that the daemon knows holds a record of the array any more.";
    ARRAY_STARTED: "ArrayStarted" Ok [Text("ARRAY")]
        "array %1 runs",
        "nothing",
        "The array was assembled.";
    ARRAY_STOPPED: "ArrayStopped" Ok [Text("ARRAY")]
        "array %1 is stopped",
        "start the array with: palisade array assemble %1",
        "The array's volumes can't be read or written until it is started again.";
    ARRAY_DOES_NOT_START: "ArrayDoesNotStart" Warning [Text("ARRAY"), Text("PROBLEM")]
        "array %1 does not start: %2",
        "see what to do with: palisade status",
        "The daemon found the array on drives and could not start it, so as not to harm its data.";
    ARRAY_DEGRADED: "ArrayDegraded" Warning [Text("ARRAY")]
        "array %1 is degraded",
        "replace what failed with: palisade array replace %1 --slot SLOT --with DRIVE",
        "Redundancy is less than it should be. All data is there, and one more failure may lose \
         some of it.";
    ARRAY_FAILED: "ArrayFailed" Critical [Text("ARRAY")]
        "array %1 has failed",
        "look at its drives with: palisade array show %1",
        "More drives are missing than redundancy covers. Reads and writes of what lies there \
         fail. If a cable or an enclosure is at fault, bring the drives back.";
    ARRAY_WAITS: "ArrayWaits" Critical [Text("ARRAY"), Number("DRIVES")]
        "array %1 waits for %2 drives to which no path leads",
        "check the network and the drives' targets: palisade drive paths",
        "The array can't do without these drives. Its exports are suspended: hosts that ask for \
         them go on asking. It starts by itself once all of the drives are reached.";
    ARRAY_TAKEN_OVER: "ArrayTakenOver" Critical [Text("ARRAY"), Text("HOST")]
        "array %1 was taken over by %2, and is stopped here",
        "see on that server how the array is: palisade array show %1",
        "Another server has the array now. It found no sign of life of this one for some time, \
         and a person had it take the array. Hosts reach the array's volumes there.";
    ARRAY_OPTIMAL: "ArrayOptimal" Ok [Text("ARRAY")]
        "array %1 is optimal",
        "nothing",
        "All drives count again.";
    SCRUB_FOUND: "ScrubFound" Warning [Text("ARRAY"), Number("STRIPES")]
        "a scrub of array %1 found %2 stripes that are not as they should be",
        "see what a scrub can repair with: palisade array scrub %1 --repair",
        "Parity or copies did not agree with the data, or could not be read.";
    DRIVE_CAME: "DriveCame" Ok [Text("DRIVE"), Text("SERIAL")]
        "drive %1 with serial number %2 is there",
        "nothing",
        "The daemon knows a drive that it did not know.";
    DRIVE_GONE: "DriveGone" Warning [Text("DRIVE"), Text("SERIAL")]
        "drive %1 with serial number %2 is no longer there",
        "nothing, if somebody took it out",
        "The daemon finds the drive no longer at any path where it looks.";
    DRIVE_UNUSABLE: "DriveUnusable" Warning [Text("DRIVE"), Text("PROBLEM")]
        "drive %1 can't be used: %2",
        "check the drive and its cable",
        "The drive can't be opened or read.";
    DRIVE_USABLE: "DriveUsable" Ok [Text("DRIVE")]
        "drive %1 can be used again",
        "nothing",
        "The drive could not be opened or read before.";
    DRIVE_OUT: "DriveOut" Critical [Text("DRIVE"), Number("SLOT"), Text("ARRAY"), Text("REASON")]
        "drive %1 in slot %2 of array %3 has failed: %4",
        "replace it with: palisade array replace %3 --slot %2 --with DRIVE",
        "The drive was taken out of service, by itself or by a person. It counts no more.";
    DRIVE_MISSING: "DriveMissing" Critical [Text("DRIVE"), Number("SLOT"), Text("ARRAY")]
        "the drive %1 of slot %2 of array %3 is missing",
        "bring it back, or replace it with: palisade array replace %3 --slot %2 --with DRIVE",
        "The slot has no drive.";
    DRIVE_REPLACED: "DriveReplaced" Ok [Text("DRIVE"), Number("SLOT"), Text("ARRAY")]
        "drive %1 is in slot %2 of array %3 and is being filled",
        "nothing",
        "The drive counts once its rebuild has ended.";
    DRIVE_BACK: "DriveBack" Ok [Text("DRIVE"), Number("SLOT"), Text("ARRAY")]
        "drive %1 in slot %2 of array %3 counts",
        "nothing",
        "The drive holds all that it should.";
    DRIVE_HANGS: "DriveHangs" Warning [Text("DRIVE"), Number("SLOT"), Text("ARRAY")]
        "drive %1 in slot %2 of array %3 does not answer",
        "check the drive and its cable",
        "The drive did not answer in time and is out. Requests to it may still be carried out: \
         until they have ended it is not written again.";
    DRIVE_WARNS: "DriveWarns" Warning
        [Text("DRIVE"), Text("HEALTH"), Text("REASON"), Text("ADVICE")]
        "drive %1 is not well, and was %2: %3",
        "%4",
        "A rule of the drive's health is not kept (docs/health.md). The drive is in use as before.";
    DRIVE_CRITICAL: "DriveCritical" Critical
        [Text("DRIVE"), Text("HEALTH"), Text("REASON"), Text("ADVICE")]
        "drive %1 is critical, and was %2: %3",
        "%4",
        "A rule of the drive's health is not kept, and the drive may fail or lose data \
         (docs/health.md). The drive is in use as before.";
    DRIVE_WELL: "DriveWell" Ok [Text("DRIVE"), Text("HEALTH")]
        "drive %1 is well, and was %2",
        "nothing",
        "All rules of the drive's health are kept again.";
    DRIVE_PATH_GONE: "DrivePathGone" Critical [Text("DRIVE"), Number("SLOT"), Text("ARRAY")]
        "drive %1 in slot %2 of array %3 went with its path over the network, and is waited for",
        "check the network and the drive's target",
        "The kernel gave the drive up, as it could not reach the drive. The drive itself may be \
         well, so its array keeps it until requests to it fail.";
    DRIVES_GONE_TOGETHER: "DrivesGoneTogether" Critical [Number("DRIVES"), Text("ARRAY")]
        "%1 drives of array %2 are gone at once, and none of them was failed for that",
        "check the cable and the power of their enclosure; once they are back: palisade array \
         stop %2; palisade array assemble %2",
        "More drives went than redundancy covers, here or in another array at the same moment. \
         That is an enclosure more often than its drives, and what is failed has to be filled \
         again. So the array keeps them until requests to them fail. Of those that it can spare \
         some may have to be filled again all the same, as the stop finds that what it has open of \
         them is dead.";
    DRIVE_RETURNED: "DriveReturned" Ok [Text("DRIVE"), Number("SLOT"), Text("ARRAY")]
        "drive %1, which was in slot %2 of array %3, is back",
        "to use it: palisade array replace %3 --slot %2 --with %1",
        "The drive left the array, and is there again, perhaps under another name. It is used \
         when a person says so, and is filled with what it missed.";
    DRIVE_NOT_TAKEN: "DriveNotTaken" Warning
        [Text("DRIVE"), Number("SLOT"), Text("ARRAY"), Text("PROBLEM")]
        "drive %1 is reached again, and does not take slot %2 of array %3: %4",
        "if nothing on it is needed: palisade array replace %3 --slot %2 --with %1 --overwrite %1",
        "A drive behind a fabric takes its slot again by itself if it is as it was when it went. \
         This one is not, so a person has to say what becomes of it.";
    BLOCKS_LOST: "BlocksLost" Critical [Text("VOLUME"), Text("ARRAY"), Number("BYTES")]
        "%3 bytes of volume %1 of array %2 can't be read",
        "see which with: palisade array show %2, and write them anew, as from a backup",
        "Drives can't read these blocks, and redundancy did not cover them. Reads of them fail \
         until they are written.";
    BLOCKS_BACK: "BlocksBack" Ok [Text("VOLUME"), Text("ARRAY")]
        "all of volume %1 of array %2 can be read again",
        "nothing",
        "What could not be read was written anew.";
    JOB_STARTED: "JobStarted" Ok [Text("TASK")]
        "task %1 began",
        "follow it with: palisade task list",
        "A rebuild, a resync or a scrub began.";
    JOB_COMPLETED: "JobCompleted" Ok [Text("TASK")]
        "task %1 has ended",
        "nothing",
        "A rebuild, a resync or a scrub came to its end.";
    JOB_CANCELLED: "JobCancelled" Ok [Text("TASK")]
        "task %1 was cancelled",
        "nothing",
        "A person ended it.";
    JOB_INTERRUPTED: "JobInterrupted" Warning [Text("TASK")]
        "task %1 was interrupted",
        "nothing, if its array was stopped: what has to be done begins again with the array",
        "The array was stopped, or lost what the task needs.";
    JOB_STUCK: "JobStuck" Warning [Text("TASK"), Text("PROBLEM")]
        "task %1 can't go on: %2",
        "see what to do with: palisade status",
        "It tries again from time to time.";
    JOB_PAUSED: "JobPaused" Ok [Text("TASK")]
        "task %1 waits until it is told to go on",
        "let it go on with: palisade task resume %1",
        "A person paused it. It stays so over restarts.";
    JOB_GOES_ON: "JobGoesOn" Ok [Text("TASK")]
        "task %1 goes on",
        "nothing",
        "It was paused, or could not go on.";
    VOLUME_CREATED: "VolumeCreated" Ok [Text("VOLUME"), Text("ARRAY"), Number("BYTES")]
        "volume %1 of %3 bytes in array %2 is there",
        "nothing",
        "A volume was created.";
    VOLUME_DELETED: "VolumeDeleted" Ok [Text("VOLUME"), Text("ARRAY")]
        "volume %1 of array %2 is deleted",
        "nothing",
        "The volume is gone, with what it held.";
    VOLUME_RESIZED: "VolumeResized" Ok [Text("VOLUME"), Text("ARRAY"), Number("BYTES")]
        "volume %1 of array %2 has %3 bytes",
        "nothing",
        "The volume's size was changed. Hosts may have to look at it anew.";
    EXPORT_CREATED: "ExportCreated" Ok [Text("VOLUME"), Text("ARRAY"), Text("URI")]
        "volume %1 of array %2 is exported as %3",
        "nothing",
        "Hosts can have the volume.";
    EXPORT_DELETED: "ExportDeleted" Ok [Text("VOLUME"), Text("ARRAY"), Text("URI")]
        "volume %1 of array %2 is no longer exported as %3",
        "nothing",
        "The export was deleted.";
    EXPORT_FAILED: "ExportFailed" Warning [Text("VOLUME"), Text("ARRAY"), Text("PROBLEM")]
        "volume %1 of array %2 can't be exported: %3",
        "see to the address; the daemon tries again by itself",
        "The export is kept, and is served once it can be.";
    EXPORT_SERVED: "ExportServed" Ok [Text("VOLUME"), Text("ARRAY"), Text("URI")]
        "volume %1 of array %2 is served again as %3",
        "nothing",
        "The export could not be served before.";
    HOST_CONNECTED: "HostConnected" Ok [Text("HOST"), Text("SUBSYSTEM")]
        "host %1 is connected to %2",
        "nothing",
        "The first connection of the host to the subsystem.";
    HOST_DISCONNECTED: "HostDisconnected" Ok [Text("HOST"), Text("SUBSYSTEM")]
        "host %1 is no longer connected to %2",
        "nothing, if somebody disconnected it",
        "The host has no connection to the subsystem any more. It went, or the network failed.";
    LOGGED_IN: "LoggedIn" Ok [Text("ACCOUNT"), Text("ADDRESS")]
        "account %1 logged in from %2",
        "nothing",
        "A session began, or a name and a password were found right.";
    LOGIN_REFUSED: "LoginRefused" Warning [Text("ACCOUNT"), Text("ADDRESS")]
        "a login of \"%1\" from %2 was refused",
        "look who it was with: palisade audit list",
        "The name or the password was wrong.";
    LOGINS_WAIT: "LoginsWait" Warning [Text("ACCOUNT"), Text("ADDRESS")]
        "logins of \"%1\" from %2 have to wait",
        "look who it was with: palisade audit list",
        "Too many logins of the account or from the address failed. This is told once a wait.";
    ACCOUNT_CREATED: "AccountCreated" Ok [Text("ACCOUNT"), Text("ROLE")]
        "account %1 with the role %2 is there",
        "nothing",
        "An account was created.";
    ACCOUNT_CHANGED: "AccountChanged" Ok [Text("ACCOUNT"), Text("ROLE")]
        "account %1, with the role %2, was changed",
        "see by whom with: palisade audit list",
        "The role was changed, or the account was enabled, disabled or has to change its password.";
    ACCOUNT_DELETED: "AccountDeleted" Ok [Text("ACCOUNT")]
        "account %1 is deleted",
        "nothing",
        "The account's sessions have ended with it.";
    TEST_EVENT: "TestEvent" Ok [Text("MESSAGE-ID"), Text("MESSAGE")]
        "a test: %1: %2",
        "nothing: somebody tries whether events arrive",
        "EventService.SubmitTestEvent was called.";
    EVENTS_OMITTED: "EventsOmitted" Warning [Number("EVENTS")]
        "%1 more events of this moment are not told",
        "look at what there is now with: palisade status",
        "More came to be at one moment than are told one by one. The least grave are left out.";
}
