import nodemailer, { type Transporter } from 'nodemailer';
import type { DueDelivery } from '../model/notification.ts';
import { NO_ANSWER, failed, type Sender, type SendResult, shortAnswer } from './sender.ts';

export type EmailOptions = {
  /** smtp:// or smtps://, with user and password when the server wants them. Secret. */
  readonly smtpUrl: string;
  readonly from: string;
  readonly timeoutMs: number;
  readonly connectionsMax: number;
};

const TIMED_OUT = 'timed out';

/** Hands mails to an SMTP server over a few kept connections. */
export class EmailSender implements Sender {
  readonly #transport: Transporter;
  readonly #from: string;

  constructor(options: EmailOptions) {
    this.#from = options.from;
    this.#transport = nodemailer.createTransport({
      url: options.smtpUrl,
      pool: true,
      maxConnections: options.connectionsMax,
      connectionTimeout: options.timeoutMs,
      greetingTimeout: options.timeoutMs,
      socketTimeout: options.timeoutMs,
      // Nothing of a notification may make the mailer read files or fetch addresses.
      disableFileAccess: true,
      disableUrlAccess: true,
    });
  }

  async send(delivery: DueDelivery, signal: AbortSignal): Promise<SendResult> {
    const { notification, endpoint } = delivery;
    const sent = this.#transport.sendMail({
      from: this.#from,
      // An object: no text of the address can become a second recipient.
      to: { name: '', address: endpoint.address },
      subject: notification.title,
      text: notification.body,
      // The same in every attempt, so that a mail that arrived twice can be reported.
      messageId: `<${notification.id}.${endpoint.id}@gatehouse-notify>`,
      date: new Date(notification.createdAtMs),
      headers: { 'Auto-Submitted': 'auto-generated' },
    });
    const { promise: timedOut, reject } = Promise.withResolvers<never>();
    const onAbort = (): void => reject(new Error(TIMED_OUT));
    signal.addEventListener('abort', onAbort, { once: true });
    try {
      const { response } = (await Promise.race([sent, timedOut])) as { readonly response?: string };
      return {
        isSent: true,
        answerStatus: statusOf(response),
        answer: shortAnswer(response ?? ''),
      };
    } catch (error) {
      // A late answer is of no interest any more.
      sent.catch(() => undefined);
      return smtpFailure(error);
    } finally {
      signal.removeEventListener('abort', onAbort);
    }
  }

  close(): void {
    this.#transport.close();
  }
}

/** What nodemailer's error codes mean to whoever reads `last_error`; its own texts may hold a login. */
const PROBLEM_OF_CODE: Readonly<Record<string, string>> = {
  EAUTH: 'the mail server refused the login',
  EDNS: 'the mail server has no address',
  ECONNECTION: 'no connection to the mail server',
  ESOCKET: 'no connection to the mail server',
  ETIMEDOUT: 'timed out',
  ETLS: 'no secure connection to the mail server',
};

/** Of the last line that the server wrote. */
function statusOf(response: string | undefined): number {
  return Number(/^\d{3}/.exec(response ?? '')?.[0] ?? 0);
}

/** 5xx of the recipient or the message is for good; trouble with the connection or login is not. */
function smtpFailure(error: unknown): SendResult {
  if (!(error instanceof Error)) return failed('the mail was not taken');
  if (error.message === TIMED_OUT) return failed(TIMED_OUT);
  const status = 'responseCode' in error ? Number(error.responseCode) : 0;
  const command = 'command' in error ? String(error.command) : '';
  const code = 'code' in error ? String(error.code) : '';
  if (status > 0) {
    const isFinal = status >= 500 && ['RCPT TO', 'DATA', 'MAIL FROM'].includes(command);
    const answer = 'response' in error ? shortAnswer(String(error.response)) : NO_ANSWER.answer;
    return failed(`SMTP ${status}`, isFinal, undefined, { answerStatus: status, answer });
  }
  // Refused before anything was sent: the server does not take such an address at all.
  if (code === 'EENVELOPE') return failed('the mail server cannot take this address', true);
  return failed(PROBLEM_OF_CODE[code] ?? 'no connection to the mail server');
}
