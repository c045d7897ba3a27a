import type { DescMessage, DescMethod, DescService, MessageShape } from '@bufbuild/protobuf';
import { BudgetService } from '../../gen/gatehouse/v1/budget_service_pb.ts';
import { ModelService } from '../../gen/gatehouse/v1/model_service_pb.ts';
import { QueryService } from '../../gen/gatehouse/v1/query_service_pb.ts';
import { TupleService } from '../../gen/gatehouse/v1/tuple_service_pb.ts';
import { Health } from '../../gen/grpc/health/v1/health_pb.ts';
import { ServerReflection } from '../../gen/grpc/reflection/v1/reflection_pb.ts';
import { ServerReflection as ServerReflectionAlpha } from '../../gen/grpc/reflection/v1alpha/reflection_pb.ts';
import { AdminService } from '../../gen/workspace/v1/admin_service_pb.ts';
import { AuthzService } from '../../gen/workspace/v1/authz_service_pb.ts';
import { GroupService } from '../../gen/workspace/v1/group_service_pb.ts';
import { SeatService } from '../../gen/workspace/v1/seat_service_pb.ts';
import { WorkspaceService } from '../../gen/workspace/v1/workspace_service_pb.ts';

/** Classes of methods by what they do with the data that they reach. */
export const METHOD_CLASSES = ['read', 'write', 'manage', 'export', 'stores'] as const;
export type MethodClass = (typeof METHOD_CLASSES)[number];

/** The data that a call reaches; '' is the default project, and the default tenant. */
export type CallTarget =
  | { readonly kind: 'tenant'; readonly projectId: string; readonly tenantId: string }
  /** Data of any tenant of the project, or what changes them all. */
  | { readonly kind: 'all_tenants'; readonly projectId: string }
  /** Data of the project itself, and of no tenant. */
  | { readonly kind: 'project'; readonly projectId: string }
  | { readonly kind: 'all_projects' }
  /** Nothing that is stored, or only what the caller may see. */
  | { readonly kind: 'nothing' };

/** The rule of one method or route: what a caller needs to be let in. */
export type MethodRule = {
  /** The name by which scopes name it. */
  readonly service: string;
  readonly method: string;
  /** All of them; none: whoever has a credential. */
  readonly needs: readonly MethodClass[];
};

/** A rule with a function that finds what a request of its method reaches; of a stream of requests the first one counts. */
export type TargetedRule<Request = never> = MethodRule & {
  readonly targetOf: (request: Request) => CallTarget;
};

type RuleEntry<Request> = readonly [
  needs: MethodClass | readonly MethodClass[],
  targetOf: (request: Request) => CallTarget,
];

/** An entry for each method of a service: one that is missing does not compile. */
type Entries<Service extends DescService> = {
  readonly [K in keyof Service['method']]: RuleEntry<
    Service['method'][K] extends { readonly input: infer Input extends DescMessage }
      ? MessageShape<Input>
      : never
  >;
};

type Scoped = { readonly projectId: string; readonly tenantId: string };
type OfProject = { readonly projectId: string };
type OfQuery = { readonly scope?: Scoped | undefined };
type Listed = Scoped & { readonly allTenants: boolean };

const NOTHING: CallTarget = { kind: 'nothing' };
const nothing = (): CallTarget => NOTHING;
const inTenant = ({ projectId, tenantId }: Scoped): CallTarget => ({
  kind: 'tenant',
  projectId,
  tenantId,
});
const inAllTenants = ({ projectId }: OfProject): CallTarget => ({ kind: 'all_tenants', projectId });
const inProject = ({ projectId }: OfProject): CallTarget => ({ kind: 'project', projectId });
const inQuery = ({ scope }: OfQuery): CallTarget =>
  inTenant(scope ?? { projectId: '', tenantId: '' });
const inListed = (request: Listed): CallTarget =>
  request.allTenants ? inAllTenants(request) : inTenant(request);

