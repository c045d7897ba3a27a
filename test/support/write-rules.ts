import type { WriteRules } from '../../src/services/write-rules.ts';

const nothing = { version: 0, models: [] };

/** Nothing is asked of tuples, and nobody is asked. */
export const NO_WRITE_RULES: WriteRules = {
  of: () => Promise.resolve(nothing),
  peek: () => nothing,
  fresh: () => Promise.resolve(nothing),
};
