// What the console knows, and keeps up to date: the session, the resources, the values of each
// second, and how the connection is.
//
// States: resuming (a session of this tab is looked for) → out (nobody logged in) → must change (the
// password) or in → out (logged out, or the session has ended; the page stays where it is, and is
// there again after the next login).
//
// Invariants
// - The token is in this object and in the tab's own store, nowhere else.
// - While the connection is lost all values stay and are marked as old; nothing is sent but reads
//   (Client refuses the rest).
// - What was never read is not shown as empty: pages come when each resource was read once. Where one
//   can't be read any more its values stay, are marked as old, and the error is shown.
// - A second is closed only once all totals are known: what is first heard of is no growth.

import { ApiError, Client, ROOT, errorOf } from './http';
import { Election, type Channel, type Link, type Locks, type Told } from './leader';
import { absorb, highest, Series, sum, type Point, type Totals } from './metrics';
import { alarms, drives, merged, shelves, touched, verdict } from './model';
import type {
  Chassis, Condition, Connection, Drive, Fan, FibreChannelPort, FileSystem, Job, LogEntry, Manager, Pool, Port, RedfishEvent,
  PastSeries, Report, Resource, Sensor, ServiceConditions, Session, Supply, Volume,
} from './redfish';
import { read } from './stream';

const STORAGE = `${ROOT}/Systems/local/Storage/palisade`;
const KEPT = 'palisade-session';
/** How long events gather before what they touch is read anew. */
const GATHER = 100;
/** The net under the events: everything is read this often. */
const NET = 60_000;

export const URIS = {
  pools: `${STORAGE}/StoragePools`,
  volumes: `${STORAGE}/Volumes`,
  drives: `${ROOT}/Chassis/local/Drives`,
  nvme: `${ROOT}/Fabrics/nvme/Connections`,
  nbd: `${ROOT}/Fabrics/nbd/Connections`,
  local: `${ROOT}/Fabrics/local/Connections`,
  iscsi: `${ROOT}/Fabrics/iscsi/Connections`,
  fc: `${ROOT}/Fabrics/fc/Connections`,
  fcPorts: `${ROOT}/Fabrics/fc?$select=Oem`,
  fileSystems: `${STORAGE}/FileSystems`,
  jobs: `${ROOT}/JobService/Jobs`,
  manager: `${ROOT}/Managers/palisade`,
  events: `${ROOT}/Managers/palisade/LogServices/Events/Entries`,
  audit: `${ROOT}/Managers/palisade/LogServices/Audit/Entries`,
  accounts: `${ROOT}/AccountService/Accounts`,
  sessions: `${ROOT}/SessionService/Sessions`,
};

/** What is read at first, and wherever something was missed. */
const ALL = ['pools', 'drives', 'volumes', 'connections', 'shares', 'jobs', 'manager', 'log', 'around'];
/** What the net reads: each event is told, and a log is as long as there is somebody to read it. */
const NETTED = ALL.filter((name) => name !== 'log');

interface Kept {
  token: string;
  uri: string;
  user: string;
  role: string;
}

interface Around {
  chassis: Chassis[];
  sensors: Sensor[];
  fans: Fan[];
  supplies: Supply[];
  ports: Port[];
  conditions: Condition[];
  /** Whether the daemon keeps a list of alerts at all. */
  alerts: ServiceConditions | null;
}

const NOTHING: Around = {
  chassis: [], sensors: [], fans: [], supplies: [], ports: [], conditions: [], alerts: null,
};

class Live {
  readonly client = new Client();

  // Who is here.
  user = $state<string | null>(null);
  /** A session that this tab had is looked for; it may be that the daemon can't be reached. */
  isResuming = $state(false);
  role = $state('');
  privileges = $state<string[]>([]);
  mustChange = $state(false);
  /** Why one has to log in again. */
  notice = $state('');

  // How the connection is.
  link = $state<Link>('connecting');
  isReachable = $state(true);
  lostAt = $state<number | null>(null);
  now = $state(Date.now());