const READ_TENANT = ['read', inTenant] as const;
const WRITE_TENANT = ['write', inTenant] as const;
const READ_QUERY = ['read', inQuery] as const;
const OPEN = [[], nothing] as const;

const authz: Entries<typeof AuthzService> = {
  writeRelationTuples: WRITE_TENANT,
  readRelationTuples: READ_TENANT,
  check: READ_TENANT,
  batchCheck: READ_TENANT,
  expand: READ_TENANT,
  listObjects: READ_TENANT,
  // Both ignore the tenant of their request.
  deprovisionUser: ['write', inAllTenants],
  exportSubjectGrants: ['export', inAllTenants],
};

const workspace: Entries<typeof WorkspaceService> = {
  createWorkspace: WRITE_TENANT,
  getWorkspace: READ_TENANT,
  // The first one of a user makes the personal workspace.
  listWorkspaces: [['read', 'write'], inTenant],
  updateWorkspace: WRITE_TENANT,
  transferOwnership: WRITE_TENANT,
  deleteWorkspace: WRITE_TENANT,
  addMember: WRITE_TENANT,
  updateMemberRole: WRITE_TENANT,
  removeMember: WRITE_TENANT,
  suspendMember: WRITE_TENANT,
  reinstateMember: WRITE_TENANT,
  listMembers: READ_TENANT,
  createInvitation: WRITE_TENANT,
  acceptInvitation: WRITE_TENANT,
  listInvitations: READ_TENANT,
  revokeInvitation: WRITE_TENANT,
};

const group: Entries<typeof GroupService> = {
  createGroup: WRITE_TENANT,
  getGroup: READ_TENANT,
  listGroups: READ_TENANT,
  deleteGroup: WRITE_TENANT,
  addGroupMember: WRITE_TENANT,
  removeGroupMember: WRITE_TENANT,
  listGroupMembers: READ_TENANT,
  setEnrollmentState: WRITE_TENANT,
  listEnrollments: READ_TENANT,
};

const seat: Entries<typeof SeatService> = {
  setSeatLimit: ['manage', inTenant],
  getSeatUsage: READ_TENANT,
  assignSeat: WRITE_TENANT,
  revokeSeat: WRITE_TENANT,
  listSeats: READ_TENANT,
};

const admin: Entries<typeof AdminService> = {
  createProject: ['manage', ({ id }) => inAllTenants({ projectId: id })],
  getProject: ['read', ({ id }) => inProject({ projectId: id })],
  // Suspension, region and model are of every tenant.
  updateProject: ['manage', ({ id }) => inAllTenants({ projectId: id })],
  // Answers with the projects of the caller's scopes.
  listProjects: ['read', nothing],
};

const model: Entries<typeof ModelService> = {
  validateModel: ['read', nothing],
  writeModel: ['manage', inAllTenants],
  getModel: ['read', inProject],
  listModelVersions: ['read', inProject],
  rollBackModel: ['manage', inAllTenants],
  // Both count tuples of all tenants that do not fit, and show some.
  getModelActivation: ['read', inAllTenants],
  cancelModelActivation: ['manage', inAllTenants],
  testModel: ['read', inProject],
  // Queries may be of any tenant, those that were recorded among them.
  previewModel: ['read', inAllTenants],
};

const query: Entries<typeof QueryService> = {
  check: READ_QUERY,
  batchCheck: READ_QUERY,
  explain: READ_QUERY,
  listSubjects: READ_QUERY,
  listRelations: READ_QUERY,
  filterObjects: READ_QUERY,
  listObjects: READ_QUERY,
  streamObjects: READ_QUERY,
  whatIf: READ_QUERY,
};

const tuple: Entries<typeof TupleService> = {
  writeTuples: WRITE_TENANT,
  streamTuples: ['export', inListed],
  importTuples: ['write', ({ options }) => inTenant(options ?? { projectId: '', tenantId: '' })],
  deleteTuples: WRITE_TENANT,
  watch: ['export', inListed],
};

const ALL_PROJECTS: CallTarget = { kind: 'all_projects' };

