/* Two kills of the server in a row, and one of server and owner at once. */
import './embedded-postgres.host.test.ts';