  // Resources.
  isLoaded = $state(false);
  /** What could not be read the last time, with the error. */
  failed = $state.raw<ReadonlyMap<string, ApiError>>(new Map());
  pools = $state.raw<Pool[]>([]);
  drivesOf = $state.raw<Drive[]>([]);
  volumes = $state.raw<Volume[]>([]);
  connections = $state.raw<Connection[]>([]);
  /** The server's Fibre Channel ports. */
  fcPorts = $state.raw<FibreChannelPort[]>([]);
  /** File systems of volumes, with their shares in them. */
  fileSystems = $state.raw<FileSystem[]>([]);
  jobs = $state.raw<Job[]>([]);
  manager = $state.raw<Manager | null>(null);
  log = $state.raw<LogEntry[]>([]);
  around = $state.raw<Around>(NOTHING);
  /** What a screen reader is told: the last grave event. */
  spoken = $state('');

  // Values of each second.
  points = $state.raw<Point[]>([]);
  watched = $state.raw<Point[]>([]);

  drives = $derived(drives(this.drivesOf, this.pools));
  shelves = $derived(shelves(this.drives, this.around.chassis));
  /** What the daemon raised, the gravest first; none where it keeps no list. */
  alarms = $derived(this.around.alerts && alarms(this.around.conditions, this.around.alerts));
  verdict = $derived(verdict(this.pools, this.drives, this.connections, this.manager, this.alarms ?? [], this.fileSystems));
  isLost = $derived(this.user !== null && (this.link === 'lost' || !this.isReachable));
  /** Whether some of what is shown is old. */
  isOld = $derived(this.isLost || this.failed.size > 0);

  #session: Kept | null = null;
  #election: Election | null = null;
  #totals = new Map<string, Totals>();
  #series = new Series();
  #one: { subject: string; series: Series } | null = null;
  #hasTotals = false;
  #unread = new Set(ALL);
  #closing: ReturnType<typeof setTimeout> | undefined;
  #wanted = new Set<string>();
  #reading = false;
  #gathering: ReturnType<typeof setTimeout> | undefined;
  #timers: ReturnType<typeof setInterval>[] = [];

  constructor() {
    this.client.onExpired = () => this.#out('Your session has ended. Log in to go on where you were.');
    this.client.onReach = (is) => {
      this.isReachable = is;
      this.#mark();
    };
    this.client.isLost = () => this.isLost;
  }

  can(privilege: string): boolean {
    return this.privileges.includes(privilege);
  }

  /** May change arrays, volumes, exports and shares. */
  get mayChange(): boolean {
    return this.can('ConfigureComponents');
  }

  /** May name any path of the server: an Administrator. */
  get mayNamePaths(): boolean {
    return this.can('ConfigureManager');
  }

  /** Goes on with the session that this tab had. */
  async resume(): Promise<void> {
    const text = sessionStorage.getItem(KEPT);
    if (!text) return;
    this.isResuming = true;
    try {
      const kept = JSON.parse(text) as Kept;
      this.client.token = kept.token;
      this.#session = kept;
      await this.#enter(kept);
    } catch (error) {
      // Its end was told already; a daemon that can't answer now is asked again.
      if (error instanceof ApiError && error.status !== 401 && this.#session) {
        setTimeout(() => void this.resume(), 2000);
        return;
      }
    }
    this.isResuming = false;
  }

  async logIn(user: string, password: string): Promise<void> {
    this.client.forget();
    const body = { UserName: user, Password: password };
    let answer;
    try {
      answer = await this.client.change('POST', URIS.sessions, body);
    } catch (error) {
      if (error instanceof ApiError && error.status === 401) {
        throw new ApiError(401, error.id, 'User or password is wrong.', 'After some wrong passwords an account has to wait: try again later, or ask an administrator.');
      }
      throw error;
    }
    const session = answer.body as Session;
    if (!answer.token) throw errorOf(answer.status, null);
    this.client.token = answer.token;
    const uri = answer.location ?? session['@odata.id'];
    const kept = { token: answer.token, uri, user: session.UserName, role: session.Roles?.[0] ?? '' };
    this.#session = kept;
    sessionStorage.setItem(KEPT, JSON.stringify(kept));
    await this.#enter(kept);
  }

