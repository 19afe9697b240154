//! What the engine answers to requests about arrays and volumes.

use super::Arg::{Number, Text};

messages! { ENGINE:
    NO_RUNNING_ARRAY: "NoRunningArray" Failed Daemon [Text("ARRAY")]
        "no running array is named \"%1\"",
        "list arrays with: palisade array list",
        "The request needs an array that runs. An array of this name or UUID was stopped or \
         deleted, perhaps while the request was under way, or was never there. A stopped array is \
         started with: palisade array assemble.";
    NO_VOLUME: "NoVolume" Failed Both [Text("ARRAY"), Text("VOLUME")]
        "array \"%1\" has no volume \"%2\"",
        "list volumes with: palisade volume list",
        "The array runs, and none of its volumes has this name. Volumes are named ARRAY/VOLUME; \
         capital and small letters differ.";
    NO_EXPORT: "NoExport" Failed Both [Text("ARRAY"), Number("NUMBER")]
        "array \"%1\" has no export %2",
        "list exports with: palisade export list; delete one with: palisade export delete ID",
        "Exports of an array are numbered; a number is not used again. The export of this number \
         was deleted, or was never there.";
    NAME_TAKEN: "NameTaken" Failed Daemon [Text("WORD")]
        "the name \"%1\" is already in use",
        "choose another name",
        "Names of arrays differ within a machine, and names of volumes within their array, so that \
         a command never means two things.";
    BAD_NAME: "BadName" Usage Daemon [Text("WORD")]
        "\"%1\" is not a valid name: a name has 1 to 64 letters, digits, '-', '_' or '.'",
        "choose a name of these characters; . and .. are no names",
        "Names stand in commands, in URIs of NBD and in the records on the drives. Letters are \
         those from A to Z without accents.";
    LEVEL_DRIVES: "LevelDrives" Usage Daemon [Text("PROBLEM")]
        "%1",
        "change --level, --strip or the number of drives",
        "Each level takes a least number of drives: 2 for RAID 0 and 1, 3 for RAID 5, 4 for RAID 6 \
         and RAID 10, of which RAID 10 takes an even number.";
    BAD_STRIP: "BadStrip" Usage Daemon [Number("BYTES")]
        "a strip size of %1 bytes is not a power of two from 4K to 1M",
        "change --level, --strip or the number of drives",
        "The strip is what one drive holds of a stripe. Its size is chosen when the array is \
         created and never changes; 64K suits most workloads.";
    BAD_DATA_SIZE: "BadDataSize" Usage Daemon [Number("BYTES")]
        "%1 bytes of data per drive are too few or too many",
        "change --level, --strip or the number of drives",
        "The drives leave too little room for data beside the array's own records, or more than \
         the records can describe.";
    BAD_LAYOUT: "BadLayout" Usage Daemon [Text("PROBLEM")]
        "%1",
        "change --level, --strip or the number of drives",
        "The array's ranges of addresses would not fit together. Only a record that another \
         program wrote, or a mistake of Palisade, asks for such a layout.";
    BAD_BLOCK_SIZE: "BadBlockSize" Usage Daemon [Number("BYTES")]
        "a block size of %1 bytes is not supported",
        "use --block 512 or --block 4096",
        "The block is the smallest unit that hosts read and write. Arrays have blocks of 512 or of \
         4096 bytes, and none smaller than the blocks of their drives.";
    BAD_SIZE: "BadSize" Usage Daemon [Number("BYTES"), Number("BLOCK")]
        "a size of %1 bytes is not a positive multiple of the block size, %2 bytes",
        "give a multiple of the block size",
        "Hosts see a volume as whole blocks. Sizes such as 10G or 512M are multiples of every \
         block size.";
    NO_SPACE: "NoSpace" Failed Daemon
        [Number("FREE"), Text("FREE-SIZE"), Number("WANTED"), Text("WANTED-SIZE")]
        "the array has %1 bytes free (%2), %3 are needed (%4)",
        "choose a smaller size, or delete a volume with: palisade volume delete ARRAY/VOLUME",
        "Volumes are made of whole rows, so a volume takes a little more than its size. Space that \
         no volume has is shown with: palisade array show NAME.";
    NO_DRIVE_IN_ARRAY: "NoDriveInArray" Failed Both [Text("ARRAY"), Text("DRIVE")]
        "array \"%1\" has no drive \"%2\"",
        "list its drives with: palisade array show NAME",
        "A drive of an array is named by its path, or by its slot as slot:N. The drive that is \
         named is in none of the array's slots.";
    NO_SLOT: "NoSlot" Failed Both [Text("ARRAY"), Number("SLOT")]
        "array \"%1\" has no slot %2",
        "list its drives with: palisade array show NAME",
        "Slots are numbered from 0, and an array keeps those that it was created with.";
    SLOT_IN_USE: "SlotInUse" Refused Daemon [Number("SLOT")]
        "the drive in slot %1 is in service",
        "take it out first with: palisade array fail NAME --drive slot:%1",
        "Only a slot whose drive has failed or is missing takes another drive. To take a working \
         drive out gives up its redundancy until the new one is filled, so it is asked for apart.";
    WOULD_LOSE_DATA: "WouldLoseData" Refused Daemon [Number("SLOT")]
        "without the drive in slot %1 the array would lose data",
        "replace the group's failed drives first: palisade array replace NAME --slot N --with \
         PATH",
        "The group of this drive has lost as many drives as its redundancy covers, or a drive is \
         still being filled. One more would take data away, so the drive stays.";
    SHRINK_LOSES: "ShrinkLoses" Refused Daemon [Number("BYTES")]
        "this destroys the last %1 bytes of the volume",
        "see what would be lost with --dry-run, then repeat the command",
        "The volume has become larger since the command was planned, so the size that was to be \
         larger would be smaller. What lies beyond a volume's new end is gone for good.";
    DRIVE_NEEDED: "DriveNeeded" Refused Daemon [Number("SLOT")]
        "the drive in slot %1 is gone, and the array needs the data on it",
        "bring the drive back, then restart the array: palisade array stop NAME; palisade array \
         assemble NAME (its --help tells how to start without the drive)",
        "A drive is gone that holds what no other drive can give back. To put another in its place \
         would make that loss final.";
    DRIVE_NOT_AS_IT_WENT: "DriveNotAsItWent" Refused Daemon [Text("DRIVE"), Number("SLOT")]
        "%1 is not the drive of slot %2 as it was when it went",
        "if nothing on it is needed, run: palisade array replace NAME --slot %2 --with %1 \
         --overwrite %1",
        "A drive that comes back by itself takes its slot again only if it is the same one, and \
         its record says what it said when the drive went. Somebody else may have used it since.";
    DRIVE_TOO_SMALL: "DriveTooSmall" Failed Daemon
        [Text("DRIVE"), Number("HAS"), Number("NEEDS"), Text("NEEDS-SIZE")]
        "%1 is too small: it has %2 bytes, the array needs %3 (%4) of each drive",
        "use a larger drive",
        "Every drive of an array holds equally much. What counts is the smallest drive that the \
         array was created with, and a drive needs room for the array's own records besides.";
    DRIVE_BLOCK_SIZE: "DriveBlockSize" Failed Daemon
        [Text("DRIVE"), Number("BYTES"), Number("BLOCK")]
        "%1 has a block size of %2 bytes, the array has %3",
        "use a drive whose block size is not larger",
        "A drive can't write less than one of its blocks, so an array's blocks are as large as the \
         largest of its drives' at least. Many NVMe drives can be formatted with another block \
         size (nvme format).";
    CREATION_STOPPED: "CreationStopped" Failed Daemon [Text("ARRAY")]
        "the creation of array \"%1\" was stopped",
        "its drives are free: create the array again",
        "The array was stopped or deleted before it was created whole. Nothing of it is left.";
    RECORD_CANNOT_HOLD: "RecordCannotHold" Failed Daemon [Text("PROBLEM")]
        "the array's record can't hold this: %1",
        "delete volumes or exports, or choose smaller values",
        "Arrays, volumes and exports are described by a record of limited size on every drive \
         (docs/format.md).";
    TOO_MANY_CORES: "TooManyCores" Failed Daemon [Text("ARRAY"), Number("FIT"), Number("CORES")]
        "the journal area of array \"%1\" has room for %2 data cores, the daemon has %3",
        "set cores = %2 in the daemon's configuration, then restart it",
        "Each data core has a lane of its own in the journal area of the drives, whose size was \
         chosen when the array was created.";
    NO_ROOM_FOR_LANES: "NoRoomForLanes" Failed Daemon
        [Text("ARRAY"), Number("FIT"), Number("CORES")]
        "the journal area of array \"%1\" has room for %2 data cores, the daemon has %3",
        "choose fewer drives or a smaller strip",
        "A lane of the journal area has to hold a whole stripe. With so many drives, or strips so \
         large, not one lane fits.";
    BEING_CREATED: "BeingCreated" Failed Daemon [Text("ARRAY")]
        "array \"%1\" is being created",
        "wait until it is running, or stop it with: palisade array stop NAME",
        "The records of a new array are written to all of its drives before it takes requests.";
    ARRAY_BUSY: "ArrayBusy" Failed Daemon [Text("TASK")]
        "the array is busy: its %1 has not ended",
        "wait for it with: palisade array wait NAME",
        "The task that goes on and the one that was asked for exclude each other. Tasks are listed \
         with: palisade task list.";
    NO_TASK: "NoTask" Failed Both [Text("TASK")]
        "the array has no %1 that runs or is paused",
        "list tasks with: palisade task list",
        "The task has ended, or never began. How a scrub ended is shown with: palisade array \
         show.";
    RESYNC_NEEDED: "ResyncNeeded" Failed Daemon []
        "a resync can't be cancelled: the array needs it to be redundant again",
        "pause it with: palisade task pause NAME:resync",
        "After a crash, parity or copies of what was being written may not fit the data. Until the \
         resync has ended, the loss of a drive could mean wrong data.";
    WRONG_STATE: "WrongState" Failed Daemon [Text("STATE")]
        "the array is %1",
        "see which drives are missing: palisade array show NAME",
        "The array can't do this in its state: a failed array neither writes its records nor \
         begins tasks. Data that is left on its drives stays as it is.";
    NO_REDUNDANCY: "NoRedundancy" Failed Daemon []
        "the array's level has no redundancy",
        "only arrays of level 1, 5, 6 and 10 scrub and rebuild",
        "RAID 0 keeps neither copies nor parity: there is nothing to compare, and nothing that a \
         lost drive could be made of.";
    VOLUME_EXPORTED: "VolumeExported" Refused Daemon [Text("VOLUME")]
        "volume \"%1\" has exports",
        "list exports with: palisade export list; delete one with: palisade export delete ID",
        "Hosts may be using the volume. Its exports are deleted first, which ends their \
         connections.";
    DRIVE_FAILED: "DriveFailed" Failed Daemon [Text("DRIVE"), Text("PROBLEM")]
        "drive %1 failed: %2",
        "check the drive and its cabling, or use another drive",
        "The drive failed while the array's record was written. Where the redundancy covers it, \
         the array goes on without the drive.";
    DRIVE_QUARANTINED: "DriveQuarantined" Refused Daemon [Text("DRIVE")]
        "%1 has not answered earlier requests: the drive may still carry them out",
        "wait until the drive answers, reset it, or use another drive",
        "Requests to the drive took longer than their deadline and were given up, but the drive \
         still has them: writes among them could destroy what is written to it now.";
    JOURNAL_GAP: "JournalGap" Refused Daemon [Number("FIRST"), Number("LAST"), Number("LANE")]
        "no drive has batches %1 to %2 of lane %3 of the journal: acknowledged writes may be lost",
        "bring missing drives back, or give up what was written last: palisade array assemble NAME \
         --accept-loss (what may be wrong is then listed as lost until it is written again)",
        "The array was not stopped cleanly while a drive was missing. The journal of what was \
         being written then is not whole on the drives that are left.";
    NO_ARRAY_FOUND: "NoArrayFound" Failed Daemon []
        "these drives hold no array that can be started",
        "see what each drive holds: palisade drive list",
        "None of the drives that were looked at has a record of an array, or all arrays that they \
         hold run already.";
}
