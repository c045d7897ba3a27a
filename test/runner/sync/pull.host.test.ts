import { writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { gitIn } from '../../support/fake-host-git.ts';
import { configOf, createFixture } from './fixture.ts';

describe('issues', () => {
  test('all pages come, without pull requests, newest change first', async () => {
    const { host, sync } = await createFixture();
    for (let index = 0; index < 230; index++) {
      const at = `2026-01-01T00:${String(Math.floor(index / 60)).padStart(2, '0')}:${String(index % 60).padStart(2, '0')}Z`;
      host.state.addIssue({
        created_at: at,
        updated_at: at,
        labels: ['a', 'b'],
        body: `b${index}`,
      });
    }
    host.state.addIssue({ pull: { head: 'x', base: 'main', draft: false, merged_at: null } });
    const report = await sync.pull({ only: ['issues'] });
    expect(report.errors).toEqual([]);
    expect(report.issues).toEqual({ fetched: 230, updated: 230, notModified: false });
    const entries = sync.entries('issues', {});
    expect(entries).toHaveLength(230);
    expect(entries[0]).toEqual({
      number: 230,
      title: 'Issue 230',
      state: 'open',
      author: 'mona',
      labels: ['a', 'b'],
      body: 'b229',
      createdAt: '2026-01-01T00:03:49.000Z',
      updatedAt: '2026-01-01T00:03:49.000Z',
      url: `${host.gitUrl}/octo/demo/issues/230`,
    });
    expect(entries.map(({ number }) => number)).toEqual(
      Array.from({ length: 230 }, (_, index) => 230 - index),
    );
    expect(sync.syncedAt('issues')).toBeDefined();
  });

  test('a second pull asks for changes alone, and a third is answered with 304', async () => {
    const { host, sync } = await createFixture();
    for (let index = 1; index <= 150; index++) {
      host.state.addIssue({
        created_at: '2026-01-01T00:00:00Z',
        updated_at: `2026-01-02T00:00:00Z`,
      });
    }
    await sync.pull({ only: ['issues'] });
    const changed = host.state.issues.get(7);
    if (changed === undefined) throw new Error('issue 7 was added');
    changed.updated_at = '2026-01-03T00:00:00Z';
    changed.state = 'closed';
    const second = await sync.pull({ only: ['issues'] });
    // `since` is inclusive: those of the newest instant come once more.
    expect(second.issues).toMatchObject({ updated: 1, notModified: false });
    expect(sync.entries('issues', { state: 'closed' }).map(({ number }) => number)).toEqual([7]);

    const third = await sync.pull({ only: ['issues'] });
    expect(third.issues).toMatchObject({ fetched: 1, updated: 0 });
    const remaining = host.state.rateLimit.remaining;
    const fourth = await sync.pull({ only: ['issues'] });
    expect(fourth.issues).toEqual({ fetched: 0, updated: 0, notModified: true });
    expect(host.requests.at(-1)?.status).toBe(304);
    expect(host.state.rateLimit.remaining).toBe(remaining);
  });

  test('what changes while pages are read is not lost', async () => {
    const { host, sync } = await createFixture();
    host.state.now = () => '2026-01-01T00:00:00Z';
    for (let index = 0; index < 120; index++) host.state.addIssue();
    // The first issue changes between the pages, after it was read.
    host.plan({ match: /page=2/, status: 503, headers: { 'retry-after': '1' } });
    const pulling = sync.pull({ only: ['issues'] });
    await expect
      .poll(() => host.requests.some(({ path }) => path.includes('page=2')), {
        timeout: 20_000,
      })
      .toBe(true);
    const first = host.state.issues.get(1);
    if (first === undefined) throw new Error('issue 1 was added');
    first.updated_at = new Date(Date.now() + 2000).toISOString();
    first.title = 'changed meanwhile';
    await pulling;
    expect(sync.entries('issues', {})).toHaveLength(120);
    await sync.pull({ only: ['issues'] });
    expect(sync.entries('issues', {})[0]?.title).toBe('changed meanwhile');
  });

  test('a full pull drops what the host no longer has', async () => {
    const { host, sync } = await createFixture();
    for (let index = 0; index < 3; index++) host.state.addIssue();
    await sync.pull({});
    host.state.issues.delete(2);
    await sync.pull({});
    expect(sync.entries('issues', {})).toHaveLength(3);
    const report = await sync.pull({ full: true });
    expect(report.issues).toMatchObject({ fetched: 2, updated: 1 });
    expect(sync.entries('issues', {}).map(({ number }) => number)).toEqual([3, 1]);
  });

  test('queries narrow by state, time and count', async () => {
    const { host, sync } = await createFixture();
    for (const [index, state] of (['open', 'closed', 'open', 'open'] as const).entries()) {
      host.state.addIssue({ state, created_at: `2026-01-0${index + 1}T00:00:00Z` });
    }
    await sync.pull({});
    const numbers = (query: Parameters<typeof sync.entries>[1]): readonly unknown[] =>
      sync.entries('issues', query).map(({ number }) => number);
    expect(numbers({ state: 'open' })).toEqual([4, 3, 1]);
    expect(numbers({ state: 'all', limit: 2 })).toEqual([4, 3]);
    expect(numbers({ since: '2026-01-03T00:00:00.000Z' })).toEqual([4, 3]);
    expect(numbers({ limit: 0 })).toEqual([]);
  });
});

describe('discussions', () => {
  test('come by cursors, and later only those that changed', async () => {
    const { host, sync } = await createFixture();
    for (let index = 0; index < 250; index++) {
      host.state.addDiscussion({
        createdAt: new Date(Date.UTC(2026, 0, 1, 0, 0, index)).toISOString(),
        category: 'Ideas',
        labels: ['x'],
        closed: index === 0,
      });
    }
    const first = await sync.pull({ only: ['discussions'] });
    expect(first.discussions).toEqual({ fetched: 250, updated: 250, notModified: false });
    expect(sync.entries('discussions', {})[0]).toMatchObject({
      number: 250,
      category: 'Ideas',
      labels: ['x'],
      state: 'open',
      url: `${host.gitUrl}/octo/demo/discussions/250`,
    });
    expect(sync.entries('discussions', { state: 'closed' })).toHaveLength(1);
    const before = host.requests.length;
    const old = host.state.discussions[3];
    if (old === undefined) throw new Error('it was added');
    old.updatedAt = '2026-02-01T00:00:00.000Z';
    old.title = 'again';
    const second = await sync.pull({ only: ['discussions'] });
    expect(second.discussions).toMatchObject({ fetched: 2, updated: 1 });
    expect(host.requests.length).toBe(before + 1);
    expect(sync.entries('discussions', {})[0]?.title).toBe('again');
  });
});

describe('releases', () => {
  test('pages that did not change cost a 304; removed releases go', async () => {
    const { host, sync } = await createFixture();
    for (let index = 0; index < 130; index++) {
      host.state.addRelease({ tag_name: `v${index}`, created_at: '2026-01-01T00:00:00Z' });
    }
    const first = await sync.pull({ only: ['releases'] });
    expect(first.releases).toEqual({ fetched: 130, updated: 130, notModified: false });
    const again = await sync.pull({ only: ['releases'] });
    expect(again.releases).toEqual({ fetched: 0, updated: 0, notModified: true });
    // The oldest stands on the second page.
    host.state.releases.pop();
    const third = await sync.pull({ only: ['releases'] });
    expect(third.releases).toEqual({ fetched: 29, updated: 1, notModified: false });
    expect(sync.entries('releases', {})).toHaveLength(129);
    expect(sync.entries('releases', { limit: 1 })[0]).toMatchObject({
      tag: 'v129',
      state: 'published',
    });
  });
});

describe('wiki', () => {
  test('pages are the files of its repository', async () => {
    const { host, sync } = await createFixture();
    await host.writeWiki(
      { 'Home.md': '# Hi\n', 'sub/How-to-begin.md': 'Slowly.', '_Sidebar.md': 'no', 'x.png': 'no' },
      '2026-03-01T10:00:00Z',
    );
    await host.writeWiki({ 'Home.md': '# Hello ü\n' }, '2026-03-02T10:00:00Z');
    const first = await sync.pull({ only: ['wiki'] });
    expect(first.errors).toEqual([]);
    expect(first.wiki).toEqual({ fetched: 2, updated: 2, notModified: false });
    expect(sync.entries('wiki', {})).toEqual([
      {
        slug: 'Home',
        title: 'Home',
        state: 'published',
        author: 'Mona Lisa',
        labels: [],
        body: '# Hello ü\n',
        createdAt: '2026-03-01T10:00:00.000Z',
        updatedAt: '2026-03-02T10:00:00.000Z',
        url: `${host.gitUrl}/octo/demo/wiki/Home`,
      },
      expect.objectContaining({
        slug: 'How-to-begin',
        title: 'How to begin',
        body: 'Slowly.',
        updatedAt: '2026-03-01T10:00:00.000Z',
      }),
    ]);
    const second = await sync.pull({ only: ['wiki'] });
    expect(second.wiki).toEqual({ fetched: 0, updated: 0, notModified: true });
    await host.writeWiki({ 'sub/How-to-begin.md': undefined }, '2026-03-03T10:00:00Z');
    const third = await sync.pull({ only: ['wiki'] });
    expect(third.wiki).toMatchObject({ fetched: 1, updated: 1 });
    expect(sync.entries('wiki', {}).map(({ slug }) => slug)).toEqual(['Home']);
  });

  test('a page that is too large is left out, and each pull says so', async () => {
    const { host, sync } = await createFixture();
    await host.writeWiki({ 'Home.md': 'x', 'Huge.md': 'x'.repeat(1024 * 1024 + 1) });
    for (let round = 0; round < 2; round++) {
      const report = await sync.pull({ only: ['wiki'] });
      expect(report.errors).toMatchObject([{ kind: 'wiki', reason: 'RESULT_TOO_LARGE' }]);
      expect(sync.entries('wiki', {}).map(({ slug }) => slug)).toEqual(['Home']);
    }
  });

  test('a link in the wiki is no page, wherever it leads', async () => {
    const { host, sync } = await createFixture();
    await host.writeWiki({ 'Home.md': 'x' });
    const blob = await gitIn(host.wikiDir, 'rev-parse', 'main:Home.md');
    await gitIn(host.wikiDir, 'read-tree', 'main');
    await gitIn(
      host.wikiDir,
      'update-index',
      '--add',
      '--cacheinfo',
      `120000,${blob},Passwords.md`,
    );
    const tree = await gitIn(host.wikiDir, 'write-tree');
    const made = await gitIn(host.wikiDir, 'commit-tree', '-p', 'main', '-m', 'link', tree);
    await gitIn(host.wikiDir, 'update-ref', 'refs/heads/main', made);
    await sync.pull({ only: ['wiki'] });
    expect(sync.entries('wiki', {}).map(({ slug }) => slug)).toEqual(['Home']);
  });

  test('an empty wiki has no pages, one that is not there is an error of the report', async () => {
    const { host, sync } = await createFixture();
    expect((await sync.pull({ only: ['wiki'] })).wiki).toMatchObject({ fetched: 0 });
    await sync.putConfig({ enabled: true, host: { ...configOf(host).host, repo: 'other' } });
    const report = await sync.pull({ only: ['wiki'] });
    expect(report.errors).toEqual([
      {
        kind: 'wiki',
        reason: 'UPSTREAM_ERROR',
        message: 'the wiki: the code host has no such repository',
      },
    ]);
  });
});

describe('the whole pull', () => {
  test('one part that fails leaves the rest', async () => {
    const { host, sync } = await createFixture();
    host.state.addIssue();
    host.state.addRelease({ tag_name: 'v1' });
    host.plan({ match: /graphql/, times: 99, status: 500 });
    const report = await sync.pull({});
    expect(report.issues).toMatchObject({ fetched: 1 });
    expect(report.releases).toMatchObject({ fetched: 1 });
    expect(report.discussions).toBeUndefined();
    expect(report.errors).toMatchObject([{ kind: 'discussions', reason: 'UPSTREAM_ERROR' }]);
    expect(report.rateLimit?.remaining).toBe(host.state.rateLimit.remaining);
    const [line] = await sync.audit({ kind: 'pull' });
    expect(line).toMatchObject({ kind: 'pull', result: 'partial' });
    expect(line?.detail).toContain('issues 1 of 1');
  });

  test('only what is on is pulled; nothing while sync is off; one at a time', async () => {
    const { host, sync } = await createFixture();
    const { owner, repo } = host;
    await sync.putConfig({
      enabled: true,
      host: { owner, repo, syncWiki: false, syncDiscussions: false, pollIntervalMs: 0 },
    });
    const report = await sync.pull(undefined);
    expect(Object.keys(report)).toEqual(
      expect.arrayContaining(['issues', 'releases', 'startedAt', 'finishedAt', 'errors']),
    );
    expect(report.wiki).toBeUndefined();
    const both = await Promise.allSettled([sync.pull({}), sync.pull({})]);
    expect(both[0].status).toBe('fulfilled');
    expect(both[1]).toMatchObject({ reason: { reason: 'SYNC_IN_PROGRESS' } });
    await sync.putConfig({ enabled: false, host: { owner, repo } });
    await expect(sync.pull({})).rejects.toMatchObject({ reason: 'SYNC_DISABLED' });
    await expect(sync.pull({ only: ['tags'] })).rejects.toMatchObject({
      reason: 'INVALID_REQUEST',
      metadata: { field: 'only' },
    });
    await expect(sync.pull({ everything: true })).rejects.toMatchObject({
      reason: 'INVALID_REQUEST',
    });
  });

  test('caches and cursors survive a restart; another repository begins anew', async () => {
    const fixture = await createFixture();
    const { host } = fixture;
    host.state.addIssue();
    await host.writeWiki({ 'Home.md': 'x' });
    await fixture.sync.pull({});
    const before = fixture.sync.entries('issues', {});
    const sync = await fixture.restart();
    expect(sync.entries('issues', {})).toEqual(before);
    expect(sync.entries('wiki', {})).toHaveLength(1);
    const report = await sync.pull({});
    expect(report.issues?.updated).toBe(0);
    expect(report.wiki?.notModified).toBe(true);
    await sync.putConfig({
      enabled: true,
      host: { owner: 'octo', repo: 'gone', pollIntervalMs: 0 },
    });
    expect(sync.entries('issues', {})).toEqual([]);
    expect(sync.syncedAt('issues')).toBeUndefined();
    const other = await sync.pull({ only: ['issues'] });
    expect(other.errors).toMatchObject([{ kind: 'issues' }]);
    expect(sync.entries('issues', {})).toEqual([]);
  });

  test('files that cannot be understood are reported, and begin anew', async () => {
    const fixture = await createFixture();
    fixture.host.state.addIssue();
    await fixture.sync.pull({});
    await writeFile(join(fixture.stateDir, 'sync', 'issues.json'), '{"format":1,"entries":[{"numb');
    await writeFile(join(fixture.stateDir, 'sync', 'config.json'), 'nonsense');
    const sync = await fixture.restart();
    expect(fixture.problems.map(({ event }) => event)).toEqual(
      expect.arrayContaining(['sync.cache_unreadable', 'sync.config_unreadable']),
    );
    expect(sync.getConfig().enabled).toBe(false);
    await sync.putConfig(configOf(fixture.host));
    expect((await sync.pull({ only: ['issues'] })).issues).toMatchObject({
      fetched: 1,
      updated: 1,
    });
  });
});
