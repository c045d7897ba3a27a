import { execFile } from 'node:child_process';
import { mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { generateHybridIdentity, generateIdentity, identityToRecipient } from 'age-encryption';
import fc from 'fast-check';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import type { SecretService } from '../../../src/runner/secrets/secret-api.ts';
import { createSecretService } from '../../../src/runner/secrets/secret-service.ts';
import { systemClock } from '../../../src/shared/time/clock.ts';
import { findAge, findSops } from './sops-tools.ts';

const run = promisify(execFile);
const [sops, age] = [await findSops(), await findAge()];

let dir: string;
let identityFile: string;
let vaultPath: string;
let service: SecretService;

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'sops-'));
  identityFile = join(dir, 'config/vault-identity.txt');
  vaultPath = join(dir, 'vault.json');
  service = await serviceWith({});
});

afterEach(async () => {
  await service.close();
  await rm(dir, { recursive: true });
});

async function serviceWith(environment: Record<string, string>): Promise<SecretService> {
  return await createSecretService({
    stateDir: dir,
    secretsKey: undefined,
    configDir: join(dir, 'config'),
    environment: { HOME: dir, ...environment },
    clock: systemClock,
    report: (event) => {
      throw new Error(event);
    },
  });
}

async function putInVault(environment: string, name: string, value: string): Promise<void> {
  await service.put({ name, value, environment, backend: 'vault' });
}

async function inJob(environment: string): Promise<Readonly<Record<string, string>>> {
  return await service.secretsFor({ runId: 'r1', jobId: 'build', environment, names: undefined });
}

