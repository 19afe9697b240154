import { expect, test } from 'vitest';
import {
  alarms, attached, bayName, capacity, connectLines, drives, EXPORTS, fcPortWord, isWwpn, jobWord, kindOf, levels, localPath, machineAddress, merged, pageOf,
  shelves, touched, verdict,
} from '../src/lib/model';
import type { Chassis, Connection, Drive, Job, Pool, Port } from '../src/lib/redfish';

const ROOT = '/redfish/v1';
const at = (name: string) => `${ROOT}/Chassis/local/Drives/${name}`;

function drive(name: string, own: Partial<Drive['Oem']['Palisade']> = {}, more: Partial<Drive> = {}): Drive {
  return {
    '@odata.id': at(name), Id: name, Name: name, CapacityBytes: 1000, Status: { Health: 'OK' }, ...more,
    Oem: { Palisade: { Path: `/dev/${name}`, State: 'Free', ...own } },
  };
}

function pool(name: string, state: Pool['Oem']['Palisade']['State'], slots: [string | null, string][]): Pool {
  return {
    '@odata.id': `${ROOT}/Systems/local/Storage/palisade/StoragePools/${name}`, Id: name, Name: name,
    Capacity: { Data: { AllocatedBytes: 100, ConsumedBytes: 40 } },
    Oem: {
      Palisade: {
        Level: '5', State: state, StripSizeBytes: 65536, BlockSizeBytes: 512, Epoch: 1, Jobs: [],
        Slots: slots.map(([own, word], slot) => ({
          Slot: slot, State: word as 'InSync', ...(own ? { Drive: { '@odata.id': at(own) } } : {}),
          ReadErrors: 0, Rewritten: 0, WrongStrips: 0, Failures: 0, Timeouts: 0,
        })),
      },
    },
  };
}

test('a drive in an array has the array’s word', () => {
  const pools = [pool('tank', 'Degraded', [['a', 'InSync'], [null, 'Failed'], ['c', 'Rebuilding']])];
  const all = [
    drive('a', { State: 'InUse' }), drive('b', { State: 'Failed', Array: 'tank', Slot: 1 }),
    drive('c', { State: 'InUse' }), drive('d'), drive('e', { State: 'Foreign' }),
  ];
  const views = drives(all, pools);
  expect(views.map((view) => view.word.text)).toEqual(['in sync', 'failed', 'rebuilding', 'free', 'holds other data']);
  expect(views[1]?.slot?.Slot).toBe(1);
  expect(views[3]?.pool).toBeNull();
});

test('a shelf has all its bays, in the order of their numbers', () => {
  const place = (label: string) => ({ PhysicalLocation: { PartLocation: { ServiceLabel: label } } });
  const inside = { Hardware: { Enclosure: 'shelf' } };
  const all = drives([drive('a', inside, place('10')), drive('b', inside, place('9')), drive('c')], []);
  const slots = Array.from({ length: 12 }, (_, slot) => ({ Slot: String(slot + 1) }));
  const chassis: Chassis = {
    '@odata.id': `${ROOT}/Chassis/shelf`, Id: 'shelf', Name: 'Shelf 1',
    Oem: { Palisade: { Columns: 24, Slots: slots } },
  };
  const found = shelves(all, [chassis]);
  expect(found.map((own) => [own.name, own.isReal, own.bays.length])).toEqual([['Shelf 1', true, 12], ['Other drives', false, 1]]);
  expect(found[0]!.bays.map(bayName).slice(8, 11)).toEqual(['Slot 9: free', 'Slot 10: free', 'Slot 11: empty']);
});

test('a slot of an enclosure may name its drive', () => {
  const all = drives([drive('a'), drive('b')], []);
  const chassis: Chassis = {
    '@odata.id': `${ROOT}/Chassis/s`, Id: 's', Name: 's',
    Oem: { Palisade: { Slots: [{ Slot: '2', Drive: { '@odata.id': at('b') } }, { Slot: '1', Drive: { '@odata.id': at('a') }, LocationIndicatorActive: true }],
        Modules: [{ Name: 'IOM A', Ports: [{ Name: 'eth0' }] }] } },
  };
  const [own, ...rest] = shelves(all, [chassis]);
  expect(rest).toEqual([]);
  expect(own!.modules).toEqual([{ name: 'IOM A', ports: ['eth0'] }]);
  expect(own!.bays.map((bay) => [bay.label, bay.view?.drive.Id, bay.located])).toEqual([['1', 'a', true], ['2', 'b', false]]);
});

