// Numbers and times as people read them. Pure: the tests are tables.

const BYTES = ['B', 'KiB', 'MiB', 'GiB', 'TiB', 'PiB', 'EiB'];

/** Three digits, without zeros at the end: 1, 1.5, 12.3, 123. */
export function short(value: number): string {
  const size = Math.abs(value);
  const digits = size >= 100 || Number.isInteger(value) ? 0 : size >= 10 ? 1 : 2;
  const text = value.toFixed(digits);
  return digits > 0 ? text.replace(/\.?0+$/, '') : text;
}

/** Bytes, in powers of 1,024. */
export function bytes(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return '–';
  let size = value;
  let unit = 0;
  while (Math.abs(size) >= 1024 && unit < BYTES.length - 1) {
    size /= 1024;
    unit += 1;
  }
  // 1023.9 KiB is not shown as 1024 KiB.
  if (Number(short(size)) >= 1024 && unit < BYTES.length - 1) {
    size /= 1024;
    unit += 1;
  }
  return `${short(size)} ${BYTES[unit]}`;
}

/** Drives are sold in powers of 1,000. */
export function decimalBytes(value: number | null | undefined): string {
  if (value == null || !Number.isFinite(value)) return '–';
  return `${count(value, ' ')}B`.replace(/(\d)B$/, '$1 B');
}

/** A number with k, M, G. */
export function count(value: number | null | undefined, gap = ''): string {
  if (value == null || !Number.isFinite(value)) return '–';
  const units = ['', 'k', 'M', 'G', 'T', 'P'];
  let size = value;
  let unit = 0;
  while (Math.abs(Number(short(size))) >= 1000 && unit < units.length - 1) {
    size /= 1000;
    unit += 1;
  }
  return unit === 0 ? short(size) : `${short(size)}${gap}${units[unit]}`;
}

/** A number with all its digits. */
export function grouped(value: number): string {
  return value.toLocaleString('en');
}

/** Bytes a second. */
export function rate(value: number | null | undefined): string {
  return value == null || !Number.isFinite(value) ? '–' : `${bytes(value)}/s`;
}

/** A latency, from nanoseconds. */
export function latency(nanoseconds: number | null | undefined): string {
  if (nanoseconds == null || !Number.isFinite(nanoseconds)) return '–';
  if (nanoseconds < 1e6) return `${short(nanoseconds / 1e3)} µs`;
  if (nanoseconds < 1e9) return `${short(nanoseconds / 1e6)} ms`;
  return `${short(nanoseconds / 1e9)} s`;
}

/** A temperature. */
export function celsius(value: number | null | undefined): string {
  return value == null || !Number.isFinite(value) ? '–' : `${short(value)} °C`;
}

/** A span of time in the two largest units: 3 h 20 min. */
export function duration(seconds: number | null | undefined): string {
  if (seconds == null || !Number.isFinite(seconds) || seconds < 0) return '–';
  const units: [string, number][] = [['d', 86400], ['h', 3600], ['min', 60], ['s', 1]];
  let rest = Math.round(seconds);
  const parts: string[] = [];
  for (const [name, size] of units) {
    if (parts.length === 2) break;
    const many = Math.floor(rest / size);
    if (many > 0) parts.push(`${many} ${name}`);
    else if (parts.length > 0) break;
    rest -= many * size;
  }
  return parts.length > 0 ? parts.join(' ') : '0 s';
}

/** How long ago a time was. */
export function ago(then: string | number | null | undefined, now: number): string {
  const at = typeof then === 'string' ? Date.parse(then) : then;
  if (at == null || !Number.isFinite(at)) return '–';
  const seconds = Math.round((now - at) / 1000);
  if (seconds < 5) return 'just now';
  const unit = [86400, 3600, 60, 1].find((size) => seconds >= size) ?? 1;
  const name = { 86400: 'd', 3600: 'h', 60: 'min', 1: 's' }[unit];
  return `${Math.floor(seconds / unit)} ${name} ago`;
}

/** A time in the reader's zone: 2026-11-25 18:12:27. */
export function time(text: string | number | null | undefined): string {
  const at = new Date(text ?? Number.NaN);
  if (Number.isNaN(at.getTime())) return '–';
  const two = (value: number) => String(value).padStart(2, '0');
  const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
  return `${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`;
}

/** A share of 100, never 100 before all is done. */
export function percent(done: number, total: number): number {
  if (!(total > 0)) return 0;
  const share = Math.min(100, Math.max(0, (done / total) * 100));
  return done < total ? Math.min(99.9, share) : share;
}

/** A size that a person typed: 20G, 1.5 TiB. Nothing if it is none. Powers of 1,024. */
export function parseSize(text: string): number | null {
  const found = /^\s*(\d+(?:\.\d+)?)\s*([kmgtp]?)(i?b)?\s*$/i.exec(text);
  if (!found) return null;
  const power = ' kmgtp'.indexOf((found[2] ?? '').toLowerCase() || ' ');
  const value = Math.round(Number(found[1]) * 1024 ** power);
  return value > 0 && Number.isSafeInteger(value) ? value : null;
}

/** An NQN or a UUID, cut in its middle. */
export function middle(text: string, most = 40): string {
  if (text.length <= most) return text;
  const half = Math.floor((most - 1) / 2);
  return `${text.slice(0, half)}…${text.slice(text.length - half)}`;
}
