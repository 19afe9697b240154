//! What is wrong with exports: addresses, hosts, subsystems.

use super::Arg::{Number, Text};

messages! { EXPORTS:
    EXPORT_PROTOCOL: "ExportProtocol" Usage Daemon []
        "an export needs one of NBD, NVMe/TCP, iSCSI, Fibre Channel, a block device or a file; \
         hosts are named for NVMe/TCP, iSCSI and Fibre Channel only",
        "use --nbd ADDR:PORT, --nbd unix:PATH, --nvme-tcp ADDR:PORT, --iscsi ADDR:PORT, \
         --fc WWPN, --nvme-fc WWPN, --local, \
         --ublk, --fuse PATH, or --vhost-user SOCKET",
        "An export is of one kind. To serve a volume in two ways, create two exports. NBD has \
         no names of hosts: there the address decides who can connect.";
    SERVICES_ABSENT: "ServicesAbsent" Failed Daemon []
        "`palisade services` does not run, which makes block devices, files and targets",
        "start it as root: systemctl start palisade-services, or palisade services --config FILE",
        "The daemon mounts nothing and makes no devices: it could wait for itself. A process of \
         its own does that, which runs beside it on the same machine, with the same configuration.";
    SERVICES_FAILED: "ServicesFailed" Failed Daemon [Text("EXPORT"), Text("PROBLEM")]
        "export %1 can't be used: %2",
        "mend that, and try again",
        "`palisade services` could not make the device or the file, or could not read a block of \
         it as a program would. An export that was being created is forgotten again.";
    EXPORT_IN_USE: "ExportInUse" Refused Daemon [Text("EXPORT"), Text("PROBLEM")]
        "export %1 is in use on this machine: %2",
        "unmount what is mounted from it, close what has it open, and try again",
        "Whoever uses a device or file that goes would lose what is not written yet. Nothing was \
         changed.";
    BAD_FILE: "BadFile" Usage Daemon [Text("PATH"), Text("PROBLEM")]
        "\"%1\" can't be the file of a volume: %2",
        "use an absolute path of a new or empty file, such as /srv/tank-db",
        "The volume is mounted over the file. What is there would be hidden, so only an empty file \
         is taken; one that is not there is made.";
    FILE_TAKEN: "FileTaken" Failed Daemon [Text("PATH")]
        "another volume is exported as %1 already",
        "use another path; list exports with: palisade export list",
        "A file or socket is one volume. The other export's array may not run now.";
    FILE_ELSEWHERE: "FileElsewhere" Refused Daemon [Text("PATH")]
        "%1 is for an Administrator to name",
        "use --local, or ask an Administrator to export the volume",
        "A file can be made anywhere on the machine. Where is for Administrators to say.";
    NO_INITIATORS: "NoInitiators" Usage Daemon []
        "an export over iSCSI names who may log in",
        "use --initiator IQN for each initiator (on Linux: /etc/iscsi/initiatorname.iscsi)",
        "Who may log in is said explicitly. Servers give reservations to named initiators only.";
    BAD_IQN: "BadIqn" Usage Daemon [Text("NAME"), Text("PROBLEM")]
        "\"%1\" is not the name of an iSCSI initiator: %2",
        "use a name such as iqn.1993-08.org.debian:01:abc; on Linux the host's is in \
         /etc/iscsi/initiatorname.iscsi",
        "Names of iSCSI begin with iqn, a year and month, and the reversed name of a domain that \
         its owner had then, or with eui or naa (RFC 7143, section 4.2.7).";
    BAD_PORTAL: "BadPortal" Usage Daemon [Text("ADDRESS"), Text("PROBLEM")]
        "\"%1\" can't be a portal of iSCSI: %2",
        "use --iscsi ADDR:PORT with an IP address of this machine, such as 192.0.2.1:3260",
        "The servers of iSCSI listen at IP addresses (IPv6 in brackets), and look no names up. \
         The usual port is 3260.";
    PORTAL_TWICE: "PortalTwice" Usage Daemon []
        "the same portal, initiator or host is given twice",
        "give each ADDR:PORT and each initiator once",
        "A second one of either would change nothing.";
    BAD_WWPN: "BadWwpn" Usage Daemon [Text("NAME")]
        "\"%1\" is not the name of a Fibre Channel port (WWPN)",
        "use 16 hexadecimal digits, such as 20:00:00:25:b5:00:00:1f; this machine's ports: \
         palisade port list; a Linux host's: cat /sys/class/fc_host/host*/port_name",
        "Ports are known by worldwide names of 64 bits. They are taken with colons or without, and \
         behind 0x or naa.";
    PORTAL_COUNT: "PortalCount" Usage Daemon [Number("ADVERTISED"), Number("PORTALS")]
        "%1 --advertise for %2 --iscsi",
        "use one --advertise for each --iscsi, in the same order, or none",
        "Each address that initiators are told belongs to a portal.";
    CHAP_HALF: "ChapHalf" Usage Daemon []
        "CHAP needs both a user and a secret",
        "use --chap USER --secret-file PATH, or neither",
        "Initiators prove by a secret who they are. Without CHAP an initiator is let in by its \
         name alone, which anyone can claim.";
    CHAP_USER: "ChapUser" Usage Daemon [Text("USER"), Text("PROBLEM")]
        "\"%1\" can't be a user of CHAP: %2",
        "use a plain name, such as the host's",
        "The name is taken by all servers and initiators if it is short and of plain characters.";
    CHAP_SECRET: "ChapSecret" Usage Daemon [Text("PROBLEM")]
        "the secret of CHAP can't be used: %1",
        "use 12 to 16 letters, digits and signs; a good one: openssl rand -hex 8",
        "Fewer than 96 bits are forbidden without encryption below (RFC 7143, section 12.1.3), and \
         some initiators take 16 characters at most.";
    CHAP_NOT_KEPT: "ChapNotKept" Failed Daemon [Text("PROBLEM")]
        "the secret of CHAP can't be kept: %1",
        "mend that, and try again; without CHAP: leave --chap out",
        "The secret is kept in the daemon's state directory, as records on drives hold none. An \
         export that was being created is forgotten again.";
    EXPORT_HOSTS: "ExportHosts" Usage Daemon []
        "an export over NVMe/TCP needs either the NQNs of its hosts or --any-host",
        "use --host NQN for each host (on Linux: /etc/nvme/hostnqn), or --any-host",
        "Who may connect is said explicitly. --any-host lets everyone in who reaches the address.";
    ADVERTISE_COUNT: "AdvertiseCount" Usage Daemon [Number("ADVERTISED"), Number("LISTENERS")]
        "%1 --advertise for %2 --nvme-tcp",
        "use one --advertise for each --nvme-tcp, in the same order, or none",
        "Each address that hosts are told belongs to one that the daemon listens on.";
    ADDRESS_TWICE: "AddressTwice" Usage Daemon []
        "the same address is given twice",
        "give each --nvme-tcp ADDR:PORT once",
        "A second listener on the same address would be no second path.";
    ALREADY_IN_SUBSYSTEM: "AlreadyInSubsystem" Failed Daemon
        [Text("ARRAY"), Text("VOLUME"), Number("NAMESPACE"), Text("SUBSYSTEM"), Text("ID")]
        "%1/%2 is already exported, as namespace %3 of subsystem %4",
        "to change its hosts or addresses, delete it first: palisade export delete %5",
        "A volume is a namespace of one subsystem once: hosts know it by both. More addresses of \
         one export are more paths to it.";
    ALREADY_A_TARGET: "AlreadyATarget" Failed Daemon [Text("ARRAY"), Text("VOLUME"), Text("ID")]
        "%1/%2 is already exported over iSCSI",
        "to change its portals or initiators, delete it first: palisade export delete %3",
        "A volume is one target, whose name is the volume's: initiators know it by that. More \
         portals of one export are more paths to it.";
    ALREADY_AT_A_PORT: "AlreadyAtAPort" Failed Daemon
        [Text("ARRAY"), Text("VOLUME"), Text("ID")]
        "%1/%2 is already exported at a Fibre Channel port",
        "to change its port or initiators, delete it first: palisade export delete %3",
        "A volume is one unit by FCP, and one subsystem by NVMe: what a host reserves counts for \
         all of them.";
    PORT_FULL: "PortFull" Failed Daemon [Text("PORT")]
        "port %1 has as many units as a Fibre Channel port can have",
        "delete an export there, or use another port: palisade port list shows them",
        "A port has LUNs 1 to 4095 for exports of all arrays.";
    ALREADY_EXPORTED: "AlreadyExported" Failed Daemon [Text("ARRAY"), Text("VOLUME")]
        "%1/%2 is exported there already",
        "list exports with: palisade export list",
        "The volume has an export over NBD at this address. Nothing has to be done.";
    EXPORT_NAME_TAKEN: "ExportNameTaken" Failed Daemon [Text("EXPORT"), Text("ADDRESS")]
        "%1 is already exported at %2",
        "list exports with: palisade export list",
        "NBD's clients ask for a volume by array and name, and at this address another array and \
         volume have the same, or NVMe/TCP is spoken there.";
    EXPORT_LINGERS: "ExportLingers" Failed Daemon [Text("ID"), Text("ARRAY")]
        "export %1 is deleted, but commands of its hosts have not ended yet",
        "wait before you delete its volume; see which drive does not answer with: palisade array \
         show %2",
        "No host can send more. What hosts sent before waits for drives that do not answer.";
    ARRAY_STOPPED_MEANWHILE: "ArrayStoppedMeanwhile" Failed Daemon [Text("ARRAY")]
        "array \"%1\" was stopped meanwhile",
        "start it with: palisade array assemble %1",
        "Another command stopped the array while this one waited for its turn.";
    BAD_ADDRESS: "BadAddress" Usage Daemon [Text("ADDRESS"), Text("PROBLEM")]
        "\"%1\" is not a valid address: %2",
        "use ADDR:PORT, such as 127.0.0.1:10809; NBD also takes unix:/absolute/path",
        "Addresses of TCP are a host's name or IP address and a port, IPv6 in brackets: \
         [::1]:4420. Hosts that are told an address by --advertise need an IP address.";
    BAD_NQN: "BadNqn" Usage Daemon [Text("NQN"), Text("PROBLEM")]
        "\"%1\" is not a valid NQN: %2",
        "use an NQN such as nqn.2026-11.org.example:name; on Linux the host's is in \
         /etc/nvme/hostnqn",
        "A qualified name of NVMe begins with nqn, a year and month, and the reversed name of a \
         domain that its owner had then (NVMe Base Specification, section 4.5).";
    CANNOT_LISTEN: "CannotListen" Failed Daemon [Text("ADDRESS"), Text("PROBLEM")]
        "can't listen on %1: %2",
        "use another address, or stop the program that uses this one",
        "The system did not give the daemon this address: another program has it, it is none of \
         this machine's, or the port is below 1024 and needs a privilege.";
    ADDRESS_NOT_FOUND: "AddressNotFound" Failed Daemon [Text("ADDRESS"), Text("PROBLEM")]
        "can't listen on %1: %2",
        "check that the name server answers, or use an IP address",
        "The host's name could not be turned into an IP address.";
    NAMESPACE_TAKEN: "NamespaceTaken" Failed Daemon [Text("SUBSYSTEM"), Number("NAMESPACE")]
        "subsystem %1 already has a namespace %2",
        "delete that export (palisade export list), or use another --subsystem",
        "Within a subsystem each namespace has a number of its own, by which hosts know it.";
    NAMESPACE_NUMBER: "NamespaceNumber" Failed Daemon [Text("SUBSYSTEM"), Number("NAMESPACE")]
        "subsystem %1 can't have a namespace %2: the number is too high",
        "use another --subsystem",
        "Numbers of namespaces are not used again, so that no host takes a new volume for an old \
         one, and a subsystem has only so many. Left out, --subsystem is one for each volume.";
    DISCOVERY_NQN: "DiscoveryNqn" Usage Daemon [Text("SUBSYSTEM")]
        "%1 is the NQN of the discovery service",
        "use another --subsystem",
        "Hosts ask the discovery service by this name which subsystems there are. It holds no \
         volumes.";
    ADVERTISED_OTHERWISE: "AdvertisedOtherwise" Failed Daemon
        [Text("LISTENER"), Text("ADDRESS"), Number("PORT")]
        "%1 is already advertised as %2, port %3",
        "use the same --advertise, or listen on another port",
        "A listener is one port of the NVMe target, whoever is exported there, and hosts are told \
         one address of it.";
    SOCKET_ELSEWHERE: "SocketElsewhere" Refused Daemon [Text("PATH"), Text("DIR")]
        "%1 is not in %2",
        "use a socket in that directory, or ask an Administrator to export the volume",
        "The daemon may make a socket anywhere. Where, but for the directory of its own socket, is \
         for Administrators to say.";
}
