// The parts of the daemon's resources that the console reads. Whatever may be absent is optional:
// older daemons and smaller machines say less.

export interface Ref {
  '@odata.id': string;
}

export interface Resource extends Ref {
  '@odata.etag'?: string;
  Id: string;
  Name: string;
  Status?: Status;
}

export type Health = 'OK' | 'Warning' | 'Critical';

export interface Condition {
  MessageId?: string;
  Message?: string;
  Resolution?: string;
  Severity?: Health;
  Timestamp?: string;
  OriginOfCondition?: Ref;
  LogEntry?: Ref;
}

export interface Status {
  Health?: Health | null;
  State?: string | null;
  Conditions?: Condition[];
}

export interface Slot {
  Slot: number;
  State: 'InSync' | 'Rebuilding' | 'Failed' | 'Missing';
  Drive?: Ref;
  Path?: string;
  SerialNumber?: string;
  ReadErrors: number;
  Rewritten: number;
  WrongStrips: number;
  Failures: number;
  Timeouts: number;
  Reason?: string;
  Quarantined?: boolean;
}

export interface Unreadable {
  Volume: string;
  OffsetBytes: number;
  LengthBytes: number;
  Reason: string;
}

export interface RegionMap {
  WrittenBytes: number;
  DirtyRegions: number;
  LostPages: number;
  Parts?: { Regions: number; WrittenPercents: number[]; DirtyRegions: number[] };
}

export interface Pool extends Resource {
  Capacity?: { Data?: { AllocatedBytes?: number; ConsumedBytes?: number } };
  Actions?: { Oem?: Record<string, { target: string }> };
  Oem: {
    Palisade: {
      Level: string;
      State: 'Optimal' | 'Degraded' | 'Failed' | 'Stopped';
      StripSizeBytes: number;
      BlockSizeBytes: number;
      Epoch: number;
      Unclean?: boolean;
      CrashSafe?: boolean;
      Shared?: boolean;
      Owner?: { HostId: string; BootId: string; HostName?: string; Own: boolean; HeartbeatAgeMs?: number };
      Problem?: string;
      Warnings?: string[];
      Slots: Slot[];
      Jobs: Ref[];
      LastScrub?: { EndTime: string; Mismatches: number; Repaired: number; Unreadable: number };
      Unreadable?: Unreadable[];
      RegionMap?: RegionMap;
    };
  };
}

export interface PowerState {
  Number: number;
  MaxMilliwatts?: number;
  Operational?: boolean;
}

export interface Hardware {
  Kind?: string;
  Transport?: string;
  Controller?: string;
  Namespace?: number;
  BusAddress?: string;
  Link?: { Lanes: number; MaxLanes: number; Megatransfers: number; MaxMegatransfers: number };
  Enclosure?: string;
  Health?: string;
  SensorCelsius?: number;
  WarningCelsius?: number;
  CriticalCelsius?: number;
  Power?: { CurrentState: number; States: PowerState[] };
  WornOutTime?: string;
  AskedTime?: string;
  Problem?: string;
}

export type DriveState = 'InUse' | 'Found' | 'Failed' | 'Foreign' | 'Free' | 'Unusable';

export interface Drive extends Resource {
  CapacityBytes: number;
  BlockSizeBytes?: number;
  Model?: string | null;
  SerialNumber?: string | null;
  Revision?: string | null;
  FirmwareVersion?: string | null;
  MediaType?: string | null;
  Protocol?: string | null;
  FailurePredicted?: boolean | null;
  PredictedMediaLifeLeftPercent?: number | null;
  LocationIndicatorActive?: boolean | null;
  PhysicalLocation?: { PartLocation?: { ServiceLabel?: string; LocationOrdinalValue?: number } };
  Metrics?: Ref;
  Actions?: { Oem?: Record<string, { target: string }> };
  Links?: { StoragePools?: Ref[]; Chassis?: Ref };
  Oem: {
    Palisade: {
      Path: string;
      State: DriveState;
      IsFile?: boolean;
      WWID?: string;
      Array?: string;
      Slot?: number;
      Signature?: string;
      Problem?: string;
      Hardware?: Hardware;
    };
  };
}

/** How long a drive's requests of one kind took. */
export interface DriveTimes {
  Timed: number;
  Nanoseconds: number;
  /** Requests by interval: up to 1 microsecond, 2, 4 and so on, and longer. */
  Latencies: number[];
}

/** NVMe's SMART log, as DriveMetrics has it, and times. Counters of 128 bits may be texts. */
export interface DriveMetrics extends Resource {
  Oem?: { Palisade?: { CriticalWarning?: number; Reads?: DriveTimes; Writes?: DriveTimes } };
  NVMeSMART?: Record<string, unknown>;
  BadBlockCount?: number;
  PowerOnHours?: number;
  [key: string]: unknown;
}

export interface Volume extends Resource {
  CapacityBytes: number;
  BlockSizeBytes?: number;
  Connections?: Ref[];
  Actions?: Record<string, { target: string }>;
  Links?: { ProvidingStoragePool?: Ref };
  Metrics?: Ref;
  Oem: { Palisade: { Array: string; UnreadableBytes: number } };
}

