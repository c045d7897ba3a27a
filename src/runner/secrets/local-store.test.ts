import { chmod, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { MasterKey, userConfigDir } from './key-source.ts';
import { LocalStore, type LocalEntry } from './local-store.ts';
import { ENTRIES_PER_ENVIRONMENT_MAX } from './secret-limits.ts';

const HEX_KEY = '00112233445566778899aabbccddeeff00112233445566778899aabbccddeeff';
const UNAVAILABLE = { reason: 'BACKEND_UNAVAILABLE' };

let dir: string;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'local-'));
});

afterEach(async () => {
  await rm(dir, { recursive: true });
});

function storeWith(key: string | undefined = HEX_KEY): LocalStore {
  return new LocalStore(dir, new MasterKey(key, join(dir, 'config')));
}

function entry(name: string, value: string, environment = 'production'): LocalEntry {
  return { name, value, environment, backend: 'local', updatedAt: '2026-11-21T12:00:00.000Z' };
}

async function valueIn(store: LocalStore, name: string): Promise<string | undefined> {
  await store.open();
  const found = store.entry('production', name, 'local');
  return found === undefined ? undefined : store.valueOf(found);
}

describe('the local store', () => {
  test.each([
    ['a key in hexadecimal', HEX_KEY],
    ['a key in base64', Buffer.from(HEX_KEY, 'hex').toString('base64')],
    ['a passphrase', 'correct horse battery staple'],
    ['a key file', ''],
  ])('keeps values under %s', async (_case, key) => {
    await storeWith(key).change([entry('A', 'hunter2'), entry('B', 'ü\n')]);
    expect(await readFile(join(dir, 'secrets.json'), 'utf8')).not.toContain('hunter2');
    // A key is made of a passphrase slowly: once more is enough.
    const store = storeWith(key);
    expect(await valueIn(store, 'A')).toBe('hunter2');
    expect(await valueIn(store, 'B')).toBe('ü\n');
  });

  test('finds an environment in any case', async () => {
    await storeWith().change([entry('A', 'x', 'Production')]);
    expect(await valueIn(storeWith(), 'A')).toBe('x');
  });

  test('refuses each changed byte of its file, and leaves it as it is', async () => {
    await storeWith().change([entry('A', 'hunter2')]);
    const path = join(dir, 'secrets.json');
    const bytes = await readFile(path);
    for (let at = 0; at < bytes.length; at++) {
      const changed = Buffer.from(bytes);
      changed.writeUInt8(changed.readUInt8(at) ^ 1, at);
      await writeFile(path, changed);
      const store = storeWith();
      await expect(store.open(), `byte ${at}`).rejects.toMatchObject(UNAVAILABLE);
      // A change opens it, too, and takes twice as long to find out.
      if (at % 8 > 0) continue;
      await expect(store.change([entry('B', 'x')])).rejects.toMatchObject(UNAVAILABLE);
      expect(await readFile(path)).toEqual(changed);
    }
  });

  test('refuses its own content in another form', async () => {
    await storeWith().change([entry('A', 'hunter2')]);
    const path = join(dir, 'secrets.json');
    const text = await readFile(path, 'utf8');
    const forms = [JSON.stringify(JSON.parse(text)), `${text} `, text.replace('  ', '\t')];
    for (const form of forms) {
      await writeFile(path, form);
      await expect(storeWith().open()).rejects.toThrow(/changed by another program/);
    }
  });

  test('refuses entries that are dropped, repeated or swapped', async () => {
    await storeWith().change([entry('A', 'one'), entry('B', 'two')]);
    const path = join(dir, 'secrets.json');
    type File = { entries: { value: string }[] };
    const original = JSON.parse(await readFile(path, 'utf8')) as File;
    const [first, second] = original.entries;
    for (const entries of [[first], [first, second, second], [second, first], []]) {
      await writeFile(path, `${JSON.stringify({ ...original, entries }, null, 2)}\n`);
      await expect(storeWith().open()).rejects.toThrow(/does not verify/);
    }
  });

  test('says so when the key is another or missing', async () => {
    await storeWith().change([entry('A', 'hunter2')]);
    await expect(storeWith(HEX_KEY.replaceAll('0', '1')).open()).rejects.toThrow(
      /the key is another/,
    );
    await expect(storeWith('').open()).rejects.toThrow(/runner\.key is missing/);
    expect(await valueIn(storeWith(), 'A')).toBe('hunter2');
  });

  test('refuses a key file that others can read, a link, and one without a key', async () => {
    await storeWith('').change([entry('A', 'x')]);
    const path = join(dir, 'config/runner.key');
    await chmod(path, 0o640);
    await expect(storeWith('').open()).rejects.toThrow(/mode 0600/);
    await writeFile(path, 'no key\n', { mode: 0o600 });
    await chmod(path, 0o600);
    await expect(storeWith('').open()).rejects.toThrow(/holds no key/);
    await rm(path);
    await symlink('/dev/zero', path);
    await expect(storeWith('').open()).rejects.toThrow(/symbolic link/);
  });

  test('the key lies where the user keeps settings', () => {
    expect(userConfigDir({ HOME: '/h' })).toBe('/h/.config/gatehouse');
    expect(userConfigDir({ HOME: '/h', XDG_CONFIG_HOME: '' })).toBe('/h/.config/gatehouse');
    expect(userConfigDir({ HOME: '/h', XDG_CONFIG_HOME: '/x' })).toBe('/x/gatehouse');
  });

  test('one key file is made when many need one', async () => {
    await mkdir(join(dir, 'config'));
    const keys = await Promise.all(
      Array.from({ length: 8 }, () =>
        new MasterKey('', join(dir, 'config')).keysFor(Buffer.alloc(16), true),
      ),
    );
    expect(new Set(keys.map(({ values }) => values.toString('hex'))).size).toBe(1);
  });

  test('its files are for their owner alone, whatever the umask', async () => {
    const before = process.umask(0);
    try {
      await storeWith('').change([entry('A', 'x')]);
    } finally {
      process.umask(before);
    }
    const modeOf = async (name: string): Promise<number> =>
      (await stat(join(dir, name))).mode & 0o777;
    expect(await modeOf('secrets.json')).toBe(0o600);
    expect(await modeOf('config/runner.key')).toBe(0o600);
    expect(await modeOf('config')).toBe(0o700);
  });

  test('fingerprints tell values apart and depend on place and key', async () => {
    const store = storeWith();
    await store.ready();
    const prints = [
      store.fingerprint('a', 'A', 'one'),
      store.fingerprint('a', 'A', 'two'),
      store.fingerprint('a', 'B', 'one'),
      store.fingerprint('b', 'A', 'one'),
    ];
    expect(new Set(prints).size).toBe(4);
    for (const print of prints) expect(print).toMatch(/^[0-9a-f]{8}$/);
    await store.change([entry('X', 'y')]);
    const again = storeWith();
    await again.open();
    expect(again.fingerprint('a', 'A', 'one')).toBe(prints[0]);
  });

  test('takes no more than its limit, all or nothing', async () => {
    const store = storeWith();
    const entries = Array.from({ length: ENTRIES_PER_ENVIRONMENT_MAX }, (_, index) =>
      entry(`N${index}`, 'x'),
    );
    await store.change(entries);
    await expect(
      store.change([entry('A', 'x', 'other'), entry('MORE', 'x')]),
    ).rejects.toMatchObject({ reason: 'RESULT_TOO_LARGE' });
    expect(store.entry('other', 'A', 'local')).toBeUndefined();
  });
});
