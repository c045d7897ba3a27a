import type { Availability } from './expression.ts';
import {
  ANY,
  BOOLEAN,
  type Definition,
  NON_EMPTY,
  TEXT,
  availableIn,
  caselessConstants,
  looseMappingOf,
  mappingOf,
  oneOf,
  sequenceOf,
  within,
} from './schema.ts';

const STEP = availableIn('github inputs strategy matrix steps job runner env hashFiles(1,255)');
/** What the `if:` of a step of a composite action may name. */
export const COMPOSITE_IF: Availability = availableIn(
  'github inputs strategy matrix steps job runner env always(0,0) failure(0,0) cancelled(0,0) success(0,0) hashFiles(1,255)',
);
/** What `pre-if` and `post-if` may name. */
export const RUNS_IF: Availability = availableIn(
  'runner github job strategy matrix env inputs steps always(0,0) success(0,0) failure(0,0) cancelled(0,0) hashFiles(1,255)',
);

const INPUT = looseMappingOf(ANY, {
  required: BOOLEAN,
  default: within(availableIn('github strategy matrix job runner hashFiles(1,255)'), TEXT),
  deprecationMessage: TEXT,
});
const OUTPUT = looseMappingOf(ANY, {
  value: within(availableIn('github strategy matrix steps inputs job runner env'), TEXT),
});

const STEP_ENV = within(STEP, looseMappingOf(TEXT));
const STEP_COMMON = {
  name: within(STEP, TEXT),
  id: NON_EMPTY,
  if: within(COMPOSITE_IF, TEXT),
  env: STEP_ENV,
  'continue-on-error': within(STEP, BOOLEAN),
};
const COMPOSITE_STEP = oneOf(
  mappingOf({
    ...STEP_COMMON,
    'run!': within(STEP, TEXT),
    'shell!': within(STEP, TEXT),
    'working-directory': within(STEP, TEXT),
  }),
  mappingOf({ ...STEP_COMMON, 'uses!': NON_EMPTY, with: STEP_ENV }),
);

/** Versions of Node that actions name; which of them run is decided by who runs them. */
const NODE_VERSIONS: readonly string[] = [
  'node12',
  'node16',
  'node18',
  'node20',
  'node22',
  'node24',
];

/** The same in all forms: which of them is meant shows by the other keys, which read-action.ts checks. */
const USING = caselessConstants('composite', ...NODE_VERSIONS, 'docker');

const PRE_AND_POST = {
  'pre-if': within(RUNS_IF, TEXT),
  'post-if': within(RUNS_IF, TEXT),
};
const RUNS = oneOf(
  mappingOf({ 'using!': USING, 'steps!': sequenceOf(COMPOSITE_STEP) }),
  mappingOf({
    'using!': USING,
    'main!': NON_EMPTY,
    pre: NON_EMPTY,
    post: NON_EMPTY,
    ...PRE_AND_POST,
  }),
  mappingOf({
    'using!': USING,
    'image!': NON_EMPTY,
    entrypoint: NON_EMPTY,
    args: within(availableIn('inputs'), sequenceOf(TEXT)),
    env: within(availableIn('inputs'), looseMappingOf(TEXT)),
    'pre-entrypoint': NON_EMPTY,
    'post-entrypoint': NON_EMPTY,
    ...PRE_AND_POST,
  }),
);

/** A whole action.yml; keys that nobody knows are let through, as GitHub's runner does. */
export const ACTION_FILE: Definition = looseMappingOf(ANY, {
  name: TEXT,
  description: TEXT,
  author: TEXT,
  inputs: oneOf({ kind: 'null' }, looseMappingOf(oneOf({ kind: 'null' }, INPUT))),
  outputs: oneOf({ kind: 'null' }, looseMappingOf(oneOf({ kind: 'null' }, OUTPUT))),
  'runs!': RUNS,
});
