import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import { gitIn } from '../../support/fake-host-git.ts';
import { byLength, inLong, inShort } from '../../support/test-length.ts';
import { commit, createFixture, seedProject, type Fixture } from './fixture.ts';

async function seeded(options: Parameters<typeof createFixture>[0] = {}): Promise<Fixture> {
  const fixture = await createFixture(options);
  await seedProject(fixture);
  return fixture;
}

/** Branch → commit on the host, without `main`. */
async function branchesOf({ host }: Fixture): Promise<Record<string, string>> {
  const text = await host.git(
    'for-each-ref',
    '--format=%(refname:lstrip=2) %(objectname)',
    'refs/heads',
  );
  const pairs = text.split('\n').map((line) => line.split(' ') as [string, string]);
  return Object.fromEntries(pairs.filter(([name]) => name !== 'main'));
}

function pullOf(
  { host }: Fixture,
  number: number | undefined,
): { title: string; body: string; state: string; base: string; draft: boolean } {
  const issue = host.state.issues.get(number ?? 0);
  if (issue?.pull === undefined) throw new Error('no such pull request');
  const { title, body, state, pull } = issue;
  return { title, body, state, base: pull.base, draft: pull.draft };
}

describe('a stack', () => {
  inShort(test)(
    'is one pull request a commit, each on the branch below, known to the host as a stack',
    async () => {
      const fixture = await seeded();
      const { sync, projectDir, host } = fixture;
      const shas = [
        await commit(projectDir, 'Lay the ground', 'So that things stand.', '2026-04-01T10:00:00Z'),
        await commit(projectDir, 'Build the walls', '', '2026-04-01T10:00:01Z'),
        await commit(projectDir, 'Put on: the roof!', '', '2026-04-01T10:00:02Z'),
      ];
      const result = await sync.push({});
      expect(result.stack.map(({ sha, action }) => [sha, action])).toEqual(
        shas.map((sha) => [sha, 'created']),
      );
      const branches = result.stack.map(({ branch }) => branch);
      expect(branches[0]).toMatch(/^runner\/lay-the-ground-[0-9a-f]{12}$/);
      expect(branches[2]).toMatch(/^runner\/put-on-the-roof-[0-9a-f]{12}$/);
      expect(result.stack.map(({ base }) => base)).toEqual(['main', branches[0], branches[1]]);
      expect(await branchesOf(fixture)).toEqual(
        Object.fromEntries(branches.map((branch, index) => [branch, shas[index]])),
      );
      const [first, second, third] = result.stack;
      expect(pullOf(fixture, first?.number)).toMatchObject({
        title: 'Lay the ground',
        base: 'main',
        draft: true,
      });
      const body = pullOf(fixture, second?.number).body;
      expect(body).toContain('<!-- runner-stack:begin -->');
      const lines = body.split('\n').filter((line) => line.startsWith('*'));
      expect(lines).toEqual([
        `* #${third?.number}`,
        `* **#${second?.number} ⬅ this one**`,
        `* #${first?.number}`,
        '* `main`',
      ]);
      expect(pullOf(fixture, first?.number).body).toMatch(/^So that things stand\.\n\n<!--/);
      expect(host.state.stacks).toMatchObject([
        { number: result.hostStackNumber, pulls: result.stack.map(({ number }) => number) },
      ]);
      expect(await sync.audit({ kind: 'push' })).toMatchObject([{ result: 'ok' }]);
    },
  );

  inShort(test)('pushed again unchanged changes nothing', async () => {
    const fixture = await seeded();
    await commit(fixture.projectDir, 'One');
    await commit(fixture.projectDir, 'Two');
    const first = await fixture.sync.push({});
    const before = fixture.host.requests.length;
    const again = await fixture.sync.push({});
    expect(again.stack).toEqual(first.stack.map((row) => ({ ...row, action: 'unchanged' })));
    expect(again.hostStackNumber).toBe(first.hostStackNumber);
    const changes = fixture.host.requests
      .slice(before)
      .filter(({ method, path }) => method !== 'GET' && !path.endsWith('git-upload-pack'));
    expect(changes).toEqual([]);
  });

  inShort(test)(
    'amended, reworded and rebased commits keep their pull requests, also after a restart',
    async () => {
      const fixture = await seeded();
      const { projectDir, host } = fixture;
      await commit(projectDir, 'One', '', '2026-04-01T10:00:00Z');
      await commit(projectDir, 'Two', '', '2026-04-01T10:00:01Z');
      const first = await fixture.sync.push({});
      await gitIn(projectDir, 'commit', '--quiet', '--amend', '-m', 'Two, said better');
      await gitIn(projectDir, 'checkout', '--quiet', '-b', 'work');
      // The base moves on meanwhile.
      await gitIn(projectDir, 'checkout', '--quiet', 'main~2', '-b', 'other');
      await commit(projectDir, 'Elsewhere');
      await gitIn(projectDir, 'push', '--quiet', host.repositoryDir, 'other:main');
      await gitIn(projectDir, 'checkout', '--quiet', 'work');
      await gitIn(projectDir, 'rebase', '--quiet', 'other');
      const sync = await fixture.restart();
      const second = await sync.push({});
      expect(second.stack.map(({ number, branch, action }) => [number, branch, action])).toEqual(
        first.stack.map(({ number, branch }) => [number, branch, 'updated']),
      );
      expect(second.stack[1]?.sha).toBe(await gitIn(projectDir, 'rev-parse', 'HEAD'));
      expect(await branchesOf(fixture)).toEqual(
        Object.fromEntries(second.stack.map(({ branch, sha }) => [branch, sha])),
      );
      expect(host.state.stacks).toHaveLength(1);
    },
  );

  inShort(test)('grows at the top, and keeps what people wrote', async () => {
    const fixture = await seeded();
    const { projectDir, sync, host } = fixture;
    await commit(projectDir, 'One', '', '2026-04-01T10:00:00Z');
    await commit(projectDir, 'Two', '', '2026-04-01T10:00:01Z');
    const first = await sync.push({ title: 'House', draft: false });
    const issue = host.state.issues.get(first.stack[0]?.number ?? 0);
    if (issue === undefined) throw new Error('it was created');
    expect(issue.pull?.draft).toBe(false);
    expect(issue.body).toContain('### Stack: House');
    issue.body = `Read this first.\n\n${issue.body}\nAnd this last.`;
    issue.title = 'A better title';
    await commit(projectDir, 'Three', '', '2026-04-01T10:00:02Z');
    const second = await sync.push({ title: 'House' });
    expect(second.stack.map(({ action }) => action)).toEqual(['updated', 'updated', 'created']);
    expect(second.hostStackNumber).toBe(first.hostStackNumber);
    expect(host.state.stacks[0]?.pulls).toEqual(second.stack.map(({ number }) => number));
    expect(issue.title).toBe('A better title');
    expect(issue.body).toMatch(/^Read this first\.[\s\S]*And this last\.\s*$/);
    expect(issue.body).toContain(`* #${second.stack[2]?.number}`);
  });

  inLong(test)('whose commits change places is not taken for merged', async () => {
    const fixture = await seeded();
    const { projectDir, sync } = fixture;
    await commit(projectDir, 'One', '', '2026-04-01T10:00:00Z');
    await commit(projectDir, 'Two', '', '2026-04-01T10:00:01Z');
    const first = await sync.push({});
    const [one, two] = [
      await gitIn(projectDir, 'rev-parse', 'HEAD~1'),
      await gitIn(projectDir, 'rev-parse', 'HEAD'),
    ];
    await gitIn(projectDir, 'reset', '--quiet', '--hard', 'HEAD~2');
    await gitIn(projectDir, 'cherry-pick', two ?? '', one ?? '');
    const second = await sync.push({});
    expect(second.stack.map(({ number }) => number)).toEqual(
      first.stack.map(({ number }) => number).toReversed(),
    );
    for (const { number, base } of second.stack) {
      expect(pullOf(fixture, number)).toMatchObject({ state: 'open', base });
    }
    expect(second.stack[1]?.base).toBe(second.stack[0]?.branch);
  });

  inLong(test)('a commit that is dropped leaves the others in a stack of their own', async () => {
    const fixture = await seeded();
    const { projectDir, sync, host } = fixture;
    for (const [index, subject] of ['One', 'Two', 'Three'].entries()) {
      await commit(projectDir, subject, '', `2026-04-01T10:00:0${index}Z`);
    }
    const first = await sync.push({});
    await gitIn(projectDir, 'rebase', '--quiet', '--onto', 'HEAD~2', 'HEAD~1');
    const second = await sync.push({});
    const [one, two, three] = first.stack.map(({ number }) => number);
    expect(second.stack.map(({ number }) => number)).toEqual([one, three]);
    expect(second.stack[1]?.base).toBe(first.stack[0]?.branch);
    expect(host.state.stacks.map(({ pulls }) => pulls)).toEqual([[one, three]]);
    expect(pullOf(fixture, two)).toMatchObject({ state: 'open' });
  });

  inShort(test)('stays without a stack of the host when that fails', async () => {
    const fixture = await seeded();
    await commit(fixture.projectDir, 'One');
    await commit(fixture.projectDir, 'Two');
    fixture.host.plan({ match: /POST .*stacks/, status: 500 });
    const result = await fixture.sync.push({});
    expect(result.stack).toHaveLength(2);
    expect(result.hostStackNumber).toBeUndefined();
    expect(fixture.problems).toMatchObject([{ event: 'sync.stack_failed' }]);
    expect((await fixture.sync.push({})).hostStackNumber).toBeDefined();
  });

  inLong(test)('that somebody builds on stays whole', async () => {
    const fixture = await seeded();
    const { projectDir, sync, host } = fixture;
    await commit(projectDir, 'One', '', '2026-04-01T10:00:00Z');
    await commit(projectDir, 'Two', '', '2026-04-01T10:00:01Z');
    const first = await sync.push({});
    const top = first.stack[1]?.branch ?? '';
    const theirs = host.state.addIssue({
      pull: { head: 'theirs', base: top, draft: false, merged_at: null },
    });
    host.state.stacks[0]?.pulls.push(theirs.number);
    await gitIn(projectDir, 'commit', '--quiet', '--amend', '-m', 'Two again');
    expect((await sync.push({})).hostStackNumber).toBe(first.hostStackNumber);
    expect(host.state.stacks.map(({ pulls }) => pulls)).toEqual([
      [...first.stack.map(({ number }) => number), theirs.number],
    ]);
  });

  inShort(test)('whose bottom was merged goes on with the rest', async () => {
    const fixture = await seeded();
    const { projectDir, sync, host } = fixture;
    for (const [index, subject] of ['One', 'Two', 'Three'].entries()) {
      await commit(projectDir, subject, '', `2026-04-01T10:00:0${index}Z`);
    }
    const first = await sync.push({});
    const [one, two, three] = first.stack.map(({ number }) => number);
    await host.git('update-ref', 'refs/heads/main', first.stack[0]?.sha ?? '');
    const [bottom, next] = [one, two].map((number) => host.state.issues.get(number ?? 0));
    if (bottom?.pull === undefined || next?.pull === undefined) throw new Error('they were made');
    bottom.state = 'closed';
    bottom.pull.merged_at = '2026-04-02T00:00:00Z';
    // The host sets what stood on it onto the trunk.
    next.pull.base = 'main';
    const second = await sync.push({});
    expect(second.stack.map(({ number, base }) => [number, base])).toEqual([
      [two, 'main'],
      [three, first.stack[1]?.branch],
    ]);
    expect(second.hostStackNumber).toBe(first.hostStackNumber);
    expect(host.state.stacks.map(({ pulls }) => pulls)).toEqual([[one, two, three]]);
  });

  inLong(test)('goes to a folder of bare repositories as well', async () => {
    const fixture = await seeded({ isFileGit: true });
    const sha = await commit(fixture.projectDir, 'One');
    const { stack } = await fixture.sync.push({});
    expect(await branchesOf(fixture)).toEqual({ [stack[0]?.branch ?? '']: sha });
  });

  inShort(test)('works without stacks on the host, and alone', async () => {
    const fixture = await seeded({ hasStacks: false });
    await commit(fixture.projectDir, 'One');
    const alone = await fixture.sync.push({ title: 'My title', body: 'My text' });
    expect(pullOf(fixture, alone.stack[0]?.number)).toMatchObject({
      title: 'My title',
      body: 'My text',
    });
    await commit(fixture.projectDir, 'Two');
    const result = await fixture.sync.push({});
    expect(result.hostStackNumber).toBeUndefined();
    expect(result.stack.map(({ action }) => action)).toEqual(['updated', 'created']);
  });
});

