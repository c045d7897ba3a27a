// Checks over gRPC, each of the users on a connection of its own.
//   k6 run -e TOKEN=… -e TARGET=127.0.0.1:8080 load/recipes/k6/check-grpc.js
import { check } from 'k6';
import grpc from 'k6/net/grpc';

const client = new grpc.Client();
client.load(['../../../proto'], 'workspace/v1/authz_service.proto');

export const options = {
  scenarios: {
    checks: {
      executor: 'constant-vus',
      vus: Number(__ENV.USERS || 32),
      duration: `${Number(__ENV.SECONDS || 20)}s`,
    },
  },
  thresholds: { checks: ['rate>0.999'] },
  summaryTrendStats: ['med', 'p(90)', 'p(99)', 'p(99.9)', 'max'],
};

const metadata = __ENV.TOKEN ? { authorization: `Bearer ${__ENV.TOKEN}` } : {};
const below = (n) => Math.floor(Math.random() * n);

export default function ask() {
  if (__ITER === 0) client.connect(__ENV.TARGET || '127.0.0.1:8080', { plaintext: true });
  const question = {
    project_id: __ENV.PROJECT || 'load-checks',
    tenant_id: __ENV.TENANT || 't1',
    namespace: 'doc',
    object_id: `d${below(10)}_${below(250)}`,
    relation: 'viewer',
    subject_user_id: `u${below(100)}`,
  };
  const answer = client.invoke('workspace.v1.AuthzService/Check', question, { metadata });
  check(answer, { 'is decided': (r) => r !== null && r.status === grpc.StatusOK });
}
