import { cp, mkdtemp, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import sodium from 'libsodium-wrappers';
import { afterEach, beforeEach, describe, expect, test } from 'vitest';
import { AppError } from '../../shared/app-error.ts';
import type { Clock } from '../../shared/time/clock.ts';
import type { HostSecretPort } from './host-port.ts';
import type { SecretService } from './secret-api.ts';
import { IMPORT_BYTES_MAX, VALUE_BYTES_MAX, VARIABLES_BYTES_MAX } from './secret-limits.ts';
import { createSecretService, type SecretServiceOptions } from './secret-service.ts';

const ACTOR = { ip: '127.0.0.1', origin: 'http://localhost', userAgent: 'test' };
const JOB = { runId: 'run1', jobId: 'build' };

let dir: string;
let nowMs: number;
let service: SecretService;
let reports: string[];
const clock: Clock = { nowMs: () => nowMs, monotonicMs: () => nowMs };

beforeEach(async () => {
  dir = await mkdtemp(join(tmpdir(), 'secrets-'));
  nowMs = Date.parse('2026-11-21T12:00:00.000Z');
  reports = [];
  service = await createSecretService(options());
});

afterEach(async () => {
  await service.close();
  await rm(dir, { recursive: true });
});

function options(more: Partial<SecretServiceOptions> = {}): SecretServiceOptions {
  return {
    stateDir: dir,
    secretsKey: undefined,
    configDir: join(dir, 'config'),
    environment: { HOME: dir },
    clock,
    report: (event) => reports.push(event),
    ...more,
  };
}

async function restart(more: Partial<SecretServiceOptions> = {}): Promise<void> {
  await service.close();
  service = await createSecretService(options(more));
}

async function put(
  name: string,
  value: string,
  environment?: string,
  backend?: string,
): Promise<void> {
  nowMs += 1000;
  await service.put({ name, value, environment, backend });
}

async function inJob(environment: string, names?: readonly string[]): Promise<unknown> {
  return await service.secretsFor({ ...JOB, environment, names });
}

describe('secrets', () => {
  test('are put, listed by name, given to jobs and removed', async () => {
    const made = await service.put({ name: 'api_key', value: 'one' });
    const secret = { name: 'API_KEY', environment: 'default', backend: 'local' };
    expect(made).toEqual({
      isCreated: true,
      secret: { ...secret, updatedAt: '2026-11-21T12:00:00.000Z' },
    });
    nowMs += 5;
    const changed = await service.put({ name: 'API_KEY', value: 'two', environment: 'default' });
    expect(changed).toMatchObject({
      isCreated: false,
      secret: { updatedAt: '2026-11-21T12:00:00.005Z' },
    });
    await put('OTHER', 'x', 'staging');
    await restart();
    expect(await service.listNames('')).toEqual(['API_KEY']);
    expect(await service.listNames('STAGING')).toEqual(['OTHER']);
    expect(await service.listNames()).toEqual(['API_KEY', 'OTHER']);
    expect(await service.listSecrets('default')).toMatchObject([secret]);
    expect(await inJob('')).toEqual({ API_KEY: 'two' });
    await service.remove({ name: 'api_key' });
    expect(await service.listNames()).toEqual(['OTHER']);
    await expect(service.remove({ name: 'api_key' })).rejects.toMatchObject({
      reason: 'SECRET_NOT_FOUND',
    });
    await expect(service.remove({ name: 'OTHER' })).rejects.toMatchObject({
      reason: 'SECRET_NOT_FOUND',
    });
  });

  test('of an environment win over those for all; a job gets only the names it asks for', async () => {
    await put('A', 'general');
    await put('B', 'general');
    await put('A', 'special', 'Production');
    expect(await inJob('production', undefined)).toEqual({ A: 'special', B: 'general' });
    expect(await inJob('production', ['a', 'MISSING'])).toEqual({ A: 'special' });
    expect(await inJob('staging', undefined)).toEqual({ A: 'general', B: 'general' });
    expect(await inJob('production', [])).toEqual({});
  });

  test.each([
    ['name', 'INVALID_NAME', { name: '1A', value: 'hunter2' }],
    ['name', 'INVALID_NAME', { name: 'hunter2 ', value: 'hunter2' }],
    ['name', 'INVALID_NAME', { name: 'github_token', value: 'hunter2' }],
    ['name', 'INVALID_NAME', { name: 'Runner_X', value: 'hunter2' }],
    ['name', 'INVALID_NAME', { name: 'ACTIONS_X', value: 'hunter2' }],
    ['name', 'INVALID_NAME', { name: 'A'.repeat(256), value: 'hunter2' }],
    ['environment', 'INVALID_NAME', { name: 'A', value: 'hunter2', environment: 'a\nb' }],
    ['environment', 'INVALID_NAME', { name: 'A', value: 'hunter2', environment: 'e'.repeat(256) }],
    ['backend', 'INVALID_VALUE', { name: 'A', value: 'hunter2', backend: 'hunter2' }],
    ['value', 'INVALID_VALUE', { name: 'A', value: '' }],
    ['value', 'INVALID_VALUE', { name: 'A', value: 'hunter2\0' }],
    ['value', 'INVALID_VALUE', { name: 'A', value: 'hunter2\uD800' }],
    ['value', 'INVALID_VALUE', { name: 'A', value: 'ü'.repeat(VALUE_BYTES_MAX / 2) + 'x' }],
  ])('with a wrong %s are refused with %s', async (field, reason, request) => {
    const error = await service
      .put({ ...request, actor: ACTOR })
      .catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ reason, metadata: { field } });
    expect(
      error instanceof AppError && JSON.stringify([error.message, error.metadata]),
    ).not.toContain('hunter2');
    const [record] = await service.audit({});
    expect(record).toMatchObject({
      action: 'denied',
      actor: ACTOR,
      result: `set: ${reason.toLowerCase()}`,
    });
    expect(JSON.stringify(record)).not.toContain('hunter2');
    expect(await service.listNames()).toEqual([]);
  });

  test('of 48 KB are kept', async () => {
    await put('BIG', 'ü'.repeat(VALUE_BYTES_MAX / 2));
    expect(await inJob('')).toEqual({ BIG: 'ü'.repeat(VALUE_BYTES_MAX / 2) });
  });

  test('put at once all stay', async () => {
    const names = Array.from({ length: 20 }, (_, index) => `N${index}`);
    await Promise.all(names.map((name) => service.put({ name, value: name, environment: 'e' })));
    await restart();
    expect(await service.listNames('e')).toEqual(names.toSorted());
  });

  test('never stand in a file, a report or a record as they are', async () => {
    const planted = 'planted-7f3a"ü';
    await put('A', planted);
    await put('A', planted, 'production', 'vault');
    await service.importEnv({ content: `B='${planted}'\n${planted}\n1X=${planted}` });
    await service.sync(ACTOR);
    await inJob('production');
    const answers = [
      await service.status(),
      await service.listSecrets(),
      await service.audit({ limit: 1000 }),
    ];
    expect(JSON.stringify(answers)).not.toContain('planted');
    const files = (await readdir(dir, { recursive: true, withFileTypes: true })).filter((file) =>
      file.isFile(),
    );
    expect(files.map(({ name }) => name).sort()).toEqual([
      'runner.key',
      'secrets-audit.jsonl',
      'secrets.json',
      'vault-identity.txt',
      'vault.json',
    ]);
    for (const { parentPath, name } of files) {
      expect(await readFile(join(parentPath, name), 'utf8'), name).not.toContain('planted');
      expect((await stat(join(parentPath, name))).mode & 0o777, name).toBe(0o600);
    }
  });

  test('are masked by their names, those that another one hides too, and the own ones always', async () => {
    const own = async (): Promise<readonly string[]> => [
      (await readFile(join(dir, 'config', 'runner.key'), 'utf8')).trim(),
      ...((await readFile(join(dir, 'config', 'vault-identity.txt'), 'utf8')).match(
        /^AGE-SECRET-KEY-.+$/m,
      ) ?? []),
      'token of the runner',
    ];
    const ownSecrets = [
      () => Promise.reject(new Error('unreadable')),
      () => Promise.resolve(['token of the runner', '']),
    ];
    await restart({ environment: { HOME: dir, RUNNER_SECRET_E: 'env' }, ownSecrets });
    await put('A', 'general');
    await put('A', 'special', 'production');
    await put('A', 'vaulted', 'production', 'vault');
    await put('B', 'other', 'staging');
    const masksOf = async (
      environment: string | undefined,
      names?: readonly string[],
    ): Promise<readonly string[]> => {
      const [masks, always] = [await service.masksFor(environment, names), await own()];
      expect(masks).toEqual(expect.arrayContaining([...always]));
      return masks.filter((value) => !always.includes(value)).toSorted();
    };
    expect(await masksOf('Production')).toEqual(['env', 'general', 'special', 'vaulted']);
    expect(await masksOf('')).toEqual(['env', 'general']);
    expect(await masksOf('Production', ['A', 'B'])).toEqual(['general', 'special', 'vaulted']);
    expect(await masksOf('', ['E'])).toEqual(['env']);
    expect(await masksOf('production', [])).toEqual([]);
    expect(await masksOf(undefined, ['B'])).toEqual(['other']);
    // One place that cannot be read hides nothing else.
    expect(reports).toEqual(Array.from({ length: 6 }, () => 'secrets.masks_incomplete'));
    reports = [];
    await writeFile(join(dir, 'secrets.json'), 'broken');
    await restart({ environment: { HOME: dir, RUNNER_SECRET_E: 'env' } });
    expect(await service.masksFor('', undefined)).toEqual(['env', ...(await own()).slice(0, -1)]);
    expect(reports).toEqual(['secrets.masks_incomplete']);
  });

  test('that cannot be verified are refused, but the rest works', async () => {
    await put('A', 'x');
    await service.putVariable({ name: 'V', value: '1' });
    const path = join(dir, 'secrets.json');
    await writeFile(path, (await readFile(path, 'utf8')).replace('"version": 1', '"version": 2'));
    await restart();
    const local = (await service.status()).backends.find(({ name }) => name === 'local');
    expect(local).toMatchObject({ available: false, writable: false });
    const refused = [
      () => inJob(''),
      () => service.listNames(),
      () => put('B', 'y'),
      () => service.sync(),
    ];
    for (const call of refused) {
      await expect(call()).rejects.toMatchObject({ reason: 'BACKEND_UNAVAILABLE' });
    }
    expect(await inJob('', [])).toEqual({});
    expect(await service.variablesFor('')).toEqual({ V: '1' });
  });
});

