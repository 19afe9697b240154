// Exports at Fibre Channel ports, which the tests' own daemon has none of: what is told of them and of
// the ports is on the page, and what the form asks for is what was picked and typed.
import assert from 'node:assert/strict';
import { confirm, plan } from './flow.mjs';
import { inAllForms } from './pages.mjs';
import { done, toldOf } from './told.mjs';
import { untold } from './values.mjs';

const BASE = '/redfish/v1/Fabrics/fc';
const VOLUME = 'scratch/temporary';
const NQN = 'nqn.2014-08.org.nvmexpress:uuid:';
const HOST = `${NQN}11111111-2222-3333-4444-555555555555`;
const PORTS = [
  { Name: '20:00:00:25:b5:00:00:1e', Driver: 'qla2xxx', State: 'Linkdown', Speed: '' },
  { Name: '20:00:00:25:b5:00:00:1f', Driver: 'fcoe', State: 'Online', Speed: '16 Gbit' },
];
/** One that serves NVMe alone: it is not listed. */
const OTHER = '20:00:00:25:b5:00:00:2f';

function connection(Number, own, Health) {
  const [Id, Name] = [`media.${Number}`, `media:${Number}`];
  const whole = { Array: 'media', Number, Listeners: [], Advertise: [], Hosts: [], AnyHost: false, Connected: [], ...own };
  return {
    '@odata.id': `${BASE}/Connections/${Id}`,
    '@odata.etag': 'W/"1"',
    Id,
    Name,
    ConnectionType: 'Storage',
    Status: { State: own.Serving ? 'Enabled' : 'UnavailableOffline', Health },
    Oem: { Palisade: whole },
  };
}

/** A unit that somebody has, and a subsystem that is not served. */
const ALL = [
  connection(71, {
    Volume: 'films',
    Kind: 'Fc',
    Device: '/dev/loop7',
    Fc: {
      Port: PORTS[1].Name,
      Initiators: ['20:00:00:25:b5:00:00:01', '20:00:00:25:b5:00:00:02'],
      Unit: 4095,
      Sessions: ['20:00:00:25:b5:00:00:02'],
    },
    Health: { State: 'Ok', Checked: 1_795_000_000 },
    URI: 'a unit',
    Serving: true,
  }, 'OK'),
  connection(72, {
    Volume: 'music',
    Kind: 'NvmeFc',
    Fc: { Port: OTHER, Initiators: [HOST], Subsystem: `${NQN}66666666-2222-3333-4444-555555555555`, Sessions: [] },
    Health: { State: 'Failed', Checked: 1_795_000_001, Problem: 'the port is gone' },
    URI: 'a namespace',
    Serving: false,
    Problem: 'the port is not there',
  }, 'Critical'),
];

/** A tab that is told of these exports and ports. */
function told(world, role, exports, Ports) {
  const all = { '@odata.etag': 'W/"1"', Members: exports, 'Members@odata.count': exports.length };
  const fabric = { '@odata.id': BASE, Id: 'fc', Name: 'Fibre Channel', Oem: { Palisade: { Ports } } };
  return toldOf(world, role, { base: BASE, at: '/exports', answer: (path) => (path === '' ? fabric : all) });
}

async function whatIsToldOfFibreChannelIsShown(world) {
  const { tab, region } = await told(world, 'ReadOnly', ALL, PORTS);
  const { page } = tab;
  await region('Export media:71').waitFor();
  await inAllForms(tab, 'fibre-channel', true);
  for (const own of ALL) {
    for (const [path, value] of await untold(tab, '/Connections?', own)) tab.note(`${own.Name}: ${path} is not told: ${value}`);
  }
  for (const [path, value] of await untold(tab, '/Fabrics/fc?', { Oem: { Palisade: { Ports: PORTS } } })) {
    tab.note(`${path} is not told: ${value}`);
  }
  await region('Export media:71').getByText(`${PORTS[1].Name}, LUN 4095`).waitFor();
  await region('Export media:72').getByText('not known', { exact: true }).waitFor();
  const row = (port) => region('Fibre Channel ports').getByRole('row').filter({ hasText: port.Name });
  await row(PORTS[0]).getByText('Linkdown', { exact: true }).waitFor();
  await row(PORTS[1]).getByText('media/films', { exact: true }).waitFor();
  const buttons = (await tab.buttons()).filter((name) => !name.startsWith('Copy '));
  assert.deepEqual(buttons, [], 'buttons for what a reader may not');
  await tab.go('/');
  await page.getByText('Export media:72 of media/music is not served: the port is not there').waitFor();
}

