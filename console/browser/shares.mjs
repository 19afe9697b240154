// Files of volumes: what is told of them is on their page, what their forms ask for is what was
// typed, and a share's life from its creation to its end.
import assert from 'node:assert/strict';
import { freePort } from './daemon.mjs';
import { confirm, decide, plan } from './flow.mjs';
import { inAllForms } from './pages.mjs';
import { done, toldOf } from './told.mjs';
import { untold } from './values.mjs';

const BASE = '/redfish/v1/Systems/local/Storage/palisade';
const SYSTEMS = `${BASE}/FileSystems`;
const VOLUME = 'scratch/temporary';

/** How something is, asked at some time. */
function health(State, Problem) {
  return { State, Checked: 1_795_000_000 + State.length, ...(Problem ? { Problem } : {}) };
}

function share(system, Name, own, Status) {
  const access = own.ReadOnly ? ['Read'] : ['Read', 'Write'];
  const smb = ['SMBv3_0', 'SMBv3_0_2', 'SMBv3_1_1'].filter(() => own.Smb);
  const nfs = ['NFSv4_0', 'NFSv4_1'].filter(() => own.Nfs);
  const uri = `${system}/ExportedFileShares/${encodeURIComponent(Name)}`;
  return {
    '@odata.id': uri,
    '@odata.etag': 'W/"1"',
    Id: Name,
    Name,
    FileSharePath: `/shares/${Name}`,
    FileSharingProtocols: [...smb, ...nfs],
    DefaultAccessCapabilities: access,
    Status,
    Oem: { Palisade: own },
  };
}

/** A file system that is told with all that there can be. */
function whole(volume) {
  const uri = `${SYSTEMS}/${volume.Id}`;
  const smb = {
    Protocol: 'Smb',
    Server: 'samba',
    Version: '4.22.4',
    Url: 'smb://192.0.2.1/docs',
    Clients: ['192.0.2.7', 'fe80::1'],
    Health: health('Ok'),
  };
  const nfs = {
    Protocol: 'Nfs',
    Server: 'nfs-ganesha',
    Version: '6.5',
    Url: 'nfs://192.0.2.1/docs',
    Clients: [],
    Health: health('Failed', 'the server does not answer'),
  };
  const music = { ...nfs, Url: 'nfs://192.0.2.1/music', Health: health('Starting') };
  const both = {
    ReadOnly: false,
    Smb: true,
    Nfs: true,
    SmbUsers: ['alice', 'bob:ro'],
    NfsClients: ['10.0.0.0/24', 'fe80::/10:ro'],
    Protocols: [smb, nfs],
  };
  const one = {
    ReadOnly: true, Smb: false, Nfs: true, SmbUsers: [], NfsClients: [], Protocols: [music],
  };
  const Members = [
    share(uri, 'docs', both, { State: 'Enabled', Health: 'Warning' }),
    share(uri, 'Größe <b>1.2</b>', one, { State: 'Starting', Health: 'OK' }),
  ];
  const actions = ['AddUser', 'SetUserPassword', 'DeleteUser'].map((name) => {
    const target = `${uri}/Actions/Oem/PalisadeFileSystem.${name}`;
    return [`#PalisadeFileSystem.${name}`, { target }];
  });
  return {
    '@odata.id': uri,
    Id: volume.Id,
    Name: volume.Name,
    Capacity: { Data: { AllocatedBytes: 3 << 28, ConsumedBytes: 123 << 20 } },
    ExportedShares: { '@odata.id': `${uri}/ExportedFileShares`, Members },
    Actions: { Oem: Object.fromEntries(actions) },
    Oem: {
      Palisade: {
        Array: volume.Oem.Palisade.Array,
        ArrayUUID: volume.Links.ProvidingStoragePool['@odata.id'].split('/').pop(),
        Volume: { '@odata.id': volume['@odata.id'] },
        Type: 'xfs',
        Mounted: true,
        ReadOnly: false,
        SmbListen: '192.0.2.1:445',
        NfsListen: '[::]:2049',
        Users: [{ UserName: 'alice', UID: 70_001 }, { UserName: 'bob', UID: 70_002 }],
        Health: health('Ok'),
      },
    },
  };
}

