//! Why an array is not started: its drives don't prove that all data is there.

use super::Arg::{Number, Text};

messages! { START:
    NO_RECORD: "NoRecord" Refused Daemon []
        "none of the drives holds the record of an array",
        "see what each drive holds: palisade drive list",
        "A drive of an array has a record at its head and at its end. The drives were erased, or \
         never were an array's.";
    DIFFERENT_ARRAYS: "DifferentArrays" Refused Daemon [Text("DRIVE"), Text("OTHER")]
        "%1 and %2 belong to different arrays",
        "assemble one array at a time, by its UUID",
        "The records of these drives name different arrays.";
    DRIVE_COPIED: "DriveCopied" Refused Daemon [Text("DRIVE"), Text("OTHER"), Text("UUID")]
        "%1 and %2 have the same identity, %3: one is a copy of the other",
        "remove one of the two, or erase it: palisade drive wipe",
        "A drive was copied bit by bit, or one drive is seen by two paths. To write to one of them \
         would leave the other behind, so nothing is chosen.";
    DIVERGED: "Diverged" Refused Daemon [Text("NEWEST"), Text("OTHERS")]
        "parts of the array were started separately and have diverged: %1 and %2",
        "keep the drives of one part and remove the others, then: palisade array assemble NAME \
         --start-degraded; replace those later",
        "Two parts of the array were each started without the other and written since. Their data \
         differs, and only a person can say which part counts.";
    DRIVE_SWAPPED: "DriveSwapped" Refused Daemon [Text("DRIVE"), Number("OWN"), Number("NAMED")]
        "%1 has the record of slot %2, the array's newest record has it in slot %3",
        "something else wrote the drive's record: remove the drive or erase it (palisade drive \
         wipe), then replace it",
        "A drive never changes its slot. Its record was damaged or copied from another drive, so \
         its data is not trusted either.";
    RECORDS_DIFFER: "RecordsDiffer" Refused Daemon [Text("DRIVE"), Text("NEWEST")]
        "the record on %1 describes other drives or another layout than that on %2",
        "something else wrote the drive's record: remove the drive or erase it (palisade drive \
         wipe), then replace it",
        "Both records are of one array and one history, and yet they do not agree. Palisade does \
         not write such records.";
    BLOCK_SIZE_CHANGED: "BlockSizeChanged" Refused Daemon
        [Text("DRIVE"), Number("BYTES"), Number("BLOCK")]
        "%1 has a block size of %2 bytes, the array has %3",
        "give the drive its former block size, or copy it to a drive that has it; without the \
         drive the array starts if its redundancy covers it, and calls it failed",
        "The drive has larger blocks than when it joined the array: it was copied to another \
         drive, or is connected in another way. It can't carry out the array's smallest writes any \
         more.";
    LATER_RELEASE: "LaterRelease" Refused Daemon [Text("DRIVE")]
        "%1 was written by a later release: this release may only read it",
        "use the release that wrote it",
        "The record says that releases which do not know its version may read the array and not \
         write it.";
    CREATION_INTERRUPTED: "CreationInterrupted" Refused Daemon [Text("ARRAY")]
        "the creation of array \"%1\" was interrupted",
        "delete it with: palisade array delete NAME --yes, then create it again",
        "The daemon ended before the new array was whole. It never held data.";
    TOO_MANY_MISSING: "TooManyMissing" Refused Daemon
        [Number("GROUP"), Number("COUNT"), Number("TOLERATED"), Text("SLOTS")]
        "group %1 lacks %2 drives, its redundancy covers %3: %4",
        "bring the missing drives back",
        "More drives of a group are missing than its redundancy makes up for: parts of the data \
         are on no drive that was found.";
    TOO_MANY_SET_BACK: "TooManySetBack" Refused Daemon
        [Number("GROUP"), Number("COUNT"), Number("TOLERATED"), Text("SLOTS")]
        "group %1 lacks %2 drives, its redundancy covers %3: %4",
        "put the newer state of these drives back: they hold an old copy or snapshot, which does \
         not match the other drives",
        "Drives were found whose content is older than any crash leaves it, as after restoring a \
         snapshot. They don't count, and without them too many are missing.";
    NEEDS_START_DEGRADED: "NeedsStartDegraded" Refused Daemon [Text("SLOTS")]
        "drives are missing that are not known to have failed: %1",
        "bring the drives back, or make sure that no other host uses them and start without them: \
         palisade array assemble NAME --start-degraded",
        "The missing drives could make the array on another host at the same time, and both parts \
         would go on apart. Whoever starts the array without them has to know that this is not \
         so.";
    NEEDS_ACCEPT_LOSS: "NeedsAcceptLoss" Refused Daemon [Text("GROUPS")]
        "the array was not stopped cleanly, and a drive is missing in group %1",
        "bring the missing drives back, or accept that blocks near the last writes may be wrong: \
         palisade array assemble NAME --accept-loss",
        "Parity near the last writes may not fit the data, and what the missing drive held would \
         be computed from it.";
    NEWEST_RECORD_MISSING: "NewestRecordMissing" Refused Daemon [Text("DRIVES")]
        "%1: the newest record may be missing: its size changed or its end was overwritten",
        "give the drives their former size, or accept that the last changes are forgotten, such as \
         a new volume: palisade array assemble NAME --accept-loss",
        "Records are written in turn to the head and to the end of each drive. The end is not \
         where it was, and the newest record may have been there.";
    NEWEST_RECORD_NEEDED: "NewestRecordNeeded" Refused Daemon [Text("DRIVES"), Text("PROBLEM")]
        "%1: the newest record may be missing: its size changed or its end was overwritten; \
         without it: %2",
        "give the drives their former size, or bring the missing drives back",
        "Records are written in turn to the head and to the end of each drive. The end is not \
         where it was, and the newest record may have been there. The array can't be started \
         without these drives either.";
    ARRAY_OWNED: "ArrayOwned" Refused Daemon [Text("ARRAY"), Text("HOST")]
        "array \"%1\" is in use by host %2",
        "stop it on that server: palisade array stop NAME; if that server is dead: palisade array \
         assemble NAME --take-over",
        "Other servers reach the drives of a shared array, and one of them has it: the record says \
         so. A server that has an array writes a heartbeat to each of its drives. Nobody takes the \
         array over as long as a heartbeat comes.";
    NEEDS_OTHERS_OFF: "NeedsOthersOff" Refused Daemon [Text("ARRAY")]
        "array \"%1\" may be in use by another server, and its drives can't tell",
        "switch the other server off, or cut it off from the drives, then: palisade array assemble \
         NAME --other-server-is-off",
        "A drive that is not behind NVMe over Fabrics can't tell whether a server that seems dead \
         still has requests under way. Nor can the drives of one half of a group tell of a server \
         that has the other half. So a person has to make sure that the other server is off.";
    NO_HOST_ID: "NoHostId" Refused Daemon [Text("ARRAY")]
        "array \"%1\" is shared between servers, and this one has no host id",
        "set hostnqn and hostid in [fabrics] of the configuration, then restart the daemon",
        "A server that has a shared array says so on its drives, by its host id. The daemon could \
         not tell the engine such an id.";
    OWNER_MEANWHILE: "OwnerMeanwhile" Refused Daemon [Text("ARRAY")]
        "another server had array \"%1\" while it was being started here",
        "see which server has it (palisade array show %1), then start it again where it is wanted",
        "The drives were changed between the look at them and the start. Nothing was started by \
         what they held before.";
    OWNER_NOT_CONFIRMED: "OwnerNotConfirmed" Refused Daemon [Text("ARRAY")]
        "too few drives of array \"%1\" could be marked as this server's",
        "see which drives answer with: palisade drive list; then: palisade array assemble NAME",
        "Before a shared array is used each of its drives gets an owner page, which is read again \
         some time later. More drives than redundancy covers did not take it, or did not give it \
         back.";
}
