import { createHmac } from 'node:crypto';
import { chmod, readdir, readFile, rename, stat, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { createFixture } from './fixture.ts';

const DEFAULTS = {
  enabled: false,
  host: {
    owner: '',
    repo: '',
    syncIssues: true,
    syncDiscussions: true,
    syncWiki: true,
    syncReleases: true,
    pollIntervalMs: 60_000,
  },
  deploymentLog: { enabled: true, issueNumber: 0, environments: [] },
};

describe('the configuration', () => {
  test('has defaults at every depth, and is replaced as a whole', async () => {
    const { sync } = await createFixture({ config: {} });
    expect(sync.getConfig()).toEqual(DEFAULTS);
    const body = {
      enabled: true,
      host: { owner: 'octo', repo: '.github', syncWiki: false, pollIntervalMs: 0 },
      deploymentLog: { issueNumber: 7, environments: ['staging'] },
    };
    const expected = {
      enabled: true,
      host: { ...DEFAULTS.host, ...body.host },
      deploymentLog: { enabled: true, ...body.deploymentLog },
    };
    expect(await sync.putConfig(body)).toEqual(expected);
    expect(sync.getConfig()).toEqual(expected);
    expect(await sync.putConfig({ enabled: false })).toEqual(DEFAULTS);
    expect((await sync.audit({ kind: 'config' })).length).toBe(3);
  });

  test('shows the secret as a placeholder, which keeps it; absent or empty removes it', async () => {
    const fixture = await createFixture({ config: {} });
    const { sync, stateDir } = fixture;
    const path = join(stateDir, 'sync', 'config.json');
    const stored = async (): Promise<unknown> =>
      (JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>)['sealedWebhookSecret'];
    const shown = await sync.putConfig({ host: { webhookSecret: 'hush' } });
    expect(shown.host.webhookSecret).toBe('********');
    const sealed = await stored();
    expect(sealed).toBeDefined();
    expect(await readFile(path, 'utf8')).not.toMatch(/hush|aHVzaA/);
    expect((await stat(path)).mode & 0o777).toBe(0o600);
    await sync.putConfig(sync.getConfig());
    expect(await stored()).toEqual(sealed);
    const reopened = await fixture.restart();
    expect(reopened.getConfig().host.webhookSecret).toBe('********');
    expect(await reopened.secrets()).toEqual(['hush']);
    await reopened.putConfig({ host: { webhookSecret: '' } });
    expect(await stored()).toBeUndefined();
    // The placeholder of nothing is nothing.
    await reopened.putConfig({ host: { webhookSecret: '********' } });
    expect(reopened.getConfig().host.webhookSecret).toBeUndefined();
    expect(JSON.stringify(await reopened.audit({}))).not.toContain('hush');
  });

  test('a secret that an older version left in clear is sealed at the next start', async () => {
    const fixture = await createFixture({ config: {} });
    const path = join(fixture.stateDir, 'sync', 'config.json');
    await writeFile(path, JSON.stringify({ host: { owner: 'o', webhookSecret: 'in the clear' } }));
    const sync = await fixture.restart();
    expect(await readFile(path, 'utf8')).not.toContain('in the clear');
    expect(await readdir(join(fixture.stateDir, 'sync'))).not.toContainEqual(
      expect.stringMatching(/^config\.json.+/),
    );
    expect(await sync.secrets()).toEqual(['in the clear']);
    expect(sync.getConfig().host).toMatchObject({ owner: 'o', webhookSecret: '********' });
    await fixture.restart();
    expect(await fixture.sync.secrets()).toEqual(['in the clear']);
    expect(fixture.problems).toEqual([]);
  });

  test('without its key the secret is refused with the reason, and not lost', async () => {
    const fixture = await createFixture({ config: { host: { webhookSecret: 'kept' } } });
    const path = join(fixture.stateDir, 'sync', 'config.json');
    const key = join(fixture.settingsDir, 'runner.key');
    await rename(key, `${key}.away`);
    const sync = await fixture.restart();
    expect(fixture.problems.map(({ event }) => event)).toEqual(['sync.webhook_secret_locked']);
    const locked = {
      reason: 'BACKEND_UNAVAILABLE',
      message: expect.stringContaining('missing') as string,
    };
    await expect(sync.secrets()).rejects.toMatchObject(locked);
    const delivery = { headers: new Headers(), rawBody: Buffer.from('{}') };
    await expect(sync.verifyDelivery(delivery)).rejects.toMatchObject(locked);
    // Nor can the placeholder be used as the secret.
    const signature = createHmac('sha256', '********').update('{}').digest('hex');
    const headers = new Headers({
      'x-host-event': 'ping',
      'x-host-signature-256': `sha256=${signature}`,
    });
    await expect(
      sync.verifyDelivery({ headers, rawBody: Buffer.from('{}') }),
    ).rejects.toMatchObject(locked);
    const before = JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>;
    expect(sync.getConfig().host.webhookSecret).toBe('********');
    await sync.putConfig({ ...sync.getConfig(), deploymentLog: { issueNumber: 4 } });
    const after = JSON.parse(await readFile(path, 'utf8')) as Record<string, unknown>;
    expect(after['sealedWebhookSecret']).toEqual(before['sealedWebhookSecret']);
    await rename(`${key}.away`, key);
    expect(await sync.secrets()).toEqual(['kept']);
    // A new one cannot be sealed under a key that others can read.
    await chmod(key, 0o644);
    await expect(sync.putConfig({ host: { webhookSecret: 'new' } })).rejects.toMatchObject({
      reason: 'BACKEND_UNAVAILABLE',
      message: expect.stringContaining('can be read by others') as string,
    });
    expect(await readFile(path, 'utf8')).not.toContain('new');
    // One in clear is neither used nor left without a word.
    await writeFile(path, JSON.stringify({ host: { webhookSecret: 'in the clear' } }));
    await expect(fixture.restart()).rejects.toMatchObject({ reason: 'BACKEND_UNAVAILABLE' });
  });

  test('a seal that was changed does not open', async () => {
    const fixture = await createFixture({ config: { host: { webhookSecret: 'kept' } } });
    const path = join(fixture.stateDir, 'sync', 'config.json');
    const stored = JSON.parse(await readFile(path, 'utf8')) as {
      sealedWebhookSecret: { salt: string; value: string };
    };
    const bytes = Buffer.from(stored.sealedWebhookSecret.value, 'base64');
    bytes[14] = (bytes[14] ?? 0) ^ 1;
    stored.sealedWebhookSecret.value = bytes.toString('base64');
    await writeFile(path, JSON.stringify(stored));
    const sync = await fixture.restart();
    await expect(sync.secrets()).rejects.toMatchObject({ reason: 'BACKEND_UNAVAILABLE' });
  });

  test('names the bad path', async () => {
    const bodies: readonly (readonly [string, unknown])[] = [
      ['', []],
      ['', 'text'],
      ['enabled', { enabled: 'yes' }],
      ['host', { host: [] }],
      ['host.owner', { host: { owner: '-x' } }],
      ['host.owner', { host: { owner: 'a/b' } }],
      ['host.repo', { host: { repo: '..' } }],
      ['host.repo', { host: { repo: '--upload-pack=x' } }],
      ['host.repo', { host: { repo: 'a b' } }],
      ['host.repo', { host: { repo: 7 } }],
      ['host.owner', { enabled: true }],
      ['host.repo', { enabled: true, host: { owner: 'x' } }],
      ['host.syncWiki', { host: { syncWiki: 1 } }],
      ['host.pollIntervalMs', { host: { pollIntervalMs: 4999 } }],
      ['host.pollIntervalMs', { host: { pollIntervalMs: -1 } }],
      ['host.pollIntervalMs', { host: { pollIntervalMs: 1e12 } }],
      ['host.pollIntervalMs', { host: { pollIntervalMs: 6000.5 } }],
      ['host.webhookSecret', { host: { webhookSecret: 5 } }],
      ['host.webhookSecret', { host: { webhookSecret: 'x'.repeat(1025) } }],
      ['host.token', { host: { token: 'x' } }],
      ['deploymentLog.issueNumber', { deploymentLog: { issueNumber: -1 } }],
      ['deploymentLog.environments', { deploymentLog: { environments: 'all' } }],
      ['deploymentLog.environments[1]', { deploymentLog: { environments: ['a', 'b/c'] } }],
      ['deploymentLog.environments[0]', { deploymentLog: { environments: [''] } }],
      ['extra', { extra: 1 }],
    ];
    const { sync } = await createFixture({ config: {} });
    for (const [field, body] of bodies) {
      await expect(sync.putConfig(body), JSON.stringify(body)).rejects.toMatchObject({
        reason: 'INVALID_VALUE',
        metadata: { field },
      });
    }
    expect(sync.getConfig()).toEqual(DEFAULTS);
  });
});

describe('polling', () => {
  test('pulls with the interval between, follows the settings, stops at the end', async () => {
    const pauses: { ms: number; end: () => void }[] = [];
    const fixture = await createFixture({
      config: {},
      wait: (ms, signal) =>
        new Promise((resolve, reject) => {
          pauses.push({ ms, end: resolve });
          signal.addEventListener('abort', () => {
            reject(signal.reason as Error);
          });
        }),
    });
    const { sync, host } = fixture;
    expect(sync.status()).toMatchObject({ enabled: false, pulling: false });
    expect(sync.status().nextPollAt).toBeUndefined();
    const { owner, repo } = host;
    host.state.addIssue();
    await sync.putConfig({ enabled: true, host: { owner, repo, pollIntervalMs: 5000 } });
    await expect.poll(() => pauses.length, { timeout: 20_000 }).toBe(1);
    expect(pauses[0]?.ms).toBe(5000);
    expect(sync.status().nextPollAt).toBeDefined();
    pauses[0]?.end();
    await expect.poll(() => pauses.length, { timeout: 20_000 }).toBe(2);
    expect(sync.entries('issues', {})).toHaveLength(1);
    expect(sync.status()).toMatchObject({
      enabled: true,
      caches: { issues: { entries: 1, syncedAt: sync.syncedAt('issues') } },
      lastPull: { errors: [] },
    });
    // What changed is audited, a poll that found nothing is not.
    expect(await sync.audit({ kind: 'pull' })).toHaveLength(1);
    pauses[1]?.end();
    await expect.poll(() => pauses.length, { timeout: 20_000 }).toBe(3);
    expect(await sync.audit({ kind: 'pull' })).toHaveLength(1);
    // Another interval counts at once; what the host asks for counts more.
    await sync.putConfig({ enabled: true, host: { owner, repo, pollIntervalMs: 6000 } });
    await expect.poll(() => pauses.length, { timeout: 20_000 }).toBe(4);
    expect(pauses[3]?.ms).toBe(6000);
    host.state.rateLimit.remaining = 0;
    pauses[3]?.end();
    await expect.poll(() => pauses.length, { timeout: 20_000 }).toBe(5);
    expect(pauses[4]?.ms).toBeGreaterThan(3_500_000);
    // Each poll is reported; one of which a part failed has failed.
    expect(fixture.polls.slice(0, 2)).toEqual(['done', 'done']);
    expect(fixture.polls.slice(2)).toEqual([
      expect.stringMatching(/^Error: issues: .*asks for a pause/),
    ]);
    await sync.putConfig({ enabled: true, host: { owner, repo, pollIntervalMs: 0 } });
    expect(sync.status().nextPollAt).toBeUndefined();
    await sync.putConfig({ enabled: true, host: { owner, repo, pollIntervalMs: 5000 } });
    await expect.poll(() => pauses.length, { timeout: 20_000 }).toBe(6);
  });
});