test('a shelf that tells of itself has bays of others, and one bay for two namespaces', () => {
  const inside = (name: string) => drive(name, { Hardware: { Enclosure: 's', Health: 'OK' } }, { PhysicalLocation: { PartLocation: { ServiceLabel: '1' } } });
  const bay = (slot: string, state: 'Enabled' | 'Absent', own: string[]) => ({
    Slot: slot, State: state, Health: 'OK' as const, Drives: own.map((name) => ({ '@odata.id': at(name) })),
  });
  const told = { ServiceURI: 'https://s:1', Health: 'OK' as const, Bays: [bay('1', 'Enabled', ['a', 'b']), bay('2', 'Enabled', []), bay('3', 'Absent', [])], Ports: [], Parts: [] };
  const slots = [{ Slot: '1', Drive: { '@odata.id': at('a') } }, { Slot: '2' }, { Slot: '3' }];
  const chassis: Chassis = { '@odata.id': `${ROOT}/Chassis/s`, Id: 's', Name: 's', Oem: { Palisade: { Slots: slots, Shelf: told } } };
  const [own, ...rest] = shelves(drives([inside('a'), inside('b')], []), [chassis]);
  expect(rest).toEqual([]);
  expect(own!.bays.map(bayName)).toEqual(['Slot 1: free', 'Slot 2: not used here', 'Slot 3: empty']);
  expect(own!.bays[0]!.view?.drive.Id).toBe('a');
  const silent: Chassis = { ...chassis, Oem: { Palisade: { Slots: [], Shelf: { ...told, Bays: [], SilentSince: '2026-11-24T00:00:00Z' } } } };
  expect(shelves([], [silent]).map((found) => [found.name, found.told?.SilentSince !== undefined])).toEqual([['s', true]]);
});

test('without an enclosure there is a plain row, also of nothing', () => {
  expect(shelves([], []).map((own) => [own.isReal, own.bays.length])).toEqual([[false, 0]]);
  expect(shelves(drives([drive('a')], []), []).map((own) => own.bays.map(bayName))).toEqual([['Slot 1: free']]);
});

test('names that are HTML stay text', () => {
  const name = '<img src=x onerror=alert(1)>';
  const [view] = drives([drive('a', { Path: `/dev/${name}` })], []);
  expect(view!.short).toBe(name);
});

test('the verdict is of the gravest, and says a failed drive once', () => {
  const pools = [pool('tank', 'Degraded', [['a', 'InSync'], [null, 'Failed']])];
  const failed = drive('b', { State: 'Failed', Array: 'tank', Slot: 1 }, { Status: { Health: 'Critical' } });
  const own = verdict(pools, drives([drive('a', { State: 'InUse' }), failed], pools), [], null);
  expect([own.word.tone, own.reasons.map((reason) => reason.what)]).toEqual(['warn', ['Array tank is degraded: slot 1 failed']]);
  const worn = drive('w', {}, { Status: { Health: 'Critical', Conditions: [{ Message: 'worn out', Resolution: 'replace it' }] } });
  const worse = verdict(pools, drives([worn], pools), [], null);
  expect(worse.word).toEqual({ text: 'Critical', tone: 'bad' });
  expect(worse.reasons[0]).toMatchObject({ what: 'Drive w: worn out', action: 'replace it', page: '/drives/w' });
  expect(verdict([], [], [], null).word.text).toBe('All is well');
});

test('capacity counts arrays and free drives', () => {
  const pools = [pool('a', 'Optimal', []), pool('b', 'Optimal', [])];
  const views = drives([drive('x'), drive('y', { State: 'Foreign' })], pools);
  expect(capacity(pools, views)).toEqual({ total: 200, used: 80, free: 120, spare: 1000 });
});

