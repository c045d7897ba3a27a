import { databaseUrlOption, directoryOption } from './common-options.ts';
import {
  decimalOption,
  integerOption,
  optionalIntegerOption,
  textOption,
  type OptionTable,
} from './option.ts';

/** PostgreSQL, and the part of its data that an instance serves. */
export const STORE_OPTIONS = {
  databaseUrl: databaseUrlOption(
    'PostgreSQL to use, directly or through a pooler in session mode. Name one address, which leads to the primary: see docs/operations.md, "A PostgreSQL of your own" and "Failover". Unset: an embedded server starts under GATEWAY_DATA_DIR.',
  ),
  dataDir: directoryOption('GATEWAY_DATA_DIR', 'Directory of the embedded PostgreSQL.', '.data'),
  instances: optionalIntegerOption({
    env: 'GATEWAY_INSTANCES',
    description:
      'Number of instances that you plan to run on this database. A start is refused unless their connections, and those of one more during a rollout, fit into what the server grants. Unset: running instances are counted.',
    min: 1,
    max: 1000,
  }),
  pgPoolSize: integerOption({
    env: 'GATEWAY_PG_POOL_SIZE',
    description: 'Connections that the gateway thread keeps to PostgreSQL.',
    fallback: 10,
    min: 2,
    max: 200,
  }),
  defaultProjectId: textOption({
    env: 'GATEWAY_DEFAULT_PROJECT_ID',
    description: 'Project that an empty project_id names. The first start creates it.',
    fallback: 'default',
    fallbackText: 'default',
    pattern: /^[a-z0-9][a-z0-9_-]{0,62}$/,
    rule: '1-63 characters of a-z, 0-9, `_` and `-`, not beginning with `_` or `-`',
  }),
  region: textOption({
    env: 'GATEWAY_REGION',
    description:
      'Region of this instance. Requests to projects pinned to another region are refused.',
    fallback: '',
    fallbackText: 'empty: serves unpinned projects only',
    pattern: /^[a-z0-9-]{1,63}$/,
    rule: '1-63 characters of a-z, 0-9 and `-`',
  }),
  projectTtlSeconds: decimalOption({
    env: 'GATEWAY_PROJECT_TTL_SECONDS',
    description:
      'How long project settings are cached. Other instances follow a change within this time.',
    fallback: 30,
    min: 0,
    max: 3600,
    unit: 'seconds',
  }),
  invitationTtlHours: decimalOption({
    env: 'GATEWAY_INVITATION_TTL_HOURS',
    description: 'How long an invitation can be accepted.',
    fallback: 168,
    min: 0.000001,
    max: 87_600,
    unit: 'hours',
  }),
} as const satisfies OptionTable;
