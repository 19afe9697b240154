// What a benchmark of the console found: as JSON for programs, as a table for people; the form is
// that of `palisade bench`.
import { readFileSync } from 'node:fs';
import { availableParallelism } from 'node:os';

/** What each result should come to at most, or at least. */
export const GOALS = {
  'console-assets-kib': { most: 300 },
  'console-interactive-ms': { most: 1000 },
  'console-event-ms': { most: 1000 },
  'console-1000-volumes-ms': { most: 100 },
  'console-heap-growth-mib': { most: 10 },
  'health-iops': { least: 0.99 },
  'unplug-ms': { most: 1000 },
};

/** The median of these values with the smallest and the largest; nothing if one is no number. */
export function spread(values) {
  if (values.length === 0 || !values.every(Number.isFinite)) return null;
  const sorted = [...values].sort((a, b) => a - b);
  const middle = Math.floor(sorted.length / 2);
  const median = sorted.length % 2 === 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  return { median, low: sorted[0], high: sorted.at(-1) };
}

/** The machine, without its name. */
export function machine(read = (path) => readFileSync(path, 'utf8')) {
  const field = (text, name) => {
    const line = text.split('\n').find((own) => own.split(':')[0].trim() === name);
    return line?.slice(line.indexOf(':') + 1).trim() ?? '';
  };
  const cpus = read('/proc/cpuinfo');
  const numbers = ['cpu family', 'model', 'stepping'].map((name) => field(cpus, name));
  const [family, model, stepping] = numbers;
  const known = numbers.every((number) => number !== '');
  const name = field(cpus, 'model name');
  return {
    cpu: known ? `${name} (family ${family}, model ${model}, stepping ${stepping})` : name,
    cpus: availableParallelism(),
    memory_bytes: Number.parseInt(field(read('/proc/meminfo'), 'MemTotal'), 10) * 1024 || 0,
    kernel: read('/proc/sys/kernel/osrelease').trim(),
  };
}

export class Report {
  results = [];
  notes = [];
  open = [];
  /** What was to be measured and could not be. */
  missing = [];

  constructor(version, command) {
    this.version = version;
    this.command = command;
  }

  /** Adds a result; `counts` tells whether its goal stands. */
  add(name, unit, values, counts = true) {
    const found = spread(values);
    if (!found) {
      this.missing.push(`${name}: there is no value`);
      return;
    }
    const bound = counts ? GOALS[name] : undefined;
    const { median: value, low, high } = found;
    const goal = bound ? (bound.most ?? bound.least) : null;
    const met = bound ? (bound.most === undefined ? value >= goal : value <= goal) : null;
    this.results.push({ name, value, unit, low, high, goal, met });
  }

  /** Says that a figure stays open, and why. */
  leaveOpen(name, reason) {
    this.open.push({ name, value: null, reason });
  }

  json() {
    const { version, command, results, notes, open } = this;
    const more = { ...(notes.length > 0 && { notes }), ...(open.length > 0 && { open }) };
    const all = { schema: 1, machine: machine(), version, command, results, ...more };
    return `${JSON.stringify(all, null, 2)}\n`;
  }

  table() {
    const here = machine();
    const memory = `${(here.memory_bytes / 2 ** 30).toFixed(1)} GiB`;
    const names = [...this.results, ...this.open].map((own) => own.name.length);
    const width = Math.max(6, ...names);
    const number = (value, unit) => value.toFixed(unit === 'iops' ? 0 : 3).padStart(10);
    const lines = [
      this.command,
      `${here.cpu}, ${here.cpus} CPUs, ${memory} memory, Linux ${here.kernel}`,
      '',
      `${'result'.padEnd(width)}  ${'value'.padStart(10)}  unit   ${'low'.padStart(10)}  ${'high'.padStart(10)}     goal`,
    ];
    for (const { name, value, unit, low, high, goal, met } of this.results) {
      const [middle, least, most] = [value, low, high].map((own) => number(own, unit));
      const aim = (goal === null ? '' : goal.toFixed(2)).padStart(9);
      const word = met === null ? '' : met ? '  met' : '  missed';
      const line = `${name.padEnd(width)}  ${middle}  ${unit.padEnd(5)}  ${least}  ${most}${aim}${word}`;
      lines.push(line.trimEnd());
    }
    for (const { name, reason } of this.open) {
      lines.push(`${name.padEnd(width)}  ${'open'.padStart(10)}  ${reason}`);
    }
    return `${lines.join('\n')}\n`;
  }
}
