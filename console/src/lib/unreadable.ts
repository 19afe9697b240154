// What of a volume can't be read: which ranges, why, and what to do. Pure.

import type { Pool, Unreadable } from './redfish';

/** Why a range can't be given back, and what helps. */
export interface Why {
  text: string;
  action: string;
}

const LOST = 'Write it anew, from a backup: then it is data again. Until then its reads fail.';

const REASONS: Record<string, Why> = {
  Media: {
    text: 'a drive can’t read it now, and no other gives it',
    action:
      'If a drive is missing, plug it in again: then it may be there again. Else write it anew, from a backup.',
  },
  Rebuild: { text: 'lost: a rebuild needed what a drive could not read', action: LOST },
  Resync: { text: 'lost: a resync needed what a drive could not read', action: LOST },
  Write: { text: 'lost: its stripe was written while nothing could give it', action: LOST },
  Crash: { text: 'lost: it was being written at a crash, and its drive was gone', action: LOST },
};

/** An unknown word is shown as it is. */
export function reason(word: string): Why {
  return REASONS[word] ?? { text: word, action: LOST };
}

/** The ranges of one volume. */
export interface Ranges {
  pool: Pool;
  name: string;
  ranges: Unreadable[];
  bytes: number;
  /** What helps, each once. */
  actions: string[];
}

/** What can't be read, by volume, in the order of the arrays and of the ranges. */
export function byVolume(pools: readonly Pool[]): Ranges[] {
  const found: Ranges[] = [];
  for (const pool of pools) {
    const own = new Map<string, Unreadable[]>();
    for (const range of pool.Oem.Palisade.Unreadable ?? []) {
      const known = own.get(range.Volume);
      if (known) known.push(range);
      else own.set(range.Volume, [range]);
    }
    for (const [name, ranges] of own) {
      found.push({
        pool,
        name,
        ranges,
        bytes: ranges.reduce((sum, range) => sum + range.LengthBytes, 0),
        actions: [...new Set(ranges.map((range) => reason(range.Reason).action))],
      });
    }
  }
  return found;
}
