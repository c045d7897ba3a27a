/* Two instances side by side, and every mode of PgBouncer, for notifications, too. */
import './own-postgres.host.test.ts';
