import { createDecipheriv, createHash } from 'node:crypto';
import { writeFileSync } from 'node:fs';
import { copyFile, mkdir, mkdtemp, readFile, rm, stat, symlink, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { armor, Decrypter, generateIdentity, identityToRecipient } from 'age-encryption';
import fc from 'fast-check';
import { afterEach, beforeEach, expect, test } from 'vitest';
import { byLength } from '../../../test/support/test-length.ts';
import { systemClock } from '../../shared/time/clock.ts';
import { VaultFile } from './vault-file.ts';
import { VaultIdentities } from './vault-identities.ts';

const FIXTURES = join(import.meta.dirname, '../../../test/runner/secrets/fixtures');
const IDENTITY_FILE = join(FIXTURES, 'throw-away-identity.txt');

let dir: string;
let vault: VaultFile;
let path: string;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'vault-'));
  path = join(dir, 'vault.json');
  vault = vaultFor({ HOME: dir, SOPS_AGE_KEY_FILE: IDENTITY_FILE });
});

afterEach(async () => {
  await rm(dir, { recursive: true });
});

function vaultFor(environment: Record<string, string>): VaultFile {
  const identities = new VaultIdentities({ configDir: join(dir, 'config'), environment });
  return new VaultFile(dir, identities, systemClock);
}

test('reads what the real sops wrote, and names what is no secret of the runner', async () => {
  await copyFile(join(FIXTURES, 'vault-by-sops.sops'), path);
  const content = await vault.read();
  expect(content?.entries).toEqual([
    { environment: 'production', name: 'API_KEY', value: 'kept in production' },
    { environment: 'production', name: 'MULTI_LINE', value: 'first\nsecond\n' },
    { environment: 'production', name: 'UNICODE', value: 'ü 🔑 < \\ "' },
    { environment: 'production', name: 'NUMBER', value: '4711' },
    { environment: 'production', name: 'FRACTION', value: '1.5' },
    { environment: 'production', name: 'SWITCH', value: 'true' },
    { environment: '10', name: 'ORDER', value: 'ten' },
    { environment: '2', name: 'ORDER', value: 'two' },
    { environment: 'default', name: 'API_KEY', value: 'kept for all' },
  ]);
  expect(content?.problems.map((problem) => problem.split(':')[0])).toEqual([
    'production.EMPTY',
    'production.shown_unencrypted',
    'production.COUNT_unencrypted',
    'production.LIST',
    'production.LIST',
    'default.with space',
    'default.GITHUB_X',
    'top',
  ]);
  expect(content?.lastModifiedMs).toBe(Date.parse('2026-11-21T14:59:58Z'));
});

test("follows a file's own rule of what is encrypted and of what its MAC covers", async () => {
  await copyFile(join(FIXTURES, 'vault-rule-by-sops.sops'), path);
  const content = await vault.read();
  expect(content?.entries.map(({ name, value }) => [name, value])).toEqual([
    ['API_KEY', 'only this'],
    ['COUNT', '7'],
  ]);
  await vault.change([{ environment: 'other', name: 'NEW', value: 'x' }], []);
  expect((await vault.read())?.entries).toHaveLength(3);
  await expect(
    vault.change([{ environment: 'other', name: 'X9', value: 'x' }], []),
  ).rejects.toMatchObject({ reason: 'INVALID_NAME' });
});

test('changes one value and leaves every other byte of the values as it was', async () => {
  await copyFile(join(FIXTURES, 'vault-by-sops.sops'), path);
  const before = (await readFile(path, 'utf8')).split('\n');
  const put = { environment: 'PRODUCTION', name: 'API_KEY', value: 'new' };
  await vault.change([put], [{ environment: '10', name: 'ORDER' }]);
  const after = (await readFile(path, 'utf8')).split('\n');
  const gone = before.filter((line) => !after.includes(line));
  const come = after.filter((line) => !before.includes(line));
  expect(gone.map((line) => line.trim().split(':')[0])).toEqual([
    '"API_KEY"',
    '"10"',
    '"ORDER"',
    '"lastmodified"',
    '"mac"',
  ]);
  expect(come.map((line) => line.trim().split(':')[0])).toEqual([
    '"API_KEY"',
    '"lastmodified"',
    '"mac"',
  ]);
  const content = await vault.read();
  expect(content?.entries.find(({ name }) => name === 'API_KEY')?.value).toBe('new');
  expect(content?.entries.some(({ environment }) => environment === '10')).toBe(false);
});

