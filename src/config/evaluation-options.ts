import { PATH } from './common-options.ts';
import { integerOption, textOption, type OptionTable } from './option.ts';

const MIB = 1024 * 1024;
const GIB = 1024 * MIB;

/** Limits of one evaluation, and recording of calls. */
export const EVALUATION_OPTIONS = {
  maxCheckReads: integerOption({
    env: 'GATEWAY_MAX_CHECK_READS',
    description:
      'Read budget of one evaluation. One adjacency list costs one read, and one more for each 64 further entries. A project may override it.',
    fallback: 10_000,
    min: 100,
    max: 1_000_000_000,
    unit: 'reads',
  }),
  metricsProjects: integerOption({
    env: 'GATEWAY_METRICS_PROJECTS',
    description:
      'Number of projects with metric series of their own: those that read most and those that are refused most. The rest is counted as `other`.',
    fallback: 20,
    min: 0,
    max: 200,
    unit: 'projects',
  }),
  maxCheckDepth: integerOption({
    env: 'GATEWAY_MAX_CHECK_DEPTH',
    description: 'Nodes on one path of an evaluation. A deeper path denies.',
    fallback: 256,
    min: 1,
    max: 2048,
    unit: 'nodes',
  }),
  recordQuestionsEvery: integerOption({
    env: 'GATEWAY_RECORD_QUESTIONS_EVERY',
    description:
      'Records one of this many Check and BatchCheck calls, at random, to preview models with: namespace, object, relation, user and context. Records stay in memory. 0 records none.',
    fallback: 0,
    min: 0,
    max: 1_000_000_000,
    unit: 'calls',
  }),
  recordQuestionsBytes: integerOption({
    env: 'GATEWAY_RECORD_QUESTIONS_BYTES',
    description: 'Memory of recorded calls. The oldest go first.',
    fallback: 16 * MIB,
    min: 64 * 1024,
    max: GIB,
    unit: 'bytes',
  }),
  recordFile: textOption({
    env: 'GATEWAY_RECORD_FILE',
    description:
      'File to which recorded calls are appended with their times, for load tests that replay them: project, tenant, namespace, object, relation and user. It holds no token and no context, and only its owner can read it. GATEWAY_INSTANCE_NAME is added to its name.',
    fallback: undefined,
    fallbackText: 'unset: none',
    ...PATH,
  }),
  recordFileBytes: integerOption({
    env: 'GATEWAY_RECORD_FILE_BYTES',
    description:
      'Size of that file and of the one before it (`.1`) together. Each takes half; the older one is dropped.',
    fallback: 64 * MIB,
    min: 64 * 1024,
    max: 64 * GIB,
    unit: 'bytes',
  }),
} as const satisfies OptionTable;
