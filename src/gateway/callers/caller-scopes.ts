import type { MethodClass, MethodRule, CallTarget } from './method-rules.ts';

/** A list of names, or all there are. */
export type NameList = readonly string[] | '*';

/** One grant: each of its methods, in each of its services, in each of its tenants of each of its projects. */
export type CallerScope = {
  readonly projects: NameList;
  /** '' is the default tenant. */
  readonly tenants: NameList;
  readonly services: NameList;
  readonly methods: readonly MethodClass[] | '*';
};

/** Everything there is, for callers that are trusted whole. */
export const EVERYTHING: readonly CallerScope[] = [
  { projects: '*', tenants: '*', services: '*', methods: '*' },
];

type Shards = {
  readonly projects: ReadonlySet<string> | null;
  readonly tenants: ReadonlySet<string> | null;
};

/** Shards in which a caller has each class that a rule needs. */
type Reach = readonly (readonly Shards[])[];

/**
 * The scopes of a caller. Each class that a rule needs must be granted for the shard, if by several scopes. Nothing stored is
 * read: whether a project or a tenant exists makes no difference.
 */
export class CallerScopes {
  readonly #scopes: readonly CallerScope[];
  readonly #defaultProjectId: string;
  readonly #isEverything: boolean;
  /** By rule, of which there are as many as methods. */
  readonly #reaches = new Map<MethodRule, Reach>();
  /** By rule as well: whether each class that it needs is granted anywhere. */
  readonly #isAnywhere = new Map<MethodRule, boolean>();

  constructor(scopes: readonly CallerScope[], defaultProjectId: string) {
    this.#scopes = scopes;
    this.#defaultProjectId = defaultProjectId;
    this.#isEverything = scopes.some(
      ({ projects, tenants, services, methods }) =>
        projects === '*' && tenants === '*' && services === '*' && methods === '*',
    );
  }

  /** Hot. Whether they admit a call of a method in one tenant; '' is the default project. O(scopes). */
  admitTenant(rule: MethodRule, projectId: string, tenantId: string): boolean {
    if (this.#isEverything) return true;
    const project = projectId === '' ? this.#defaultProjectId : projectId;
    for (const shards of this.#reachOf(rule)) {
      if (!holdsTenant(shards, project, tenantId)) return false;
    }
    return true;
  }

  admit(rule: MethodRule, target: CallTarget): boolean {
    if (target.kind === 'tenant') return this.admitTenant(rule, target.projectId, target.tenantId);
    if (this.#isEverything) return true;
    const reach = this.#reachOf(rule);
    if (target.kind === 'nothing') return reach.every((shards) => shards.length > 0);
    if (target.kind === 'all_projects') {
      return reach.every((all) =>
        all.some(({ projects, tenants }) => projects === null && tenants === null),
      );
    }
    const project = target.projectId === '' ? this.#defaultProjectId : target.projectId;
    const isWhole = target.kind === 'all_tenants';
    return reach.every((all) =>
      all.some(
        ({ projects, tenants }) =>
          (projects === null || projects.has(project)) && (!isWhole || tenants === null),
      ),
    );
  }

  /** Hot. Whether they admit a call of a method in any project. O(1). */
  admitAnywhere(rule: MethodRule): boolean {
    if (this.#isEverything) return true;
    let isAnywhere = this.#isAnywhere.get(rule);
    if (isAnywhere === undefined) {
      isAnywhere = this.#reachOf(rule).every((shards) => shards.length > 0);
      this.#isAnywhere.set(rule, isAnywhere);
    }
    return isAnywhere;
  }

  /** Whether a scope of the rule's service names a class that the rule needs; `*` names none. */
  isClassNamed({ service, needs }: MethodRule): boolean {
    return this.#scopes.some(
      ({ services, methods }) =>
        methods !== '*' && has(services, service) && needs.every((need) => methods.includes(need)),
    );
  }

  /** The projects whose own data, such as settings, a caller may see by a rule. */
  projectsOf(rule: MethodRule): NameList {
    if (this.#isEverything) return '*';
    const [first = []] = this.#reachOf(rule);
    if (first.some(({ projects }) => projects === null)) return '*';
    return [...new Set(first.flatMap(({ projects }) => [...(projects ?? [])]))];
  }

  #reachOf(rule: MethodRule): Reach {
    let reach = this.#reaches.get(rule);
    if (reach === undefined) {
      reach = rule.needs.map((need) =>
        this.#scopes
          .filter(({ services, methods }) => has(services, rule.service) && has(methods, need))
          .map(({ projects, tenants }) => ({ projects: setOf(projects), tenants: setOf(tenants) })),
      );
      this.#reaches.set(rule, reach);
    }
    return reach;
  }
}

function holdsTenant(all: readonly Shards[], projectId: string, tenantId: string): boolean {
  for (const { projects, tenants } of all) {
    const isProject = projects === null || projects.has(projectId);
    if (isProject && (tenants === null || tenants.has(tenantId))) return true;
  }
  return false;
}

function has(names: NameList, name: string): boolean {
  return names === '*' || names.includes(name);
}

function setOf(names: NameList): ReadonlySet<string> | null {
  return names === '*' ? null : new Set(names);
}
