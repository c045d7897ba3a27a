import { ON } from './event-schema.ts';
import type { Availability } from './expression.ts';
import {
  BOOLEAN,
  type Definition,
  type MappingDefinition,
  NON_EMPTY,
  NON_EMPTY_LIST,
  NULL,
  NUMBER,
  SCALAR,
  TEXT,
  ANY,
  availableIn,
  constants,
  looseMappingOf,
  mappingOf,
  oneOf,
  sequenceOf,
  within,
} from './schema.ts';

// What may be named where. Source: GitHub's "Contexts reference", context availability.
const WORKFLOW = availableIn('github inputs vars');
const NEEDS = availableIn('github inputs vars needs');
const STRATEGY = availableIn('github inputs vars needs strategy matrix');
const RUNNER = availableIn('github inputs vars needs strategy matrix secrets steps job runner env');
const RUNNER_NO_SECRETS = availableIn(
  'github inputs vars needs strategy matrix steps job runner env',
);
const STEP = availableIn(
  'github inputs vars needs strategy matrix secrets steps job runner env hashFiles(1,255)',
);

/** What the `if:` of a job may name. */
export const JOB_IF: Availability = availableIn(
  'github inputs vars needs always(0,0) failure(0,255) cancelled(0,0) success(0,255)',
);
/** What the `if:` of a step may name. */
export const STEP_IF: Availability = availableIn(
  'github inputs vars needs strategy matrix steps job runner env always(0,0) failure(0,0) cancelled(0,0) success(0,0) hashFiles(1,255)',
);
const SNAPSHOT_IF = availableIn('github inputs vars needs strategy matrix');

const LEVEL = constants('read', 'write', 'none');
const READ_OR_NONE = constants('read', 'none');
const WRITE_OR_NONE = constants('write', 'none');

/** Scopes of a token and the levels that each may have. */
export const PERMISSION_SCOPES: Readonly<Record<string, Definition>> = {
  actions: LEVEL,
  'artifact-metadata': LEVEL,
  attestations: LEVEL,
  checks: LEVEL,
  'code-quality': LEVEL,
  contents: LEVEL,
  'copilot-requests': WRITE_OR_NONE,
  deployments: LEVEL,
  discussions: LEVEL,
  drives: LEVEL,
  'id-token': WRITE_OR_NONE,
  issues: LEVEL,
  models: READ_OR_NONE,
  packages: LEVEL,
  pages: LEVEL,
  'pull-requests': LEVEL,
  'repository-projects': LEVEL,
  'security-events': LEVEL,
  statuses: LEVEL,
  'vulnerability-alerts': READ_OR_NONE,
};
const PERMISSIONS = oneOf(mappingOf(PERMISSION_SCOPES), constants('read-all', 'write-all'));

const RUN_DEFAULTS = mappingOf({ shell: NON_EMPTY, 'working-directory': NON_EMPTY });
const CONCURRENCY = mappingOf({
  'group!': NON_EMPTY,
  'cancel-in-progress': BOOLEAN,
  queue: constants('single', 'max'),
});

const MATRIX_FILTER = sequenceOf(looseMappingOf(ANY));
const MATRIX = looseMappingOf(sequenceOf(ANY), { include: MATRIX_FILTER, exclude: MATRIX_FILTER });
const JOB_STRATEGY = within(
  NEEDS,
  mappingOf({ 'fail-fast': BOOLEAN, 'max-parallel': NUMBER, matrix: MATRIX }),
);

const CONTAINER_PARTS = {
  image: NON_EMPTY,
  options: TEXT,
  env: looseMappingOf(within(RUNNER, TEXT)),
  ports: sequenceOf(NON_EMPTY),
  volumes: sequenceOf(NON_EMPTY),
  credentials: within(
    availableIn('github inputs vars secrets env'),
    mappingOf({ username: NON_EMPTY, password: NON_EMPTY }),
  ),
};
const CONTAINER = within(STRATEGY, oneOf(TEXT, mappingOf(CONTAINER_PARTS)));
const SERVICES = within(
  STRATEGY,
  looseMappingOf(
    oneOf(NON_EMPTY, mappingOf({ ...CONTAINER_PARTS, entrypoint: TEXT, command: TEXT })),
  ),
);

