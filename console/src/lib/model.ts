// What the pages show, made of the daemon's resources. Pure.

import { time } from './format';
import { shareTroubles } from './shares';
import type {
  Chassis, Condition, Connection, Drive, DriveState, ExportKind, FibreChannelPort, FileSystem, IscsiExport, Health, Job, Manager, Pool, Port, ServiceConditions,
  ServiceHealth, ShelfBay, ShelfTold, Slot, Supply,
} from './redfish';

/** How something is, for its colour and its shape. The word says the same. */
export type Tone = 'good' | 'busy' | 'warn' | 'bad' | 'off' | 'plain';

export interface Word {
  text: string;
  tone: Tone;
}

export const SLOTS: Record<Slot['State'], Word> = {
  InSync: { text: 'in sync', tone: 'good' },
  Rebuilding: { text: 'rebuilding', tone: 'busy' },
  Failed: { text: 'failed', tone: 'bad' },
  Missing: { text: 'missing', tone: 'bad' },
};

export const ARRAYS: Record<Pool['Oem']['Palisade']['State'], Word> = {
  Optimal: { text: 'optimal', tone: 'good' },
  Degraded: { text: 'degraded', tone: 'warn' },
  Failed: { text: 'failed', tone: 'bad' },
  Stopped: { text: 'stopped', tone: 'off' },
};

export const DRIVES: Record<DriveState, Word> = {
  InUse: { text: 'in use', tone: 'good' },
  Found: { text: 'of a stopped array', tone: 'off' },
  Failed: { text: 'failed', tone: 'bad' },
  Foreign: { text: 'holds other data', tone: 'warn' },
  Free: { text: 'free', tone: 'plain' },
  Unusable: { text: 'unusable', tone: 'bad' },
};

export const EXPORTS: Record<ExportKind, string> = {
  NvmeTcp: 'NVMe/TCP',
  Nbd: 'NBD',
  Iscsi: 'iSCSI',
  Fc: 'Fibre Channel (FCP)',
  NvmeFc: 'Fibre Channel (NVMe)',
  Loop: 'block device of this server',
  Ublk: 'block device of this server (ublk)',
  VhostUser: 'virtual machine of this server',
  Fuse: 'file of this server',
};

export const SERVICES: Record<ServiceHealth['State'], Word> = {
  Ok: { text: 'OK', tone: 'good' },
  Starting: { text: 'starting', tone: 'busy' },
  Failed: { text: 'failed', tone: 'bad' },
};

export const HEALTHS: Record<Health, Word> = {
  OK: { text: 'OK', tone: 'good' },
  Warning: { text: 'warning', tone: 'warn' },
  Critical: { text: 'critical', tone: 'bad' },
};

export function health(value: Health | null | undefined): Word {
  return (value && HEALTHS[value]) || { text: 'not known', tone: 'off' };
}

/** A power supply's word. */
export function supplyWord(supply: Supply): Word {
  const word = health(supply.Status?.Health);
  return supply.LineInputStatus === 'LossOfInput' ? { ...word, text: 'no input' } : word;
}

const UNKNOWN: Word = { text: 'not known', tone: 'off' };

export function idOf(ref: { '@odata.id': string } | undefined): string {
  return decodeURIComponent(ref?.['@odata.id'].split('/').pop() ?? '');
}

/** A path of a page, with an identifier in it. */
export function page(start: string, id: string): string {
  return `${start}/${encodeURIComponent(id)}`;
}

/** A drive as the pages show it: by the array's word, if it is in one. */
export interface DriveView {
  drive: Drive;
  word: Word;
  /** The array's slot, if the drive is in one. */
  pool: Pool | null;
  slot: Slot | null;
  /** Its name in short: what its path ends with. */
  short: string;
  health: Word;
}