test('the command that connects a host', () => {
  const connection = (own: Partial<Connection['Oem']['Palisade']>): Connection => ({
    '@odata.id': 'x', Id: '1', Name: 'tank:1',
    Oem: { Palisade: { Array: 'tank', Volume: 'db', Number: 1, Listeners: ['192.0.2.1:4420'], URI: 'u', Serving: true, ...own } },
  });
  const own = { Subsystem: 'nqn.s', Hosts: ['nqn.h'] };
  const lines = (more: Partial<Connection['Oem']['Palisade']>) => connectLines(connection(more), 'box.example');
  expect(lines(own)).toEqual(['nvme connect -t tcp -a 192.0.2.1 -s 4420 -n nqn.s -q nqn.h']);
  const six = lines({ ...own, Listeners: ['[2001:db8::1]:4420'], Hosts: [] });
  expect(six).toEqual(['nvme connect -t tcp -a 2001:db8::1 -s 4420 -n nqn.s']);
  expect(lines({ ...own, Advertise: ['198.51.100.7:4421'] })[0]).toContain('-a 198.51.100.7 -s 4421');
  expect(lines({})).toEqual([]);
});

test('the commands that log a host in to a target', () => {
  const own = (more: object) => ({
    Oem: { Palisade: { Iscsi: { Target: 'iqn.t', Unit: 1, Portals: ['0.0.0.0:3260'], Initiators: ['iqn.a'], Sessions: ['iqn.a'], ...more } } },
  }) as unknown as Connection;
  const node = 'iscsiadm -m node -T iqn.t -p [2001:db8::7]:3260';
  expect(connectLines(own({}), '[2001:db8::7]')).toEqual([`${node} -o new`, `${node} --login`]);
  const chap = connectLines(own({ Portals: ['[::1]:3260'], User: 'u' }), 'x');
  expect(chap).toHaveLength(5);
  expect(chap[2]).toBe('iscsiadm -m node -T iqn.t -p [::1]:3260 -o update -n node.session.auth.username -v u');
  expect(connectLines(own({ Advertise: ['198.51.100.7:1'] }), 'x')[0]).toContain('-p 198.51.100.7:1 -o new');
  expect(attached(own({})).map((one) => one.who)).toEqual(['iqn.a']);
  expect(localPath(own({}))).toBeNull();
});

test('at a Fibre Channel port a host looks anew', () => {
  const own = (Fc: object) => ({ Oem: { Palisade: { Listeners: [], Fc } } }) as unknown as Connection;
  const [port, host] = ['20:00:00:25:b5:00:00:1f', '20:00:00:25:b5:00:00:01'];
  const unit = own({ Port: port, Initiators: [host], Unit: 1, Sessions: [host] });
  expect(connectLines(unit, 'x')).toEqual(["echo '- - -' | tee /sys/class/scsi_host/host*/scan"]);
  expect(attached(unit)).toEqual([{ who: host, detail: '', from: '', to: '' }]);
  expect(localPath(unit)).toBeNull();
  const subsystem = own({ Port: port, Initiators: ['nqn.h'], Subsystem: 'nqn.s', Sessions: [] });
  expect(connectLines(subsystem, 'x')).toEqual(['echo add > /sys/class/fc/fc_udev_device/nvme_discovery']);
  expect(attached(subsystem)).toEqual([]);
});

test.each([
  ['20:00:00:25:b5:00:00:1f', true], ['20:00:00:25:B5:00:00:1F', true], ['0x20000025b500001f', true],
  ['naa.20000025b500001f', true], ['20000025B500001F', true], ['', false], ['0x', false],
  ['20:00:00:25:b5:00:00', false], ['20:00:00:25:b5:00:00:1f:00', false], ['20:00:00:25:b5:00:00:1g', false],
  ['20-00-00-25-b5-00-00-1f', false], ['2:0000:00:25:b5:00:00:1f', false], ['00:00:00:00:00:00:00:00', false],
  ['0x0000000000000000', false], ['20000025b500001f0', false], ['nqn.2014-08.org.nvmexpress:uuid:1', false],
])('whether %s names a Fibre Channel port: %s', (text, expected) => expect(isWwpn(text)).toBe(expected));

test('a Fibre Channel port has the kernel’s word', () => {
  const port = (State: string) => ({ Name: '20:00:00:25:b5:00:00:1f', Driver: 'fcoe', State, Speed: '' });
  expect(fcPortWord(port('Online'))).toEqual({ text: 'Online', tone: 'good' });
  expect(fcPortWord(port('Linkdown'))).toEqual({ text: 'Linkdown', tone: 'off' });
  expect(fcPortWord(port('')).text).toBe('not known');
});