const STEP_ENV = within(STEP, looseMappingOf(TEXT));
const STEP_COMMON = {
  name: within(STEP, TEXT),
  id: NON_EMPTY,
  'continue-on-error': within(STEP, BOOLEAN),
};
const ACTIVE_STEP = {
  ...STEP_COMMON,
  if: within(STEP_IF, TEXT),
  'timeout-minutes': within(STEP, NUMBER),
  env: STEP_ENV,
  background: BOOLEAN,
};
const LEAF_STEPS: readonly MappingDefinition[] = [
  mappingOf({
    ...ACTIVE_STEP,
    'run!': within(STEP, TEXT),
    'working-directory': within(STEP, TEXT),
    shell: NON_EMPTY,
  }),
  mappingOf({ ...ACTIVE_STEP, 'uses!': NON_EMPTY, with: STEP_ENV }),
  mappingOf({ ...STEP_COMMON, 'wait!': NON_EMPTY_LIST }),
  mappingOf({ ...STEP_COMMON, 'wait-all!': oneOf(NULL, BOOLEAN) }),
  mappingOf({ ...STEP_COMMON, 'cancel!': NON_EMPTY }),
];
const STEPS = sequenceOf(
  oneOf(
    ...LEAF_STEPS,
    mappingOf({
      'parallel!': sequenceOf(oneOf(...LEAF_STEPS, mappingOf({ 'parallel!': ANY }))),
    }),
  ),
);

const JOB_COMMON = {
  name: within(STRATEGY, TEXT),
  needs: NON_EMPTY_LIST,
  if: within(JOB_IF, TEXT),
  permissions: PERMISSIONS,
  concurrency: within(STRATEGY, oneOf(NON_EMPTY, CONCURRENCY)),
  strategy: JOB_STRATEGY,
};

const STEPS_JOB = mappingOf({
  ...JOB_COMMON,
  'runs-on!': within(
    STRATEGY,
    oneOf(NON_EMPTY_LIST, mappingOf({ group: NON_EMPTY, labels: NON_EMPTY_LIST })),
  ),
  'timeout-minutes': within(STRATEGY, NUMBER),
  'cancel-timeout-minutes': within(STRATEGY, NUMBER),
  'continue-on-error': within(STRATEGY, BOOLEAN),
  container: CONTAINER,
  services: SERVICES,
  env: within(
    availableIn('github inputs vars needs strategy matrix secrets'),
    looseMappingOf(TEXT),
  ),
  environment: within(
    STRATEGY,
    oneOf(
      TEXT,
      mappingOf({ 'name!': TEXT, url: within(RUNNER_NO_SECRETS, TEXT), deployment: BOOLEAN }),
    ),
  ),
  outputs: looseMappingOf(within(RUNNER, TEXT)),
  defaults: mappingOf({
    run: within(availableIn('github inputs vars strategy matrix needs env'), RUN_DEFAULTS),
  }),
  steps: STEPS,
  snapshot: oneOf(
    NON_EMPTY,
    mappingOf({ 'image-name!': NON_EMPTY, if: within(SNAPSHOT_IF, TEXT), version: NON_EMPTY }),
  ),
});

const CALL_JOB = mappingOf({
  ...JOB_COMMON,
  'uses!': NON_EMPTY,
  with: looseMappingOf(within(STRATEGY, SCALAR)),
  secrets: oneOf(
    looseMappingOf(within(availableIn('github inputs vars needs secrets strategy matrix'), SCALAR)),
    constants('inherit'),
  ),
});

/** A whole workflow file. */
export const WORKFLOW_FILE: Definition = mappingOf({
  'on!': ON,
  name: TEXT,
  description: TEXT,
  'run-name': within(WORKFLOW, TEXT),
  defaults: mappingOf({ run: RUN_DEFAULTS }),
  env: within(availableIn('github inputs vars secrets'), looseMappingOf(TEXT)),
  permissions: PERMISSIONS,
  concurrency: within(WORKFLOW, oneOf(TEXT, CONCURRENCY)),
  'jobs!': looseMappingOf(oneOf(STEPS_JOB, CALL_JOB)),
});
