import type { JsonObject, JsonValue } from '../../../shared/json.ts';
import { textOfValue } from '../../language/expression-data.ts';
import type { JobEnvironment } from '../state/job-environment.ts';
import type { JobState } from '../state/job-state.ts';

/** The properties of `github` that steps get as GITHUB_*: the runner's own list (GitHubContext.cs). */
const GITHUB_NAMES: readonly string[] = [
  'action',
  'action_path',
  'action_ref',
  'action_repository',
  'actor',
  'actor_id',
  'api_url',
  'artifacts',
  'artifacts_list',
  'base_ref',
  'env',
  'event_name',
  'event_path',
  'graphql_url',
  'head_ref',
  'job',
  'output',
  'path',
  'ref',
  'ref_name',
  'ref_protected',
  'ref_type',
  'repository',
  'repository_id',
  'repository_owner',
  'repository_owner_id',
  'retention_days',
  'run_attempt',
  'run_id',
  'run_number',
  'server_url',
  'sha',
  'state',
  'step_summary',
  'triggering_actor',
  'workflow',
  'workflow_ref',
  'workflow_sha',
  'workspace',
];
const VARIABLE_OF_NAME = new Map(
  GITHUB_NAMES.map((name) => [name, `GITHUB_${name.toUpperCase()}`]),
);

/** The listed properties of a `github` context as GITHUB_* variables; GITHUB_ACTIONS is true. */
export function githubVariables(github: JsonObject): Record<string, string> {
  const variables: Record<string, string> = { GITHUB_ACTIONS: 'true' };
  for (const [name, variable] of VARIABLE_OF_NAME) {
    const value = github[name];
    if (typeof value === 'string' || typeof value === 'boolean' || typeof value === 'number') {
      variables[variable] = String(value);
    }
  }
  return variables;
}

/** INPUT_* of an action or workflow: upper case, blanks as `_`, as actions/toolkit's getInput reads them. */
export function inputVariables(
  inputs: Readonly<Record<string, JsonValue>>,
): Record<string, string> {
  const variables: Record<string, string> = {};
  for (const [name, value] of Object.entries(inputs)) {
    variables[`INPUT_${name.replaceAll(' ', '_').toUpperCase()}`] = textOfValue(value);
  }
  return variables;
}

/** Where programs are when nobody says. */
const PATH_DEFAULT = '/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin';

/**
 * All variables of a process: the harmless part of the runner's own, `env`, then what the runner itself
 * sets, which no `env` can change. `extra` (INPUT_*, STATE_*, command files) goes last.
 */
export function processEnvironment(
  job: JobState,
  environment: JobEnvironment,
  env: Readonly<Record<string, string>>,
  github: JsonObject,
  extra: Readonly<Record<string, string>>,
): Record<string, string> {
  const variables: Record<string, string> = {
    ...job.baseVariables,
    ...env,
    ...job.runnerVariables,
    ...githubVariables(github),
    ...extra,
  };
  variables['PATH'] = environment.pathInFrontOf(variables['PATH'] ?? PATH_DEFAULT);
  return variables;
}
