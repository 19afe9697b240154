// Each value that the daemon tells of a thing is on the page of that thing. What the pages read is
// kept at the first answer, so that values and pages are of one moment.
import assert from 'node:assert/strict';

/** Keys of how the interface itself works. */
const PLUMBING = /@|^(Links|Actions|Id|Identifiers|Redundancy|ReadingType)$/;

/** What no page tells of anything. */
const LEFT = [
  // An alert is told in full on the page of alerts; with the thing itself stand what is wrong and what to do.
  /^Status\.Conditions\[\]\.(Severity|Timestamp)$/,
  // The message says it to people.
  /(^|\.)MessageId$|^EventId$|^EntryType$|^Originator|^OemRecordFormat$|^Persistency$|^Name$|\.Name$|^Resolution$/,
  // A state of the thing itself is told by its own word.
  /^Status\.State$|HealthRollup$/,
  // It is the same everywhere.
  /^(ConnectionType|ProvisioningPolicy|SupportedProvisioningPolicies\[\]|VolumeUsage|JobType|SessionType|AccountTypes\[\])$/,
];

/** The page of each kind of resource; what of it the page tells in other words, by path: which; and what
 * it leaves to other pages, with where that is. */
const KINDS = [
  {
    of: '/Chassis/local/Drives?',
    page: (own) => `/drives/${encodeURIComponent(own.Id)}`,
    words: {
      'Oem.Palisade.IsFile': (is) => (is ? 'a file' : ''),
      'Oem.Palisade.State': (state, own) => ({ InUse: 'slot', Free: 'free', Found: 'of a stopped array', Failed: 'failed' })[state] ?? own.State,
    },
    left: [/^Oem\.Palisade\.Hardware\.Health$/],
  },
  {
    of: '/StoragePools?',
    page: (own) => `/arrays/${encodeURIComponent(own.Id)}`,
    words: {
      'Oem.Palisade.CrashSafe': (is) => (is ? 'starts by itself' : 'has to be started by hand'),
      'Oem.Palisade.Unclean': (is) => (is ? 'unclean' : ''),
      'Oem.Palisade.Shared': (is) => (is ? 'Shared' : ''),
      'Oem.Palisade.Slots[].Quarantined': () => '',
      'SupportedRAIDTypes[]': (type) => type.replace('RAID', 'RAID '),
      RemainingCapacityPercent: () => 'Free',
    },
    // Rates are on the pages of drives; the health is the state's.
    left: [/DriveRequests\[\]/, /^Status\.Health$/],
  },
  {
    of: '/Volumes?',
    page: () => '/volumes',
    words: { 'Oem.Palisade.UnreadableBytes': (bytes) => (bytes === 0 ? '–' : scaled(bytes, 1024, BINARY, ' ')) },
    // They are the array's, and on its page.
    left: [/^(RAIDType|StripSizeBytes|BlockSizeBytes)$/],
  },
  {
    of: '/Connections?',
    page: () => '/exports',
    words: {
      'Oem.Palisade.AnyHost': (is) => (is ? 'any host' : ''),
      'Oem.Palisade.Serving': (is) => (is ? 'served' : 'not served'),
      'Oem.Palisade.Kind': (kind) => ({ NvmeTcp: 'NVMe/TCP', Loop: 'block device of this server', Iscsi: 'iSCSI', Fc: 'Fibre Channel (FCP)', NvmeFc: 'Fibre Channel (NVMe)', Ublk: 'block device of this server (ublk)', VhostUser: 'virtual machine of this server', Fuse: 'file of this server' })[kind] ?? kind,
      'Oem.Palisade.Iscsi.Server': (server) => ({ Lio: 'LIO', Tgt: 'tgt' })[server] ?? server,
      'Oem.Palisade.Health.Checked': checked,
    },
    // The line that connects says the same as the address of a namespace, and the path as that of a
    // file; the number makes the Id of the volume; all exports may be written.
    left: [/Oem\.Palisade\.(URI|Number)$/, /^VolumeInfo/, /^Status\.Health$/],
  },
  { of: '/Fabrics/fc?', page: () => '/exports' },
  {
    of: '/FileSystems?',
    page: () => '/shares',
    words: {
      'Oem.Palisade.Mounted': (is) => (is ? 'mounted' : 'not mounted'),
      'Oem.Palisade.ReadOnly': (is) => (is ? 'read only' : ''),
      'Oem.Palisade.Health.Checked': checked,
      'ExportedShares.Members[].FileSharingProtocols[]': (word) => word.replace('v', ' ').replaceAll('_', '.'),
      'ExportedShares.Members[].Oem.Palisade.ReadOnly': (is) => (is ? 'read only' : 'read and write'),
      'ExportedShares.Members[].Oem.Palisade.Smb': (is) => (is ? 'SMB' : ''),
      'ExportedShares.Members[].Oem.Palisade.Nfs': (is) => (is ? 'NFS' : ''),
      'ExportedShares.Members[].Oem.Palisade.SmbUsers[]': grantee,
      'ExportedShares.Members[].Oem.Palisade.NfsClients[]': grantee,
      'ExportedShares.Members[].Oem.Palisade.Protocols[].Health.Checked': checked,
      'ExportedShares.Members[].Status.State': (state) => ({ Enabled: 'served', UnavailableOffline: 'not served' })[state] ?? state,
    },
    // A volume stands in it as a whole, and is on its own page; a share's state stands for its health.
    left: [/^Oem\.Palisade\.Volume\./, /^ExportedShares\.Members\[\]\.Status\.Health$/],
  },
  {
    of: '/Jobs?',
    page: () => '/jobs',
    words: { 'Oem.Palisade.Waiting': (is) => (is ? 'waits' : '') },
    // The word of how it ended stands for them; it begins when it is made.
    left: [/^(JobState|JobStatus|CreationTime|Oem\.Palisade\.State)$/],
  },
  { of: '/Events/Entries?', page: () => '/events' },
  {
    of: '/Audit/Entries?',
    page: () => '/audit',
    words: { 'Oem.Palisade.Result': (result) => ({ Ok: 'done', Intent: 'begins' })[result] ?? result },
    // Lines stand in their order, and the chain is verified as a whole; who, from where, what and
    // the result are the message, and what was asked for is told where there is no better word.
    left: [/^Message$|^Severity$|^OriginAddress$|^Oem\.Palisade\.(Of|Number|Request)$/],
  },
  {
    of: '/Chassis?',
    page: () => '/shelf',
    words: {
      'Oem.Palisade.Shelf.Powered': (is) => (is ? 'on' : 'off'),
      'Oem.Palisade.Shelf.Bays[].LocationIndicatorActive': (is) => (is ? 'indicator on' : ''),
      'Oem.Palisade.Shelf.Bays[].State': bayWord,
      'Oem.Palisade.Shelf.Ports[].Linked': (is) => (is ? 'link' : 'no link'),
      'Oem.Palisade.Shelf.Ports[].Enabled': (is) => (is ? '' : 'off'),
      'Oem.Palisade.Shelf.Ports[].SpeedMbps': (speed) => `${speed / 1000} Gbit/s`,
      'Oem.Palisade.Shelf.Parts[].State': bayWord,
      'Oem.Palisade.Shelf.Parts[].Unit': (unit) => ({ Celsius: '°C', Percent: '%', Watts: 'W', Volts: 'V', Amperes: 'A' })[unit] ?? unit,
      'Oem.Palisade.Shelf.Parts[].ReadingThousandths': (value) => String(Math.round(value / 100) / 10),
      'Oem.Palisade.Shelf.Parts[].WarningThousandths': (value) => String(Math.round(value / 100) / 10),
      'Oem.Palisade.Shelf.Parts[].CriticalThousandths': (value) => String(Math.round(value / 100) / 10),
    },
    // A drive's state stands for its health where it is not there.
    left: [/^PowerState$|^ChassisType$|^Status\.Health$/, /^Oem\.Palisade\.Shelf\.(Health|Bays\[\]\.Health|Parts\[\]\.Health)$/],
  },
  {
    of: '/Sensors?',
    page: () => '/shelf',
    words: { ReadingUnits: (unit) => ({ Cel: '°C' })[unit] ?? unit },
  },
  { of: '/Fans?', page: () => '/shelf' },
  { of: '/PowerSupplies?', page: () => '/shelf', words: { LineInputStatus: (is) => (is === 'LossOfInput' ? 'no input' : 'OK') } },
  {
    of: '/EthernetInterfaces?',
    page: () => '/ports',
    words: {
      FullDuplex: (is) => (is ? '' : 'half duplex'),
      InterfaceEnabled: (is) => (is ? '' : 'off'),
      LinkStatus: (status) => (status === 'LinkUp' ? 'link' : 'no link'),
      SpeedMbps: (speed) => `${speed / 1000} Gbit/s`,
      'IPv4Addresses[].SubnetMask': (mask) => `/${mask.split('.').reduce((sum, part) => sum + Number(part).toString(2).replaceAll('0', '').length, 0)}`,
    },
    left: [/^Status\.Health$/],
  },
  { of: '/ServiceConditions', page: () => '/alerts', left: [/^Oem\.Palisade\.Alerts\[\]\.Resource$/] },
  {
    of: '/Accounts?',
    page: () => '/accounts',
    words: {
      Enabled: (is) => (is ? 'enabled' : 'disabled'),
      Locked: (is) => (is ? 'has to wait' : ''),
      PasswordChangeRequired: (is) => (is ? 'needs a new password' : ''),
    },
    // It only makes another ETag of another password.
    left: [/PasswordGeneration$/],
  },
  { of: '/Sessions?', page: () => '/accounts' },
];

