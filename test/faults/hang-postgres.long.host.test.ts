/* A server of DATABASE_URL that hangs, and settings that are believed for longer. */
import './hang-postgres.host.test.ts';
