// Shares of volumes' file systems: what pages show of them, and what forms ask for. Pure.

import type { Trouble, Word } from './model';
import type { FileShare, FileSystem, ShareProtocol, Volume } from './redfish';

export const PROTOCOLS: Record<ShareProtocol['Protocol'], string> = { Smb: 'SMB', Nfs: 'NFS' };

/** A file system as people call it: by its volume. */
export const labelOf = (system: FileSystem) => `${system.Oem.Palisade.Array}/${system.Name}`;

/** A file system's shares. */
export const sharesOf = (system: FileSystem): FileShare[] => system.ExportedShares?.Members ?? [];

/** Shared file systems by their volumes' URIs. */
export function byVolume(systems: FileSystem[]): Map<string, FileSystem> {
  const known = systems.filter((own) => own.Oem.Palisade.Volume);
  return new Map(known.map((own) => [own.Oem.Palisade.Volume!['@odata.id'], own]));
}

/** Volumes that a share can be made of: nobody has them as a block device. */
export function shareable(volumes: Volume[], systems: FileSystem[]): Volume[] {
  const shared = byVolume(systems);
  return volumes.filter((own) => shared.has(own['@odata.id']) || !own.Connections?.length);
}

/** How a share is. */
export function shareWord(share: FileShare): Word {
  const { State, Health } = share.Status ?? {};
  if (State === 'Starting') return { text: 'starting', tone: 'busy' };
  if (State !== 'Enabled') return { text: 'not served', tone: 'bad' };
  if (Health !== 'OK') return { text: 'served in part', tone: 'warn' };
  return { text: 'served', tone: 'good' };
}

/** What a share lets do, in words. */
export function accessOf(share: FileShare): string {
  return share.Oem.Palisade.ReadOnly ? 'read only' : 'read and write';
}

/** One who may have a share: `bob:ro` may only read. */
export function grantee(text: string): string {
  return text.endsWith(':ro') ? `${text.slice(0, -3)} (read only)` : text;
}

/** A protocol with its version, as people write it: `SMBv3_1_1` is SMB 3.1.1. */
export function versionName(word: string): string {
  return word.replace(/v(?=\d)/, ' ').replaceAll('_', '.');
}

/** Where a file system's shares are reached, by each protocol that one of them has. */
export function listeners(system: FileSystem): { by: string; at: string; clients: string[] }[] {
  const { SmbListen, NfsListen } = system.Oem.Palisade;
  const all = sharesOf(system).flatMap((share) => share.Oem.Palisade.Protocols);
  const places = { Smb: SmbListen, Nfs: NfsListen };
  return (['Smb', 'Nfs'] as const).flatMap((protocol) => {
    const own = all.filter((one) => one.Protocol === protocol);
    const clients = [...new Set(own.flatMap((one) => one.Clients))];
    return own.length > 0 ? [{ by: PROTOCOLS[protocol], at: places[protocol], clients }] : [];
  });
}

/** What file systems and shares say is wrong with them. */
export function shareTroubles(systems: FileSystem[]): Trouble[] {
  const trouble = (tone: Trouble['tone'], what: string, problem: string | undefined): Trouble => ({
    tone, what: problem ? `${what}: ${problem}` : what, action: '', page: '/shares',
  });
  return systems.flatMap((system) => {
    const { Health } = system.Oem.Palisade;
    // Without it none of its shares is served: it says why.
    if (Health.State === 'Failed') {
      return [trouble('bad', `File system of ${labelOf(system)} is not served`, Health.Problem)];
    }
    return sharesOf(system).flatMap((share) => {
      const own = share.Oem.Palisade.Protocols;
      const failed = own.filter((one) => one.Health.State === 'Failed');
      const tone = failed.length === own.length ? 'bad' : 'warn';
      return failed.map((one) => {
        const what = `Share ${share.Name} of ${labelOf(system)} is not served`;
        return trouble(tone, `${what} by ${PROTOCOLS[one.Protocol]}`, one.Health.Problem);
      });
    });
  });
}

