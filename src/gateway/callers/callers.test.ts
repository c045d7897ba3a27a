import { createHash } from 'node:crypto';
import { expect, test } from 'vitest';
import { parseCallersFile } from './callers-file.ts';
import { Callers } from './callers.ts';
import { tokenHash } from './credential-table.ts';
import { mustRule } from './method-rules.ts';

const scope = { projects: ['atlas'], tenants: ['acme'], services: '*', methods: '*' };
const file = (...callers: unknown[]) => parseCallersFile(JSON.stringify({ callers }));
const create = (tokens: readonly string[], ...callers: unknown[]): Callers =>
  new Callers({
    tokens,
    file: callers.length === 0 ? undefined : file(...callers),
    defaultProjectId: 'default',
    onKeysFetched: () => undefined,
  });
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');
const nameOf = (callers: Callers, token: string): string | undefined =>
  callers.peek(`Bearer ${token}`)?.caller.name;

test('each token finds its caller, and those of the old list one that reaches everything', () => {
  const callers = create(
    ['old:token'],
    { name: 'a', tokens: ['a1', 'a2'], scopes: [scope] },
    { name: 'b', tokens: ['b1'], scopes: [] },
  );
  expect(
    ['a1', 'a2', 'b1', 'old:token', 'a3', 'old', ''].map((one) => nameOf(callers, one)),
  ).toEqual(['a', 'a', 'b', 'service-token', undefined, undefined, undefined]);
  expect(callers.peek('bearer   a1')?.caller.name).toBe('a');
  expect(callers.peek('Basic a1')).toBeNull();
  expect(callers.peek('')).toBeNull();
});

test('a token that the file has as a digest is found once it was presented', () => {
  const callers = create([], { name: 'a', token_sha256: [sha256('hidden')], scopes: [scope] });
  expect(callers.peek('Bearer hidden')).toBeNull();
  expect(callers.identify('Bearer hiddem')).toBeNull();
  expect(callers.identify('Bearer hidden')).toMatchObject({ caller: { name: 'a' } });
  expect(nameOf(callers, 'hidden')).toBe('a');
});

test('another file keeps credentials of the same caller with the same scopes, and revokes all others (C2, C3)', () => {
  const a = { name: 'a', tokens: ['kept', 'gone'], scopes: [scope] };
  const hidden = { name: 'h', token_sha256: [sha256('hidden')], scopes: [scope] };
  const narrowed = { name: 'n', tokens: ['n1'], scopes: [scope] };
  const callers = create(['old'], a, narrowed, hidden);
  expect(callers.identify('Bearer hidden')).not.toBeNull();
  const of = (token: string) => callers.peek(`Bearer ${token}`);
  const before = ['kept', 'gone', 'n1', 'hidden', 'old'].map((token) => of(token));
  callers.replaceFile(
    file(
      { ...a, tokens: ['kept', 'new'], rate_limit: { per_second: 5 } },
      { ...narrowed, scopes: [{ ...scope, methods: ['read'] }] },
      hidden,
    ),
  );
  expect(before.map((one) => one?.revoked.aborted)).toEqual([false, true, true, false, false]);
  expect([of('kept'), of('hidden'), of('old')]).toEqual([before[0], before[3], before[4]]);
  expect(of('gone')).toBeNull();
  expect(of('n1')?.revoked.aborted).toBe(false);
  callers.replaceFile(file(narrowed));
  expect([before[0]?.revoked.aborted, before[3]?.revoked.aborted]).toEqual([true, true]);
  callers.replaceTokens(['other']);
  expect([before[4]?.revoked.aborted, nameOf(callers, 'old'), nameOf(callers, 'other')]).toEqual([
    true,
    undefined,
    'service-token',
  ]);
});

test('a token that is in the list and in the file has the scopes of the file', () => {
  const callers = create(['both'], { name: 'a', tokens: ['both'], scopes: [] });
  expect(nameOf(callers, 'both')).toBe('a');
});

test('with nothing configured everybody is let in; a file that is exchanged never makes it so (C1)', () => {
  const open = create([]);
  expect(open.peek('')?.caller.name).toBe('anonymous');
  const closed = create([], { name: 'a', tokens: ['a1'], scopes: [] });
  closed.replaceFile({ callers: [], issuers: [] });
  expect([closed.peek(''), closed.peek('Bearer a1')]).toEqual([null, null]);
  // Health and reflection may be open all the same, and nothing else through them.
  const check = mustRule('/workspace.v1.AuthzService/Check');
  const reaches = [open, closed].map((one) =>
    one.anonymous.caller.scopes.admitTenant(check, '', ''),
  );
  expect(reaches).toEqual([true, false]);
});

test('a caller has its burst at once, then its rate, by all of its tokens together', () => {
  const rate = { per_second: 0.001, burst: 3 };
  const callers = create([], { name: 'a', tokens: ['a1', 'a2'], scopes: [], rate_limit: rate });
  const takes = ['a1', 'a2', 'a1', 'a2'].map((token) => {
    const caller = callers.peek(`Bearer ${token}`)?.caller;
    return [caller?.canAcquire(), caller?.admits()];
  });
  expect(takes).toEqual([
    [true, true],
    [true, true],
    [true, true],
    [false, false],
  ]);
  expect(callers.counts.get('a')).toEqual({ accepted: 3, rateLimited: 1, outOfScope: 0 });
});

test('metrics know a hundred names, and one more for all others', () => {
  const many = Array.from({ length: 300 }, (_, i) => ({
    name: `c${i}`,
    tokens: [`t${i}`],
    scopes: [],
  }));
  const callers = create([], ...many);
  expect(callers.counts.size).toBe(101);
  callers.peek('Bearer t299')?.caller.admits();
  expect(callers.counts.get('other')).toMatchObject({ accepted: 1 });
});

test('the hash depends on the key and on every character from the start on', () => {
  const text = 'Bearer abcdefghijk';
  const all = new Set<number>();
  for (let length = 8; length <= text.length; length++) {
    all.add(tokenHash(text.slice(0, length), 7, 1, 2));
    all.add(tokenHash(`${text.slice(0, length - 1)}X`, 7, 1, 2));
  }
  expect(all.size).toBe(2 * (text.length - 7));
  expect(tokenHash(text, 7, 1, 2)).toBe(tokenHash(text.slice(7), 0, 1, 2));
  expect(tokenHash(text, 7, 1, 2)).not.toBe(tokenHash(text, 7, 2, 1));
});
