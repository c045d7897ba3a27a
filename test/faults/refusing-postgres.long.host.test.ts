/* Full disks, and connections that others hold for as long as a claim lasts. */
import './refusing-postgres.host.test.ts';