/** One of which little is known: its array does not run. */
function bare() {
  const Id = '11111111-2222-3333-4444-555555555555';
  const uri = `${SYSTEMS}/${Id}`;
  const [Url, Health] = ['smb://192.0.2.1/old', health('Failed')];
  const Protocols = [{ Protocol: 'Smb', Server: 'samba', Url, Clients: [], Health }];
  const own = { ReadOnly: false, Smb: true, Nfs: false, SmbUsers: [], NfsClients: [], Protocols };
  const Members = [share(uri, 'old', own, { State: 'UnavailableOffline', Health: 'Critical' })];
  const Problem = '`palisade services` does not run: systemctl start palisade-services';
  return {
    '@odata.id': uri,
    Id,
    Name: 'attic',
    ExportedShares: { '@odata.id': `${uri}/ExportedFileShares`, Members },
    Oem: {
      Palisade: {
        Array: 'cellar',
        ArrayUUID: '99999999-2222-3333-4444-555555555555',
        Mounted: false,
        ReadOnly: true,
        SmbListen: '[::]:1445',
        NfsListen: '[::]:3049',
        Users: [],
        Health: { State: 'Failed', Problem },
      },
    },
  };
}

/** The seeded volume that nobody has as a block device. */
async function freeVolume(world) {
  const all = await world.api.all('Systems/local/Storage/palisade/Volumes');
  return all.find((own) => `${own.Oem.Palisade.Array}/${own.Name}` === VOLUME);
}

/** A tab that is told of these file systems. */
function told(world, role, systems, lost = []) {
  const all = { '@odata.etag': 'W/"1"', Members: systems, 'Members@odata.count': systems.length };
  return toldOf(world, role, { base: SYSTEMS, at: '/shares', answer: () => all, lost });
}

async function whatIsToldOfSharesIsShown(world) {
  const volume = await freeVolume(world);
  const systems = [whole(volume), bare()];
  const { tab, region } = await told(world, 'ReadOnly', systems);
  await region(`File system ${VOLUME}`).waitFor();
  await inAllForms(tab, 'shares-whole', true);
  for (const own of systems) {
    for (const [path, value] of await untold(tab, '/FileSystems?', own)) {
      tab.note(`${own.Name}: ${path} is not told: ${value}`);
    }
  }
  const docs = region('Share docs');
  await docs.getByText('served in part', { exact: true }).waitFor();
  await region('docs by NFS').getByText('the server does not answer').waitFor();
  await region('Share old').getByText('not served', { exact: true }).waitFor();
  assert.equal(await tab.page.locator('main b').count(), 0, 'a name is no element');
  const buttons = (await tab.buttons()).filter((name) => !name.startsWith('Copy '));
  assert.deepEqual(buttons, [], 'buttons for what a reader may not');
  // It is a reason to look, and where the volume and the addresses are it is told, too.
  await tab.go('/');
  const why = `Share docs of ${VOLUME} is not served by NFS: the server does not answer`;
  await tab.page.getByText(why).waitFor();
  await tab.go('/ports');
  const listens = tab.page.getByRole('row').filter({ hasText: '192.0.2.1:445' });
  await listens.filter({ hasText: '192.0.2.7 by SMB' }).waitFor();
  await tab.go('/volumes');
  const name = tab.page.getByRole('rowheader', { name: volume.Name, exact: true });
  const row = tab.page.getByRole('row').filter({ has: name });
  await row.getByRole('link', { name: '2', exact: true }).click();
  await tab.page.getByRole('heading', { name: 'Shares', level: 1 }).waitFor();
}

