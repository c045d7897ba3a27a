import type { JsonValue } from '../../shared/json.ts';
import type { CallJobDefinition, Workflow } from '../model/workflow.ts';
import type { ProblemList } from './problems.ts';
import { literalText } from './template-access.ts';
import { PERMISSION_SCOPES } from './workflow-schema.ts';

/** What a workflow may do that says nothing; GitHub lets the owner of a repository choose. */
export type PermissionsPolicy = 'limitedRead' | 'write';

const RANK: Readonly<Record<string, number>> = { none: 0, read: 1, write: 2 };
/** Scopes in the order in which GitHub lists them, then those that came later. */
const SCOPES: readonly string[] = [
  ...new Set([
    'actions',
    'checks',
    'contents',
    'deployments',
    'discussions',
    'issues',
    'packages',
    'pages',
    'pull-requests',
    'repository-projects',
    'statuses',
    'security-events',
    'id-token',
    ...Object.keys(PERMISSION_SCOPES),
  ]),
];

/** Level by scope; undefined where nothing was said, which allows everything. */
type Permissions = ReadonlyMap<string, string> | undefined;

/**
 * Checks that called workflows and their jobs ask for no more than their caller has, as GitHub does
 * before it starts anything. Cost: jobs of the expanded workflow.
 */
export function checkPermissions(
  root: Workflow,
  policy: PermissionsPolicy | undefined,
  problems: ProblemList,
): void {
  new PermissionCheck(root, problems).workflow(root, permissionsOfPolicy(policy));
}

class PermissionCheck {
  readonly #root: Workflow;
  readonly #problems: ProblemList;

  constructor(root: Workflow, problems: ProblemList) {
    this.#root = root;
    this.#problems = problems;
  }

  workflow(workflow: Workflow, inherited: Permissions): void {
    const own = permissionsFrom(workflow.permissions) ?? inherited;
    for (const job of workflow.jobs.values()) {
      if (job.kind === 'call') {
        this.#call(workflow, job, permissionsFrom(job.permissions) ?? own);
      }
    }
  }

  #call(caller: Workflow, job: CallJobDefinition, allowed: Permissions): void {
    const { called } = job;
    this.#compare(caller, job, {
      who: `The workflow '${job.uses}'`,
      requested: permissionsFrom(called.permissions),
      allowed,
    });
    for (const nested of called.jobs.values()) {
      this.#compare(caller, job, {
        who: `The nested job '${literalText(nested.name) ?? nested.key}'`,
        requested: permissionsFrom(nested.permissions),
        allowed,
      });
    }
    this.workflow(called, allowed);
  }

  #compare(
    caller: Workflow,
    job: CallJobDefinition,
    { who, requested, allowed }: { who: string; requested: Permissions; allowed: Permissions },
  ): void {
    if (requested === undefined || allowed === undefined) {
      return;
    }
    const excessive = SCOPES.filter((scope) => rankOf(requested, scope) > rankOf(allowed, scope));
    if (excessive.length > 0) {
      this.#problems.add(
        job.at,
        `Error calling workflow '${job.uses}'. ${who} is requesting '${listOf(requested, excessive)}', but is only allowed '${listOf(allowed, excessive)}'.`,
        caller === this.#root ? undefined : caller.path,
      );
    }
  }
}

function rankOf(permissions: ReadonlyMap<string, string>, scope: string): number {
  return RANK[permissions.get(scope) ?? 'none'] ?? 0;
}

function listOf(permissions: ReadonlyMap<string, string>, scopes: readonly string[]): string {
  return scopes.map((scope) => `${scope}: ${permissions.get(scope) ?? 'none'}`).join(', ');
}

function permissionsOfPolicy(policy: PermissionsPolicy | undefined): Permissions {
  if (policy === 'limitedRead') {
    return new Map([
      ['contents', 'read'],
      ['packages', 'read'],
    ]);
  }
  return policy === 'write' ? everyScope('write') : undefined;
}

function permissionsFrom(value: JsonValue | undefined): Permissions {
  if (value === 'read-all' || value === 'write-all') {
    return everyScope(value === 'read-all' ? 'read' : 'write');
  }
  return value === null || value === undefined || typeof value !== 'object'
    ? undefined
    : new Map(
        Object.entries(value).map(([scope, level]) => [
          scope,
          typeof level === 'string' ? level : 'none',
        ]),
      );
}

function everyScope(level: string): Permissions {
  return new Map(SCOPES.map((scope) => [scope, level]));
}