test('tells secrets of one name in several environments apart', async () => {
  await copyFile(join(FIXTURES, 'vault-by-sops.sops'), path);
  const put = { environment: 'Default', name: 'API_KEY', value: 'new' };
  const { removed } = await vault.change([put], [{ environment: '2', name: 'ORDER' }]);
  expect(removed).toBe(1);
  const places = (await vault.read())?.entries.map(
    ({ environment, name, value }) => `${environment}.${name}=${value}`,
  );
  expect(places).toContain('production.API_KEY=kept in production');
  expect(places).toContain('default.API_KEY=new');
  expect(places).toContain('10.ORDER=ten');
  expect(places).not.toContain('2.ORDER=two');
});

test('takes base64 in its one form only', async () => {
  await vault.change([{ environment: 'production', name: 'API_KEY', value: 'hunter2' }], []);
  const text = await readFile(path, 'utf8');
  for (const [pattern, replacement] of [
    [/data:/, 'data:.'],
    [/iv:/, 'iv: '],
    [/tag:(.{20})../, 'tag:$1'],
  ] as const) {
    await writeFile(path, text.replace(pattern, replacement));
    await expect(vault.read()).rejects.toMatchObject({ reason: 'BACKEND_UNAVAILABLE' });
  }
});

test('writes what an independent reading of the format opens', async () => {
  const name = fc.stringMatching(/^[A-Z]{1,4}$/);
  const environment = fc.constantFrom('default', 'production', '10', '2', 'with space', 'ü:x');
  const value = fc
    .string({ unit: 'grapheme', minLength: 1, maxLength: 60, size: 'max' })
    .filter((text) => !text.includes('\0'));
  await fc.assert(
    fc.asyncProperty(
      fc.uniqueArray(fc.record({ environment, name, value }), {
        minLength: 1,
        maxLength: 6,
        selector: (entry) => `${entry.environment}/${entry.name}`,
      }),
      async (entries) => {
        await rm(path, { force: true });
        for (const entry of entries) await vault.change([entry], []);
        const read = await readSlowly(await readFile(path, 'utf8'));
        const places = (list: readonly unknown[]): string[] =>
          list.map((item) => JSON.stringify(item)).sort();
        expect(places(read)).toEqual(places(entries));
        expect(places((await vault.read())?.entries ?? [])).toEqual(places(entries));
      },
    ),
    { numRuns: 12 },
  );
}, 60_000);

test('refuses each changed byte, or reads the same', async () => {
  await vault.change([{ environment: 'production', name: 'API_KEY', value: 'hunter2' }], []);
  const text = await readFile(path, 'utf8');
  const before = await vault.read();
  let refused = 0;
  const start = text.indexOf('-----BEGIN');
  const end = text.indexOf('-----END');
  for (let at = 0; at < text.length; at += byLength(3, 1)) {
    // Each reading of the wrapped key is a curve operation: a sample of its bytes will do.
    if (at > start && at < end && at % 37 !== 0) continue;
    const byte = text.charCodeAt(at) ^ 1;
    await writeFile(path, text.slice(0, at) + String.fromCharCode(byte) + text.slice(at + 1));
    try {
      const content = await vault.read();
      expect(content?.entries).toEqual(before?.entries);
    } catch (error) {
      refused++;
      expect(error).toMatchObject({ reason: 'BACKEND_UNAVAILABLE' });
      expect(String(error)).not.toContain('hunter2');
    }
  }
  expect(refused).toBeGreaterThan(text.length / byLength(9, 3));
}, 120_000);

