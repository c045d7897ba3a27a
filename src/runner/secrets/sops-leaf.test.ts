import { createCipheriv, createHash, randomBytes } from 'node:crypto';
import { copyFile, mkdtemp, rm } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { systemClock } from '../../shared/time/clock.ts';
import { SopsDocument } from './sops-document.ts';
import { VaultFile } from './vault-file.ts';
import { VaultIdentities } from './vault-identities.ts';

const FIXTURES = join(import.meta.dirname, '../../../test/runner/secrets/fixtures');
const MODIFIED = '2026-11-21T14:59:58Z';
const DATA_KEY = randomBytes(32);

/** Encrypts as the format says, by Node alone. */
function leafOf(context: string, type: string, text: string): string {
  const nonce = randomBytes(32);
  const cipher = createCipheriv('aes-256-gcm', DATA_KEY, nonce).setAAD(Buffer.from(context));
  const data = cipher.update(text, 'utf8', 'base64') + cipher.final('base64');
  return `ENC[AES256_GCM,data:${data},iv:${nonce.toString('base64')},tag:${cipher.getAuthTag().toString('base64')},type:${type}]`;
}

function opened(type: string, text: string, hashed: string): Promise<SopsDocument> {
  const mac = createHash('sha512').update(hashed).digest('hex').toUpperCase();
  const file = {
    a: { N: leafOf('a:N:', type, text) },
    sops: { age: [], lastmodified: MODIFIED, mac: leafOf(MODIFIED, 'str', mac) },
  };
  return SopsDocument.open(JSON.stringify(file), () => Promise.resolve(DATA_KEY));
}

const textOf = (document: SopsDocument): string | undefined => document.leaves()[0]?.text;

test.each([
  ['float', '1.10', '1.1'],
  ['float', '3.0', '3'],
  ['float', '1.0', '1'],
  ['float', '1e21', '1000000000000000000000'],
  ['float', '1000000000000000000000', '1000000000000000000000'],
  ['float', '0.00001', '0.00001'],
  ['float', '1e-7', '0.0000001'],
  ['float', '-0.0', '-0'],
  ['float', '9007199254740993', '9007199254740992'],
  ['int', '9007199254740993', '9007199254740993'],
  ['int', '-9223372036854775808', '-9223372036854775808'],
  ['int', '+007', '7'],
])('a value of type %s keeps the text %s, where the MAC has %s', async (type, text, hashed) => {
  // The MAC as SOPS makes it, of the number written anew, and as others do, of the text.
  expect(textOf(await opened(type, text, hashed))).toBe(text);
  expect(textOf(await opened(type, text, text))).toBe(text);
  await expect(opened(type, text, `${hashed}x`)).rejects.toThrow(/MAC does not fit/);
});

test('what is changed beside a number gets a MAC that SOPS makes, and the number stays', async () => {
  const document = await opened('float', '1.10', '1.1');
  document.set(['a', 'S'], '1.10');
  const text = document.sealed(Date.parse(MODIFIED));
  const again = await SopsDocument.open(text, () => Promise.resolve(DATA_KEY));
  expect(again.leaves().map((leaf) => leaf.text)).toEqual(['1.10', '1.10']);
  const file = JSON.parse(text) as { sops: { mac: string } };
  const mac = createHash('sha512').update('1.11.10').digest('hex').toUpperCase();
  const { openLeaf } = await import('./sops-leaf.ts');
  expect(openLeaf(DATA_KEY, MODIFIED, file.sops.mac).toString()).toBe(mac);
});

test('booleans are true and false, however they were written', async () => {
  expect(textOf(await opened('bool', 'true', 'True'))).toBe('true');
  expect(textOf(await opened('bool', 'False', 'False'))).toBe('false');
});

test('numbers of the real sops come out as it encrypted them', async () => {
  const dir = await mkdtemp(join(tmpdir(), 'numbers-'));
  onTestFinished(() => rm(dir, { recursive: true }));
  await copyFile(join(FIXTURES, 'vault-numbers-by-sops.sops'), join(dir, 'vault.json'));
  const environment = { HOME: dir, SOPS_AGE_KEY_FILE: join(FIXTURES, 'throw-away-identity.txt') };
  const identities = new VaultIdentities({ configDir: join(dir, 'config'), environment });
  const content = await new VaultFile(dir, identities, systemClock).read();
  expect(content?.entries.map(({ name, value }) => `${name}=${value}`)).toEqual([
    'A=1.1',
    'B=1000000000000000000000',
    'C=0.00001',
    'D=3',
    'E=1',
    'F=-0',
    'G=0.0000001',
    'H=123456789.125',
    // Of sops 3.11, which took numbers of JSON for floats; later ones keep integers of 64 bits.
    'I=9007199254740992',
    'J=-4',
    'K=1000',
  ]);
});