/** The word of a part of a shelf that is not there, or off; else its health stands for it. */
function bayWord(state) {
  return state === 'Enabled' ? '' : state;
}

/** When something was asked how it is. */
function checked(seconds) {
  return forms(new Date(seconds * 1000).toISOString())[0];
}

/** One who may have a share, perhaps only to read. */
function grantee(text) {
  return text.replace(/:ro$/, ' (read only)');
}

const BINARY = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
const DECIMAL = ['', 'k', 'M', 'G', 'T'];

/** A number in three digits with a unit, as pages tell sizes. */
function scaled(value, base, units, gap) {
  let [size, unit] = [value, 0];
  while (Math.abs(size) >= base && unit < units.length - 1) [size, unit] = [size / base, unit + 1];
  const digits = size >= 100 || Number.isInteger(size) ? 0 : size >= 10 ? 1 : 2;
  return `${Number(size.toFixed(digits))}${unit === 0 && units[0] === '' ? '' : gap}${units[unit]}`;
}

const two = (value) => String(value).padStart(2, '0');

/** The forms in which a page may show a value. */
function forms(value) {
  if (typeof value === 'number') {
    const sizes = [scaled(value, 1024, BINARY, ' '), scaled(value, 1000, DECIMAL, ' '), scaled(value, 1000, DECIMAL, '')];
    return [String(value), value.toLocaleString('en'), ...sizes];
  }
  const text = String(value);
  if (/^\d{4}-\d\d-\d\dT/.test(text)) {
    const at = new Date(text);
    const day = `${at.getFullYear()}-${two(at.getMonth() + 1)}-${two(at.getDate())}`;
    return [`${day} ${two(at.getHours())}:${two(at.getMinutes())}:${two(at.getSeconds())}`, text];
  }
  // A word of the interface is one of people: InSync, in sync.
  return [text, text.replace(/([a-z])([A-Z])/g, '$1 $2')];
}

