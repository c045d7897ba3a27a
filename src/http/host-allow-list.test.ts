import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { HostAllowList, isLoopbackName } from './host-allow-list.ts';

const LOCAL = { host: '127.0.0.1', allowedHosts: [] };

describe('names of this machine', () => {
  test.each([
    ['localhost', true],
    ['LOCALHOST:1', true],
    ['localhost.', true],
    ['a.b.localhost:80', true],
    ['127.0.0.1', true],
    ['127.255.0.9:65535', true],
    ['[::1]', true],
    ['[::1]:80', true],
    ['', false],
    [' localhost', false],
    ['localhost ', false],
    ['localhost:', false],
    ['localhost:123456', false],
    ['localhost:-1', false],
    ['localhost..', false],
    ['localhost.example', false],
    ['xlocalhost', false],
    ['127.0.0.1.example', false],
    ['127.0.0.256', false],
    ['127.1', false],
    ['0.0.0.0', false],
    ['::1', false],
    ['[::1', false],
    ['[::2]', false],
    ['[localhost]', false],
    ['localhost\u0000', false],
    ['ｌocalhost', false],
    ['user@localhost', false],
    ['localhost,example', false],
  ])('%j: %s', (host, isOwn) => {
    const hosts = new HostAllowList(LOCAL);
    // Twice: what is remembered must not change an answer.
    expect([hosts.accepts(host, undefined), hosts.accepts(host, undefined)]).toEqual([
      isOwn,
      isOwn,
    ]);
  });
});

test('with a port of its own, it must be that one; 80 and 443 may be left out', () => {
  const hosts = new HostAllowList({ host: 'localhost', allowedHosts: ['a', 'b:443', 'c:99'] });
  expect(hosts.accepts('localhost:4800', 4800)).toBe(true);
  expect(hosts.accepts('localhost:4800', 4801)).toBe(false);
  expect(hosts.accepts('localhost', 4800)).toBe(false);
  expect(hosts.accepts('localhost', 80)).toBe(true);
  expect(hosts.accepts('a:4800', 4800)).toBe(true);
  expect(hosts.accepts('a', 4800)).toBe(false);
  expect(hosts.accepts('b', 4800)).toBe(true);
  expect(hosts.accepts('b:443', 4800)).toBe(true);
  expect(hosts.accepts('b:4800', 4800)).toBe(false);
  expect(hosts.accepts('c:99', 4800)).toBe(true);
  expect(hosts.accepts('c', 4800)).toBe(false);
});

test('addresses are names of a service that others may connect to', () => {
  const wide = new HostAllowList({ host: '0.0.0.0', allowedHosts: [] });
  expect(wide.accepts('10.1.2.3:80', undefined)).toBe(true);
  expect(wide.accepts('[2001:db8::1]', undefined)).toBe(true);
  expect(wide.accepts('machine', undefined)).toBe(false);
  expect(wide.accepts('10.1.2.3.example', undefined)).toBe(false);
});

test('no order of requests makes a list forget what it refuses', () => {
  const hosts = ['localhost', 'localhost:1', 'a.example', 'b.example:2', '127.0.0.1', '', 'x'];
  fc.assert(
    fc.property(fc.array(fc.tuple(fc.constantFrom(...hosts), fc.constantFrom(1, 2))), (asked) => {
      const rules = { host: 'localhost', allowedHosts: ['a.example', 'b.example:2'] };
      const long = new HostAllowList(rules);
      for (const [host, port] of asked) {
        expect(long.accepts(host, port)).toBe(new HostAllowList(rules).accepts(host, port));
      }
    }),
  );
});

test('loopback names', () => {
  for (const name of ['localhost', 'a.localhost', '127.0.0.1', '::1']) {
    expect(isLoopbackName(name)).toBe(true);
  }
  for (const name of ['', 'localhost.a', '127.0.0.1.a', '::', '1.0.0.127']) {
    expect(isLoopbackName(name)).toBe(false);
  }
});