const budget: Entries<typeof BudgetService> = {
  // Shows refused queries, of any tenant.
  getReadBudget: ['read', inAllTenants],
  listReadUsage: ['read', () => ALL_PROJECTS],
  // Evaluates without the project's own bound.
  measureRefusedQuestions: ['manage', inAllTenants],
};

const health: Entries<typeof Health> = { check: OPEN, list: OPEN, watch: OPEN };
const reflection: Entries<typeof ServerReflection> = { serverReflectionInfo: OPEN };
const reflectionAlpha: Entries<typeof ServerReflectionAlpha> = { serverReflectionInfo: OPEN };

/** The service that scopes name for `/fsck` of the metrics port. */
const FSCK = 'fsck';

/** `/fsck`: it compares the indexes of all projects. */
export const FSCK_RULES: Readonly<Record<'start' | 'report', TargetedRule<void>>> = {
  start: { service: FSCK, method: 'start', needs: ['manage'], targetOf: () => ALL_PROJECTS },
  report: { service: FSCK, method: 'report', needs: ['read'], targetOf: () => ALL_PROJECTS },
};

/** Stores of OpenFGA's API, of which a caller reaches those that it made: nothing else of AdminService. */
export const STORE_RULES: Readonly<Record<'create' | 'list' | 'delete', TargetedRule<void>>> = {
  create: storeRule('CreateStore'),
  list: storeRule('ListStores'),
  delete: storeRule('DeleteStore'),
};

function storeRule(method: string): TargetedRule<void> {
  return { service: AdminService.typeName, method, needs: ['stores'], targetOf: nothing };
}

function rulesOf<Service extends DescService>(
  service: Service,
  entries: Entries<Service>,
): readonly (readonly [string, TargetedRule<unknown>])[] {
  return service.methods.map((method) => {
    const entry = (entries as Readonly<Record<string, RuleEntry<unknown> | undefined>>)[
      method.localName
    ];
    if (entry === undefined) throw new Error(`${service.typeName}/${method.name} has no rule`);
    const [needs, targetOf] = entry;
    const { typeName } = service;
    const rule = {
      service: typeName,
      method: method.name,
      needs: typeof needs === 'string' ? [needs] : needs,
      targetOf,
    };
    return [pathOf(method), rule];
  });
}

function pathOf(method: DescMethod): string {
  return `/${method.parent.typeName}/${method.name}`;
}

/** The rule of every method that the service has, by its path. */
export const RULES: ReadonlyMap<string, TargetedRule<unknown>> = new Map([
  ...rulesOf(AuthzService, authz),
  ...rulesOf(WorkspaceService, workspace),
  ...rulesOf(GroupService, group),
  ...rulesOf(SeatService, seat),
  ...rulesOf(AdminService, admin),
  ...rulesOf(ModelService, model),
  ...rulesOf(QueryService, query),
  ...rulesOf(TupleService, tuple),
  ...rulesOf(BudgetService, budget),
  ...rulesOf(Health, health),
  ...rulesOf(ServerReflection, reflection),
  ...rulesOf(ServerReflectionAlpha, reflectionAlpha),
]);

/** Services that scopes may name: those whose methods need something. */
export const SCOPED_SERVICES: readonly string[] = [
  ...new Set(
    [...RULES.values()].filter((rule) => rule.needs.length > 0).map((rule) => rule.service),
  ),
  FSCK,
];

/** The rule of a method by its path, which must be one of ours. */
export function mustRule(path: string): TargetedRule<unknown> {
  const rule = RULES.get(path);
  if (rule === undefined) throw new Error(`${path} has no rule`);
  return rule;
}

/** Needs a manager, and changes nothing. */
const MEASURE_REFUSED = `/${BudgetService.typeName}/${BudgetService.method.measureRefusedQuestions.name}`;

/** Whether a method may leave something changed; false for methods of other services, such as a health check. */
export function isChange(path: string): boolean {
  const needs = RULES.get(path)?.needs ?? [];
  return (needs.includes('write') || needs.includes('manage')) && path !== MEASURE_REFUSED;
}