describe('the vault', () => {
  async function vaultState(): Promise<unknown> {
    return (await service.sync()).backends.find(({ name }) => name === 'vault');
  }

  test('is mirrored by a sync, and the mirror serves jobs without it', async () => {
    await put('A', 'vaulted', 'production', 'vault');
    await cp(join(dir, 'vault.json'), join(dir, 'aside.json'));
    await service.remove({ name: 'A', environment: 'production' });
    await cp(join(dir, 'aside.json'), join(dir, 'vault.json'));
    expect(await service.listNames()).toEqual([]);
    expect((await service.status()).mirror.stale).toBe(true);
    expect(await vaultState()).toMatchObject({
      available: true,
      pulled: 1,
      unchanged: 0,
      removed: 0,
    });
    expect(await vaultState()).toMatchObject({ pulled: 0, unchanged: 1, removed: 0, errors: [] });
    await writeFile(join(dir, 'vault.json'), '{"torn');
    expect(await vaultState()).toMatchObject({
      available: false,
      errors: [expect.stringContaining('vault.json')],
    });
    expect(await inJob('production')).toEqual({ A: 'vaulted' });
    await rm(join(dir, 'vault.json'));
    expect(await vaultState()).toMatchObject({ available: true, removed: 1 });
    expect(await inJob('production')).toEqual({});
  });

  test('is mirrored when it changed behind our back, once, and audited', async () => {
    await put('A', 'vaulted', 'production', 'vault');
    await rm(join(dir, 'secrets.json'));
    await restart();
    expect(await inJob('production')).toEqual({});
    await service.refreshVault({ userAgent: 'start' });
    expect(await inJob('production')).toEqual({ A: 'vaulted' });
    const [pulled] = (await service.audit({})).filter(({ action }) => action === 'sync');
    expect(pulled).toMatchObject({ name: 'A', actor: { userAgent: 'start' }, result: 'pulled' });
    const before = (await service.audit({})).length;
    await service.refreshVault({ userAgent: 'start' });
    expect(await service.audit({})).toHaveLength(before);
    expect(reports).toEqual([]);
    await writeFile(join(dir, 'vault.json'), '{"torn');
    await service.refreshVault({ userAgent: 'start' });
    expect(reports).toEqual(['secrets.vault_pull']);
    expect(await inJob('production')).toEqual({ A: 'vaulted' });
  });

  test('the newer of a local edit and the vault wins, and a sync tells of local ones that stay', async () => {
    await put('A', 'vault 1', 'production', 'vault');
    expect(await inJob('production')).toEqual({ A: 'vault 1' });
    await put('A', 'local', 'production');
    expect(await inJob('production')).toEqual({ A: 'local' });
    await put('OTHER', 'x', 'production', 'vault');
    expect(await vaultState()).toMatchObject({
      unchanged: 2,
      errors: [
        "production.A: the local edit of 2026-11-21T12:00:02.000Z is newer than the vault's and stays",
      ],
    });
    expect(await inJob('production', ['A'])).toEqual({ A: 'local' });
    await put('A', 'vault 2', 'production', 'vault');
    expect(await inJob('production', ['A'])).toEqual({ A: 'vault 2' });
    expect(await vaultState()).toMatchObject({ errors: [] });
    await service.remove({ name: 'A', environment: 'production', backend: 'vault' });
    expect(await inJob('production', ['A'])).toEqual({ A: 'local' });
  });

  test('without a selector a secret is removed wherever it is', async () => {
    await put('A', '1', 'production', 'vault');
    await put('A', '2', 'production');
    await service.remove({ name: 'A', environment: 'production' });
    expect(await service.listSecrets()).toEqual([]);
    await service.sync();
    expect(await service.listSecrets()).toEqual([]);
  });

  test.each(['sops', 'x_unencrypted'])(
    'refuses an environment that it could not encrypt: %s',
    async (environment) => {
      await expect(put('A', 'x', environment, 'vault')).rejects.toMatchObject({
        reason: 'INVALID_NAME',
        metadata: { field: 'environment' },
      });
      await put('A', 'x', environment);
      expect(await inJob(environment)).toEqual({ A: 'x' });
    },
  );
});