/** Opens the form for a volume, of a kind. */
async function form(tab, kind) {
  await tab.button('Share a volume').click();
  const dialog = tab.page.getByRole('dialog', { name: 'Share a volume' });
  await dialog.getByRole('combobox', { name: 'Volume' }).selectOption(VOLUME);
  await dialog.getByLabel('Kind').selectOption(kind);
  return dialog;
}

/** Confirms the form; what it asked for. */
async function shared(tab, asked) {
  await plan(tab);
  await confirm(tab, 'Share');
  const { method, path, body } = await done(asked, tab);
  assert.deepEqual([method, path], ['POST', '/Connections']);
  return body.Oem.Palisade;
}

async function aUnitAtAPortIsAskedForAsPicked(world) {
  const { tab, asked } = await told(world, 'Operator', [], PORTS);
  const dialog = await form(tab, 'Fibre Channel (FCP)');
  const port = dialog.getByRole('combobox', { name: 'Port' });
  const words = ['20:00:00:25:b5:00:00:1e, qla2xxx, Linkdown', '20:00:00:25:b5:00:00:1f, fcoe, Online, 16 Gbit', 'Another port'];
  assert.deepEqual(await port.locator('option').allInnerTexts(), words);
  assert.equal(await port.inputValue(), PORTS[1].Name, 'one that is online is proposed');
  await port.selectOption(PORTS[0].Name);
  const initiators = dialog.getByLabel('Initiators (WWPN, one a line)');
  const isReady = () => tab.button('Show the plan').isEnabled();
  await initiators.fill(`20:00:00:25:b5:00:00:01\n${HOST}`);
  assert(!(await isReady()), 'a host’s qualified name is no initiator of FCP');
  await initiators.fill('20:00:00:25:b5:00:00:01\n0x20000025b5000002\n');
  await tab.look('fibre-channel-fcp');
  await tab.axe('fibre-channel-fcp');
  assert.deepEqual(await shared(tab, asked), {
    Port: PORTS[0].Name, Initiators: ['20:00:00:25:b5:00:00:01', '0x20000025b5000002'], Protocol: 'Fcp',
  });
}

async function aSubsystemAtAPortIsAskedForAsTyped(world) {
  const { tab, asked } = await told(world, 'Operator', ALL, PORTS);
  let dialog = await form(tab, 'Fibre Channel (NVMe)');
  const isReady = () => tab.button('Show the plan').isEnabled();
  const name = () => dialog.getByLabel('Name of the port (WWPN)');
  assert.equal(await name().inputValue(), OTHER, 'the port of another export is proposed');
  await dialog.getByLabel('Hosts (NQN, one a line)').fill('20:00:00:25:b5:00:00:01');
  assert(!(await isReady()), 'a port is no host of NVMe');
  await dialog.getByLabel('Hosts (NQN, one a line)').fill(`${HOST}\n${NQN}2`);
  await name().fill('20:00');
  assert(!(await isReady()), 'a name is whole');
  await name().fill(OTHER);
  await tab.look('fibre-channel-nvme');
  await tab.axe('fibre-channel-nvme');
  assert.deepEqual(await shared(tab, asked), { Port: OTHER, Initiators: [HOST, `${NQN}2`], Protocol: 'Nvme' });
  // Where no port is known, there is none to pick, and no table of them.
  const bare = await told(world, 'Operator', [], []);
  dialog = await form(bare.tab, 'Fibre Channel (FCP)');
  assert.equal(await dialog.getByRole('combobox', { name: 'Port' }).count(), 0, 'no port is known');
  assert.equal(await bare.region('Fibre Channel ports').count(), 0, 'no port is known');
  assert.equal(await name().inputValue(), '');
}

async function anExportAtAPortIsEnded(world) {
  const { tab, asked } = await told(world, 'Operator', ALL, PORTS);
  await tab.button('End export media:71').click();
  await confirm(tab, 'End export');
  assert.deepEqual(await done(asked, tab), { method: 'DELETE', path: '/Connections/media.71', body: null });
}

export const tests = {
  whatIsToldOfFibreChannelIsShown,
  aUnitAtAPortIsAskedForAsPicked,
  aSubsystemAtAPortIsAskedForAsTyped,
  anExportAtAPortIsEnded,
};
// They go by what the tests' own daemon holds.
for (const own of Object.values(tests)) own.isOwn = true;