/** By what an export is served: to hosts, or as a file or a block device of the server itself. */
export type ExportKind = 'Nbd' | 'NvmeTcp' | 'Fuse' | 'Loop' | 'Ublk' | 'VhostUser' | 'Iscsi' | 'Fc' | 'NvmeFc';

/** A volume as the unit of an iSCSI target. */
export interface IscsiExport {
  Target: string;
  Unit: number;
  Portals: string[];
  Advertise?: string[];
  Initiators: string[];
  /** The name by which initiators log in (CHAP). */
  User?: string;
  Server?: 'Lio' | 'Tgt';
  /** Initiators that have it. */
  Sessions: string[];
}

/** A volume at a Fibre Channel port. */
export interface FibreChannelExport {
  /** The port's worldwide name. */
  Port: string;
  /** By FCP, worldwide names of ports; by NVMe, qualified names of hosts. */
  Initiators: string[];
  /** By FCP. */
  Unit?: number;
  /** By NVMe. */
  Subsystem?: string;
  /** Initiators that have it; by NVMe that is not known. */
  Sessions: string[];
}

/** A Fibre Channel port of the server; its state and speed are in the kernel's words. */
export interface FibreChannelPort {
  Name: string;
  Driver: string;
  State: string;
  Speed: string;
}

/** How something is that others than the daemon serve, asked as a client asks. */
export interface ServiceHealth {
  State: 'Ok' | 'Starting' | 'Failed';
  /** In seconds since 1970. */
  Checked?: number;
  Problem?: string;
}

export interface Connection extends Resource {
  VolumeInfo?: { Volume: Ref; AccessState?: string }[];
  Oem: {
    Palisade: {
      Array: string;
      Volume: string;
      Number: number;
      Kind?: ExportKind;
      Device?: string;
      /** Leads to the device, and stays the same. */
      Link?: string;
      File?: string;
      /** Of a virtual machine, over vhost-user. */
      Socket?: string;
      Iscsi?: IscsiExport;
      Fc?: FibreChannelExport;
      Health?: ServiceHealth;
      Listeners: string[];
      Advertise?: string[];
      Hosts?: string[];
      AnyHost?: boolean;
      Subsystem?: string;
      NSID?: number;
      NGUID?: string;
      URI: string;
      Serving: boolean;
      Problem?: string;
      /** Hosts that have it over NVMe. */
      Connected?: { Host?: string; Controller: number; Queues: number; Address?: string; LocalAddress?: string }[];
      /** Clients that have it over NBD; without an address, a process of the machine. */
      Clients?: { Address?: string; LocalAddress?: string }[];
    };
  };
}

/** A user of a file system's shares, over SMB. */
export interface ShareUser {
  UserName: string;
  UID: number;
}

/** How a share is by one protocol. */
export interface ShareProtocol {
  Protocol: 'Smb' | 'Nfs';
  Server: string;
  Version?: string;
  Url: string;
  /** Addresses of clients that are connected. */
  Clients: string[];
  Health: ServiceHealth;
}

export interface FileShare extends Resource {
  /** Its directory in the file system. */
  FileSharePath?: string;
  /** By version: `SMBv3_1_1`. */
  FileSharingProtocols?: string[];
  DefaultAccessCapabilities?: ('Read' | 'Write')[];
  Oem: {
    Palisade: {
      ReadOnly: boolean;
      Smb: boolean;
      Nfs: boolean;
      /** `NAME` or `NAME:ro`; none: all users. */
      SmbUsers: string[];
      /** `ADDRESS/BITS`, with `:ro` behind it only to read; none: nobody. */
      NfsClients: string[];
      Protocols: ShareProtocol[];
    };
  };
}

/** A volume's file system, as long as it is shared. */
export interface FileSystem extends Resource {
  Capacity?: { Data?: { AllocatedBytes?: number; ConsumedBytes?: number } };
  ExportedShares?: Ref & { Members?: FileShare[] };
  Actions?: { Oem?: Record<string, { target: string }> };
  Oem: {
    Palisade: {
      Array: string;
      ArrayUUID: string;
      Volume?: Ref;
      Type?: string;
      Mounted: boolean;
      ReadOnly: boolean;
      SmbListen: string;
      NfsListen: string;
      Users: ShareUser[];
      Health: ServiceHealth;
    };
  };
}

export interface Job extends Resource {
  JobState: string;
  JobStatus?: Health;
  PercentComplete?: number;
  StartTime?: string;
  EndTime?: string;
  EstimatedCompletionTime?: string;
  Actions?: Record<string, { target: string }>;
  Oem: {
    Palisade: {
      Array: string;
      ArrayUUID?: string;
      StoragePool?: Ref;
      Kind: 'Rebuild' | 'Resync' | 'Scrub';
      State: 'Running' | 'Stuck' | 'Paused';
      End?: 'Completed' | 'Cancelled' | 'Interrupted';
      Waiting?: boolean;
      DoneBytes: number;
      TotalBytes: number;
      SecondsLeft?: number;
      Problem?: string;
    };
  };
}

