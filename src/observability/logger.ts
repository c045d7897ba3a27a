import { writeSync } from 'node:fs';
import { createRequire } from 'node:module';
import { isatty } from 'node:tty';
import { pino, type DestinationStream } from 'pino';
import type { prettyFactory as MakePretty } from 'pino-pretty';

export type LogLevel = 'debug' | 'info' | 'warn' | 'error';

/** Structured log: one event name a line as the message, everything else as fields. */
export type Logger = pino.Logger;

const STDERR = 2;

/**
 * A logger that writes JSON lines with `time` (ISO), `level` (name) and `msg` to stderr, at once, so that
 * no line is lost when the process dies. On a terminal the lines are pretty. `destination` replaces stderr
 * in tests.
 */
export function createLogger(level: LogLevel, destination?: DestinationStream): Logger {
  return pino(
    {
      level,
      base: null,
      messageKey: 'msg',
      errorKey: 'error',
      timestamp: pino.stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { error: pino.stdSerializers.err },
    },
    destination ?? standardError(),
  );
}

function standardError(): DestinationStream {
  if (!isatty(STDERR)) return pino.destination({ dest: STDERR, sync: true });
  // Loaded on a terminal only: other destinations do not need it.
  const { prettyFactory } = createRequire(import.meta.url)('pino-pretty') as {
    readonly prettyFactory: typeof MakePretty;
  };
  const pretty = prettyFactory({ colorize: true, singleLine: true, ignore: 'time' });
  return { write: (line) => writeToTerminal(pretty(line)) };
}

/** A line for people, where standard error is a terminal; nothing elsewhere, where programs read. */
export function reportToTerminal(text: string): void {
  if (isatty(STDERR)) writeToTerminal(`${text}\n`);
}

/** A terminal that was closed fails every write (EIO); a service that stops for that has to get to its end. */
function writeToTerminal(text: string): void {
  try {
    writeSync(STDERR, text);
  } catch (error) {
    if (!(error instanceof Error && 'syscall' in error)) throw error;
  }
}

/** URL at which people of this machine reach a service that listens on `host`. */
export function localUrl(host: string, port: number): string {
  const name = ['0.0.0.0', '::', 'localhost'].includes(host.toLowerCase()) ? '127.0.0.1' : host;
  return `http://${name.includes(':') ? `[${name}]` : name}:${port}`;
}

/** One event for a module that knows no logger: matches the store's and the pool's log ports. */
export type EventLog = (
  level: LogLevel,
  event: string,
  fields: Readonly<Record<string, unknown>>,
) => void;

/** `logger` as a plain function. */
export function eventLogOf(logger: Logger): EventLog {
  return (level, event, fields) => logger[level](fields, event);
}