/** A share as a form has it: names and networks with spaces between them. */
export interface Terms {
  smb: boolean;
  nfs: boolean;
  readOnly: boolean;
  users: string;
  clients: string;
  /** Addresses of the whole file system; empty: as they are. */
  smbAt: string;
  nfsAt: string;
}

/** Those of a new share, or of one that is there. */
export function termsOf(share?: FileShare): Terms {
  const own = share?.Oem.Palisade;
  return {
    smb: own?.Smb ?? true,
    nfs: own?.Nfs ?? false,
    readOnly: own?.ReadOnly ?? false,
    users: own?.SmbUsers.join(' ') ?? '',
    clients: own?.NfsClients.join(' ') ?? '',
    smbAt: '',
    nfsAt: '',
  };
}

/** What a field lists. */
export const listed = (text: string): string[] => text.split(/[\s,]+/).filter((own) => own !== '');

const isEach = (text: string, pattern: RegExp) => listed(text).every((own) => pattern.test(own));
/** Whether a field lists users, each of which may be told to read only. */
export const areUsers = (text: string) => isEach(text, /^[a-z][a-z0-9._-]*(:ro)?$/);
/** Whether a field lists addresses and networks, by their form. */
export const areNetworks = (text: string) =>
  isEach(text, /^(\d+(\.\d+){3}|[\da-f]*:[\da-f:.]*?)(\/\d+)?(:ro)?$/i);
/** Whether a field has an IP address with a port, or nothing. */
export const isPlace = (text: string) =>
  text.trim() === '' || /^(\d+(\.\d+){3}|\[[\da-f:.]+\]):\d{1,5}$/i.test(text.trim());

/** Whether a text has the form of a share's name. */
export function isShareName(text: string): boolean {
  const isForm = /^[\p{Alphabetic}\p{N}]+([-_. ]+[\p{Alphabetic}\p{N}]+)*$/u.test(text);
  return isForm && !text.includes('  ');
}

/** Whether a form says something that can be asked for. */
export function areTerms({ smb, nfs, users, clients, smbAt, nfsAt }: Terms): boolean {
  const isSmb = !smb || (areUsers(users) && isPlace(smbAt));
  const isNfs = !nfs || (areNetworks(clients) && isPlace(nfsAt));
  return (smb || nfs) && isSmb && isNfs;
}

/** What a form asks for, as the daemon takes it. What a protocol is not there for is not said. */
function wanted(terms: Terms, system?: FileSystem): Asked {
  const at = (is: boolean, text: string, now: string | undefined) =>
    is && text.trim() !== '' && text.trim() !== now ? text.trim() : undefined;
  return {
    Smb: terms.smb,
    Nfs: terms.nfs,
    ReadOnly: terms.readOnly,
    SmbUsers: terms.smb ? listed(terms.users) : [],
    NfsClients: terms.nfs ? listed(terms.clients) : [],
    SmbListen: at(terms.smb, terms.smbAt, system?.Oem.Palisade.SmbListen),
    NfsListen: at(terms.nfs, terms.nfsAt, system?.Oem.Palisade.NfsListen),
  };
}

type Asked = Record<string, unknown>;

function kept(all: Asked, is: (name: string, value: unknown) => boolean): Asked {
  const own = Object.entries(all).filter(([name, value]) => value !== undefined && is(name, value));
  return Object.fromEntries(own);
}

/** What a new share is asked for with. */
export function created(terms: Terms, system?: FileSystem): Asked {
  const isNone = (value: unknown) => Array.isArray(value) && value.length === 0;
  return kept(wanted(terms, system), (_, value) => value !== false && !isNone(value));
}

/** What of a share is to be another: nothing is said of the rest, which stays. */
export function changed(terms: Terms, system: FileSystem, share: FileShare): Asked {
  const before = share.Oem.Palisade as unknown as Asked;
  const isOther = (one: unknown, other: unknown) => JSON.stringify(one) !== JSON.stringify(other);
  return kept(wanted(terms, system), (name, value) => isOther(value, before[name]));
}
