// Writes a grant, and asks whether it counts: `node check.mjs` prints true and false.
import { GatehouseClient } from '@gatehouse/client';

const gatehouse = new GatehouseClient({
  baseUrl: process.env.GATEHOUSE_URL,
  token: process.env.GATEHOUSE_TOKEN,
});
const plan = { namespace: 'resource', objectId: 'plan', relation: 'viewer' };

await gatehouse.write([{ ...plan, subject: 'ann' }]);
console.log(await gatehouse.check({ ...plan, subject: 'ann' }));
console.log(await gatehouse.check({ ...plan, subject: 'ben' }));