test('the process environment is the fallback and cannot be written', async () => {
  const environment = {
    HOME: dir,
    RUNNER_SECRET_a: 'env',
    RUNNER_SECRET_1B: 'x',
    RUNNER_SECRET_UNSET: '',
    RUNNER_SECRETS_KEY: 'k',
  };
  await restart({ environment });
  expect(await service.listSecrets()).toMatchObject([
    { name: 'A', backend: 'env', environment: 'default' },
  ]);
  expect(await inJob('production')).toEqual({ A: 'env' });
  const { backends } = await service.sync();
  expect(backends.find(({ name }) => name === 'env')).toMatchObject({
    pulled: 1,
    errors: [expect.stringContaining('RUNNER_SECRET_1B')],
  });
  const refused = [
    () => service.remove({ name: 'A' }),
    () => put('A', 'x', '', 'env'),
    () => service.remove({ name: 'A', backend: 'env' }),
  ];
  for (const call of refused) {
    await expect(call()).rejects.toMatchObject({ reason: 'BACKEND_READ_ONLY' });
  }
  await put('A', 'local');
  expect(await inJob('production')).toEqual({ A: 'local' });
});

describe('the code host', () => {
  /** A host's side of the port: it keeps the private key and opens what it is given. */
  async function hostWith(kept: Map<string, string>): Promise<HostSecretPort> {
    await sodium.ready;
    const pair = sodium.crypto_box_keypair();
    return {
      problem: () => undefined,
      publicKey: () =>
        Promise.resolve({ keyId: 'k1', key: Buffer.from(pair.publicKey).toString('base64') }),
      putSecret: (environment, name, { encryptedValue }) => {
        const sealed = Buffer.from(encryptedValue, 'base64');
        const plain = sodium.crypto_box_seal_open(sealed, pair.publicKey, pair.privateKey);
        const key = `${environment}/${name}`;
        const done = kept.has(key) ? 'updated' : 'created';
        kept.set(key, Buffer.from(plain).toString('utf8'));
        return Promise.resolve(done);
      },
      removeSecret: (environment, name) => Promise.resolve(kept.delete(`${environment}/${name}`)),
      listSecrets: (environment) =>
        Promise.resolve(
          [...kept.keys()]
            .filter((key) => key.startsWith(`${environment}/`))
            .map((key) => ({
              name: key.slice(environment.length + 1),
              updatedAt: '2026-11-01T00:00:00Z',
            })),
        ),
    };
  }

  test('takes secrets sealed, lists names and gives nothing back', async () => {
    const kept = new Map([['default/BEFORE', 'x']]);
    await restart({ host: await hostWith(kept) });
    const request = { name: 'A', value: 'hunter2', environment: 'production', backend: 'host' };
    expect(await service.put(request)).toMatchObject({
      isCreated: true,
      secret: { backend: 'host' },
    });
    expect(await service.put(request)).toMatchObject({ isCreated: false });
    expect(kept.get('production/A')).toBe('hunter2');
    expect(await inJob('production')).toEqual({});
    expect(await service.masksFor('production', undefined)).toEqual([
      (await readFile(join(dir, 'config', 'runner.key'), 'utf8')).trim(),
    ]);
    expect(reports).toEqual([]);
    await service.sync();
    expect(await service.listNames()).toEqual(['A', 'BEFORE']);
    await expect(service.remove({ name: 'A', environment: 'production' })).rejects.toMatchObject({
      reason: 'SECRET_NOT_FOUND',
    });
    await service.remove({ name: 'A', environment: 'production', backend: 'host' });
    expect(kept.has('production/A')).toBe(false);
    kept.clear();
    expect((await service.sync()).backends.at(-1)).toMatchObject({ name: 'host', removed: 1 });
    expect(await service.listNames()).toEqual([]);
  });

  test('that is not there is unavailable', async () => {
    await expect(put('A', 'x', '', 'host')).rejects.toMatchObject({
      reason: 'BACKEND_UNAVAILABLE',
    });
    expect((await service.status()).backends.at(-1)).toMatchObject({
      name: 'host',
      available: false,
      reason: 'no code host is configured',
    });
  });

  test('that fails keeps its mirror, and one sync runs at a time', async () => {
    const kept = new Map([['default/A', 'x']]);
    const host = await hostWith(kept);
    let isDown = false;
    const listSecrets: HostSecretPort['listSecrets'] = async (environment) => {
      if (isDown) throw new AppError('UPSTREAM_ERROR', 'the host answered 503');
      return await host.listSecrets(environment);
    };
    await restart({ host: { ...host, listSecrets } });
    await service.sync();
    isDown = true;
    const [first, second] = await Promise.allSettled([service.sync(), service.sync()]);
    expect(first).toMatchObject({ status: 'fulfilled' });
    expect(second).toMatchObject({ status: 'rejected', reason: { reason: 'SYNC_IN_PROGRESS' } });
    expect(await service.listNames()).toEqual(['A']);
  });
});