async function aNewShareIsAskedForAsTyped(world) {
  const volume = await freeVolume(world);
  const { tab, asked } = await told(world, 'Operator', [], [`ext4 of volume ${VOLUME}`]);
  const { page } = tab;
  await page.getByText('No files are shared').waitFor();
  await tab.button('Create share').click();
  const dialog = page.getByRole('dialog', { name: 'Create share' });
  const volumes = dialog.getByRole('combobox', { name: 'Volume' });
  const offered = await volumes.locator('option').allInnerTexts();
  assert(offered.includes(VOLUME) && !offered.includes('media/films'), `not exported: ${offered}`);
  await volumes.selectOption(VOLUME);
  const isReady = () => tab.button('Show the plan').isEnabled();
  await dialog.getByRole('textbox', { name: 'Name' }).fill('a/b');
  assert(!(await isReady()), 'a name has no slash');
  await dialog.getByRole('textbox', { name: 'Name' }).fill('docs');
  await dialog.getByRole('combobox', { name: 'File system' }).selectOption('Create ext4');
  await dialog.getByLabel('Overwrite what the volume holds').check();
  await dialog.getByLabel('NFS', { exact: true }).check();
  await dialog.getByLabel('SMB users').fill('alice bob:ro');
  await dialog.getByLabel('NFS clients').fill('10.0.0.0/33 x');
  assert(!(await isReady()), 'clients are addresses');
  await dialog.getByLabel('NFS clients').fill('10.0.0.0/24 192.0.2.7:ro');
  await dialog.getByText('Advanced: addresses').click();
  await dialog.getByLabel('SMB address').fill('192.0.2.1:1445');
  await tab.look('share-form');
  await tab.axe('share-form');
  await plan(tab);
  await tab.axe('share-plan');
  // What it destroys wants the volume's name typed.
  await confirm(tab, 'Create share', VOLUME);
  assert.deepEqual(await done(asked, tab), {
    method: 'POST', path: '',
    body: {
      Oem: {
        Palisade: {
          Volume: { '@odata.id': volume['@odata.id'] },
          Name: 'docs',
          Format: 'ext4',
          Overwrite: true,
          Smb: true,
          Nfs: true,
          SmbUsers: ['alice', 'bob:ro'],
          NfsClients: ['10.0.0.0/24', '192.0.2.7:ro'],
          SmbListen: '192.0.2.1:1445',
        },
      },
    },
  });
}

async function sharesAreChangedAsTyped(world) {
  const volume = await freeVolume(world);
  const { tab, asked, region } = await told(world, 'Operator', [whole(volume)]);
  const { page } = tab;
  await region(`File system ${VOLUME}`).waitFor();
  await tab.button(`Add a share of ${VOLUME}`).click();
  const another = page.getByRole('dialog', { name: 'Create share' });
  await another.getByRole('textbox', { name: 'Name' }).fill('photos');
  const systems = await another.getByRole('combobox', { name: 'File system' }).count();
  assert.equal(systems, 0, 'the file system is there');
  await plan(tab);
  await confirm(tab, 'Create share');
  const shares = `/${volume.Id}/ExportedFileShares`;
  const body = { Name: 'photos', Oem: { Palisade: { Smb: true } } };
  assert.deepEqual(await done(asked, tab), { method: 'POST', path: shares, body });

  await tab.button('Change share docs').click();
  const change = page.getByRole('dialog', { name: `Change share docs of ${VOLUME}` });
  assert(await tab.button('Show the plan').isDisabled(), 'nothing is another yet');
  assert.equal(await change.getByLabel('SMB users').inputValue(), 'alice bob:ro');
  await change.getByLabel('Read only').check();
  await change.getByLabel('NFS', { exact: true }).uncheck();
  await tab.axe('share-change');
  await plan(tab);
  await confirm(tab, 'Change share');
  assert.deepEqual(await done(asked, tab), {
    method: 'PATCH',
    path: `${shares}/docs`,
    body: { Oem: { Palisade: { Nfs: false, ReadOnly: true, NfsClients: [] } } },
  });
  await tab.button('End share docs').click();
  await page.getByText('The files stay in the volume.').waitFor();
  await confirm(tab, 'End share');
  assert.deepEqual(await done(asked, tab), { method: 'DELETE', path: `${shares}/docs`, body: null });
}

