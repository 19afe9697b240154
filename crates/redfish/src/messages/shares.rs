//! What is wrong with shares of file systems, and with users of them.

use super::Arg::Text;

messages! { SHARES:
    NO_SHARE: "NoShare" Failed Both [Text("SHARE")]
        "no share is named \"%1\"",
        "list shares with: palisade share list",
        "Shares are known as long as their array runs: its drives say what is shared.";
    SHARE_NAME: "ShareName" Usage Both [Text("SHARE"), Text("PROBLEM")]
        "\"%1\" can't be the name of a share: %2",
        "use letters and digits, such as docs",
        "The name stands in the paths of clients and in the files of servers. Only names are taken \
         that all of them read as the same.";
    SHARE_USER_NAME: "ShareUserName" Usage Both [Text("USER"), Text("PROBLEM")]
        "\"%1\" can't be a user of shares: %2",
        "use letters and digits, such as alice",
        "A user of shares is a user of SMB, not an account of this service or of the machine. The \
         name is taken by all clients if it is short and plain.";
    SHARE_CLIENT: "ShareClient" Usage Both [Text("CLIENT"), Text("PROBLEM")]
        "\"%1\" is no network of clients: %2",
        "give an address or ADDRESS/BITS, such as 10.0.0.0/24, and :ro behind it to let them only \
         read",
        "Clients of NFS are known by their addresses. Names are not looked up: whoever answers for \
         them would say who is let in.";
    SHARE_LISTEN: "ShareListen" Usage Both [Text("ADDRESS"), Text("PROBLEM")]
        "shares can't be reached at \"%1\": %2",
        "use ADDR:PORT with an IP address of this machine, such as 192.0.2.1:445; [::]:445 is all",
        "The servers of shares listen at IP addresses (IPv6 in brackets), and look no names up. \
         All shares of a file system by one protocol are at one address.";
    SHARE_PROTOCOL: "ShareProtocol" Usage Both []
        "a share needs SMB or NFS",
        "give --smb, --nfs, or both",
        "By what clients have a share is said explicitly. Without any, nobody could have it.";
    SHARE_TWICE: "ShareTwice" Usage Both [Text("WHO")]
        "%1 is named twice",
        "name each user and each network once",
        "Of two that say something else of one, nobody could tell which counts.";
    SHARE_WITHOUT_PROTOCOL: "ShareWithoutProtocol" Usage Both [Text("WHAT"), Text("PROTOCOL")]
        "%1 are given, but the share is not by %2",
        "share it by %2, too, or leave them out",
        "Users are those of SMB, and networks of clients those of NFS. Neither lets anybody in by \
         the other protocol.";
    SHARE_OVERWRITE: "ShareOverwrite" Usage Both []
        "--overwrite goes with --format only",
        "leave --overwrite out to share what the volume holds",
        "What a volume holds is lost only where a new file system is made in its place.";
    SHARE_EXISTS: "ShareExists" Refused Daemon [Text("SHARE"), Text("VOLUME")]
        "a share named \"%1\" is there already, of volume %2",
        "choose another name, or change the share: palisade share set %1",
        "Clients know a share by its name, whatever the case of its letters, so no two have the \
         same.";
    SHARE_LISTENS: "ShareListens" Refused Daemon [Text("ADDRESS"), Text("VOLUME")]
        "at %1 clients reach the shares of volume %2",
        "use another address or port; the present ones are told by: palisade share list",
        "Each file system has servers of its own, and two can't listen at one address.";
    SHARE_ON_EXPORTED: "ShareOnExported" Refused Daemon [Text("VOLUME"), Text("EXPORT")]
        "volume %1 is exported (%2), and a second writer would spoil its file system",
        "delete the export first: palisade export delete %2",
        "A file system that is mounted belongs to one machine. Whoever has the volume as a block \
         device would write beneath it, and neither would know of the other.";
    EXPORT_OF_SHARED: "ExportOfShared" Refused Daemon [Text("VOLUME"), Text("SHARES")]
        "volume %1 has shares (%2), whose file system a second writer would spoil",
        "end them first: palisade share delete SHARE --yes",
        "A file system that is mounted belongs to one machine. Its files stay when its shares end; \
         then the volume can be exported with them.";
    VOLUME_SHARED: "VolumeShared" Refused Daemon [Text("VOLUME"), Text("SHARES")]
        "volume %1 can't be deleted: it has shares (%2)",
        "list shares with: palisade share list; end one with: palisade share delete SHARE --yes",
        "Clients may be using the files. The shares are ended first, which ends the connections.";
    ARRAY_SHARED: "ArrayShared" Refused Daemon [Text("ARRAY"), Text("SHARES")]
        "array %1 can't stop: its volumes have shares (%2)",
        "list shares with: palisade share list; end one with: palisade share delete SHARE --yes",
        "What clients have written and not saved would be lost. The shares are ended first, which \
         unmounts their file system.";
    SHARE_IN_USE: "ShareInUse" Refused Daemon [Text("SHARE"), Text("USE")]
        "share %1 stays: %2",
        "end what uses its file system on this machine, and try again",
        "With its last share a file system is unmounted. What processes of this machine have open \
         there would be cut off, so that it stays, and clients may have it again.";
    VOLUME_HOLDS: "VolumeHolds" Refused Daemon [Text("VOLUME"), Text("WHAT")]
        "volume %1 holds %2, which a new file system would replace",
        "share what is there without --format, or give --overwrite and lose it",
        "A new file system is made on an empty volume. What is found at the places where file \
         systems, partitions and others write what they are stays unless it may go.";
    SHARED_NOT_FORMATTED: "SharedNotFormatted" Refused Daemon [Text("VOLUME")]
        "volume %1 is shared already, so its file system is not made anew",
        "leave --format out, or end the volume's shares first",
        "A new file system would take the files away that clients have. It is made only before \
         anybody was let in.";
    SHARED_SHRINK: "SharedShrink" Refused Daemon [Text("VOLUME")]
        "volume %1 is shared, and can't become smaller",
        "end its shares first, and make its file system smaller",
        "A file system reaches to the end of its volume. What is cut off would be lost, and the \
         file system with it. A shared volume that becomes larger has its file system grow.";
    SHARE_FAILED: "ShareFailed" Failed Daemon [Text("SHARE"), Text("PROBLEM")]
        "share %1 can't be served: %2",
        "mend that, and try again; how shares are is told by: palisade share list",
        "`palisade services` mounts the file system and runs the servers, whose own words these \
         are. Samba serves SMB, NFS-Ganesha NFS: both have to be installed where they are used.";
    NO_SHARES: "NoShares" Failed Command []
        "there is no share, so no file system that has users",
        "make a share first: palisade share create NAME --volume ARRAY/VOLUME --smb",
        "Users of shares are kept in the file system of a volume, and come with its first share.";
    NO_SHARE_USER: "NoShareUser" Failed Both [Text("USER"), Text("VOLUME")]
        "no user of the shares of %2 is named \"%1\"",
        "list users with: palisade share user list",
        "Each file system has users of its own, who are with it on its volume.";
    SHARE_USER_EXISTS: "ShareUserExists" Refused Both [Text("USER"), Text("VOLUME")]
        "\"%1\" is a user of the shares of %2 already",
        "choose another name, or give the user a new password: palisade share user password %1",
        "Each name stands for one user of a file system, whose files are that user's.";
    SHARE_USER_NAMED: "ShareUserNamed" Refused Daemon
        [Text("USER"), Text("VOLUME"), Text("SHARE")]
        "user %1 of volume %2 stays: share %3 is for users that it names, and names %1",
        "name others first, or let all users have it: palisade share set %3",
        "A share that names users is for nobody else. Whoever was called so next would have it.";
    SHARE_USER_FAILED: "ShareUserFailed" Failed Daemon
        [Text("USER"), Text("VOLUME"), Text("PROBLEM")]
        "user %1 of volume %2 can't be changed: %3",
        "mend that, and try again; the file system has to be mounted",
        "Users and their passwords are kept in the file system, by Samba: it tells what it found \
         wrong.";
    SHARE_USER_PASSWORD: "ShareUserPassword" Usage Both [Text("PROBLEM")]
        "the password can't be used: %1",
        "use 1 to 127 bytes in one line",
        "Samba reads a password as a line, and clients of SMB take no longer ones.";
}
