import { describe, expect, it } from 'vitest';
// @ts-expect-error plain JavaScript
import { assets, longestTask } from '../tools/bench/figures.mjs';
// @ts-expect-error plain JavaScript
import { GOALS, machine, Report, spread } from '../tools/bench/report.mjs';

describe('the report of a benchmark', () => {
  it('takes the median, with the smallest and the largest', () => {
    expect(spread([3, 1, 2])).toEqual({ median: 2, low: 1, high: 3 });
    expect(spread([4, 1, 10, 2])).toEqual({ median: 3, low: 1, high: 10 });
    expect(spread([])).toBeNull();
    expect(spread([1, NaN])).toBeNull();
  });

  it('has the form of palisade bench', () => {
    const report = new Report('1.2.3', 'script/console bench');
    report.add('console-event-ms', 'ms', [1200, 900, 1000]);
    report.add('health-iops', 'ratio', [0.98]);
    report.add('console-heap-growth-mib', 'MiB', [3], false);
    report.add('console-heap-mib', 'MiB', [9]);
    report.leaveOpen('unplug-ms', 'there is no emulator');
    const told = JSON.parse(report.json());
    expect(Object.keys(told)).toEqual(['schema', 'machine', 'version', 'command', 'results', 'open']);
    expect([told.schema, told.version, told.command]).toEqual([1, '1.2.3', 'script/console bench']);
    for (const result of told.results) {
      expect(Object.keys(result)).toEqual(['name', 'value', 'unit', 'low', 'high', 'goal', 'met']);
    }
    expect(told.results.map((own: { goal: unknown; met: unknown }) => [own.goal, own.met])).toEqual([
      [1000, true], [0.99, false], [null, null], [null, null],
    ]);
    expect(told.open).toEqual([{ name: 'unplug-ms', value: null, reason: 'there is no emulator' }]);
    const table = report.table();
    expect(table).toMatch(/^console-event-ms +1000\.000 {2}ms +900\.000 +1200\.000 {2}1000\.00 {2}met$/m);
    expect(table).toMatch(/^health-iops .* 0\.99 {2}missed$/m);
    expect(table).toMatch(/^unplug-ms +open {2}there is no emulator$/m);
  });

  it('says what could not be measured', () => {
    const report = new Report('', '');
    report.add('console-event-ms', 'ms', [NaN]);
    expect(report.missing).toEqual(['console-event-ms: there is no value']);
    expect(report.results).toEqual([]);
  });

  it('knows the machine as palisade bench does', () => {
    const files: Record<string, string> = {
      '/proc/cpuinfo': 'cpu family\t: 26\nmodel\t\t: 2\nmodel name\t: Some CPU\nstepping\t: 1\n',
      '/proc/meminfo': 'MemTotal:        1024 kB\n',
      '/proc/sys/kernel/osrelease': '6.12.0\n',
    };
    const here = machine((path: string) => files[path]);
    expect(here).toMatchObject({
      cpu: 'Some CPU (family 26, model 2, stepping 1)', memory_bytes: 2 ** 20, kernel: '6.12.0',
    });
    expect(Object.keys(here)).toEqual(['cpu', 'cpus', 'memory_bytes', 'kernel']);
  });

  it('has a goal for each promised result', () => {
    expect(Object.keys(GOALS)).toHaveLength(7);
  });
});

describe('what is measured', () => {
  it('finds the longest task of the page’s main thread', () => {
    const named = (tid: number, name: string) => ({ pid: 1, tid, name: 'thread_name', args: { name } });
    const ran = (tid: number, name: string, dur: number, tdur: number) => ({ pid: 1, tid, ph: 'X', name, dur, tdur });
    const threads = [named(1, 'CrRendererMain'), named(2, 'Compositor')];
    const task = 'ThreadControllerImpl::RunTask';
    const events = [...threads, ran(1, task, 70_000, 5000), ran(1, task, 9000, 8000), ran(2, task, 90_000, 90_000), ran(1, 'Layout', 80_000, 1)];
    expect(longestTask(events)).toEqual({ wall: 70, cpu: 8 });
    expect(() => longestTask(threads)).toThrow('no task');
  });

  it('counts the files as they are sent', () => {
    const [kib] = assets('dist');
    expect(kib).toBeGreaterThan(10);
  });
});
