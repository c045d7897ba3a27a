import { appendFile, readFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { Conclusion, Job, WorkflowRun } from '../../../src/runner/model/run.ts';
import type { DeploymentRecord } from '../../../src/runner/sync/deployment-record.ts';
import { createFixture, type Fixture, type FixtureOptions } from './fixture.ts';

function jobOf(id: string, conclusion?: Conclusion): Job {
  return {
    id,
    name: `Job | ${id} @mona \`x\``,
    status: conclusion === undefined ? 'in_progress' : 'completed',
    conclusion,
    steps: [],
    outputs: {},
    needs: [],
    attempt: 1,
    durationMs: conclusion === undefined ? undefined : 1500,
  };
}

function runOf(id: string, jobs: readonly Job[] = [jobOf('deploy')], attempt = 1): WorkflowRun {
  return {
    id,
    workflow: 'Release',
    fileName: 'release.yml',
    name: 'Release',
    runNumber: 1,
    attempt,
    status: 'in_progress',
    jobs,
    createdAt: '2026-01-01T00:00:00.000Z',
    updatedAt: '2026-01-01T00:00:00.000Z',
    trigger: { event: 'push', ref: 'refs/heads/main', sha: 'a'.repeat(40) },
  };
}

function plain(text: string): string {
  return text;
}

async function withLog(log: object, options: FixtureOptions = {}): Promise<Fixture> {
  const fixture = await createFixture(options);
  const { owner, repo } = fixture.host;
  await fixture.sync.putConfig({
    enabled: true,
    host: { owner, repo, pollIntervalMs: 0 },
    deploymentLog: log,
  });
  return fixture;
}

async function linesOf({ stateDir }: Fixture): Promise<readonly DeploymentRecord[]> {
  const text = await readFile(join(stateDir, 'deployments.jsonl'), 'utf8');
  return text
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line) as DeploymentRecord);
}

/** Until every comment that was owed is written. */
async function mirrored({ sync }: Fixture): Promise<void> {
  await expect.poll(() => sync.status().pendingMirrors, { timeout: 20_000 }).toBe(0);
  await sync.deployments.flush();
}

