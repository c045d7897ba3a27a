import { Client } from 'pg';
import { startEmbeddedPostgres } from '../../src/store/embedded/embedded-postgres.ts';

/**
 * A process that owns an embedded server and writes to it until it is killed: prints `ready <pid of
 * the server>`, then each number whose commit was acknowledged. Argument: the data directory.
 */
const server = await startEmbeddedPostgres({ dataDirectory: process.argv[2] ?? '' });
const client = new Client(server.target);
await client.connect();
await client.query('create table if not exists acknowledged (batch int, part int)');
process.stdout.write(`ready ${server.pid}\n`);
for (let batch = 0; ; batch++) {
  await client.query(
    `insert into acknowledged select ${batch}, part from generate_series(1, 10) part`,
  );
  process.stdout.write(`${batch}\n`);
}
