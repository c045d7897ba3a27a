import { readFile, stat } from 'node:fs/promises';
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
    const stored = async (): Promise<unknown> =>
      (
        JSON.parse(await readFile(join(stateDir, 'sync', 'config.json'), 'utf8')) as {
          host: { webhookSecret?: string };
        }
      ).host.webhookSecret;
    const shown = await sync.putConfig({ host: { webhookSecret: 'hush' } });
    expect(shown.host.webhookSecret).toBe('********');
    expect(await stored()).toBe('hush');
    expect((await stat(join(stateDir, 'sync', 'config.json'))).mode & 0o777).toBe(0o600);
    await sync.putConfig(sync.getConfig());
    expect(await stored()).toBe('hush');
    const reopened = await fixture.restart();
    expect(reopened.getConfig().host.webhookSecret).toBe('********');
    await reopened.putConfig({ host: { webhookSecret: '' } });
    expect(await stored()).toBeUndefined();
    // The placeholder of nothing is nothing.
    await reopened.putConfig({ host: { webhookSecret: '********' } });
    expect(reopened.getConfig().host.webhookSecret).toBeUndefined();
    expect(JSON.stringify(await reopened.audit({}))).not.toContain('hush');
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
    await sync.putConfig({ enabled: true, host: { owner, repo, pollIntervalMs: 0 } });
    expect(sync.status().nextPollAt).toBeUndefined();
    await sync.putConfig({ enabled: true, host: { owner, repo, pollIntervalMs: 5000 } });
    await expect.poll(() => pauses.length, { timeout: 20_000 }).toBe(6);
  });
});