async function usersAreChangedAsTyped(world) {
  const volume = await freeVolume(world);
  const { tab, asked, region } = await told(world, 'Operator', [whole(volume)]);
  const { page } = tab;
  await region(`File system ${VOLUME}`).waitFor();
  /** A password is sent as it is set, without a plan. */
  const sent = (name, body) => {
    const path = `/${volume.Id}/Actions/Oem/PalisadeFileSystem.${name}`;
    assert.deepEqual(asked.splice(0), [{ method: 'POST', path, body, isPlan: false }]);
  };
  await tab.button(`Add a user to ${VOLUME}`).click();
  const user = page.getByRole('dialog', { name: `Add user to ${VOLUME}` });
  await user.getByRole('textbox', { name: 'Name' }).fill('carol');
  await user.getByLabel('Password').fill('a secret');
  await user.getByLabel('Once more').fill('another');
  await user.getByText('The two differ.').waitFor();
  await tab.look('share-user');
  await tab.axe('share-user');
  await user.getByLabel('Once more').fill('a secret');
  await tab.button('Add user').click();
  await user.waitFor({ state: 'detached' });
  sent('AddUser', { UserName: 'carol', Password: 'a secret' });
  // Nothing of it is kept.
  await tab.button(`New password of bob of ${VOLUME}`).click();
  for (const name of ['Password', 'Once more']) {
    assert.equal(await page.getByRole('dialog').getByLabel(name).inputValue(), '');
    await page.getByRole('dialog').getByLabel(name).fill('new');
  }
  await tab.button('Set password').click();
  await page.getByRole('dialog').waitFor({ state: 'detached' });
  sent('SetUserPassword', { UserName: 'bob', Password: 'new' });
  await tab.button(`Delete user bob of ${VOLUME}`).click();
  await page.getByText('The files of the user stay.').waitFor();
  await confirm(tab, 'Delete user');
  const path = `/${volume.Id}/Actions/Oem/PalisadeFileSystem.DeleteUser`;
  assert.deepEqual(await done(asked, tab), { method: 'POST', path, body: { UserName: 'bob' } });
}

/** With the daemon and its services: an Operator has a file system made and shared, and ends it. */
async function lifeOfAShare(world) {
  if (!world.daemon.hasShares) return;
  const tab = await world.tab();
  const { page } = tab;
  const region = (name) => page.getByRole('region', { name, exact: true });
  await tab.logIn(world.users.Operator, '/shares');
  await tab.button('Create share').click();
  const dialog = page.getByRole('dialog', { name: 'Create share' });
  await dialog.getByRole('combobox', { name: 'Volume' }).selectOption(VOLUME);
  await dialog.getByRole('textbox', { name: 'Name' }).fill('team');
  // Of XFS this volume is too small.
  await dialog.getByRole('combobox', { name: 'File system' }).selectOption('Create ext4');
  await dialog.getByText('Advanced: addresses').click();
  await dialog.getByLabel('SMB address').fill(`127.0.0.1:${await freePort()}`);
  await plan(tab);
  await confirm(tab, 'Create share');
  // Nobody can log in before there is a user: it leads on to one.
  const user = page.getByRole('dialog', { name: `Add user to ${VOLUME}` });
  await user.getByRole('textbox', { name: 'Name' }).fill('alice');
  for (const name of ['Password', 'Once more']) await user.getByLabel(name).fill('her password');
  await tab.button('Add user').click();
  await user.waitFor({ state: 'detached' });
  const own = region('Share team');
  await own.getByText('served', { exact: true }).waitFor();
  await region('team by SMB').getByText('OK', { exact: true }).waitFor();
  const system = region(`File system ${VOLUME}`);
  await system.getByText(/^ext4, mounted/).waitFor();
  await system.getByRole('rowheader', { name: 'alice' }).waitFor();
  await tab.look('share-life');
  await tab.axe('share-life');
  // A block device of it would be a second writer.
  await tab.go('/volumes');
  await page.getByRole('rowheader', { name: 'temporary', exact: true }).waitFor();
  assert.equal(await tab.button(`Share ${VOLUME}`).count(), 0, 'a shared volume is not exported');
  await tab.go('/shares');
  await decide(tab, async () => {
    await tab.button('Change share team').click();
    await page.getByRole('dialog').getByLabel('Read only').check();
    await plan(tab);
  }, 'Change share');
  await own.getByText('read only', { exact: true }).waitFor();
  await decide(tab, () => tab.button(`Delete user alice of ${VOLUME}`).click(), 'Delete user');
  await system.getByRole('rowheader', { name: 'alice' }).waitFor({ state: 'detached' });
  await decide(tab, () => tab.button('End share team').click(), 'End share');
  await system.waitFor({ state: 'detached' });
}

export const tests = {
  whatIsToldOfSharesIsShown,
  aNewShareIsAskedForAsTyped,
  sharesAreChangedAsTyped,
  usersAreChangedAsTyped,
  lifeOfAShare,
};
// They go by what the tests' own daemon holds.
for (const own of Object.values(tests)) own.isOwn = true;
