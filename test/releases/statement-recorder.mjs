// Loaded into a service by `node --import`: appends every statement that it and its threads send to PostgreSQL to the
// file that RECORD_STATEMENTS names, one JSON line each: when it began (ns), its connection, text, values, and what came
// back. Plain JavaScript, since it is loaded into releases of any age.
import { appendFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { threadId } from 'node:worker_threads';

const file = process.env.RECORD_STATEMENTS;
if (file !== undefined) {
  const { Client } = createRequire(join(process.cwd(), 'package.json'))('pg');
  const query = Client.prototype.query;
  let clients = 0;
  Client.prototype.query = function recorded(config, values, callback) {
    this.recordedAs ??= `${threadId}-${++clients}`;
    const entry = { at: String(process.hrtime.bigint()), connection: this.recordedAs };
    if (typeof config === 'string') entry.text = config;
    else if (typeof config.text === 'string') entry.text = config.text;
    // The snapshot's own query; its text is sent as it is.
    else if (typeof config.submit === 'function')
      return recordSubmitted(this, config, entry, query);
    entry.values = (Array.isArray(values) ? values : (config.values ?? [])).map(toJson);
    if (config.rowMode !== undefined) entry.rowMode = config.rowMode;
    const done = (result) => {
      const one = Array.isArray(result) ? result.at(-1) : result;
      entry.rows = one?.rowCount ?? null;
      entry.fields = (one?.fields ?? []).map(({ name, dataTypeID }) => [name, dataTypeID]);
      write(entry);
    };
    if (typeof values === 'function') callback = values;
    if (typeof callback === 'function') {
      const told = (error, result) => {
        if (!error) done(result);
        callback(error, result);
      };
      return typeof values === 'function'
        ? query.call(this, config, told)
        : query.call(this, config, values, told);
    }
    if (typeof config.callback === 'function') {
      const { callback: inner } = config;
      config.callback = (error, result) => {
        if (!error) done(result);
        inner(error, result);
      };
    }
    const answer = query.call(this, config, values);
    answer?.then?.(done, () => undefined);
    return answer;
  };
}

function recordSubmitted(client, config, entry, query) {
  const submit = config.submit;
  config.submit = function (connection) {
    const send = connection.query;
    connection.query = (text) => {
      connection.query = send;
      write({ ...entry, text, values: [], isSnapshot: true });
      return send.call(connection, text);
    };
    return submit.call(config, connection);
  };
  return query.call(client, config);
}

function write(entry) {
  appendFileSync(file, `${JSON.stringify(entry)}\n`);
}

function toJson(value) {
  if (Buffer.isBuffer(value)) return { hex: value.toString('hex') };
  if (value instanceof Date) return { date: value.toISOString() };
  if (typeof value === 'bigint') return String(value);
  if (Array.isArray(value)) return value.map(toJson);
  return value === undefined ? null : value;
}