test('each address and each host has its line; an address of all is the one that the page came by', () => {
  const own = {
    '@odata.id': 'x', Id: '1', Name: 'tank:1',
    Oem: { Palisade: { Array: 'tank', Volume: 'db', Number: 1, Listeners: ['0.0.0.0:4420', '[::]:4421'], URI: 'u', Serving: true, Subsystem: 'nqn.s', Hosts: ['nqn.a', 'nqn.b'] } },
  } satisfies Connection;
  expect(connectLines(own, '[2001:db8::7]')).toEqual([
    'nvme connect -t tcp -a 2001:db8::7 -s 4420 -n nqn.s -q nqn.a',
    'nvme connect -t tcp -a 2001:db8::7 -s 4421 -n nqn.s -q nqn.a',
    'nvme connect -t tcp -a 2001:db8::7 -s 4420 -n nqn.s -q nqn.b',
    'nvme connect -t tcp -a 2001:db8::7 -s 4421 -n nqn.s -q nqn.b',
  ]);
});

test('what is raised of a supply is in the verdict, and of an array once', () => {
  const of = (uri: string) => ({ OriginOfCondition: { '@odata.id': uri } });
  const raised = alarms(
    [
      { Message: 'Array tank is degraded', Severity: 'Warning', ...of('/redfish/v1/Systems/local/Storage/palisade/StoragePools/p-tank') },
      { Message: 'Supply 1 has no input', Severity: 'Critical', ...of('/redfish/v1/Chassis/local') },
    ],
    null,
  );
  expect(raised.map((own) => [own.tone, own.page])).toEqual([['bad', null], ['warn', '/arrays/p-tank']]);
  const pools = [{ ...pool('tank', 'Degraded', []), Id: 'p-tank' }];
  const own = verdict(pools, [], [], null, raised);
  expect(own.word.text).toBe('Critical');
  expect(own.reasons.map((reason) => reason.what)).toEqual(['Supply 1 has no input', 'Array tank is degraded']);
});

test.each([
  [2, ['0', '1']], [3, ['0', '1', '5']], [4, ['0', '1', '5', '6', '10']], [5, ['0', '1', '5', '6']], [1, []],
])('levels of %s drives', (many, expected) => expect(levels(many).map((own) => own.level)).toEqual(expected));

test.each([
  [`${ROOT}/Systems/local/Storage/palisade/StoragePools/u1#/x`, '/arrays/u1'],
  [at('nvme%201'), '/drives/nvme%201'],
  [`${ROOT}/Fabrics/nvme/Connections/1`, '/exports'],
  [`${ROOT}/Fabrics/local/Connections/1`, '/exports'],
  [`${ROOT}/Fabrics/fc/Connections/1`, '/exports'],
  [`${ROOT}/Fabrics/nvme/Endpoints/h`, '/exports'],
  [`${ROOT}/Systems/local/Storage/palisade/FileSystems/u/ExportedFileShares/Drives`, '/shares'],
  [`${ROOT}/JobService/Jobs/3`, '/jobs'],
  [`${ROOT}/AccountService/Accounts/a`, '/accounts'],
  [`${ROOT}/Managers/palisade`, null],
  [undefined, null],
])('%s is on the page %s', (uri, expected) => expect(pageOf(uri)).toBe(expected));

test('an event has all read that it may have changed', () => {
  expect(touched(at('a'))).toContain('drives');
  expect(touched(`${ROOT}/JobService/Jobs/3`)).toContain('pools');
  expect(touched(`${ROOT}/EventService`)).toContain('volumes');
  // Whatever a share is called.
  expect(touched(`${ROOT}/Systems/local/Storage/palisade/FileSystems/u/ExportedFileShares/Drives`)).toContain('shares');
  expect(touched(`${ROOT}/AccountService/Accounts/a`)).toEqual([]);
});

test('what did not change stays the same object', () => {
  const [a, b] = [drive('a'), drive('b')];
  const before = [a, b];
  expect(merged(before, [drive('a'), drive('b')])).toBe(before);
  const now = merged(before, [drive('a'), drive('b', { State: 'Failed' })]);
  expect([now === before, now[0] === a, now[1] === b]).toEqual([false, true, false]);
  expect(merged(before, [drive('b')])).toEqual([b]);
});

