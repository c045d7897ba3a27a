// Decides in this process, without a service: `node check.mjs` prints six lines.
import { Engine, EngineError, parseModel, runTests } from '@gatehouse/engine';

const model = parseModel(`
condition in_office(ip: ipaddress, network: string) {
  ip.in_cidr(network)
}

namespace group {
  relation member: [user, group#member]
}

namespace doc {
  relation owner: [user]
  relation banned: [user]
  relation viewer: ([user with in_office, group#member] or owner) but not banned
}
`);
const engine = new Engine(model);

engine.write([
  'group:eng#member@user:ann',
  'doc:plan#viewer@group:eng#member',
  {
    namespace: 'doc',
    objectId: 'plan',
    relation: 'viewer',
    subject: 'ben',
    condition: 'in_office',
    conditionParams: { network: '10.0.0.0/8' },
  },
]);

const plan = { namespace: 'doc', objectId: 'plan', relation: 'viewer' };
console.log('ann:', engine.check({ ...plan, subject: 'ann' }));
console.log('ben:', JSON.stringify(engine.decide({ ...plan, subject: 'ben' })));
console.log('ben:', engine.check({ ...plan, subject: 'ben' }, { context: { ip: '10.1.2.3' } }));

const { obstacles } = engine.explain({ ...plan, subject: 'ben' });
console.log('missing:', obstacles.flatMap(({ missingInputs }) => missingInputs).join());

const tests = `
tuples: [doc:memo#owner@user:ann, doc:memo#banned@user:ann]
tests:
  - deny: [doc:memo#viewer@user:ann]
`;
console.log('failures:', runTests(tests, { model }).failures.length);

try {
  engine.check({ ...plan, relation: 'viewr', subject: 'ann' });
} catch (error) {
  if (!(error instanceof EngineError)) throw error;
  console.log(error.reason, error.message);
}
