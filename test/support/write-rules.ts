import { NO_RULES, type WriteRules } from '../../src/services/writes/write-rules.ts';

/** Nothing is asked of tuples, and nobody is asked. */
export const NO_WRITE_RULES: WriteRules = {
  of: () => Promise.resolve(NO_RULES),
  peek: () => NO_RULES,
  fresh: () => Promise.resolve(NO_RULES),
};
