// Documents that only their viewers read, in Hono. Who is signed in stands in a header here.
import { GatehouseClient } from '@gatehouse/client';
import { gatehouse, gatehouseSession } from '@gatehouse/client/hono';
import { serve } from '@hono/node-server';
import { Hono } from 'hono';

const client = new GatehouseClient({
  baseUrl: process.env.GATEHOUSE_URL,
  token: process.env.GATEHOUSE_TOKEN,
});
const viewer = (objectId) => ({ namespace: 'resource', objectId, relation: 'viewer' });

const mayView = gatehouse({
  client,
  user: (context) => context.req.header('x-user'),
  needs: (context) => viewer(context.req.param('id')),
});

const app = new Hono();
app.use(gatehouseSession({ secure: false }));
app.get('/documents/:id', mayView, (context) =>
  context.json({ document: context.req.param('id') }),
);
app.post('/documents/:id/viewers/:user', async (context) => {
  const { id, user } = context.req.param();
  await client.write([{ ...viewer(id), subject: user }]);
  return context.body(null, 204);
});
serve({ fetch: app.fetch, port: 0, hostname: '127.0.0.1' }, ({ port }) => console.log(port));
