// A Connect server whose every method needs a grant. Who calls stands in a header here.
import { createServer } from 'node:http';
import { connectNodeAdapter } from '@connectrpc/connect-node';
import { GatehouseClient } from '@gatehouse/client';
import { gatehouse } from '@gatehouse/client/connect';
import { SeatService } from '@gatehouse/client/gen/workspace/v1/seat_service_pb';

const client = new GatehouseClient({
  baseUrl: process.env.GATEHOUSE_URL,
  token: process.env.GATEHOUSE_TOKEN,
});
const viewer = (objectId) => ({ namespace: 'resource', objectId, relation: 'viewer' });

const mayCall = gatehouse({
  client,
  user: (request) => request.header.get('x-user') ?? undefined,
  needs: () => viewer('plan'),
});

// Any service will do: this one is at hand.
const handler = connectNodeAdapter({
  interceptors: [mayCall],
  routes: (router) => router.service(SeatService, { getSeatUsage: () => ({ used: 1 }) }),
});
const server = createServer(handler).listen(0, '127.0.0.1', () => {
  console.log(server.address().port);
});