describe('identity', () => {
  inShort(test)(
    'a Change-Id names the commit whoever wrote it; a shared Stack-Id does not',
    async () => {
      const fixture = await seeded();
      const { projectDir, sync } = fixture;
      const trailers = (id: string): string => `Text.\n\nStack-Id: s1\nChange-Id: ${id}`;
      await commit(projectDir, 'One', trailers('I1111111111111111111111111111111111111111'));
      await commit(projectDir, 'Two', trailers('I2222222222222222222222222222222222222222'));
      const first = await sync.push({});
      expect(first.stack).toHaveLength(2);
      await gitIn(
        projectDir,
        'commit',
        '--quiet',
        '--amend',
        '--author=Somebody <else@example.com>',
        '--date=2020-01-01T00:00:00Z',
        '--no-edit',
      );
      const second = await sync.push({});
      expect(second.stack.map(({ number }) => number)).toEqual(
        first.stack.map(({ number }) => number),
      );
      await commit(projectDir, 'Three', trailers('I2222222222222222222222222222222222222222'));
      await expect(sync.push({})).rejects.toMatchObject({ reason: 'INVALID_REQUEST' });
    },
  );

  inLong(test)('commits of the same second and author are told apart', async () => {
    const fixture = await seeded();
    for (const subject of ['a', 'b', 'c']) await commit(fixture.projectDir, subject);
    const first = await fixture.sync.push({});
    expect(new Set(first.stack.map(({ branch }) => branch)).size).toBe(3);
    expect((await fixture.sync.push({})).stack.every(({ action }) => action === 'unchanged')).toBe(
      true,
    );
  });
});