/** The leaves of an object: their paths and values. */
function leaves(value, path = '') {
  if (value === null || value === '' || value === undefined) return [];
  if (Array.isArray(value)) return value.flatMap((own) => leaves(own, `${path}[]`));
  if (typeof value !== 'object') return [[path, value]];
  return Object.entries(value)
    .filter(([key]) => !PLUMBING.test(key))
    .flatMap(([key, own]) => leaves(own, path === '' ? key : `${path}.${key}`));
}

/** What people see and hear of a page. */
function text(tab) {
  return tab.page.evaluate(() => {
    const told = ['title', 'aria-label', 'alt', 'href', 'datetime'];
    const named = [...document.querySelectorAll('main *')].flatMap((node) => told.map((name) => node.getAttribute(name) ?? ''));
    const walker = document.createTreeWalker(document.querySelector('main'), NodeFilter.SHOW_TEXT);
    const texts = [];
    while (walker.nextNode()) texts.push(walker.currentNode.data);
    // In one piece for what stands in several nodes, and in pieces: two cells are not one number.
    return [document.querySelector('main').textContent, ...texts, ...named].join('\n').toLowerCase();
  });
}

/** Whether a text has a form of a value: digits only as a number of their own, not within others or a name. */
function stands(shown, form) {
  if (!/^[\d.]+$/.test(form)) return shown.includes(form);
  return new RegExp(`(?<![\\w.:-])${form.replaceAll('.', '\\.')}(?![\\w-]|[.:]\\w)`).test(shown);
}

