import { GatehouseClient } from '@gatehouse/client';
import { gatehouse } from '@gatehouse/client/grpc';
// A gRPC server (@grpc/grpc-js) whose every method needs a grant. Who calls stands in the metadata here.
import * as grpc from '@grpc/grpc-js';

const client = new GatehouseClient({
  baseUrl: process.env.GATEHOUSE_URL,
  token: process.env.GATEHOUSE_TOKEN,
});
const viewer = (objectId) => ({ namespace: 'resource', objectId, relation: 'viewer' });

const mayCall = gatehouse({
  client,
  grpc,
  user: ({ metadata }) => metadata.get('x-user')[0],
  needs: ({ path }) => viewer(path.split('/').at(-1)),
});

const text = { serialize: (value) => Buffer.from(value), deserialize: (bytes) => bytes.toString() };
export const DOCUMENTS = {
  read: {
    path: '/documents.Documents/plan',
    requestStream: false,
    responseStream: false,
    requestSerialize: text.serialize,
    requestDeserialize: text.deserialize,
    responseSerialize: text.serialize,
    responseDeserialize: text.deserialize,
  },
};
const server = new grpc.Server({ interceptors: [mayCall] });
server.addService(DOCUMENTS, { read: (call, answer) => answer(null, `hello ${call.request}`) });
server.bindAsync('127.0.0.1:0', grpc.ServerCredentials.createInsecure(), (error, port) => {
  if (error) throw error;
  console.log(port);
});