describe('an import', () => {
  test('takes what it can and says what it leaves out', async () => {
    await put('OLD', 'x', 'staging');
    const content = '# comment\nOLD=1\nexport new="2"\nEMPTY=\nGITHUB_X=1\nwords\n';
    expect(await service.importEnv({ content, environment: 'staging' })).toEqual({
      imported: ['NEW'],
      updated: ['OLD'],
      skipped: [
        { line: 4, reason: 'a secret is not empty' },
        { line: 5, reason: 'names that begin with GITHUB_ are reserved' },
        { line: 6, reason: 'there is no = in the line' },
      ],
      type: 'secret',
      environment: 'staging',
    });
    expect(await inJob('staging')).toEqual({ OLD: '1', NEW: '2' });
  });

  test('into variables takes empty ones too', async () => {
    const done = await service.importEnv({ content: 'A=1\nB=', type: 'variable' });
    expect(done).toMatchObject({ imported: ['A', 'B'], skipped: [], type: 'variable' });
    expect(await service.variablesFor('any')).toEqual({ A: '1', B: '' });
    expect(await service.listNames()).toEqual([]);
  });

  test('into the vault is one change', async () => {
    await service.importEnv({ content: 'A=1\nB=2', environment: 'production', backend: 'vault' });
    expect(await service.listSecrets()).toMatchObject([{ backend: 'vault' }, { backend: 'vault' }]);
    expect(await inJob('production')).toEqual({ A: '1', B: '2' });
  });

  test.each([
    ['INVALID_VALUE', 'content', { content: 'A=1\nhunter2\n', isStrict: true }],
    ['INVALID_VALUE', 'content', { content: 'hunter2\n'.repeat(1001) }],
    ['BODY_TOO_LARGE', 'content', { content: 'A'.repeat(IMPORT_BYTES_MAX + 1) }],
    ['INVALID_REQUEST', 'type', { content: 'A=1', type: 'hunter2' }],
    ['INVALID_NAME', 'environment', { content: 'A=1', environment: 'a\nb' }],
  ])('is refused with %s of %s as a whole', async (reason, field, request) => {
    const error = await service.importEnv(request).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ reason, metadata: { field } });
    expect(String(error)).not.toContain('hunter2');
    expect(await service.listNames()).toEqual([]);
  });
});