export function drives(all: Drive[], pools: Pool[]): DriveView[] {
  const places = new Map<string, [Pool, Slot]>();
  for (const pool of pools) {
    for (const slot of pool.Oem.Palisade.Slots) {
      if (slot.Drive) places.set(slot.Drive['@odata.id'], [pool, slot]);
    }
  }
  const byName = new Map(pools.map((pool) => [pool.Name, pool]));
  /** A slot that names no drive may be named by the drive that was taken out of it. */
  const named = (own: Drive['Oem']['Palisade']): [Pool, Slot] | undefined => {
    const pool = byName.get(own.Array ?? '');
    const slot = pool?.Oem.Palisade.Slots.find((found) => found.Slot === own.Slot);
    return pool && slot && !slot.Drive ? [pool, slot] : undefined;
  };
  return all.map((drive) => {
    const own = drive.Oem.Palisade;
    const [pool, slot] = places.get(drive['@odata.id']) ?? named(own) ?? [null, null];
    let word = DRIVES[own.State] ?? UNKNOWN;
    if (slot && pool?.Oem.Palisade.State !== 'Stopped') word = SLOTS[slot.State] ?? UNKNOWN;
    const short = own.Path.split('/').pop() || drive.Name;
    return { drive, word, pool, slot, short, health: health(drive.Status?.Health) };
  });
}

/** A bay of the shelf. */
export interface Bay {
  /** Its number or label. */
  label: string;
  view: DriveView | null;
  located: boolean;
  /** What the shelf itself says of the slot. */
  told?: ShelfBay;
}

export interface ShelfView {
  id: string;
  name: string;
  model: string;
  columns: number;
  bays: Bay[];
  modules: { name: string; ports: string[] }[];
  /** What the shelf tells of itself. */
  told?: ShelfTold | undefined;
  /** What is wrong with it. */
  wrong?: Condition[];
  /** Whether the system or the configuration knows the enclosure; else the row is only a row. */
  isReal: boolean;
}

/** The accessible name of a bay. */
export function bayName(bay: Bay): string {
  return `Slot ${bay.label}: ${bay.view ? bay.view.word.text : isOthers(bay) ? 'not used here' : 'empty'}`;
}

/** Whether a drive is in the bay that this daemon does not use. */
export function isOthers(bay: Bay): boolean {
  return !bay.view && bay.told !== undefined && bay.told.State !== 'Absent';
}

/** How a part of a shelf that tells of itself is. */
export function partWord(state: 'Enabled' | 'Offline' | 'Absent', of: Health): Word {
  if (state === 'Absent') return { text: 'absent', tone: 'bad' };
  if (state === 'Offline') return { text: 'offline', tone: 'warn' };
  return health(of);
}

function label(view: DriveView): string | null {
  const place = view.drive.PhysicalLocation?.PartLocation;
  if (place?.ServiceLabel) return place.ServiceLabel;
  return place?.LocationOrdinalValue == null ? null : String(place.LocationOrdinalValue);
}

function bySlot(a: Bay, b: Bay): number {
  return a.label.localeCompare(b.label, 'en', { numeric: true });
}

/** Enclosures with their bays; drives of none stand in a row behind them. */
export function shelves(all: DriveView[], chassis: Chassis[]): ShelfView[] {
  const left = new Map(all.map((view) => [view.drive['@odata.id'], view]));
  const found: ShelfView[] = [];
  for (const own of chassis) {
    const told = own.Oem?.Palisade;
    const inside = all.filter((view) => {
      const named = view.drive.Oem.Palisade.Hardware?.Enclosure;
      return named !== undefined && named === own.Id;
    });
    if (!told?.Slots?.length && inside.length === 0 && !told?.Shelf) continue;
    const bays = new Map<string, Bay>();
    for (const slot of told?.Slots ?? []) {
      const view = left.get(slot.Drive?.['@odata.id'] ?? '') ?? null;
      if (view) left.delete(view.drive['@odata.id']);
      const located = (view?.drive.LocationIndicatorActive ?? slot.LocationIndicatorActive) === true;
      bays.set(slot.Slot, { label: slot.Slot, view, located });
    }
    for (const own of told?.Shelf?.Bays ?? []) {
      const bay = bays.get(own.Slot);
      if (bay) [bay.told, bay.located] = [own, own.LocationIndicatorActive ?? bay.located];
    }
    for (const view of inside) {
      if (!left.delete(view.drive['@odata.id'])) continue;
      const text = label(view) ?? String(bays.size + 1);
      // A drive of a shelf may have several namespaces: the first stands in its bay.
      if (bays.get(text)?.view) continue;
      bays.set(text, { label: text, view, located: view.drive.LocationIndicatorActive === true });
    }
    const list = [...bays.values()].sort(bySlot);
    const columns = told?.Columns || Math.min(24, list.length);
    const modules = (told?.Modules ?? []).map((module) => ({ name: module.Name, ports: module.Ports.map((port) => port.Name) }));
    const model = own.Model ?? '';
    const wrong = told?.Shelf ? (own.Status?.Conditions ?? []) : [];
    found.push({ id: own.Id, name: own.Name, model, columns, bays: list, modules, told: told?.Shelf, wrong, isReal: true });
  }
  const rest = [...left.values()];
  if (rest.length > 0 || found.length === 0) {
    const bays = rest.map((view, at) => ({
      label: label(view) ?? String(at + 1),
      view,
      located: view.drive.LocationIndicatorActive === true,
    }));
    const name = found.length > 0 ? 'Other drives' : 'Drives of this machine';
    const columns = Math.min(24, Math.max(bays.length, 12));
    found.push({ id: '-', name, model: '', columns, bays, modules: [], isReal: false });
  }
  return found;
}

