//! What is wrong with drives that a request or the configuration names.

use super::Arg::{Number, Text};

messages! { DRIVES:
    DRIVE_NOT_OPENED: "DriveNotOpened" Failed Both [Text("PATH"), Text("PROBLEM")]
        "%1: %2",
        "name an existing block device or file",
        "The system did not let the drive be opened: there may be nothing at this path, or the \
         account may not read and write it.";
    NOT_A_DRIVE: "NotADrive" Failed Both [Text("PATH")]
        "%1 is not a block device or file",
        "name an existing block device or file",
        "Drives are block devices, such as /dev/nvme0n1, or files. A directory, or the character \
         device of a drive's controller (/dev/nvme0), is none.";
    DRIVE_EMPTY: "DriveEmpty" Failed Both [Text("PATH")]
        "%1 is too small for a drive",
        "name an existing block device or file",
        "It holds not even one block. A file gets its size with truncate(1).";
    BAD_DRIVE_NAME: "BadDriveName" Usage Both [Text("PROBLEM")]
        "%1",
        "name a drive behind NVMe over Fabrics as nvme+tcp://ADDR:PORT/NQN/NSID",
        "A namespace has one name whatever path leads to it: nvme://NQN/NSID. Where a path is to \
         be added, its address stands in front: nvme+tcp://ADDR:PORT/NQN/NSID. * stands for all \
         that is found there.";
    NOT_ONE_DRIVE: "NotOneDrive" Refused Daemon [Text("NAME"), Number("COUNT")]
        "%1 stands for %2 drives",
        "name one of them; see which there are with: palisade drive list",
        "Here one drive is meant, and * stands for all that is found at the address.";
    REMOTE_NOT_OPENED: "RemoteNotOpened" Failed Daemon [Text("PATH"), Text("PROBLEM")]
        "%1 can't be used: %2",
        "connect it with: palisade drive connect -a ADDR -s PORT -n NQN; see its paths with: \
         palisade drive paths",
        "A drive behind NVMe over Fabrics is there once its subsystem is connected by a path, and \
         has that namespace.";
    REMOTE_CLONED: "RemoteCloned" Refused Daemon [Text("PATH"), Text("OTHER")]
        "%1 has the same identity as %2: one is a clone of the other",
        "disconnect the one that is not meant with: palisade drive disconnect -n NQN",
        "Namespaces with one NGUID, UUID or EUI-64 are one drive. In two subsystems they are two \
         that nobody can tell apart, such as a copy that an array of drives has made.";
    FABRIC_NOT_STARTED: "FabricNotStarted" Failed Daemon [Text("PROBLEM")]
        "drives behind NVMe over Fabrics can't be used: %1",
        "see which limit is too low with: palisade doctor",
        "The core that keeps paths to such drives could not be started.";
    SAME_DRIVE: "SameDrive" Refused Daemon [Text("ONE"), Text("OTHER")]
        "%1 and %2 are of one drive, and would be in one group",
        "name namespaces of other subsystems, or accept it with --same-drive",
        "Namespaces of one subsystem are on one drive, mostly: they die together. A group in which \
         that happens has lost two drives at a stroke.";
    DRIVE_NOT_REMOTE: "DriveNotRemote" Refused Command [Text("PATH")]
        "%1 is not behind NVMe over Fabrics",
        "see which drives have paths with: palisade drive paths",
        "Only drives that the daemon reaches over a network have paths. Those that the kernel has \
         connected are block devices: nvme list-subsys tells of them.";
    FABRIC_SILENT: "FabricSilent" Failed Daemon [Number("SECONDS")]
        "nothing came of it within %1 s",
        "see the paths that are being connected with: palisade drive paths",
        "What was asked for goes on. A controller that is being connected may take long to become \
         ready.";
    SUBSYSTEM_NOT_REACHED: "SubsystemNotReached" Failed Daemon [Text("PROBLEM")]
        "%1",
        "see what is at an address with: palisade drive discover -a ADDR -s PORT",
        "The connection, or the controller behind it, gave this answer. Nothing of the subsystem \
         is connected by that address, and it is not tried again.";
    SUBSYSTEM_NOT_CONNECTED: "SubsystemNotConnected" Failed Daemon [Text("PROBLEM")]
        "%1",
        "see what is connected with: palisade drive paths",
        "Subsystems are named by their NQN, paths by address and port.";
    SUBSYSTEM_OTHERWISE: "SubsystemOtherwise" Refused Daemon [Text("PROBLEM")]
        "%1",
        "leave that flag out, or disconnect the subsystem first with: palisade drive disconnect \
         -n NQN",
        "All paths to a subsystem are used in the same way, by one host: what a lost path may \
         still carry out is known by its keep-alive timeout.";
    FEW_IO_QUEUES: "FewIOQueues" Usage Daemon [Number("GIVEN"), Number("LEAST")]
        "nr_io_queues is %1, and each data core needs a queue, and one more is needed: %2",
        "leave it out: as many queues are used as are needed",
        "More are not used. A controller that gives fewer is not connected.";
    BAD_HOST: "BadHost" Usage Daemon [Text("PROBLEM")]
        "%1",
        "name this host as /etc/nvme/hostnqn and /etc/nvme/hostid do",
        "A subsystem knows a host by its NQN and its host identifier, a UUID. The two belong \
         together: a NQN of the form nqn.2014-08.org.nvmexpress:uuid:UUID brings its own.";
    SUBSYSTEM_IN_USE: "SubsystemInUse" Refused Daemon [Text("PROBLEM")]
        "%1",
        "stop the arrays that have its drives, or connect another path first",
        "Without its last path a drive is gone, as if it were pulled out.";
    DRIVE_IN_USE: "DriveInUse" Refused Both [Text("PATH")]
        "%1 is in use by another process, or mounted",
        "unmount it, or stop the program that uses it",
        "Palisade has its drives alone: two programs that write to one drive destroy each other's \
         data. lsblk(8) and fuser(1) tell who has it. Another daemon of Palisade may be the one.";
    DRIVE_SILENT: "DriveSilent" Failed Daemon [Text("PATH"), Number("SECONDS")]
        "%1 did not answer within %2 s",
        "check the drive, or use another",
        "The drive was opened, or was to be, and the system waits for it still. The kernel's log \
         (dmesg) tells more.";
    DRIVE_NOT_OPEN: "DriveNotOpen" Failed Daemon [Text("PATH")]
        "%1 is not open",
        "name an existing block device or file",
        "The drive was there a moment ago and is not any more.";
    DRIVE_NOT_KNOWN: "DriveNotKnown" Failed Daemon [Text("PATH")]
        "%1 is not known any more",
        "try again",
        "The drive was found at this path and went away while the request was carried out.";
    DRIVE_AMBIGUOUS: "DriveAmbiguous" Refused Both [Text("NAME"), Text("DRIVES")]
        "%1 may be more than one drive: %2",
        "name the one that is meant by its path or its id",
        "A drive is named by path, serial number, id, or ARRAY:SLOT. Where a name stands for two \
         drives, none is taken.";
    ANOTHER_DRIVE: "AnotherDrive" Refused Daemon [Text("PATH")]
        "another drive is at %1 now",
        "see which it is with: palisade drive list; then name the one you mean",
        "Paths such as /dev/nvme0n1 are given to drives in the order in which the kernel finds \
         them. Between the request and the look at the path, the drive there has become another \
         one.";
    DRIVE_UNSURE: "DriveUnsure" Refused Daemon [Text("PATH")]
        "the kernel does not say which drive is at %1",
        "try again once its serial number is in /sys",
        "A drive is told from others by what the kernel knows of it without asking it. As long as \
         that is missing, it is not certain that the drive at this path is the one that was meant.";
    DRIVE_CHANGED: "DriveChanged" Refused Daemon [Text("PATH")]
        "%1 was written since it was agreed to overwrite it",
        "see what it holds with: palisade drive list; then repeat the command",
        "What a drive holds is shown before it is overwritten. Before the drive was taken for the \
         change it was looked at again, and it was not as it had been shown.";
    DRIVE_OF_ARRAY: "DriveOfArray" Refused Daemon [Text("PATH"), Number("SLOT"), Text("ARRAY")]
        "%1 is in use: slot %2 of array \"%3\"",
        "use another drive",
        "A drive of a running array is never taken for something else, not even where it is named \
         to be overwritten.";
    DRIVE_RESERVED: "DriveReserved" Refused Daemon [Text("PATH")]
        "%1 is in use by another command that has not ended",
        "wait until that command ends, or use another drive",
        "Another request works on this drive: it creates an array, replaces a drive or erases \
         one.";
    DRIVE_HOLDS_DATA: "DriveHoldsData" Refused Daemon
        [Text("PATH"), Text("SERIAL"), Text("CONTENT")]
        "%1 (serial %2) holds %3",
        "use another drive, or destroy what it holds with: --overwrite %1",
        "The drive has a file system, a partition table or the record of another array. It is \
         overwritten only where a person names it for that.";
    DRIVE_TWICE: "DriveTwice" Usage Daemon [Text("PATH")]
        "%1 is named twice",
        "name each drive once",
        "Two paths may lead to one drive, such as /dev/nvme0n1 and a link in /dev/disk/by-id.";
    OVERWRITE_OTHER: "OverwriteOther" Usage Daemon [Text("PATH")]
        "--overwrite names %1, which is none of the drives",
        "use --overwrite only with drives of this command",
        "Only drives that the command uses can be overwritten. The path may have a slip.";
    PATHS_HANG: "PathsHang" Failed Daemon [Text("PATHS")]
        "%1 can't be looked up: a file system does not answer",
        "see which path of `drives` in the configuration hangs, or name other drives",
        "To find out which drive a path leads to, the system reads directories. One of them is on \
         a file system that does not answer, such as NFS without its server.";
    RECORDS_NOT_ERASED: "RecordsNotErased" Failed Daemon [Text("PROBLEM")]
        "%1",
        "check the drive and its cabling",
        "The array is deleted, but this drive still has its record and will be found again. Once \
         the drive answers, it is erased with: palisade drive wipe.";
    WIPE_FAILED: "WipeFailed" Failed Both [Text("PATH"), Text("PROBLEM")]
        "%1: %2",
        "check the drive and its cabling",
        "The drive failed while its records were erased. It may hold some of them still.";
    WIPE_HOLDS_DATA: "WipeHoldsData" Refused Both [Text("PATH"), Text("CONTENT")]
        "this erases %1, which holds %2",
        "to erase it anyway, repeat the command with --yes --overwrite %1",
        "What the drive holds is not Palisade's. It is erased only where the drive is named \
         twice.";
    DRIVES_IN_USE: "DrivesInUse" Failed Daemon [Text("PATHS")]
        "drives in use by another process, or mounted: %1",
        "stop the program that uses them, such as another daemon, or remove them from `drives` in \
         the configuration",
        "The daemon found these drives when it started and could not have them alone. Arrays that \
         need them do not start.";
    DRIVE_NOT_NAMED: "DriveNotNamed" Refused Daemon [Text("PATH")]
        "%1 is not among the drives of the configuration",
        "add it to `drives` in the configuration, or ask an Administrator to name it",
        "A file can be a drive, too. Which drives the daemon may write is for the configuration to \
         say, and for Administrators.";
    DRIVE_NO_INDICATOR: "DriveNoIndicator" Failed Daemon [Text("PATH")]
        "%1 has no indicator that can be switched",
        "find it by its serial number, or by its slot: palisade drive show %1",
        "An indicator is switched through the enclosure (SES), or through the slot of PCI Express \
         (NPEM). Neither is known of this drive, or the daemon may not switch it.";
    DRIVE_INDICATOR_FAILED: "DriveIndicatorFailed" Failed Daemon [Text("PATH"), Text("WHY")]
        "the indicator of %1 was not switched: %2",
        "see what the kernel's log says of the slot",
        "The enclosure or the slot has an indicator, and it was not switched: the kernel refused, \
         the daemon may not, or the enclosure does not let hosts do it.";
    DRIVE_NOT_NVME: "DriveNotNvme" Failed Both [Text("PATH")]
        "%1 is no NVMe drive, and has no power states",
        "name an NVMe drive: palisade drive list",
        "Power states are those of NVMe controllers. A file, a virtual disk or a drive behind \
         another bus has none that could be set here.";
    DRIVE_POWER_REFUSED: "DrivePowerRefused" Failed Daemon [Text("PATH"), Text("PROBLEM")]
        "%1 refused: %2",
        "see its power states with: palisade drive power %1",
        "The drive was asked for another power state and is in the same one as before. It may not \
         have the state, its firmware may not allow the change, or the daemon may not ask drives: \
         that takes CAP_SYS_ADMIN.";
}