/** Whether a page tells a value of a resource. */
function isTold(shown, kind, own, path, value) {
  if ([...LEFT, ...(kind.left ?? [])].some((pattern) => pattern.test(path))) return true;
  const word = kind.words?.[path];
  const all = word ? [word(value, own)] : forms(value);
  return all.some((form) => stands(shown, form.toLowerCase()));
}

/** The values of a resource of a kind that the page before a tab does not tell. */
export async function untold(tab, of, own) {
  const kind = KINDS.find((known) => known.of === of);
  const shown = await text(tab);
  return leaves(own).filter(([path, value]) => !isTold(shown, kind, own, path, value));
}

/** Answers what is read with the first answer to it, from now on: pages and values are of one moment. */
async function record(tab) {
  const kept = new Map();
  await tab.page.context().route('**/redfish/v1/**', async (route) => {
    const asked = route.request();
    if (asked.method() !== 'GET' || asked.url().includes('/SSE')) return route.continue();
    if (!kept.has(asked.url())) {
      const answer = await route.fetch();
      kept.set(asked.url(), { status: answer.status(), headers: answer.headers(), body: await answer.text() });
    }
    return route.fulfill(kept.get(asked.url()));
  });
  return kept;
}

/** Pages that read what no other shows. */
const ALONE = ['/accounts', '/audit'];

/** Goes to a page; it has all that it shows. */
async function seen(tab, at) {
  await tab.go(at);
  if (ALONE.includes(at)) await tab.page.locator('main tbody').last().locator('tr').first().waitFor();
}

export async function everyValueIsOnItsPage(world) {
  const tab = await world.tab();
  const kept = await record(tab);
  await tab.logIn(world.users.Administrator);
  // What only their pages read is recorded, too.
  for (const at of ALONE) await seen(tab, at);
  const shown = new Map();
  let many = 0;
  for (const kind of KINDS) {
    const found = [...kept].filter(([url]) => url.includes(kind.of));
    assert(found.length > 0, `nothing is told of ${kind.of}`);
    for (const own of found.flatMap(([, { body }]) => JSON.parse(body).Members ?? [JSON.parse(body)])) {
      const at = kind.page(own);
      if (!shown.has(at)) {
        await seen(tab, at);
        shown.set(at, await text(tab));
      }
      for (const [path, value] of leaves(own)) {
        many += 1;
        if (!isTold(shown.get(at), kind, own, path, value)) tab.note(`${kind.of} ${own.Id}: ${path} is not told: ${value}`);
      }
    }
  }
  assert(many > 1000, `${many} values are many`);
  // An answer that is still under way finds no page.
  await tab.page.context().unrouteAll({ behavior: 'ignoreErrors' });
}
everyValueIsOnItsPage.isOwn = true;
