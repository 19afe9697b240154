import { expect, test } from 'vitest';
import { verdict } from '../src/lib/model';
import type { FileShare, FileSystem, ServiceHealth, ShareProtocol, Volume } from '../src/lib/redfish';
import {
  accessOf, areNetworks, areTerms, areUsers, byVolume, changed, created, grantee, isPlace, isShareName, listeners, shareable, shareTroubles,
  shareWord, termsOf, versionName,
} from '../src/lib/shares';

const BASE = '/redfish/v1/Systems/local/Storage/palisade';
const at = (name: string) => ({ '@odata.id': `${BASE}/Volumes/${name}` });
const volume = (name: string, more: Partial<Volume> = {}) => ({ ...at(name), Id: name, Name: name, ...more }) as Volume;

function by(Protocol: 'Smb' | 'Nfs', State: ServiceHealth['State'] = 'Ok', more: Partial<ShareProtocol> = {}): ShareProtocol {
  return { Protocol, Server: 's', Url: `${Protocol}://srv`, Clients: [], Health: { State }, ...more };
}

function share(Protocols: ShareProtocol[], own: Partial<FileShare['Oem']['Palisade']> = {}): FileShare {
  const has = (name: string) => Protocols.some((one) => one.Protocol === name);
  return {
    '@odata.id': `${BASE}/FileSystems/v/ExportedFileShares/docs`, Id: 'docs', Name: 'docs',
    Oem: { Palisade: { ReadOnly: false, Smb: has('Smb'), Nfs: has('Nfs'), SmbUsers: [], NfsClients: [], Protocols, ...own } },
  };
}

function system(Members: FileShare[], Health: ServiceHealth = { State: 'Ok' }): FileSystem {
  return {
    '@odata.id': `${BASE}/FileSystems/v`, Id: 'v', Name: 'db', ExportedShares: { '@odata.id': 'x', Members },
    Oem: {
      Palisade: {
        Array: 'tank', ArrayUUID: 'u', Volume: at('v'), Mounted: true, ReadOnly: false, SmbListen: '[::]:445', NfsListen: '[::]:2049', Users: [], Health,
      },
    },
  };
}

test('a share is made of a volume that no host has, also of one that is shared already', () => {
  const all = [volume('v', { Connections: [at('x')] }), volume('exported', { Connections: [at('y')] }), volume('free')];
  expect(shareable(all, [system([])]).map((own) => own.Id)).toEqual(['v', 'free']);
  expect(byVolume([system([])]).get(at('v')['@odata.id'])?.Id).toBe('v');
});

test.each([
  ['Enabled', 'OK', 'served', 'good'],
  ['Enabled', 'Warning', 'served in part', 'warn'],
  ['Starting', 'OK', 'starting', 'busy'],
  ['UnavailableOffline', 'Critical', 'not served', 'bad'],
] as const)('a share that is %s and %s is %s', (State, Health, text, tone) => {
  expect(shareWord({ ...share([]), Status: { State, Health } })).toEqual({ text, tone });
});

test('words of shares are those of people', () => {
  expect(['SMBv3_0', 'SMBv3_0_2', 'NFSv4_1'].map(versionName)).toEqual(['SMB 3.0', 'SMB 3.0.2', 'NFS 4.1']);
  expect(['bob', 'bob:ro', 'fe80::/10:ro'].map(grantee)).toEqual(['bob', 'bob (read only)', 'fe80::/10 (read only)']);
  expect([accessOf(share([])), accessOf(share([], { ReadOnly: true }))]).toEqual(['read and write', 'read only']);
});

test('a file system says what is wrong with it, else each of its shares does', () => {
  const failed = by('Nfs', 'Failed', { Health: { State: 'Failed', Problem: 'no answer' } });
  const told = (own: FileSystem) => shareTroubles([own]).map((one) => [one.tone, one.what]);
  expect(told(system([share([by('Smb'), failed])]))).toEqual([['warn', 'Share docs of tank/db is not served by NFS: no answer']]);
  expect(told(system([share([failed])]))[0]?.[0]).toBe('bad');
  expect(told(system([share([failed])], { State: 'Failed', Problem: 'not mounted' }))).toEqual([['bad', 'File system of tank/db is not served: not mounted']]);
  // One that is being made is not wrong yet.
  expect(told(system([share([by('Smb', 'Starting')])], { State: 'Starting' }))).toEqual([]);
  const { word, reasons } = verdict([], [], [], null, [], [system([share([failed])])]);
  expect([word.tone, reasons[0]?.page]).toEqual(['bad', '/shares']);
});

test('where shares are reached is told of the protocols that they have, with their clients once', () => {
  const both = share([by('Smb', 'Ok', { Clients: ['10.0.0.7'] })]);
  expect(listeners(system([both, both]))).toEqual([{ by: 'SMB', at: '[::]:445', clients: ['10.0.0.7'] }]);
  expect(listeners(system([share([by('Nfs')])]))).toEqual([{ by: 'NFS', at: '[::]:2049', clients: [] }]);
});

test('what a form may say', () => {
  expect(['docs', 'Größe 1.2 日本', 'a'].every(isShareName)).toBe(true);
  expect(['', ' a', 'a.', 'a  b', 'a/b', 'a;b', '%a'].some(isShareName)).toBe(false);
  expect(areUsers('alice, bob:ro') && areUsers('')).toBe(true);
  expect(areUsers('Alice') || areUsers('1a')).toBe(false);
  expect(areNetworks('10.0.0.0/24 192.0.2.7:ro fd00::/64 ::1 fe80::/10:ro')).toBe(true);
  expect(['10.0.0/24', 'host', '10.0.0.0/x', '10.0.0.0:rw'].some(areNetworks)).toBe(false);
  expect(['', '192.0.2.1:445', '[::]:445'].every(isPlace)).toBe(true);
  expect(['192.0.2.1', 'host:445', '::1:445'].some(isPlace)).toBe(false);
  const terms = termsOf();
  expect([areTerms(terms), areTerms({ ...terms, smb: false })]).toEqual([true, false]);
  // What a protocol that is off says does not count.
  expect(areTerms({ ...terms, clients: 'x' })).toBe(true);
  expect(areTerms({ ...terms, nfs: true, clients: 'x' })).toBe(false);
});

test('a new share is asked for by what is wanted, and nothing else', () => {
  const terms = { ...termsOf(), users: 'alice bob:ro', clients: '10.0.0.0/8' };
  expect(created(terms)).toEqual({ Smb: true, SmbUsers: ['alice', 'bob:ro'] });
  const more = { ...terms, nfs: true, readOnly: true, smbAt: ' 192.0.2.1:445 ', nfsAt: '[::]:2049' };
  expect(created(more, system([]))).toEqual({
    Smb: true, Nfs: true, ReadOnly: true, SmbUsers: ['alice', 'bob:ro'], NfsClients: ['10.0.0.0/8'], SmbListen: '192.0.2.1:445',
  });
});

test('of a share that is there only what differs is asked for', () => {
  const own = share([by('Smb'), by('Nfs')], { SmbUsers: ['alice'], NfsClients: ['10.0.0.0/8'] });
  const ask = (more: object) => changed({ ...termsOf(own), ...more }, system([own]), own);
  expect(ask({})).toEqual({});
  expect(ask({ readOnly: true, users: '' })).toEqual({ ReadOnly: true, SmbUsers: [] });
  // Users and clients go with their protocol.
  expect(ask({ nfs: false })).toEqual({ Nfs: false, NfsClients: [] });
  expect(ask({ smbAt: '[::]:445', nfsAt: '[::]:3049' })).toEqual({ NfsListen: '[::]:3049' });
});