  /** A new password ends all sessions of the account: a new one is begun with it. */
  async changePassword(password: string): Promise<void> {
    const user = this.#session?.user ?? '';
    const uri = `${URIS.accounts}/${encodeURIComponent(user)}`;
    await this.client.change('PATCH', uri, { Password: password });
    await this.logIn(user, password);
  }

  async logOut(): Promise<void> {
    const uri = this.#session?.uri;
    try {
      if (uri) await this.client.change('DELETE', uri);
    } catch {
      // The session ends by itself; here it is forgotten in any case.
    }
    this.#out('');
  }

  async #enter(kept: Kept): Promise<void> {
    try {
      const role = await this.client.get<{ AssignedPrivileges?: string[] }>(
        `${ROOT}/AccountService/Roles/${encodeURIComponent(kept.role)}`,
      );
      this.privileges = role.AssignedPrivileges ?? [];
      this.mustChange = false;
    } catch (error) {
      if (!(error instanceof ApiError) || error.status !== 403) throw error;
      this.mustChange = true;
    }
    this.role = kept.role;
    this.user = kept.user;
    this.notice = '';
    if (!this.mustChange) this.#begin(kept.user);
  }

  #out(notice: string): void {
    sessionStorage.removeItem(KEPT);
    this.client.forget();
    this.#session = null;
    this.#election?.end();
    this.#election = null;
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [];
    clearTimeout(this.#closing);
    this.#totals.clear();
    this.#series = new Series();
    this.#hasTotals = false;
    this.#one = null;
    this.#wanted.clear();
    this.#unread = new Set(ALL);
    this.isResuming = false;
    this.user = null;
    this.role = '';
    this.privileges = [];
    this.mustChange = false;
    this.isLoaded = false;
    this.failed = new Map();
    this.spoken = '';
    this.pools = [];
    this.drivesOf = [];
    this.volumes = [];
    this.connections = [];
    this.fcPorts = [];
    this.fileSystems = [];
    this.jobs = [];
    this.manager = null;
    this.log = [];
    this.around = NOTHING;
    this.points = [];
    this.watched = [];
    this.notice = notice;
    this.link = 'connecting';
    this.isReachable = true;
    this.lostAt = null;
  }

  #begin(user: string): void {
    this.#election?.end();
    const name = `palisade-stream:${user}`;
    const election = new Election(name, {
      channel: new BroadcastChannel(name) as unknown as Channel,
      locks: (navigator.locks ?? null) as unknown as Locks | null,
      read: (signal, tell, after) =>
        read(
          {
            headers: () => this.client.headers(),
            expired: (token) => this.client.refused(token),
          },
          signal,
          tell,
          after,
        ),
      take: (told) => this.#take(told),
    });
    this.#election = election;
    void election.run();
    this.want(...ALL);
    void this.#firstTotals();
    for (const timer of this.#timers) clearInterval(timer);
    this.#timers = [
      setInterval(() => (this.now = Date.now()), 1000),
      setInterval(() => {
        if (!document.hidden) this.want(...NETTED);
      }, NET),
    ];
  }

  /** Reports hold what changed: the totals of all come by a read, before any second is closed. */
  async #firstTotals(): Promise<void> {
    this.#hasTotals = false;
    this.#series.restart();
    this.#one?.series.restart();
    const session = this.#session;
    try {
      const uri = `${ROOT}/TelemetryService/MetricReports`;
      const all = ['Volumes', 'Drives'].map((name) => this.client.get<Report>(`${uri}/${name}`));
      const totals = new Map<string, Totals>();
      for (const report of await Promise.all(all)) absorb(totals, report.MetricValues ?? []);
      if (session !== this.#session) return;
      this.#totals = highest(this.#totals, totals);
      this.#hasTotals = true;
    } catch {
      if (session !== null && session === this.#session) setTimeout(() => void this.#firstTotals(), 2000);
    }
  }

  #take(told: Told): void {
    if (told.kind === 'state') {
      const hasMissed = this.link === 'lost' || told.missed === true;
      this.link = told.link;
      this.#mark();
      if (told.link === 'live' && hasMissed) {
        this.want(...ALL);
        // They may be of a daemon that is no more.
        this.#totals.clear();
        void this.#firstTotals();
      }
      return;
    }
    if (told.kind !== 'data') return;
    // Whatever a read came to: the daemon speaks.
    this.link = 'live';
    this.isReachable = true;
    this.#mark();
    let body: { Events?: RedfishEvent[] } & Partial<Report>;
    try {
      body = JSON.parse(told.data);
    } catch {
      return;
    }
    if (body.Events) for (const event of body.Events) this.#event(event);
    else if (body.MetricValues) this.#report(body as Report);
  }

  #mark(): void {
    const isLost = this.link === 'lost' || !this.isReachable;
    if (!isLost) this.lostAt = null;
    else this.lostAt ??= Date.now();
  }

  #event(event: RedfishEvent): void {
    const severity = event.Severity ?? event.MessageSeverity;
    if (severity === 'Critical' || severity === 'Warning') {
      this.spoken = `${severity}: ${event.Message ?? ''}`;
    }
    const isAlert = /Alert/.test(event.MessageId ?? '');
    this.want('log', ...(isAlert ? ['around'] : []), ...touched(event.OriginOfCondition?.['@odata.id']));
  }

  #report(report: Report): void {
    absorb(this.#totals, report.MetricValues ?? []);
    // Of these no event tells: how far jobs are, and who comes and goes over NBD.
    if ((report.MetricValues?.length ?? 0) > 0) {
      if (report['@odata.id'].endsWith('/Jobs')) this.want('jobs');
      if (report['@odata.id'].endsWith('/Exports')) this.want('connections');
    }
    const at = Date.parse(report.Timestamp ?? '') / 1000;
    if (!Number.isFinite(at)) return;
    // The reports of one second come together: it is closed once they have.
    clearTimeout(this.#closing);
    this.#closing = setTimeout(() => this.#close(at), 40);
  }

  #close(at: number): void {
    if (!this.#hasTotals) return;
    this.#series.close(at, sum(this.#totals));
    this.points = [...this.#series.points];
    const own = this.#one && this.#totals.get(this.#one.subject);
    if (this.#one && own) {
      this.#one.series.close(at, own);
      this.watched = [...this.#one.series.points];
    }
  }

  /** Keeps the values of one volume or slot while a page shows them. */
  watch(subject: string | null): void {
    if (this.#one?.subject === subject) return;
    this.#one = subject ? { subject, series: new Series() } : null;
    this.watched = [];
  }

  /** The past of the machine or of one thing, such as `volume.UUID`; none if the daemon keeps none. */
  async past(step: 'Seconds' | 'Minutes' | 'Hours', key: string): Promise<PastSeries[] | null> {
    const reports = await this.client.get<{ Members?: { '@odata.id': string }[] }>(
      `${ROOT}/TelemetryService/MetricReports`,
    );
    if (!reports.Members?.some((own) => own['@odata.id'].endsWith(`/${step}`))) return null;
    const id = key === '' ? step : `${step}.${encodeURIComponent(key)}`;
    const uri = `${ROOT}/TelemetryService/MetricReports/${id}?$select=Oem`;
    const told = await this.client.find<{ Oem?: { Palisade?: { Series?: PastSeries[] } } }>(uri);
    return told?.Oem?.Palisade?.Series ?? null;
  }

  /** Has these read anew, soon, together. */
  want(...names: string[]): void {
    for (const name of names) this.#wanted.add(name);
    this.#gathering ??= setTimeout(() => {
      this.#gathering = undefined;
      void this.#readWanted();
    }, GATHER);
  }

  async #readWanted(): Promise<void> {
    if (this.#reading || !this.#session || this.#wanted.size === 0) return;
    this.#reading = true;
    const names = [...this.#wanted];
    this.#wanted.clear();
    // What came to be wanted meanwhile is read at once; what failed, after a pause: a daemon that is
    // short of room is not asked the more for it.
    const outcomes = await Promise.allSettled(names.map((name) => this.#read(name)));
    const failed = names.filter((_, at) => outcomes[at]?.status === 'rejected');
    this.#reading = false;
    if (!this.#session) return;
    this.#judge(names, outcomes);
    if (this.isReachable && this.#wanted.size > 0) this.want();
    if (failed.length > 0) {
      const again = outcomes.some(
        (own) =>
          own.status === 'rejected' && own.reason instanceof ApiError && own.reason.status !== 401,
      );
      if (again) setTimeout(() => this.want(...failed), 2000);
      else for (const name of failed) this.#wanted.add(name);
    }
  }

  /** Notes what was read, and what could not be. */
  #judge(names: string[], outcomes: PromiseSettledResult<void>[]): void {
    const failed = new Map(this.failed);
    for (const [at, name] of names.entries()) {
      const own = outcomes[at];
      if (own?.status === 'fulfilled') {
        failed.delete(name);
        this.#unread.delete(name);
      } else if (own?.reason instanceof ApiError && !own.reason.isUnreachable && own.reason.status !== 401) {
        failed.set(name, own.reason);
      }
    }
    if (failed.size > 0 || this.failed.size > 0) this.failed = failed;
    this.isLoaded = this.#unread.size === 0;
  }

  async #read(name: string): Promise<void> {
    const { client } = this;
    switch (name) {
      case 'pools':
        this.pools = merged(this.pools, await client.all<Pool>(URIS.pools));
        break;
      case 'drives':
        this.drivesOf = merged(this.drivesOf, await client.all<Drive>(URIS.drives));
        break;
      case 'volumes':
        this.volumes = merged(this.volumes, await client.all<Volume>(URIS.volumes));
        break;
      case 'connections': {
        const all = [URIS.nvme, URIS.nbd, URIS.iscsi, URIS.fc, URIS.local].map((uri) => client.all<Connection>(uri));
        const told = client.get<{ Oem?: { Palisade?: { Ports?: FibreChannelPort[] } } }>(URIS.fcPorts);
        const [fabric, ...found] = await Promise.all([told, ...all]);
        this.fcPorts = fabric.Oem?.Palisade?.Ports ?? [];
        this.connections = merged(this.connections, found.flat());
        break;
      }
      case 'shares':
        // Three levels: shares are in a collection of their own.
        this.fileSystems = merged(this.fileSystems, await client.all<FileSystem>(URIS.fileSystems, 250, 3));
        break;
      case 'jobs':
        this.jobs = merged(this.jobs, await client.all<Job>(URIS.jobs));
        break;
      case 'manager':
        this.manager = await client.get<Manager>(URIS.manager);
        break;
      case 'log': {
        const page = await client.get<{ Members?: LogEntry[] }>(`${URIS.events}?$top=100`);
        this.log = merged(this.log, page.Members ?? []);
        break;
      }
      case 'around':
        this.around = await this.#readAround();
        break;
    }
  }

  /** What is around the drives, as far as this daemon tells. */
  async #readAround(): Promise<Around> {
    const { client } = this;
    const root = await client.get<{ ServiceConditions?: { '@odata.id': string } }>(ROOT);
    const all = await client.all<Chassis>(`${ROOT}/Chassis`);
    const local = all.find((own) => own.Id === 'local');
    const list = async <T extends Resource>(uri: string | undefined): Promise<T[]> => {
      if (!uri) return [];
      try {
        return await client.all<T>(uri);
      } catch (error) {
        if (error instanceof ApiError && error.status === 404) return [];
        throw error;
      }
    };
    const system = await client.get<{ EthernetInterfaces?: { '@odata.id': string } }>(
      `${ROOT}/Systems/local`,
    );
    const under = async <T extends Resource>(uri: string | undefined, key: string): Promise<T[]> => {
      const found = uri ? await client.find<Record<string, { '@odata.id'?: string }>>(uri) : null;
      return list<T>(found?.[key]?.['@odata.id']);
    };
    const alerts = root.ServiceConditions
      ? await client.find<ServiceConditions>(root.ServiceConditions['@odata.id'])
      : null;
    const [sensors, fans, supplies, ports] = await Promise.all([
      list<Sensor>(local?.Sensors?.['@odata.id']),
      under<Fan>(local?.ThermalSubsystem?.['@odata.id'], 'Fans'),
      under<Supply>(local?.PowerSubsystem?.['@odata.id'], 'PowerSupplies'),
      list<Port>(system.EthernetInterfaces?.['@odata.id']),
    ]);
    const conditions = alerts?.Conditions ?? [];
    return { chassis: all, sensors, fans, supplies, ports, conditions, alerts };
  }
}

export const live = new Live();