export interface Manager extends Resource {
  FirmwareVersion?: string;
  DateTime?: string;
  LastResetTime?: string;
  Oem?: { Palisade?: { Next?: { What: string; Action: string }[]; Confirm?: string } };
}

export interface LogEntry extends Resource {
  Created: string;
  Message: string;
  MessageId?: string;
  Resolution?: string;
  Severity?: Health;
  Username?: string;
  Links?: { OriginOfCondition?: Ref };
  Oem?: {
    Palisade?: { From?: string; Request?: string; Result?: string; What?: string; Who?: string };
  };
}

export interface Account extends Resource {
  UserName: string;
  RoleId: string;
  Enabled?: boolean;
  Locked?: boolean;
  PasswordChangeRequired?: boolean;
}

export interface Session extends Resource {
  UserName: string;
  Roles?: string[];
  CreatedTime?: string;
  ClientOriginIPAddress?: string;
}

/** A slot of a shelf that tells of itself. */
export interface ShelfBay {
  Slot: string;
  State: 'Enabled' | 'Offline' | 'Absent';
  Health: Health;
  SerialNumber?: string;
  Model?: string;
  CapacityBytes?: number;
  SubsystemNQN?: string;
  LocationIndicatorActive?: boolean;
  Drives: Ref[];
}

/** What a shelf tells of itself by its management service. */
export interface ShelfTold {
  ServiceURI: string;
  ReadTime?: string;
  SilentSince?: string;
  Problem?: string;
  SerialNumber?: string;
  Powered?: boolean;
  Health: Health;
  Bays: ShelfBay[];
  Ports: {
    Module: string;
    Port: string;
    Address?: string;
    Linked?: boolean;
    Enabled?: boolean;
    SpeedMbps?: number;
    MTUSize?: number;
    Health: Health;
  }[];
  Parts: {
    Kind: string;
    Part: string;
    State: 'Enabled' | 'Offline' | 'Absent';
    Health: Health;
    ReadingThousandths?: number;
    Unit?: string;
    WarningThousandths?: number;
    CriticalThousandths?: number;
  }[];
}

export interface Chassis extends Resource {
  ChassisType?: string;
  Model?: string | null;
  Sensors?: Ref;
  ThermalSubsystem?: Ref;
  PowerSubsystem?: Ref;
  Oem?: {
    Palisade?: {
      Columns?: number;
      Slots?: { Slot: string; Drive?: Ref; LocationIndicatorActive?: boolean }[];
      Modules?: { Name: string; Ports: { Name: string; EthernetInterface?: Ref }[] }[];
      Shelf?: ShelfTold;
    };
  };
}

export interface Sensor extends Resource {
  Reading?: number | null;
  ReadingType?: string;
  ReadingUnits?: string;
  Thresholds?: Record<string, { Reading?: number } | undefined>;
}

export interface Fan extends Resource {
  Oem?: { Palisade?: { LeastRPM?: number } };
  SpeedPercent?: { Reading?: number; SpeedRPM?: number };
}

export interface Supply extends Resource {
  LineInputStatus?: string;
}

export interface Port extends Resource {
  InterfaceEnabled?: boolean;
  LinkStatus?: string;
  SpeedMbps?: number | null;
  FullDuplex?: boolean;
  MTUSize?: number;
  MACAddress?: string;
  IPv4Addresses?: { Address?: string; SubnetMask?: string }[];
  IPv6Addresses?: { Address?: string; PrefixLength?: number }[];
}

export interface Plan {
  Steps: string[];
  Lost: string[];
  Drives?: {
    Slot?: number | null;
    Path?: string;
    SerialNumber?: string;
    CapacityBytes?: number;
    Content?: string;
    Destroys?: string | null;
    Refused?: boolean;
  }[];
  CapacityBytes?: number;
  [key: string]: unknown;
}

export interface MetricValue {
  MetricId?: string;
  MetricProperty?: string;
  MetricValue?: string;
}

/** What is wrong now; the alerts say more of the conditions, in the same order. */
export interface ServiceConditions extends Ref {
  Conditions?: Condition[];
  Actions?: { Oem?: Record<string, { target: string }> };
  Oem?: {
    Palisade?: {
      Alerts?: {
        Id: string;
        Name: string;
        Resource: string;
        AcknowledgedTime?: string;
        AcknowledgedBy?: string;
      }[];
    };
  };
}

/** A metric over time, of a report of the past. */
export interface PastSeries {
  MetricId: string;
  StartTime: string;
  StepSeconds: number;
  Values: (number | null)[];
}

export interface Report extends Ref {
  Id: string;
  Timestamp?: string;
  MetricValues?: MetricValue[];
}

export interface RedfishEvent {
  EventId?: string;
  EventTimestamp?: string;
  MessageId?: string;
  Message?: string;
  MessageSeverity?: Health;
  Severity?: Health;
  Resolution?: string;
  OriginOfCondition?: Ref;
  LogEntry?: Ref;
}
