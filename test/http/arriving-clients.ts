import net from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';

/** So many at once that some arrive in whatever moment a port closes. */
export const ARRIVING = 32;

/** What became of connections with one request each. */
export type Arrivals = {
  readonly outcomes: ReadonlyMap<string, number>;
  /** Resolves when so many were answered. */
  readonly answered: (count: number) => Promise<void>;
  /** Resolves when every client has had another outcome than an answer. */
  readonly ended: Promise<unknown>;
};

/** Clients that ask for `path` on a new connection each time, until they get no answer. */
export function arrive(port: number, path: string): Arrivals {
  const outcomes = new Map<string, number>();
  const client = async (): Promise<void> => {
    for (let outcome = 'answered'; outcome === 'answered';) {
      outcome = await outcomeOf(port, path);
      outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + 1);
    }
  };
  return {
    outcomes,
    answered: async (count) => {
      while ((outcomes.get('answered') ?? 0) < count) await delay(5);
    },
    ended: Promise.all(Array.from({ length: ARRIVING }, client)),
  };
}

function outcomeOf(port: number, path: string): Promise<string> {
  return new Promise((resolve) => {
    const request = `GET ${path} HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n`;
    let text = '';
    const socket = net.connect(port, '127.0.0.1', () => socket.write(request));
    socket.on('error', ({ code }: NodeJS.ErrnoException) => resolve(String(code)));
    socket.on('close', () => resolve('closed'));
    socket.on('data', (bytes) => {
      text += bytes.toString();
      if (!text.endsWith('}')) return;
      resolve('answered');
      socket.destroy();
    });
  });
}
