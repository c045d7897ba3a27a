import { createHmac } from 'node:crypto';
import { appendFile } from 'node:fs/promises';
import { join } from 'node:path';
import { describe, expect, test } from 'vitest';
import type { InboxDelivery } from '../../../src/runner/sync/inbox.ts';
import type { SyncService } from '../../../src/runner/sync/sync-service.ts';
import { createFixture, type Fixture } from './fixture.ts';

const SECRET = "It's a Secret to Everybody";
const DAY_MS = 24 * 3600 * 1000;

type Sent = {
  readonly body?: string | Buffer;
  readonly secret?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly id?: string;
  readonly event?: string;
};

function send(sync: SyncService, sent: Sent = {}): Promise<InboxDelivery> {
  const { body = '{"a":1}', secret = SECRET, id = 'd-1', event = 'push' } = sent;
  const rawBody = Buffer.from(body);
  const signature = createHmac('sha256', secret).update(rawBody).digest('hex');
  const headers = new Headers({
    'content-type': 'application/json',
    'x-host-event': event,
    'x-host-delivery': id,
    'x-host-signature-256': `sha256=${signature}`,
    ...sent.headers,
  });
  for (const [name, value] of Object.entries(sent.headers ?? {})) {
    if (value === '') headers.delete(name);
  }
  return sync.verifyDelivery({ headers, rawBody });
}

function withSecret(): Promise<Fixture> {
  return createFixture({ settings: { webhookSecret: SECRET } });
}

describe('signatures', () => {
  test('the published vector is right: what follows it is only that it is no JSON', async () => {
    const { sync } = await withSecret();
    const signature = 'sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17';
    for (const name of ['x-host-signature-256', 'x-hub-signature-256']) {
      const headers = { 'x-host-signature-256': '', [name]: signature };
      await expect(send(sync, { body: 'Hello, World!', headers })).rejects.toMatchObject({
        reason: 'INVALID_JSON',
      });
    }
    await expect(
      send(sync, { body: 'Hello, World?', headers: { 'x-host-signature-256': signature } }),
    ).rejects.toMatchObject({ reason: 'INVALID_SIGNATURE' });
  });

  test('both names of every header are taken, upper case too', async () => {
    const { sync } = await withSecret();
    const body = '{"zen":"ü"}';
    const hex = createHmac('sha256', SECRET).update(body).digest('hex').toUpperCase();
    const headers = new Headers({
      'x-hub-signature-256': `SHA256=${hex}`,
      'x-github-event': 'push',
      'x-github-delivery': 'abc',
    });
    const delivery = await sync.verifyDelivery({ headers, rawBody: Buffer.from(body) });
    expect(delivery).toMatchObject({
      kind: 'accepted',
      event: 'push',
      deliveryId: 'abc',
      payload: { zen: 'ü' },
    });
  });

  const good = createHmac('sha256', SECRET).update('{"a":1}').digest('hex');
  test.each([
    ['none', ''],
    ['no prefix', good],
    ['another algorithm', `sha1=${good}`],
    ['too short', `sha256=${good.slice(0, 62)}`],
    ['too long', `sha256=${good}00`],
    ['not hexadecimal', `sha256=${'g'.repeat(64)}`],
    ['another value', `sha256=${'0'.repeat(64)}`],
    ['two in one header', `sha256=${good}, sha256=${good}`],
    ['line break', `sha256=${good} x`],
  ])('refused: %s', async (_, value) => {
    const { sync } = await withSecret();
    const failure = await send(sync, { headers: { 'x-host-signature-256': value } }).catch(
      (error: unknown) => error as Error,
    );
    expect(failure).toMatchObject({ reason: 'INVALID_SIGNATURE' });
    expect(await sync.audit({ kind: 'webhook' })).toMatchObject([{ result: 'rejected' }]);
  });

  test('a flood of wrong ones does not flood the audit', async () => {
    const { sync, clock } = await withSecret();
    clock.ms -= clock.ms % 60_000;
    for (let index = 0; index < 100; index++) {
      await expect(send(sync, { secret: 'guess' })).rejects.toMatchObject({
        reason: 'INVALID_SIGNATURE',
      });
    }
    expect(await sync.audit({ kind: 'webhook' })).toHaveLength(60);
    clock.ms += 60_000;
    await expect(send(sync, { secret: 'guess' })).rejects.toThrow('signature');
    expect(await sync.audit({ kind: 'webhook' })).toHaveLength(61);
    expect(await sync.audit({ kind: 'webhook', limit: 3 })).toHaveLength(3);
    expect(await sync.audit({ since: new Date(clock.ms).toISOString() })).toHaveLength(1);
  });

  test('two signature headers are refused, also two right ones', async () => {
    const { sync } = await withSecret();
    const headers = { 'x-hub-signature-256': `sha256=${good}` };
    await expect(send(sync, { headers })).rejects.toMatchObject({ reason: 'INVALID_SIGNATURE' });
  });

  test('the secret of the environment wins; none refuses everything', async () => {
    const { sync } = await withSecret();
    await sync.putConfig({ host: { webhookSecret: 'configured' } });
    await expect(send(sync, { secret: 'configured' })).rejects.toMatchObject({
      reason: 'INVALID_SIGNATURE',
    });
    expect(await send(sync)).toMatchObject({ kind: 'accepted' });
    const other = await createFixture({ config: { host: { webhookSecret: 'configured' } } });
    expect(await send(other.sync, { secret: 'configured' })).toMatchObject({ kind: 'accepted' });
    await other.sync.putConfig({});
    await expect(send(other.sync, { secret: '' })).rejects.toMatchObject({
      reason: 'WEBHOOK_SECRET_MISSING',
    });
  });
});