describe('the ledger', () => {
  test('appends a line for each change, and shows each deployment once, newest first', async () => {
    const fixture = await withLog({});
    const { deployments } = fixture.sync;
    deployments.deploymentStarted(runOf('r1'), 'deploy', 'staging', plain);
    fixture.clock.ms += 1000;
    deployments.deploymentStarted(runOf('r2'), 'deploy', 'production', plain);
    fixture.clock.ms += 1000;
    const ended = runOf('r1', [jobOf('build', 'success'), jobOf('deploy', 'success')]);
    deployments.deploymentEnded(ended, 'deploy', 'staging', 'https://staging.example.com', plain);
    await deployments.flush();
    const shown = deployments.query({});
    expect(shown.map(({ runId, status }) => [runId, status])).toEqual([
      ['r2', 'in_progress'],
      ['r1', 'success'],
    ]);
    expect(shown[1]).toEqual({
      id: expect.stringMatching(/^dpl-[0-9a-f]{24}$/),
      runId: 'r1',
      workflow: 'Release',
      jobId: 'deploy',
      status: 'success',
      environment: 'staging',
      ref: 'refs/heads/main',
      sha: 'a'.repeat(40),
      url: 'https://staging.example.com',
      jobs: [
        { id: 'build', name: 'Job | build @mona `x`', conclusion: 'success', durationMs: 1500 },
        { id: 'deploy', name: 'Job | deploy @mona `x`', conclusion: 'success', durationMs: 1500 },
      ],
      createdAt: new Date(fixture.clock.ms - 2000).toISOString(),
      updatedAt: new Date(fixture.clock.ms).toISOString(),
    });
    expect((await linesOf(fixture)).map(({ id }) => id)).toEqual([
      shown[1]?.id,
      shown[0]?.id,
      shown[1]?.id,
    ]);
    expect(fixture.host.requests).toEqual([]);
    const sync = await fixture.restart();
    expect(sync.deployments.query({})).toEqual(shown);
  });

  test('queries by environment, status and count', async () => {
    const { sync } = await withLog({});
    const { deployments } = sync;
    for (const [index, environment] of ['a', 'b', 'a', 'a'].entries()) {
      const run = runOf(`r${index}`, [jobOf('deploy', index === 2 ? 'failure' : 'success')]);
      deployments.deploymentEnded(run, 'deploy', environment, undefined, plain);
    }
    const ids = (query: Parameters<typeof deployments.query>[0]): readonly string[] =>
      deployments.query(query).map(({ runId }) => runId);
    expect(ids({ environment: 'a' })).toEqual(['r3', 'r2', 'r0']);
    expect(ids({ status: 'failure' })).toEqual(['r2']);
    expect(ids({ environment: 'a', limit: 1 })).toEqual(['r3']);
    expect(() => deployments.query({ status: 'done' })).toThrow('status must be one of');
  });

  test('an attempt is a deployment of its own; cancelled and skipped jobs deployed nothing', async () => {
    const { sync } = await withLog({});
    const { deployments } = sync;
    deployments.deploymentStarted(runOf('r1'), 'deploy', 'a', plain);
    deployments.deploymentEnded(
      runOf('r1', [jobOf('deploy', 'failure')]),
      'deploy',
      'a',
      undefined,
      plain,
    );
    const second = { ...jobOf('deploy', 'skipped'), attempt: 2 };
    deployments.deploymentEnded(runOf('r1', [second], 2), 'deploy', 'a', undefined, plain);
    expect(deployments.query({}).map(({ status }) => status)).toEqual(['cancelled', 'failure']);
  });

  test('keeps to the settings, but ends what it began', async () => {
    const fixture = await withLog({ environments: ['production'] });
    const { sync, host } = fixture;
    sync.deployments.deploymentStarted(runOf('r1'), 'deploy', 'staging', plain);
    sync.deployments.deploymentStarted(runOf('r2'), 'deploy', 'production', plain);
    const { owner, repo } = host;
    await sync.putConfig({ host: { owner, repo }, deploymentLog: { enabled: false } });
    const ended = runOf('r2', [jobOf('deploy', 'success')]);
    sync.deployments.deploymentEnded(ended, 'deploy', 'production', undefined, plain);
    sync.deployments.deploymentStarted(runOf('r3'), 'deploy', 'production', plain);
    expect(sync.deployments.query({}).map(({ runId, status }) => [runId, status])).toEqual([
      ['r2', 'success'],
    ]);
  });

  test('ends deployments of runs that are over when it is told of them', async () => {
    const fixture = await withLog({});
    fixture.sync.deployments.deploymentStarted(runOf('r1'), 'deploy', 'a', plain);
    fixture.sync.deployments.deploymentStarted(runOf('r2'), 'deploy', 'a', plain);
    await fixture.sync.deployments.flush();
    const sync = await fixture.restart();
    sync.deployments.settleOrphans((runId) => runId === 'r2');
    const statuses = sync.deployments.query({}).map(({ runId, status }) => [runId, status]);
    expect(statuses).toEqual([
      ['r2', 'in_progress'],
      ['r1', 'cancelled'],
    ]);
  });

  test('a line that a crash tore and lines that are none are reported and left out', async () => {
    const fixture = await withLog({});
    fixture.sync.deployments.deploymentStarted(runOf('r1'), 'deploy', 'a', plain);
    await fixture.sync.deployments.flush();
    const path = join(fixture.stateDir, 'deployments.jsonl');
    const whole = (await readFile(path, 'utf8')).trimEnd();
    await appendFile(path, `{"id":"x"}\nnonsense\n${whole.slice(0, 90)}`);
    const sync = await fixture.restart();
    expect(fixture.problems.map(({ event }) => event).toSorted()).toEqual([
      'deployments.foreign_line',
      'jsonl.line_torn',
      'jsonl.line_unreadable',
    ]);
    expect(sync.deployments.query({})).toHaveLength(1);
    sync.deployments.deploymentStarted(runOf('r2'), 'deploy', 'a', plain);
    await sync.deployments.flush();
    const again = await fixture.restart();
    expect(again.deployments.query({}).map(({ runId }) => runId)).toEqual(['r2', 'r1']);
  });

  test('a recorder that has been closed does not disturb a job', async () => {
    const fixture = await withLog({});
    const { deployments } = fixture.sync;
    await fixture.sync.close();
    deployments.deploymentStarted(runOf('r1'), 'deploy', 'a', plain);
    expect(fixture.problems).toMatchObject([{ event: 'deployments.record_failed' }]);
  });
});

