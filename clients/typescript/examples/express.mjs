// Documents that only their viewers read, in Express. Who is signed in stands in a header here.
import { GatehouseClient } from '@gatehouse/client';
import { gatehouse, gatehouseSession } from '@gatehouse/client/express';
import express from 'express';

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

const app = express();
app.use(gatehouseSession({ secure: false }));
app.get('/documents/:id', mayView, (request, response) => {
  response.json({ document: request.params.id });
});
app.post('/documents/:id/viewers/:user', async (request, response) => {
  await client.write([{ ...viewer(request.params.id), subject: request.params.user }]);
  response.status(204).end();
});
const server = app.listen(0, '127.0.0.1', () => console.log(server.address().port));
