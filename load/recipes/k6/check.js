// Checks over HTTP/1.1 with JSON at a rate that rises, whatever became of the earlier ones.
//   k6 run -e TOKEN=… -e TARGET=http://127.0.0.1:8080 load/recipes/k6/check.js
// The project is that of load/mixes/checks.json: fill it with npm run load first.
import { check } from 'k6';
import http from 'k6/http';

const TARGET = __ENV.TARGET || 'http://127.0.0.1:8080';
const RATE = Number(__ENV.RATE || 500);
const SECONDS = Number(__ENV.SECONDS || 20);

export const options = {
  scenarios: {
    checks: {
      executor: 'ramping-arrival-rate',
      startRate: Math.ceil(RATE / 10),
      timeUnit: '1s',
      preAllocatedVUs: 50,
      maxVUs: 1000,
      stages: [
        { target: RATE, duration: `${Math.ceil(SECONDS / 2)}s` },
        { target: RATE, duration: `${Math.floor(SECONDS / 2)}s` },
      ],
    },
  },
  thresholds: {
    http_req_failed: ['rate<0.001'],
    checks: ['rate>0.999'],
  },
  summaryTrendStats: ['med', 'p(90)', 'p(99)', 'p(99.9)', 'max'],
};

const headers = { 'Content-Type': 'application/json' };
if (__ENV.TOKEN) headers['Authorization'] = `Bearer ${__ENV.TOKEN}`;

const below = (n) => Math.floor(Math.random() * n);

export default function ask() {
  const question = {
    project_id: __ENV.PROJECT || 'load-checks',
    tenant_id: __ENV.TENANT || 't1',
    namespace: 'doc',
    object_id: `d${below(10)}_${below(250)}`,
    relation: 'viewer',
    subject_user_id: `u${below(100)}`,
  };
  const url = `${TARGET}/workspace.v1.AuthzService/Check`;
  const answer = http.post(url, JSON.stringify(question), { headers });
  check(answer, { 'is decided': (r) => r.status === 200 && r.json('allowed') !== undefined });
}