describe('variables', () => {
  test('are put, listed with values, merged and removed', async () => {
    const { isCreated, variable } = await service.putVariable({ name: 'region', value: 'eu' });
    expect([isCreated, variable]).toEqual([
      true,
      {
        name: 'REGION',
        value: 'eu',
        environment: 'default',
        updatedAt: '2026-11-21T12:00:00.000Z',
      },
    ]);
    await service.putVariable({ name: 'REGION', value: 'us', environment: 'Production' });
    await service.putVariable({ name: 'TIER', value: '' });
    expect(await service.putVariable({ name: 'TIER', value: '1' })).toMatchObject({
      isCreated: false,
    });
    await restart();
    expect(await service.variablesFor('production')).toEqual({ REGION: 'us', TIER: '1' });
    await service.put({ name: 'KEY', value: 'of a part', environment: 'eu/west', actor: ACTOR });
    const part = { runId: 'r', jobId: 'j', environment: 'EU/west', names: undefined };
    expect(await service.secretsFor(part)).toEqual({ KEY: 'of a part' });
    await service.remove({ name: 'KEY', environment: 'eu/west', actor: ACTOR });
    expect(await service.variablesFor('')).toEqual({ REGION: 'eu', TIER: '1' });
    expect((await service.listVariables('production')).map(({ value }) => value)).toEqual(['us']);
    expect(await service.listVariables()).toHaveLength(3);
    // What belongs to the repository makes no environment.
    expect(await service.environments()).toEqual(['Production']);
    await service.removeVariable({ name: 'region', environment: 'PRODUCTION' });
    expect(await service.variablesFor('production')).toEqual({ REGION: 'eu', TIER: '1' });
    await expect(
      service.removeVariable({ name: 'region', environment: 'PRODUCTION' }),
    ).rejects.toMatchObject({ reason: 'VARIABLE_NOT_FOUND' });
  });

  test('of one run have 256 KB together', async () => {
    const value = 'x'.repeat(VALUE_BYTES_MAX);
    const count = Math.floor(VARIABLES_BYTES_MAX / VALUE_BYTES_MAX);
    for (let index = 0; index < count; index++) {
      await service.putVariable({ name: `N${index}`, value, environment: 'production' });
    }
    for (const environment of ['production', 'default']) {
      await expect(service.putVariable({ name: 'MORE', value, environment })).rejects.toMatchObject(
        { reason: 'INVALID_VALUE' },
      );
    }
    await service.putVariable({ name: 'MORE', value, environment: 'staging' });
  });

  test('in a file of another form are refused and left alone', async () => {
    await writeFile(join(dir, 'variables.json'), '{"version":1,"variables":[{"name":"1"}]}');
    await expect(service.variablesFor('')).rejects.toMatchObject({ reason: 'BACKEND_UNAVAILABLE' });
    await expect(service.putVariable({ name: 'A', value: '1' })).rejects.toMatchObject({
      reason: 'BACKEND_UNAVAILABLE',
    });
  });
});

test('the audit tells who changed and which job read what', async () => {
  await service.put({ name: 'A', value: '1', environment: 'production', actor: ACTOR });
  await service.put({ name: 'A', value: '2', environment: 'production', actor: ACTOR });
  await inJob('production', ['A', 'NONE']);
  await service.remove({ name: 'A', environment: 'production', actor: ACTOR });
  await service.putVariable({ name: 'V', value: '1', actor: ACTOR });
  const records = (await service.audit({})).toReversed();
  const place = { name: 'A', environment: 'production', backend: 'local' };
  expect(records).toMatchObject([
    { seq: 1, action: 'set', ...place, actor: ACTOR, result: 'created' },
    { seq: 2, action: 'set', ...place, actor: ACTOR, result: 'updated' },
    { seq: 3, action: 'read', ...place, ...JOB, result: 'ok' },
    { seq: 4, action: 'delete', ...place, actor: ACTOR, result: 'deleted' },
    { seq: 5, action: 'set', name: 'V', backend: 'variables', actor: ACTOR, result: 'created' },
  ]);
  const [first, second, read] = records.map(({ fingerprint }) => fingerprint);
  expect(first).not.toBe(second);
  expect(read).toBe(second);
  expect(reports).toEqual([]);
});
