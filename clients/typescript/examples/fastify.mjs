// Documents that only their viewers read, in Fastify. Who is signed in stands in a header here.
import { GatehouseClient } from '@gatehouse/client';
import { gatehouse, gatehouseSession } from '@gatehouse/client/fastify';
import fastify from 'fastify';

const client = new GatehouseClient({
  baseUrl: process.env.GATEHOUSE_URL,
  token: process.env.GATEHOUSE_TOKEN,
});
const viewer = (objectId) => ({ namespace: 'resource', objectId, relation: 'viewer' });

const mayView = gatehouse({
  client,
  user: (request) => request.headers['x-user'],
  needs: (request) => viewer(request.params.id),
});

const app = fastify();
gatehouseSession(app, { secure: false });
app.get('/documents/:id', { preHandler: mayView }, async (request) => ({
  document: request.params.id,
}));
app.post('/documents/:id/viewers/:user', async (request, reply) => {
  await client.write([{ ...viewer(request.params.id), subject: request.params.user }]);
  return reply.code(204).send();
});
await app.listen({ port: 0, host: '127.0.0.1' });
console.log(app.server.address().port);
