/* Three processes, seven times as many steps of more callers, and a PostgreSQL that is stopped and comes back. */
import './several-instances.host.test.ts';