test('a job that has ended says how', () => {
  const job = (own: Partial<Job['Oem']['Palisade']>): Job => ({
    '@odata.id': 'x', Id: '1', Name: 'x', JobState: 'Running',
    Oem: { Palisade: { Array: 'tank', Kind: 'Rebuild', State: 'Running', DoneBytes: 0, TotalBytes: 1, ...own } },
  });
  expect(jobWord(job({})).text).toBe('running');
  expect(jobWord(job({ Waiting: true })).text).toBe('waits');
  expect(jobWord(job({ End: 'Cancelled', Waiting: true })).text).toBe('cancelled');
});

test('who has an export is told with the addresses that it came by', () => {
  const connection = (own: object) => ({ Oem: { Palisade: own } }) as unknown as Connection;
  expect(attached(connection({}))).toEqual([]);
  const nvme = { Connected: [{ Host: 'nqn.a', Controller: 1, Queues: 3, Address: '192.0.2.7', LocalAddress: '192.0.2.1' }, { Controller: 2, Queues: 1 }] };
  expect(attached(connection(nvme))).toEqual([
    { who: 'nqn.a', detail: 'controller 1, 3 queues', from: '192.0.2.7', to: '192.0.2.1' },
    { who: 'a host without a name', detail: 'controller 2, 1 queues', from: '', to: '' },
  ]);
  const nbd = { Clients: [{ Address: '::1', LocalAddress: '::1' }, {}] };
  expect(attached(connection(nbd)).map((one) => one.who)).toEqual(['an NBD client', 'a process of this machine, over NBD']);
});

test.each<[object, string, string | null]>([
  [{ Subsystem: 'nqn.s' }, 'NVMe/TCP', null],
  [{}, 'NBD', null],
  [{ Kind: 'Nbd' }, 'NBD', null],
  [{ Kind: 'Loop', Device: '/dev/loop3', Link: '/dev/palisade/tank/db' }, 'block device of this server', '/dev/palisade/tank/db'],
  [{ Kind: 'Loop', URI: '/dev/palisade/tank/db' }, 'block device of this server', '/dev/palisade/tank/db'],
  [{ Kind: 'Fc' }, 'Fibre Channel (FCP)', null],
  [{ Kind: 'NvmeFc' }, 'Fibre Channel (NVMe)', null],
  [{ Kind: 'Fuse', File: '/srv/a b', URI: 'file:///srv/a%20b' }, 'file of this server', '/srv/a b'],
])('an export %j is a %s at %s', (own, kind, path) => {
  const connection = { Oem: { Palisade: { Listeners: [], ...own } } } as unknown as Connection;
  expect(EXPORTS[kindOf(connection)]).toBe(kind);
  expect(localPath(connection)).toBe(path);
  expect(attached(connection)).toEqual([]);
});

test('an export that is not served is told, but not one that is only starting', () => {
  const of = (State: string, Problem?: string) =>
    ({ Name: 'tank:1', Oem: { Palisade: { Array: 'tank', Volume: 'db', Kind: 'Loop', Listeners: [], Serving: false, Problem, Health: { State, Problem } } } }) as unknown as Connection;
  expect(verdict([], [], [of('Starting')], null).reasons).toEqual([]);
  const { word, reasons } = verdict([], [], [of('Failed', 'no services')], null);
  expect([word.tone, reasons.map((one) => one.what)]).toEqual(['warn', ['Export tank:1 of tank/db is not served: no services']]);
});

test("the machine's address is the browser's, unless only the browser's machine knows that", () => {
  const port = (LinkStatus: string, v4: string[], v6: string[] = []) =>
    ({ LinkStatus, IPv4Addresses: v4.map((Address) => ({ Address })), IPv6Addresses: v6.map((Address) => ({ Address })) }) as unknown as Port;
  const ports = [port('LinkUp', ['127.0.0.1'], ['::1']), port('LinkDown', ['198.51.100.1']), port('LinkUp', ['169.254.1.1', '192.0.2.1'])];
  expect(machineAddress('nas.example', ports)).toBe('nas.example');
  for (const own of ['localhost', '127.0.0.1', '[::1]']) expect(machineAddress(own, ports)).toBe('192.0.2.1');
  expect(machineAddress('localhost', [port('LinkUp', [], ['fe80::1', '2001:db8::1'])])).toBe('[2001:db8::1]');
  expect(machineAddress('localhost', [])).toBe('localhost');
});
