import {
  BOOLEAN,
  type Definition,
  NON_EMPTY,
  NON_EMPTY_LIST,
  NULL,
  SCALAR,
  TEXT,
  availableIn,
  constants,
  looseMappingOf,
  mappingOf,
  oneOf,
  sequenceOf,
  within,
} from './schema.ts';

/** Activity types of each event that has some. Source: GitHub's "Events that trigger workflows". */
const ACTIVITIES: Readonly<Record<string, string>> = {
  branch_protection_rule: 'created edited deleted',
  check_run: 'completed created rerequested requested_action',
  check_suite: 'completed',
  discussion:
    'created edited deleted transferred pinned unpinned labeled unlabeled locked unlocked category_changed answered unanswered',
  discussion_comment: 'created edited deleted',
  image_version: 'created ready deleted',
  issue_comment: 'created edited deleted',
  issues:
    'opened edited deleted transferred pinned unpinned closed reopened assigned unassigned labeled unlabeled locked unlocked milestoned demilestoned field_added field_removed typed untyped',
  label: 'created edited deleted',
  merge_group: 'checks_requested',
  milestone: 'created closed opened edited deleted',
  project: 'created closed reopened edited deleted',
  project_card: 'created moved converted edited deleted',
  project_column: 'created updated moved deleted',
  pull_request:
    'assigned unassigned labeled unlabeled opened edited closed reopened synchronize converted_to_draft locked unlocked enqueued dequeued milestoned demilestoned ready_for_review review_requested review_request_removed auto_merge_enabled auto_merge_disabled stacked',
  pull_request_comment: 'created edited deleted',
  pull_request_review: 'submitted edited dismissed',
  pull_request_review_comment: 'created edited deleted',
  registry_package: 'published updated',
  release: 'published unpublished created edited deleted prereleased released',
  watch: 'started',
  workflow_run: 'requested completed in_progress',
};

const PLAIN_EVENTS: readonly string[] = [
  'create',
  'delete',
  'deployment',
  'deployment_status',
  'fork',
  'gollum',
  'page_build',
  'public',
  'status',
];

const BRANCHES = { branches: NON_EMPTY_LIST, 'branches-ignore': NON_EMPTY_LIST };
const PATHS = { paths: NON_EMPTY_LIST, 'paths-ignore': NON_EMPTY_LIST };
const TAGS = { tags: NON_EMPTY_LIST, 'tags-ignore': NON_EMPTY_LIST };

/** Filters of an event beside its `types`. */
const FILTERS: Readonly<Record<string, Readonly<Record<string, Definition>>>> = {
  image_version: { names: NON_EMPTY_LIST, versions: NON_EMPTY_LIST },
  merge_group: BRANCHES,
  pull_request: { ...BRANCHES, ...PATHS },
  pull_request_target: { ...BRANCHES, ...PATHS },
  workflow_run: { ...BRANCHES, workflows: NON_EMPTY_LIST },
};

const CALL_INPUT = mappingOf({
  'type!': constants('string', 'boolean', 'number'),
  description: TEXT,
  required: BOOLEAN,
  default: within(availableIn('github inputs vars'), SCALAR),
});

const CALL = mappingOf({
  inputs: looseMappingOf(CALL_INPUT),
  secrets: looseMappingOf(oneOf(NULL, mappingOf({ description: TEXT, required: BOOLEAN }))),
  outputs: looseMappingOf(
    mappingOf({
      description: TEXT,
      'value!': within(availableIn('github inputs vars jobs'), TEXT),
    }),
  ),
});

const DISPATCH_INPUT = mappingOf({
  description: TEXT,
  deprecationMessage: TEXT,
  type: constants('string', 'boolean', 'number', 'environment', 'choice'),
  required: BOOLEAN,
  default: SCALAR,
  options: sequenceOf(TEXT),
});

const SCHEDULE = sequenceOf(mappingOf({ 'cron!': NON_EMPTY, timezone: NON_EMPTY }));

const EVENTS: Readonly<Record<string, Definition>> = {
  ...Object.fromEntries(PLAIN_EVENTS.map((name) => [name, NULL])),
  ...Object.fromEntries(
    Object.entries(ACTIVITIES).map(([name, types]) => [name, activityEvent(name, types)]),
  ),
  pull_request_target: activityEvent('pull_request_target', ACTIVITIES['pull_request'] ?? ''),
  push: oneOf(NULL, mappingOf({ ...BRANCHES, ...TAGS, ...PATHS })),
  repository_dispatch: oneOf(NULL, mappingOf({ types: NON_EMPTY_LIST })),
  schedule: SCHEDULE,
  workflow_call: oneOf(NULL, CALL),
  workflow_dispatch: oneOf(
    NULL,
    mappingOf({ inputs: oneOf(NULL, looseMappingOf(oneOf(NULL, DISPATCH_INPUT))) }),
  ),
};

/** Events that a run can be of; `workflow_call` is no event of its own. */
export const EVENT_NAMES: readonly string[] = Object.keys(EVENTS).filter(
  (name) => name !== 'workflow_call',
);

/** The value of `on:`. */
export const ON: Definition = oneOf(
  constants(...Object.keys(EVENTS)),
  sequenceOf(constants(...Object.keys(EVENTS))),
  mappingOf(EVENTS),
);

function activityEvent(name: string, types: string): Definition {
  const activity = constants(...types.split(' '));
  return oneOf(NULL, mappingOf({ types: oneOf(activity, sequenceOf(activity)), ...FILTERS[name] }));
}
