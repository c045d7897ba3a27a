import { type Tuple, Engine, EngineError, parseModel } from '../../src/library/index.ts';

export const GATE = `condition in_office(ip: ipaddress, network: string) {
  ip.in_cidr(network)
}

namespace group {
  relation member: [user, group#member]
}

namespace folder {
  relation viewer: [user, user:*, folder:*]
}

namespace doc {
  relation parent: [folder]
  relation owner: [user, user with in_office, user with expiration]
  relation banned: [user]
  relation guest: [user with expiration]
  relation viewer: ([user, group#member] or owner or viewer from parent) but not banned
}
`;
export const model = parseModel(GATE);
export const plan = { namespace: 'doc', objectId: 'plan', relation: 'viewer' };
export const office: Tuple = {
  ...plan,
  relation: 'owner',
  subject: 'ben',
  condition: 'in_office',
  conditionParams: { network: '10.0.0.0/8' },
};
export const eng = { namespace: 'group', objectId: 'eng', relation: 'member' };
export const TUPLES = [
  'group:eng#member@user:ann',
  'doc:plan#viewer@group:eng#member',
  'doc:plan#banned@user:eve',
];

export function engineWith(...tuples: readonly (Tuple | string)[]): Engine {
  const engine = new Engine(model);
  engine.write(tuples);
  return engine;
}

/** The EngineError that something throws. */
export function refusal(work: () => unknown): EngineError {
  try {
    work();
  } catch (error) {
    if (error instanceof EngineError) return error;
    throw error;
  }
  throw new Error('nothing was thrown');
}

/** Reason and field of a refusal. */
export const refused = (work: () => unknown) => {
  const { reason, field } = refusal(work);
  return [reason, field];
};
