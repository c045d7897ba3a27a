import { choiceOption, type Option, textOption } from './option.ts';

/** What a header or a label can carry. */
export const PRINTABLE = {
  pattern: /^[\x21-\x7e]+$/,
  rule: 'printable ASCII without spaces',
};

const LOG_LEVELS = ['debug', 'info', 'warn', 'error'] as const;

/** The commit of the build, for what `description` names. */
export function commitOption(env: string, description: string): Option<string> {
  return textOption({
    env,
    description,
    fallback: 'unknown',
    fallbackText: 'unknown',
    ...PRINTABLE,
  });
}

/** Least severe log lines that are written. */
export function logLevelOption(env: string): Option<(typeof LOG_LEVELS)[number]> {
  return choiceOption({
    env,
    description: 'Least severe log lines that are written. Audit records are written at any level.',
    fallback: 'info',
    values: LOG_LEVELS,
  });
}