test.each([
  ['no metadata', (file: SopsFile): unknown => ({ production: file['production'] })],
  ['no MAC', (file: SopsFile) => ({ ...file, sops: { ...file.sops, mac: undefined } })],
  ['an empty MAC', (file: SopsFile) => ({ ...file, sops: { ...file.sops, mac: '' } })],
  [
    'another time',
    (file: SopsFile) => ({ ...file, sops: { ...file.sops, lastmodified: '2020-01-01T00:00:00Z' } }),
  ],
  ['a moved value', (file: SopsFile) => ({ staging: file['production'], sops: file.sops })],
  ['a dropped value', (file: SopsFile) => ({ production: {}, sops: file.sops })],
  ['a plain value', (file: SopsFile) => ({ ...file, other: { X: 'planted' } })],
  [
    'a plain value under the rule',
    (file: SopsFile) => ({ ...file, other_unencrypted: { X: 'planted' } }),
  ],
  ['no recipients', (file: SopsFile) => ({ ...file, sops: { ...file.sops, age: [] } })],
])('refuses a file with %s, and does not overwrite it', async (_case, change) => {
  await vault.change([{ environment: 'production', name: 'API_KEY', value: 'hunter2' }], []);
  const text = JSON.stringify(change(JSON.parse(await readFile(path, 'utf8')) as SopsFile));
  await writeFile(path, text);
  await expect(vault.read()).rejects.toMatchObject({ reason: 'BACKEND_UNAVAILABLE' });
  const put = { environment: 'production', name: 'B', value: 'x' };
  await expect(vault.change([put], [])).rejects.toMatchObject({ reason: 'BACKEND_UNAVAILABLE' });
  expect(await readFile(path, 'utf8')).toBe(text);
});

test('refuses a symbolic link and what is no file', async () => {
  await copyFile(join(FIXTURES, 'vault-by-sops.sops'), join(dir, 'elsewhere.json'));
  await symlink(join(dir, 'elsewhere.json'), path);
  await expect(vault.read()).rejects.toThrow(/symbolic link/);
  const put = { environment: 'production', name: 'B', value: 'x' };
  await expect(vault.change([put], [])).rejects.toThrow(/symbolic link/);
  await rm(path);
  await mkdir(path);
  await expect(vault.read()).rejects.toMatchObject({ reason: 'BACKEND_UNAVAILABLE' });
});

test('does not overwrite what another program wrote meanwhile', async () => {
  await copyFile(join(FIXTURES, 'vault-by-sops.sops'), path);
  const theirs = await readFile(join(FIXTURES, 'vault-rule-by-sops.sops'), 'utf8');
  const environment = { HOME: dir, SOPS_AGE_KEY_FILE: IDENTITY_FILE };
  const identities = new VaultIdentities({ configDir: join(dir, 'config'), environment });
  // The time is asked for between reading and writing.
  const nowMs = (): number => {
    writeFileSync(path, theirs);
    return Date.now();
  };
  const slow = new VaultFile(dir, identities, { ...systemClock, nowMs });
  const put = { environment: 'production', name: 'B', value: 'x' };
  await expect(slow.change([put], [])).rejects.toThrow(/changed by another program/);
  expect(await readFile(path, 'utf8')).toBe(theirs);
});

test('says who cannot read it', async () => {
  await copyFile(join(FIXTURES, 'vault-by-sops.sops'), path);
  await expect(vaultFor({ HOME: dir }).read()).rejects.toThrow(/no age identity/);
  const other = vaultFor({ HOME: join(dir, 'other') });
  await rm(path);
  await other.change([{ environment: 'a', name: 'B', value: 'x' }], []);
  await rm(join(dir, 'config'), { recursive: true });
  await expect(vault.read()).rejects.toThrow(/none of the age identities/);
});

test('names need no key; what is no secret of the runner is none of them', async () => {
  await copyFile(join(FIXTURES, 'vault-by-sops.sops'), path);
  const content = await vault.read();
  const keyless = vaultFor({ HOME: dir });
  expect(await keyless.names()).toEqual({
    secrets: content?.entries.map(({ environment, name }) => ({ environment, name })),
    lastModifiedMs: content?.lastModifiedMs,
  });
  await writeFile(path, '{"production":{"API_KEY":"in clear"}}');
  await expect(keyless.names()).rejects.toMatchObject({ reason: 'BACKEND_UNAVAILABLE' });
  await rm(path);
  expect(await keyless.names()).toBeUndefined();
});

