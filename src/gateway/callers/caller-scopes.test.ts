import fc from 'fast-check';
import { describe, expect, test } from 'vitest';
import { CallerScopes, type NameList, type CallerScope } from './caller-scopes.ts';
import { FSCK_RULES, METHOD_CLASSES, type MethodClass, mustRule, RULES } from './method-rules.ts';

const CHECK = mustRule('/workspace.v1.AuthzService/Check');
const LIST_WORKSPACES = mustRule('/workspace.v1.WorkspaceService/ListWorkspaces');
const EXPORT = mustRule('/workspace.v1.AuthzService/ExportSubjectGrants');
const LIST_PROJECTS = mustRule('/workspace.v1.AdminService/ListProjects');

const inAcme: CallerScope = {
  projects: ['atlas'],
  tenants: ['acme'],
  services: '*',
  methods: ['read'],
};

describe('CallerScopes', () => {
  test('admits what one of them grants, and nothing else', () => {
    const scopes = new CallerScopes([inAcme], 'default');
    expect(scopes.admitTenant(CHECK, 'atlas', 'acme')).toBe(true);
    expect(scopes.admitTenant(CHECK, 'atlas', '')).toBe(false);
    expect(scopes.admitTenant(CHECK, 'atlas', 'acme2')).toBe(false);
    expect(scopes.admitTenant(CHECK, 'other', 'acme')).toBe(false);
    expect(scopes.admitTenant(CHECK, '', 'acme')).toBe(false);
    expect(new CallerScopes([inAcme], 'atlas').admitTenant(CHECK, '', 'acme')).toBe(true);
  });

  test('needs every class of a method, if by several grants', () => {
    const read = new CallerScopes([inAcme], 'default');
    expect(read.admitTenant(LIST_WORKSPACES, 'atlas', 'acme')).toBe(false);
    const write: CallerScope = { ...inAcme, methods: ['write'] };
    const both = new CallerScopes([inAcme, write], 'default');
    expect(both.admitTenant(LIST_WORKSPACES, 'atlas', 'acme')).toBe(true);
    const elsewhere = new CallerScopes([inAcme, { ...write, tenants: ['other'] }], 'default');
    expect(elsewhere.admitTenant(LIST_WORKSPACES, 'atlas', 'acme')).toBe(false);
  });

  test('all tenants are granted by "*" alone, and all projects by "*" in both', () => {
    const some: CallerScope = { ...inAcme, methods: '*' };
    const whole: CallerScope = { ...some, tenants: '*' };
    const place = { kind: 'all_tenants', projectId: 'atlas' } as const;
    expect(new CallerScopes([some], 'default').admit(EXPORT, place)).toBe(false);
    expect(new CallerScopes([whole], 'default').admit(EXPORT, place)).toBe(true);
    const start = FSCK_RULES.start;
    expect(new CallerScopes([whole], 'default').admit(start, start.targetOf())).toBe(false);
    const all: CallerScope = { ...whole, projects: '*' };
    expect(new CallerScopes([all], 'default').admit(start, start.targetOf())).toBe(true);
  });

  test('tells the projects that may be seen', () => {
    const admin: CallerScope = { ...inAcme, services: ['workspace.v1.AdminService'] };
    const second: CallerScope = { ...admin, projects: ['borea', 'atlas'] };
    const third: CallerScope = { ...admin, projects: ['ceres'], methods: ['write'] };
    const scopes = new CallerScopes([admin, second, third], 'default');
    expect(scopes.projectsOf(LIST_PROJECTS)).toEqual(['atlas', 'borea']);
    expect(new CallerScopes([{ ...admin, projects: '*' }], '').projectsOf(LIST_PROJECTS)).toBe('*');
  });

  test('agree with their definition read word for word', () => {
    const names = (...of: string[]): fc.Arbitrary<NameList> =>
      fc.oneof(fc.constant('*' as const), fc.subarray(of));
    const services = [...new Set([...RULES.values()].map(({ service }) => service))];
    const scope: fc.Arbitrary<CallerScope> = fc.record({
      projects: names('p', 'q', 'default'),
      tenants: names('', 's', 't'),
      services: names(...services),
      methods: fc.oneof(fc.constant('*' as const), fc.subarray<MethodClass>([...METHOD_CLASSES])),
    });
    const grants = (one: NameList, name: string): boolean => one === '*' || one.includes(name);
    fc.assert(
      fc.property(
        fc.array(scope, { maxLength: 4 }),
        fc.constantFrom(...RULES.values()),
        fc.constantFrom('', 'p', 'q'),
        fc.constantFrom('', 's', 't'),
        (all, rule, projectId, tenantId) => {
          const expected = rule.needs.every((need) =>
            all.some(
              (one) =>
                grants(one.projects, projectId === '' ? 'default' : projectId) &&
                grants(one.tenants, tenantId) &&
                grants(one.services, rule.service) &&
                (one.methods === '*' || one.methods.includes(need)),
            ),
          );
          const scopes = new CallerScopes(all, 'default');
          const isAnywhere = rule.needs.every((need) =>
            all.some(
              (one) =>
                grants(one.services, rule.service) &&
                (one.methods === '*' || one.methods.includes(need)),
            ),
          );
          expect(scopes.admitAnywhere(rule)).toBe(isAnywhere);
          expect(scopes.admitTenant(rule, projectId, tenantId)).toBe(expected);
          expect(scopes.admit(rule, { kind: 'tenant', projectId, tenantId })).toBe(expected);
        },
      ),
    );
  });
});
