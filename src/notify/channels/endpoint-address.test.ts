import { describe, expect, test } from 'vitest';
import { isRefusedHost } from '../core/refused-host.ts';
import { emailChannel } from './email.ts';
import { webhookChannel } from './webhook.ts';

const ROWS = { email: emailChannel, webhook: webhookChannel };

/** As PutEndpoint has an address checked. */
function checkedAddress(name: keyof typeof ROWS, address: string, webhookPrivate: boolean) {
  const settings = { sendTimeoutMs: 1_000, webhookPrivate };
  return ROWS[name].outbound?.checkAddress('endpoint.address', address, settings) ?? '';
}

describe('mail addresses', () => {
  test.each([
    'ann@example.test',
    'ann.o-hara+tag@mail.example.test',
    'grüße@example.test',
    '"@example.test'.replace('"', "o'neil"),
    `${'x'.repeat(64)}@example.test`,
  ])('takes %j', (address) => {
    expect(checkedAddress('email', address, false)).toBe(address);
  });

  test.each([
    '',
    'ann',
    '@example.test',
    'ann@',
    '-ann@example.test',
    '-oQ/tmp@example.test',
    'ann@-example.test',
    'ann@example-.test',
    'ann@example..test',
    'ann\0@example.test',
    'ann@example.test\0',
    'an\u0001n@example.test',
    'an\u007fn@example.test',
    'an\u0085n@example.test',
    'an\u200bn@example.test',
    'an\u202en@example.test',
    'an\u00a0n@example.test',
    'an\ud800n@example.test',
    'ann\r\nbcc@example.test',
    'ann@example.test\n',
    'ann@bob@example.test',
    `${'x'.repeat(65)}@example.test`,
    `ann@${'x'.repeat(64)}.test`,
    `ann@${`${'x'.repeat(60)}.`.repeat(5)}test`,
  ])('refuses %j', (address) => {
    expect(() => checkedAddress('email', address, true)).toThrow(/endpoint\.address/);
  });
});

describe('addresses of webhooks', () => {
  const metadata = [
    '169.254.169.254',
    '169.254.170.2',
    '168.63.129.16',
    '100.100.100.200',
    '[fd00:ec2::254]',
    '[fd00:0ec2:0:0:0:0:0:254]',
    '[::ffff:169.254.169.254]',
    '[::ffff:a9fe:a9fe]',
    '[64:ff9b::a9fe:a9fe]',
    '[2002:a9fe:a9fe::1]',
    '[::a9fe:a9fe]',
    '0xa9fea9fe',
    '2852039166',
    '0251.0376.0251.0376',
    '169.16689662',
    'metadata.google.internal',
    'METADATA.google.internal.',
    'metadata',
  ];
  test.each(metadata)('never takes the metadata service as %s', (host) => {
    const url = `http://${host}/latest/meta-data/`;
    expect(() => checkedAddress('webhook', url, true)).toThrow(/endpoint\.address/);
    expect(() => checkedAddress('webhook', url, false)).toThrow(/endpoint\.address/);
  });

  test.each([
    '127.0.0.1',
    '10.0.0.1',
    '[::1]',
    'localhost',
    'localhost.',
    'a.localhost',
    '169.254.1.1',
  ])('takes the private %s where that is allowed alone', (host) => {
    expect(checkedAddress('webhook', `http://${host}/`, true)).toBe(`http://${host}/`);
    expect(() => checkedAddress('webhook', `http://${host}/`, false)).toThrow(/private/);
  });

  test.each([
    'http://exa\tmple.test/',
    'http://example.test/\n',
    '\u0001http://example.test/',
    'http://example.test/\ud800',
  ])('refuses %j', (url) => {
    expect(() => checkedAddress('webhook', url, true)).toThrow(/control characters/);
  });

  test('what a name resolved to is judged by the same rule', () => {
    expect(isRefusedHost('169.254.169.254', true)).toBe(true);
    expect(isRefusedHost('10.1.2.3', true)).toBe(false);
    expect(isRefusedHost('10.1.2.3', false)).toBe(true);
    expect(isRefusedHost('192.0.2.1', false)).toBe(true);
    expect(isRefusedHost('93.184.216.34', false)).toBe(false);
  });
});

test('a refused address of this machine names the setting that admits it, one of a metadata service does not', () => {
  const refusal = (address: string, allowsPrivate = false): string => {
    try {
      return checkedAddress('webhook', address, allowsPrivate);
    } catch (error) {
      return (error as Error).message;
    }
  };
  const setting = 'NOTIFY_WEBHOOK_ALLOW_PRIVATE=true';
  expect(refusal('http://localhost:8000/hook')).toContain(setting);
  expect(refusal('http://10.0.0.7/hook')).toContain(setting);
  expect(refusal('http://169.254.169.254/')).not.toContain(setting);
  expect(refusal('http://localhost:8000/hook', true)).toBe('http://localhost:8000/hook');
});