inShort(describe)('given branches', () => {
  test('become the stack, bottom to top', async () => {
    const fixture = await seeded();
    const { projectDir, sync } = fixture;
    await gitIn(projectDir, 'checkout', '--quiet', '-b', 'feature/a');
    await commit(projectDir, 'A1');
    await commit(projectDir, 'A2');
    await gitIn(projectDir, 'checkout', '--quiet', '-b', 'feature/b');
    await commit(projectDir, 'B1');
    const result = await sync.push({ branches: ['feature/a', 'feature/b'] });
    expect(result.stack.map(({ branch, base }) => [branch, base])).toEqual([
      ['feature/a', 'main'],
      ['feature/b', 'feature/a'],
    ]);
    expect(pullOf(fixture, result.stack[0]?.number).title).toBe('A2');
    await expect(sync.push({ branches: ['feature/b', 'feature/a'] })).rejects.toMatchObject({
      reason: 'INVALID_REQUEST',
      metadata: { field: 'branches' },
    });
    await expect(sync.push({ branches: ['main'] })).rejects.toMatchObject({
      reason: 'NOTHING_TO_PUSH',
    });
    await expect(sync.push({ branches: ['nowhere'] })).rejects.toMatchObject({
      reason: 'INVALID_REF',
    });
  });
});