describe('bodies and headers', () => {
  test('a form carries the payload; the signature is over the form', async () => {
    const { sync } = await withSecret();
    const body = new URLSearchParams({ payload: '{"a":"é&="}' }).toString();
    const headers = { 'content-type': 'application/x-www-form-urlencoded; charset=utf-8' };
    expect(await send(sync, { body, headers })).toMatchObject({ payload: { a: 'é&=' } });
    await expect(send(sync, { body: 'other=1', headers, id: 'd-2' })).rejects.toMatchObject({
      reason: 'INVALID_JSON',
    });
  });

  test('what is no object is refused without being repeated, and can be sent again', async () => {
    const { sync } = await withSecret();
    for (const body of ['', 'secret-in-body', '[1]', 'null', '{"a":']) {
      const failure = await send(sync, { body }).catch((error: unknown) => error as Error);
      expect(failure).toMatchObject({ reason: 'INVALID_JSON' });
      expect((failure as Error).message).not.toContain('secret-in-body');
    }
    expect(await send(sync)).toMatchObject({ kind: 'accepted' });
  });

  test('an event is needed, an id is not', async () => {
    const { sync } = await withSecret();
    for (const event of ['', 'a b', '../x']) {
      await expect(send(sync, { headers: { 'x-host-event': event } })).rejects.toMatchObject({
        reason: 'INVALID_REQUEST',
        metadata: { field: 'x-host-event' },
      });
    }
    await expect(send(sync, { id: 'a b' })).rejects.toMatchObject({ reason: 'INVALID_REQUEST' });
    expect(await send(sync, { headers: { 'x-host-delivery': '' } })).toMatchObject({
      kind: 'accepted',
      deliveryId: expect.stringMatching(/^sig-[0-9a-f]{64}$/),
    });
  });

  test('25 MiB are the most', async () => {
    const { sync } = await withSecret();
    const body = Buffer.alloc(25 * 1024 * 1024 + 1, ' ');
    await expect(send(sync, { body })).rejects.toMatchObject({ reason: 'BODY_TOO_LARGE' });
  });

  test('a ping is answered each time', async () => {
    const { sync } = await withSecret();
    expect(await send(sync, { event: 'ping' })).toEqual({ kind: 'ping', deliveryId: 'd-1' });
    expect(await send(sync, { event: 'ping' })).toMatchObject({ kind: 'ping' });
  });
});

describe('replays', () => {
  test('by the id and, under a new id, by the signature; also after a restart', async () => {
    const fixture = await withSecret();
    expect(await send(fixture.sync)).toMatchObject({ kind: 'accepted' });
    expect(await send(fixture.sync)).toMatchObject({ kind: 'duplicate' });
    expect(await send(fixture.sync, { id: 'd-2' })).toMatchObject({ kind: 'duplicate' });
    const sync = await fixture.restart();
    expect(await send(sync, { id: 'd-3' })).toMatchObject({ kind: 'duplicate' });
    expect(await send(sync, { id: 'd-1', body: '{"other":1}' })).toMatchObject({
      kind: 'duplicate',
    });
    expect(await send(sync, { id: 'd-4', body: '{"other":2}' })).toMatchObject({
      kind: 'accepted',
    });
  });

  test('two at once: one counts', async () => {
    const { sync } = await withSecret();
    const both = await Promise.all([send(sync), send(sync, { id: 'd-2' })]);
    expect(both.map(({ kind }) => kind).toSorted()).toEqual(['accepted', 'duplicate']);
  });

  test('a signature is forgotten after a day, an id after a week', async () => {
    const fixture = await withSecret();
    const { sync, clock } = fixture;
    await send(sync);
    clock.ms += DAY_MS + 1;
    expect(await send(sync, { id: 'd-2' })).toMatchObject({ kind: 'accepted' });
    expect(await send(sync, { id: 'd-1', body: '{"b":1}' })).toMatchObject({ kind: 'duplicate' });
    clock.ms += 6 * DAY_MS;
    const reopened = await fixture.restart();
    expect(await send(reopened, { id: 'd-1', body: '{"b":1}' })).toMatchObject({
      kind: 'accepted',
    });
  });

  test('what could not be handled may come again, also after a restart and a torn line', async () => {
    const fixture = await withSecret();
    const first = await send(fixture.sync);
    if (first.kind !== 'accepted') throw new Error('it was the first');
    await first.release();
    expect(await send(fixture.sync)).toMatchObject({ kind: 'accepted' });
    const second = await send(fixture.sync, { id: 'd-9', body: '{"c":1}' });
    if (second.kind !== 'accepted') throw new Error('it was the first');
    await second.release();
    await appendFile(join(fixture.stateDir, 'sync', 'deliveries.jsonl'), '{"id":"d-9","dig');
    const sync = await fixture.restart();
    expect(fixture.problems).toMatchObject([{ event: 'jsonl.line_torn' }]);
    expect(await send(sync, { id: 'd-9', body: '{"c":1}' })).toMatchObject({ kind: 'accepted' });
    expect(await send(sync)).toMatchObject({ kind: 'duplicate' });
  });
});

