import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { type AddressInfo, createServer, type Socket } from 'node:net';
import { promisify } from 'node:util';
import { SMTPServer, type SMTPServerOptions } from 'smtp-server';
import { expect, onTestFinished, test } from 'vitest';
import { mustCall, notify, SERVICE_TOKEN } from './support/notify-process.ts';
import { serveNotify, type ServedNotify } from './support/notify-service.ts';
import { poll } from './support/poll.ts';

type Mail = { readonly from: string; readonly to: readonly string[]; readonly text: string };

const MAIL = { channels: ['CHANNEL_EMAIL'] };

/** A real SMTP server on the loopback; `hooks` replace its behaviour. */
async function startSmtp(
  hooks: Partial<SMTPServerOptions> = {},
): Promise<{ readonly port: number; readonly mails: readonly Mail[]; readonly cut: () => void }> {
  const sockets = new Set<Socket>();
  const mails: Mail[] = [];
  const server = new SMTPServer({
    authOptional: true,
    disabledCommands: ['STARTTLS'],
    logger: false,
    onData(stream, session, callback) {
      const chunks: Buffer[] = [];
      stream.on('data', (chunk: Buffer) => chunks.push(chunk));
      stream.on('end', () => {
        const { mailFrom, rcptTo } = session.envelope;
        mails.push({
          from: mailFrom === false ? '' : mailFrom.address,
          to: rcptTo.map(({ address }) => address),
          text: Buffer.concat(chunks).toString(),
        });
        callback();
      });
    },
    ...hooks,
  });
  // A client that is cut off is no failure of the test.
  server.on('error', () => undefined);
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    server.close();
  });
  server.server.on('connection', (socket: Socket) => sockets.add(socket));
  const cut = (): void => {
    for (const socket of sockets) socket.destroy();
    sockets.clear();
  };
  return { port: (server.server.address() as AddressInfo).port, mails, cut };
}

async function startWithMail(
  port: number,
  env: Record<string, string> = {},
): Promise<ServedNotify> {
  const service = await serveNotify({
    NOTIFY_SMTP_URL: `smtp://127.0.0.1:${port}`,
    NOTIFY_MAIL_FROM: 'gatehouse@example.test',
    ...env,
  });
  await putMail(service, 'ann@example.test');
  return service;
}

async function putMail(service: ServedNotify, address: string): Promise<void> {
  await mustCall(service, 'PutEndpoint', {
    endpoint: { id: 'mail', tenant_id: 'acme', user_id: 'ann', channel: 'CHANNEL_EMAIL', address },
  });
}

async function delivery(service: ServedNotify): Promise<Record<string, unknown> | undefined> {
  const query = { tenant_id: 'acme', user_id: 'ann', channels: ['CHANNEL_EMAIL'], page_size: 1 };
  const { notifications } = await mustCall(service, 'ListNotifications', query);
  return (notifications as { deliveries: Record<string, unknown>[] }[])[0]?.deliveries[0];
}

test('the example of the documentation sends a mail as it is printed', async () => {
  const { port, mails } = await startSmtp();
  const service = await startWithMail(port);
  const text = readFileSync('docs/notifications.md', 'utf8');
  const helper = /^notify\(\) \{[^]*?\}$/m.exec(text)?.[0] ?? '';
  const example = /^## Mail\n[^]*?```sh\n([^]*?)```/m.exec(text)?.[1] ?? '';
  const script = `${helper}\n${example}`.replaceAll('localhost:9200', '"$ADDRESS"');
  const env = {
    PATH: process.env['PATH'],
    ADDRESS: new URL(service.internalUrl).host,
    SERVICE_TOKEN,
  };
  const { stdout } = await promisify(execFile)('bash', ['-euc', script], { env });
  expect(stdout).not.toContain('"code"');
  expect(stdout).toContain('"channel":"CHANNEL_EMAIL"');
  await expect.poll(() => mails.length, { timeout: 30_000 }).toBe(1);
  expect(mails[0]?.to).toEqual(['ann@example.test']);
  expect(mails[0]?.text).toContain('All 812 tests.');
});

/** An error as smtp-server answers it. */
const refuse = (responseCode: number): Error => Object.assign(new Error('no'), { responseCode });

test('sends a mail to the user alone, with what is not ASCII in subject and text', async () => {
  const smtp = await startSmtp();
  const service = await startWithMail(smtp.port);
  const title = 'Grüße, 日本語 🎉 "quoted" \u0007 <b@c.d>, x@y.z';
  const stored = await notify(service, { ...MAIL, title, body: 'Zeile\n.\nBcc: x@y.z\n.hidden' });
  await poll(() => delivery(service)).toMatchObject({
    channel: 'CHANNEL_EMAIL',
    status: 'DELIVERY_STATUS_SENT',
    attempts: 1,
  });
  const [mail] = smtp.mails;
  expect([mail?.from, mail?.to]).toEqual(['gatehouse@example.test', ['ann@example.test']]);
  const [head = '', ...rest] = (mail?.text ?? '').split('\r\n\r\n');
  const unfolded = head.replaceAll(/\r\n\s+/g, ' ');
  // Encoded words are ASCII: nothing of the title can become another header.
  expect(head).toMatch(/^[\x20-\x7e\r\n\t]*$/);
  const subject = /^Subject: (.*)$/m.exec(unfolded)?.[1] ?? '';
  expect(decodedWords(subject)).toBe(title);
  expect(unfolded).not.toMatch(/^Bcc:/im);
  expect(unfolded).toMatch(/^Auto-Submitted: auto-generated$/m);
  expect(unfolded).toContain(`Message-ID: <${String(stored['id'])}.mail@gatehouse-notify>`);
  expect(rest.join('\r\n\r\n').trimEnd()).toBe('Zeile\r\n.\r\nBcc: x@y.z\r\n.hidden');
});

