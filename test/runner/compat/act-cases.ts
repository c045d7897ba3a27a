/** One run of a workflow of act's own test data. */
export type ActCase = {
  /** A folder or file below its `testdata`. */
  readonly path: string;
  readonly event: string;
  /** What act's tests expect of the run. */
  readonly expected: 'success' | 'failure';
  /** Inputs, as `--input` gives them. */
  readonly inputs?: Readonly<Record<string, string>>;
  /** Below the path: the payload of the event; read as secrets; read as variables of the environment. */
  readonly eventFile?: string;
  readonly secretFile?: string;
  readonly envFile?: string;
  /** Why it cannot be run here at all: then it is in no total. */
  readonly left?: string;
  /** A file below `testdata` without which it cannot be run. */
  readonly needs?: string;
  /** Why another result than the expected one is right for us. */
  readonly differs?: string;
};

const REMOTE = 'needs actions of other repositories';
const PWSH = 'needs PowerShell';
const FLAG = 'needs a flag of act: --matrix';

function differing(reason: string, ...paths: readonly string[]): readonly ActCase[] {
  return passing(...paths).map((one) => ({ ...one, differs: reason }));
}

function passing(...paths: readonly string[]): readonly ActCase[] {
  return paths.map((path) => ({ path, event: 'push', expected: 'success' }));
}
function failing(...paths: readonly string[]): readonly ActCase[] {
  return paths.map((path) => ({ path, event: 'push', expected: 'failure' }));
}
function left(reason: string, ...paths: readonly string[]): readonly ActCase[] {
  return passing(...paths).map((one) => ({ ...one, left: reason }));
}

/**
 * The table of TestRunEventHostEnvironment (pkg/runner/runner_test.go) for Linux: act's own list of what
 * runs without containers.
 */
export const HOST_CASES: readonly ActCase[] = [
  ...passing('shells/defaults', 'shells/bash', 'shells/python', 'shells/sh'),
  ...left(PWSH, 'shells/pwsh'),
  ...passing('uses-composite'),
  ...passing('local-action-js').map((one) => ({ ...one, needs: 'actions/node20/dist/index.js' })),
  ...left('needs actions/setup-node, to install Node 16', 'uses-nested-composite'),
  ...failing('uses-composite-with-error'),
  ...passing('act-composite-env-test', 'evalmatrix', 'evalmatrixneeds', 'evalmatrixneeds2'),
  ...passing('evalmatrix-merge-map', 'evalmatrix-merge-array', 'issue-1195', 'runs-on', 'checkout'),
  ...failing('fail'),
  ...left(REMOTE, 'remote-action-js', 'issue-597', 'issue-598'),
  ...left(REMOTE, 'uses-action-with-pre-and-post-step'),
  ...passing('matrix', 'matrix-include-exclude', 'commands', 'composite-fail-with-output'),
  ...passing('env-and-path', 'outputs', 'evalenv'),
  ...differing('asks for the variable ACT, which only act sets', 'if-env-act'),
  ...passing('steps-context/conclusion', 'steps-context/outcome'),
  ...failing('non-existent-action', 'job-status-check', 'if-expressions', 'ensure-post-steps'),
  ...passing('nix-prepend-path', 'inputs-via-env-context', 'do-not-leak-step-env-in-composite'),
  ...passing('set-env-step-env-override', 'set-env-new-env-file-per-step'),
  ...failing('no-panic-on-invalid-composite-action'),
];

const dispatched = { event: 'workflow_dispatch', expected: 'success' } as const;

/** Others of its tests that need no container, though act's list does not have them. */
export const OTHER_CASES: readonly ActCase[] = [
  ...passing('environment-files', 'environment-files-parser-bug', 'environment-variables'),
  ...passing('job-needs-context-contains-result'),
  ...left(FLAG, 'matrix-with-user-inclusions'),
  ...differing('expects that SHELL of the host is not bash', 'defaults-run'),
  ...failing('matrix-exitcode', 'post-step-failure-is-job-failure'),
  ...passing('uses-composite-check-for-input-collision'),
  ...passing('uses-composite-check-for-input-shadowing'),
  ...differing(
    'expects one GITHUB_ENV for all steps, and pre of a local action; GitHub has neither',
    'uses-composite-with-pre-and-post-steps',
  ),
  ...passing('mask-values', 'dir with spaces', 'workdir'),
  ...failing('job-nil-step', 'uses-and-run-in-one-step', 'uses-github-empty'),
  ...failing('issue-1595/missing.yml', 'issue-1595/no-first.yml'),
  ...differing('has no on, which GitHub requires', 'issue-1595/no-event.yml'),
  {
    path: 'uses-workflow/local-workflow.yml',
    event: 'pull_request',
    expected: 'success',
    differs: 'passes a secret that the called workflow does not declare, which GitHub refuses',
  },
  { path: 'workflow_dispatch', ...dispatched, eventFile: 'event.json' },
  { path: 'workflow_dispatch-scalar', ...dispatched },
  { path: 'workflow_dispatch-scalar-composite-action', ...dispatched },
  { path: 'workflow_dispatch_no_inputs_mapping', ...dispatched },
  { path: 'uses-workflow-defaults', ...dispatched },
  {
    path: 'input-from-cli',
    ...dispatched,
    inputs: { SOME_INPUT: 'input' },
    differs: 'gives an input that is not declared and leaves out those required',
  },
  {
    path: 'workflow_call_inputs',
    event: 'workflow_call',
    expected: 'success',
    eventFile: 'event.json',
    differs: 'has inputs of workflow_call without type, which GitHub requires',
  },
  { path: 'pull-request', event: 'pull_request', expected: 'success', eventFile: 'event.json' },
  {
    path: 'secrets',
    event: 'push',
    expected: 'success',
    secretFile: '.secrets',
    envFile: '.env',
    differs: 'takes variables from a file .env, which is a feature of act',
  },
];

/** A name without blanks and slashes. */
export function slugOf({ path }: ActCase): string {
  return path.replace(/\.ya?ml$/, '').replace(/[^A-Za-z0-9_-]+/g, '--');
}
