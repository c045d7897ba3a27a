import { spawnSync } from 'node:child_process';
import { expect, test } from 'vitest';
import { createLogger, eventLogOf, type LogLevel } from './logger.ts';

type Line = Record<string, unknown>;

/** A logger and the lines that it wrote, parsed. */
function recorded(level: LogLevel) {
  const lines: Line[] = [];
  const write = (text: string): void => {
    for (const line of text.trimEnd().split('\n')) lines.push(JSON.parse(line) as Line);
  };
  return { lines, logger: createLogger(level, { write }) };
}

test('a line holds time, level by name, the event as msg, and its fields', () => {
  const { lines, logger } = recorded('info');
  logger.warn({ port: 8080 }, 'service_auth_disabled');
  const { time, ...rest } = lines[0] ?? {};
  expect(rest).toEqual({ level: 'warn', msg: 'service_auth_disabled', port: 8080 });
  expect(new Date(String(time)).toISOString()).toBe(time);
});

test('an error keeps its type, message and stack; line breaks stay inside one line', () => {
  const { lines, logger } = recorded('info');
  eventLogOf(logger)('error', 'load_failed', { error: new Error('a\nb') });
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatchObject({ error: { type: 'Error', message: 'a\nb' } });
});

test('lines below the level are not written', () => {
  const { lines, logger } = recorded('error');
  logger.info('quiet');
  expect(lines).toEqual([]);
});

test('stderr that is no terminal gets JSON', () => {
  const script = `import { createLogger } from './src/observability/logger.ts';
    createLogger('info').info({ a: 1 }, 'event');`;
  const { stderr, stdout } = spawnSync(process.execPath, ['--input-type=module', '-e', script], {
    encoding: 'utf8',
  });
  expect(stdout).toBe('');
  expect(JSON.parse(stderr)).toMatchObject({ level: 'info', msg: 'event', a: 1 });
});
