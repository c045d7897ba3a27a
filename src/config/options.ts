import { CALLER_OPTIONS } from './caller-options.ts';
import { EVALUATION_OPTIONS } from './evaluation-options.ts';
import { INDEX_OPTIONS } from './index-options.ts';
import { LISTENER_OPTIONS } from './listener-options.ts';
import type { OptionTable, OptionValues } from './option.ts';
import { REQUEST_OPTIONS } from './request-options.ts';
import { STORE_OPTIONS } from './store-options.ts';
import { UPKEEP_OPTIONS } from './upkeep-options.ts';

/**
 * Every setting of the authorization service: names, defaults, units and bounds. The typed
 * configuration, its validation and docs/configuration.md are derived from it. A computed default
 * may read only options above its own.
 */
export const OPTIONS = {
  ...LISTENER_OPTIONS,
  ...CALLER_OPTIONS,
  ...STORE_OPTIONS,
  ...EVALUATION_OPTIONS,
  ...REQUEST_OPTIONS,
  ...INDEX_OPTIONS,
  ...UPKEEP_OPTIONS,
} as const satisfies OptionTable;

/** The validated configuration. It is passed explicitly; no other code reads the environment. */
export type Config = OptionValues<typeof OPTIONS>;