describe('what is refused', () => {
  inShort(test)('a branch that somebody else changed; nothing of the stack is pushed', async () => {
    const fixture = await seeded();
    const { projectDir, sync, host } = fixture;
    await commit(projectDir, 'One', '', '2026-04-01T10:00:00Z');
    await commit(projectDir, 'Two', '', '2026-04-01T10:00:01Z');
    const first = await sync.push({});
    const top = first.stack[1]?.branch ?? '';
    // Somebody else commits on the top branch.
    const other = await mkdtemp(join(tmpdir(), 'other-'));
    await gitIn(other, 'clone', '--quiet', '--branch', top, host.repositoryDir, 'c');
    await commit(join(other, 'c'), 'Theirs');
    await gitIn(join(other, 'c'), 'push', '--quiet', 'origin', `HEAD:${top}`);
    const before = await branchesOf(fixture);
    await gitIn(projectDir, 'commit', '--quiet', '--amend', '-m', 'Two again');
    await expect(sync.push({})).rejects.toMatchObject({
      reason: 'LEASE_FAILED',
      metadata: { branch: top },
    });
    expect(await branchesOf(fixture)).toEqual(before);
    // With their work taken in it goes through.
    await gitIn(projectDir, 'fetch', '--quiet', host.repositoryDir, top);
    await gitIn(projectDir, 'reset', '--quiet', '--hard', 'FETCH_HEAD');
    expect((await sync.push({})).stack).toHaveLength(3);
    await rm(other, { recursive: true });
  });

  const moments: readonly (readonly [string, RegExp])[] = [
    ['before git looks', /GET .*service=git-receive-pack/],
    ['after git has looked', /POST .*git-receive-pack/],
  ];
  test.each(byLength(moments.slice(1), moments.slice(0, 1)))(
    'a branch that moves while the push is under way, %s',
    async (_, match) => {
      const fixture = await seeded();
      const { projectDir, sync, host } = fixture;
      await commit(projectDir, 'One', '', '2026-04-01T10:00:00Z');
      await commit(projectDir, 'Two', '', '2026-04-01T10:00:01Z');
      const first = await sync.push({});
      await gitIn(projectDir, 'commit', '--quiet', '--amend', '-m', 'Two again');
      await commit(projectDir, 'Three', '', '2026-04-01T10:00:02Z');
      let go = (): void => undefined;
      const delay = new Promise<void>((resolve) => {
        go = resolve;
      });
      host.plan({ match, delay });
      const from = host.requests.length;
      const pushing = sync.push({});
      const arrived = (): boolean =>
        host.requests.slice(from).some(({ method, path }) => match.test(`${method} ${path}`));
      await expect.poll(arrived, { timeout: 20_000 }).toBe(true);
      const main = await host.git('rev-parse', 'main');
      await host.git('update-ref', `refs/heads/${first.stack[1]?.branch ?? ''}`, main);
      const before = await branchesOf(fixture);
      go();
      await expect(pushing).rejects.toMatchObject({ reason: 'LEASE_FAILED' });
      expect(await branchesOf(fixture)).toEqual(before);
    },
  );

  inLong(test)('a host that refuses one branch takes none of them', async () => {
    const fixture = await seeded();
    const { projectDir, sync, host } = fixture;
    await commit(projectDir, 'Fine', '', '2026-04-01T10:00:00Z');
    await commit(projectDir, 'Forbidden', '', '2026-04-01T10:00:01Z');
    // The repository was made without git's template, which has this folder.
    const hooks = join(host.repositoryDir, 'hooks');
    await mkdir(hooks);
    await writeFile(join(hooks, 'update'), '#!/bin/sh\ncase "$1" in *forbidden*) exit 1;; esac\n', {
      mode: 0o755,
    });
    await expect(sync.push({})).rejects.toMatchObject({ reason: 'UPSTREAM_ERROR' });
    expect(await branchesOf(fixture)).toEqual({});
    expect(host.state.issues.size).toBe(0);
  });

  inShort(test)('nothing, uncommitted work, merges, no repository, no credentials', async () => {
    const fixture = await seeded();
    const { projectDir, sync, host } = fixture;
    await expect(sync.push({})).rejects.toMatchObject({ reason: 'NOTHING_TO_PUSH' });
    await commit(projectDir, 'One');
    await writeFile(join(projectDir, 'Begin.txt'), 'changed');
    await expect(sync.push({})).rejects.toMatchObject({ reason: 'NOTHING_TO_PUSH' });
    // Named, the head is what it is.
    expect((await sync.push({ head: 'HEAD', dryRun: true })).stack).toHaveLength(1);
    await gitIn(projectDir, 'checkout', '--quiet', '--', '.');
    await expect(sync.push({ base: 'nowhere' })).rejects.toMatchObject({
      reason: 'INVALID_REF',
      metadata: { field: 'base' },
    });
    await expect(sync.push({ head: 'nowhere' })).rejects.toMatchObject({ reason: 'INVALID_REF' });
    await gitIn(projectDir, 'checkout', '--quiet', '-b', 'side', 'HEAD~1');
    await commit(projectDir, 'Side');
    await gitIn(projectDir, 'merge', '--quiet', '--no-edit', 'main');
    await expect(sync.push({})).rejects.toMatchObject({ reason: 'INVALID_REF' });
    await sync.putConfig({
      enabled: true,
      host: { owner: 'octo', repo: 'other', pollIntervalMs: 0 },
    });
    await expect(sync.push({})).rejects.toMatchObject({ reason: 'UPSTREAM_ERROR' });
    await sync.putConfig({});
    await expect(sync.push({})).rejects.toMatchObject({ reason: 'REMOTE_MISSING' });
    expect(await host.git('branch')).not.toContain('runner/');
  });

  inShort(test)('without a token; outside a git repository', async () => {
    const bare = await createFixture({ settings: { hostToken: undefined } });
    await expect(bare.sync.push({})).rejects.toMatchObject({ reason: 'REMOTE_MISSING' });
    const fixture = await createFixture();
    await rm(join(fixture.projectDir, '.git'), { recursive: true });
    await expect(fixture.sync.push({})).rejects.toMatchObject({ reason: 'REMOTE_MISSING' });
  });

  inShort(test)('a dry run shows the plan and changes nothing', async () => {
    const fixture = await seeded();
    await commit(fixture.projectDir, 'One');
    const result = await fixture.sync.push({ dryRun: true });
    expect(result).toMatchObject({ dryRun: true, stack: [{ action: 'created', base: 'main' }] });
    expect(result.stack[0]?.number).toBeUndefined();
    expect(await branchesOf(fixture)).toEqual({});
    expect(fixture.host.state.issues.size).toBe(0);
    const real = await fixture.sync.push({});
    await gitIn(fixture.projectDir, 'commit', '--quiet', '--amend', '-m', 'Other');
    expect((await fixture.sync.push({ dryRun: true })).stack).toMatchObject([
      { number: real.stack[0]?.number, branch: real.stack[0]?.branch, action: 'updated' },
    ]);
  });

  describe('a dry run without a token', () => {
    const settings = { hostToken: undefined };

    inShort(test)('takes a host that shows nothing as the project saw it last', async () => {
      const fixture = await seeded({ settings });
      const { projectDir, sync, host } = fixture;
      const origin = `refs/remotes/upstream/`;
      await gitIn(projectDir, 'remote', 'add', 'upstream', 'git@host.example:octo/demo.git');
      await gitIn(
        projectDir,
        'config',
        'remote.upstream.url',
        `https://x/${host.owner}/${host.repo}`,
      );
      await gitIn(projectDir, 'update-ref', `${origin}main`, 'HEAD');
      const sha = await commit(projectDir, 'One');
      const first = await sync.push({ dryRun: true });
      expect(first).toMatchObject({
        dryRun: true,
        knownFrom: 'project',
        stack: [{ sha, base: 'main', action: 'created' }],
      });
      await gitIn(projectDir, 'update-ref', origin + (first.stack[0]?.branch ?? ''), sha);
      expect((await sync.push({ dryRun: true })).stack[0]?.action).toBe('unchanged');
      expect(await branchesOf(fixture)).toEqual({});
      await expect(sync.push({})).rejects.toMatchObject({ reason: 'REMOTE_MISSING' });
    });

    inLong(test)('without any remote goes from the branch of the project', async () => {
      const { projectDir, sync } = await seeded({ settings });
      await gitIn(projectDir, 'checkout', '--quiet', '-b', 'topic');
      await commit(projectDir, 'One');
      await commit(projectDir, 'Two', '', '2026-04-01T10:00:01Z');
      const { stack, knownFrom } = await sync.push({ dryRun: true });
      expect([stack.map(({ action }) => action), knownFrom]).toEqual([
        ['created', 'created'],
        'project',
      ]);
      await expect(sync.push({ dryRun: true, base: 'nowhere' })).rejects.toMatchObject({
        reason: 'INVALID_REF',
        message: expect.stringContaining('RUNNER_HOST_TOKEN') as string,
      });
    });

    inLong(test)('reads what the host shows to everybody', async () => {
      const fixture = await seeded({ settings, isFileGit: true });
      await gitIn(fixture.projectDir, 'checkout', '--quiet', '-b', 'topic');
      await commit(fixture.projectDir, 'One');
      // Its repository is open, its API is not.
      await gitIn(fixture.projectDir, 'update-ref', '-d', 'refs/heads/main');
      const result = await fixture.sync.push({ dryRun: true });
      expect(result).toMatchObject({ stack: [{ action: 'created' }] });
      await fixture.host.git('branch', result.stack[0]?.branch ?? '', 'main');
      expect(await fixture.sync.push({ dryRun: true })).toMatchObject({
        knownFrom: 'branches',
        stack: [{ action: 'updated' }],
      });
    });
  });

  inShort(test)(
    'names that git could take for something else, and bodies that are not known',
    async () => {
      const bodies = [
        { base: '-x' },
        { base: '--upload-pack=touch /tmp/owned' },
        { head: '--output=owned' },
        { head: 'main..HEAD' },
        { branches: ['--exec=x'] },
        { branches: ['a b'] },
        { branches: ['refs/../x'] },
        { base: 'main:refs/heads/x' },
        { base: '+main' },
        { base: 'ma*n' },
        { prefix: '-x' },
        { prefix: '' },
        { prefix: 'a..b/' },
        { branches: [] },
        { branches: ['x'], head: 'HEAD' },
        { branches: ['x', 'x'] },
        { force: true },
        { title: '' },
        { draft: 'no' },
        [],
      ];
      const fixture = await seeded();
      await commit(fixture.projectDir, 'One');
      for (const body of bodies) {
        const failure: unknown = await fixture.sync.push(body).catch((error: unknown) => error);
        const { reason } = failure as { reason?: string };
        expect(['INVALID_REF', 'INVALID_REQUEST'], JSON.stringify(body)).toContain(reason);
      }
      expect(await branchesOf(fixture)).toEqual({});
    },
  );
});