describe.skipIf(sops.path === undefined)(`the vault and the real sops ${sops.reason ?? ''}`, () => {
  async function runSops(...args: string[]): Promise<string> {
    const env = { HOME: dir, PATH: process.env['PATH'], SOPS_AGE_KEY_FILE: identityFile };
    const { stdout } = await run(sops.path ?? '', args, { env });
    return stdout;
  }

  test('sops decrypts what the service writes', async () => {
    const values = fc.sample(
      fc.string({ unit: 'grapheme', minLength: 1 }).filter((text) => !text.includes('\0')),
      { numRuns: 12, seed: 20_261_121 },
    );
    for (const [index, value] of values.entries())
      await putInVault(String(9 - (index % 3)), `N${index}`, value);
    await putInVault('default', 'LINES', 'first\r\nsecond\n');
    const decrypted = JSON.parse(await runSops('decrypt', vaultPath)) as Record<
      string,
      Record<string, string>
    >;
    for (const [index, value] of values.entries()) {
      expect(decrypted[String(9 - (index % 3))]?.[`N${index}`]).toBe(value);
    }
    expect(decrypted['default']).toEqual({ LINES: 'first\r\nsecond\n' });
  });

  test('the service reads what sops encrypts, sets, removes and rotates', async () => {
    await putInVault('production', 'FIRST', 'of the service');
    await runSops('set', vaultPath, '["production"]["SECOND"]', '"of sops"');
    await runSops('set', vaultPath, '["staging"]["API_KEY"]', '"staged"');
    await runSops('unset', vaultPath, '["production"]["FIRST"]');
    await runSops('rotate', '--in-place', vaultPath);
    expect((await service.status()).mirror.stale).toBe(true);
    const { backends } = await service.sync();
    expect(backends.find(({ name }) => name === 'vault')).toMatchObject({
      pulled: 2,
      unchanged: 0,
      removed: 1,
    });
    expect(await inJob('production')).toEqual({ SECOND: 'of sops' });
    expect(await inJob('staging')).toEqual({ API_KEY: 'staged' });
    expect((await service.status()).mirror.stale).toBe(false);
  });

  test('a file goes back and forth between both', async () => {
    for (let turn = 0; turn < 3; turn++) {
      await putInVault('production', 'OURS', `ours ${turn}`);
      await runSops('set', vaultPath, '["production"]["THEIRS"]', `"theirs ${turn}"`);
      await service.sync();
      expect(await inJob('production')).toEqual({ OURS: `ours ${turn}`, THEIRS: `theirs ${turn}` });
    }
    await service.remove({ name: 'OURS', environment: 'production', backend: 'vault' });
    expect(JSON.parse(await runSops('decrypt', vaultPath))).toEqual({
      production: { THEIRS: 'theirs 2' },
    });
  });

  test('keeps the rule, the recipients and the plain values of a file that sops made', async () => {
    await putInVault('a', 'B', 'makes the identity');
    const recipient = await identityToRecipient(await ownIdentity());
    const second = await identityToRecipient(await generateIdentity());
    const plain = {
      production: { API_KEY: 'x', NOTE_unencrypted: 3.5, LIST: [1, true, null, 'a'] },
      '7': { A: 'b' },
    };
    await writeFile(join(dir, 'plain.json'), JSON.stringify(plain));
    const encrypted = await runSops(
      'encrypt',
      '--age',
      `${recipient},${second}`,
      join(dir, 'plain.json'),
    );
    await writeFile(vaultPath, encrypted);
    await putInVault('production', 'API_KEY', 'y');
    const expected = { ...plain, production: { ...plain.production, API_KEY: 'y' } };
    expect(JSON.parse(await runSops('decrypt', vaultPath))).toEqual(expected);
    const recipients = (
      JSON.parse(await readFile(vaultPath, 'utf8')) as { sops: { age: { recipient: string }[] } }
    ).sops.age;
    expect(recipients.map((entry) => entry.recipient).sort()).toEqual([recipient, second].sort());
  });

  test('the MAC over plain numbers is the one that sops makes', async () => {
    await putInVault('a', 'B', 'makes the identity');
    const recipient = await identityToRecipient(await ownIdentity());
    const numbers =
      '[0, -0, 7, -12, 0.1, -2.50, 1e-7, 1.25e-10, 1e21, 1.5e300, 9007199254740993, -9223372036854775808]';
    await writeFile(
      join(dir, 'plain.json'),
      `{"production": {"API_KEY": "x", "N_unencrypted": ${numbers}}}`,
    );
    await writeFile(
      vaultPath,
      await runSops('encrypt', '--age', recipient, join(dir, 'plain.json')),
    );
    await putInVault('production', 'API_KEY', 'y');
    expect(await runSops('decrypt', '--extract', '["production"]["API_KEY"]', vaultPath)).toBe('y');
  });

  test('takes a post-quantum recipient, and sops reads it', async () => {
    await service.close();
    const file = join(dir, 'keys.txt');
    const hybrid = await generateHybridIdentity();
    await writeFile(file, `${hybrid}\n`, { mode: 0o600 });
    service = await serviceWith({ SOPS_AGE_KEY_FILE: file });
    await putInVault('production', 'API_KEY', 'hybrid');
    identityFile = file;
    expect(JSON.parse(await runSops('decrypt', vaultPath))).toEqual({
      production: { API_KEY: 'hybrid' },
    });
  });
});

describe.skipIf(age.path === undefined)(`the vault and the real age ${age.reason ?? ''}`, () => {
  test('age opens the data key of a vault', async () => {
    await putInVault('production', 'API_KEY', 'hunter2');
    const file = JSON.parse(await readFile(vaultPath, 'utf8')) as {
      sops: { age: { enc: string }[] };
    };
    await writeFile(join(dir, 'wrapped.age'), file.sops.age[0]?.enc ?? '');
    const args = ['--decrypt', '-i', identityFile, join(dir, 'wrapped.age')];
    const { stdout } = await run(age.path ?? '', args, { encoding: 'buffer' });
    expect(stdout).toHaveLength(32);
  });
});

async function ownIdentity(): Promise<string> {
  return /AGE-SECRET-KEY-\S+/.exec(await readFile(identityFile, 'utf8'))?.[0] ?? '';
}