test('finds identities where sops does', async () => {
  await copyFile(join(FIXTURES, 'vault-rule-by-sops.sops'), path);
  const file = await readFile(IDENTITY_FILE, 'utf8');
  const key = /AGE-SECRET-KEY-\S+/.exec(file)?.[0] ?? '';
  const other = await generateIdentity();
  await mkdir(join(dir, 'xdg/sops/age'), { recursive: true });
  await writeFile(join(dir, 'xdg/sops/age/keys.txt'), file);
  for (const environment of [
    { SOPS_AGE_KEY: key },
    { SOPS_AGE_KEY: `${other}\n${key}` },
    { SOPS_AGE_KEY_FILE: IDENTITY_FILE },
    { SOPS_AGE_KEY: other, SOPS_AGE_KEY_FILE: IDENTITY_FILE },
    { XDG_CONFIG_HOME: join(dir, 'xdg') },
  ]) {
    const content = await vaultFor({ HOME: dir, ...environment }).read();
    expect(content?.entries).toHaveLength(2);
  }
  const unreadable = vaultFor({ HOME: dir, SOPS_AGE_KEY_FILE: join(dir, 'none') });
  await expect(unreadable.read()).rejects.toThrow(/SOPS_AGE_KEY_FILE cannot be read/);
});

test('is made for the recipients that sops would take', async () => {
  const [mine, yours] = [await generateIdentity(), await generateIdentity()];
  const recipients = [await identityToRecipient(mine), await identityToRecipient(yours)];
  const environment = { HOME: dir, SOPS_AGE_RECIPIENTS: recipients.join(', ') };
  const entries = [{ environment: 'a', name: 'B', value: 'x' }];
  await vaultFor({ ...environment, SOPS_AGE_KEY: mine }).change(entries, []);
  expect((await vaultFor({ HOME: dir, SOPS_AGE_KEY: yours }).read())?.entries).toEqual(entries);
  await rm(path);
  const wrong = vaultFor({ HOME: dir, SOPS_AGE_RECIPIENTS: 'age1wrong' });
  await expect(wrong.change(entries, [])).rejects.toThrow(/age1wrong is none/);
  await expect(readFile(path)).rejects.toMatchObject({ code: 'ENOENT' });
});

test('makes an identity for its first vault, readable by its owner alone', async () => {
  const own = vaultFor({ HOME: dir });
  await own.change([{ environment: 'a', name: 'B', value: 'x' }], []);
  expect((await stat(join(dir, 'config'))).mode & 0o777).toBe(0o700);
  expect((await stat(join(dir, 'config/vault-identity.txt'))).mode & 0o777).toBe(0o600);
  expect((await stat(path)).mode & 0o777).toBe(0o600);
});

type SopsFile = Record<string, unknown> & {
  readonly sops: Record<string, unknown> & {
    readonly age: readonly { readonly enc: string }[];
    readonly mac: string;
    readonly lastmodified: string;
  };
};

/** The format as its documentation says it, without any code of ours; throws unless all verifies. */
async function readSlowly(text: string): Promise<readonly unknown[]> {
  const file = JSON.parse(text) as SopsFile;
  const identity = /AGE-SECRET-KEY-\S+/.exec(await readFile(IDENTITY_FILE, 'utf8'))?.[0];
  const decrypter = new Decrypter();
  decrypter.addIdentity(identity ?? '');
  const key = await decrypter.decrypt(armor.decode(file.sops.age[0]?.enc ?? ''));
  const open = (leaf: string, context: string): string => {
    const part = (label: string): Buffer =>
      Buffer.from(new RegExp(`[[,]${label}:([^,]*)`).exec(leaf)?.[1] ?? '', 'base64');
    expect(part('iv')).toHaveLength(32);
    const decipher = createDecipheriv('aes-256-gcm', key, part('iv'));
    decipher.setAAD(Buffer.from(context)).setAuthTag(part('tag'));
    return decipher.update(part('data')).toString('utf8') + decipher.final('utf8');
  };
  const found: { environment: string; name: string; value: string }[] = [];
  let all = '';
  let environment = '';
  for (const line of text.slice(0, text.indexOf('\n\t"sops"')).split('\n')) {
    const [, tabs = '', keyText = '""', rest = ''] =
      /^(\t*)("(?:[^"\\]|\\.)*"): (.*?),?$/.exec(line) ?? [];
    if (tabs === '\t') environment = JSON.parse(keyText) as string;
    if (tabs !== '\t\t') continue;
    const name = JSON.parse(keyText) as string;
    const value = open(JSON.parse(rest) as string, `${environment}:${name}:`);
    found.push({ environment, name, value });
    all += value;
  }
  const mac = createHash('sha512').update(all).digest('hex').toUpperCase();
  expect(open(file.sops.mac, file.sops.lastmodified)).toBe(mac);
  return found;
}
