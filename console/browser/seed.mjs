// What the tests' own daemon holds before pages are looked at: a whole array with volumes that hosts
// can reach, one that lost a drive, and drives that are free. Where the machine can, a volume is a block
// device of it, one a file, and the files of one are shared.
import { freePort } from './daemon.mjs';

const HOST = 'nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555';

const LONG = 'a-volume-with-a-name-that-is-as-long-as-names-may-be-or-nearly';

/** Files of a volume, by both protocols, and a user who may have them. */
async function share(daemon, ask) {
  ask('volume', 'create', 'media/documents', '--size', '64M');
  const by = async (name) => [`--${name}`, `--${name}-listen`, `127.0.0.1:${await freePort()}`];
  const words = [...(await by('smb')), ...(await by('nfs')), '--nfs-client', '127.0.0.0/8:ro'];
  ask('share', 'create', 'docs', '--volume', 'media/documents', '--format', 'ext4', ...words);
  daemon.command(['share', 'user', 'add', 'alice', '--share', 'docs'], 'a password of alice\n');
}

export async function seed(daemon) {
  const drives = (first, last) => daemon.drives.slice(first - 1, last);
  const ask = (...words) => daemon.command(words);
  ask('array', 'create', 'media', '--level', '6', '--drives', ...drives(1, 8));
  for (const volume of ['films', 'music', LONG]) {
    ask('volume', 'create', `media/${volume}`, '--size', '64M');
  }
  ask('export', 'create', 'media/films', '--nvme-tcp', '127.0.0.1:0', '--host', HOST);
  ask('export', 'create', 'media/music', '--nbd', '127.0.0.1:0');
  if (daemon.hasServices) {
    ask('export', 'create', `media/${LONG}`, '--local');
    ask('export', 'create', 'media/music', '--fuse', daemon.path('music.raw'));
  }
  if (daemon.hasShares) await share(daemon, ask);
  ask('array', 'create', 'scratch', '--level', '10', '--drives', ...drives(9, 12));
  ask('volume', 'create', 'scratch/temporary', '--size', '32M');
  ask('array', 'scrub', 'media', '--check');
  ask('array', 'wait', 'media', '--timeout', '600');
  ask('array', 'fail', 'scratch', '--drive', 'slot:1');
}
