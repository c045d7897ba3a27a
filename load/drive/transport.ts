import { LoadClient } from '../../bench/harness/client.ts';
import { RawPool, requestBytes } from '../harness/raw-http.ts';
import type { Target } from './messages.ts';

/** An answer; undefined when the connection was lost before it. */
export type Answer = { readonly status: number; readonly body: Buffer } | undefined;

/** Sends one prepared request: tells when it got a connection, where that is known, then answers exactly once. */
export type Send = (onSent: () => void, onAnswer: (answer: Answer) => void) => void;

export type Transport = {
  prepare(path: string, body: Buffer): Send;
  close(): Promise<void>;
};

/** Whether a host is this machine by its loopback. */
export function isLoopback(hostname: string): boolean {
  const host = hostname.replace(/^\[|\]$/g, '').toLowerCase();
  return /^127(\.\d{1,3}){3}$/.test(host) || host === '::1' || /(^|\.)localhost$/.test(host);
}

/**
 * A service on this machine is asked over connections of our own, which cost a fifth of a whole client's time and know
 * this service alone; what is elsewhere, or behind TLS, may be a proxy, and gets undici's client.
 */
export function openTransport(
  target: Target,
  connections: number,
  headers: Readonly<Record<string, string>>,
): Transport {
  const { protocol, hostname, port } = new URL(target.url);
  if (protocol === 'http:' && isLoopback(hostname)) {
    const host = hostname.replace(/^\[|\]$/g, '');
    const address = host.endsWith('localhost') ? '127.0.0.1' : host;
    const pool = new RawPool(Number(port === '' ? 80 : port), connections, address);
    return {
      prepare: (path, body) => {
        const bytes = requestBytes(path, body, target.token, headers);
        return (onSent, onAnswer) => pool.post(bytes, onSent, onAnswer);
      },
      close: () => {
        pool.close();
        return Promise.resolve();
      },
    };
  }
  const client = new LoadClient({ baseUrl: target.url, connections, token: target.token });
  return {
    prepare: (path, body) => (onSent, onAnswer) => {
      onSent();
      client.post(path, body, onAnswer, headers);
    },
    close: () => client.close(),
  };
}