test('tries again after a passing refusal of any stage, and after dropped connections', async () => {
  const script = ['connect', 'mail', 'rcpt', 'cut'];
  /** Whether it is this trouble's turn. */
  const isNext = (trouble: string): boolean => {
    if (script[0] !== trouble) return false;
    script.shift();
    return true;
  };
  const smtp = await startSmtp({
    onConnect: (_session, callback) => callback(isNext('connect') ? refuse(421) : undefined),
    onMailFrom: (_address, _session, callback) =>
      callback(isNext('mail') ? refuse(451) : undefined),
    onRcptTo(_address, _session, callback) {
      if (isNext('rcpt')) callback(refuse(450));
      else if (isNext('cut')) smtp.cut();
      else callback();
    },
  });
  const service = await startWithMail(smtp.port, { NOTIFY_SEND_TIMEOUT_MS: '1000' });
  await notify(service, MAIL);
  await poll(() => delivery(service)).toMatchObject({ status: 'DELIVERY_STATUS_SENT' });
  expect(smtp.mails).toHaveLength(1);
  expect(script).toEqual([]);
  // The mailer itself takes another connection for the one that was cut.
  const errors = service.events('retry_failed').map(({ error }) => error);
  expect(errors).toEqual(['SMTP 421', 'SMTP 451', 'SMTP 450']);
});

test('a refusal for good of the recipient ends it at the first attempt', async () => {
  const smtp = await startSmtp({
    onRcptTo(_address, _session, callback) {
      callback(refuse(550));
    },
  });
  const service = await startWithMail(smtp.port);
  await notify(service, MAIL);
  await poll(() => delivery(service)).toMatchObject({
    status: 'DELIVERY_STATUS_DEAD',
    attempts: 1,
    last_error: 'SMTP 550',
  });
});

test('a refusal for good of the message ends it, one of the login does not', async () => {
  const smtp = await startSmtp({
    onData(stream, _session, callback) {
      stream.resume();
      stream.on('end', () => callback(refuse(554)));
    },
  });
  const service = await startWithMail(smtp.port);
  await notify(service, MAIL);
  await poll(() => delivery(service)).toMatchObject({
    status: 'DELIVERY_STATUS_DEAD',
    attempts: 1,
    last_error: 'SMTP 554',
  });
  const strict = await startSmtp({
    authOptional: false,
    allowInsecureAuth: true,
    onAuth(_auth, _session, callback) {
      callback(refuse(535));
    },
  });
  const other = await startWithMail(strict.port, {
    NOTIFY_SMTP_URL: `smtp://user:hunter2@127.0.0.1:${strict.port}`,
    NOTIFY_SEND_ATTEMPTS: '2',
  });
  await notify(other, MAIL);
  await poll(() => delivery(other)).toMatchObject({
    status: 'DELIVERY_STATUS_DEAD',
    attempts: 2,
    last_error: 'SMTP 535',
  });
  expect(other.rawLog.join('\n')).not.toContain('hunter2');
});

test('a server that is not there, or says nothing, is tried again', async () => {
  const mute = createServer((socket) => socket.on('error', () => undefined));
  await new Promise<void>((resolve) => mute.listen(0, '127.0.0.1', resolve));
  onTestFinished(() => {
    mute.close();
  });
  const { port } = mute.address() as AddressInfo;
  const env = { NOTIFY_SEND_TIMEOUT_MS: '200', NOTIFY_SEND_ATTEMPTS: '2' };
  const service = await startWithMail(port, env);
  await notify(service, MAIL);
  await poll(() => delivery(service)).toMatchObject({
    status: 'DELIVERY_STATUS_DEAD',
    attempts: 2,
    last_error: 'timed out',
  });
  const absent = await startWithMail(1, env);
  await notify(absent, MAIL);
  await poll(() => delivery(absent)).toMatchObject({
    status: 'DELIVERY_STATUS_DEAD',
    last_error: 'no connection to the mail server',
  });
});

/** RFC 2047, as far as it is used here. */
function decodedWords(text: string): string {
  const joined = text.replaceAll(/\?=\s+=\?/g, '?==?');
  const bytes = joined.replaceAll(
    /=\?UTF-8\?([QB])\?([^?]*)\?=/gi,
    (_word, encoding: string, content: string) =>
      encoding.toUpperCase() === 'B'
        ? Buffer.from(content, 'base64').toString('latin1')
        : content
            .replaceAll('_', ' ')
            .replaceAll(/=([0-9A-F]{2})/gi, (_escape, hex: string) =>
              String.fromCharCode(Number.parseInt(hex, 16)),
            ),
  );
  return Buffer.from(bytes, 'latin1').toString('utf8');
}
