-- Checks over HTTP/1.1 with JSON, of random users and documents.
--   TOKEN=… wrk -t2 -c32 -d10s --latency -s load/recipes/wrk/check.lua http://127.0.0.1:8080
-- The project is that of load/mixes/checks.json: fill it with npm run load first. A closed loop: each of the
-- connections asks again once it was answered, so the latencies are those of a service that is never asked faster.
local project = os.getenv("PROJECT") or "load-checks"
local tenant = os.getenv("TENANT") or "t1"
local thread_count = 0

function setup(thread)
  thread:set("seed", thread_count)
  thread_count = thread_count + 1
end

function init(args)
  math.randomseed(seed + 7)
  wrk.method = "POST"
  wrk.path = "/workspace.v1.AuthzService/Check"
  wrk.headers["Content-Type"] = "application/json"
  local token = os.getenv("TOKEN")
  if token then wrk.headers["Authorization"] = "Bearer " .. token end
end

function request()
  local body = string.format(
    '{"project_id":"%s","tenant_id":"%s","namespace":"doc","object_id":"d%d_%d","relation":"viewer","subject_user_id":"u%d"}',
    project, tenant, math.random(0, 9), math.random(0, 249), math.random(0, 99))
  return wrk.format(nil, nil, nil, body)
end

function done(summary, latency, requests)
  local errors = summary.errors
  io.write(string.format('{"requests":%d,"not_2xx":%d,"lost":%d,"p50_ms":%.3f,"p99_ms":%.3f}\n',
    summary.requests, errors.status, errors.connect + errors.read + errors.write + errors.timeout,
    latency:percentile(50) / 1000, latency:percentile(99) / 1000))
end
