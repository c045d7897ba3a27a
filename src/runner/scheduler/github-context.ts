import { basename } from 'node:path';
import type { JsonObject, JsonValue } from '../../shared/json.ts';
import { remoteOfWorkflow } from '../language/called-workflow-path.ts';
import type { NeededAction, Trigger, WorkflowRun } from '../model/run.ts';
import type { Workflow } from '../model/workflow.ts';
import type { ProjectIdentity, SchedulerOptions } from './scheduler-options.ts';
import type { RunRequest } from './state/journal-records.ts';
import { hostIds, madeUpAccountId, madeUpRepositoryId } from './triggers/host-ids.ts';

const COMMIT = /^[0-9a-f]{40}(?:[0-9a-f]{24})?$/;

/** What the `github` context says of a run, whoever asks. */
export type RunFacts = {
  /** `github.run_id`: see runIdOf. */
  readonly runId: string;
  readonly runNumber: number;
  readonly attempt: number;
  /** Its name, else its path. */
  readonly workflow: string;
  /** Relative to the workspace, with `/`. */
  readonly workflowPath: string;
  readonly trigger: Trigger;
  readonly request: RunRequest;
  readonly identity: ProjectIdentity;
  /** Whether the workflow or the job declares `permissions`. */
  readonly hasToken: boolean;
};

/**
 * `github.run_id`: the number of a run, which a rerun keeps. One that was recorded before runs had numbers keeps
 * its id, which its first attempt saw.
 */
export function runIdOf({ id, numericId }: Pick<WorkflowRun, 'id' | 'numericId'>): string {
  return String(numericId ?? id);
}

/** The identity of a project that is on no code host. */
export function identityOf(
  options: Pick<SchedulerOptions, 'identity' | 'projectDir'>,
): ProjectIdentity {
  return (
    options.identity ?? {
      repository: `local/${basename(options.projectDir)}`,
      serverUrl: 'https://github.com',
      apiUrl: 'https://api.github.com',
      graphqlUrl: 'https://api.github.com/graphql',
      token: '',
    }
  );
}

/**
 * `github.event` of a manual start: its inputs are texts, whatever their type.
 * Source: GitHub's documentation, "Webhook events and payloads", workflow_dispatch.
 */
export function dispatchEvent(
  identity: ProjectIdentity,
  workflow: Workflow,
  ref: string,
  actor: string,
  inputs: Readonly<Record<string, string>>,
): JsonObject {
  const [owner = '', name = ''] = identity.repository.split('/');
  return {
    inputs: workflow.dispatchInputs.size === 0 ? null : inputs,
    ref,
    repository: {
      id: madeUpRepositoryId(identity.repository),
      name,
      full_name: identity.repository,
      owner: { login: owner, id: madeUpAccountId(owner), name: owner },
      html_url: `${identity.serverUrl}/${identity.repository}`,
    },
    sender: { login: actor, id: madeUpAccountId(actor) },
    workflow: workflow.path,
  };
}

/**
 * The `github` context before a job adds its own. Source: GitHub's documentation, "Contexts reference".
 * `action*`, `event_path`, `env`, `path`, `output` belong to the executor.
 */
export function githubContext(facts: RunFacts): Readonly<Record<string, JsonValue>> {
  const { trigger, request, identity } = facts;
  const pullRequest = objectIn(request.event, 'pull_request');
  const [owner = ''] = identity.repository.split('/');
  const refPath = trigger.ref === '' ? trigger.sha : trigger.ref;
  return {
    ...hostIds(request.event, identity.repository, request.actor),
    actor: request.actor,
    api_url: identity.apiUrl,
    base_ref: textIn(objectIn(pullRequest, 'base'), 'ref'),
    event: request.event,
    event_name: facts.request.eventName,
    graphql_url: identity.graphqlUrl,
    head_ref: textIn(objectIn(pullRequest, 'head'), 'ref'),
    ref: trigger.ref,
    ref_name: trigger.ref.replace(/^refs\/(?:heads|tags|pull)\//, ''),
    ref_protected: false,
    ref_type: trigger.ref.startsWith('refs/tags/') ? 'tag' : trigger.ref === '' ? '' : 'branch',
    repository: identity.repository,
    repository_owner: owner,
    repositoryUrl: `git://${new URL(identity.serverUrl).host}/${identity.repository}.git`,
    repository_visibility: 'private',
    retention_days: '30',
    run_attempt: String(facts.attempt),
    run_id: facts.runId,
    run_number: String(facts.runNumber),
    secret_source: 'Actions',
    server_url: identity.serverUrl,
    sha: trigger.sha,
    token: facts.hasToken ? identity.token : '',
    triggering_actor: request.actor,
    workflow: facts.workflow,
    workflow_ref: `${identity.repository}/${facts.workflowPath}@${refPath}`,
    workflow_sha: trigger.sha,
  };
}

/**
 * `job.workflow_*`: the file that the job stands in, which a call makes another than the run's. Of another
 * repository the ref is the one of the call; its commit is unknown where no fetch recorded it.
 * Source: GitHub's documentation, "Contexts reference", job context.
 */
export function jobWorkflowContext(
  github: JsonObject,
  path: string,
  actions: readonly NeededAction[],
): JsonObject {
  const remote = remoteOfWorkflow(path);
  if (remote === undefined) {
    const sha = textIn(github, 'sha');
    const ref = textIn(github, 'ref');
    const repository = textIn(github, 'repository');
    return {
      workflow_ref: `${repository}/${path}@${ref === '' ? sha : ref}`,
      workflow_sha: sha,
      workflow_repository: repository,
      workflow_file_path: path,
    };
  }
  const name = `${remote.repository}@${remote.ref}`;
  const commit = actions.find((action) => action.name === name)?.commit;
  return {
    workflow_ref: path,
    workflow_sha: commit ?? (COMMIT.test(remote.ref) ? remote.ref : ''),
    workflow_repository: remote.repository,
    workflow_file_path: remote.file,
  };
}

function objectIn(value: JsonObject, key: string): JsonObject {
  const inner = value[key];
  return typeof inner === 'object' && inner !== null && !Array.isArray(inner)
    ? (inner as JsonObject)
    : {};
}

function textIn(value: JsonObject, key: string): string {
  const inner = value[key];
  return typeof inner === 'string' ? inner : '';
}