describe('the mirror', () => {
  test('is one comment a deployment, edited as it goes on', async () => {
    const fixture = await withLog({ issueNumber: 1 });
    const { sync, host } = fixture;
    host.state.addIssue();
    sync.deployments.deploymentStarted(runOf('r1'), 'deploy', 'staging', plain);
    await mirrored(fixture);
    expect(host.state.comments).toHaveLength(1);
    fixture.clock.ms += 1000;
    const ended = runOf('r1', [jobOf('deploy', 'success')]);
    sync.deployments.deploymentEnded(
      ended,
      'deploy',
      'staging',
      'https://staging.example.com/',
      plain,
    );
    await mirrored(fixture);
    expect(host.state.comments).toHaveLength(1);
    const [record] = sync.deployments.query({});
    const [comment] = host.state.comments;
    expect(record?.mirror).toEqual({
      issueNumber: 1,
      commentId: comment?.id,
      url: `${host.gitUrl}/octo/demo/issues/1#issuecomment-${comment?.id}`,
      syncedAt: new Date(fixture.clock.ms).toISOString(),
    });
    expect(comment?.body.split('\n')[0]).toBe(`<!-- runner-deployment:${record?.id} -->`);
    expect(comment?.body).toContain('### Deployment to `staging`: ✅ success');
    expect(comment?.body).toContain('<https://staging.example.com/>');
    // Names from workflows cannot break out of the table, nor call people.
    expect(comment?.body).toContain("| `Job ¦ deploy @mona 'x'` | success | 1.5 |");
  });

  test('shows no secret of the run: not in names, environment or URL', async () => {
    const fixture = await withLog({ issueNumber: 1, environments: ['for-hush'] });
    const { sync, host } = fixture;
    host.state.addIssue();
    const mask = (text: string): string => text.replaceAll('hush', '***');
    const run = runOf('r1', [{ ...jobOf('deploy', 'success'), name: 'deploy hush' }]);
    // The settings name the environment as it is.
    sync.deployments.deploymentStarted(run, 'deploy', 'for-hush', mask);
    sync.deployments.deploymentEnded(run, 'deploy', 'for-hush', 'https://a.test/?t=hush', mask);
    await mirrored(fixture);
    expect(sync.deployments.query({})).toMatchObject([
      { environment: 'for-***', url: 'https://a.test/?t=***', jobs: [{ name: 'deploy ***' }] },
    ]);
    expect(JSON.stringify([host.state.comments, await linesOf(fixture)])).not.toContain('hush');
    expect(host.state.comments[0]?.body).toContain('### Deployment to `for-***`: ✅ success');
  });

  test('a comment whose answer was lost is found again by its marker, not made twice', async () => {
    const fixture = await withLog({ issueNumber: 1 });
    const { sync, host } = fixture;
    host.state.addIssue();
    for (let index = 0; index < 120; index++) {
      host.state.comments.push({
        id: 1 + index,
        issue: 1,
        body: `chat ${index}`,
        created_at: host.state.now(),
        updated_at: host.state.now(),
      });
    }
    host.plan({ match: /POST .*comments/, losesAnswer: true });
    sync.deployments.deploymentStarted(runOf('r1'), 'deploy', 'staging', plain);
    await mirrored(fixture);
    expect(host.state.comments).toHaveLength(121);
    expect(fixture.problems).toMatchObject([{ event: 'deployments.mirror_failed' }]);
    expect(sync.deployments.query({})[0]?.mirror).toMatchObject({
      commentId: host.state.comments.at(-1)?.id,
    });
    expect(sync.deployments.query({})[0]?.mirror?.error).toBeUndefined();
  });

  test('a comment that was deleted is made anew; one that only quotes the marker is not ours', async () => {
    const fixture = await withLog({ issueNumber: 1 });
    const { sync, host } = fixture;
    host.state.addIssue();
    sync.deployments.deploymentStarted(runOf('r1'), 'deploy', 'staging', plain);
    await mirrored(fixture);
    const first = host.state.comments.pop();
    host.state.comments.push({ ...first, id: 5, body: `> ${first?.body}` } as never);
    sync.deployments.deploymentEnded(
      runOf('r1', [jobOf('deploy', 'failure')]),
      'deploy',
      'staging',
      undefined,
      plain,
    );
    await mirrored(fixture);
    expect(host.state.comments).toHaveLength(2);
    expect(host.state.comments[0]?.body).toMatch(/^> /);
    expect(host.state.comments[1]?.body).toContain('❌ failure');
  });

  test('passing trouble is repeated; the job does not wait for any of it', async () => {
    const fixture = await withLog({ issueNumber: 1 });
    const { sync, host, waits } = fixture;
    host.state.addIssue();
    host.plan({ match: /comments/, status: 502, times: 6 });
    sync.deployments.deploymentStarted(runOf('r1'), 'deploy', 'staging', plain);
    expect(host.requests).toEqual([]);
    await mirrored(fixture);
    expect(host.state.comments).toHaveLength(1);
    expect(waits.length).toBeGreaterThanOrEqual(6);
  });

  test('a refusal is kept on the record, and tried again after a restart', async () => {
    const fixture = await withLog({ issueNumber: 9 });
    const { sync, host } = fixture;
    sync.deployments.deploymentStarted(runOf('r1'), 'deploy', 'staging', plain);
    await mirrored(fixture);
    expect(sync.deployments.query({})[0]?.mirror).toEqual({
      issueNumber: 9,
      error: expect.stringContaining('answered 404'),
    });
    for (let index = 0; index < 9; index++) host.state.addIssue();
    const reopened = await fixture.restart();
    await mirrored(fixture);
    expect(host.state.comments).toHaveLength(1);
    expect(reopened.deployments.query({})[0]?.mirror).toMatchObject({
      issueNumber: 9,
      commentId: expect.any(Number),
    });
    expect(reopened.deployments.query({})[0]?.mirror?.error).toBeUndefined();
  });

  test('many changes of one deployment while the host is slow end in the last state', async () => {
    const fixture = await withLog({ issueNumber: 1 });
    const { sync, host } = fixture;
    host.state.addIssue();
    for (let index = 0; index < 20; index++) {
      sync.deployments.deploymentStarted(runOf('r1'), 'deploy', `env-${index % 4}`, plain);
    }
    for (let index = 0; index < 4; index++) {
      const ended = runOf('r1', [jobOf('deploy', 'success')]);
      sync.deployments.deploymentEnded(ended, 'deploy', `env-${index}`, undefined, plain);
    }
    await mirrored(fixture);
    expect(host.state.comments).toHaveLength(4);
    expect(host.state.comments.every(({ body }) => body.includes('✅ success'))).toBe(true);
  });

  test('a comment under way when the runner stops is written after the next start', async () => {
    const fixture = await withLog({ issueNumber: 1 });
    const { host } = fixture;
    host.state.addIssue();
    // The host does not answer until the runner has stopped.
    let go = (): void => undefined;
    host.plan({
      match: /comments/,
      delay: new Promise<void>((resolve) => {
        go = resolve;
      }),
    });
    fixture.sync.deployments.deploymentStarted(runOf('r1'), 'deploy', 'staging', plain);
    await expect.poll(() => host.requests.length, { timeout: 20_000 }).toBe(1);
    const sync = await fixture.restart();
    go();
    await mirrored(fixture);
    expect(fixture.problems).toEqual([]);
    expect(host.state.comments).toHaveLength(1);
    expect(sync.deployments.query({})[0]?.mirror).toMatchObject({
      commentId: host.state.comments[0]?.id,
    });
  });

  test('is off without an issue, and without a token', async () => {
    const off = await withLog({ issueNumber: 0 });
    off.sync.deployments.deploymentStarted(runOf('r1'), 'deploy', 'a', plain);
    const poor = await withLog({ issueNumber: 1 }, { settings: { hostToken: undefined } });
    poor.sync.deployments.deploymentStarted(runOf('r1'), 'deploy', 'a', plain);
    for (const { sync, host } of [off, poor]) {
      await sync.deployments.flush();
      expect(sync.deployments.query({})).toHaveLength(1);
      expect(sync.deployments.query({})[0]?.mirror).toBeUndefined();
      expect(host.requests).toEqual([]);
    }
  });
});