/** What is grave, in words, the gravest first. */
export interface Trouble {
  tone: Tone;
  what: string;
  action: string;
  page: string | null;
}

/** The page of a resource, if it has one. */
export function pageOf(uri: string | undefined): string | null {
  if (!uri) return null;
  const part = /\/(FileSystems|StoragePools|Drives|Volumes|Connections|Jobs|Endpoints|Accounts|Sessions|EthernetInterfaces|Sensors|Fans|PowerSupplies)(?:\/([^/#]+))?/.exec(uri);
  if (!part) return null;
  const [, kind, id] = part;
  switch (kind) {
    case 'StoragePools': return id ? `/arrays/${id}` : '/arrays';
    case 'Drives': return id ? `/drives/${id}` : '/shelf';
    case 'Volumes': return '/volumes';
    case 'FileSystems': return '/shares';
    case 'Jobs': return '/jobs';
    case 'EthernetInterfaces': return '/ports';
    case 'Sensors': return '/shelf#sensors';
    case 'Fans':
    case 'PowerSupplies': return '/shelf#around';
    case 'Accounts':
    case 'Sessions': return '/accounts';
    default: return '/exports';
  }
}

const RANK: Record<Tone, number> = { bad: 0, warn: 1, busy: 2, off: 3, plain: 4, good: 5 };

/** The gravest of some tones. */
export function worst(tones: Tone[]): Tone {
  return tones.reduce<Tone>((worst, tone) => (RANK[tone] < RANK[worst] ? tone : worst), 'good');
}

/** An alarm of the daemon. */
export interface Alarm extends Trouble {
  word: string;
  since: string | null;
  /** What it is acknowledged by; none where the daemon keeps no list. */
  id: string | null;
  /** Who acknowledged it, and when. */
  seen: string;
}

/** What the daemon raised, the gravest first. */
export function alarms(conditions: Condition[], alerts: ServiceConditions | null): Alarm[] {
  const kept = alerts?.Oem?.Palisade?.Alerts ?? [];
  const all = conditions.map((own, at): Alarm => {
    const word = health(own.Severity);
    const who = kept[at]?.AcknowledgedBy;
    return {
      tone: word.tone,
      word: word.text,
      what: own.Message ?? own.MessageId ?? '',
      action: own.Resolution ?? '',
      page: pageOf(own.OriginOfCondition?.['@odata.id']),
      since: own.Timestamp ?? null,
      id: kept[at]?.Id ?? null,
      seen: who ? `acknowledged by ${who}, ${time(kept[at]?.AcknowledgedTime)}` : '',
    };
  });
  return all.sort((a, b) => RANK[a.tone] - RANK[b.tone]);
}

/** How the whole is, and why: what the daemon raised, and what its resources say of themselves. */
export function verdict(
  pools: Pool[],
  all: DriveView[],
  connections: Connection[],
  manager: Manager | null,
  raised: Trouble[] = [],
  systems: FileSystem[] = [],
): { word: Word; reasons: Trouble[] } {
  const own = [...troubles(pools, all, connections), ...shareTroubles(systems)];
  // What is raised of something says it in better words.
  const told = new Set(raised.map((one) => one.page));
  const reasons = [...raised, ...own.filter((one) => !told.has(one.page))];
  reasons.sort((a, b) => RANK[a.tone] - RANK[b.tone]);
  const next = manager?.Oem?.Palisade?.Next ?? [];
  if (reasons.length === 0 && next.length > 0) {
    return { word: { text: 'All data is well', tone: 'good' }, reasons };
  }
  const tone = worst(reasons.map((one) => one.tone));
  const text = { bad: 'Critical', warn: 'Needs attention' }[tone as string] ?? 'All is well';
  return { word: { text, tone }, reasons };
}

/** What arrays, drives and exports say is wrong with them. */
function troubles(pools: Pool[], all: DriveView[], connections: Connection[]): Trouble[] {
  const reasons: Trouble[] = [];
  for (const pool of pools) {
    const own = pool.Oem.Palisade;
    const at = page('/arrays', pool.Id);
    if (own.State === 'Failed' || own.State === 'Degraded') {
      const gone = own.Slots.filter((slot) => slot.State !== 'InSync');
      const list = gone.map((slot) => `slot ${slot.Slot} ${SLOTS[slot.State].text}`).join(', ');
      const tone = own.State === 'Failed' ? 'bad' : 'warn';
      const what = `Array ${pool.Name} is ${ARRAYS[own.State].text}${list ? `: ${list}` : ''}`;
      reasons.push({ tone, what, action: '', page: at });
    }
    if (own.Problem) {
      reasons.push({ tone: 'warn', what: `Array ${pool.Name}: ${own.Problem}`, action: '', page: at });
    }
    const lost = (own.Unreadable ?? []).reduce((sum, part) => sum + part.LengthBytes, 0);
    if (lost > 0) {
      const what = `Array ${pool.Name} has ranges that can’t be read`;
      reasons.push({ tone: 'bad', what, action: '', page: at });
    }
  }
  for (const view of all) {
    // Its array says that already.
    if (view.word.tone === 'bad' && view.drive.Oem.Palisade.Array) continue;
    if (view.health.tone !== 'warn' && view.health.tone !== 'bad') continue;
    const why = view.drive.Status?.Conditions?.[0];
    const own = view.drive.Oem.Palisade;
    const what = `Drive ${view.short}: ${why?.Message ?? own.Problem ?? view.word.text}`;
    const at = page('/drives', view.drive.Id);
    reasons.push({ tone: view.health.tone, what, action: why?.Resolution ?? '', page: at });
  }
  for (const connection of connections) {
    const own = connection.Oem.Palisade;
    // One that is being made is not wrong yet.
    if (own.Serving || own.Health?.State === 'Starting') continue;
    const what = `Export ${connection.Name} of ${own.Array}/${own.Volume} is not served`;
    reasons.push({ tone: 'warn', what: own.Problem ? `${what}: ${own.Problem}` : what, action: '', page: '/exports' });
  }
  return reasons;
}

/** Bytes that arrays offer, that volumes take, and that free drives hold. */
export function capacity(pools: Pool[], all: DriveView[]): { total: number; used: number; free: number; spare: number } {
  let [total, used] = [0, 0];
  for (const pool of pools) {
    total += pool.Capacity?.Data?.AllocatedBytes ?? 0;
    used += pool.Capacity?.Data?.ConsumedBytes ?? 0;
  }
  const spare = all
    .filter((view) => view.drive.Oem.Palisade.State === 'Free')
    .reduce((sum, view) => sum + view.drive.CapacityBytes, 0);
  return { total, used, free: total - used, spare };
}

/** A job's word. */
export function jobWord(job: Job): Word {
  const own = job.Oem.Palisade;
  if (own.End) {
    return {
      Completed: { text: 'completed', tone: 'good' as const },
      Cancelled: { text: 'cancelled', tone: 'off' as const },
      Interrupted: { text: 'interrupted', tone: 'warn' as const },
    }[own.End];
  }
  if (own.Waiting) return { text: 'waits', tone: 'off' };
  return {
    Running: { text: 'running', tone: 'busy' as const },
    Stuck: { text: 'stuck', tone: 'warn' as const },
    Paused: { text: 'paused', tone: 'off' as const },
  }[own.State];
}

/** A level as people call it. */
export function levelName(level: string): string {
  return /^\d+$/.test(level) ? `RAID ${level}` : level.toUpperCase();
}

/** Levels that so many drives can make, with what they offer of the smallest drive. */
export function levels(n: number): { level: string; name: string; share: number; survives: string }[] {
  const all = [
    { level: '0', name: 'RAID 0', share: n, survives: 'no drive may fail', fits: n >= 2 },
    { level: '1', name: 'RAID 1', share: 1, survives: 'all but one may fail', fits: n >= 2 },
    { level: '5', name: 'RAID 5', share: n - 1, survives: 'any one drive may fail', fits: n >= 3 },
    { level: '6', name: 'RAID 6', share: n - 2, survives: 'any two drives may fail', fits: n >= 4 },
    { level: '10', name: 'RAID 10', share: n / 2, survives: 'one drive of each pair may fail', fits: n >= 4 && n % 2 === 0 },
  ];
  return all.filter((own) => own.fits).map(({ fits: _, ...own }) => own);
}

/** By what an export is served; older daemons do not say. */
export function kindOf(connection: Connection): ExportKind {
  const own = connection.Oem.Palisade;
  return own.Kind ?? (own.Subsystem === undefined ? 'Nbd' : 'NvmeTcp');
}

/** The path by which programs of the server use an export; none of one for hosts. */
export function localPath(connection: Connection): string | null {
  const own = connection.Oem.Palisade;
  switch (kindOf(connection)) {
    case 'Loop':
    case 'Ublk': return own.Link ?? own.URI;
    case 'Fuse': return own.File ?? own.URI;
    case 'VhostUser': return own.Socket ?? own.URI;
    default: return null;
  }
}

/** Who serves iSCSI targets. */
export const SERVERS = { Lio: 'LIO', Tgt: 'tgt' };

/** Whether a text is the worldwide name of a Fibre Channel port, as systems and switches show it. */
export function isWwpn(text: string): boolean {
  const digits = text.replace(/^(0[xX]|naa\.)/, '');
  return /^([0-9a-f]{16}|[0-9a-f]{2}(:[0-9a-f]{2}){7})$/i.test(digits) && /[^0:]/.test(digits);
}

/** How a Fibre Channel port is. */
export function fcPortWord(port: FibreChannelPort): Word {
  return { text: port.State || 'not known', tone: port.State === 'Online' ? 'good' : 'off' };
}

/** Who has an export: each connection, and by which addresses it came. */
export function attached(connection: Connection): { who: string; detail: string; from: string; to: string }[] {
  const { Connected = [], Clients = [], Iscsi, Fc } = connection.Oem.Palisade;
  return [
    ...(Iscsi?.Sessions ?? Fc?.Sessions ?? []).map((who) => ({ who, detail: '', from: '', to: '' })),
    ...Connected.map((host) => ({
      who: host.Host ?? 'a host without a name',
      detail: `controller ${host.Controller}, ${host.Queues} queues`,
      from: host.Address ?? '',
      to: host.LocalAddress ?? '',
    })),
    ...Clients.map((client) => ({
      who: client.Address ? 'an NBD client' : 'a process of this machine, over NBD',
      detail: '',
      from: client.Address ?? '',
      to: client.LocalAddress ?? '',
    })),
  ];
}

/** An address by which hosts find the daemon's machine: that by which the browser did, unless that is
 * only known on the browser's own machine, as through a tunnel; then one of a port that has a link. */
export function machineAddress(browser: string, ports: Port[]): string {
  if (!/^(localhost|127\.|\[?::1\]?$)/.test(browser)) return browser;
  const linked = ports.filter((port) => port.LinkStatus === 'LinkUp');
  const usable = (own: string | undefined) => own !== undefined && !/^(127\.|169\.254\.|::1$|fe80:)/i.test(own);
  const all = [...linked.flatMap((port) => port.IPv4Addresses ?? []), ...linked.flatMap((port) => port.IPv6Addresses ?? [])];
  const found = all.map((own) => own.Address).find(usable);
  if (found === undefined) return browser;
  return found.includes(':') ? `[${found}]` : found;
}

/** What logs hosts in to a target (iscsiadm of open-iscsi). Nodes are named, not discovered: discovery
 * tells the addresses that the server has. */
function loginLines(own: IscsiExport, here: string): string[] {
  const told = own.Advertise?.length ? own.Advertise : own.Portals;
  return told.flatMap((listener) => {
    const at = listener.lastIndexOf(':');
    const isAny = /^(0\.0\.0\.0|\[[0:]+\])$/.test(listener.slice(0, at));
    const node = `iscsiadm -m node -T ${own.Target} -p ${isAny ? `${here}${listener.slice(at)}` : listener}`;
    const set = (name: string, value: string) => `${node} -o update -n node.session.auth.${name} -v ${value}`;
    const chap = own.User ? [set('authmethod', 'CHAP'), set('username', own.User), set('password', 'SECRET')] : [];
    return [`${node} -o new`, ...chap, `${node} --login`];
  });
}

/** What has a host look for new units at its ports, as root. */
const SCAN = "echo '- - -' | tee /sys/class/scsi_host/host*/scan";
/** What has a host ask all Fibre Channel ports that it sees for subsystems (udev's rules of nvme-cli do it). */
const DISCOVER = 'echo add > /sys/class/fc/fc_udev_device/nvme_discovery';

/** What connects hosts to an export: a line for each address, and for each host where only some may
 * connect; at a Fibre Channel port, what has a host look anew. None where the export has none of these. `here` is an
 * address of the daemon's machine, for where it listens on all that there are. */
export function connectLines(connection: Connection, here: string): string[] {
  const own = connection.Oem.Palisade;
  if (own.Iscsi) return loginLines(own.Iscsi, here);
  if (own.Fc) return [own.Fc.Subsystem === undefined ? SCAN : DISCOVER];
  if (!own.Subsystem) return [];
  const told = own.Advertise?.length ? own.Advertise : own.Listeners;
  const lines = told.flatMap((listener) => {
    const at = listener.lastIndexOf(':');
    if (at < 0) return [];
    const bare = listener.slice(0, at).replace(/^\[|\]$/g, '');
    const address = /^(0\.0\.0\.0|[0:]+)$/.test(bare) ? here.replace(/^\[|\]$/g, '') : bare;
    return [`nvme connect -t tcp -a ${address} -s ${listener.slice(at + 1)} -n ${own.Subsystem}`];
  });
  const hosts = own.AnyHost ? [] : (own.Hosts ?? []);
  return hosts.length === 0 ? lines : hosts.flatMap((host) => lines.map((line) => `${line} -q ${host}`));
}

/** Which of the things held change with a resource: names of the store's collections. */
export function touched(uri: string | undefined): string[] {
  const path = uri ?? '';
  // First: the name of a share may be any of the words below.
  if (path.includes('/FileSystems')) return ['shares', 'volumes', 'manager'];
  if (path.includes('/StoragePools')) return ['pools', 'drives', 'volumes', 'shares', 'jobs', 'manager'];
  // A drive that comes or goes is in a bay, or is not any more.
  if (path.includes('/Drives')) return ['drives', 'pools', 'manager', 'around'];
  if (path.includes('/Volumes')) return ['volumes', 'pools', 'shares', 'manager'];
  if (path.includes('/Connections')) return ['connections', 'volumes', 'manager'];
  if (path.includes('/Endpoints')) return ['connections'];
  if (path.includes('/Jobs')) return ['jobs', 'pools', 'drives', 'manager'];
  if (path.includes('/ServiceConditions') || path.includes('/Chassis') || path.includes('/EthernetInterfaces')) return ['around', 'manager'];
  if (path.includes('/AccountService') || path.includes('/SessionService')) return [];
  if (path.includes('/EventService')) {
    return ['pools', 'drives', 'volumes', 'connections', 'shares', 'jobs', 'manager', 'around', 'log'];
  }
  return ['manager'];
}

/** New members, but the old object where it is the same: pages draw anew only what changed. */
export function merged<T extends { '@odata.id': string; '@odata.etag'?: string }>(
  before: T[],
  now: T[],
): T[] {
  const old = new Map(before.map((own) => [own['@odata.id'], own]));
  let isSame = before.length === now.length;
  const list = now.map((own, at) => {
    const known = old.get(own['@odata.id']);
    // ETags do not count counters and progress: what may differ in them is compared.
    const kept =
      known && known['@odata.etag'] === own['@odata.etag'] && JSON.stringify(known) === JSON.stringify(own)
        ? known
        : own;
    if (kept !== before[at]) isSame = false;
    return kept;
  });
  return isSame ? before : list;
}