describe('caches follow events', () => {
  const repository = { full_name: 'Octo/Demo' };
  const issue = {
    number: 5,
    title: 'From the hook',
    state: 'open',
    user: { login: 'mona' },
    labels: [{ name: 'bug' }],
    body: 'b',
    created_at: '2026-01-01T00:00:00Z',
    updated_at: '2026-01-02T00:00:00Z',
    html_url: 'https://example.com/5',
  };

  test('of issues, discussions and releases, without asking the host', async () => {
    const fixture = await withSecret();
    const { sync, host } = fixture;
    let count = 0;
    const tell = (event: string, payload: object): Promise<InboxDelivery> =>
      send(sync, { event, id: `d-${++count}`, body: JSON.stringify(payload) });
    await tell('issues', { action: 'opened', issue, repository });
    expect(sync.entries('issues', {})).toMatchObject([
      { number: 5, title: 'From the hook', labels: ['bug'], author: 'mona' },
    ]);
    // An event that arrives late does not turn time back.
    await tell('issues', {
      action: 'edited',
      issue: { ...issue, title: 'old', updated_at: '2026-01-01T12:00:00Z' },
      repository,
    });
    expect(sync.entries('issues', {})[0]?.title).toBe('From the hook');
    await tell('discussion', {
      action: 'created',
      discussion: { ...issue, category: { name: 'Ideas' } },
      repository,
    });
    expect(sync.entries('discussions', {})).toMatchObject([{ number: 5, category: 'Ideas' }]);
    await tell('release', {
      action: 'published',
      release: { id: 9, tag_name: 'v1', created_at: '2026-01-01T00:00:00Z' },
      repository,
    });
    expect(sync.entries('releases', {})).toMatchObject([{ id: 9, tag: 'v1', title: 'v1' }]);
    await tell('issues', {
      action: 'opened',
      issue: { ...issue, number: 6 },
      repository: { full_name: 'evil/demo' },
    });
    await tell('issues', {
      action: 'opened',
      issue: { ...issue, number: 7, pull_request: {} },
      repository,
    });
    await tell('issues', { action: 'opened', issue: { number: 'x' }, repository });
    await tell('issue_comment', { action: 'deleted', issue, comment: { id: 1 }, repository });
    expect(sync.entries('issues', {}).map(({ number }) => number)).toEqual([5]);
    const reopened = await fixture.restart();
    expect(reopened.entries('issues', {}).map(({ number }) => number)).toEqual([5]);
    await send(reopened, {
      event: 'issues',
      id: 'last',
      body: JSON.stringify({ action: 'deleted', issue, repository }),
    });
    expect(reopened.entries('issues', {})).toEqual([]);
    expect(host.requests).toEqual([]);
  });

  test('and a pull of another repository, under way meanwhile, leaves them alone', async () => {
    const { sync, host } = await withSecret();
    host.state.addIssue({ title: 'of the old repository' });
    let go = (): void => undefined;
    const held = new Promise<void>((resolve) => {
      go = resolve;
    });
    host.plan({ match: /issues/, delay: held });
    const pulling = sync.pull({ only: ['issues'] });
    await sync.putConfig({
      enabled: true,
      host: { owner: 'octo', repo: 'new', pollIntervalMs: 0 },
    });
    const body = JSON.stringify({ action: 'opened', issue, repository: { full_name: 'octo/new' } });
    await send(sync, { event: 'issues', body });
    go();
    expect((await pulling).errors).toMatchObject([{ kind: 'issues', reason: 'CANCELLED' }]);
    expect(sync.entries('issues', {}).map(({ title }) => title)).toEqual(['From the hook']);
  });

  test('but not while sync or the mirror is off', async () => {
    const { sync, host } = await withSecret();
    const { owner, repo } = host;
    await sync.putConfig({
      enabled: true,
      host: { owner, repo, syncIssues: false, pollIntervalMs: 0 },
    });
    const body = JSON.stringify({ action: 'opened', issue, repository });
    expect(await send(sync, { event: 'issues', body })).toMatchObject({ kind: 'accepted' });
    expect(sync.entries('issues', {})).toEqual([]);
  });
});
