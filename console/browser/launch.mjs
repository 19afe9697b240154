// Chromium, as tests and measurements start it.
import { chromium } from 'playwright-core';

/** How long anything that is waited for may take, in milliseconds. Limits end what hangs, and judge
 * nothing: a machine that is busy with other things is slow, and an emulated one is slower. */
export const LIMIT = 600_000;

export function launch() {
  const executablePath = process.env.PALISADE_CHROMIUM ?? '/usr/bin/chromium';
  // Chromium's own fence does not work for root, as whom containers run.
  const args = process.getuid() === 0 ? ['--no-sandbox'] : [];
  return chromium.launch({ executablePath, args, timeout: LIMIT });
}
